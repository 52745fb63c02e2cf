//! A server as a systemd service: sockets that it inherits, and its reports to the service manager.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use shearwater_engine::{Control, ListenAddress, ListeningSocket, Options, Progress, Running, Totals};
use shearwater_io::service_manager::{inherited_sockets, notify, takes_notifications, watchdog_timeout};

use crate::error::Error;
use crate::predecessor;
use crate::report::MessageReporter;
use crate::server::Server;

/// Interval of status reports.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

/// Takes ownership of the descriptors that a service manager has passed (`LISTEN_FDS`), or the process that this one
/// [succeeds](crate::Successor). Repeated calls do nothing.
///
/// Call it at the start of a program that opens files or reads its standard input before it configures its server. A server
/// reports errors when it starts.
pub fn claim_inherited_sockets() {
    drop(inherited_sockets());
    predecessor::claim();
}

/// How a server uses the sockets that a service manager has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Inherit {
    /// Ignores them.
    #[default]
    Nothing,
    /// Accepts on them instead of binding their addresses, which must be among the server's.
    Matching,
    /// Accepts on them instead of all addresses, if there are any.
    All,
}

impl Server {
    /// Creates a server that accepts on the sockets that a service manager has passed, or listens on `address` if there
    /// are none.
    ///
    /// See [`inherited_listeners`](Self::inherited_listeners).
    #[must_use]
    pub fn inherited_or(address: impl Into<String>) -> Self {
        claim_inherited_sockets();
        let mut server = Self::new(address);
        server.inherit = Inherit::All;
        server
    }

    /// Accepts on the sockets that a service manager has passed (systemd's socket activation) instead of binding their
    /// addresses.
    ///
    /// A passed socket takes the place of the address that it is bound to. Other addresses are bound as usual. A passed
    /// socket at none of the server's addresses is an error, because its connections would wait forever. This call
    /// takes ownership of the descriptors in `LISTEN_FDS`: a program that opens files before it calls
    /// [`claim_inherited_sockets`](crate::engine::claim_inherited_sockets) first.
    #[must_use]
    pub fn inherited_listeners(mut self) -> Self {
        claim_inherited_sockets();
        self.inherit = Inherit::Matching;
        self
    }

    /// Reports to the service manager in `NOTIFY_SOCKET`, if there is one (systemd's `Type=notify`).
    ///
    /// Reports that the server is ready once all addresses are bound and the workers have started, a status line, and
    /// the beginning of a drain or stop. If the manager has a watchdog (`WatchdogSec=`), it hears every half of that
    /// time that the workers make progress; while a handler blocks a worker it hears nothing. That needs
    /// [`watchdog_ms`](Self::watchdog_ms).
    #[must_use]
    pub fn notify_manager(mut self) -> Self {
        self.notify_manager = true;
        self
    }
}

/// A socket that a service manager has passed and that the server can't use. Displays as one sentence.
#[derive(Debug)]
#[non_exhaustive]
pub enum InheritError {
    /// The variables that announce the sockets are malformed.
    Announced(io::Error),
    /// The socket's address isn't among those of the server.
    Unmatched {
        /// Name of the socket in the service manager.
        name: Option<String>,
        /// Its address.
        bound: String,
        /// The server's addresses.
        configured: Vec<String>,
    },
}

impl fmt::Display for InheritError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Announced(error) => write!(f, "can't take the service manager's sockets: {error}"),
            Self::Unmatched { name, bound, configured } => {
                let name = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
                let configured = configured.join(" and ");
                write!(
                    f,
                    "the service manager passed a socket at {bound}{name}, but the server is configured to listen at {configured}; help: configure the same address in both"
                )
            }
        }
    }
}

impl std::error::Error for InheritError {}

