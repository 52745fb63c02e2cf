//! The control plane: chooses a driver, binds, starts a thread per core.

pub(crate) mod address_change;
pub(crate) mod addresses;
pub(crate) mod binding;
pub(crate) mod control;
pub(crate) mod counters;
pub(crate) mod drain;
pub(crate) mod host;
pub(crate) mod listening;
pub(crate) mod messages;
pub(crate) mod notice;
pub(crate) mod options;
pub(crate) mod panics;
pub(crate) mod passing;
pub(crate) mod reload;
pub(crate) mod reports;
pub(crate) mod running;
pub(crate) mod start;
pub(crate) mod start_error;
pub(crate) mod threads;
pub(crate) mod watchdog;

use std::sync::{Arc, OnceLock};
use std::{fmt, io};

use shearwater_io::inbox::{InboxSender, inbox};
use shearwater_io::os::{self, DescriptorLimit};
use shearwater_io::secure::Provider;
use shearwater_io::{Dispatcher, Entrances, Inbox, Listener, SharedLimit, fs, uring};

use crate::limits::{INBOX_MAX, Limits};
use crate::server::binding::{Binding, Bound, Entry, Holder, needs_acceptor};
use crate::server::control::Control;
use crate::server::host::WorkerPosition;
use crate::server::listening::{by_kind, secure_addresses};
use crate::server::options::{DriverChoice, Options};
use crate::server::running::Running;
use crate::server::start::{Found, StartReport};
use crate::server::start_error::StartError;
use crate::server::threads::{
    Decorate, Plain, Securing, StartingWorker, WorkerPlace, spawn_acceptor, spawn_worker,
};
use crate::server::watchdog::{Heartbeat, Watchdog};
use crate::service::Service;
use crate::worker::Setup;

/// Minimum number of descriptors reserved for listeners, drivers and files; an eighth of the limit if that is
/// more.
const DESCRIPTORS_RESERVED_MIN: u64 = 256;

/// Part of the least reserve that files leave to connections, if these exceed the descriptors.
const LEFT_PART: u64 = 2;

/// Initial size of the process's descriptor table.
const DESCRIPTOR_TABLE_ENTRIES: u64 = 65_536;

/// A server whose addresses are bound: connections queue up, but aren't served yet.
pub struct Server {
    options: Options,
    /// One set of listeners per worker.
    of_workers: Vec<Vec<Listener>>,
    /// Listeners whose connections are handed to the workers.
    of_acceptor: Vec<Listener>,
    /// Listeners of another process: see [`Control::accept_passed`].
    held: Vec<(Holder, Listener)>,
    share: Share,
    entries: Vec<Entry>,
    start_report: StartReport,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("start_report", &self.start_report).finish_non_exhaustive()
    }
}

/// Connections of the process, and a worker's share of its descriptors.
#[derive(Debug, Clone, Copy)]
struct Share {
    /// Connections that all workers together may hold.
    connections_max: usize,
    /// Descriptors for those of a worker; as many as connections if each connection has one.
    descriptors_max: usize,
    /// Connections that may be queued in its inbox.
    inbox: usize,
}

impl Server {
    /// Binds the addresses, raises the descriptor limit and chooses the driver.
    ///
    /// # Errors
    /// See [`StartError`]. All sockets are closed then.
    pub fn bind(options: Options) -> Result<Self, StartError> {
        if options.proxies.requires_header && options.proxies.trusted.is_empty() {
            return Err(StartError::NoTrustedProxy);
        }
        let workers = if options.workers == 0 { os::cores().len() } else { options.workers };
        let descriptors = raise_descriptor_limit().map_err(StartError::System)?;
        let (driver, driver_reason) = choose_driver(options.driver, workers)?;
        let bound = Bound::all(&options, workers)?;
        let is_handed = needs_acceptor(&bound.of_acceptor, &bound.held);
        let found = FoundDescriptors { limit: descriptors.soft_now, open: os::open_descriptors() };
        let share = share(&options.limits, found, workers, is_handed, exceeds_descriptors(driver));
        if share.connections_max > share.descriptors_max.saturating_mul(workers) {
            fs::leave_descriptors(found.files_end());
        }
        let found = Found::here(descriptors, share.connections_max);
        if let Some(any) = bound.any_listener() {
            // Growing the table later would stall the first thousands of accepts.
            drop(os::widen_descriptor_table(any, descriptors.soft_now.min(DESCRIPTOR_TABLE_ENTRIES)));
        }
        let (addresses, unix_sockets) = by_kind(&bound.entries);
        let start_report = StartReport {
            addresses,
            unix_sockets,
            secure_addresses: secure_addresses(&bound.entries),
            accept: options.accept,
            order: options.order,
            driver,
            driver_reason,
            workers,
            descriptors,
            connections_max: share.connections_max,
            buffered_bytes_max: options.limits.buffered_bytes(workers),
            backlog: found.backlog(options.backlog),
            limit_warnings: found.limit_warnings(&options),
        };
        let Bound { of_workers, of_acceptor, held, entries, .. } = bound;
        Ok(Self { options, of_workers, of_acceptor, held, share, entries, start_report })
    }

