//! `Expect: 100-continue` (RFC 9110 section 10.1.1): sent once the handler reads the body, and not before.

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::post;

use crate::client::Client;
use crate::serve::{Served, serve};

async fn guard(request: Request, next: Next) -> Result<Response, StatusCode> {
    match request.headers().contains_key(header::AUTHORIZATION) {
        true => Ok(next.run(request).await),
        false => Err(StatusCode::UNAUTHORIZED),
    }
}

fn served() -> Served {
    let count = async |body: Bytes| body.len().to_string();
    serve(Router::new().route("/", post(count)).layer(middleware::from_fn(guard)))
}

fn head(fields: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n{fields}\r\n")
}

#[test]
fn who_waits_is_told_to_go_on() {
    let server = served();
    let mut client = Client::connect(server.addr);
    for _ in 0..3 {
        client.send(head("Authorization: yes\r\n"));
        assert_eq!(client.head().status, 100);
        client.send("12345");
        let response = client.response("POST");
        assert_eq!((response.status(), response.text()), (200, "5"));
    }
}

/// Closes the connection if the body was never requested, since its next bytes are ambiguous.
#[test]
fn who_is_refused_need_not_send() {
    let server = served();
    let mut client = Client::connect(server.addr);
    client.send(head(""));
    let first = client.head();
    assert_eq!(first.status, 401, "no interim answer before a refusal");
    assert_eq!(first.content_length(), Some(0));
    assert!(client.is_closed());
}

#[test]
fn who_does_not_wait_is_responded_all_the_same() {
    let server = served();
    let mut client = Client::connect(server.addr);
    client.send(head("Authorization: yes\r\n") + "12345");
    assert_eq!(client.response("POST").text(), "5");
}
