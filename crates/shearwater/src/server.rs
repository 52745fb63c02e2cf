//! Configuration and control of a server.

use std::sync::Arc;

use shearwater_engine::tasks::Order;
use shearwater_engine::{
    AcceptMode, AddressChange, ClientHeader, Control, DriverChoice, Host, Http2Options, Limits,
    ListenAddress, ListeningSocket, Options, Service, StartError, TcpOptions, Timeouts, TrustedProxies,
};

use crate::address::resolve;
use crate::app::App;
use crate::error::Error;
use crate::manager_reports::ManagerReports;
use crate::operator::{Changed, Operator};
use crate::predecessor::{self, TakeOver};
use crate::report::{MessageReporter, Verbosity};
use crate::running::Running;
use crate::service_manager::{self, Inherit};
use crate::signal_functions::SignalFunction;
use crate::signal_watch::{self, CaughtSignals, SignalFunctions, SignalWatch};

/// Default of [`Server::drain_ms`].
const DRAIN_MS: u64 = 30_000;

/// A server's configuration: addresses, threads, limits.
///
/// [`run`](Server::run) or [`start`](Server::start) it with an [`App`], or with any [`Service`]
/// ([`start_service`](Server::start_service)).
///
/// ```
/// use shearwater::{App, Limits, Server, get};
///
/// let app = App::new().route("/", get("Hello"));
/// let limits = Limits { body_bytes_max: 64 * 1024, ..Limits::default() };
/// let running = Server::bind("127.0.0.1:0").workers(1).limits(limits).start(app)?;
/// assert_ne!(running.address().port(), 0);
/// running.control().drain(1000);
/// running.wait_for_control()?;
/// # Ok::<(), shearwater::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Server {
    pub(crate) addresses: Vec<String>,
    pub(crate) options: Options,
    pub(crate) functions: SignalFunctions,
    drain_ms: u64,
    handle_signals: bool,
    pub(crate) inherit: Inherit,
    pub(crate) take_over: TakeOver,
    pub(crate) notify_manager: bool,
    pub(crate) serves: String,
    reporter: MessageReporter,
    connections_max: Option<u64>,
    body_bytes_max: Option<u64>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Arc<shearwater_tls::SharedConfiguration>>,
}

impl Server {
    /// Creates a server that listens on `address`.
    ///
    /// Accepts `127.0.0.1:8080`, `[::]:80` (IPv4 too), `localhost:0` (port 0 takes a free one) and
    /// `unix:/run/site.sock` (see [`ListenAddress`]).
    #[must_use]
    pub fn bind(address: impl Into<String>) -> Self {
        Self::with_addresses(vec![address.into()], Vec::new())
    }

    /// Creates a server that listens on a resolved address, such as a Unix-domain socket with its own mode.
    #[must_use]
    pub fn at(address: ListenAddress) -> Self {
        Self::with_addresses(Vec::new(), vec![address])
    }

    pub(crate) fn without_addresses() -> Self {
        Self::with_addresses(Vec::new(), Vec::new())
    }

    fn with_addresses(addresses: Vec<String>, listen: Vec<ListenAddress>) -> Self {
        Self {
            addresses,
            options: Options { listen, ..Options::default() },
            functions: SignalFunctions::default(),
            drain_ms: DRAIN_MS,
            handle_signals: false,
            inherit: Inherit::default(),
            take_over: TakeOver::default(),
            notify_manager: false,
            serves: String::new(),
            reporter: MessageReporter::default(),
            connections_max: None,
            body_bytes_max: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Adds an address to listen on, in the format of [`bind`](Self::bind).
    #[must_use]
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.addresses.push(address.into());
        self
    }

    /// Adds an address that needs no lookup, as [`at`](Self::at).
    #[must_use]
    pub fn listen_at(mut self, address: ListenAddress) -> Self {
        self.options.listen.push(address);
        self
    }

    /// Creates a server that accepts on a socket that is already listening.
    #[must_use]
    pub fn on(socket: impl Into<ListeningSocket>) -> Self {
        Self::without_addresses().listen_on(socket)
    }

    /// Adds a socket that is already listening. See [`ListeningSocket`].
    #[must_use]
    pub fn listen_on(mut self, socket: impl Into<ListeningSocket>) -> Self {
        self.options.sockets.push(socket.into());
        self
    }

    /// Sets how connections are distributed over workers. Default: each worker has its own listeners.
    #[must_use]
    pub fn accept_mode(mut self, accept: AcceptMode) -> Self {
        self.options.accept = accept;
        self
    }

    /// Sets options of TCP connections. Default: `TCP_NODELAY` on, `SO_KEEPALIVE` off.
    #[must_use]
    pub fn tcp(mut self, tcp: TcpOptions) -> Self {
        self.options.tcp = tcp;
        self
    }

    /// Sets options of HTTP/2.
    #[must_use]
    pub fn http2(mut self, http2: Http2Options) -> Self {
        self.options.http2 = http2;
        self
    }

    /// Sets the number of worker threads. Default 0: one per core available to the process.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers;
        self
    }

