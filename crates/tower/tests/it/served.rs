//! A served router for one test.

use std::net::SocketAddr;

use axum::Router;
use shearwater::{DriverChoice, Server, StartError, Totals, Verbosity};
use shearwater_tower::{HttpService, Maker, Running, Serve, bind};
use testkit::TestClient;

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
        let running = serve.start().expect("starts");
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
pub(crate) fn here(router: Router) -> Serve<Router> {
    bind("127.0.0.1:0", router).workers(1).verbosity(Verbosity::Off)
}

/// Creates a runtime for the test.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Returns all drivers that work on this system.
pub(crate) fn drivers() -> Vec<DriverChoice> {
    let probe = Server::new("127.0.0.1:0").workers(1).driver(DriverChoice::Uring).verbosity(Verbosity::Off);
    match probe.start_app(shearwater::App::new()) {
        Ok(running) => {
            running.control().stop();
            running.wait_for_control().expect("ends normally");
            vec![DriverChoice::Auto, DriverChoice::Uring]
        }
        Err(shearwater::Error::Start(StartError::Driver { why })) => {
            println!("skipped: {why}");
            vec![DriverChoice::Auto]
        }
        Err(other) => panic!("{other}"),
    }
}
