//! Configuration and start of a server for a tower service.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

use shearwater::engine::{Host, is_protocol};
use shearwater::{
    App, DriverChoice, Error, Http2Options, Limits, ListeningSocket, Server, Service, StartError, Timeouts,
    Verbosity,
};
use tokio::runtime::{Handle, LocalRuntime};

use crate::bridge::{Bridge, Inserted};
use crate::host::{MakeEach, Runtimes, Shutdown, drain_after};
use crate::limits::UPGRADES_MAX;
use crate::running::Running;
use crate::service::{CloneService, HttpService, MakeHttpService, Maker};
use crate::upgrades::Upgrades;

/// Default of [`Serve::drain_ms`].
const DRAIN_MS: u64 = 30_000;

/// Default of [`Serve::http2`]. Clients in clear begin with the version that they want, as with `axum::serve`.
const HTTP2: Http2Options = Http2Options { prior_knowledge: true, streams_max: 100 };

/// Default of [`Serve::upgrades`].
const WEBSOCKET: &str = "websocket";

/// Error of [`Serve::local_addr`] before the start.
const UNBOUND: &str = "`bind` binds at startup; help: use `Running::address`";

/// Serves a service on a listening socket, as `axum::serve` does.
///
/// With several workers, one thread accepts for all of them; [`bind`] gives each worker its own listener.
///
/// The server starts when the result is awaited, [run](Serve::run) or [started](Serve::start).
pub fn serve<T: MakeHttpService<Kind>, Kind>(
    listener: impl Into<Listen>,
    service: T,
) -> Serve<T::Service, T::Maker> {
    let (socket, address) = match listener.into().socket {
        Ok(socket) => (Ok(Server::on(socket.clone())), socket.address()),
        Err(error) => (Err(Error::Start(StartError::Socket(error))), Err(io::ErrorKind::NotConnected.into())),
    };
    Serve::of(socket, address, Source::Shared(service.into_maker()))
}

/// Serves a service on an address, such as `127.0.0.1:3000`, `[::]:80` or `unix:/run/site.sock`.
///
/// Each worker has its own listener, and the kernel distributes connections over them.
///
/// The server starts when the result is awaited, [run](Serve::run) or [started](Serve::start).
pub fn bind<T: MakeHttpService<Kind>, Kind>(
    address: impl Into<String>,
    service: T,
) -> Serve<T::Service, T::Maker> {
    let source = Source::Shared(service.into_maker());
    Serve::of(Ok(Server::bind(address)), Err(io::Error::other(UNBOUND)), source)
}

/// Serves an address with a service for each worker, made within the worker's own tokio runtime.
///
/// `make` gets the number of the worker, from 0. What it connects or spawns stays on the worker's thread, so that a request
/// that uses it wakes no other thread. `tokio::task::spawn_local` works in it and in handlers. See the
/// [crate's page](crate#threads) for what differs from [`bind`] within a runtime.
///
/// The server starts when the result is awaited, [run](Serve::run) or [started](Serve::start). A panic of `make` is an error
/// of the start.
///
/// ```no_run
/// use axum::{Router, routing::get};
///
/// fn main() -> Result<(), shearwater::Error> {
///     let make = async |worker| Router::new().route("/", get(move || async move { format!("worker {worker}\n") }));
///     shearwater_tower::bind_each("127.0.0.1:3000", make).run()
/// }
/// ```
pub fn bind_each<T: MakeHttpService<Kind>, Kind>(
    address: impl Into<String>,
    make: impl AsyncFn(usize) -> T + Send + Sync + 'static,
) -> Serve<T::Service, T::Maker> {
    let make = move |runtime: &LocalRuntime, worker| runtime.block_on(make(worker)).into_maker();
    Serve::of(Ok(Server::bind(address)), Err(io::Error::other(UNBOUND)), Source::Each(Box::new(make)))
}

