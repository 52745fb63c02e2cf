//! The runtime of handlers: sockets, locks held across awaits.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use crate::serve::{serve, serve_at};

const CLIENTS: usize = 8;
const REQUESTS: usize = 50;

/// Sends a request to another server, as a gateway does.
async fn gateway(State(behind): State<SocketAddr>) -> Result<String, StatusCode> {
    let failed = |_| StatusCode::BAD_GATEWAY;
    let mut line = TcpStream::connect(behind).await.map_err(failed)?;
    let request = "GET /behind HTTP/1.1\r\nHost: behind\r\nConnection: close\r\n\r\n";
    line.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut response = String::new();
    line.read_to_string(&mut response).await.map_err(failed)?;
    response.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).ok_or(StatusCode::BAD_GATEWAY)
}

#[test]
fn requests_from_another_server() {
    // An address that no other test binds, so that nothing listens there afterwards.
    let router = Router::new().route("/behind", get(async || "from behind"));
    let behind = serve_at("127.66.0.2:0", async { router });
    let front = serve(Router::new().route("/", get(gateway)).with_state(behind.addr));
    assert_eq!(front.get("/").text(), "from behind");
    behind.shutdown();
    assert_eq!(front.get("/").status, 502);
}

/// A lock held across an await: the next waiter is woken from another task.
#[test]
fn passes_on_a_lock_held_across_awaits() {
    let number = async |State(last): State<Arc<Mutex<usize>>>| {
        let mut last = last.lock().await;
        let read = *last;
        tokio::task::yield_now().await;
        *last = read + 1;
        last.to_string()
    };
    let last = Arc::new(Mutex::new(0));
    let server = serve(Router::new().route("/", get(number)).with_state(Arc::clone(&last)));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = server.connect();
                for _ in 0..REQUESTS {
                    assert_eq!(client.get("/").status, 200);
                }
            });
        }
    });
    assert_eq!(*last.blocking_lock(), CLIENTS * REQUESTS);
}
