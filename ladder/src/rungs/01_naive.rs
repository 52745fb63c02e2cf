//! Rung 1, naive: each byte that arrives and each piece of text that leaves is a system call.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::SystemTime;

use crate::rules::{Reply, Rules};
use crate::wire::{self, ACCEPT_PAUSE, HEAD_BYTES_MAX, IDLE_TIMEOUT, LINGER_BYTES_MAX};

/// Serves one client after the other.
pub(crate) fn serve(address: SocketAddr) -> io::Result<Infallible> {
    let listener = TcpListener::bind(address)?;
    loop {
        match listener.accept() {
            // A connection that fails ends; the next client is served all the same.
            Ok((stream, _)) => drop(Connection { stream }.run()),
            Err(_) => thread::sleep(ACCEPT_PAUSE),
        }
    }
}

struct Connection {
    stream: TcpStream,
}

impl Connection {
    /// Reads one request, responds and closes.
    fn run(&mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.set_read_timeout(Some(IDLE_TIMEOUT))?;
        self.stream.set_write_timeout(Some(IDLE_TIMEOUT))?;
        let head = self.read_head()?;
        match head.and_then(|head| parse(&head)) {
            Ok(reply) => {
                if reply.expects_continue {
                    self.stream.write_all(wire::CONTINUE)?;
                }
                self.discard(reply.body_bytes)?;
                self.respond(reply.status, reply.head_only)
            }
            Err(status) => {
                self.respond(status, false)?;
                self.linger()
            }
        }
    }

    /// Reads a head with its empty line, or returns the status to refuse it with.
    fn read_head(&mut self) -> io::Result<Result<Vec<u8>, u16>> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() == HEAD_BYTES_MAX {
                return Ok(Err(431));
            }
            head.push(self.receive()?);
        }
        Ok(Ok(head))
    }

    /// Receives one byte.
    fn receive(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.stream.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn discard(&mut self, length: u64) -> io::Result<()> {
        for _ in 0..length {
            self.receive()?;
        }
        Ok(())
    }

    fn respond(&mut self, status: u16, head_only: bool) -> io::Result<()> {
        let body = wire::body(status);
        let date = wire::http_date(SystemTime::now());
        // Without a buffer, `write!` sends each of its pieces by itself.
        write!(self.stream, "HTTP/1.1 {status} {}\r\n", wire::reason(status))?;
        write!(self.stream, "Date: {date}\r\n")?;
        write!(self.stream, "Content-Type: text/plain\r\n")?;
        write!(self.stream, "Content-Length: {}\r\n", body.len())?;
        write!(self.stream, "Connection: close\r\n\r\n")?;
        if head_only { Ok(()) } else { self.stream.write_all(body.as_bytes()) }
    }

    /// Ends our side, then discards input: unread input at a close would reset the connection and lose the response.
    fn linger(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        self.discard(LINGER_BYTES_MAX)
    }
}

/// Copies the parts of a head, then decides the response or the status to refuse it with.
fn parse(head: &[u8]) -> Result<Reply, u16> {
    let text = String::from_utf8(head.to_vec()).map_err(|_| 400_u16)?;
    // An empty line before a request is skipped (RFC 9112, section 2.2).
    let text = text.strip_prefix("\r\n").unwrap_or(&text);
    let mut lines = text.strip_suffix("\r\n\r\n").unwrap_or(text).split("\r\n");
    let words: Vec<String> = lines.next().unwrap_or_default().split(' ').map(str::to_owned).collect();
    let mut headers: Vec<(String, String)> = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(400_u16)?;
        headers.push((name.to_owned(), value.to_owned()));
    }
    let [method, target, version] = &words[..] else { return Err(400) };
    let mut rules = Rules::new(method, target, version)?;
    for (name, value) in &headers {
        rules.header(name, value)?;
    }
    rules.reply()
}