/// Serves a service by HTTPS on a TCP address, as [`bind`] does in clear.
///
/// ```no_run
/// use axum::{Extension, Router, routing::get};
/// use shearwater::TlsSession;
/// use shearwater::tls::{Configuration, Options, Pair};
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let pair = Pair::read("cert.pem".as_ref(), "key.pem".as_ref())?;
///     let version = async |Extension(session): Extension<TlsSession>| session.version().as_str();
///     let router = Router::new().route("/", get(version));
///     shearwater_tower::bind_tls("[::]:443", Configuration::new(Options::of_pair(pair)?)?, router).tls_info().await?;
///     Ok(())
/// }
/// ```
///
/// # Panics
/// If the address is a Unix-domain socket: these have no TLS.
#[cfg(feature = "tls")]
pub fn bind_tls<T: MakeHttpService<Kind>, Kind>(
    address: impl Into<String>,
    certificates: impl Into<Arc<shearwater::tls::SharedConfiguration>>,
    service: T,
) -> Serve<T::Service, T::Maker> {
    let server = Server::with_tls(address, certificates);
    Serve::of(Ok(server), Err(io::Error::other(UNBOUND)), Source::Shared(service.into_maker()))
}

/// A server's configuration. Await it, within tokio or not; or [`run`](Self::run) it where there is no runtime.
#[must_use = "a server does nothing unless awaited, run or started"]
pub struct Serve<S, M = CloneService<S>> {
    server: Result<Server, Error>,
    address: io::Result<SocketAddr>,
    source: Source<M>,
    service: PhantomData<fn() -> S>,
    fast: Option<App>,
    inserted: Inserted,
    protocols: Vec<String>,
    upgrades_streams: bool,
    upgrades_max: usize,
    body_bytes_max: u64,
    drain_ms: u64,
    shutdown: Option<Shutdown>,
}

/// The origin of the workers' sources of services.
enum Source<M> {
    /// Cloned for each worker.
    Shared(M),
    /// Made by each worker within its own runtime.
    Each(Box<MakeEach<M>>),
}

impl<M: Maker> Source<M> {
    fn into_each(self) -> Box<MakeEach<M>> {
        match self {
            Self::Each(make) => make,
            Self::Shared(maker) => {
                let clone = cloning(maker);
                Box::new(move |_, _| clone())
            }
        }
    }
}

/// Returns a function that clones on any thread.
fn cloning<M: Maker>(maker: M) -> impl Fn() -> M + Send + Sync + 'static {
    // Cloned under the lock and used on one worker only, so it needn't be `Sync`.
    let maker = Mutex::new(maker);
    move || maker.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl<S, M> fmt::Debug for Serve<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve")
            .field("server", &self.server)
            .field("drain_ms", &self.drain_ms)
            .finish_non_exhaustive()
    }
}

/// Configuration.
impl<S: HttpService, M: Maker<Service = S>> Serve<S, M> {
    fn of(server: Result<Server, Error>, address: io::Result<SocketAddr>, source: Source<M>) -> Self {
        Self {
            server: server.map(|server| server.verbosity(Verbosity::Warn).http2(HTTP2)),
            address,
            source,
            service: PhantomData,
            fast: None,
            inserted: Inserted::default(),
            protocols: vec![WEBSOCKET.to_owned()],
            upgrades_streams: false,
            upgrades_max: UPGRADES_MAX,
            body_bytes_max: u64::MAX,
            drain_ms: DRAIN_MS,
            shutdown: None,
        }
        .drain_ms(DRAIN_MS)
    }

