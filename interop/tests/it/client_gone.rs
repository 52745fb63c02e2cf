//! Disconnects: the handler and the body stream are dropped.

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

use crate::client::{Client, get as ask_get};
use crate::serve::{Served, serve};

const WAIT_MAX: Duration = Duration::from_secs(20);

#[derive(Debug, PartialEq, Eq)]
enum Told {
    Entered,
    Dropped,
}

/// Reports its creation and its drop.
struct Guard(SyncSender<Told>);

impl Guard {
    fn new(teller: &Arc<SyncSender<Told>>) -> Self {
        teller.send(Told::Entered).unwrap();
        Self(SyncSender::clone(teller))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.send(Told::Dropped));
    }
}

async fn wait(State(teller): State<Arc<SyncSender<Told>>>) {
    let _guard = Guard::new(&teller);
    pending::<()>().await;
}

async fn stream_for_ever(State(teller): State<Arc<SyncSender<Told>>>) -> Body {
    let guard = Guard::new(&teller);
    Body::from_stream(stream::repeat_with(move || {
        let _held = &guard;
        Ok::<_, std::io::Error>("again and again ")
    }))
}

/// Dropped with the body.
async fn read_to_end(State(teller): State<Arc<SyncSender<Told>>>, body: Body) -> &'static str {
    let _guard = Guard::new(&teller);
    let mut pieces = body.into_data_stream();
    while let Some(Ok(_)) = pieces.next().await {}
    "read"
}

fn served() -> (Served, Receiver<Told>) {
    let (teller, told) = sync_channel(16);
    let app = Router::new()
        .route("/", get(async || "served"))
        .route("/wait", get(wait))
        .route("/stream", get(stream_for_ever))
        .route("/read", post(read_to_end))
        .with_state(Arc::new(teller));
    (serve(app), told)
}

/// Drops the handler when its client disconnects.
fn check(server: &Served, told: &Receiver<Told>, request: &str, with_reset: bool) {
    let mut client = Client::connect(server.addr);
    client.send(request);
    assert_eq!(told.recv_timeout(WAIT_MAX), Ok(Told::Entered));
    if with_reset {
        SockRef::from(client.stream()).set_linger(Some(Duration::ZERO)).unwrap();
    }
    drop(client);
    assert_eq!(told.recv_timeout(WAIT_MAX), Ok(Told::Dropped));
    assert_eq!(ask_get(server.addr, "/").text(), "served");
}

const WAIT: &str = "GET /wait HTTP/1.1\r\nHost: test\r\n\r\n";
const STREAM: &str = "GET /stream HTTP/1.1\r\nHost: test\r\n\r\n";
const READ: &str = "POST /read HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nthe beginning";

#[test]
fn a_waiting_handler_is_dropped_on_a_close() {
    let (server, told) = served();
    check(&server, &told, WAIT, false);
}

#[test]
fn a_waiting_handler_is_dropped_on_a_reset() {
    let (server, told) = served();
    check(&server, &told, WAIT, true);
}

#[test]
fn a_stream_is_dropped_when_nobody_reads_it() {
    let (server, told) = served();
    check(&server, &told, STREAM, false);
    check(&server, &told, STREAM, true);
}

#[test]
fn a_handler_that_reads_sees_the_end_or_is_dropped() {
    let (server, told) = served();
    check(&server, &told, READ, false);
    check(&server, &told, READ, true);
}
