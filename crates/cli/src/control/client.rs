//! The client's side of the control socket.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use shearwater::engine::control_socket::ControlStream;

use super::{Outcome, REPLY_BYTES_MAX, Reply, Request, line};

/// Longest wait for the socket of a new process, which serves already.
const SUCCESSOR_WAIT: Duration = Duration::from_secs(5);

/// Interval of trying that.
const RETRY: Duration = Duration::from_millis(20);

/// Sends a command to the server that listens at `socket`, and waits for the reply.
///
/// After an upgrade the new process gets the command.
///
/// # Errors
/// No server can be reached. It has done nothing then.
pub(crate) fn ask(socket: &Path, request: &Request) -> io::Result<Reply> {
    let deadline = Instant::now() + request.timeout;
    let mut connection = ControlStream::connect(socket, deadline)?;
    // Set once a reply has named another process.
    let mut until = None;
    loop {
        let reply = exchange(&connection, request, deadline);
        if reply.outcome != Outcome::Superseded {
            return Ok(reply);
        }
        let until = *until.get_or_insert_with(|| deadline.min(Instant::now() + SUCCESSOR_WAIT));
        connection = loop {
            if Instant::now() >= until {
                let text = format!("{}, and has no control socket", reply.text);
                return Ok(Reply::new(Outcome::Unfinished, text));
            }
            thread::sleep(RETRY);
            // Until it listens, the socket is the old process's, or nobody's.
            if let Ok(connected) = ControlStream::connect(socket, until) {
                break connected;
            }
        };
    }
}

/// Sends the request on a connection, and returns the reply, or one for its failure.
fn exchange(connection: &ControlStream, request: &Request, deadline: Instant) -> Reply {
    let timeout = deadline.saturating_duration_since(Instant::now());
    let request = Request { timeout, ..request.clone() };
    // A server that rejects a connection replies before the request.
    let sent = line::write(&connection.stream, &request.to_line(), deadline);
    let read = line::read(&connection.stream, REPLY_BYTES_MAX, deadline);
    let lost = |why: String| Reply::new(Outcome::Unfinished, why);
    match (read.map(|line| Reply::parse(&line)), sent) {
        (Ok(Some(reply)), _) => reply,
        (Ok(None), _) => lost(format!("{} has sent a reply that can't be read", connection.peer)),
        (Err(error), _) if error.kind() == ErrorKind::TimedOut => Reply::new(Outcome::Unfinished, ""),
        (Err(error), _) if error.kind() == ErrorKind::UnexpectedEof => {
            lost(format!("{} has closed the connection without a reply", connection.peer))
        }
        (Err(error), Ok(()) | Err(_)) => lost(format!("{}: {error}", connection.peer)),
    }
}