    /// Returns the address of the listener.
    ///
    /// # Errors
    /// If the listener is a Unix-domain socket, or [`bind`] hasn't bound it yet. See [`Running::address`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.address.as_ref().copied().map_err(|error| io::Error::new(error.kind(), error.to_string()))
    }

    /// Changes any other setting of the underlying [`Server`].
    pub fn server(mut self, change: impl FnOnce(Server) -> Server) -> Self {
        self.server = self.server.map(change);
        self
    }

    /// Sets the number of worker threads. Default 0: one per core available to the process.
    pub fn workers(self, workers: usize) -> Self {
        self.server(|server| server.workers(workers))
    }

    /// Sets the I/O driver. Default: io_uring where it works, else epoll or kqueue.
    pub fn driver(self, driver: DriverChoice) -> Self {
        self.server(|server| server.driver(driver))
    }

    /// Sets the maximum length of a request body in bytes, whatever the service allows. Default: none.
    ///
    /// A longer body is rejected with `413`. axum's `DefaultBodyLimit` applies too if it is lower, and by default alone. The
    /// limit is not needed to bound memory: bodies are received only as fast as the service reads them.
    ///
    /// For routes of an app [in front](Self::fast) it replaces [`Limits::body_bytes_max`], whose default of 10 MiB holds
    /// for them otherwise.
    pub fn body_bytes_max(mut self, bytes: u64) -> Self {
        self.body_bytes_max = bytes;
        self.server(|server| server.body_bytes_max(bytes))
    }

    /// Sets the limits of each worker. See [`Limits`]. A [`Limits::body_bytes_max`] other than its default also is the
    /// [one of the service](Self::body_bytes_max).
    pub fn limits(self, limits: Limits) -> Self {
        let is_chosen = limits.body_bytes_max != Limits::default().body_bytes_max;
        let serve = if is_chosen { self.body_bytes_max(limits.body_bytes_max) } else { self };
        serve.server(|server| server.limits(limits))
    }

    /// Sets the timeouts and minimum rates. See [`Timeouts`].
    pub fn timeouts(self, timeouts: Timeouts) -> Self {
        self.server(|server| server.timeouts(timeouts))
    }

    /// Sets options of HTTP/2. Default: also without TLS (`prior_knowledge`), and 100 requests of a connection at a time.
    pub fn http2(self, http2: Http2Options) -> Self {
        self.server(|server| server.http2(http2))
    }

    /// Sets the log level of messages to standard error, for programs without a subscriber of `tracing`: see
    /// [`Verbosity`]. Default: [`Verbosity::Warn`].
    pub fn verbosity(self, verbosity: Verbosity) -> Self {
        self.server(|server| server.verbosity(verbosity))
    }

    /// Sets the time limit of a drain in milliseconds, after which the remaining connections are closed. Default
    /// 30,000.
    pub fn drain_ms(mut self, drain_ms: u64) -> Self {
        self.drain_ms = drain_ms;
        self.server(|server| server.drain_ms(drain_ms))
    }

    /// Puts an app in front of the service, which is mounted at `/`.
    ///
    /// Requests without a route in the app go to the service. The app's middleware runs for the service too.
    ///
    /// An app with its own mount at `/` or fallback is an error at startup.
    pub fn fast(mut self, app: App) -> Self {
        self.fast = Some(app);
        self
    }

    /// Adds the client's address to the extensions of each request.
    ///
    /// Its type is axum's `ConnectInfo<SocketAddr>`, or `SocketAddr` without the feature `axum`. Requests from
    /// Unix-domain sockets have none. Behind [trusted proxies](shearwater::Server::trusted_proxies) it is the address that
    /// they pass on, with port 0 if they name none.
    pub fn connect_info(mut self) -> Self {
        self.inserted.peer = true;
        self
    }

    /// Adds the TLS session and the URL's scheme to the extensions of each request.
    ///
    /// They are [`shearwater::TlsSession`], which requests in clear don't have, and [`http::uri::Scheme`]. Behind
    /// [trusted proxies](shearwater::Server::trusted_proxies) that have terminated TLS there is only the scheme. The URI of an
    /// HTTP/1 request is as it was sent, usually without a scheme; that of an HTTP/2 request has this one.
    pub fn tls_info(mut self) -> Self {
        self.inserted.tls = true;
        self
    }

    /// Registers the protocols to which connections may be upgraded (RFC 9110 section 7.8). Default: `websocket` only.
    ///
    /// Names are compared case-insensitively, and versions are ignored.
    ///
    /// A service that responds with `101` to a request for one of them gets the connection from [`hyper::upgrade::on`],
    /// as axum's extractors do. The `Upgrade` header of any other request, and of a request with a body, is ignored:
    /// the service finds no upgrade, and a `101` becomes a `500`.
    ///
    /// An invalid protocol (RFC 9110 section 7.8) is an error at startup.
    pub fn upgrades(mut self, protocols: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.protocols = protocols.into_iter().map(Into::into).collect();
        self
    }

    /// Also upgrades streams of HTTP/2 to the registered protocols, by extended CONNECT (RFC 8441).
    ///
    /// Browsers then open WebSockets on the connection that they have, and send `CONNECT` instead of `GET`. Routes of
    /// WebSockets must take both, as those by axum's `any` do: by `get` alone, browsers would get a `405`. Default: off, so
    /// that browsers open a connection of HTTP/1.1 for each WebSocket.
    pub fn upgrades_streams(mut self) -> Self {
        self.upgrades_streams = true;
        self
    }

    /// Sets the maximum number of upgraded connections, including requests that may still be upgraded. Default
    /// [`UPGRADES_MAX`].
    ///
    /// Beyond it, the `Upgrade` header is ignored, and axum's extractor rejects the request with `426`. Upgraded
    /// connections also count towards the connection limits.
    pub fn upgrades_max(mut self, upgrades_max: usize) -> Self {
        self.upgrades_max = upgrades_max;
        self
    }

    /// Drains once `signal` completes: stops accepting, responds to received requests, and ends after
    /// [`drain_ms`](Self::drain_ms) at the latest.
    pub fn with_graceful_shutdown(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Some(Box::pin(signal));
        self
    }
}