    /// Returns the report of the start.
    #[must_use]
    pub fn start_report(&self) -> &StartReport {
        &self.start_report
    }

    /// Starts the workers, and returns when their services are made. `make_service` is called once on each worker's own
    /// thread, with its number, for all at the same time.
    ///
    /// # Errors
    /// See [`StartError`]. Workers that have started are stopped then.
    pub fn start<S: Service>(
        self,
        make_service: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> Result<Running, StartError> {
        match self.entries.iter().find(|entry| entry.is_secure) {
            Some(entry) => Err(StartError::NoTls(entry.bound.to_string())),
            None => self.start_decorated(Plain, false, make_service),
        }
    }

    /// Starts the workers as [`start`](Self::start) does. Connections of addresses with TLS begin with a handshake
    /// ([`ListenAddress::Tls`](crate::ListenAddress::Tls)), by sessions of the provider that `make_provider` makes on each
    /// worker's own thread. Only a server that was started so can get such addresses later.
    ///
    /// # Errors
    /// See [`StartError`]. Workers that have started are stopped then.
    pub fn start_secure<S: Service, P: Provider + 'static>(
        self,
        make_service: impl Fn(usize) -> S + Send + Sync + 'static,
        make_provider: impl Fn(usize) -> P + Send + Sync + 'static,
    ) -> Result<Running, StartError> {
        self.start_decorated(Securing(make_provider), true, make_service)
    }

