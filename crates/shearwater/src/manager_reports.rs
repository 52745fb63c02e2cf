//! Reports to the service manager: systemd's `sd_notify`.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use shearwater_engine::{Control, Progress, Running, Totals};
use shearwater_io::service_manager::{notify, takes_notifications, watchdog_timeout};

use crate::report::Verbosity;

/// Interval of status reports.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

/// Longest wait before a report that has failed is repeated.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Reports to the service manager until dropped.
#[derive(Debug)]
pub(crate) struct ManagerReports {
    /// Has the thread begin.
    begin: Option<SyncSender<()>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ManagerReports {
    /// Creates the thread that reports; `None` without a service manager.
    ///
    /// # Errors
    /// If the system can't create a thread.
    pub(crate) fn prepare(running: &Running, verbosity: Verbosity) -> io::Result<Option<Self>> {
        if !takes_notifications() {
            return Ok(None);
        }
        let control = running.control();
        let mut reporter = Reporter {
            verbosity,
            control: Arc::clone(&control),
            progress: running.progress(),
            watchdog: watchdog_timeout(),
            unsent: VecDeque::from([State::Ready]),
            is_stopping: false,
            status: String::new(),
            has_failed: false,
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let is_over_here = Arc::clone(&is_over);
        let (begin, has_begun) = sync_channel(1);
        let run = move || {
            if has_begun.recv().is_ok() {
                reporter.run(&is_over_here);
            }
        };
        let thread = thread::Builder::new().name("manager".to_owned()).spawn(run)?;
        let reporter = thread.thread().clone();
        control.on_end(move |_| reporter.unpark());
        Ok(Some(Self { begin: Some(begin), is_over, thread: Some(thread) }))
    }

    /// Reports that the server is ready, and its state from now on.
    pub(crate) fn begin(&self) {
        // The thread waits for it, and the channel has room.
        if let Some(begin) = &self.begin {
            let _ = begin.try_send(());
        }
    }
}

impl Drop for ManagerReports {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.begin = None;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread returns nothing and can't panic.
            drop(thread.join());
        }
    }
}

/// A state of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Stopping,
}

/// The thread that reports.
#[derive(Debug)]
struct Reporter {
    control: Arc<Control>,
    verbosity: Verbosity,
    progress: Option<Progress>,
    /// Time within which the manager expects a sign of life.
    watchdog: Option<Duration>,
    /// States that the manager hasn't received yet, in their order.
    unsent: VecDeque<State>,
    is_stopping: bool,
    /// The last status that the manager has received.
    status: String,
    /// The manager couldn't be reached, which was reported.
    has_failed: bool,
}

impl Reporter {
    fn run(&mut self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Acquire) {
            let Some(pause) = self.report() else { return };
            thread::park_timeout(pause);
        }
        if self.control.is_ending() && !self.is_stopping {
            self.report();
        }
    }

    /// Sends what the manager hasn't received yet, and a sign of life. Returns the time until the next report.
    fn report(&mut self) -> Option<Duration> {
        if self.control.has_passed_listeners() {
            // The manager supervises the process that has them, and would take this end for that of the service.
            return None;
        }
        if self.control.is_ending() && !self.is_stopping {
            self.is_stopping = true;
            self.unsent.push_back(State::Stopping);
        }
        let is_stuck = self.progress.as_mut().and_then(Progress::stuck_worker).is_some();
        let is_alive = self.watchdog.is_some() && !is_stuck;
        let pause = pause(self.watchdog, is_stuck);
        let is_sent = match self.unsent.is_empty() {
            true => self.send(None, is_alive),
            false => self.send_states(is_alive),
        };
        Some(if is_sent { pause } else { pause.min(RETRY_INTERVAL) })
    }

    /// Sends all states, and returns true if the manager has received them.
    fn send_states(&mut self, is_alive: bool) -> bool {
        while let Some(state) = self.unsent.front().copied() {
            if !self.send(Some(state), is_alive) {
                return false;
            }
            self.unsent.pop_front();
        }
        true
    }

    /// Sends a state, a status if it differs from the last one, and a sign of life. Returns false on failure.
    fn send(&mut self, state: Option<State>, is_alive: bool) -> bool {
        let status = status(self.control.addresses().len(), self.is_stopping, &self.control.totals());
        let mut lines = Vec::new();
        lines.extend(state.map(|state| match state {
            State::Ready => "READY=1".to_owned(),
            State::Stopping => "STOPPING=1".to_owned(),
        }));
        lines.extend((status != self.status).then(|| format!("STATUS={status}")));
        lines.extend(is_alive.then(|| "WATCHDOG=1".to_owned()));
        if lines.is_empty() {
            return true;
        }
        match notify(&lines.join("\n")) {
            Ok(_) => {
                (self.status, self.has_failed) = (status, false);
                return true;
            }
            Err(error) if !self.has_failed => {
                self.has_failed = true;
                let text = format!("can't notify the service manager: {error}");
                self.verbosity.warn("manager_unreachable", &text);
            }
            Err(_) => {}
        }
        false
    }
}

/// Describes a server in one line.
fn status(listeners: usize, is_stopping: bool, totals: &Totals) -> String {
    let open = totals.connections_accepted.saturating_sub(totals.connections_closed);
    let (requests, refused) = (totals.requests, totals.requests_refused);
    if is_stopping {
        return format!("Draining; open connections: {open}");
    }
    let plural = if listeners == 1 { "" } else { "es" };
    format!(
        "Serving at {listeners} address{plural}; open connections: {open}, requests: {requests}, rejected: {refused}"
    )
}

/// Returns the time until the next report: half of the watchdog's timeout at most. While a worker is stuck, its
/// recovery is reported soon.
fn pause(watchdog: Option<Duration>, is_stuck: bool) -> Duration {
    match watchdog {
        None => STATUS_INTERVAL,
        Some(timeout) if is_stuck => STATUS_INTERVAL.min(timeout / 8),
        Some(timeout) => STATUS_INTERVAL.min(timeout / 2),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shearwater_engine::Totals;

    use super::{pause, status};

    #[test]
    fn reports_at_half_of_the_watchdog_timeout() {
        let seconds = Duration::from_secs;
        for (watchdog, is_stuck, expected) in [
            (None, false, seconds(10)),
            (Some(seconds(30)), false, seconds(10)),
            (Some(seconds(8)), false, seconds(4)),
            (Some(seconds(8)), true, seconds(1)),
            (None, true, seconds(10)),
        ] {
            assert_eq!(pause(watchdog, is_stuck), expected, "{watchdog:?} {is_stuck}");
        }
    }

    #[test]
    fn describes_the_server_in_one_line() {
        let totals = Totals::default();
        let serving = "Serving at 1 address; open connections: 0, requests: 0, rejected: 0";
        assert_eq!(status(1, false, &totals), serving);
        assert!(status(2, false, &totals).starts_with("Serving at 2 addresses; "));
        assert_eq!(status(2, true, &totals), "Draining; open connections: 0");
    }
}