/// Replaces addresses of `options` by the sockets that are passed for them: by the service manager, or by the process that this
/// one succeeds, which got them from there.
///
/// Several sockets may have the same address (`SO_REUSEPORT`).
pub(crate) fn inherit(how: Inherit, takes_over: bool, options: &mut Options) -> Result<(), Error> {
    if how == Inherit::Nothing {
        return Ok(());
    }
    let failed = |error| Error::Inherit(InheritError::Announced(error));
    let of_manager = inherited_sockets().map_err(failed)?;
    let of_predecessor = if takes_over { predecessor::given()? } else { Vec::new() };
    let named =
        of_manager.iter().map(|given| (ListeningSocket::from(Arc::clone(&given.socket)), &given.name));
    let mut sockets: Vec<_> = named.collect();
    let unnamed = of_predecessor.iter().flat_map(|given| &given.sockets);
    sockets.extend(unnamed.map(|socket| (socket.clone(), &None)));
    let mut inherited = vec![false; options.listen.len()];
    for (socket, name) in &sockets {
        let mut is_wanted = how == Inherit::All;
        for (address, inherited) in options.listen.iter().zip(&mut inherited) {
            if socket.is_at(address).map_err(failed)? {
                (is_wanted, *inherited) = (true, true);
            }
        }
        if !is_wanted {
            let configured = options.listen.iter().map(ListenAddress::to_string).collect();
            let (name, bound) = ((*name).clone(), socket.to_string());
            return Err(Error::Inherit(InheritError::Unmatched { name, bound, configured }));
        }
    }
    let replaces_all = how == Inherit::All && !sockets.is_empty();
    let mut inherited = inherited.into_iter();
    options.listen.retain(|_| !(replaces_all || inherited.next() == Some(true)));
    options.sockets.extend(sockets.into_iter().take(of_manager.len()).map(|(socket, _)| socket));
    options.passed.extend(of_predecessor);
    Ok(())
}

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
    pub(crate) fn prepare(running: &Running, messages: MessageReporter) -> io::Result<Option<Self>> {
        if !takes_notifications() {
            return Ok(None);
        }
        let control = running.control();
        let reporter = Reporter {
            messages,
            control: Arc::clone(&control),
            progress: running.progress(),
            watchdog: watchdog_timeout(),
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

/// The thread that reports.
struct Reporter {
    control: Arc<Control>,
    messages: MessageReporter,
    progress: Option<Progress>,
    /// Time within which the manager expects a sign of life.
    watchdog: Option<Duration>,
    /// The last status.
    status: String,
    /// The manager couldn't be reached, which was reported.
    has_failed: bool,
}

impl Reporter {
    fn run(mut self, is_over: &AtomicBool) {
        let mut is_stopping = false;
        let mut first = "READY=1";
        while !is_over.load(Ordering::Acquire) {
            if self.control.has_passed_listeners() {
                // The manager supervises the process that has them, and would take this end for that of the service.
                return;
            }
            if self.control.is_ending() && !is_stopping {
                (is_stopping, first) = (true, "STOPPING=1");
            }
            let status = status(self.control.addresses().len(), is_stopping, &self.control.totals());
            let is_stuck = self.progress.as_mut().and_then(Progress::stuck_worker).is_some();
            self.send(first, status, self.watchdog.is_some() && !is_stuck);
            first = "";
            thread::park_timeout(pause(self.watchdog, is_stuck));
        }
        if !is_stopping && self.control.is_ending() && !self.control.has_passed_listeners() {
            self.send("STOPPING=1", String::new(), false);
        }
    }

    /// Sends a state, a status if it differs from the last one, and a sign of life.
    fn send(&mut self, state: &str, status: String, is_alive: bool) {
        let is_news = !status.is_empty() && status != self.status;
        let lines = [
            state.to_owned(),
            if is_news { format!("STATUS={status}") } else { String::new() },
            if is_alive { "WATCHDOG=1".to_owned() } else { String::new() },
        ];
        let message = lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
        self.status = status;
        if message.is_empty() {
            return;
        }
        match notify(&message) {
            Ok(_) => self.has_failed = false,
            Err(error) if !self.has_failed => {
                self.has_failed = true;
                let text = format!("can't notify the service manager: {error}");
                self.messages.warn("manager_unreachable", &text);
            }
            Err(_) => {}
        }
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
