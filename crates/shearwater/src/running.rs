//! A running server: its signals, its notices and its end.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shearwater_engine::{Control, Notice, StartReport, Summary, ThreadFailure};

use crate::error::Error;
use crate::hand_over_error::HandOverError;
use crate::manager_reports::ManagerReports;
use crate::operator::Operator;
use crate::predecessor;
use crate::report::{MessageReporter, Verbosity};
use crate::signal_watch::{CaughtSignals, SignalFunctions, SignalWatch};
use crate::successor::Successor;

/// Longest wait for the next notice.
const NOTICE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Time past its deadline after which a worker counts as stuck.
const STUCK_AFTER: Duration = Duration::from_millis(500);

/// A running server.
pub struct Running {
    pub(crate) running: shearwater_engine::Running,
    pub(crate) drain_ms: u64,
    pub(crate) reporter: MessageReporter,
    pub(crate) functions: SignalFunctions,
    pub(crate) operator: Operator,
    pub(crate) watch: Option<SignalWatch>,
    /// Reports until the server has ended.
    pub(crate) _reports: Option<ManagerReports>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("start_report", self.start_report()).finish_non_exhaustive()
    }
}

impl Running {
    /// Acts on signals that were caught before the start.
    pub(crate) fn watching(mut self, signals: Option<CaughtSignals>) -> Self {
        self.watch = signals.map(|caught| self.watch(caught));
        self
    }

    /// Returns the addresses, driver and limits determined at startup.
    #[must_use]
    pub fn start_report(&self) -> &StartReport {
        self.running.start_report()
    }

    /// Returns the first TCP address bound, with the actual port.
    ///
    /// # Panics
    /// If the server listens on Unix-domain sockets only.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.start_report().addresses[0]
    }

    /// Returns the handle that drains, stops and counts, from any thread.
    #[must_use]
    pub fn control(&self) -> Arc<Control> {
        self.running.control()
    }

    /// Returns the handle that reloads and upgrades as signals do, from any thread, and waits for the result.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator.clone()
    }

    /// Returns the process whose listeners this one has [taken over](crate::Server::take_over).
    #[must_use]
    pub fn predecessor(&self) -> Option<u32> {
        predecessor::process()
    }

    /// Returns the log level.
    #[must_use]
    pub fn verbosity(&self) -> Verbosity {
        self.reporter.verbosity
    }

    /// Starts a process that takes the place of this one, and drains this server when the other serves. Returns its
    /// number.
    ///
    /// See [`Successor`] and [`Server::on_upgrade`](crate::Server::on_upgrade), which does so at a signal.
    ///
    /// # Errors
    /// See [`HandOverError`]. Nothing has changed then.
    pub fn hand_over(&self, successor: Successor) -> Result<u32, HandOverError> {
        let control = self.control();
        let process = successor.start(&control)?;
        control.drain(self.drain_ms);
        Ok(process)
    }

    /// Waits until the server has ended, by `SIGTERM`, `SIGINT`, `SIGQUIT` or [`Control`].
    ///
    /// A signal during a drain stops the server, no matter what started the drain. Prints the workers' notices to
    /// standard error meanwhile, the totals so far at `SIGUSR1`, and the totals at the end.
    ///
    /// # Errors
    /// [`Error::Signals`] if signals can't be handled, and [`Error::Failed`] if a worker failed; the others are drained
    /// then. [`Error::SuccessorFailed`] if a [`Successor`] failed before this server was drained, which stops it.
    pub fn wait(mut self) -> Result<Summary, Error> {
        let _watch = self.watch_signals()?;
        self.wait_for_control()
    }

    /// Handles signals as [`wait`](Self::wait) does, until the result is dropped.
    ///
    /// For programs that shut down more than the server.
    ///
    /// # Errors
    /// [`Error::Signals`] if signals can't be handled.
    pub fn watch_signals(&mut self) -> Result<SignalWatch, Error> {
        if let Some(watch) = self.watch.take() {
            return Ok(watch);
        }
        let caught = SignalWatch::catch(&self.functions).map_err(Error::Signals)?;
        Ok(self.watch(caught))
    }

    fn watch(&self, caught: CaughtSignals) -> SignalWatch {
        let (control, operator) = (self.control(), self.operator());
        SignalWatch::new(
            caught,
            control,
            self.drain_ms,
            self.reporter,
            operator,
            self.functions.reopen.clone(),
        )
    }

    /// Waits until the server has ended by [`Control`], as [`wait`](Self::wait) does, and leaves signals alone.
    ///
    /// # Errors
    /// [`Error::Failed`] if a worker failed, and [`Error::SuccessorFailed`].
    pub fn wait_for_control(self) -> Result<Summary, Error> {
        let (control, reporter) = (self.control(), self.reporter);
        let end = self.log_until_ended();
        // A process that was about to take over is ended first.
        control.await_passing();
        reporter.print_totals(&control.totals());
        end
    }

    /// Prints notices until all workers have ended, or one is stuck past its deadline.
    fn log_until_ended(self) -> Result<Summary, Error> {
        let control = self.control();
        let mut ended = 0;
        let mut end: Option<Instant> = None;
        let mut failed_successor = None;
        while ended < self.start_report().workers && !self.running.is_over() {
            let left = end.map_or(NOTICE_WAIT_MAX, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(self.stuck());
            }
            let Some(notice) = self.running.notice(left.min(NOTICE_WAIT_MAX)) else { continue };
            self.reporter.print(&notice, &control);
            match notice {
                Notice::WorkerEnded { error, .. } => {
                    ended += 1;
                    if error.is_some() {
                        control.drain(self.drain_ms);
                    }
                }
                Notice::AcceptorEnded { error: Some(_) } => control.drain(self.drain_ms),
                Notice::SuccessorFailed { process, status } => {
                    // Nobody accepts: a service manager restarts what has ended.
                    failed_successor = Some(Error::SuccessorFailed { process, status });
                    control.stop();
                }
                Notice::Draining { drain_ms } => end = Some(deadline_after(drain_ms)),
                Notice::Stopping => end = Some(deadline_after(0)),
                _ => {}
            }
        }
        // Notices sent while workers ended: at most what the queue holds, for nothing adds to it.
        while let Some(notice) = self.running.notice(Duration::ZERO) {
            self.reporter.print(&notice, &control);
        }
        let summary = self.running.wait()?;
        failed_successor.map_or(Ok(summary), Err)
    }

    /// Returns the error for a worker that is still inside a handler, which can't be ended from outside.
    fn stuck(&self) -> Error {
        let worker = Some(self.running.unended().unwrap_or(0));
        Error::Failed(ThreadFailure {
            worker,
            why: "it is still inside a handler at the end of the drain".to_owned(),
        })
    }
}

/// Returns the time by which workers must have ended, given `ms` milliseconds for it.
fn deadline_after(ms: u64) -> Instant {
    let now = Instant::now();
    now.checked_add(Duration::from_millis(ms).saturating_add(STUCK_AFTER)).unwrap_or(now + NOTICE_WAIT_MAX)
}
