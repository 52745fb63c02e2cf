//! Responses: streamed bodies, server-sent events.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use axum::routing::{get, post};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use testkit::TestClient;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio_util::io::ReaderStream;

use crate::files::Folder;
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

async fn count(body: Body) -> Result<String, StatusCode> {
    let length = body.into_data_stream().try_fold(0, async |sum, piece| Ok(sum + piece.len())).await;
    length.map(|length: usize| length.to_string()).map_err(|_| StatusCode::BAD_REQUEST)
}

async fn lines() -> Body {
    Body::from_stream(stream::iter(0..1000).map(|number| Ok::<_, std::io::Error>(format!("line {number}\n"))))
}

/// A body that fails after its first piece.
async fn broken() -> Response {
    let pieces = [Ok("begun, "), Err(std::io::Error::other("the disk is gone"))];
    Body::from_stream(stream::iter(pieces)).into_response()
}

fn app(folder: &Folder) -> Router {
    Router::new()
        .route("/file", get(download).post(upload))
        .route("/count", post(count))
        .route("/echo", post(async |body: Body| body))
        .route("/lines", get(lines))
        .route("/broken", get(broken))
        .layer(axum::extract::DefaultBodyLimit::disable())
        .with_state(Arc::new(folder.path("upload.bin")))
}

fn content() -> Vec<u8> {
    (0..FILE_BYTES).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect()
}

/// Splits `body` into chunks of these sizes, repeated.
fn chunked(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut rest = body;
    let mut out = Vec::new();
    for size in sizes.iter().cycle() {
        let (chunk, behind) = rest.split_at((*size).min(rest.len()));
        if chunk.is_empty() {
            break;
        }
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
        rest = behind;
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

#[test]
fn uploads_and_downloads_a_file() {
    let folder = Folder::new("streaming-file");
    let server = serve(app(&folder));
    assert_eq!(server.get("/file").status, 404);
    let sent = content();
    assert_eq!(server.ask("POST", "/file", &[], &sent).text(), FILE_BYTES.to_string());
    assert!(std::fs::read(folder.path("upload.bin")).unwrap() == sent, "the file differs");

    let got = server.get("/file");
    assert_eq!(got.field("content-disposition"), Some("attachment; filename=\"upload.bin\""));
    assert_eq!(got.content_length(), Some(FILE_BYTES));
    assert!(!got.is_chunked());
    assert!(got.body == sent, "what came down differs");
}

#[test]
fn receives_chunked_bodies() {
    let folder = Folder::new("streaming-chunked");
    let server = serve(app(&folder));
    let mut client = server.connect();
    let body = chunked(&content(), &[1, 7, 4096, 100_000]);
    client.send("POST /count HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(body);
    assert_eq!(client.response("POST").text(), FILE_BYTES.to_string());
}

/// The echo arrives while the request is still being sent.
#[test]
fn echoes_while_the_body_arrives() {
    let folder = Folder::new("streaming-echo");
    let server = serve(app(&folder));
    let mut client = server.connect();
    client.send("POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    assert_eq!(client.head().status, 200);
    assert_eq!(client.data(), b"first");
    client.send("6\r\nsecond\r\n");
    assert_eq!(client.data(), b"second");
    client.send("0\r\n\r\n");
    assert_eq!(client.data(), b"");
}

#[test]
fn sends_streams_in_chunks() {
    let folder = Folder::new("streaming-lines");
    let server = serve(app(&folder));
    let got = server.get("/lines");
    assert!(got.is_chunked());
    assert_eq!(got.content_length(), None);
    assert_eq!(got.text().lines().count(), 1000);
    assert!(got.text().ends_with("line 999\n"));
}

/// The client sees the failure: there is no last chunk and the connection closes. If the head wasn't sent yet, it gets
/// a `500` or nothing.
#[test]
fn cuts_off_a_body_that_fails() {
    let folder = Folder::new("streaming-broken");
    let server = serve(app(&folder));
    let mut client = server.connect();
    client.send("GET /broken HTTP/1.1\r\nHost: test\r\n\r\n");
    let bytes = client.rest();
    let text = String::from_utf8_lossy(&bytes);
    let whole = text.starts_with("HTTP/1.1 200") && text.ends_with("0\r\n\r\n");
    assert!(!whole, "a broken body ends like a whole one: {text}");
    let honest =
        ["", "HTTP/1.1 200", "HTTP/1.1 500"].iter().any(|start| text.get(..12).unwrap_or("") == *start);
    assert!(honest, "{text}");
    assert_eq!(server.get("/lines").status, 200, "others are served");
}

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

fn event_served() -> (Served, mpsc::Sender<Event>) {
    let (sender, events) = mpsc::channel(4);
    let feed = Arc::new(Mutex::new(Some(events)));
    (
        serve(Router::new().route("/events", get(subscribe)).route("/silent", get(silent)).with_state(feed)),
        sender,
    )
}

fn subscribed(server: &Served, path: &str) -> TestClient {
    let mut client = server.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\nAccept: text/event-stream\r\n\r\n"));
    let head = client.head();
    assert_eq!(head.status, 200);
    assert_eq!(head.field("content-type"), Some("text/event-stream"));
    assert_eq!(head.field("cache-control"), Some("no-cache"));
    assert!(head.is_chunked());
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
    let (server, sender) = event_served();
    let mut client = subscribed(&server, "/events");
    for number in 0..50 {
        sender.blocking_send(Event::default().event("tick").id(number.to_string()).data("a\nb")).unwrap();
        let text = event(&mut client);
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        lines.sort_unstable();
        assert_eq!(lines, ["data: a", "data: b", "event: tick", &format!("id: {number}")]);
    }
    drop(sender);
    assert_eq!(client.data(), b"", "the stream's end is the body's");
    assert_eq!(client.get("/missing").status, 404, "the connection stays open");
}

/// Driven by a timer of the runtime, without any request to wake the worker.
#[test]
fn sends_keep_alive_comments() {
    let (server, _sender) = event_served();
    let mut client = subscribed(&server, "/silent");
    for _ in 0..3 {
        assert_eq!(event(&mut client), ": still here\n\n");
    }
}
