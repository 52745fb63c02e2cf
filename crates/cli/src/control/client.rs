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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;
    use std::time::{Duration, Instant};

    use shearwater::engine::control_socket::ControlSocket;
    use testkit::{TIMEOUT, TestFolder};

    use super::super::{REQUEST_BYTES_MAX, line};
    use super::{Outcome, Reply, Request, ask};

    fn request(timeout: Duration) -> Request {
        Request { command: "reload".to_owned(), arguments: Vec::new(), timeout }
    }

    /// Asks a server that sends this to each client and closes the connection.
    fn ask_server_of(sent: &str, timeout: Duration) -> (Reply, usize) {
        let folder = TestFolder::new();
        let socket = ControlSocket::bind(&folder.at("socket"), None).expect("bound");
        thread::scope(|scope| {
            let asking = scope.spawn(|| ask(&folder.at("socket"), &request(timeout)).expect("it listens"));
            let mut count = 0;
            while !asking.is_finished() {
                let Some(mut client) = socket.accept().expect("it listens") else {
                    thread::yield_now();
                    continue;
                };
                let line = line::read(&client.stream, REQUEST_BYTES_MAX, Instant::now() + TIMEOUT);
                // Its time may end before it has sent the request.
                let Ok(line) = line else { continue };
                assert!(Request::parse(&line).is_some());
                client.stream.write_all(sent.as_bytes()).expect("sent");
                count += 1;
            }
            (asking.join().expect("no panic"), count)
        })
    }

    #[test]
    fn waits_a_bounded_time_for_the_new_process() {
        let superseded =
            Reply { process: Some(7), ..Reply::new(Outcome::Superseded, "process 7 serves now") };
        let (reply, count) = ask_server_of(&(superseded.to_line() + "\n"), Duration::from_millis(300));
        let expected = Reply::new(Outcome::Unfinished, "process 7 serves now, and has no control socket");
        // The time may end within an exchange.
        let late = Reply::new(Outcome::Unfinished, "");
        assert!((reply == expected || reply == late) && count > 1, "{reply:?} {count}");
    }

    #[test]
    fn a_reply_that_is_missing_or_unreadable_is_an_unknown_outcome() {
        for (sent, why) in [
            ("", " has closed the connection without a reply"),
            ("{\"outcome\":\"done\"", " has closed the connection without a reply"),
            ("{\"outcome\":\"great\"}\n", " has sent a reply that can't be read"),
            ("no JSON\n", " has sent a reply that can't be read"),
        ] {
            let (reply, count) = ask_server_of(sent, TIMEOUT);
            assert_eq!((reply.outcome, count), (Outcome::Unfinished, 1));
            assert!(reply.text.ends_with(why), "{sent:?}: {}", reply.text);
        }
    }
}
