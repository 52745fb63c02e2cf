//! Connections: keep-alive, pipelining, `Connection: close`, split and malformed requests.

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::header;
use axum::routing::{get, post};

use crate::client::{Client, get as ask_get};
use crate::serve::{Served, serve};

const PIPELINED: usize = 64;
const REQUESTS: usize = 1000;

fn served() -> Served {
    let slow = async |Path(number): Path<u32>| {
        // Later requests complete first, and their responses must wait.
        for _ in number..8 {
            tokio::task::yield_now().await;
        }
        number.to_string()
    };
    let app = Router::new()
        .route("/", get(async || "hello"))
        .route("/number/{n}", get(slow))
        .route("/close", get(async || ([(header::CONNECTION, "close")], "the last one")))
        .route("/ignore", post(async || "not read"))
        .route("/count", post(async |body: Bytes| body.len().to_string()));
    serve(app)
}

#[test]
fn a_connection_serves_many_requests() {
    let server = served();
    let mut client = Client::connect(server.addr);
    for _ in 0..REQUESTS {
        let response = client.ask("GET", "/", &[], b"");
        assert_eq!((response.status(), response.text()), (200, "hello"));
        assert_eq!(response.head.content_length(), Some(5));
        assert_eq!(response.head.all("date").len(), 1);
    }
}

#[test]
fn pipelined_requests_are_responded_in_order() {
    let server = served();
    let mut client = Client::connect(server.addr);
    let request = |number: usize| format!("GET /number/{number} HTTP/1.1\r\nHost: test\r\n\r\n");
    client.send((0..PIPELINED).map(request).collect::<String>());
    for number in 0..PIPELINED {
        assert_eq!(client.response("GET").text(), number.to_string());
    }
}

#[test]
fn either_side_may_close() {
    let server = served();
    let mut client = Client::connect(server.addr);
    let last = client.ask("GET", "/", &["Connection: close"], b"");
    assert_eq!((last.text(), last.head.field("connection")), ("hello", Some("close")));
    assert!(client.is_closed());

    let mut client = Client::connect(server.addr);
    let last = client.ask("GET", "/close", &[], b"");
    assert_eq!((last.text(), last.head.field("connection")), ("the last one", Some("close")));
    assert!(client.is_closed());
}

#[test]
fn a_request_may_be_cut_anywhere() {
    let server = served();
    let mut client = Client::connect(server.addr);
    let request = b"POST /count HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    for cut in 1..request.len() {
        client.send(&request[..cut]);
        client.send(&request[cut..]);
        assert_eq!(client.response("POST").text(), "5", "cut at {cut}");
    }
}

/// The next request directly follows a body that the handler didn't read.
#[test]
fn a_small_body_that_nobody_reads_is_passed_over() {
    let server = served();
    let mut client = Client::connect(server.addr);
    for _ in 0..10 {
        client.send("POST /ignore HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\nignore meGET / HTTP/1.1\r\nHost: test\r\n\r\n");
        assert_eq!(client.response("POST").text(), "not read");
        assert_eq!(client.response("GET").text(), "hello");
    }
}

#[test]
fn what_is_no_http_is_refused_and_closed() {
    let server = served();
    for bytes in [
        "nonsense\r\n\r\n",
        "GET / HTTP/1.1\r\nNo Colon\r\n\r\n",
        "POST /count HTTP/1.1\r\nHost: t\r\nContent-Length: x\r\n\r\n",
    ] {
        let mut client = Client::connect(server.addr);
        client.send(bytes);
        assert_eq!(client.response("GET").status(), 400, "{bytes}");
        assert!(client.is_closed());
    }
    assert_eq!(ask_get(server.addr, "/").text(), "hello");
}
