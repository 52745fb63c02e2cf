//! Reports to the service manager: systemd's `sd_notify`.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, SystemTime};

use httpdate::fmt_http_date;
use shearwater_engine::{Control, Progress, Running, Totals};
use shearwater_http1::visible::OneLine;
use shearwater_io::service_manager::{monotonic_us, notify, takes_notifications, watchdog_timeout};

use crate::operator::OperationResult;
use crate::report::MessageReporter;

/// Addresses in a status; further ones are counted.
const ADDRESSES_SHOWN_MAX: usize = 3;

/// Interval of status reports.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

/// Longest wait before a report that has failed is repeated.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Time from the limit of a drain to the process's exit, for which the service manager has to wait as well.
const EXIT_TIME: Duration = Duration::from_secs(5);

/// Reports to the service manager until dropped.
#[derive(Debug)]
pub(crate) struct ManagerReports {
    /// Has the thread begin.
    begin: Option<SyncSender<()>>,
    is_over: Arc<AtomicBool>,
    reporter: Arc<Mutex<Reporter>>,
    thread: Option<JoinHandle<()>>,
}

/// Reports reloads to the service manager.
#[derive(Debug, Clone)]
pub(crate) struct ReloadReports {
    reporter: Arc<Mutex<Reporter>>,
    thread: Thread,
}

impl ReloadReports {
    /// Reports that a reload begins.
    pub(crate) fn begin(&self) {
        self.change(Reporter::begin_reload);
    }

    /// Reports that a reload has ended, with its result and what is served since then.
    pub(crate) fn end(&self, result: &OperationResult, serves: Option<String>) {
        self.change(|reporter| {
            match result {
                OperationResult::Refused { .. } => reporter.refused_at = Some(SystemTime::now()),
                OperationResult::Done { .. } | OperationResult::Incomplete { .. } => {
                    reporter.refused_at = None;
                }
                _ => {}
            }
            reporter.serves = serves.unwrap_or_else(|| mem::take(&mut reporter.serves));
            reporter.end_reload();
        });
    }

    /// Queues a state, and sends it; the thread repeats that if it fails.
    fn change(&self, change: impl FnOnce(&mut Reporter)) {
        let mut reporter = lock(&self.reporter);
        change(&mut reporter);
        if !reporter.send_states(false) {
            self.thread.unpark();
        }
    }
}

