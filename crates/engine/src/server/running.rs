//! A running server: its threads, their reports, and their end.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, io};

use crate::server::control::Control;
use crate::server::counters::Totals;
use crate::server::notice::Notice;
use crate::server::panics;
use crate::server::start::StartReport;
use crate::server::watchdog::{Progress, Watchdog};

/// A running server. Dropping it doesn't stop the workers: use [`Control::drain`] or [`Control::stop`].
pub struct Running {
    pub(crate) control: Arc<Control>,
    pub(crate) notices: Receiver<Notice>,
    pub(crate) threads: Vec<JoinHandle<io::Result<()>>>,
    /// Thread that accepts for all workers, if any.
    pub(crate) acceptor: Option<JoinHandle<io::Result<()>>>,
    pub(crate) watchdog: Option<Watchdog>,
    pub(crate) start_report: StartReport,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("start_report", &self.start_report).finish_non_exhaustive()
    }
}

impl Running {
    /// Returns the handle to drain, stop and count, for any thread.
    #[must_use]
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// Returns the report of the start.
    #[must_use]
    pub fn start_report(&self) -> &StartReport {
        &self.start_report
    }

    /// Returns a detector of stuck workers, unless the watchdog is off.
    #[must_use]
    pub fn progress(&self) -> Option<Progress> {
        self.watchdog.as_ref().map(|watchdog| Progress::of(&watchdog.heartbeats))
    }

    /// Returns the next notice of a worker, within `patience`.
    #[must_use]
    pub fn notice(&self, patience: Duration) -> Option<Notice> {
        self.notices.recv_timeout(patience).ok()
    }

    /// Returns the first worker that has not ended.
    #[must_use]
    pub fn unended(&self) -> Option<usize> {
        self.threads.iter().position(|thread| !thread.is_finished())
    }

    /// Returns true if every worker has ended, and the acceptor.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.threads.iter().chain(&self.acceptor).all(JoinHandle::is_finished)
    }

    /// Waits until every worker has ended, and the acceptor.
    ///
    /// # Errors
    /// The first of them that failed.
    pub fn wait(mut self) -> Result<Summary, ThreadFailure> {
        let mut failure = None;
        let acceptor = self.acceptor.take().into_iter().map(|thread| (None, thread));
        let workers = std::mem::take(&mut self.threads)
            .into_iter()
            .enumerate()
            .map(|(worker, thread)| (Some(worker), thread));
        for (worker, thread) in acceptor.chain(workers) {
            let why = match thread.join() {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(payload) => panics::message(payload.as_ref()),
            };
            failure.get_or_insert(ThreadFailure { worker, why });
        }
        self.watchdog = None;
        match failure {
            Some(failure) => Err(failure),
            None => Ok(Summary { totals: self.control.totals() }),
        }
    }
}

/// Summary of a server's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Sum of all workers' counters.
    pub totals: Totals,
}

/// ThreadFailure of a worker or the acceptor: a fault of this program or of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFailure {
    /// Number of the worker; `None` for the acceptor.
    pub worker: Option<usize>,
    /// The reason.
    pub why: String,
}

impl fmt::Display for ThreadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.worker {
            Some(worker) => write!(f, "worker {worker} has failed: {}", self.why),
            None => write!(f, "the acceptor has failed: {}", self.why),
        }
    }
}

impl std::error::Error for ThreadFailure {}
