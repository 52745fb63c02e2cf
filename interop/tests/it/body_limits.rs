//! Bodies over the limit: rejected by their length, or at the first excess byte.

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;

use crate::client::{Client, ask, get as ask_get};
use crate::serve::{Served, serve, serve_with};

/// axum's default limit.
const DEFAULT_BYTES_MAX: usize = 2 * 1024 * 1024;
const SMALL_BYTES_MAX: usize = 1000;
/// Above the server's own default of 10 MiB.
const LARGE_BYTES: usize = 20 * 1024 * 1024;

fn served() -> Served {
    let count = async |body: Bytes| body.len().to_string();
    let small = Router::new().route("/small", post(count)).layer(DefaultBodyLimit::max(SMALL_BYTES_MAX));
    serve(Router::new().route("/default", post(count)).merge(small))
}

/// A client that is still sending gets the response before the connection closes.
#[test]
fn the_last_byte_decides() {
    let server = served();
    for (path, bytes_max) in [("/small", SMALL_BYTES_MAX), ("/default", DEFAULT_BYTES_MAX)] {
        let body = vec![b'x'; bytes_max + 1];
        let fits = ask(server.addr, "POST", path, &[], &body[1..]);
        assert_eq!((fits.status(), fits.text()), (200, bytes_max.to_string().as_str()));
        assert_eq!(ask(server.addr, "POST", path, &[], &body).status(), 413);
    }
    assert_eq!(ask_get(server.addr, "/small").status(), 405);
}

#[test]
fn chunks_are_counted_too() {
    let server = served();
    for (length, status) in [(SMALL_BYTES_MAX, 200), (SMALL_BYTES_MAX + 1, 413)] {
        let mut client = Client::connect(server.addr);
        client.send("POST /small HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
        let chunks: String = "1\r\nx\r\n".repeat(length);
        client.send(chunks + "0\r\n\r\n");
        assert_eq!(client.response("POST").status(), status, "{length} chunks");
    }
}

/// axum's limit and the server's are independent, as `docs/guide/axum.md` says.
#[test]
fn an_upload_of_20_mib_needs_both_limits_raised() {
    let router = || {
        let count = async |body: Bytes| body.len().to_string();
        Router::new().route("/", post(count)).layer(DefaultBodyLimit::max(LARGE_BYTES))
    };
    let body = vec![b'x'; LARGE_BYTES];
    assert_eq!(ask(serve(router()).addr, "POST", "/", &[], &body).status(), 413);
    let raised = serve_with(router(), |serve| serve.body_bytes_max(LARGE_BYTES as u64));
    let response = ask(raised.addr, "POST", "/", &[], &body);
    assert_eq!((response.status(), response.text()), (200, LARGE_BYTES.to_string().as_str()));
}