/// Serving.
impl<S: HttpService, M: Maker<Service = S>> Serve<S, M> {
    /// Serves until `SIGTERM`, `SIGINT` (the first drains, the second stops) or graceful shutdown, without a
    /// surrounding runtime. Each worker has a runtime of its own.
    ///
    /// # Errors
    /// See [`Error`].
    ///
    /// # Panics
    /// If called within a tokio runtime, which it would block: await it there.
    pub fn run(self) -> Result<(), Error> {
        self.server(Server::handle_signals).start()?.wait()
    }

    /// Binds, starts the workers, and returns immediately.
    ///
    /// The service uses the current tokio runtime. Without one, and with [`bind_each`], each worker has its own.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn start(self) -> Result<Running, Error> {
        if let Some(given) = self.protocols.iter().find(|protocol| !is_protocol(protocol.as_bytes())) {
            return Err(Error::Protocol { given: given.clone() });
        }
        let Self { server, source, fast, inserted, body_bytes_max, drain_ms, shutdown, .. } = self;
        let upgrades = Upgrades::new(self.protocols, self.upgrades_streams, self.upgrades_max);
        let bridge = move |maker| Bridge::new(maker, inserted, Arc::clone(&upgrades), body_bytes_max);
        let running = match (source, Handle::try_current()) {
            (Source::Shared(maker), Ok(handle)) => {
                let (clone, runtime) = (cloning(maker), handle.clone());
                let running = start(server?, fast, move |_| {
                    enter(&runtime);
                    bridge(clone())
                })?;
                shutdown.map(|signal| handle.spawn(drain_after(signal, drain_ms, running.control())));
                running
            }
            (source, _) => {
                let shutdown = shutdown.map(|signal| (signal, drain_ms));
                let runtimes = Arc::new(Runtimes::new(source.into_each(), shutdown));
                let server = server?.host(Arc::clone(&runtimes) as Arc<dyn Host>);
                start(server, fast, move |worker| bridge(runtimes.take(worker)))?
            }
        };
        Ok(Running::new(running, drain_ms))
    }
}

/// Starts a server with the service that `make` returns for each worker, behind an app if there is one.
fn start<T: Service>(
    server: Server,
    fast: Option<App>,
    make: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Result<shearwater::Running, Error> {
    match fast {
        None => server.start_service(make),
        Some(app) => server.start(app.mount("/", make)),
    }
}

/// Enters a runtime for the rest of the thread's life, thread-local destructors included.
fn enter(runtime: &Handle) {
    // The guard holds only the previously entered runtime.
    let _entered = ManuallyDrop::new(runtime.enter());
}

impl<S: HttpService, M: Maker<Service = S>> IntoFuture for Serve<S, M> {
    type Output = Result<(), Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Serves until graceful shutdown, or for ever without one. Leaves signals alone. Stops when dropped.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.start()?.ended().await })
    }
}

/// A listening socket of the standard library or of tokio.
#[derive(Debug)]
pub struct Listen {
    pub(crate) socket: io::Result<ListeningSocket>,
}

impl From<std::net::TcpListener> for Listen {
    fn from(listener: std::net::TcpListener) -> Self {
        Self { socket: Ok(listener.into()) }
    }
}

impl From<UnixListener> for Listen {
    fn from(listener: UnixListener) -> Self {
        Self { socket: Ok(listener.into()) }
    }
}

impl From<tokio::net::TcpListener> for Listen {
    fn from(listener: tokio::net::TcpListener) -> Self {
        Self { socket: listener.into_std().map(ListeningSocket::from) }
    }
}

impl From<tokio::net::UnixListener> for Listen {
    fn from(listener: tokio::net::UnixListener) -> Self {
        Self { socket: listener.into_std().map(ListeningSocket::from) }
    }
}

impl From<ListeningSocket> for Listen {
    fn from(socket: ListeningSocket) -> Self {
        Self { socket: Ok(socket) }
    }
}