    /// Sets the I/O driver. Default: io_uring where it works, else epoll or kqueue.
    #[must_use]
    pub fn driver(mut self, driver: DriverChoice) -> Self {
        self.options.driver = driver;
        self
    }

    /// Pins each worker to one core. Default: off.
    #[must_use]
    pub fn pin(mut self, pin: bool) -> Self {
        self.options.pin = pin;
        self
    }

    /// Sets the accept backlog of each listener, in connections. Default 4096; the kernel may lower it
    /// (`net.core.somaxconn`).
    #[must_use]
    pub fn backlog(mut self, backlog: u32) -> Self {
        self.options.backlog = backlog;
        self
    }

    /// Sets the limits of each worker. See [`Limits`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Sets the timeouts and minimum rates. See [`Timeouts`].
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.options.timeouts = timeouts;
        self
    }

    /// Sets the proxies that may name a client's address: see [`proxy_protocol`](Self::proxy_protocol) and
    /// [`client_header`](Self::client_header). Default: none.
    ///
    /// Their own connections don't count for [`Limits::connections_per_address_max`], because they carry many clients.
    /// They may send `https://` targets, which others get a `421` for (RFC 9110 section 7.4): they may have terminated TLS.
    ///
    /// ```
    /// use shearwater::{ClientHeader, Server, TrustedProxies};
    ///
    /// let proxies = TrustedProxies::new(["10.0.0.0/8", "::1", "unix"])?;
    /// let server = Server::bind("127.0.0.1:8080").trusted_proxies(proxies).client_header(ClientHeader::XForwardedFor);
    /// # Ok::<(), shearwater::TrustedProxyError>(())
    /// ```
    #[must_use]
    pub fn trusted_proxies(mut self, trusted: TrustedProxies) -> Self {
        self.options.proxies.trusted = trusted;
        self
    }

    /// Requires each connection to begin with a PROXY header, version 1 or 2, and to come from a
    /// [trusted proxy](Self::trusted_proxies). Others are reset. Default: off.
    ///
    /// [`Request::client`](crate::engine::Request::client) is the address in the header then, and connections count for it towards
    /// [`Limits::connections_per_address_max`]. There is no way to accept connections with and without the header: a client
    /// could write one itself, so the specification forbids to guess.
    #[must_use]
    pub fn proxy_protocol(mut self, is_required: bool) -> Self {
        self.options.proxies.requires_header = is_required;
        self
    }

    /// Sets the request header in which [trusted proxies](Self::trusted_proxies) pass on the client's address. Default: none.
    ///
    /// [`Request::client`](crate::engine::Request::client) is the last address in it that isn't a trusted proxy's. Set it only if each of them writes this
    /// header: one that forwards what it has received lets its clients choose their address.
    #[must_use]
    pub fn client_header(mut self, header: ClientHeader) -> Self {
        self.options.proxies.client_header = Some(header);
        self
    }

    /// Sets the order in which a worker runs woken tasks and connections with pending input. Default: first in, first
    /// out.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.options.order = order;
        self
    }

    /// Sets the interval of the watchdog in milliseconds; 0 disables it. Default 1000.
    ///
    /// A handler that blocks its worker for longer is reported. The watchdog sleeps while all workers are idle.
    #[must_use]
    pub fn watchdog_ms(mut self, watchdog_ms: u64) -> Self {
        self.options.watchdog_ms = watchdog_ms;
        self
    }

    /// Runs each worker within another event loop, such as a runtime of its own. Default: each waits by itself.
    ///
    /// The [`Host`] makes the wait, and runs its own tasks between the worker's turns.
    #[must_use]
    pub fn host(mut self, host: Arc<dyn Host>) -> Self {
        self.options.host = Some(host);
        self
    }

    /// Sets a function that each worker calls on its thread when it becomes idle.
    ///
    /// A worker is idle when none of its connections has sent anything for a second and its own pools are trimmed: the
    /// moment to ask an allocator to return freed memory to the system. The function should take milliseconds at most;
    /// a panic is logged and otherwise ignored. Default: none.
    #[must_use]
    pub fn at_rest(mut self, at_rest: fn()) -> Self {
        self.options.at_rest = Some(at_rest);
        self
    }

    /// Sets the maximum number of connections of all workers together.
    ///
    /// Any worker may hold any part of them. Replaces [`Limits::connections_max`]. Fewer descriptors lower it, except on io_uring from Linux 6.8 on: see [`StartReport::connections_max`](crate::StartReport::connections_max).
    #[must_use]
    pub fn connections_max(mut self, connections_max: u64) -> Self {
        self.connections_max = Some(connections_max);
        self
    }

    /// Sets the maximum length of a request body in bytes; a longer one is rejected with `413`. Replaces
    /// [`Limits::body_bytes_max`].
    #[must_use]
    pub fn body_bytes_max(mut self, bytes: u64) -> Self {
        self.body_bytes_max = Some(bytes);
        self
    }

    /// Sets the log level of messages to standard error, for programs without a subscriber of `tracing`: see
    /// [`Verbosity`]. Default: [`Verbosity::Info`].
    #[must_use]
    pub fn verbosity(mut self, verbosity: Verbosity) -> Self {
        self.reporter.verbosity = verbosity;
        self
    }

    /// Names a server that runs beside the program's main one, such as an admin listener.
    ///
    /// Its messages begin with the name, which their events have as the field `server`. Its drain and its totals, which
    /// would look like those of the main one, are messages of the level [`Verbosity::Debug`].
    #[must_use]
    pub fn secondary(mut self, name: &'static str) -> Self {
        self.reporter.server = Some(name);
        self
    }

    /// Sets the time limit of a drain in milliseconds, after which the remaining connections are closed. Default
    /// 30,000.
    #[must_use]
    pub fn drain_ms(mut self, drain_ms: u64) -> Self {
        self.drain_ms = drain_ms;
        self
    }

    /// Handles signals, from before the first connection is accepted.
    ///
    /// The first `SIGTERM`, `SIGINT` or `SIGQUIT` drains, the second stops; `SIGUSR1` prints the totals so far to standard
    /// error; `SIGHUP` reloads, with [`on_reload`](Self::on_reload), and `SIGUSR2` upgrades, with
    /// [`on_upgrade`](Self::on_upgrade).
    /// [`run`](Self::run) always does this; a server that is [started](Self::start) does
    /// so from [`Running::wait`] on, unless this is set.
    ///
    /// Signal handlers that the program installed before are called too. When the last server of the process that
    /// handles signals has ended, each signal has its previous effect again: another Ctrl-C ends a program that is
    /// still cleaning up.
    #[must_use]
    pub fn handle_signals(mut self) -> Self {
        self.handle_signals = true;
        self
    }

    /// Sets a function that `SIGHUP` calls, to reload what the server serves. Without it, the server leaves `SIGHUP` alone.
    ///
    /// The function reads and checks what it needs, and then replaces the service: [`App::reload`] for an app, or
    /// [`Control::reload`] for any other. It returns what it has reloaded, such as the name of a file, or [`Changed`], or
    /// complete messages, which are printed as they are; then nothing may have changed.
    ///
    /// It runs on a thread of its own. Signals during a call result in one further call. During an upgrade they wait, and
    /// are forwarded to the new process once that serves. `SIGHUP` is handled where the
    /// other signals are: see [`handle_signals`](Self::handle_signals). A program whose terminal was closed gets one too,
    /// and drains, unless it was started by `nohup`.
    ///
    /// ```no_run
    /// use shearwater::{App, Server, get};
    ///
    /// fn app() -> Result<App, std::io::Error> {
    ///     let text = std::fs::read_to_string("greeting.txt")?;
    ///     Ok(App::new().route("/", get(text)))
    /// }
    ///
    /// let server = Server::bind("127.0.0.1:8080").on_reload(|control| {
    ///     let app = app().map_err(|error| format!("error: greeting.txt: {error}\n"))?;
    ///     app.reload(control).map_err(|error| format!("error: {error}\n"))?;
    ///     Ok("greeting.txt".to_owned())
    /// });
    /// server.run(app()?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_reload<T: Into<Changed>>(
        mut self,
        reload: impl Fn(&Control) -> Result<T, String> + Send + Sync + 'static,
    ) -> Self {
        self.functions.reload = Some(SignalFunction::new(reload));
        self
    }

    /// Serves an app, until a signal ends it: the first drains, the second stops.
    ///
    /// Prints its totals to standard error at the end, and at `SIGUSR1` those so far.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run<S: 'static>(self, app: App<S>) -> Result<(), Error> {
        self.handle_signals().start(app)?.wait().map(drop)
    }

    /// Binds, starts serving an app, and returns immediately.
    ///
    /// For programs that need the port, the [`Control`], or to wait by themselves.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn start<S: 'static>(self, app: App<S>) -> Result<Running, Error> {
        let routes = app.build()?;
        self.start_service(move |worker| routes.service(worker))
    }

    /// Binds, starts the workers, and returns when their services are made. Each calls `make` on its own thread, with its
    /// number, all at the same time.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn start_service<S: Service>(
        mut self,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> Result<Running, Error> {
        self.resolve()?;
        if let Some(connections_max) = self.connections_max {
            self.options.limits.connections_max =
                usize::try_from(connections_max).unwrap_or(usize::MAX).max(1);
        }
        if let Some(body_bytes_max) = self.body_bytes_max {
            self.options.limits.body_bytes_max = body_bytes_max;
        }
        let takes_over = self.take_over != TakeOver::Nothing;
        service_manager::inherit(self.inherit, takes_over, &mut self.options)?;
        if takes_over {
            self.options.passed.extend(predecessor::take(&self.options.listen)?);
        }
        let Self { drain_ms, reporter, functions, serves, notify_manager, take_over, .. } = self;
        let server = shearwater_engine::Server::bind(self.options)?;
        let catch = || SignalWatch::catch(&functions).map_err(Error::Signals);
        let signals = self.handle_signals.then(catch).transpose()?;
        // Asked before the handover: it depends on the old process, which may be gone later.
        signal_watch::ignores_hangup();
        #[cfg(not(feature = "tls"))]
        let running = server.start(make)?;
        #[cfg(feature = "tls")]
        let running = match self.tls {
            None => server.start(make)?,
            Some(shared) => {
                let provider = move |_| shearwater_tls::TlsProvider::new(Arc::clone(&shared));
                server.start_secure(make, provider)?
            }
        };
        let reports = notify_manager.then(|| ManagerReports::prepare(&running, reporter, serves));
        let reports = reports.transpose().map_err(StartError::System)?.flatten();
        let is_ending = || signals.as_ref().is_some_and(CaughtSignals::ask_for_end);
        if let Err(error) = predecessor::take_place(running.control(), take_over, reporter, is_ending) {
            running.control().stop();
            drop(running.wait());
            return Err(error.into());
        }
        // Nothing can fail from here on: the process that this one succeeds drains.
        reports.iter().for_each(ManagerReports::begin);
        let of_reloads = reports.as_ref().and_then(ManagerReports::of_reloads);
        let operator = Operator::new(&functions, &running.control(), drain_ms, reporter, of_reloads);
        let running =
            Running { running, drain_ms, reporter, functions, operator, watch: None, _reports: reports };
        Ok(running.watching(signals))
    }
}

