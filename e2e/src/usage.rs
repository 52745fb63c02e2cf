//! Figures of a server: the system's, and its own counters, which it logs at `SIGUSR1` and at its exit.

use std::thread;
use std::time::{Duration, Instant};

use testkit::{Program, Signal, process};

/// Time that a server may take to respond to a signal.
const TIMEOUT: Duration = Duration::from_secs(5);
const SO_FAR: &str = "shearwater: so far ";
const IN_ALL: &str = "shearwater: in all ";

/// Polls until `condition` holds. Returns false after `timeout`.
pub(crate) fn wait_until(timeout: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Memory and descriptors of a process at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) rss_kib: Option<u64>,
    pub(crate) descriptors: Option<u64>,
}

impl Usage {
    /// Measures a process.
    pub(crate) fn of(server: &Program) -> Self {
        Self::of_process(server.pid())
    }

    /// Measures a process by its number.
    pub(crate) fn of_process(pid: u32) -> Self {
        Self { rss_kib: process::rss_kib(pid), descriptors: process::descriptors(pid) }
    }

    /// Measures a process once it has no more descriptors than before, or after `timeout`.
    pub(crate) fn settled(server: &Program, before: Self, timeout: Duration) -> Self {
        wait_until(timeout, || process::descriptors(server.pid()) <= before.descriptors);
        Self::of(server)
    }
}

/// The share of one core that was used between two readings of CPU time, per cent.
pub(crate) fn core_percent(before: Option<u64>, after: Option<u64>, elapsed: Duration) -> Option<f64> {
    Some(100.0 * after?.saturating_sub(before?) as f64 / elapsed.as_nanos().max(1) as f64)
}

/// Counters of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LoggedCounters {
    /// Requests with a response, also refused ones.
    pub(crate) requests: u64,
    /// Responses with `2xx`.
    pub(crate) status_2xx: u64,
    /// Responses with `5xx`.
    pub(crate) status_5xx: u64,
    /// Connections accepted.
    pub(crate) connections: u64,
    /// Connections that are open.
    pub(crate) open: u64,
    /// Limits that were reached, with their counts.
    pub(crate) limits: String,
    /// Faults of the server's own, with their counts.
    pub(crate) faults: String,
}

impl LoggedCounters {
    /// Asks a running server; `None` if it doesn't log them.
    pub(crate) fn now(server: &Program) -> Option<Self> {
        let lines = |log: &str| log.lines().filter(|line| line.starts_with(SO_FAR)).count();
        let before = lines(&server.log());
        server.signal(Signal::USR1).ok()?;
        wait_until(TIMEOUT, || lines(&server.log()) > before);
        last(&server.log(), SO_FAR)
    }

    /// Reads those of a server that has exited.
    pub(crate) fn at_exit(server: &Program) -> Option<Self> {
        last(&server.log(), IN_ALL)
    }
}

fn last(log: &str, start: &str) -> Option<LoggedCounters> {
    parse(log.lines().rev().find_map(|line| line.strip_prefix(start))?)
}

/// Parses `9 requests (2xx 6, …, 5xx 1), 3 connections (1 open, …), …; limits reached: head_ms 6; faults: files_failed 8`.
fn parse(line: &str) -> Option<LoggedCounters> {
    let mut parts = line.split("; ");
    let words: Vec<&str> =
        parts.next()?.split([' ', ',', '(', ')']).filter(|word| !word.is_empty()).collect();
    let at = |word: &str| words.iter().position(|found| *found == word);
    let before = |word: &str| words.get(at(word)?.checked_sub(1)?)?.parse().ok();
    let after = |word: &str| words.get(at(word)? + 1)?.parse().ok();
    let mut counters = LoggedCounters {
        requests: before("requests")?,
        status_2xx: after("2xx")?,
        status_5xx: after("5xx")?,
        connections: before("connections")?,
        open: before("open")?,
        ..LoggedCounters::default()
    };
    for part in parts {
        match part.split_once(": ") {
            Some(("limits reached", limits)) => limits.clone_into(&mut counters.limits),
            Some(("faults", faults)) => faults.clone_into(&mut counters.faults),
            Some(_) => return None,
            // Events, such as reloads.
            None => {}
        }
    }
    Some(counters)
}

#[cfg(test)]
mod tests {
    use super::{LoggedCounters, parse};

    const LINE: &str = "100 requests (2xx 88, 3xx 3, 4xx 4, 5xx 5), 20 connections (8 open, 1 refused, 2 reset, \
                        3 broken off), 7 bytes received, 9 bytes sent";

    #[test]
    fn reads_every_counter_and_rejects_other_lines() {
        let line =
            format!("{LINE}; reloads 2; limits reached: head_ms 6, write_ms 1; faults: files_failed 8");
        let expected = LoggedCounters {
            requests: 100,
            status_2xx: 88,
            status_5xx: 5,
            connections: 20,
            open: 8,
            limits: "head_ms 6, write_ms 1".to_owned(),
            faults: "files_failed 8".to_owned(),
        };
        assert_eq!(parse(&line), Some(expected));
        assert_eq!(parse(LINE).map(|counters| counters.faults), Some(String::new()));
        for line in ["", "100", "requests", &LINE.replace("8 open", "some open"), &format!("{LINE}; more: 1")]
        {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
