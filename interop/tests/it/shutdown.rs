//! Graceful shutdown: requests in flight are completed, idle connections closed, new ones refused.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use futures_util::stream;
use tokio::sync::mpsc;

use crate::client::{Client, get as ask_get};
use crate::gate::Gate;
use crate::serve::{Served, serve_at};

/// The test's view of its application.
struct Held {
    server: Served,
    gate: Gate,
    entered: mpsc::Receiver<()>,
}

type App = (Gate, mpsc::Sender<()>);

async fn wait(State((gate, entered)): State<App>) -> &'static str {
    entered.send(()).await.unwrap();
    gate.passed().await;
    "answered"
}

async fn in_two(State((gate, entered)): State<App>) -> Body {
    let pieces = stream::unfold(0, move |at| {
        let (gate, entered) = (gate.clone(), entered.clone());
        async move {
            match at {
                0 => Some((Ok::<_, std::io::Error>("first, "), 1)),
                1 => {
                    entered.send(()).await.unwrap();
                    gate.passed().await;
                    Some((Ok("last"), 2))
                }
                _ => None,
            }
        }
    });
    Body::from_stream(pieces)
}

/// An address that no other test binds or connects from, so that nothing listens there afterwards.
const OWN_ADDRESS: &str = "127.66.0.1:0";

fn held() -> Held {
    let (gate, (sender, entered)) = (Gate::default(), mpsc::channel(4));
    let app = Router::new()
        .route("/", get(async || "hello"))
        .route("/wait", get(wait))
        .route("/in-two", get(in_two))
        .with_state((gate.clone(), sender));
    let server = serve_at(OWN_ADDRESS, async { app });
    Held { server, gate, entered }
}

fn asked(addr: SocketAddr, path: &str) -> Client {
    let mut client = Client::connect(addr);
    client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
    client
}

#[test]
fn what_was_asked_before_is_responded() {
    let Held { mut server, gate, mut entered } = held();
    let mut waiting = asked(server.addr, "/wait");
    let mut streaming = asked(server.addr, "/in-two");
    entered.blocking_recv().unwrap();
    entered.blocking_recv().unwrap();

    server.begin_shutdown();
    gate.open();
    let response = waiting.response("GET");
    assert_eq!((response.status(), response.text()), (200, "answered"));
    assert!(waiting.is_closed());
    assert_eq!(streaming.response("GET").text(), "first, last");
    assert!(streaming.is_closed());
    // A server may linger until clients close too, so that its last bytes arrive.
    drop((waiting, streaming));
    server.shutdown();
}

#[test]
fn an_idle_connection_is_closed() {
    let mut server = held().server;
    let mut idle = Client::connect(server.addr);
    assert_eq!(idle.ask("GET", "/", &[], b"").text(), "hello");
    server.begin_shutdown();
    assert!(idle.is_closed());
    drop(idle);
    server.shutdown();
}

#[test]
fn an_ended_server_takes_no_connection() {
    let server = held().server;
    let addr = server.addr;
    assert_eq!(ask_get(addr, "/").text(), "hello");
    server.shutdown();
    TcpStream::connect_timeout(&addr, Duration::from_secs(20)).expect_err("nobody listens any more");
}

/// `shutdown` returns only after the last response.
#[test]
fn the_end_waits_for_the_last_response() {
    let Held { mut server, gate, mut entered } = held();
    let mut idle = Client::connect(server.addr);
    assert_eq!(idle.ask("GET", "/", &[], b"").text(), "hello");
    let mut waiting = asked(server.addr, "/wait");
    entered.blocking_recv().unwrap();
    server.begin_shutdown();
    assert!(idle.is_closed(), "the drain has begun");
    assert!(!server.has_ended(), "it ended with an answer to give");
    gate.open();
    assert_eq!(waiting.response("GET").text(), "answered");
    drop((idle, waiting));
    server.shutdown();
}
