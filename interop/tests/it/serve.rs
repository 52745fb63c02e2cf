//! Starts the server under test. To test another one, such as `axum::serve`, change `run`.
//!
//! Settings have their defaults unless a test changes them. The test target `it` uses `shearwater_tower::serve`,
//! `by_bind` uses `bind`.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread::JoinHandle;

use axum::Router;
use serde_json::Value;
use shearwater_tower::Serve;
use testkit::{ClientResponse, TestClient};
use tokio::sync::oneshot;

/// A change of the server's settings.
type Change = fn(Serve<Router>) -> Serve<Router>;

/// A running server. Dropping it starts a drain without waiting, so that a failing test doesn't hang.
pub(crate) struct Served {
    pub(crate) addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Reads a response's body as JSON.
pub(crate) trait Json {
    fn json(&self) -> Value;
}

impl Json for ClientResponse {
    fn json(&self) -> Value {
        assert_eq!(self.field("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Serves a router on a free port of 127.0.0.1, on other threads.
pub(crate) fn serve(router: Router) -> Served {
    serve_made(async move { router })
}

/// As `serve`, with changed settings.
pub(crate) fn serve_with(router: Router, change: Change) -> Served {
    start("127.0.0.1:0", async move { router }, change)
}

/// As `serve`, with the router created on the server's runtime, for applications that open pools first.
pub(crate) fn serve_made(make: impl Future<Output = Router> + Send + 'static) -> Served {
    serve_at("127.0.0.1:0", make)
}

/// As `serve_made`, on a given address.
pub(crate) fn serve_at(address: &'static str, make: impl Future<Output = Router> + Send + 'static) -> Served {
    start(address, make, |serve| serve)
}

fn start(
    address: &'static str,
    make: impl Future<Output = Router> + Send + 'static,
    change: Change,
) -> Served {
    let (stop, stopped) = oneshot::channel();
    let (bound, addr) = mpsc::sync_channel(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let thread = std::thread::spawn(move || runtime.block_on(run(address, make, change, bound, stopped)));
    Served { addr: addr.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
}

/// Runs the server under test, and drains it after `stopped`.
async fn run(
    address: &str,
    make: impl Future<Output = Router>,
    change: Change,
    bound: mpsc::SyncSender<SocketAddr>,
    stopped: oneshot::Receiver<()>,
) {
    let router = make.await;
    let stopped = async { drop(stopped.await) };
    if env!("CARGO_CRATE_NAME") == "by_bind" {
        let server = change(shearwater_tower::bind(address, router).connect_info());
        let running = server.with_graceful_shutdown(stopped).start().unwrap();
        bound.send(running.address()).unwrap();
        running.ended().await.unwrap();
    } else {
        let server = shearwater_tower::serve(TcpListener::bind(address).unwrap(), router).connect_info();
        bound.send(server.local_addr().unwrap()).unwrap();
        change(server).with_graceful_shutdown(stopped).await.unwrap();
    }
}

impl Served {
    pub(crate) fn connect(&self) -> TestClient {
        TestClient::connect(self.addr)
    }

    /// Sends a `GET` request on a new connection.
    pub(crate) fn get(&self, target: &str) -> ClientResponse {
        self.connect().get(target)
    }

    /// Sends a request on a new connection.
    pub(crate) fn ask(&self, method: &str, target: &str, fields: &[&str], body: &[u8]) -> ClientResponse {
        self.connect().send_body(method, target, fields, body)
    }

    /// Sends a request with a JSON body on a new connection.
    pub(crate) fn ask_json(&self, method: &str, target: &str, body: &Value) -> ClientResponse {
        self.ask(method, target, &["Content-Type: application/json"], body.to_string().as_bytes())
    }

    /// Starts a drain and returns immediately.
    pub(crate) fn begin_shutdown(&mut self) {
        self.stop.take();
    }

    /// Returns true if the server has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Drains the server and waits for its end.
    pub(crate) fn shutdown(mut self) {
        self.begin_shutdown();
        self.thread.take().unwrap().join().unwrap();
    }
}
