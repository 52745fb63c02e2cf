//! Figures of the server and of the kernel at one moment, and a line of progress.

use std::fs;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::plan::meminfo_kib;
use crate::process::{ServerProcess, Threads};

/// Intervals between lines of progress, on a terminal and elsewhere.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Resources in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Reading {
    /// Resident memory of the server.
    pub(super) rss_mib: f64,
    /// CPU time of the server so far.
    pub(super) cpu_s: f64,
    pub(super) descriptors: u64,
    /// The machine's kernel memory in slabs.
    pub(super) slab_mib: f64,
    /// TCP sockets of this network namespace, both ends.
    pub(super) sockets: u64,
}

impl Reading {
    pub(super) fn take(server: &ServerProcess) -> Result<Self, String> {
        // The thread's namespace is not always its process's.
        let path = "/proc/thread-self/net/sockstat";
        let sockets = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        let sockets = parse_sockets(&sockets).ok_or_else(|| format!("{path}: no TCP sockets"))?;
        Ok(Self {
            rss_mib: server.mib(testkit::process::rss_kib)?,
            cpu_s: Threads::of(server.ids())?.since(&Threads::default())?.cpu_ns as f64 / 1e9,
            descriptors: server.ids().iter().filter_map(|id| testkit::process::descriptors(*id)).sum(),
            slab_mib: meminfo_kib("Slab:")? as f64 / 1024.0,
            sockets,
        })
    }
}

/// Finds the first number in the line `TCP: inuse 4 orphan 0 tw 2 alloc 5 mem 1`.
fn parse_sockets(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("TCP: inuse "))?.split(' ').next()?.parse().ok()
}

/// A line of progress, rewritten in place on a terminal.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    pub(crate) is_terminal: bool,
    last: Instant,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        Self { is_terminal: stderr().is_terminal(), last: Instant::now() }
    }

    /// Shows a line, if the last one is old enough.
    pub(crate) fn show(&mut self, line: impl FnOnce() -> String) {
        let interval = if self.is_terminal { REDRAW_INTERVAL } else { LINE_INTERVAL };
        if self.last.elapsed() < interval {
            return;
        }
        self.last = Instant::now();
        if self.is_terminal {
            eprint!("\r\x1b[Klab: {}", line());
        } else {
            crate::progress(&line());
        }
    }

    /// Ends the line, for others to follow.
    pub(crate) fn end(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_sockets;

    #[test]
    fn parses_the_sockets_of_a_namespace() {
        let text = "sockets: used 9\nTCP: inuse 4 orphan 0 tw 2 alloc 5 mem 1\nUDP: inuse 7 mem 0\n";
        assert_eq!([parse_sockets(text), parse_sockets("UDP: inuse 7 mem 0\n")], [Some(4), None]);
    }
}
