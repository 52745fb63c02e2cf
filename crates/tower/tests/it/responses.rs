//! Responses of services on the wire.

use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Buf;
use futures_util::{StreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};

use crate::served::{Served, drivers, here};

/// A body of pieces that are ready immediately, with an optional error at the end.
fn pieces(count: usize, fails: bool) -> Body {
    let pieces = (0..count).map(|number| Ok(format!("piece {number}\n")));
    let end = fails.then(|| Err(Error::other("as the test wants it")));
    Body::from_stream(stream::iter(pieces.chain(end)))
}

/// The same body with a delay before each piece.
fn late_pieces(count: usize, fails: bool) -> Body {
    Body::from_stream(StreamExt::then(pieces(count, fails).into_data_stream(), |piece| async {
        tokio::task::yield_now().await;
        piece
    }))
}

/// A body with a known length, and one with a length in the header only.
async fn long() -> Vec<u8> {
    vec![b'x'; 300_000]
}

async fn announced() -> Response {
    ([(header::CONTENT_LENGTH, "16")], pieces(2, false)).into_response()
}

async fn cut_short() -> Response {
    ([(header::CONTENT_LENGTH, "100")], late_pieces(2, false)).into_response()
}

async fn with_trailers() -> Response {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-trailer", HeaderValue::from_static("1"));
    let frames = [Ok::<_, Error>(Frame::data(Bytes::from("data"))), Ok(Frame::trailers(trailers))];
    Body::new(StreamBody::new(stream::iter(frames)).boxed_unsync()).into_response()
}

async fn own_fields() -> Response {
    let fields = [
        (header::DATE, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (header::SERVER, "another"),
        (header::TRANSFER_ENCODING, "gzip"),
        (header::TRAILER, "x-trailer"),
        (header::ETAG, "\"1\""),
    ];
    (fields, "fields").into_response()
}

fn router() -> Router {
    Router::new()
        .route("/pieces", get(|| async { pieces(3, false) }))
        .route("/late", get(|| async { late_pieces(3, false) }))
        .route("/long", get(long))
        .route("/announced", get(announced))
        .route("/cut-short", get(cut_short))
        .route("/fails-at-once", get(|| async { pieces(0, true) }))
        .route("/fails-later", get(|| async { late_pieces(2, true) }))
        .route("/trailers", get(with_trailers))
        .route("/fields", get(own_fields))
        .route("/empty", get(|| async {}))
        .route("/204", get(|| async { StatusCode::NO_CONTENT }))
        .route("/205", get(|| async { (StatusCode::RESET_CONTENT, "not sent") }))
        .route("/205-pieces", get(|| async { (StatusCode::RESET_CONTENT, late_pieces(3, false)) }))
        .route("/304", get(|| async { (StatusCode::NOT_MODIFIED, [(header::ETAG, "\"1\"")]) }))
        .route("/299", get(|| async { (StatusCode::from_u16(299).expect("three digits"), "odd") }))
        .route("/999", get(|| async { (StatusCode::from_u16(999).expect("three digits"), "odd") }))
        .route("/101", get(|| async { StatusCode::SWITCHING_PROTOCOLS }))
        .route("/close", get(|| async { ([(header::CONNECTION, "close")], "closed") }))
}

/// On one connection: nothing of a body follows the response to a `HEAD` request.
#[test]
fn frames_each_response() {
    const CHUNKED: &str = "chunked";
    let pieces = "piece 0\npiece 1\npiece 2\n";
    let long = "x".repeat(300_000);
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        for (request, status, length, coding, body) in [
            ("GET /late", 200, None, Some(CHUNKED), pieces),
            ("GET /long", 200, Some("300000"), None, &long),
            ("GET /announced", 200, Some("16"), None, "piece 0\npiece 1\n"),
            ("GET /empty", 200, Some("0"), None, ""),
            ("GET /204", 204, None, None, ""),
            ("GET /205", 205, Some("0"), None, ""),
            ("GET /205-pieces", 205, Some("0"), None, ""),
            ("GET /304", 304, None, None, ""),
            ("GET /299", 299, Some("3"), None, "odd"),
            ("GET /999", 500, Some("3"), None, "odd"),
            ("HEAD /pieces", 200, None, None, ""),
            ("HEAD /late", 200, None, None, ""),
            ("HEAD /long", 200, Some("300000"), None, ""),
            ("HEAD /announced", 200, Some("16"), None, ""),
            ("HEAD /empty", 200, Some("0"), None, ""),
            ("HEAD /205-pieces", 205, Some("0"), None, ""),
            ("GET /pieces", 200, None, Some(CHUNKED), pieces),
            // The server's own response, after which the connection is closed.
            ("GET /101", 500, Some("22"), None, "Internal Server Error\n"),
        ] {
            let (method, target) = request.split_once(' ').expect("a method and a target");
            let coding = coding.filter(|_| !testkit::http2::is_on());
            let response = client.request(method, target, &[]);
            let framing = (response.field("content-length"), response.field("transfer-encoding"));
            assert_eq!((response.status, framing), (status, (length, coding)), "{driver:?} {request}");
            assert!(response.text() == body, "{driver:?} {request}: {} bytes", response.body.len());
        }
    }
}

