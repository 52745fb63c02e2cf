//! A server for a tower service, as a program sets it up.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use shearwater::{App, DriverChoice, Error, Limits, Server, StartError, Timeouts, Verbosity, is_protocol};

use crate::bridge::{Bridge, Plan};
use crate::limits::UPGRADES_MAX;
use crate::listen::Listen;
use crate::make_service::{CloneService, MakeHttpService, Maker};
use crate::running::Running;
use crate::runtime::Runtime;
use crate::tower_service::HttpService;
use crate::upgrades::Upgrades;

/// Default of [`Serve::drain_ms`].
const DRAIN_MS: u64 = 30_000;

/// Default of [`Serve::upgrades`].
const WEBSOCKET: &str = "websocket";

type Shutdown = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves a service at a socket that listens already, as `axum::serve` does. With more than one worker one thread accepts for all;
/// [`bind`] gives each worker a listener of its own.
///
/// Nothing happens before the result is awaited, [run](Serve::run) or [started](Serve::start).
pub fn serve<T: MakeHttpService<Kind>, Kind>(
    listener: impl Into<Listen>,
    service: T,
) -> Serve<T::Service, T::Maker> {
    let (socket, address) = match listener.into().socket {
        Ok(socket) => (Ok(Server::on(socket.clone())), socket.address()),
        Err(error) => (Err(Error::Start(StartError::Socket(error))), Err(io::ErrorKind::NotConnected.into())),
    };
    Serve::of(socket, address, service.into_maker())
}

/// Serves a service at an address, such as `127.0.0.1:3000`, `[::]:80` or `unix:/run/site.sock`: each worker has a listener of its own, over
/// which the kernel spreads connections.
///
/// Nothing happens before the result is awaited, [run](Serve::run) or [started](Serve::start).
pub fn bind<T: MakeHttpService<Kind>, Kind>(
    address: impl Into<String>,
    service: T,
) -> Serve<T::Service, T::Maker> {
    let unbound = "`bind` binds at the start: `Running::address` says to which address";
    Serve::of(Ok(Server::new(address)), Err(io::Error::other(unbound)), service.into_maker())
}

/// A server to be set up. Await it, within tokio or not; or [`run`](Self::run) it where there is no runtime at all.
#[must_use = "it serves when it is awaited, run or started"]
pub struct Serve<S, M = CloneService<S>> {
    server: Result<Server, Error>,
    address: io::Result<SocketAddr>,
    maker: M,
    service: PhantomData<fn() -> S>,
    fast: Option<App>,
    tells_peer: bool,
    protocols: Vec<String>,
    upgrades_max: usize,
    drain_ms: u64,
    shutdown: Option<Shutdown>,
}

impl<S, M> fmt::Debug for Serve<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve")
            .field("server", &self.server)
            .field("drain_ms", &self.drain_ms)
            .finish_non_exhaustive()
    }
}

/// Setting up.
impl<S: HttpService, M: Maker<Service = S>> Serve<S, M> {
    fn of(server: Result<Server, Error>, address: io::Result<SocketAddr>, maker: M) -> Self {
        Self {
            server: server.map(|server| server.verbosity(Verbosity::Warn)),
            address,
            maker,
            service: PhantomData,
            fast: None,
            tells_peer: false,
            protocols: vec![WEBSOCKET.to_owned()],
            upgrades_max: UPGRADES_MAX,
            drain_ms: DRAIN_MS,
            shutdown: None,
        }
        .drain_ms(DRAIN_MS)
    }