fn lock(reporter: &Mutex<Reporter>) -> MutexGuard<'_, Reporter> {
    reporter.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ManagerReports {
    /// Creates the thread that reports; `None` without a service manager.
    ///
    /// # Errors
    /// If the system can't create a thread.
    pub(crate) fn prepare(
        running: &Running,
        messages: MessageReporter,
        serves: String,
    ) -> io::Result<Option<Self>> {
        if !takes_notifications() {
            return Ok(None);
        }
        let control = running.control();
        let reporter = Reporter {
            messages,
            control: Arc::clone(&control),
            progress: running.progress(),
            watchdog: watchdog_timeout(),
            unsent: VecDeque::from([State::Ready]),
            is_reloading: false,
            is_stopping: false,
            status: String::new(),
            serves,
            refused_at: None,
            has_failed: false,
        };
        let reporter = Arc::new(Mutex::new(reporter));
        let is_over = Arc::new(AtomicBool::new(false));
        let (begin, has_begun) = sync_channel(1);
        let (reporter_here, is_over_here) = (Arc::clone(&reporter), Arc::clone(&is_over));
        let run = move || {
            if has_begun.recv().is_ok() {
                report_until(&is_over_here, &reporter_here);
            }
        };
        let thread = thread::Builder::new().name("manager".to_owned()).spawn(run)?;
        let unparked = thread.thread().clone();
        control.on_end(move |_| unparked.unpark());
        Ok(Some(Self { begin: Some(begin), is_over, reporter, thread: Some(thread) }))
    }

    /// Returns what reports reloads.
    pub(crate) fn of_reloads(&self) -> Option<ReloadReports> {
        let thread = self.thread.as_ref()?.thread().clone();
        Some(ReloadReports { reporter: Arc::clone(&self.reporter), thread })
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
    /// Since this time: see [`monotonic_us`].
    Reloading {
        since_us: u64,
    },
    /// Since this time, too.
    Stopping {
        since_us: u64,
    },
}

/// Reports until `is_over` is set, or another process does so.
fn report_until(is_over: &AtomicBool, reporter: &Mutex<Reporter>) {
    while !is_over.load(Ordering::Acquire) {
        let Some(pause) = lock(reporter).report() else { return };
        thread::park_timeout(pause);
    }
    let mut reporter = lock(reporter);
    if reporter.note_end() {
        reporter.send_states(false);
    }
}

/// Everything that is known of the service and its manager.
#[derive(Debug)]
struct Reporter {
    control: Arc<Control>,
    messages: MessageReporter,
    progress: Option<Progress>,
    /// Time within which the manager expects a sign of life.
    watchdog: Option<Duration>,
    /// States that the manager hasn't received yet, in their order.
    unsent: VecDeque<State>,
    /// A reload has begun. Its `RELOADING=1` is sent or queued, its `READY=1` isn't.
    is_reloading: bool,
    is_stopping: bool,
    /// The last status that the manager has received.
    status: String,
    /// Description of what is served; empty if the program gave none.
    serves: String,
    /// Time of the last reload, if it was refused.
    refused_at: Option<SystemTime>,
    /// The manager couldn't be reached, which was reported.
    has_failed: bool,
}

impl Reporter {
    /// Queues the beginning of a reload.
    fn begin_reload(&mut self) {
        self.note_end();
        if self.is_stopping {
            return;
        }
        // A reload that the manager hasn't received is over: this one takes its place, which bounds the queue.
        let is_reloading = |state: &State| matches!(state, State::Reloading { .. });
        self.unsent.truncate(self.unsent.iter().position(is_reloading).unwrap_or(self.unsent.len()));
        self.unsent.push_back(State::Reloading { since_us: monotonic_us() });
        self.is_reloading = true;
    }

    /// Queues the end of a reload, if one has begun.
    fn end_reload(&mut self) {
        if mem::take(&mut self.is_reloading) {
            self.unsent.push_back(State::Ready);
        }
    }

    /// Queues the beginning of a drain or stop; returns true if that is news.
    fn note_end(&mut self) -> bool {
        if self.is_stopping || !self.control.is_ending() {
            return false;
        }
        // The manager waits for the end of a reload, even if this is the end of the service.
        self.end_reload();
        self.is_stopping = true;
        self.unsent.push_back(State::Stopping { since_us: monotonic_us() });
        true
    }

    /// Sends what the manager hasn't received yet, and a sign of life. Returns the time until the next report.
    fn report(&mut self) -> Option<Duration> {
        if self.control.has_passed_listeners() {
            return None;
        }
        self.note_end();
        // Events may have ended the last pause early.
        let stuck_after = pause(self.watchdog, true);
        let stuck = self.progress.as_mut().and_then(|progress| progress.stuck_worker(stuck_after));
        let is_stuck = stuck.is_some();
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
        if self.control.has_passed_listeners() {
            // The manager supervises the process that has them, and would take this end for that of the service.
            return true;
        }
        while let Some(state) = self.unsent.front().copied() {
            if !self.send(Some(state), is_alive) {
                return false;
            }
            self.unsent.pop_front();
        }
        true
    }

    fn status(&self) -> String {
        let totals = self.control.totals();
        match self.is_stopping {
            true => format!("Draining; open connections: {}", totals.connections_open()),
            false => describe(&self.serves, &self.control.addresses(), &totals, self.refused_at),
        }
    }

    /// Sends a state, a status if it differs from the last one, and a sign of life. Returns false on failure.
    fn send(&mut self, state: Option<State>, is_alive: bool) -> bool {
        let status = self.status();
        let mut lines = Vec::new();
        lines.extend(state.map(|state| match state {
            State::Ready => "READY=1".to_owned(),
            State::Reloading { since_us } => format!("RELOADING=1\nMONOTONIC_USEC={since_us}"),
            State::Stopping { since_us } => {
                let elapsed = Duration::from_micros(monotonic_us().saturating_sub(since_us));
                stopping(self.control.drain_limit(), elapsed)
            }
        }));
        let has_status = status != self.status || state == Some(State::Ready);
        lines.extend(has_status.then(|| format!("STATUS={status}")));
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
                self.messages.warn("manager_unreachable", &text);
            }
            Err(_) => {}
        }
        false
    }
}

