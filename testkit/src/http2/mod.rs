//! HTTP/2 of the client, and the switch by which suites run over it.
//!
//! - [`Session`] is the client's side of a connection without I/O, for simulated networks too.
//! - [`Http2Client`] is the same over a blocking stream.
//! - [`frame`] and [`hpack`] encode and decode what servers and clients must not send, too.

mod client;
mod exchanges;
pub mod frame;
pub mod hpack;
mod session;
mod stream;

use std::cell::Cell;
use std::env;
use std::io::Write as _;
use std::sync::OnceLock;

pub use client::{Frames, Http2Client};
pub(crate) use exchanges::{Content, Exchanges, is_for_http1};
pub use session::{PREFACE, Session};

/// Environment variable that runs a suite over HTTP/2: its servers accept it by prior knowledge, or by ALPN if the suite
/// runs over TLS, and [`TestClient::connect`](crate::TestClient::connect) uses it.
pub const SWITCH: &str = "SHEARWATER_TEST_HTTP2";

/// Returns true if the suite runs over HTTP/2.
pub fn is_on() -> bool {
    static IS_ON: OnceLock<bool> = OnceLock::new();
    *IS_ON.get_or_init(|| env::var_os(SWITCH).is_some_and(|value| !value.is_empty() && value != "0"))
}

/// Returns true if the suite runs over HTTP/2, and says why this test then shows nothing: also where the output of tests
/// that pass is hidden.
pub fn skips(why: &str) -> bool {
    if is_on() {
        report(&format!("skipped over HTTP/2: {why}"));
    }
    is_on()
}

/// Says, once in each test, why one of its connections is over HTTP/1.
pub(crate) fn report_http1(why: &str) {
    thread_local! {
        static IS_REPORTED: Cell<bool> = const { Cell::new(false) };
    }
    if !IS_REPORTED.replace(true) {
        report(&format!("partly over HTTP/1: {why}"));
    }
}

fn report(text: &str) {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    // Without standard error nobody reads it.
    drop(writeln!(std::io::stderr(), "{test}: {text}"));
}

/// Returns the fields of a request's head (RFC 9113 section 8.3.1). A target in absolute form has scheme and authority;
/// otherwise the authority is the field `host`, or `localhost`.
pub fn request_fields<'a>(
    scheme: &'a str,
    method: &'a str,
    target: &'a str,
    fields: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let host = fields.iter().find(|(name, _)| *name == "host").map_or("localhost", |(_, host)| *host);
    let (scheme, authority, path) = match target.split_once("://").filter(|_| !target.starts_with('/')) {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let path = match &rest[end..] {
                "" if method == "OPTIONS" => "*",
                // A query alone is dropped: it would need a `/` before it.
                path if path.starts_with('/') => path,
                _ => "/",
            };
            (scheme, &rest[..end], path)
        }
        None => (scheme, host, target),
    };
    let mut head = match method {
        "CONNECT" => vec![(":method", method), (":authority", target)],
        _ => vec![(":method", method), (":scheme", scheme), (":authority", authority), (":path", path)],
    };
    head.extend(fields.iter().filter(|(name, _)| *name != "host"));
    head
}
