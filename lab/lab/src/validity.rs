//! Which blocks count. One that does not is shown with its reasons and never enters a figure.

use std::fmt::{self, Display};

use crate::tally::Tally;

/// A server's threads may wait for their CPU so long, in per cent of the window: more means that somebody else ran there.
pub const WAIT_PERCENT_MAX: f64 = 1.0;
/// The same where connections come and go: see `Scenario::wait_percent_max`.
pub const WAIT_PERCENT_MAX_CHURN: f64 = 3.0;
/// Where a server's own threads wait for one another, others may run on its core for so long instead, in per cent of the
/// window: more than above, for this is counted in ticks and has what interrupts take in it.
pub const FOREIGN_PERCENT_MAX: f64 = 5.0;
/// A client that is busy for so much of the window, in per cent, limits what it measures.
pub const CLIENT_BUSY_PERCENT_MAX: f64 = 90.0;

/// What is known of a block when it is judged.
#[derive(Debug, Clone, Copy)]
pub struct Evidence {
    /// The client's counts.
    pub tally: Tally,
    /// Length of a whole answer, as probed before the block.
    pub answer_bytes: u64,
    /// Length of a whole answer, as probed after it.
    pub answer_bytes_after: u64,
    /// Bytes that unfinished answers may account for.
    pub in_flight_bytes_max: u64,
    /// CPU time of the server in the window.
    pub server_cpu_ns: u64,
    /// Time that the server's threads waited for a CPU in the window.
    pub server_wait_ns: u64,
    /// Time that others ran on the server's core, for servers whose threads wait for one another.
    pub foreign_ns: Option<u64>,
    /// The window.
    pub window_ns: u64,
    /// The bound on waiting, in per cent of the window.
    pub wait_percent_max: f64,
}

/// Why a block does not count.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Nothing was answered.
    NoResponses,
    /// Answers with a status that was not expected.
    Status(u64),
    /// Sockets that failed, or answers that came too late.
    Sockets(u64),
    /// More or fewer bytes than the answers make up.
    Bytes {
        /// What was received.
        received: u64,
        /// The least that answers of this number have.
        expected_min: u64,
        /// The most, unfinished ones included.
        expected_max: u64,
    },
    /// The answer's length changed during the block.
    AnswerChanged {
        /// Before.
        before: u64,
        /// After.
        after: u64,
    },
    /// Somebody else ran on the server's core.
    Waited {
        /// Waiting for a CPU, in per cent of the window.
        percent: f64,
    },
    /// Somebody else ran on the server's core, which has several threads there.
    Foreign {
        /// Neither idle nor the server's, in per cent of the window.
        percent: f64,
    },
    /// The scheduler counted nothing.
    NoCpuTime,
    /// It could not be run, or not to its end.
    Failed(String),
}

impl Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResponses => write!(out, "no responses"),
            Self::Status(count) => write!(out, "{count} answers with an unexpected status"),
            Self::Sockets(count) => write!(out, "{count} socket errors or timeouts"),
            Self::Bytes { received, expected_min, expected_max } => {
                write!(out, "{received} bytes received, {expected_min} to {expected_max} expected")
            }
            Self::AnswerChanged { before, after } => {
                write!(out, "an answer of {before} bytes before, of {after} after")
            }
            Self::Waited { percent } => write!(out, "waited for its CPU {percent:.1} % of the time"),
            Self::Foreign { percent } => write!(out, "others ran on its core {percent:.1} % of the time"),
            Self::NoCpuTime => write!(out, "no CPU time counted"),
            Self::Failed(reason) => write!(out, "{reason}"),
        }
    }
}

/// All that is wrong with a block; nothing: it counts.
pub fn judge(evidence: &Evidence) -> Vec<Fault> {
    let tally = &evidence.tally;
    let expected_min = tally.responses.saturating_mul(evidence.answer_bytes);
    let expected_max = expected_min.saturating_add(evidence.in_flight_bytes_max);
    let wrong_bytes = !(expected_min..=expected_max).contains(&tally.bytes);
    let (before, after) = (evidence.answer_bytes, evidence.answer_bytes_after);
    let found = [
        (tally.responses == 0).then_some(Fault::NoResponses),
        (tally.status_errors > 0).then_some(Fault::Status(tally.status_errors)),
        (tally.socket_errors() > 0).then_some(Fault::Sockets(tally.socket_errors())),
        wrong_bytes.then_some(Fault::Bytes { received: tally.bytes, expected_min, expected_max }),
        (before != after).then_some(Fault::AnswerChanged { before, after }),
        disturbed(evidence),
        (evidence.server_cpu_ns == 0).then_some(Fault::NoCpuTime),
    ];
    found.into_iter().flatten().collect()
}

/// Whether somebody else ran on the server's core for too long. A share that is no number (an empty window) is too long.
fn disturbed(evidence: &Evidence) -> Option<Fault> {
    let beyond = |percent: f64, most: f64| percent.is_nan() || percent > most;
    if let Some(foreign_ns) = evidence.foreign_ns {
        let percent = percent(foreign_ns, evidence.window_ns);
        return beyond(percent, FOREIGN_PERCENT_MAX).then_some(Fault::Foreign { percent });
    }
    let percent = percent(evidence.server_wait_ns, evidence.window_ns);
    beyond(percent, evidence.wait_percent_max).then_some(Fault::Waited { percent })
}

/// Whether the client was the limit: then its requests per second say nothing about the server.
pub fn is_client_bound(client_busy_percent: f64) -> bool {
    client_busy_percent >= CLIENT_BUSY_PERCENT_MAX
}

/// A part in per cent of a whole; not a number if there is no whole.
pub fn percent(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64 * 100.0
}
