//! Validity of blocks. An invalid one is shown with its reasons and never enters a figure.

use std::fmt::{self, Display};

use serde::{Serialize, Serializer};

use crate::block::Block;
use crate::scenario::Scenario;
use crate::server::ServerKind;

/// Maximum run-queue wait of the server's threads, in per cent of the window: more means that something else ran on its core.
pub(crate) const WAIT_PERCENT_MAX: f64 = 1.0;
/// The same where connections end: kernel threads free sockets on the server's core, about 1 % for every server alike.
pub(crate) const WAIT_PERCENT_MAX_CHURN: f64 = 3.0;
/// Maximum time of others on the server's core, in per cent of the window, where its own threads wait for one another. It is
/// counted in ticks and includes interrupts.
const FOREIGN_PERCENT_MAX: f64 = 5.0;
/// Share of the window, in per cent, from which a busy client limits what it measures.
pub(crate) const CLIENT_BUSY_PERCENT_MAX: f64 = 90.0;

/// Reason for which a block does not count.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    NoResponses,
    Status(u64),
    Sockets(u64),
    NotSent {
        sent: u64,
        due: u64,
    },
    Bytes {
        received: u64,
        expected_min: u64,
        expected_max: u64,
    },
    ResponseChanged {
        before: u64,
        after: u64,
    },
    Waited {
        percent: f64,
    },
    Foreign {
        percent: f64,
    },
    NoCpuTime,
    TooFewReady {
        ready: f64,
        least: f64,
    },
    /// It could not be run, or not to its end.
    Failed(String),
}

impl Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResponses => write!(out, "no responses"),
            Self::Status(count) => write!(out, "{count} responses with an unexpected status or length"),
            Self::Sockets(count) => write!(out, "{count} socket errors or timeouts"),
            Self::NotSent { sent, due } => write!(out, "{sent} of {due} due requests were sent"),
            Self::Bytes { received, expected_min, expected_max } => {
                write!(out, "{received} bytes received, {expected_min} to {expected_max} expected")
            }
            Self::ResponseChanged { before, after } => {
                write!(out, "a response of {before} bytes before, of {after} after")
            }
            Self::Waited { percent } => write!(out, "waited for its CPU {percent:.1} % of the time"),
            Self::Foreign { percent } => write!(out, "others ran on its core {percent:.1} % of the time"),
            Self::NoCpuTime => write!(out, "no CPU time counted"),
            Self::TooFewReady { ready, least } => {
                write!(out, "{ready:.0} handlers ready in a turn, at least {least:.0} expected")
            }
            Self::Failed(reason) => write!(out, "{reason}"),
        }
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns all faults of a block of so many seconds; without any it counts.
pub(crate) fn judge(
    block: &Block,
    scenario: &Scenario,
    server: &ServerKind,
    seconds: u32,
    wait_percent_max: f64,
) -> Vec<Fault> {
    let (tally, before) = (&block.tally, block.response_bytes);
    let expected_min = tally.responses.saturating_mul(before);
    // A client may hold unfinished responses when its time is up.
    let expected_max = expected_min.saturating_add(u64::from(scenario.connections * scenario.depth) * before);
    let is_wrong_length = !(expected_min..=expected_max).contains(&tally.bytes);
    let due = scenario.rate.map(|rate| u64::from(rate) * u64::from(seconds));
    let not_sent = due.filter(|due| tally.requests < *due);
    let after = block.response_bytes_after;
    let few = block.ready.zip(scenario.ready_min).filter(|(ready, least)| ready.is_nan() || ready < least);
    let found = [
        (tally.responses == 0).then_some(Fault::NoResponses),
        (tally.status_errors > 0).then_some(Fault::Status(tally.status_errors)),
        (tally.socket_errors() > 0).then_some(Fault::Sockets(tally.socket_errors())),
        not_sent.map(|due| Fault::NotSent { sent: tally.requests, due }),
        is_wrong_length.then_some(Fault::Bytes { received: tally.bytes, expected_min, expected_max }),
        (before != after).then_some(Fault::ResponseChanged { before, after }),
        disturbed(block, server, wait_percent_max),
        (block.server_cpu_ns == 0).then_some(Fault::NoCpuTime),
        few.map(|(ready, least)| Fault::TooFewReady { ready, least }),
    ];
    found.into_iter().flatten().collect()
}

/// Returns the fault if something else ran on the server's core for too long. A share that is no number is too long.
fn disturbed(block: &Block, server: &ServerKind, wait_percent_max: f64) -> Option<Fault> {
    let is_beyond = |percent: f64, most: f64| percent.is_nan() || percent > most;
    if server.has_pool() {
        let percent = percent(block.foreign_ns, block.window_ns);
        return is_beyond(percent, FOREIGN_PERCENT_MAX).then_some(Fault::Foreign { percent });
    }
    let percent = percent(block.server_wait_ns, block.window_ns);
    is_beyond(percent, wait_percent_max).then_some(Fault::Waited { percent })
}

