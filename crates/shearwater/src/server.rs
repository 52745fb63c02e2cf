//! A server as a program sets it up and runs it.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shearwater_engine::tasks::Order;
use shearwater_engine::{
    AcceptMode, Control, DriverChoice, Failure, Limits, ListenAddress, ListeningSocket, Notice, Options,
    Request, Response, StartReport, Summary, TcpOptions, Timeouts,
};
use shearwater_io::os;
use shearwater_io::signals::Signals;

use crate::{App, Error, Service, SignalWatch, Verbosity};

/// How long the operator's thread sleeps at most while nothing is reported.
const REPORT_PATIENCE: Duration = Duration::from_secs(5);

/// A worker that has not ended so long after it had to is stuck.
const STUCK_AFTER: Duration = Duration::from_millis(500);

/// Default of [`Server::drain_ms`].
const DRAIN_MS: u64 = 30_000;

/// A server to be set up: addresses, threads, limits; then [`run`](Server::run) with a closure,
/// [`run_app`](Server::run_app) with routes, or [`start`](Server::start) with anything.
///
/// ```
/// use shearwater::{App, Limits, Request, Response, Server};
///
/// let mut app = App::new();
/// app.get("/", |_: &Request, response: &mut Response| {
///     response.text("Hello");
/// });
/// let limits = Limits { body_bytes_max: 64 * 1024, ..Limits::default() };
/// let running = Server::new("127.0.0.1:0").workers(1).limits(limits).start_app(app)?;
/// assert_ne!(running.address().port(), 0);
/// running.control().drain(1000);
/// running.wait_for_control()?;
/// # Ok::<(), shearwater::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Server {
    addresses: Vec<String>,
    options: Options,
    drain_ms: u64,
    handle_signals: bool,
    verbosity: Verbosity,
    connections_max: Option<u64>,
    body_bytes_max: Option<u64>,
}

