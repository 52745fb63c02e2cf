//! Responses of services on the client.

use std::io::Error;
use std::io::ErrorKind;
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
use shearwater::Verbosity;

use crate::served::{Served, drivers};

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

#[test]
fn pieces_come_as_they_are_made_on_every_driver() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        assert_eq!(client.request("GET", "/pieces", &[]).text(), "piece 0\npiece 1\npiece 2\n");
        let response = client.request("GET", "/late", &[]);
        assert_eq!(
            (response.text(), response.field("transfer-encoding")),
            ("piece 0\npiece 1\npiece 2\n", Some("chunked"))
        );
        assert_eq!(client.request("GET", "/empty", &[]).field("content-length"), Some("0"));
        // Without chunks the body ends with the connection.
        client.send("GET /late HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(client.response("GET").text(), "piece 0\npiece 1\npiece 2\n");
    }
}

#[test]
fn what_is_known_of_the_length_is_said() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        let response = client.request("GET", "/long", &[]);
        assert_eq!(response.field("content-length"), Some("300000"));
        assert!(response.body == vec![b'x'; 300_000]);
        let response = client.request("GET", "/announced", &[]);
        assert_eq!((response.text(), response.field("content-length")), ("piece 0\npiece 1\n", Some("16")));
        for (target, length) in
            [("/long", Some("300000")), ("/announced", Some("16")), ("/pieces", None), ("/empty", Some("0"))]
        {
            assert_eq!(client.request("HEAD", target, &[]).field("content-length"), length, "{target}");
        }
        assert_eq!(
            client.request("GET", "/empty", &[]).status,
            200,
            "nothing of a body was sent behind a HEAD"
        );
    }
}

#[test]
fn each_status_has_the_form_that_http_gives_it() {
    let served = Served::new(router());
    let mut client = served.connect();
    for (target, status, length) in [
        ("/204", 204, None),
        ("/205", 205, Some("0")),
        ("/205-pieces", 205, Some("0")),
        ("/304", 304, None),
        ("/999", 500, Some("3")),
        ("/299", 299, Some("3")),
        // The server's own response, after which the connection is closed.
        ("/101", 500, Some("22")),
    ] {
        let response = client.request("GET", target, &[]);
        assert_eq!((response.status, response.field("content-length")), (status, length), "{target}");
    }
}

#[test]
fn a_head_of_unknown_length_has_no_transfer_encoding() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        for target in ["/pieces", "/late", "/205-pieces"] {
            let response = client.request("HEAD", target, &[]);
            let length = (target == "/205-pieces").then_some("0");
            assert_eq!(
                (response.field("transfer-encoding"), response.field("content-length")),
                (None, length),
                "{target}"
            );
        }
        assert_eq!(client.request("GET", "/announced", &[]).text(), "piece 0\npiece 1\n");
    }
}

#[test]
fn http_1_0_keeps_its_connection_where_the_end_of_the_response_is_known() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        for (method, target) in [
            ("HEAD", "/late"),
            ("GET", "/204"),
            ("GET", "/205-pieces"),
            ("GET", "/304"),
            ("GET", "/announced"),
            ("HEAD", "/pieces"),
            ("GET", "/299"),
        ] {
            client.send(format!("{method} {target} HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"));
            assert_eq!(client.response(method).field("connection"), Some("keep-alive"), "{method} {target}");
        }
    }
}

#[test]
fn fields_of_the_connection_are_the_servers_own() {
    let served = Served::new(router());
    let mut client = served.connect();
    // The client checks that `Date` and `Server` occur once.
    let response = client.request("GET", "/fields", &[]);
    assert_eq!((response.text(), response.field("etag")), ("fields", Some("\"1\"")));
    assert_eq!((response.field("transfer-encoding"), response.field("trailer")), (None, None));
    let response = client.request("GET", "/trailers", &["TE: trailers"]);
    assert_eq!(response.text(), "data");
    let response = client.request("GET", "/close", &[]);
    assert_eq!((response.text(), response.field("connection")), ("closed", Some("close")));
    client.is_ended();
}

#[test]
fn what_comes_late_behind_the_last_request_resets_nothing() {
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
fn what_can_not_be_completed_is_not_ended_as_if_it_were() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let response = served.connect().request("GET", "/fails-at-once", &[]);
        assert_eq!(response.status, 500);
        let mut client = served.connect();
        client.ask("GET", "/fails-later", &[]);
        assert_eq!(client.head().status, 200);
        assert_eq!(client.rest(), b"8\r\npiece 0\n\r\n8\r\npiece 1\n\r\n", "no last chunk");
        let mut client = served.connect();
        client.ask("GET", "/cut-short", &[]);
        assert_eq!(client.head().field("content-length"), Some("100"));
        assert_eq!(client.rest(), b"piece 0\npiece 1\n");
        assert_eq!(served.connect().request("GET", "/empty", &[]).status, 200);
    }
}

#[test]
fn a_slow_client_holds_the_body_up() {
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
fn a_slow_client_holds_a_long_piece_up() {
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&taken);
    let service = tower::service_fn(move |_: axum::http::Request<shearwater_tower::Body>| {
        let piece = OnePiece { left: ZEROS.len(), taken: Arc::clone(&counted) };
        async { Ok::<_, Error>(axum::http::Response::new(http_body_util::Full::new(piece))) }
    });
    let served =
        Served::of(shearwater_tower::bind("127.0.0.1:0", service).workers(1).verbosity(Verbosity::Off));
    let mut client = served.connect();
    client.ask("GET", "/", &[]);
    assert_eq!(client.head().field("content-length"), Some(ZEROS.len().to_string().as_str()));
    still(&taken);
    let before = taken.load(Ordering::Relaxed);
    assert!(before < ZEROS.len() / 2, "{before} bytes were taken for a client that takes none");
    assert!(client.exactly(ZEROS.len()) == ZEROS);
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
fn a_service_that_fails_is_a_500() {
    let service = tower::service_fn(|request: axum::http::Request<shearwater_tower::Body>| async move {
        match request.uri().path() {
            "/fails" => Err(Error::other("as the test wants it")),
            _ => Ok(axum::http::Response::new(http_body_util::Full::new(Bytes::from("served")))),
        }
    });
    let served =
        Served::of(shearwater_tower::bind("127.0.0.1:0", service).workers(1).verbosity(Verbosity::Off));
    let mut client = served.connect();
    assert_eq!(client.request("GET", "/", &[]).text(), "served");
    assert_eq!(client.request("GET", "/fails", &[]).status, 500);
}
