//! HTTP/2: responses, trailers and streams of unchanged axum routers.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use futures_util::{StreamExt, stream};
use h2::Reason;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::Notify;

use crate::http2_client::{Client, OnHyper, piece, receive, run, send_all};
use crate::served::{Served, drivers, here};
use crate::trailers::{fields, known};

/// More than the windows of a stream and of a connection.
const LARGE_BYTES: usize = 1 << 20;

/// Serves on each driver, or skips over TLS.
fn each_driver(router: impl Fn() -> Router, test: impl AsyncFn(Client)) {
    if testkit::tls::skips("the client is in clear") {
        return;
    }
    for driver in drivers() {
        println!("on {driver:?}");
        let served = Served::of(here(router()).driver(driver).upgrades_streams());
        run(async { test(Client::connect(served.address).await).await });
    }
}

/// Does the same, and once more on hyper.
fn each_driver_and_hyper(router: impl Fn() -> Router, test: impl AsyncFn(Client)) {
    if testkit::tls::skips("the client is in clear") {
        return;
    }
    println!("on hyper");
    let hyper = OnHyper::new(router());
    run(async { test(Client::connect(hyper.address).await).await });
    each_driver(router, test);
}

/// Sends back content and trailers once both are complete, with the request's `TE`.
async fn echo(request: HeaderMap, body: Body) -> Response {
    let all = body.collect().await.expect("a whole body");
    let trailers = all.trailers().cloned();
    let frames = [Frame::data(all.to_bytes())].into_iter().chain(trailers.map(Frame::trailers));
    let body = Body::new(StreamBody::new(stream::iter(frames.map(Ok::<_, Infallible>))));
    let te = request.get(header::TE).map_or("", |value| value.to_str().expect("ASCII"));
    ([("x-te", te)], body).into_response()
}

async fn echo_elsewhere(request: HeaderMap, body: Body) -> Response {
    tokio::spawn(echo(request, body)).await.expect("no panic")
}

fn trailers() -> Router {
    let announced = || ([(header::TRAILER, "x-sum")], known("data", true));
    let only = || Frame::trailers(fields(&[("x-sum", "1")]));
    let only = move || Body::new(StreamBody::new(stream::iter([Ok::<Frame<Bytes>, Infallible>(only())])));
    Router::new()
        .route("/echo", post(echo))
        .route("/elsewhere", post(echo_elsewhere))
        .route("/ready", get(|| async { known("data", false) }))
        .route("/late", get(|| async { known("data", true) }))
        .route("/announced", get(async move || announced()))
        .route("/empty", get(|| async { known("", false) }))
        .route("/only", get(async move || only()))
}

#[test]
fn trailers_reach_services_and_clients() {
    let sent = fields(&[("x-sum", "2"), ("grpc-status", "0")]);
    let large = vec![b'x'; LARGE_BYTES];
    each_driver_and_hyper(trailers, async |mut client| {
        for target in ["/echo", "/elsewhere"] {
            for body in [&b""[..], b"data", &large] {
                let length = body.len().to_string();
                for request in [&[("te", "trailers")][..], &[("te", "trailers"), ("content-length", &length)]]
                {
                    // Content of length 0 is no content.
                    if body.is_empty() && request.len() > 1 {
                        continue;
                    }
                    let response =
                        client.post(target, request, body, Some(sent.clone())).await.expect("whole");
                    assert_eq!(response.trailers, sent, "{target} {request:?}");
                    assert_eq!(response.field("x-te"), Some("trailers"));
                    assert!(response.body == body, "{} bytes of {length}", response.body.len());
                }
            }
            let response = client.post(target, &[], b"data", None).await.expect("whole");
            assert_eq!((response.text(), response.trailers.len()), ("data", 0));
        }
        for (target, length, body) in [
            ("/ready", Some("4"), "data"),
            ("/late", Some("4"), "data"),
            ("/announced", Some("4"), "data"),
            ("/only", None, ""),
        ] {
            let response = client.get(target).await.expect("whole");
            assert_eq!((response.field("content-length"), response.text()), (length, body), "{target}");
            assert_eq!(response.trailers, fields(&[("x-sum", "1")]), "{target}");
            assert_eq!(response.field("trailer").is_some(), target == "/announced", "{target}");
        }
        let response = client.get("/empty").await.expect("whole");
        assert_eq!((response.text(), &response.trailers), ("", &fields(&[("x-sum", "1")])));
        let (response, _) = client.begin("HEAD", "/ready", &[], true).await;
        let response = receive(response).await.expect("whole");
        assert_eq!((response.field("content-length"), response.trailers.len()), (Some("4"), 0));
    });
}

