//! A served router for one test.

use std::net::SocketAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::OnceLock;

use axum::Router;
use shearwater::{DriverChoice, Error, Server, StartError, Totals, Verbosity};
use shearwater_tower::{HttpService, MakeHttpService, Maker, Running, Serve, bind, serve};
use testkit::{TIMEOUT, TestClient};

use crate::local::local_server;

/// A running server, stopped on drop.
pub(crate) struct Served {
    running: Option<Running>,
    pub(crate) address: SocketAddr,
}

impl Served {
    /// Serves with one worker on this driver.
    pub(crate) fn on(driver: DriverChoice, router: Router) -> Self {
        Self::of(here(router).driver(driver))
    }

    /// Serves with one worker.
    pub(crate) fn new(router: Router) -> Self {
        Self::of(here(router))
    }

    pub(crate) fn of<S: HttpService, M: Maker<Service = S>>(serve: Serve<S, M>) -> Self {
        let running = started(serve).expect("starts");
        Self { address: running.address(), running: Some(running) }
    }

    pub(crate) fn connect(&self) -> TestClient {
        TestClient::connect(self.address)
    }

    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().expect("it runs until it is dropped")
    }

    /// Returns the totals so far.
    pub(crate) fn totals(&self) -> Totals {
        self.running().control().totals()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.control().stop();
        let ended = runtime().block_on(running.ended());
        assert!(ended.is_ok() || std::thread::panicking(), "{ended:?}");
    }
}

/// Returns a server with one worker on a free port.
pub(crate) fn here<T: MakeHttpService<Kind>, Kind>(service: T) -> Serve<T::Service, T::Maker> {
    let serve = bind("127.0.0.1:0", service).workers(1).verbosity(Verbosity::Off);
    if testkit::tls::is_on() || testkit::http2::is_on() {
        serve.server(|_| local_server().workers(1).verbosity(Verbosity::Off))
    } else {
        serve
    }
}

/// Serves with one worker on a Unix-domain socket, and returns the start of the response to `GET /`.
pub(crate) fn response_on_unix<T: MakeHttpService<Kind>, Kind>(service: T) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let running = started(serve(UnixListener::bind(&path).expect("a socket"), service).workers(1));
    let mut client = TestClient::new(UnixStream::connect(&path).expect("connects"));
    client.stream().set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let response = client.ask("GET", "/", &["Connection: close"]).rest();
    drop(running.expect("starts"));
    String::from_utf8(response).expect("text")
}

/// Environment variable with which the suite's servers use a runtime of the program.
const IN_RUNTIME: &str = "SHEARWATER_TEST_IN_RUNTIME";

/// Returns the runtime of the program that servers are started in; `None` if each worker has its own.
pub(crate) fn surrounding() -> Option<&'static tokio::runtime::Runtime> {
    static RUNTIME: OnceLock<Option<tokio::runtime::Runtime>> = OnceLock::new();
    let new = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().thread_name("tokio of the test").build().expect("a runtime")
    };
    RUNTIME.get_or_init(|| std::env::var_os(IN_RUNTIME).map(|_| new())).as_ref()
}

/// Starts a server, within the surrounding runtime if there is one.
pub(crate) fn started<S: HttpService, M: Maker<Service = S>>(serve: Serve<S, M>) -> Result<Running, Error> {
    let _entered = surrounding().map(tokio::runtime::Runtime::enter);
    serve.start()
}

/// Runs all tests of this program again, with a surrounding runtime.
#[test]
fn all_tests_pass_within_a_runtime_of_the_program() {
    if surrounding().is_some() || std::env::args().count() > 1 {
        return;
    }
    let this = std::env::current_exe().expect("this program is a file");
    let again = std::process::Command::new(this).env(IN_RUNTIME, "1").output().expect("it runs");
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
}

/// Creates a runtime for the test.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Returns all drivers that work on this system.
pub(crate) fn drivers() -> Vec<DriverChoice> {
    let works = |driver: &DriverChoice| {
        let server = Server::bind("127.0.0.1:0").workers(1).driver(*driver).verbosity(Verbosity::Off);
        match server.start(shearwater::App::new()) {
            Ok(running) => {
                running.control().stop();
                running.wait_for_control().expect("ends normally");
                true
            }
            Err(shearwater::Error::Start(StartError::Driver { why })) => {
                println!("skipped: {why}");
                false
            }
            Err(other) => panic!("{other}"),
        }
    };
    let all = [DriverChoice::Epoll, DriverChoice::Kqueue, DriverChoice::Uring];
    all.into_iter().filter(works).collect()
}