#[test]
fn keeps_http_1_0_connections_if_the_end_is_known() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        for (method, target, connection) in [
            ("HEAD", "/late", "keep-alive"),
            ("GET", "/204", "keep-alive"),
            ("GET", "/205-pieces", "keep-alive"),
            ("GET", "/304", "keep-alive"),
            ("GET", "/announced", "keep-alive"),
            ("HEAD", "/pieces", "keep-alive"),
            ("GET", "/299", "keep-alive"),
            ("GET", "/late", "close"),
        ] {
            client.send(format!("{method} {target} HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"));
            let response = client.response(method);
            assert_eq!(response.field("connection"), Some(connection), "{method} {target}");
            if connection == "close" {
                assert_eq!(
                    response.text(),
                    "piece 0\npiece 1\npiece 2\n",
                    "the end of the connection ends it"
                );
            }
        }
    }
}

#[test]
fn drops_connection_headers_of_the_service() {
    let served = Served::new(router());
    let mut client = served.connect();
    let response = client.get("/fields");
    assert_eq!((response.text(), response.field("etag")), ("fields", Some("\"1\"")));
    assert_eq!(response.field("server"), Some("shearwater"));
    assert!(response.field("date").is_some_and(|date| !date.contains("1970")), "{response:?}");
    assert_eq!((response.field("transfer-encoding"), response.field("trailer")), (None, None));
    let response = client.request("GET", "/trailers", &["TE: trailers"]);
    assert_eq!(response.text(), "data");
    let response = client.get("/close");
    assert_eq!(response.text(), "closed");
    client.ends_after(&response);
}

#[test]
fn closes_without_reset_despite_late_requests() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        for target in ["/long", "/late", "/empty"] {
            let mut client = served.connect();
            client.ask("GET", target, &["Connection: close"]);
            while let Err(error) = client.stream().peek(&mut [0]) {
                assert_eq!(error.kind(), ErrorKind::Interrupted, "{target}: {error}");
            }
            client.ask("GET", target, &[]).ask("GET", target, &[]);
            assert_eq!(client.response("GET").status, 200, "{target}");
            client.is_ended();
            client.ask("GET", target, &[]).end_sending().is_ended();
        }
        assert_eq!(served.totals().connections_reset, 0);
    }
}

#[test]
fn cuts_off_responses_that_fail() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let response = served.connect().get("/fails-at-once");
        assert_eq!(response.status, 500);
        let mut client = served.connect();
        client.ask("GET", "/fails-later", &[]);
        assert_eq!(client.head().status, 200);
        assert_eq!([client.data(), client.data()], [b"piece 0\n", b"piece 1\n"]);
        assert_eq!(client.body_or_cut(), (Vec::new(), true));
        let mut client = served.connect();
        client.ask("GET", "/cut-short", &[]);
        assert_eq!(client.head().field("content-length"), Some("100"));
        assert_eq!(client.body_or_cut(), (b"piece 0\npiece 1\n".to_vec(), true));
        assert_eq!(served.connect().get("/empty").status, 200);
    }
}

