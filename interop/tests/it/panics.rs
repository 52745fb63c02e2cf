//! Panics of handlers: they cost one request at most, or a layer turns them into a response.

use axum::Router;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use axum::routing::get;
use futures_util::{StreamExt, stream};
use tower_http::catch_panic::CatchPanicLayer;

use crate::client::{Client, get as ask_get};
use crate::serve::serve;

/// A panic that the compiler can't predict.
fn divide_by(zero: usize) -> String {
    (1 / zero).to_string()
}

async fn panic_at_once() -> String {
    divide_by(0)
}

async fn panic_later() -> String {
    tokio::task::yield_now().await;
    divide_by(0)
}

/// A body whose second poll panics.
async fn panic_in_the_body() -> Body {
    Body::from_stream(stream::iter([1, 0]).map(|number| Ok::<_, std::io::Error>(divide_by(number))))
}

fn app() -> Router {
    Router::new()
        .route("/", get(async || "served"))
        .route("/now", get(panic_at_once))
        .route("/later", get(panic_later))
        .route("/body", get(panic_in_the_body))
}

/// Without a layer the client gets a `500`, or a closed connection.
#[test]
fn a_panic_costs_one_request() {
    let server = serve(app());
    let mut other = Client::connect(server.addr);
    for path in ["/now", "/later"].repeat(5) {
        let mut client = Client::connect(server.addr);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let bytes = client.rest();
        assert!(
            bytes.is_empty() || bytes.starts_with(b"HTTP/1.1 500 "),
            "{}",
            String::from_utf8_lossy(&bytes)
        );
        assert_eq!(other.ask("GET", "/", &[], b"").text(), "served", "others continue");
    }
    assert_eq!(ask_get(server.addr, "/").text(), "served");
}

#[test]
fn a_panic_within_a_body_leaves_it_without_an_end() {
    let server = serve(app());
    let mut client = Client::connect(server.addr);
    client.send("GET /body HTTP/1.1\r\nHost: test\r\n\r\n");
    let bytes = client.rest();
    assert!(!bytes.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&bytes));
    assert_eq!(ask_get(server.addr, "/").text(), "served");
}

#[test]
fn a_layer_makes_an_response_of_it() {
    let told = |_: Box<dyn std::any::Any + Send>| -> Response<Body> {
        let response = Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR);
        response.body(Body::from("we are sorry")).unwrap()
    };
    let server = serve(app().layer(CatchPanicLayer::custom(told)));
    let mut client = Client::connect(server.addr);
    for path in ["/now", "/later", "/now"] {
        let response = client.ask("GET", path, &[], b"");
        assert_eq!((response.status(), response.text()), (500, "we are sorry"));
    }
    assert_eq!(client.ask("GET", "/", &[], b"").text(), "served", "on the same connection");
}