    fn start_decorated<S: Service>(
        mut self,
        decorate: impl Decorate,
        secures: bool,
        make_service: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> Result<Running, StartError> {
        let (control, notices) = Control::new();
        let control = Arc::new(control);
        control.reloads.expect::<S>(self.of_workers.len());
        let handed = needs_acceptor(&self.of_acceptor, &self.held);
        let binding = Binding::new(&self.options, self.of_workers.len());
        control.listening.begin(
            Binding { has_acceptor: handed, secures, ..binding },
            std::mem::take(&mut self.entries),
            std::mem::take(&mut self.held),
        );
        let make_service = Arc::new(make_service);
        let decorate = Arc::new(decorate);
        let limits = Limits {
            connections_max: self.share.connections_max,
            buffered_bytes_max: self.start_report.buffered_bytes_max,
            ..self.options.limits
        };
        let asked = Some(self.options.limits.connections_max);
        let connections_asked = asked.filter(|asked| *asked <= limits.connections_max);
        let watchdog = self.watchdog(&control)?;
        let Options { order, at_rest, proxies, http2, listeners, host, .. } = self.options;
        let workers = self.of_workers.len();
        let limit = SharedLimit::new(limits.connections_max);
        let first = Setup {
            limit: limit.clone(),
            connections_asked,
            descriptors_max: self.share.descriptors_max,
            proxies,
            http2,
            order,
            at_rest,
            listeners,
            secure_listeners: control.listening.secure_listeners(),
            ..Setup::new(0, limits, self.options.timeouts, Arc::clone(&control))
        };
        let cores = os::cores();
        let driver = self.start_report.driver;
        let mut running = Running {
            control,
            notices,
            threads: Vec::new(),
            acceptor: None,
            watchdog,
            start_report: self.start_report,
        };
        let (mut senders, mut starting) = (Vec::new(), Vec::new());
        for (worker, listeners) in self.of_workers.into_iter().enumerate() {
            let heartbeat = running.watchdog.as_ref().and_then(|watchdog| {
                Some(Arc::new(Heartbeat::new(Arc::clone(&watchdog.heartbeats), worker, watchdog.thread()?)))
            });
            let setup = Setup { worker, heartbeat, ..first.clone() };
            let core = self.options.pin.then(|| cores[worker % cores.len()]);
            let inbox = if handed { add_inbox(self.share.inbox, &mut senders) } else { Inbox::default() };
            let entrances = Entrances { listeners, inbox, limit: limit.clone() };
            let (decorate, make_service) = (Arc::clone(&decorate), Arc::clone(&make_service));
            let host = host.clone().map(|host| (host, WorkerPosition { number: worker, workers }));
            let place = WorkerPlace { driver, core, host };
            match spawn_worker(setup, place, entrances, decorate, make_service) {
                Ok(StartingWorker { thread, has_started }) => {
                    running.threads.push(thread);
                    starting.push(has_started);
                }
                Err(error) => return Err(abort_start(running, senders, error)),
            }
        }
        // All make their services at the same time.
        if let Some(error) = starting.into_iter().find_map(|has_started| has_started.recv().ok()?.err()) {
            return Err(abort_start(running, senders, error));
        }
        if handed { accept_for_workers(running, self.of_acceptor, senders) } else { Ok(running) }
    }
}

/// Starts the thread that accepts for all workers.
fn accept_for_workers(
    mut running: Running,
    listeners: Vec<Listener>,
    senders: Vec<InboxSender>,
) -> Result<Running, StartError> {
    match spawn_acceptor(listeners, Dispatcher::new(senders), Arc::clone(&running.control)) {
        Ok(thread) => {
            running.acceptor = Some(thread);
            Ok(running)
        }
        Err(error) => Err(abort_start(running, Vec::new(), error)),
    }
}

impl Server {
    fn watchdog(&self, control: &Arc<Control>) -> Result<Option<Watchdog>, StartError> {
        let (workers, every_ms) = (self.of_workers.len(), self.options.watchdog_ms);
        let start = || Watchdog::start(workers, every_ms, control).map_err(StartError::System);
        (every_ms > 0).then(start).transpose()
    }
}

/// Creates a worker's inbox and stores its sender.
fn add_inbox(capacity: usize, senders: &mut Vec<InboxSender>) -> Inbox {
    let (sender, inbox) = inbox(capacity);
    senders.push(sender);
    inbox
}

/// Stops everything that has started and returns the error.
fn abort_start(running: Running, senders: Vec<InboxSender>, error: StartError) -> StartError {
    running.control.stop();
    // A worker ends only after all senders to its inbox are dropped.
    drop(senders);
    drop(running.wait());
    error
}

/// Returns the driver for a choice, and the reason.
fn choose_driver(choice: DriverChoice, workers: usize) -> Result<(&'static str, String), StartError> {
    let here = shearwater_io::poll::NAME;
    let missing = |wanted: &str, why: &str| {
        let (found, _) = best_driver(workers);
        Err(StartError::Driver {
            why: format!("driver {wanted} isn't there: {why}; --driver auto takes {found}"),
        })
    };
    match choice {
        DriverChoice::Auto => Ok(best_driver(workers)),
        DriverChoice::Epoll if here == "epoll" => Ok((here, "as asked".to_owned())),
        DriverChoice::Kqueue if here == "kqueue" => Ok((here, "as asked".to_owned())),
        DriverChoice::Epoll => missing("epoll", "it needs Linux"),
        DriverChoice::Kqueue => missing("kqueue", "it needs macOS or a BSD"),
        DriverChoice::Uring => match uring::probe() {
            Ok(_) => Ok((uring::NAME, "as asked".to_owned())),
            Err(why) => missing(uring::NAME, &why.to_string()),
        },
    }
}

/// Returns io_uring if it works for this many workers, otherwise the readiness driver, and the reason.
fn best_driver(workers: usize) -> (&'static str, String) {
    let here = shearwater_io::poll::NAME;
    match uring::probe_for(workers) {
        Ok(_) => (uring::NAME, format!("io_uring works here; --driver {here} is available too")),
        Err(why) if here == "epoll" => (here, why.to_string()),
        Err(_) => (here, "the driver of this system".to_owned()),
    }
}

/// Returns whether a driver may hold more connections than there are descriptors.
fn exceeds_descriptors(driver: &str) -> bool {
    driver == uring::NAME && uring::probe().is_ok_and(|report| report.stores_files())
}

/// Descriptors of the process.
#[derive(Clone, Copy)]
struct FoundDescriptors {
    limit: u64,
    /// Those in use, including those of folders.
    open: u64,
}

impl FoundDescriptors {
    /// Returns the least descriptor that files leave to connections.
    fn files_end(self) -> u64 {
        let free = self.limit.saturating_sub(self.open);
        self.limit - DESCRIPTORS_RESERVED_MIN.min(free / 2) / LEFT_PART
    }
}

/// Returns the number of connections, and one worker's share of the descriptors. A queued connection in the inbox needs
/// one too. Only a configured number of connections exceeds them, on a driver that can.
fn share(limits: &Limits, found: FoundDescriptors, workers: usize, handed: bool, exceeds: bool) -> Share {
    let FoundDescriptors { limit, open } = found;
    let least = DESCRIPTORS_RESERVED_MIN.min(limit / 2);
    let reserved = (limit / 8).max(least.saturating_add(open));
    let for_connections = limit.saturating_sub(reserved);
    let share = usize::try_from(for_connections).unwrap_or(usize::MAX).div_ceil(workers);
    let inbox = if handed { INBOX_MAX.min(share / 2) } else { 0 };
    let descriptors_max = (share - inbox).max(1);
    let all = descriptors_max.saturating_mul(workers);
    let exceeds = exceeds && limits.connections_max < usize::MAX;
    let connections_max = limits.connections_max.min(if exceeds { usize::MAX } else { all }).max(1);
    // A worker may hold more than its share.
    let descriptors_max = if connections_max > all { descriptors_max } else { all };
    Share { connections_max, descriptors_max, inbox: inbox.max(1) }
}

/// Soft limit at the start of the process.
static FOUND: OnceLock<u64> = OnceLock::new();

/// Raises the process's soft descriptor limit to the hard one. [`Server::bind`](crate::Server::bind) does so
/// too; call it to open many files earlier. Returns the limit at the start of the process each time.
///
/// # Errors
/// If the system reports no limit. If it forbids raising it, the current limit is returned.
pub fn raise_descriptor_limit() -> io::Result<DescriptorLimit> {
    let limit = os::raise_descriptor_limit(u64::MAX).or_else(|_| os::raise_descriptor_limit(0))?;
    let soft_before = *FOUND.get_or_init(|| limit.soft_before);
    Ok(DescriptorLimit { soft_before, ..limit })
}

#[cfg(test)]
mod tests {
    use super::{FoundDescriptors, share};
    use crate::Limits;

