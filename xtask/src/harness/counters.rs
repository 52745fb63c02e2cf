//! What the server says of itself: its own counters, which it writes into its log at `SIGUSR1` and at its end.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::server::{Server, Signal};

/// How long a server may take to answer a signal.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the log is looked at meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How the line begins that a server writes which goes on.
const SO_FAR: &str = "shearwater: so far ";
/// How the line begins that a server writes which has ended.
const IN_ALL: &str = "shearwater: in all ";

/// The server's own counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Requests answered, refused ones among them.
    pub(crate) requests: u64,
    /// Those of them answered with `2xx`.
    pub(crate) answers_2xx: u64,
    /// Those of them answered with `5xx`.
    pub(crate) answers_5xx: u64,
    /// Connections accepted.
    pub(crate) connections: u64,
    /// Those of them that are open: each has a slot.
    pub(crate) open: u64,
    /// Which limits were reached, and how often.
    pub(crate) limits: String,
    /// Which faults of its own happened, and how often.
    pub(crate) faults: String,
}

/// Asks a server that goes on; `None` if it does not tell.
pub(crate) fn so_far(server: &Server) -> Option<Counted> {
    let told = || {
        let log = fs::read_to_string(server.log()).unwrap_or_default();
        log.lines().filter(|line| line.starts_with(SO_FAR)).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = told().len();
    server.signal(Signal::USR1).ok()?;
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(line) = told().get(before) {
            return parse(line.strip_prefix(SO_FAR)?);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    None
}

/// Reads what a server has told that has ended; `None` if it did not.
pub(crate) fn in_all(log: &Path) -> Option<Counted> {
    let text = fs::read_to_string(log).ok()?;
    parse(text.lines().rev().find_map(|line| line.strip_prefix(IN_ALL))?)
}

/// `9 requests (2xx 6, 3xx 1, 4xx 1, 5xx 1), 3 connections (1 open, …), …; limits reached: head_ms 6; faults: files_failed 8`
fn parse(line: &str) -> Option<Counted> {
    let mut parts = line.split("; ");
    let words: Vec<&str> =
        parts.next()?.split([' ', ',', '(', ')']).filter(|word| !word.is_empty()).collect();
    let at = |word: &str| words.iter().position(|found| *found == word);
    let number = |place: usize| words.get(place)?.parse().ok();
    let mut counted = Counted {
        requests: number(at("requests")?.checked_sub(1)?)?,
        answers_2xx: number(at("2xx")? + 1)?,
        answers_5xx: number(at("5xx")? + 1)?,
        connections: number(at("connections")?.checked_sub(1)?)?,
        open: number(at("open")?.checked_sub(1)?)?,
        ..Counted::default()
    };
    for part in parts {
        match part.split_once(": ")? {
            ("limits reached", limits) => limits.clone_into(&mut counted.limits),
            ("faults", faults) => faults.clone_into(&mut counted.faults),
            _ => return None,
        }
    }
    Some(counted)
}

#[cfg(test)]
mod tests {
    use super::{Counted, parse};

    const LINE: &str = "100 requests (2xx 88, 3xx 3, 4xx 4, 5xx 5), 20 connections (8 open, 1 refused, 2 reset, \
                        3 broken off), 7 bytes received, 9 bytes sent";

    #[test]
    fn every_figure_is_read() {
        let counted =
            parse(&format!("{LINE}; limits reached: head_ms 6, write_ms 1; faults: files_failed 8"));
        let expected = Counted {
            requests: 100,
            answers_2xx: 88,
            answers_5xx: 5,
            connections: 20,
            open: 8,
            limits: "head_ms 6, write_ms 1".to_owned(),
            faults: "files_failed 8".to_owned(),
        };
        assert_eq!(counted, Some(expected));
        assert_eq!(parse(LINE).map(|counted| counted.faults), Some(String::new()));
    }

    #[test]
    fn a_line_of_another_shape_is_none() {
        for line in ["", "100", "requests", &LINE.replace("8 open", "some open"), &format!("{LINE}; more: 1")]
        {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
