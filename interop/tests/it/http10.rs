//! HTTP/1.0 clients: no chunks; a body of unknown length ends with the connection.

use axum::Router;
use axum::body::Body;
use axum::http::Version;
use axum::routing::{get, post};
use futures_util::stream;

use crate::client::{ClientResponse, Client};
use crate::serve::{Served, serve};

fn served() -> Served {
    let pieces = || stream::iter(["a", "b", "c"].map(Ok::<_, std::io::Error>));
    let app = Router::new()
        .route("/", get(async |version: Version| format!("{version:?}")))
        .route("/count", post(async |body: String| body.len().to_string()))
        .route("/stream", get(async move || Body::from_stream(pieces())));
    serve(app)
}

fn asked(server: &Served, request: &str) -> (Client, ClientResponse) {
    let mut client = Client::connect(server.addr);
    client.send(request);
    let response = client.response("GET");
    (client, response)
}

#[test]
fn an_response_ends_with_the_connection() {
    let server = served();
    let (mut client, response) = asked(&server, "GET / HTTP/1.0\r\n\r\n");
    assert_eq!((response.status(), response.text()), (200, "HTTP/1.0"));
    assert!(client.is_closed());
}

#[test]
fn a_stream_is_sent_without_chunks() {
    let server = served();
    let (mut client, response) = asked(&server, "GET /stream HTTP/1.0\r\nHost: test\r\n\r\n");
    assert!(!response.head.is_chunked());
    assert_eq!(response.text(), "abc");
    assert!(client.is_closed());
}

#[test]
fn a_connection_may_be_kept_where_both_say_so() {
    let server = served();
    let request = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let (mut client, response) = asked(&server, request);
    assert_eq!(response.text(), "HTTP/1.0");
    if response.head.field("connection").is_some_and(|said| said.eq_ignore_ascii_case("keep-alive")) {
        client.send(request);
        assert_eq!(client.response("GET").text(), "HTTP/1.0");
    } else {
        assert!(client.is_closed(), "kept without a word");
    }
}

#[test]
fn a_body_has_the_length_it_says() {
    let server = served();
    let (mut client, response) = asked(&server, "POST /count HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc");
    assert_eq!(response.text(), "3");
    assert!(client.is_closed());
}
