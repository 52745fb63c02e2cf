//! Backpressure: a slow reader slows the sender down, and memory stays bounded in both directions.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::{get, post};
use futures_util::{StreamExt, stream};
use socket2::{Domain, Socket, Type};

use crate::client::{Client, get as ask_get};
use crate::gate::Gate;
use crate::serve::{Served, serve_with};

const BODY_BYTES: usize = 128 * 1024 * 1024;
const PIECE_BYTES: usize = 64 * 1024;
/// Maximum number of bytes in flight: the kernel's buffers on both sides, of a few MiB, and the server's.
const UNDERWAY_BYTES_MAX: usize = 48 * 1024 * 1024;
const CLIENT_BUFFER_BYTES: usize = 64 * 1024;
/// Time after which a write counts as blocked. Shorter makes the test weaker, never wrong.
const STUCK: Duration = Duration::from_millis(300);
/// Number of other requests served meanwhile, so that the server had turns to continue.
const TURNS: usize = 300;

#[derive(Clone, Default)]
struct Flow {
    /// Bytes that the application produced or received.
    passed: Arc<AtomicUsize>,
    gate: Gate,
}

async fn download(State(flow): State<Flow>) -> Body {
    let piece = Bytes::from(vec![b'x'; PIECE_BYTES]);
    let pieces = stream::iter(0..BODY_BYTES / PIECE_BYTES).map(move |_| {
        flow.passed.fetch_add(PIECE_BYTES, Ordering::SeqCst);
        Ok::<_, std::io::Error>(piece.clone())
    });
    Body::from_stream(pieces)
}

/// Reads one piece, and the rest once the gate is open.
async fn upload(State(flow): State<Flow>, body: Body) -> String {
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        flow.passed.fetch_add(piece.unwrap().len(), Ordering::SeqCst);
        flow.gate.passed().await;
    }
    flow.passed.load(Ordering::SeqCst).to_string()
}

fn served() -> (Served, Flow) {
    let flow = Flow::default();
    let app = Router::new()
        .route("/", get(async || "turn"))
        .route("/download", get(download))
        .route("/upload", post(upload))
        .layer(DefaultBodyLimit::disable())
        .with_state(flow.clone());
    (serve_with(app, |serve| serve.body_bytes_max(u64::MAX)), flow)
}

/// Connects with small buffers on the client's side.
fn narrow(addr: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(CLIENT_BUFFER_BYTES).unwrap();
    socket.set_send_buffer_size(CLIENT_BUFFER_BYTES).unwrap();
    socket.connect(&addr.into()).unwrap();
    socket.into()
}

/// Lets the server run turns, by other requests.
fn take_turns(addr: SocketAddr) {
    let mut other = Client::connect(addr);
    for _ in 0..TURNS {
        assert_eq!(other.ask("GET", "/", &[], b"").text(), "turn");
    }
}

#[test]
fn a_slow_reader_holds_the_stream_back() {
    let (server, flow) = served();
    let mut client = Client::over(narrow(server.addr));
    client.send("GET /download HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(client.head().status, 200);
    take_turns(server.addr);
    let made = flow.passed.load(Ordering::SeqCst);
    assert!(made <= UNDERWAY_BYTES_MAX, "{made} bytes were made for a client that reads nothing");

    let mut received = 0;
    while let Some(chunk) = client.chunk() {
        received += chunk.len();
        let underway = flow.passed.load(Ordering::SeqCst) - received;
        assert!(underway <= UNDERWAY_BYTES_MAX, "{underway} bytes underway after {received}");
    }
    assert_eq!(received, BODY_BYTES);
}

#[test]
fn a_slow_handler_holds_the_upload_back() {
    let (server, flow) = served();
    let mut stream = narrow(server.addr);
    stream.set_write_timeout(Some(STUCK)).unwrap();
    let head = format!("POST /upload HTTP/1.1\r\nHost: test\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let sent = send_until_stuck(&mut stream);
    assert!(sent <= UNDERWAY_BYTES_MAX, "{sent} bytes were taken for a handler that reads nothing");
    take_turns(server.addr);

    flow.gate.open();
    let mut client = Client::over(stream);
    let piece = vec![b'x'; PIECE_BYTES];
    let mut rest = BODY_BYTES - sent;
    while rest > 0 {
        let length = rest.min(PIECE_BYTES);
        client.send(&piece[..length]);
        rest -= length;
    }
    assert_eq!(client.response("POST").text(), BODY_BYTES.to_string());
    assert_eq!(ask_get(server.addr, "/").text(), "turn");
}

/// Sends a body until the server stops reading; returns the number of bytes sent.
fn send_until_stuck(stream: &mut TcpStream) -> usize {
    let piece = vec![b'x'; PIECE_BYTES];
    let mut sent = 0;
    while sent < BODY_BYTES {
        match stream.write(&piece[..PIECE_BYTES.min(BODY_BYTES - sent)]) {
            Ok(length) => sent += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("the upload broke off: {error}"),
        }
    }
    sent
}
