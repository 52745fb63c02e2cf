//! `shearwater health`: one request to a server, for health checks where no other client exists.

use std::io::{self, Error, ErrorKind, Read};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use crate::args::Health;
use crate::failure::Failure;
use crate::http_client::{Url, parse_status};
use crate::report;

/// Length of `HTTP/1.1 200`.
const STATUS_BYTES: usize = 12;

/// Requests the URL. Fails unless the status is 2xx or 3xx.
pub(crate) fn check(arguments: &Health) -> Result<(), Failure> {
    let (url, timeout) = (arguments.url.as_str(), arguments.timeout);
    let unhealthy = |why: String| Failure::system(format!("{url}: {why}"), None);
    let late = || unhealthy(format!("no response within {timeout:?}"));
    let (sender, result) = mpsc::sync_channel(1);
    let (requested, deadline) = (url.to_owned(), Instant::now() + timeout);
    // Looking a name up and connecting to a Unix-domain socket may wait without a bound. The end of the program ends them.
    thread::Builder::new()
        .spawn(move || drop(sender.send(request(&requested, deadline))))
        .map_err(|error| unhealthy(error.to_string()))?;
    let status = result.recv_timeout(timeout).map_err(|_| late())?.map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => late(),
        _ => unhealthy(error.to_string()),
    })?;
    match status {
        200..400 => report::print(&format!("{url}: {status}\n")),
        _ => Err(unhealthy(format!("status {status}"))),
    }
}

/// Sends a request and returns the status of its response.
fn request(url: &str, deadline: Instant) -> io::Result<u16> {
    let mut connection = Url::parse(url).get("1.1", deadline)?;
    let mut line = [0; STATUS_BYTES];
    connection.read_exact(&mut line).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => Error::other("the server closed the connection without a response"),
        _ => error,
    })?;
    parse_status(&line)
}
