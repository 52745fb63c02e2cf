//! Errors of handlers and services: `Result`, `?` with a custom error type, `HandleError`.

use std::io;

use axum::Router;
use axum::body::Body;
use axum::error_handling::HandleError;
use axum::extract::Query;
use axum::http::{Method, Request, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use axum::routing::get;
use serde::Deserialize;
use tower::service_fn;

use crate::client::{Client, get as ask_get};
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
fn an_error_is_an_response() {
    let server = serve(Router::new().route("/root", get(root)));
    let mut client = Client::connect(server.addr);
    for (target, status, text) in [
        ("/root?n=144", 200, "12"),
        ("/root?n=-1", 422, "it must not be negative"),
        ("/root?n=x", 400, "invalid digit found in string"),
    ] {
        let response = client.ask("GET", target, &[], b"");
        assert_eq!((response.status(), response.text()), (status, text), "{target}");
    }
    assert_eq!(client.ask("GET", "/root", &[], b"").status(), 400, "no query at all");
}

#[test]
fn a_service_that_fails_is_explained() {
    let shaky = HandleError::new(service_fn(shaky), explain);
    let server = serve(Router::new().route_service("/shaky", shaky));
    assert_eq!(ask_get(server.addr, "/shaky").text(), "steady");
    let failed = ask_get(server.addr, "/shaky?fail");
    assert_eq!((failed.status(), failed.text()), (502, "GET /shaky?fail: the disk is full"));
}
