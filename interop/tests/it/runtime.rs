//! The runtime of handlers: tasks, blocking work, timers, sockets, locks held across awaits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use crate::client::{Client, get as ask_get};
use crate::serve::{serve, serve_at};

const CLIENTS: usize = 8;
const REQUESTS: usize = 50;

/// Joined sub-tasks.
async fn spawned() -> String {
    let parts = (0..4_u32).map(|part| tokio::spawn(async move { part * part }));
    let mut sum = 0;
    for part in parts.collect::<Vec<_>>() {
        sum += part.await.unwrap();
    }
    sum.to_string()
}

async fn blocking() -> String {
    spawn_blocking(|| std::thread::current().name().is_some().to_string()).await.unwrap()
}

async fn slept() -> &'static str {
    tokio::time::sleep(Duration::from_millis(5)).await;
    "slept"
}

async fn given_up() -> &'static str {
    match tokio::time::timeout(Duration::from_millis(5), std::future::pending::<()>()).await {
        Ok(()) => "it came",
        Err(_) => "given up",
    }
}

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
fn tasks_blocking_work_and_timers_run() {
    let app = Router::new()
        .route("/spawned", get(spawned))
        .route("/blocking", get(blocking))
        .route("/slept", get(slept))
        .route("/given-up", get(given_up));
    let server = serve(app);
    let mut client = Client::connect(server.addr);
    for (path, text) in
        [("/spawned", "14"), ("/blocking", "true"), ("/slept", "slept"), ("/given-up", "given up")].repeat(5)
    {
        assert_eq!(client.ask("GET", path, &[], b"").text(), text, "{path}");
    }
}

#[test]
fn a_handler_may_ask_another_server() {
    // An address that no other test binds, so that nothing listens there afterwards.
    let router = Router::new().route("/behind", get(async || "from behind"));
    let behind = serve_at("127.66.0.2:0", async { router });
    let front = serve(Router::new().route("/", get(gateway)).with_state(behind.addr));
    assert_eq!(ask_get(front.addr, "/").text(), "from behind");
    behind.shutdown();
    assert_eq!(ask_get(front.addr, "/").status(), 502);
}

/// A lock held across an await: the next waiter is woken from another task.
#[test]
fn a_lock_across_waits_is_passed_on() {
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
                let mut client = Client::connect(server.addr);
                for _ in 0..REQUESTS {
                    assert_eq!(client.ask("GET", "/", &[], b"").status(), 200);
                }
            });
        }
    });
    assert_eq!(*last.blocking_lock(), CLIENTS * REQUESTS);
}
