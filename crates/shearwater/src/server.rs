//! A server as a program sets it up and runs it.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use shearwater_engine::{
    Acceptance, BodyPolicy, Control, DriverChoice, Limits, Notice, Options, Request, Response, Summary,
    Timeouts,
};
use shearwater_http1::Head;

use crate::signals::Watch;
use crate::{App, Error, Service, report};

/// How long the operator's thread sleeps at most while nothing is reported.
const REPORT_PATIENCE: Duration = Duration::from_secs(60);

/// Default of [`Server::drain_ms`].
const DRAIN_MS: u64 = 30_000;

/// A server to be set up: addresses, threads, limits; then [`run`](Server::run) with a closure,
/// [`run_app`](Server::run_app) with routes, or [`start`](Server::start) with anything.
#[derive(Debug, Clone)]
pub struct Server {
    addresses: Vec<String>,
    options: Options,
    drain_ms: u64,
}

impl Server {
    /// A server that will listen on `address`, such as `127.0.0.1:8080`, `[::]:80` or `localhost:0` (port 0 takes a
    /// free one).
    pub fn new(address: impl Into<String>) -> Self {
        let options = Options { listen: Vec::new(), ..Options::default() };
        Self { addresses: vec![address.into()], options, drain_ms: DRAIN_MS }
    }

    /// Listens on a further address.
    #[must_use]
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.addresses.push(address.into());
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

    /// Connections that may wait to be accepted, per worker. Default 4096; the kernel has its own bound.
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

    /// Milliseconds that a drain may take before the rest is closed. Default 30,000.
    #[must_use]
    pub fn drain_ms(mut self, drain_ms: u64) -> Self {
        self.drain_ms = drain_ms;
        self
    }

    /// Answers every request with one closure, until `SIGTERM` or `SIGINT`: the first drains, the second stops.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run(
        self,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.run_app(App::of(handler))
    }

    /// Answers with an app, until `SIGTERM` or `SIGINT`: the first drains, the second stops.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run_app(self, app: App) -> Result<(), Error> {
        self.start_app(app)?.wait().map(drop)
    }

    /// Binds and starts with an app, and returns at once: for programs that want the port, the [`Control`] or the end.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn start_app(self, app: App) -> Result<Running, Error> {
        let app = Arc::new(app);
        self.start(move |_| Routed(Arc::clone(&app)))
    }

    /// Binds and starts, and returns at once. `make` is called on each worker's own thread with its number.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn start<S: Service + 'static>(
        mut self,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> Result<Running, Error> {
        for given in &self.addresses {
            self.options.listen.push(resolve(given)?);
        }
        let server = shearwater_engine::Server::bind(self.options)?;
        Ok(Running { running: server.start(make)?, drain_ms: self.drain_ms })
    }
}

/// A server that serves.
pub struct Running {
    running: shearwater_engine::Running,
    drain_ms: u64,
}

impl Running {
    /// What was found and settled at the start: addresses, driver, limits.
    #[must_use]
    pub fn acceptance(&self) -> &Acceptance {
        self.running.acceptance()
    }

    /// The first address bound, with the port taken.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.acceptance().addresses[0]
    }

    /// The handle to drain, stop and count with, from any thread.
    #[must_use]
    pub fn control(&self) -> Arc<Control> {
        self.running.control()
    }

    /// Waits for the end, which `SIGTERM` or `SIGINT` or [`Control`] brings about; prints to standard error what
    /// workers report meanwhile.
    ///
    /// # Errors
    /// [`Error::Signals`], and [`Error::Failed`] where a worker has ended other than by plan: the others are drained
    /// then.
    pub fn wait(self) -> Result<Summary, Error> {
        let watch = Watch::start(self.control(), self.drain_ms).map_err(Error::Signals)?;
        let mut ended = 0;
        while ended < self.acceptance().workers && !self.running.is_over() {
            let Some(notice) = self.running.notice(REPORT_PATIENCE) else { continue };
            report::print(&notice);
            if let Notice::WorkerEnded { error, .. } = notice {
                ended += 1;
                if error.is_some() {
                    self.control().drain(self.drain_ms);
                }
            }
        }
        let summary = self.running.wait()?;
        drop(watch);
        Ok(summary)
    }
}

/// An app as a worker holds it: the routes are shared, and never change.
struct Routed(Arc<App>);

impl Service for Routed {
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        self.0.body_policy(head)
    }

    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        self.0.respond(request, response);
    }
}

fn resolve(given: &str) -> Result<SocketAddr, Error> {
    let failed = |error| Error::Address { given: given.to_owned(), error };
    let mut found = given.to_socket_addrs().map_err(failed)?;
    found.next().ok_or_else(|| failed(io::Error::other("the name has no address")))
}
