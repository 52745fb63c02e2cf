//! A server for one test.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use shearwater::{
    AcceptMode, App, Control, DriverChoice, Request, Response, Running, Server, Totals, Verbosity, get,
};
use testkit::{TIMEOUT, TestClient};

use crate::local::local_server;

/// A running server, stopped on drop.
pub(crate) struct Served {
    running: Option<Running>,
    pub(crate) address: SocketAddr,
    /// All addresses.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) unix_sockets: Vec<PathBuf>,
    pub(crate) driver: &'static str,
    pub(crate) control: Arc<Control>,
}

impl Served {
    /// Serves an app with one worker.
    pub(crate) fn app<S: 'static>(app: App<S>) -> Self {
        Self::of(here(), app)
    }

    /// Serves an app with the test's settings.
    pub(crate) fn of<S: 'static>(server: Server, app: App<S>) -> Self {
        Self::running(server.start(app).expect("starts"))
    }

    pub(crate) fn running(running: Running) -> Self {
        Self {
            address: running.address(),
            addresses: running.start_report().addresses.clone(),
            unix_sockets: running.start_report().unix_sockets.clone(),
            driver: running.start_report().driver,
            control: running.control(),
            running: Some(running),
        }
    }

    pub(crate) fn connect(&self) -> TestClient {
        TestClient::connect(self.address)
    }

    /// Stops the server and returns its totals.
    pub(crate) fn stop(self) -> Totals {
        self.control.stop();
        self.wait()
    }

    /// Waits for the server's end and returns its totals.
    pub(crate) fn wait(mut self) -> Totals {
        let running = self.running.take().expect("only waiting takes it");
        running.wait().expect("ends normally").totals
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.control.stop();
        let ended = self.running.take().map(Running::wait);
        assert!(ended.is_none_or(|ended| ended.is_ok()) || std::thread::panicking(), "a worker has failed");
    }
}

/// Connects to a Unix-domain socket.
pub(crate) fn connect_unix(path: &Path) -> TestClient<UnixStream> {
    let stream = UnixStream::connect(path).expect("connects");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    TestClient::new(stream)
}

/// An app that responds to everything with `served`.
pub(crate) fn served_app() -> App {
    App::new().fallback(text("served"))
}

/// Returns a handler that responds with a text.
pub(crate) fn text(text: &'static str) -> impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync {
    move |_, response| {
        response.text(text);
    }
}

/// Blocks every handler of `/wait` until opened.
#[derive(Default)]
pub(crate) struct Gate {
    entered: AtomicUsize,
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        self.entered.fetch_add(1, Ordering::SeqCst);
        let open = self.open.lock().expect("unpoisoned");
        let waited = self.opened.wait_timeout_while(open, TIMEOUT, |open| !*open).expect("unpoisoned");
        assert!(!waited.1.timed_out(), "nobody opens");
    }

    /// Waits until so many handlers are blocked.
    #[track_caller]
    pub(crate) fn is_entered(&self, count: usize) {
        until("handlers are called", || self.entered.load(Ordering::SeqCst) == count);
    }

    pub(crate) fn open(&self) {
        *self.open.lock().expect("unpoisoned") = true;
        self.opened.notify_all();
    }
}

/// More bytes than two sockets buffer.
pub(crate) static LARGE: [u8; 64 * 1024 * 1024] = [b'x'; 64 * 1024 * 1024];

/// An app whose `/wait` waits for the gate. `/large` is larger than buffers.
pub(crate) fn held_app() -> (App, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let held = Arc::clone(&gate);
    let app = App::new()
        .route(
            "/wait",
            get(move |_: &Request, response: &mut Response| {
                held.pass();
                response.text("waited");
            }),
        )
        .route("/", get(text("answered")))
        .route(
            "/large",
            get(|_: &Request, response: &mut Response| {
                response.body_static(&LARGE);
            }),
        );
    (app, gate)
}

/// Polls until a condition holds.
#[track_caller]
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "not in time: {what}");
        std::thread::yield_now();
    }
}

/// Environment variable with the driver of the whole suite.
const DRIVER: &str = "SHEARWATER_TEST_DRIVER";

/// Environment variable with the accept mode of the whole suite.
const ACCEPT: &str = "SHEARWATER_TEST_ACCEPT";

/// Returns all drivers that work on this system.
pub(crate) fn drivers() -> Vec<DriverChoice> {
    let works = |driver: &DriverChoice| {
        let server = local_server().workers(1).driver(*driver).verbosity(Verbosity::Off);
        let started = server.start(App::new());
        started
            .map(|running| drop(Served::running(running)))
            .map_err(|why| println!("skipped: {why}"))
            .is_ok()
    };
    let all = [DriverChoice::Epoll, DriverChoice::Kqueue, DriverChoice::Uring];
    all.into_iter().filter(works).collect()
}

/// Returns a server with one worker on a free port.
pub(crate) fn here() -> Server {
    let driver = match std::env::var(DRIVER).as_deref() {
        Err(_) | Ok("auto") => DriverChoice::Auto,
        Ok("epoll") => DriverChoice::Epoll,
        Ok("uring") => DriverChoice::Uring,
        Ok(other) => panic!("{DRIVER}={other}: auto, epoll or uring"),
    };
    let accept = match std::env::var(ACCEPT).as_deref() {
        Err(_) | Ok("reuseport") => AcceptMode::Reuseport,
        Ok("dispatch") => AcceptMode::Dispatch,
        Ok(other) => panic!("{ACCEPT}={other}: reuseport or dispatch"),
    };
    local_server().workers(1).driver(driver).accept_mode(accept).verbosity(Verbosity::Off)
}