/// Returns true if the client was the limit: then its requests per second say nothing about the server.
pub(crate) fn is_client_bound(client_busy_percent: f64) -> bool {
    client_busy_percent >= CLIENT_BUSY_PERCENT_MAX
}

/// Returns a part in per cent of a whole; not a number if there is no whole.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64 * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Tally;

    /// Judges a sound block after a change.
    fn faults(scenario: &str, server: &str, change: impl FnOnce(&mut Block)) -> Vec<Fault> {
        let mut block = Block {
            tally: Tally { responses: 1_000, bytes: 150_000, duration_us: 2_000_000, ..Tally::default() },
            response_bytes: 150,
            response_bytes_after: 150,
            server_cpu_ns: 5_000_000,
            server_wait_ns: 1_000_000,
            window_ns: 2_000_000_000,
            ..Block::default()
        };
        change(&mut block);
        let scenario = crate::scenario::find(scenario).expect("a scenario");
        let server = crate::server::find(server).expect("a server");
        judge(&block, scenario, server, 1, WAIT_PERCENT_MAX)
    }

    fn changed(change: impl FnOnce(&mut Block)) -> Vec<Fault> {
        faults("1k", "nginx", change)
    }

    #[test]
    fn a_sound_block_counts() {
        assert_eq!(changed(|_| {}), []);
        assert_eq!(changed(|block| block.tally.bytes += 64 * 150), [], "unfinished responses are allowed");
    }

    #[test]
    fn every_wrong_count_is_a_fault() {
        let few = changed(|block| block.tally.bytes -= 1);
        assert!(
            matches!(few[..], [Fault::Bytes { received: 149_999, expected_min: 150_000, .. }]),
            "{few:?}"
        );
        let many = changed(|block| block.tally.bytes += 64 * 150 + 1);
        assert!(matches!(many[..], [Fault::Bytes { expected_max: 159_600, .. }]), "{many:?}");
        assert_eq!(changed(|block| block.tally.status_errors = 3), [Fault::Status(3)]);
        assert_eq!(changed(|block| block.tally.connect_errors = 1), [Fault::Sockets(1)]);
        assert_eq!(changed(|block| block.tally.read_errors = 1), [Fault::Sockets(1)]);
        assert_eq!(changed(|block| block.tally.write_errors = 1), [Fault::Sockets(1)]);
        assert_eq!(changed(|block| block.tally.timeouts = 1), [Fault::Sockets(1)]);
        assert_eq!(
            changed(|block| (block.tally.responses, block.tally.bytes) = (0, 0)),
            [Fault::NoResponses]
        );
        assert_eq!(changed(|block| block.server_cpu_ns = 0), [Fault::NoCpuTime]);
        let longer = changed(|block| block.response_bytes_after = 151);
        assert_eq!(longer, [Fault::ResponseChanged { before: 150, after: 151 }]);
        let sent = |requests| faults("1k-rate", "nginx", |block| block.tally.requests = requests);
        assert_eq!((sent(5_000), sent(4_999)), (vec![], vec![Fault::NotSent { sent: 4_999, due: 5_000 }]));
        let ready = |ready| faults("order", "kinds", |block| block.ready = Some(ready));
        assert_eq!(
            (ready(100.0), ready(99.0)),
            (vec![], vec![Fault::TooFewReady { ready: 99.0, least: 100.0 }])
        );
        let both = changed(|block| (block.tally.status_errors, block.tally.timeouts) = (1, 1));
        assert_eq!(both, [Fault::Status(1), Fault::Sockets(1)]);
    }

    #[test]
    fn disturbance_is_a_fault_beyond_its_bound() {
        let waited = |wait_ns| changed(|block| block.server_wait_ns = wait_ns);
        assert_eq!(waited(19_000_000), []);
        assert!(matches!(waited(21_000_000)[..], [Fault::Waited { .. }]));
        // Where threads wait for one another, only the time of others counts.
        let foreign = |foreign_ns| {
            let wait_ns = 6_000_000_000;
            faults("1k", "servedir", |block| (block.server_wait_ns, block.foreign_ns) = (wait_ns, foreign_ns))
        };
        assert_eq!(foreign(99_000_000), []);
        assert!(matches!(foreign(101_000_000)[..], [Fault::Foreign { .. }]));
        let empty = changed(|block| (block.window_ns, block.server_wait_ns) = (0, 0));
        assert!(matches!(empty[..], [Fault::Waited { percent }] if percent.is_nan()));
    }
}
