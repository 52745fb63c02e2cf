//! Trailers of requests and responses, as services read and send them.

use std::convert::Infallible;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, StreamBody};

use crate::served::{Served, drivers};

const GRPC: &str = "application/grpc";
/// A body that isn't sent together with its head.
const LARGE: &str = match str::from_utf8(&[b'x'; 0x5000]) {
    Ok(text) => text,
    Err(_) => "",
};

pub(crate) fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pairs = pairs.iter();
    pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
}

/// Returns a body of unknown length: the data if there is any, then the trailers.
fn streamed(data: Bytes, trailers: HeaderMap) -> Body {
    let data = (!data.is_empty()).then(|| Frame::data(data));
    let frames = data.into_iter().chain([Frame::trailers(trailers)]).map(Ok::<_, Infallible>);
    Body::new(StreamBody::new(stream::iter(frames)).boxed_unsync())
}

/// Returns a body of known length whose trailers are ready with it, or only later.
pub(crate) fn known(data: &'static str, is_late: bool) -> Body {
    let trailers = async move {
        if is_late {
            tokio::task::yield_now().await;
        }
        Some(Ok(fields(&[("x-sum", "1")])))
    };
    match data {
        "" => Body::new(Empty::<Bytes>::new().with_trailers(trailers)),
        _ => Body::new(Full::new(Bytes::from_static(data.as_bytes())).with_trailers(trailers)),
    }
}

/// Sends back a body with its trailers.
async fn echo(body: Body) -> Body {
    let Ok(all) = body.collect().await else { return Body::from("cut off") };
    let trailers = all.trailers().cloned().unwrap_or_default();
    streamed(all.to_bytes(), trailers)
}

async fn echo_elsewhere(body: Body) -> Body {
    tokio::spawn(echo(body)).await.expect("no panic")
}

/// Responds as a unary gRPC method that reverses its message.
async fn grpc(headers: HeaderMap, body: Body) -> Response {
    if headers.get(header::CONTENT_TYPE).is_none_or(|value| value != GRPC) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let message = body.collect().await.expect("a body").to_bytes();
    let (length, message) = message.split_at_checked(5).expect("a prefix");
    assert_eq!(length, [[0; 4].as_slice(), &[message.len() as u8]].concat());
    let reversed = [length.to_vec(), message.iter().rev().copied().collect()].concat();
    let trailers = fields(&[("grpc-status", "0"), ("grpc-message", "")]);
    ([(header::CONTENT_TYPE, GRPC)], streamed(reversed.into(), trailers)).into_response()
}

async fn header_only() -> Body {
    let trailers = [("x-a", "1"), ("content-type", "text/html"), ("set-cookie", "a=b"), ("x-b", "2")];
    streamed(Bytes::from_static(b"data"), fields(&trailers))
}

fn router() -> Router {
    let announced = || ([(header::TRAILER, "x-sum")], known("data", true));
    Router::new()
        .route("/echo", post(echo))
        .route("/elsewhere", post(echo_elsewhere))
        .route("/grpc", post(grpc))
        .route("/header-only", get(header_only))
        .route("/ready", get(|| async { known("data", false) }))
        .route("/large", get(|| async { known(LARGE, false) }))
        .route("/late", get(|| async { known("data", true) }))
        .route("/announced", get(async move || announced()))
        .route("/empty", get(|| async { known("", false) }))
        .route("/only", get(|| async { streamed(Bytes::new(), fields(&[("x-sum", "1")])) }))
}

