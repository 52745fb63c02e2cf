//! Server-sent events: prompt delivery, keep-alive comments, the end of the stream.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use axum::routing::get;
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::mpsc;

use crate::client::Client;
use crate::serve::{Served, serve};

type Events = mpsc::Receiver<Event>;
/// Taken by the only subscriber.
type Feed = Arc<Mutex<Option<Events>>>;

fn fed(events: Events) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(events, async |mut events| Some((Ok(events.recv().await?), events)))
}

async fn subscribe(State(feed): State<Feed>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    Sse::new(fed(feed.lock().unwrap().take().unwrap()))
}

/// A stream without events.
async fn silent() -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let alive = KeepAlive::new().interval(Duration::from_millis(20)).text("still here");
    Sse::new(stream::pending().boxed()).keep_alive(alive)
}

fn served() -> (Served, mpsc::Sender<Event>) {
    let (sender, events) = mpsc::channel(4);
    let feed = Arc::new(Mutex::new(Some(events)));
    (
        serve(Router::new().route("/events", get(subscribe)).route("/silent", get(silent)).with_state(feed)),
        sender,
    )
}

fn subscribed(server: &Served, path: &str) -> Client {
    let mut client = Client::connect(server.addr);
    client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\nAccept: text/event-stream\r\n\r\n"));
    let head = client.head();
    assert_eq!(head.status, 200);
    assert_eq!(head.field("content-type"), Some("text/event-stream"));
    assert_eq!(head.field("cache-control"), Some("no-cache"));
    assert!(head.is_chunked());
    client
}

/// Reads up to the empty line that ends an event, across chunks.
fn event(client: &mut Client) -> String {
    let mut text = String::new();
    while !text.ends_with("\n\n") {
        text.push_str(std::str::from_utf8(&client.chunk().expect("an event before the end")).unwrap());
    }
    text
}

/// No buffering: the second event is sent only after the client has the first.
#[test]
fn each_event_arrives_when_it_is_sent() {
    let (server, sender) = served();
    let mut client = subscribed(&server, "/events");
    for number in 0..50 {
        sender.blocking_send(Event::default().event("tick").id(number.to_string()).data("a\nb")).unwrap();
        let text = event(&mut client);
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        lines.sort_unstable();
        assert_eq!(lines, ["data: a", "data: b", "event: tick", &format!("id: {number}")]);
    }
    drop(sender);
    assert_eq!(client.chunk(), None, "the stream's end is the body's");
    assert_eq!(client.ask("GET", "/missing", &[], b"").status(), 404, "the connection stays open");
}

/// Driven by a timer of the runtime, without any request to wake the worker.
#[test]
fn a_silent_stream_is_kept_alive() {
    let (server, _sender) = served();
    let mut client = subscribed(&server, "/silent");
    for _ in 0..3 {
        assert_eq!(event(&mut client), ": still here\n\n");
    }
}