#[test]
fn stops_polling_the_body_for_a_slow_client() {
    const PIECE: usize = 64 * 1024;
    const PIECES: usize = 1024;
    for driver in drivers() {
        let made = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&made);
        let body = move || {
            let made = Arc::clone(&counted);
            async move {
                let pieces = (0..PIECES).map(move |number| {
                    made.fetch_add(1, Ordering::Relaxed);
                    Ok::<_, Error>(vec![number as u8; PIECE])
                });
                Body::from_stream(stream::iter(pieces))
            }
        };
        let served = Served::on(driver, Router::new().route("/", get(body)));
        let mut client = served.connect();
        client.ask("GET", "/", &[]);
        assert_eq!(client.head().status, 200);
        still(&made);
        let last = made.load(Ordering::Relaxed);
        assert!(last < PIECES / 2, "{last} pieces were made for a client that takes none");
        let mut len = 0;
        loop {
            match client.data().len() {
                0 => break,
                more => len += more,
            }
        }
        assert_eq!(len, PIECE * PIECES);
    }
}

/// A body of one piece that reports how much of it has been consumed.
struct OnePiece {
    left: usize,
    taken: Arc<AtomicUsize>,
}

/// Zeros.
static ZEROS: [u8; 64 * 1024 * 1024] = [0; 64 * 1024 * 1024];

impl Buf for OnePiece {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        &ZEROS[..self.left]
    }

    fn advance(&mut self, count: usize) {
        self.left -= count;
        self.taken.fetch_add(count, Ordering::Relaxed);
    }
}

#[test]
fn splits_a_long_piece_for_a_slow_client() {
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&taken);
    let service = tower::service_fn(move |_: axum::http::Request<shearwater_tower::Body>| {
        let piece = OnePiece { left: ZEROS.len(), taken: Arc::clone(&counted) };
        async { Ok::<_, Error>(axum::http::Response::new(http_body_util::Full::new(piece))) }
    });
    let served = Served::of(here(service));
    let mut client = served.connect();
    client.ask("GET", "/", &[]);
    assert_eq!(client.head().field("content-length"), Some(ZEROS.len().to_string().as_str()));
    still(&taken);
    let before = taken.load(Ordering::Relaxed);
    assert!(before < ZEROS.len() / 2, "{before} bytes were taken for a client that takes none");
    assert!(client.body() == ZEROS);
}

/// Waits until a number stays the same for many checks in a row.
fn still(number: &AtomicUsize) {
    let (mut last, mut looks) = (0, 0);
    while looks < 2000 {
        let now = number.load(Ordering::Relaxed);
        looks = if now == last { looks + 1 } else { 0 };
        last = now;
        std::thread::yield_now();
    }
}

#[test]
fn responds_500_if_the_service_fails() {
    let service = tower::service_fn(|request: axum::http::Request<shearwater_tower::Body>| async move {
        let path = request.uri().path();
        if path == "/fails/late" {
            tokio::task::yield_now().await;
        }
        match path {
            "/" => Ok(axum::http::Response::new(http_body_util::Full::new(Bytes::from("served")))),
            _ => Err(Error::other("as the test wants it")),
        }
    });
    let see = |_: &shearwater::Request, response: &mut shearwater::Response| {
        let status = response.status_code();
        response.field("Seen", status.to_string());
    };
    let app = shearwater::App::new().with(shearwater::after(see));
    let served = Served::of(here(service).fast(app));
    assert_eq!(served.connect().get("/").text(), "served");
    for target in ["/fails", "/fails/late"] {
        let response = served.connect().get(target);
        assert_eq!((response.status, response.field("Seen")), (500, Some("500")), "{target}");
        assert_eq!(response.text(), "Internal Server Error\n");
    }
}
