//! Counters as one line for the operator.

use std::fmt;

use crate::counters::Totals;

/// Formats one line: requests by status class, connections, bytes, then reached limits and faults by name;
/// zeros are omitted.
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests (2xx {}, 3xx {}, 4xx {}, 5xx {}), ",
            self.responses(),
            self.responses_2xx(),
            self.responses_3xx,
            self.responses_4xx,
            self.responses_5xx
        )?;
        write!(
            f,
            "{} connections ({} open, {} refused, {} reset, {} broken off), {} bytes received, {} bytes sent",
            self.connections_accepted,
            self.connections_open(),
            self.connections_refused,
            self.connections_reset,
            self.connections_broken,
            self.bytes_received,
            self.bytes_sent
        )?;
        let faults = [
            ("handler_panics", self.handler_panics),
            ("handler_errors", self.handler_errors),
            ("files_failed", self.files_failed),
            ("connections_cut_off", self.connections_cut_off),
        ];
        list(f, "; ", [("connections_upgraded", self.connections_upgraded)].into_iter())?;
        list(f, "; limits reached: ", self.limits())?;
        list(f, "; faults: ", faults.into_iter())
    }
}

/// Lists the counts that aren't 0.
fn list(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    counts: impl Iterator<Item = (&'static str, u64)>,
) -> fmt::Result {
    let mut before = title;
    for (name, count) in counts.filter(|(_, count)| *count > 0) {
        write!(f, "{before}{name} {count}")?;
        before = ", ";
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::counters::Totals;

    #[test]
    fn what_has_not_happened_is_left_out() {
        let line = Totals::default().to_string();
        assert_eq!(
            line,
            "0 requests (2xx 0, 3xx 0, 4xx 0, 5xx 0), 0 connections (0 open, 0 refused, 0 reset, 0 broken off), \
             0 bytes received, 0 bytes sent"
        );
    }

    #[test]
    fn everything_that_has_happened_is_said() {
        let totals = Totals {
            requests: 90,
            requests_refused: 10,
            responses_3xx: 3,
            responses_4xx: 4,
            responses_5xx: 5,
            connections_accepted: 20,
            connections_closed: 12,
            connections_refused: 1,
            connections_reset: 2,
            connections_broken: 3,
            connections_upgraded: 4,
            bytes_received: 7,
            bytes_sent: 9,
            hit_head_ms: 6,
            hit_write_ms: 1,
            files_failed: 8,
            connections_cut_off: 11,
            ..Totals::default()
        };
        assert_eq!(
            totals.to_string(),
            "100 requests (2xx 88, 3xx 3, 4xx 4, 5xx 5), 20 connections (8 open, 1 refused, 2 reset, 3 broken off), \
             7 bytes received, 9 bytes sent; connections_upgraded 4; limits reached: head_ms 6, write_ms 1; faults: files_failed 8, connections_cut_off 11"
        );
    }
}