impl Server {
    /// A server that will listen on `address`, such as `127.0.0.1:8080`, `[::]:80` (IPv4 too), `localhost:0` (port 0 takes a
    /// free one) or `unix:/run/site.sock` (see [`ListenAddress`]).
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self::of(vec![address.into()], Vec::new())
    }

    /// A server that will listen at a place that needs no look-up: a Unix-domain socket with a mode of its own, for example.
    #[must_use]
    pub fn at(address: ListenAddress) -> Self {
        Self::of(Vec::new(), vec![address])
    }

    fn of(addresses: Vec<String>, listen: Vec<ListenAddress>) -> Self {
        Self {
            addresses,
            options: Options { listen, ..Options::default() },
            drain_ms: DRAIN_MS,
            handle_signals: false,
            verbosity: Verbosity::default(),
            connections_max: None,
            body_bytes_max: None,
        }
    }

    /// Listens on a further address.
    #[must_use]
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.addresses.push(address.into());
        self
    }

    /// Listens at a further place that needs no look-up, as [`at`](Self::at).
    #[must_use]
    pub fn listen_at(mut self, address: ListenAddress) -> Self {
        self.options.listen.push(address);
        self
    }

    /// A server that will serve at a socket that listens already.
    #[must_use]
    pub fn on(socket: impl Into<ListeningSocket>) -> Self {
        Self::of(Vec::new(), Vec::new()).listen_on(socket)
    }

    /// Serves at a socket that listens already too. See [`ListeningSocket`].
    #[must_use]
    pub fn listen_on(mut self, socket: impl Into<ListeningSocket>) -> Self {
        self.options.sockets.push(socket.into());
        self
    }

    /// How connections get to the workers. Default: each worker listens by itself.
    #[must_use]
    pub fn accept_mode(mut self, accept: AcceptMode) -> Self {
        self.options.accept = accept;
        self
    }

    /// How connections of TCP behave. Default: `TCP_NODELAY` on, `SO_KEEPALIVE` off.
    #[must_use]
    pub fn tcp(mut self, tcp: TcpOptions) -> Self {
        self.options.tcp = tcp;
        self
    }

    /// Threads that serve. Default 0: one per core that the process may use.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers;
        self
    }

    /// The driver. Default: the best that works here.
    #[must_use]
    pub fn driver(mut self, driver: DriverChoice) -> Self {
        self.options.driver = driver;
        self
    }

    /// Whether each worker keeps to one core. Default: no.
    #[must_use]
    pub fn pin(mut self, pin: bool) -> Self {
        self.options.pin = pin;
        self
    }

    /// Connections that may wait to be accepted, per listener. Default 4096; the kernel has its own bound.
    #[must_use]
    pub fn backlog(mut self, backlog: u32) -> Self {
        self.options.backlog = backlog;
        self
    }

    /// What each worker holds back from its clients.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// How long a worker waits for its clients.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.options.timeouts = timeouts;
        self
    }

    /// Serves `https://` targets: every connection comes from a trusted gateway that terminates TLS. Default: no, they get a `421` (RFC 9110
    /// section 7.4). A gateway that sends paths, as most do, needs no setting.
    #[must_use]
    pub fn trusted_gateway(mut self, trusted_gateway: bool) -> Self {
        self.options.trusted_gateway = trusted_gateway;
        self
    }

    /// In which order what is ready on a worker goes on: tasks that were woken, and connections with input that had to wait. Default: first in,
    /// first out.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.options.order = order;
        self
    }

    /// How often it is looked whether a handler keeps a worker from its other clients, in milliseconds; 0: never. Who is kept for longer
    /// is reported. Default 1000. The watchdog sleeps while all workers do.
    #[must_use]
    pub fn watchdog_ms(mut self, watchdog_ms: u64) -> Self {
        self.options.watchdog_ms = watchdog_ms;
        self
    }

    /// Calls something on a worker's own thread when no connection has said anything for a second and the worker has given back its own memory
    /// of a busier moment: the place for a word to an allocator that keeps what was freed. It should take milliseconds at most; a panic is
    /// printed and otherwise ignored. Default: nothing.
    #[must_use]
    pub fn at_rest(mut self, at_rest: fn()) -> Self {
        self.options.at_rest = Some(at_rest);
        self
    }

    /// Connections held at once, all workers together: each worker holds an even part, and at least one. Default: each as many as
    /// [`Limits::connections_max`], in whose place this comes. Fewer, where there are fewer descriptors; see
    /// [`StartReport::connections_max`].
    #[must_use]
    pub fn connections_max(mut self, connections_max: u64) -> Self {
        self.connections_max = Some(connections_max);
        self
    }

    /// Limits the length of request bodies; a longer one is refused with `413`. It takes the place of [`Limits::body_bytes_max`].
    #[must_use]
    pub fn body_bytes_max(mut self, bytes: u64) -> Self {
        self.body_bytes_max = Some(bytes);
        self
    }

    /// What is printed to standard error while it serves. Default: what it does, and what is graver.
    #[must_use]
    pub fn verbosity(mut self, verbosity: Verbosity) -> Self {
        self.verbosity = verbosity;
        self
    }

    /// Milliseconds that a drain may take before the rest is closed. Default 30,000.
    #[must_use]
    pub fn drain_ms(mut self, drain_ms: u64) -> Self {
        self.drain_ms = drain_ms;
        self
    }

    /// Handles `SIGTERM` and `SIGINT` from before it serves, so that none ends it unheard: the first drains,
    /// the second stops; and `SIGUSR1`, at which it prints to standard error what it has done so far. [`run`](Self::run) and [`run_app`](Self::run_app) do so by themselves; a server that is
    /// [started](Self::start) does so from [`Running::wait`] on, unless it is asked for here.
    ///
    /// A handler that the program had installed is called too. When the last server of the process that handles signals has ended, each signal
    /// does again what it did before: a further Ctrl-C ends a program that is still cleaning up. A signal that is ignored stays ignored, as `SIGINT`
    /// is in a background job of a script.
    #[must_use]
    pub fn handle_signals(mut self) -> Self {
        self.handle_signals = true;
        self
    }

    /// Answers every request with one closure, until `SIGTERM` or `SIGINT`: the first drains, the second stops. Prints to standard
    /// error at its end what it has done, and at `SIGUSR1` what it has done so far.
    ///
    /// # Errors
    /// See [`Error`].
    #[track_caller]
    pub fn run(
        self,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.run_app(App::of(handler))
    }

    /// Answers with an app, until `SIGTERM` or `SIGINT`: the first drains, the second stops. Prints what [`run`](Self::run) does.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run_app(self, app: App) -> Result<(), Error> {
        self.handle_signals().start_app(app)?.wait().map(drop)
    }

    /// Binds and starts with an app, and returns at once: for programs that want the port, the [`Control`] or the end.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn start_app(self, app: App) -> Result<Running, Error> {
        let routes = app.build()?;
        self.start(move |worker| routes.service(worker))
    }

    /// Binds and starts, and returns at once. `make` is called on each worker's own thread with its number.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn start<S: Service + 'static>(
        mut self,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> Result<Running, Error> {
        // In the order in which they were given; those of `listen_at` come last.
        let resolved: Result<Vec<_>, _> = self.addresses.iter().map(|given| resolve(given)).collect();
        self.options.listen.splice(0..0, resolved?);
        if let Some(connections_max) = self.connections_max {
            self.options.limits.connections_max = part(connections_max, self.options.workers);
        }
        if let Some(body_bytes_max) = self.body_bytes_max {
            self.options.limits.body_bytes_max = body_bytes_max;
        }
        let (drain_ms, verbosity) = (self.drain_ms, self.verbosity);
        let handle_signals = self.handle_signals;
        let server = shearwater_engine::Server::bind(self.options)?;
        let signals = handle_signals.then(Signals::catch).transpose().map_err(Error::Signals)?;
        let running = server.start(make)?;
        let watch = signals.map(|caught| SignalWatch::new(caught, running.control(), drain_ms, verbosity));
        Ok(Running { running, drain_ms, verbosity, watch })
    }
}

/// A server that serves.
pub struct Running {
    running: shearwater_engine::Running,
    drain_ms: u64,
    verbosity: Verbosity,
    watch: Option<SignalWatch>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("start_report", self.start_report()).finish_non_exhaustive()
    }
}