    #[test]
    fn reserves_descriptors_that_are_open_already() {
        for (limit, open, workers, handed, connections_max, inbox) in [
            (1_048_576, 40, 2, false, 917_504, 1),
            (4_096, 20, 1, false, 3_584, 1),
            // A thousand folders are more than an eighth.
            (4_096, 1_020, 1, false, 2_820, 1),
            (4_096, 3_500, 2, false, 340, 1),
            (4_096, 1_020, 1, true, 2_564, 256),
            (300, 10, 1, false, 140, 1),
            (300, 400, 2, true, 2, 1),
            (0, 3, 1, false, 1, 1),
        ] {
            let found = FoundDescriptors { limit, open };
            for exceeds in [false, true] {
                let share = share(&Limits::default(), found, workers, handed, exceeds);
                assert_eq!((share.connections_max, share.inbox), (connections_max, inbox), "{limit} {open}");
            }
        }
    }

    #[test]
    fn files_leave_descriptors_to_stored_connections() {
        for (limit, open, files_end) in
            [(64, 20, 53), (128, 20, 101), (1_024, 20, 896), (1_024, 1_000, 1_018), (10, 20, 10)]
        {
            assert_eq!(FoundDescriptors { limit, open }.files_end(), files_end, "{limit} {open}");
        }
    }

    #[test]
    fn only_configured_connections_exceed_the_descriptors() {
        let found = FoundDescriptors { limit: 4_096, open: 20 };
        for (asked, exceeds, connections_max) in [
            (1_000_000, true, 1_000_000),
            (1_000_000, false, 3_584),
            (100, true, 100),
            (100, false, 100),
            (usize::MAX, true, 3_584),
        ] {
            let limits = Limits { connections_max: asked, ..Limits::default() };
            let share = share(&limits, found, 1, false, exceeds);
            assert_eq!((share.connections_max, share.descriptors_max), (connections_max, 3_584), "{asked}");
        }
    }
}