/// Returns the lines for an end that began `elapsed` ago. The manager waits for the drain, whatever its own timeout.
fn stopping(drain_limit: Option<Duration>, elapsed: Duration) -> String {
    let Some(limit) = drain_limit else { return "STOPPING=1".to_owned() };
    let rest = limit.saturating_sub(elapsed).saturating_add(EXIT_TIME);
    // The largest number would be no time.
    let us = u64::try_from(rest.as_micros()).unwrap_or(u64::MAX).min(u64::MAX - 1);
    format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={us}")
}

/// Describes a server in one line.
fn describe(serves: &str, addresses: &[String], totals: &Totals, refused_at: Option<SystemTime>) -> String {
    let serving =
        if serves.is_empty() { "Serving".to_owned() } else { format!("Serving {}", OneLine(serves)) };
    let shown = addresses[..addresses.len().min(ADDRESSES_SHOWN_MAX)].join(", ");
    let more = match addresses.len().saturating_sub(ADDRESSES_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (open, requests, refused) = (totals.connections_open(), totals.requests, totals.requests_refused);
    let refused_at =
        refused_at.map_or(String::new(), |at| format!("; last reload refused at {}", fmt_http_date(at)));
    format!(
        "{serving} on {shown}{more}; open connections: {open}, requests: {requests}, rejected: {refused}{refused_at}"
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
    use std::time::{Duration, SystemTime};

    use shearwater_engine::Totals;

    use super::{describe, pause, stopping};

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
    fn extends_the_managers_timeout_by_the_rest_of_the_drain() {
        let ms = Duration::from_millis;
        for (limit, elapsed, expected) in [
            (None, ms(0), "STOPPING=1"),
            (Some(ms(30_000)), ms(0), "STOPPING=1\nEXTEND_TIMEOUT_USEC=35000000"),
            (Some(ms(30_000)), ms(1500), "STOPPING=1\nEXTEND_TIMEOUT_USEC=33500000"),
            (Some(ms(0)), ms(1500), "STOPPING=1\nEXTEND_TIMEOUT_USEC=5000000"),
            (Some(ms(u64::MAX)), ms(0), "STOPPING=1\nEXTEND_TIMEOUT_USEC=18446744073709551614"),
        ] {
            assert_eq!(stopping(limit, elapsed), expected, "{limit:?} {elapsed:?}");
        }
    }

    #[test]
    fn describes_the_server_in_one_line() {
        let totals = Totals::default();
        let addresses: Vec<String> = (1..=5).map(|port| format!("[::]:{port}")).collect();
        let of = |serves, count: usize, at| describe(serves, &addresses[..count], &totals, at);
        let counts = "; open connections: 0, requests: 0, rejected: 0";
        assert_eq!(of("", 1, None), format!("Serving on [::]:1{counts}"));
        assert_eq!(of("3 sites", 2, None), format!("Serving 3 sites on [::]:1, [::]:2{counts}"));
        assert_eq!(
            of("./site", 5, None),
            format!("Serving ./site on [::]:1, [::]:2, [::]:3 and 2 more{counts}")
        );
        assert_eq!(of("a\nb", 1, None), format!("Serving a\\nb on [::]:1{counts}"), "one line");
        let refused =
            format!("Serving on [::]:1{counts}; last reload refused at Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(of("", 1, Some(SystemTime::UNIX_EPOCH)), refused);
    }
}
