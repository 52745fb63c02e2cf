//! Streams: a file up and down, server-sent events.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Sse};
use axum::routing::get;
use futures_util::{Stream, StreamExt, stream};
use testkit::{TestClient, TestFolder};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio_util::io::ReaderStream;

use crate::serve::{Served, serve};

const FILE_BYTES: usize = 3 * 1024 * 1024 + 17;

type Target = Arc<PathBuf>;

async fn upload(State(path): State<Target>, body: Body) -> Result<String, StatusCode> {
    let failed = |_| StatusCode::INTERNAL_SERVER_ERROR;
    let mut file = tokio::fs::File::create(&*path).await.map_err(failed)?;
    let mut pieces = body.into_data_stream();
    let mut length = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| StatusCode::BAD_REQUEST)?;
        length += piece.len();
        file.write_all(&piece).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    Ok(length.to_string())
}

async fn download(State(path): State<Target>) -> Result<impl IntoResponse, StatusCode> {
    let file = tokio::fs::File::open(&*path).await.map_err(|_| StatusCode::NOT_FOUND)?;
    let length = file.metadata().await.map_err(|_| StatusCode::NOT_FOUND)?.len();
    let fields = [
        (header::CONTENT_LENGTH, length.to_string()),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"upload.bin\"".to_owned()),
    ];
    Ok((fields, Body::from_stream(ReaderStream::new(file))))
}

#[test]
fn uploads_and_downloads_a_file() {
    let sent: Vec<u8> = (0..FILE_BYTES).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect();
    let folder = TestFolder::new();
    let path = Arc::new(folder.at("upload.bin"));
    let app = || {
        let app = Router::new().route("/file", get(download).post(upload));
        app.layer(DefaultBodyLimit::disable()).with_state(Arc::clone(&path))
    };
    for server in serve(app) {
        assert_eq!(server.get("/file").status, 404);
        assert_eq!(server.ask("POST", "/file", &[], &sent).text(), FILE_BYTES.to_string());
        assert!(std::fs::read(&*path).unwrap() == sent, "the file differs");

        let got = server.get("/file");
        assert_eq!(got.field("content-disposition"), Some("attachment; filename=\"upload.bin\""));
        assert_eq!(got.content_length(), Some(FILE_BYTES));
        assert!(!got.is_chunked());
        assert!(got.body == sent, "what came down differs");
        std::fs::remove_file(&*path).unwrap();
    }
}

/// Taken by the only subscriber.
type Feed = Arc<Mutex<Option<mpsc::Receiver<Event>>>>;

async fn subscribe(State(feed): State<Feed>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = feed.lock().unwrap().take().unwrap();
    Sse::new(stream::unfold(events, async |mut events| Some((Ok(events.recv().await?), events))))
}

/// A stream without events.
async fn silent() -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let alive = KeepAlive::new().interval(Duration::from_millis(20)).text("still here");
    Sse::new(stream::pending().boxed()).keep_alive(alive)
}

fn subscribed(server: &Served, path: &str) -> TestClient {
    let mut client = server.connect();
    let head = client.ask("GET", path, &["Accept: text/event-stream"]).head();
    assert_eq!(head.status, 200);
    assert_eq!(head.field("content-type"), Some("text/event-stream"));
    assert_eq!(head.field("cache-control"), Some("no-cache"));
    assert_eq!(head.is_chunked(), !testkit::http2::is_on());
    client
}

/// Reads up to the empty line that ends an event, across chunks.
fn event(client: &mut TestClient) -> String {
    let mut text = String::new();
    while !text.ends_with("\n\n") {
        text.push_str(std::str::from_utf8(&client.data()).unwrap());
    }
    text
}

/// No buffering: the second event is sent only after the client has the first.
#[test]
fn delivers_events_immediately() {
    let feed = Feed::default();
    for server in serve(|| Router::new().route("/events", get(subscribe)).with_state(Arc::clone(&feed))) {
        let (sender, events) = mpsc::channel(4);
        *feed.lock().unwrap() = Some(events);
        let mut client = subscribed(&server, "/events");
        for number in 0..50 {
            let sent = Event::default().event("tick").id(number.to_string()).data("a\nb");
            sender.blocking_send(sent).unwrap();
            let text = event(&mut client);
            let mut lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
            lines.sort_unstable();
            assert_eq!(lines, ["data: a", "data: b", "event: tick", &format!("id: {number}")]);
        }
        drop(sender);
        assert_eq!(client.data(), b"", "the stream's end is the body's");
        assert_eq!(client.get("/missing").status, 404, "the connection stays open");
    }
}

/// Driven by a timer of the runtime, without any request to wake the worker.
#[test]
fn sends_keep_alive_comments() {
    for server in serve(|| Router::new().route("/silent", get(silent))) {
        let mut client = subscribed(&server, "/silent");
        for _ in 0..3 {
            assert_eq!(event(&mut client), ": still here\n\n");
        }
    }
}
