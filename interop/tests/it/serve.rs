//! Starts the servers under test. To test another one, such as `axum::serve`, change `run`.
//!
//! Settings have their defaults. `SHEARWATER_TEST_HTTP2=1` asks by HTTP/2. Each test serves its application by `shearwater_tower::serve`, by `bind`, and by `bind_each`
//! with one worker.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Mutex, mpsc};
use std::thread::JoinHandle;

use axum::Router;
use serde_json::Value;
use testkit::{ClientResponse, TestClient};
use tokio::sync::oneshot;

/// A function that serves a router.
#[derive(Debug, Clone, Copy)]
enum ServedBy {
    Serve,
    Bind,
    BindEach,
}

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

/// Returns the URI of a request as its handler sees it: over HTTP/2 with scheme and authority, as by hyper.
pub(crate) fn uri(target: &str) -> String {
    let origin = if testkit::http2::is_on() { "http://localhost" } else { "" };
    format!("{origin}{target}")
}

/// Serves an application of its own by each function, on a free port of 127.0.0.1 and on other threads.
pub(crate) fn serve(app: impl Fn() -> Router) -> impl Iterator<Item = Served> {
    serve_made(move || std::future::ready(app()))
}

/// As `serve`, with the router created on the server's runtime, for applications that open pools first.
pub(crate) fn serve_made<M>(make: impl Fn() -> M) -> impl Iterator<Item = Served>
where
    M: Future<Output = Router> + Send + 'static,
{
    [ServedBy::Serve, ServedBy::Bind, ServedBy::BindEach].into_iter().map(move |by| start(by, make()))
}

fn start(by: ServedBy, make: impl Future<Output = Router> + Send + 'static) -> Served {
    let (stop, stopped) = oneshot::channel();
    let (bound, addr) = mpsc::sync_channel(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let thread = std::thread::spawn(move || runtime.block_on(run(by, make, bound, stopped)));
    println!("served by {by:?}");
    Served { addr: addr.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
}

/// Runs the server under test, and drains it after `stopped`.
async fn run(
    by: ServedBy,
    make: impl Future<Output = Router> + Send + 'static,
    bound: mpsc::SyncSender<SocketAddr>,
    stopped: oneshot::Receiver<()>,
) {
    const ADDRESS: &str = "127.0.0.1:0";
    let stopped = async { drop(stopped.await) };
    match by {
        ServedBy::Serve => {
            let server =
                shearwater_tower::serve(TcpListener::bind(ADDRESS).unwrap(), make.await).connect_info();
            bound.send(server.local_addr().unwrap()).unwrap();
            server.with_graceful_shutdown(stopped).await.unwrap();
        }
        ServedBy::Bind => {
            let server = shearwater_tower::bind(ADDRESS, make.await).connect_info();
            let running = server.with_graceful_shutdown(stopped).start().unwrap();
            bound.send(running.address()).unwrap();
            running.ended().await.unwrap();
        }
        ServedBy::BindEach => {
            let once = Mutex::new(Some(Box::pin(make)));
            let make = async move |_| {
                let make = once.lock().unwrap().take();
                make.expect("there is one worker").await
            };
            let server = shearwater_tower::bind_each(ADDRESS, make).workers(1).connect_info();
            let running = server.with_graceful_shutdown(stopped).start().unwrap();
            bound.send(running.address()).unwrap();
            running.ended().await.unwrap();
        }
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