fn connection_fields() -> Router {
    const OF_CONNECTIONS: [(&str, &str); 5] = [
        ("connection", "close, x-own"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
    ];
    let streamed = || Body::from_stream(stream::iter([Ok::<_, Infallible>("pieces")]));
    Router::new()
        .route("/whole", any(|| async { (OF_CONNECTIONS, "whole") }))
        .route("/pieces", any(async move || (OF_CONNECTIONS, streamed())))
        .route("/late", any(async |_: Bytes| (OF_CONNECTIONS, "late")))
        .route("/switch", get((StatusCode::SWITCHING_PROTOCOLS, [("upgrade", "websocket")])))
}

#[test]
fn fields_of_connections_are_dropped() {
    each_driver(connection_fields, async |mut client| {
        for (target, text) in [("/whole", "whole"), ("/pieces", "pieces"), ("/late", "late")] {
            let response = client.post(target, &[], b"content", None).await.expect("whole");
            assert_eq!(response.text(), text);
            let names = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
            assert!(names.iter().all(|name| response.field(name).is_none()), "{:?}", response.head);
            assert_eq!(response.field("date").map(str::len), Some(29));
        }
        // The connection has survived `Connection: close`. It can't be upgraded.
        let response = client.get("/switch").await.expect("whole");
        assert_eq!(
            (response.head.status, response.field("upgrade")),
            (StatusCode::INTERNAL_SERVER_ERROR, None)
        );
        let (response, _) = client.begin("CONNECT", "", &[], true).await;
        let error = receive(response).await.map(|response| response.head.status);
        assert!(error.as_ref().is_ok_and(StatusCode::is_server_error), "{error:?}");
    });
}

/// Sends back each piece when it arrives.
async fn mirror(body: Body) -> Body {
    Body::from_stream(body.into_data_stream())
}

async fn whole(body: Bytes) -> Bytes {
    body
}

#[test]
fn bodies_stream_both_ways_at_once() {
    let routes = || Router::new().route("/mirror", post(mirror)).route("/whole", post(whole));
    each_driver_and_hyper(routes, async |mut client| {
        let (response, mut stream) = client.begin("POST", "/mirror", &[], false).await;
        send_all(&mut stream, b"first", false).await;
        let mut content = response.await.expect("a head").into_body();
        for (expected, next) in [("first", "second"), ("second", "third"), ("third", "")] {
            assert_eq!(piece(&mut content).await.expect("open").expect("a piece"), expected);
            send_all(&mut stream, next.as_bytes(), next == "third").await;
        }
        assert!(piece(&mut content).await.is_none());

        let large: Vec<u8> = (0..LARGE_BYTES).map(|at| (at % 251) as u8).collect();
        for target in ["/mirror", "/whole"] {
            let response = client.post(target, &[], &large, None).await.expect("whole");
            assert!(response.body == large, "{target}: {} bytes", response.body.len());
        }
    });
}

#[test]
fn a_client_sends_no_more_than_a_slow_service_reads() {
    const LEN: usize = 8 << 20;
    let reads = Arc::new(Notify::new());
    let routes = || {
        let reads = Arc::clone(&reads);
        let slow = async move |body: Body| {
            reads.notified().await;
            body.collect().await.expect("a whole body").to_bytes().len().to_string()
        };
        Router::new().route("/", post(slow)).layer(DefaultBodyLimit::disable())
    };
    each_driver_and_hyper(routes, async |mut client| {
        let (response, mut stream) = client.begin("POST", "/", &[], false).await;
        stream.reserve_capacity(LEN);
        let mut sent = 0;
        let wait = Duration::from_millis(200);
        while let Ok(room) = tokio::time::timeout(wait, poll_fn(|cx| stream.poll_capacity(cx))).await {
            let room = room.expect("an open stream").expect("a window");
            stream.send_data(Bytes::from(vec![b'x'; room]), false).expect("an open stream");
            sent += room;
            assert!(sent < 2 << 20, "{sent} bytes were sent though nobody reads");
            stream.reserve_capacity(LEN - sent);
        }
        assert!(sent >= 0xffff, "{sent} bytes are less than a window");
        reads.notify_one();
        let rest = vec![b'x'; LEN - sent];
        let (response, ()) = tokio::join!(receive(response), send_all(&mut stream, &rest, true));
        assert_eq!(response.expect("whole").text(), LEN.to_string());
    });
}

/// Notifies when it is dropped.
struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[test]
fn a_reset_drops_the_future_or_body_of_its_stream() {
    let dropped = Arc::new(Notify::new());
    let routes = || {
        let (waiting, endless) = (Arc::clone(&dropped), Arc::clone(&dropped));
        let wait = async move || {
            let _guard = OnDrop(Arc::clone(&waiting));
            std::future::pending::<()>().await;
        };
        let endless = async move || {
            let guard = OnDrop(Arc::clone(&endless));
            let pieces = stream::once(async { Ok::<_, Infallible>("piece") }).chain(stream::pending());
            Body::from_stream(pieces.inspect(move |_| assert!(Arc::strong_count(&guard.0) > 1)))
        };
        Router::new().route("/wait", any(wait)).route("/endless", any(endless)).route("/", get("root"))
    };
    each_driver_and_hyper(routes, async |mut client| {
        for target in ["/wait", "/endless"] {
            for ends in [true, false] {
                let (response, mut stream) = client.begin("POST", target, &[], ends).await;
                if target == "/endless" {
                    let mut content = response.await.expect("a head").into_body();
                    assert_eq!(piece(&mut content).await.expect("open").expect("a piece"), "piece");
                } else {
                    // Other streams are served meanwhile.
                    assert_eq!(client.get("/").await.expect("whole").text(), "root");
                }
                stream.send_reset(Reason::CANCEL);
                dropped.notified().await;
            }
        }
        assert_eq!(client.get("/").await.expect("whole").text(), "root");
    });
}

async fn panicking() {
    panic!("on purpose");
}

fn failing() -> Router {
    let failing = |late: bool| {
        let error = stream::once(async move {
            if late {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err("broken")
        });
        let piece = stream::iter(late.then_some(Ok("piece")));
        Body::from_stream(piece.chain(error))
    };
    Router::new()
        .route("/early", get(async move || failing(false)))
        .route("/late", get(async move || failing(true)))
        .route("/panic", get(panicking))
        .route("/", get("root"))
}

#[test]
fn a_failure_ends_its_stream_only() {
    each_driver(failing, async |mut client| {
        for target in ["/early", "/panic"] {
            let response = client.get(target).await.expect("whole");
            assert_eq!(response.head.status, StatusCode::INTERNAL_SERVER_ERROR, "{target}");
        }
        let error = client.get("/late").await.map(|response| response.body).expect_err("it is cut off");
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
        assert_eq!(client.get("/").await.expect("whole").text(), "root");
    });
}

async fn echo_messages(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(async |mut socket| {
        while let Some(Ok(message)) = socket.recv().await {
            if let Message::Text(_) = message {
                socket.send(message).await.expect("the client is connected");
            }
        }
    })
}

/// Returns a frame of a WebSocket (RFC 6455 section 5.2), masked with zeros if it is a client's.
fn message(opcode: u8, is_masked: bool, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).expect("short").to_be_bytes();
    let (mask_bit, mask) = if is_masked { (0x80, &[0; 4][..]) } else { (0, &[][..]) };
    match payload.len() {
        ..126 => [&[0x80 | opcode, mask_bit | payload.len() as u8], mask, payload].concat(),
        _ => [&[0x80 | opcode, mask_bit | 126], &len[..], mask, payload].concat(),
    }
}

/// Receives so many bytes of content.
async fn exactly(content: &mut h2::RecvStream, len: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < len {
        all.extend(piece(content).await.expect("not the end").expect("no reset"));
    }
    all
}

#[test]
fn serves_axums_web_sockets() {
    const TEXT: u8 = 1;
    const CLOSE: u8 = 8;
    let routes = || {
        Router::new()
            .route("/ws", any(echo_messages))
            .route("/", get("root"))
            .route("/moved", any((StatusCode::SEE_OTHER, "moved")))
    };
    each_driver_and_hyper(routes, async |mut client| {
        assert_eq!(client.get("/").await.expect("whole").text(), "root");
        assert!(client.can_connect_websockets());
        let (response, mut sending) = client.connect_websocket("/ws").await;
        let response = response.await.expect("a head");
        assert_eq!(response.status(), StatusCode::OK);
        assert!(!response.headers().contains_key(header::UPGRADE), "{response:?}");
        let mut content = response.into_body();
        for text in [&b"said"[..], &[b'x'; 60_000]] {
            send_all(&mut sending, &message(TEXT, true, text), false).await;
            let expected = message(TEXT, false, text);
            assert!(exactly(&mut content, expected.len()).await == expected);
            assert_eq!(client.get("/").await.expect("whole").text(), "root", "other streams go on");
        }
        send_all(&mut sending, &message(CLOSE, true, &[]), false).await;
        assert_eq!(exactly(&mut content, 2).await, message(CLOSE, false, &[]));
        assert!(piece(&mut content).await.is_none(), "the end of the stream");

        let (response, _) = client.connect_websocket("/moved").await;
        assert_eq!(receive(response).await.expect("whole").text(), "moved");
        let (response, _) = client.connect_websocket("/none").await;
        assert_eq!(receive(response).await.expect("whole").head.status, StatusCode::NOT_FOUND);
    });
}

/// A browser would ask a route of `get` in a way that it rejects.
#[test]
fn offers_no_web_sockets_by_default() {
    if testkit::tls::skips("the client is in clear") {
        return;
    }
    let served = Served::new(Router::new().route("/ws", get(echo_messages)).route("/", get("root")));
    run(async {
        let mut client = Client::connect(served.address).await;
        client.get("/").await.expect("whole");
        assert!(!client.can_connect_websockets());
        let (response, _) = client.connect_websocket("/ws").await;
        let error = response.await.expect_err("it isn't enabled");
        assert_eq!(error.reason(), Some(Reason::PROTOCOL_ERROR));
    });
}

#[test]
fn a_handler_that_ignores_a_connect_sends_no_content() {
    let routes = || Router::new().route("/", any("root")).route("/get", get("root"));
    each_driver_and_hyper(routes, async |mut client| {
        client.get("/").await.expect("whole");
        let (response, _) = client.connect_websocket("/").await;
        // axum drops the content; the tunnel ends at once.
        let response = receive(response).await.expect("whole");
        assert_eq!((response.head.status, response.text()), (StatusCode::OK, ""));
        let (response, _) = client.connect_websocket("/get").await;
        assert_eq!(receive(response).await.expect("whole").head.status, StatusCode::METHOD_NOT_ALLOWED);
    });
}
