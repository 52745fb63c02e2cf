//! Errors and panics of handlers and services.

use std::io;

use axum::Router;
use axum::body::Body;
use axum::error_handling::HandleError;
use axum::extract::Query;
use axum::http::{Method, Request, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use axum::routing::get;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use tower::service_fn;
use tower_http::catch_panic::CatchPanicLayer;

use crate::serve::serve;

/// The application's error.
enum Error {
    NoNumber(std::num::ParseIntError),
    Negative,
}

impl From<std::num::ParseIntError> for Error {
    fn from(error: std::num::ParseIntError) -> Self {
        Self::NoNumber(error)
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> axum::response::Response {
        match self {
            Self::NoNumber(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
            Self::Negative => (StatusCode::UNPROCESSABLE_ENTITY, "it must not be negative").into_response(),
        }
    }
}

#[derive(Deserialize)]
struct Number {
    n: String,
}

async fn root(Query(number): Query<Number>) -> Result<String, Error> {
    let number: i64 = number.n.parse()?;
    let root = number.checked_isqrt().ok_or(Error::Negative)?;
    Ok(root.to_string())
}

/// A fallible tower service, which a router accepts only with an error handler.
async fn shaky(request: Request<Body>) -> Result<Response<Body>, io::Error> {
    match request.uri().query() {
        Some("fail") => Err(io::Error::other("the disk is full")),
        _ => Ok(Response::new(Body::from("steady"))),
    }
}

async fn explain(method: Method, uri: Uri, error: io::Error) -> (StatusCode, String) {
    (StatusCode::BAD_GATEWAY, format!("{method} {uri}: {error}"))
}

#[test]
fn converts_errors_to_responses() {
    let server = serve(Router::new().route("/root", get(root)));
    let mut client = server.connect();
    for (target, status, text) in [
        ("/root?n=144", 200, "12"),
        ("/root?n=-1", 422, "it must not be negative"),
        ("/root?n=x", 400, "invalid digit found in string"),
    ] {
        let response = client.get(target);
        assert_eq!((response.status, response.text()), (status, text), "{target}");
    }
    assert_eq!(client.get("/root").status, 400, "no query at all");
}

#[test]
fn handles_errors_of_services() {
    let shaky = HandleError::new(service_fn(shaky), explain);
    let server = serve(Router::new().route_service("/shaky", shaky));
    assert_eq!(server.get("/shaky").text(), "steady");
    let failed = server.get("/shaky?fail");
    assert_eq!((failed.status, failed.text()), (502, "GET /shaky?fail: the disk is full"));
}

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
fn panic_costs_one_request() {
    let server = serve(app());
    let mut other = server.connect();
    for path in ["/now", "/later"].repeat(5) {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let bytes = client.rest();
        assert!(
            bytes.is_empty() || bytes.starts_with(b"HTTP/1.1 500 "),
            "{}",
            String::from_utf8_lossy(&bytes)
        );
        assert_eq!(other.request("GET", "/", &[]).text(), "served", "others continue");
    }
    assert_eq!(server.get("/").text(), "served");
}

#[test]
fn cuts_off_a_body_that_panics() {
    let server = serve(app());
    let mut client = server.connect();
    client.send("GET /body HTTP/1.1\r\nHost: test\r\n\r\n");
    let bytes = client.rest();
    assert!(!bytes.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&bytes));
    assert_eq!(server.get("/").text(), "served");
}

#[test]
fn catches_panics_in_a_layer() {
    let told = |_: Box<dyn std::any::Any + Send>| -> Response<Body> {
        let response = Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR);
        response.body(Body::from("we are sorry")).unwrap()
    };
    let server = serve(app().layer(CatchPanicLayer::custom(told)));
    let mut client = server.connect();
    for path in ["/now", "/later", "/now"] {
        let response = client.get(path);
        assert_eq!((response.status, response.text()), (500, "we are sorry"));
    }
    assert_eq!(client.get("/").text(), "served", "on the same connection");
}
