//! Group `protocol`: responses that clients can read, whatever they send.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use testkit::{Client, Error};

use crate::context::{Context, in_threads};
use crate::report::Report;

/// The server's limit on bodies in this case, bytes.
const BODY_BYTES_MAX: u64 = 1024 * 1024;
/// Length of a refused body, bytes.
const BODY_BYTES: usize = 20_000_000;
/// Length of a refused head, bytes.
const HEAD_BYTES: usize = 1024 * 1024;
const PIECE_BYTES: usize = 16 * 1024;
/// Timeout of one write, after which the client looks at its clock again.
const WRITE_TIMEOUT: Duration = Duration::from_millis(100);
const CLIENTS: u64 = 20;

/// A request that is refused before its end.
struct Refused {
    name: &'static str,
    status: u16,
    opening: String,
    /// Sent again and again after the opening.
    filler: Vec<u8>,
    /// Bytes of filler in the whole request.
    filler_bytes: usize,
}

fn refused_requests() -> Vec<Refused> {
    let post = "POST /count HTTP/1.1\r\nHost: localhost\r\n";
    let get = "GET / HTTP/1.1\r\nHost: localhost\r\n";
    let letters = vec![b'a'; PIECE_BYTES];
    let chunk = [format!("{PIECE_BYTES:x}\r\n").into_bytes(), letters.clone(), b"\r\n".to_vec()].concat();
    let fields = b"X-Field: value\r\n".repeat(1024);
    let request = |name, status, opening: String, filler: &[u8], filler_bytes| {
        let filler = filler.to_vec();
        Refused { name, status, opening, filler, filler_bytes }
    };
    let length = format!("{post}Content-Length: {BODY_BYTES}\r\n\r\n");
    let chunked = format!("{post}Transfer-Encoding: chunked\r\n\r\n");
    let ambiguous = format!("{post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n");
    vec![
        request("413, Content-Length", 413, length, &letters, BODY_BYTES),
        request("413, chunked", 413, chunked, &chunk, BODY_BYTES),
        request("414, endless target", 414, "GET /".to_owned(), &letters, HEAD_BYTES),
        request("431, endless field", 431, format!("{get}X-Endless: "), &letters, HEAD_BYTES),
        request("431, endless fields", 431, get.to_owned(), &fields, HEAD_BYTES),
        request("400, two lengths", 400, ambiguous, &letters, HEAD_BYTES),
    ]
}

/// Sends requests that are refused in the middle, keeps sending, and only then reads: the response and the orderly end.
pub(crate) fn early_errors(context: &Context<'_>, report: &mut Report) -> Result<()> {
    let mut server = context.example(&[("SHEARWATER_BODY_MAX", BODY_BYTES_MAX)])?;
    let connections = context.amount.count(40, 200);
    let sending_time = Duration::from_millis(context.amount.count(300, 1000));
    for request in refused_requests() {
        let next = AtomicU64::new(0);
        let errors = in_threads(CLIENTS, |_| {
            let mut errors = Vec::new();
            while next.fetch_add(1, Ordering::Relaxed) < connections {
                errors.extend(send_and_read(server.address(), &request, sending_time).err());
            }
            errors
        });
        report.none(format!("{}: without a whole response", request.name), &errors.concat());
    }
    report.stop(&mut server);
    Ok(())
}

fn send_and_read(address: SocketAddr, request: &Refused, time: Duration) -> Result<(), String> {
    let mut client = Client::connect(address).map_err(|error| format!("connect: {error}"))?;
    client.send(&request.opening).map_err(|error| format!("opening: {error}"))?;
    let sent = send_filler(&client, request, time).map_err(|error| format!("sending on: {error}"))?;
    let response = client.response().map_err(|error| format!("{error} (after {sent} bytes sent on)"))?;
    if response.status() != request.status {
        return Err(format!("status {} instead of {}", response.status(), request.status));
    }
    client.end().map_err(|error| format!("after the response: {error}"))
}

/// Sends filler for some time without reading. A server that has stopped reading is no error, a reset is.
fn send_filler(client: &Client, request: &Refused, time: Duration) -> Result<usize, Error> {
    let mut stream = client.stream();
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let deadline = Instant::now() + time;
    let mut sent = 0;
    while sent < request.filler_bytes && Instant::now() < deadline {
        let from = sent % request.filler.len();
        let until = request.filler.len().min(from + request.filler_bytes - sent);
        match stream.write(&request.filler[from..until]) {
            Ok(length) => sent += length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sent)
}
