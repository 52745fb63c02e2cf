//! Connections: disconnects and graceful shutdown.

use std::future::pending;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, post};
use futures_util::{StreamExt, stream};
use socket2::SockRef;
use testkit::TIMEOUT;
use tokio::sync::{Semaphore, mpsc};

use crate::serve::{Served, serve};

#[derive(Debug, PartialEq, Eq)]
enum Told {
    Entered,
    Dropped,
}

/// Reports its creation and its drop.
struct Guard(SyncSender<Told>);

impl Guard {
    fn new(teller: &SyncSender<Told>) -> Self {
        teller.send(Told::Entered).unwrap();
        Self(teller.clone())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.send(Told::Dropped));
    }
}

async fn guard_wait(State(teller): State<SyncSender<Told>>) {
    let _guard = Guard::new(&teller);
    pending::<()>().await;
}

async fn stream_for_ever(State(teller): State<SyncSender<Told>>) -> Body {
    let guard = Guard::new(&teller);
    Body::from_stream(stream::repeat_with(move || {
        let _held = &guard;
        Ok::<_, std::io::Error>("again and again ")
    }))
}

/// Dropped with the body.
async fn read_to_end(State(teller): State<SyncSender<Told>>, body: Body) -> &'static str {
    let _guard = Guard::new(&teller);
    let mut pieces = body.into_data_stream();
    while let Some(Ok(_)) = pieces.next().await {}
    "read"
}

/// Sends a request, and checks that its handler is dropped when the client disconnects.
fn check_drop(server: &Served, told: &Receiver<Told>, (method, path): (&str, &str), with_reset: bool) {
    let mut client = server.connect();
    match method {
        "POST" => client.ask(method, path, &["Content-Length: 1000"]).send("the beginning"),
        _ => client.ask(method, path, &[]),
    };
    assert_eq!(told.recv_timeout(TIMEOUT), Ok(Told::Entered));
    if with_reset {
        SockRef::from(client.stream()).set_linger(Some(Duration::ZERO)).unwrap();
    }
    drop(client);
    assert_eq!(told.recv_timeout(TIMEOUT), Ok(Told::Dropped));
    assert_eq!(server.get("/").text(), "served");
}

#[test]
fn drops_handlers_and_bodies_of_clients_that_disconnect() {
    let (teller, told) = sync_channel(16);
    let app = || {
        Router::new()
            .route("/", get(async || "served"))
            .route("/wait", get(guard_wait))
            .route("/stream", get(stream_for_ever))
            .route("/read", post(read_to_end))
            .with_state(teller.clone())
    };
    for server in serve(app) {
        for request in [("GET", "/wait"), ("GET", "/stream"), ("POST", "/read")] {
            check_drop(&server, &told, request, false);
            check_drop(&server, &told, request, true);
        }
    }
}

/// A gate that each handler needs a permit for, and the sender by which it reports that it waits.
type Gate = (Arc<Semaphore>, mpsc::Sender<()>);

async fn wait_at((gate, entered): Gate) {
    entered.send(()).await.unwrap();
    gate.acquire().await.unwrap().forget();
}

async fn in_two(State(gate): State<Gate>) -> Body {
    let first = stream::iter(["first, "]);
    let last = stream::once(async { wait_at(gate).await }).map(|()| "last");
    Body::from_stream(first.chain(last).map(Ok::<_, std::io::Error>))
}

/// The server ends after the last response.
#[test]
fn shutdown_completes_requests_in_flight() {
    let (gate, (sender, mut entered)) = (Arc::new(Semaphore::new(0)), mpsc::channel(4));
    let app = || {
        Router::new()
            .route("/", get(async || "hello"))
            .route("/wait", get(async |State(gate): State<Gate>| wait_at(gate).await))
            .route("/in-two", get(in_two))
            .with_state((Arc::clone(&gate), sender.clone()))
    };
    for mut server in serve(app) {
        let mut idle = server.connect();
        assert_eq!(idle.get("/").text(), "hello");
        let (mut waiting, mut streaming) = (server.connect(), server.connect());
        waiting.ask("GET", "/wait", &[]);
        streaming.ask("GET", "/in-two", &[]);
        entered.blocking_recv().unwrap();
        entered.blocking_recv().unwrap();
        server.begin_shutdown();
        idle.is_ended();
        assert!(!server.has_ended(), "it ended with a response to send");
        gate.add_permits(2);
        assert_eq!(waiting.response("GET").status, 200);
        waiting.is_ended();
        assert_eq!(streaming.response("GET").text(), "first, last");
        streaming.is_ended();
        // A server may linger until clients close too, so that its last bytes arrive.
        drop((idle, waiting, streaming));
        server.shutdown();
    }
}