    /// The address that the listener is bound to.
    ///
    /// # Errors
    /// It listens at a Unix-domain socket, or [`bind`] has not bound it yet: see [`Running::address`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.address.as_ref().copied().map_err(|error| io::Error::new(error.kind(), error.to_string()))
    }

    /// Changes anything else that a [`Server`] can be told.
    pub fn server(mut self, change: impl FnOnce(Server) -> Server) -> Self {
        self.server = self.server.map(change);
        self
    }

    /// Threads that serve. Default 0: one per core that the process may use.
    pub fn workers(self, workers: usize) -> Self {
        self.server(|server| server.workers(workers))
    }

    /// The driver. Default: the best that works here.
    pub fn driver(self, driver: DriverChoice) -> Self {
        self.server(|server| server.driver(driver))
    }

    /// Limits the length of request bodies, whatever the service would take: axum's `DefaultBodyLimit` is a limit of its own below this one. A
    /// longer body is refused with `413`. It takes the place of [`Limits::body_bytes_max`]. Default 10 MiB; `u64::MAX` lifts it.
    ///
    /// It bounds no memory: bodies come no faster than the service reads them.
    pub fn body_bytes_max(self, bytes: u64) -> Self {
        self.server(|server| server.body_bytes_max(bytes))
    }

    /// Limits on what clients may send and on what each worker holds.
    pub fn limits(self, limits: Limits) -> Self {
        self.server(|server| server.limits(limits))
    }

    /// How long a worker waits for its clients.
    pub fn timeouts(self, timeouts: Timeouts) -> Self {
        self.server(|server| server.timeouts(timeouts))
    }

    /// What is printed to standard error while it serves. Default: what is not as it should be.
    pub fn verbosity(self, verbosity: Verbosity) -> Self {
        self.server(|server| server.verbosity(verbosity))
    }

    /// Milliseconds that a drain may take before the rest is closed. Default 30,000.
    pub fn drain_ms(mut self, drain_ms: u64) -> Self {
        self.drain_ms = drain_ms;
        self.server(|server| server.drain_ms(drain_ms))
    }

    /// Puts an app in front: what it has no route for goes to the service, which is its mount at `/`. What the app does before and after
    /// handlers it does for the service too.
    ///
    /// An app with a mount at `/` or a fallback of its own is an error at the start.
    pub fn fast(mut self, app: App) -> Self {
        self.fast = Some(app);
        self
    }

    /// Tells the service where a request comes from: by axum's `ConnectInfo<SocketAddr>` among the request's extensions, or by the
    /// `SocketAddr` itself where this crate is built without its feature `axum`. There is none for who came through a Unix-domain socket.
    pub fn connect_info(mut self) -> Self {
        self.tells_peer = true;
        self
    }

    /// Registers the protocols that connections may be upgraded to (RFC 9110 section 7.8). Names are compared in any case, and versions are
    /// ignored. Default: `websocket` alone.
    ///
    /// A service that responds with `101` to a request for one of them gets the connection by [`hyper::upgrade::on`], as axum's
    /// extractors do. The `Upgrade` field of any other request is ignored, and so is that of a request with a body: the service finds no
    /// upgrade there, and a `101` becomes a `500`.
    ///
    /// What is no protocol (RFC 9110 section 7.8) is an error at the start.
    pub fn upgrades(mut self, protocols: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.protocols = protocols.into_iter().map(Into::into).collect();
        self
    }

    /// Limits the number of upgraded connections, together with requests that may still be upgraded. The `Upgrade` field of a further request
    /// is ignored: axum's extractor rejects it with `426`. Upgraded connections count for the limits on connections too. Default [`UPGRADES_MAX`].
    pub fn upgrades_max(mut self, upgrades_max: usize) -> Self {
        self.upgrades_max = upgrades_max;
        self
    }

    /// Drains as soon as `signal` is ready: no new connections are taken, what was received is answered, and it ends, after
    /// [`drain_ms`](Self::drain_ms) at the latest.
    pub fn with_graceful_shutdown(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Some(Box::pin(signal));
        self
    }
}

/// Serving.
impl<S: HttpService, M: Maker<Service = S>> Serve<S, M> {
    /// Serves until `SIGTERM` or `SIGINT` (the first drains, the second stops) or its graceful shutdown, without a runtime around it.
    ///
    /// # Errors
    /// See [`Error`].
    ///
    /// # Panics
    /// Within a tokio runtime, which it would hold up: await it there.
    pub fn run(self) -> Result<(), Error> {
        self.server(Server::handle_signals).start()?.wait()
    }

    /// Binds and starts, and returns at once: for programs that want the port, the control or the end. Within a tokio runtime that one
    /// drives what the service waits for, else one of its own does.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn start(self) -> Result<Running, Error> {
        let Self { server, maker, fast, tells_peer, protocols, upgrades_max, drain_ms, shutdown, .. } = self;
        if let Some(given) = protocols.iter().find(|protocol| !is_protocol(protocol.as_bytes())) {
            return Err(Error::Protocol { given: given.clone() });
        }
        let system = |error| Error::Start(StartError::System(error));
        let runtime = Runtime::here().map_err(system)?;
        let upgrades = Upgrades::new(protocols, upgrades_max);
        let handle = runtime.handle().clone();
        let maker = Mutex::new(maker);
        let bridge = move |_| {
            // Cloned here, used on the worker's own thread: it need not be `Sync`.
            let maker = maker.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Bridge::new(Plan { maker, tells_peer, upgrades: Arc::clone(&upgrades), handle: handle.clone() })
        };
        let running = match fast {
            None => server?.start(bridge)?,
            Some(mut app) => {
                app.mount("/", bridge);
                server?.start_app(app)?
            }
        };
        let running = Running::new(running, runtime, drain_ms);
        if let Some(shutdown) = shutdown {
            running.drain_after(shutdown);
        }
        Ok(running)
    }
}

impl<S: HttpService, M: Maker<Service = S>> IntoFuture for Serve<S, M> {
    type Output = Result<(), Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Serves until its graceful shutdown; for ever without one. Signals are the program's own business. Dropped, it stops.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.start()?.ended().await })
    }
}
