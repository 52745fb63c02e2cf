//! The one place that knows what serves the applications: with `axum::serve` in `run`, every test asks that.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;

use axum::Router;
use shearwater::Limits;
use tokio::sync::oneshot;

/// A running server. Dropped, it is told to end and not waited for: a test that fails must not hang.
pub(crate) struct Served {
    pub(crate) addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Serves a router on a free port of 127.0.0.1, from threads of its own.
pub(crate) fn serve(router: Router) -> Served {
    serve_made(async move { router })
}

/// As `serve`; the router is made on the server's runtime, for applications that open pools first.
pub(crate) fn serve_made(make: impl Future<Output = Router> + Send + 'static) -> Served {
    serve_at("127.0.0.1:0", make)
}

/// As `serve_made`, on this address.
pub(crate) fn serve_at(address: &str, make: impl Future<Output = Router> + Send + 'static) -> Served {
    let listener = TcpListener::bind(address).unwrap();
    let addr = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let thread = std::thread::spawn(move || runtime.block_on(run(listener, make, stopped)));
    Served { addr, stop: Some(stop), thread: Some(thread) }
}

/// What is under test. Ends when all is answered that was asked before `stopped`.
async fn run(listener: TcpListener, make: impl Future<Output = Router>, stopped: oneshot::Receiver<()>) {
    let router = make.await;
    // Applications have their own bounds: uploads here are longer than the server's default allows.
    let limits = Limits { body_bytes_max: u64::MAX, ..Limits::default() };
    let server = shearwater_tower::serve(listener, router).limits(limits).connect_info();
    server.with_graceful_shutdown(async { drop(stopped.await) }).await.unwrap();
}

impl Served {
    /// Asks the server to drain and returns at once.
    pub(crate) fn begin_shutdown(&mut self) {
        self.stop.take();
    }

    /// Whether nothing is left of it.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Drains, and returns when the server has ended.
    pub(crate) fn shutdown(mut self) {
        self.begin_shutdown();
        self.thread.take().unwrap().join().unwrap();
    }
}