impl Server {
    /// Binds those addresses of this configuration that a running server doesn't have yet.
    ///
    /// [`AddressChange::apply`] has it accept on them, and closes those that this configuration doesn't have: see
    /// [`Control::prepare_addresses`]. Sockets of a service manager are found as at the start; those that the program gave
    /// stay. Other settings of this configuration are ignored.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use shearwater::{App, Server};
    ///
    /// let running = Server::bind("127.0.0.1:0").workers(1).start(App::new())?;
    /// let control = running.control();
    /// let change = Server::bind("127.0.0.1:0").listen("[::1]:0").prepare_addresses(&control)?;
    /// assert_eq!((change.added().len(), change.removed().len()), (1, 0));
    /// assert!(change.apply().wait(Duration::from_secs(10)));
    /// assert_eq!(control.addresses().len(), 2);
    /// control.stop();
    /// running.wait_for_control()?;
    /// # Ok::<(), shearwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Address`], [`Error::Inherit`], and [`Error::Start`] for an address that can't be bound. Nothing has changed
    /// then.
    pub fn prepare_addresses(mut self, control: &Control) -> Result<AddressChange<'_>, Error> {
        self.resolve()?;
        service_manager::inherit(self.inherit, self.take_over != TakeOver::Nothing, &mut self.options)?;
        Ok(control.prepare_addresses(&self.options.listen)?)
    }

    /// Resolves the addresses, in the order of the calls; those of `listen_at` come last.
    fn resolve(&mut self) -> Result<(), Error> {
        let resolved: Result<Vec<_>, _> = self.addresses.drain(..).map(|given| resolve(&given)).collect();
        self.options.listen.splice(0..0, resolved?);
        Ok(())
    }
}