impl Running {
    /// What was found and settled at the start: addresses, driver, limits.
    #[must_use]
    pub fn start_report(&self) -> &StartReport {
        self.running.start_report()
    }

    /// The first address of TCP bound, with the port taken.
    ///
    /// # Panics
    /// Where it listens at Unix-domain sockets alone.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.start_report().addresses[0]
    }

    /// The handle to drain, stop and count with, from any thread.
    #[must_use]
    pub fn control(&self) -> Arc<Control> {
        self.running.control()
    }

    /// What it prints to standard error.
    #[must_use]
    pub fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// Waits for the end, which `SIGTERM` or `SIGINT` or [`Control`] brings about (a signal during a drain stops, whoever ordered the drain); prints to standard error what workers report
    /// meanwhile, at `SIGUSR1` what they have done so far, and in the end what they have done.
    ///
    /// # Errors
    /// [`Error::Signals`], and [`Error::Failed`] where a worker has ended other than by plan: the others are drained
    /// then.
    pub fn wait(mut self) -> Result<Summary, Error> {
        let _watch = self.watch_signals()?;
        self.wait_for_control()
    }

    /// Handles `SIGTERM`, `SIGINT` and `SIGUSR1` as [`wait`](Self::wait) does, for as long as the result lives: for programs that have more to
    /// end than the server.
    ///
    /// # Errors
    /// [`Error::Signals`].
    pub fn watch_signals(&mut self) -> Result<SignalWatch, Error> {
        if let Some(watch) = self.watch.take() {
            return Ok(watch);
        }
        let caught = Signals::catch().map_err(Error::Signals)?;
        Ok(SignalWatch::new(caught, self.control(), self.drain_ms, self.verbosity))
    }

    /// Waits for the end as [`wait`](Self::wait) does, which [`Control`] alone brings about: signals are the program's own business.
    ///
    /// # Errors
    /// [`Error::Failed`], as there.
    pub fn wait_for_control(self) -> Result<Summary, Error> {
        let (control, verbosity) = (self.control(), self.verbosity);
        let end = self.report_until_the_end();
        verbosity.in_all(&control.totals());
        end
    }

    /// Prints what workers report until all have ended, or have not though they had to.
    fn report_until_the_end(self) -> Result<Summary, Error> {
        let mut ended = 0;
        let mut end: Option<Instant> = None;
        while ended < self.start_report().workers && !self.running.is_over() {
            let left = end.map_or(REPORT_PATIENCE, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(self.stuck());
            }
            let Some(notice) = self.running.notice(left.min(REPORT_PATIENCE)) else { continue };
            self.verbosity.print(&notice);
            match notice {
                Notice::WorkerEnded { error, .. } => {
                    ended += 1;
                    if error.is_some() {
                        self.control().drain(self.drain_ms);
                    }
                }
                Notice::AcceptorEnded { error: Some(_) } => self.control().drain(self.drain_ms),
                Notice::Draining { drain_ms } => end = Some(by(drain_ms)),
                Notice::Stopping => end = Some(by(0)),
                _ => {}
            }
        }
        // What they said while they ended: no more than their queue holds, and nobody adds to it.
        while let Some(notice) = self.running.notice(Duration::ZERO) {
            self.verbosity.print(&notice);
        }
        Ok(self.running.wait()?)
    }

    /// A worker that is still inside a handler can't be ended from outside: the program has to go on without it.
    fn stuck(&self) -> Error {
        let worker = Some(self.running.unended().unwrap_or(0));
        Error::Failed(Failure {
            worker,
            why: "it is still inside a handler at the end of the drain".to_owned(),
        })
    }
}

/// When workers that were given `ms` to end have ended, unless one is stuck.
fn by(ms: u64) -> Instant {
    let now = Instant::now();
    now.checked_add(Duration::from_millis(ms).saturating_add(STUCK_AFTER)).unwrap_or(now + REPORT_PATIENCE)
}

/// A worker's part of all connections.
fn part(connections_max: u64, workers: usize) -> usize {
    let workers = if workers == 0 { os::cores().len() } else { workers };
    usize::try_from(connections_max).unwrap_or(usize::MAX).checked_div(workers).unwrap_or(1).max(1)
}

fn resolve(given: &str) -> Result<ListenAddress, Error> {
    if let Some(path) = given.strip_prefix("unix:").filter(|path| !path.is_empty()) {
        return Ok(ListenAddress::unix(path));
    }
    let failed = |error| Error::Address { given: given.to_owned(), error };
    let mut found = given.to_socket_addrs().map_err(failed)?;
    let first = found.next().ok_or_else(|| failed(io::Error::other("the name has no address")))?;
    Ok(first.into())
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn each_worker_has_an_even_part_of_the_connections_and_at_least_one() {
        for (connections_max, workers, each) in [(2_000_000, 32, 62_500), (10, 3, 3), (2, 3, 1), (0, 1, 1)] {
            assert_eq!(part(connections_max, workers), each, "{connections_max} over {workers}");
        }
        assert!(part(1000, 0) >= 1);
    }
}