/// Sends a request as pieces and returns the head and the rest of the response, as they are on the wire.
fn on_wire(served: &Served, pieces: &[&[u8]]) -> (String, String) {
    let mut client = served.connect();
    for piece in pieces {
        client.send(piece);
    }
    let response = String::from_utf8(client.rest()).expect("text");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

fn head(method: &str, target: &str, version: &str, lines: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/{version}\r\nHost: a\r\nConnection: close\r\n{lines}\r\n").into_bytes()
}

#[test]
fn services_read_and_send_trailers() {
    let chunked = |target| head("POST", target, "1.1", "Transfer-Encoding: chunked\r\n");
    let trailers = "0\r\nx-sum: 1\r\nx-sum: 2\r\ngrpc-status: 0\r\n\r\n";
    let sent = trailers.replace("grpc", "Authorization: x\r\nTrailer: y\r\nGRPC");
    for driver in drivers() {
        let served = Served::on(driver, router());
        for target in ["/echo", "/elsewhere"] {
            for (content, expected) in [("", ""), ("4\r\ndata\r\n", "4\r\ndata\r\n")] {
                let request = [&chunked(target)[..], content.as_bytes(), sent.as_bytes()].concat();
                for at in (1..request.len()).step_by(7) {
                    let (first, second) = request.split_at(at);
                    let (_, body) = on_wire(&served, &[first, second]);
                    assert_eq!(body, format!("{expected}{trailers}"), "{driver:?} {target} {at}");
                }
            }
            let (_, body) = on_wire(&served, &[&chunked(target), b"1\r\na\r\n0\r\n\r\n"]);
            assert_eq!(body, "1\r\na\r\n0\r\n\r\n", "none that weren't sent");
        }
        // The server rejects too many of them, whether or not the service waits for them.
        let many = format!("0\r\n{}\r\n", "A: b\r\n".repeat(33));
        let (head, _) = on_wire(&served, &[&chunked("/echo"), many.as_bytes()]);
        assert!(head.starts_with("HTTP/1.1 431 "), "{head}");
    }
}

#[test]
fn grpc_messages_have_their_status() {
    let lines = format!("TE: trailers\r\nContent-Type: {GRPC}\r\nContent-Length: 10\r\n");
    for driver in drivers() {
        let served = Served::on(driver, router());
        let (head, body) = on_wire(&served, &[&head("POST", "/grpc", "1.1", &lines), b"\0\0\0\0\x05hello"]);
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains(GRPC), "{head}");
        assert_eq!(body, "a\r\n\0\0\0\0\x05olleh\r\n0\r\ngrpc-status: 0\r\ngrpc-message: \r\n\r\n");
    }
}

#[test]
fn trailers_need_chunks() {
    const LENGTH: &str = "content-length: 4";
    const CHUNKED: &str = "transfer-encoding: chunked";
    let large = format!("5000\r\n{LARGE}\r\n0\r\nx-sum: 1\r\n\r\n");
    const TRAILERS: &str = "4\r\ndata\r\n0\r\nx-sum: 1\r\n\r\n";
    for driver in drivers() {
        let served = Served::on(driver, router());
        for (method, target, version, field, body) in [
            ("GET", "/header-only", "1.1", CHUNKED, "4\r\ndata\r\n0\r\nx-a: 1\r\nx-b: 2\r\n\r\n"),
            ("GET", "/ready", "1.1", CHUNKED, TRAILERS),
            ("GET", "/large", "1.1", CHUNKED, &large),
            ("GET", "/announced", "1.1", CHUNKED, TRAILERS),
            ("GET", "/only", "1.1", CHUNKED, "0\r\nx-sum: 1\r\n\r\n"),
            ("GET", "/empty", "1.1", CHUNKED, "0\r\nx-sum: 1\r\n\r\n"),
            // Its length is known, and trailers aren't.
            ("GET", "/late", "1.1", LENGTH, "data"),
            ("GET", "/ready", "1.0", LENGTH, "data"),
            ("GET", "/announced", "1.0", LENGTH, "data"),
            ("GET", "/header-only", "1.0", "connection: close", "data"),
            ("GET", "/only", "1.0", "connection: close", ""),
            ("HEAD", "/ready", "1.1", LENGTH, ""),
            ("HEAD", "/announced", "1.1", LENGTH, ""),
            ("HEAD", "/only", "1.1", "connection: close", ""),
        ] {
            let found = on_wire(&served, &[&head(method, target, version, "")]);
            let lines = found.0.to_ascii_lowercase();
            let case = format!("{driver:?} {method} {target} {version}: {found:?}");
            assert!(lines.contains(field), "{case}");
            assert_eq!(lines.contains(CHUNKED), field == CHUNKED, "{case}");
            assert_eq!(
                lines.contains("trailer: x-sum"),
                target == "/announced" && field == CHUNKED,
                "{case}"
            );
            assert_eq!(found.1, body, "{case}");
        }
    }
}
