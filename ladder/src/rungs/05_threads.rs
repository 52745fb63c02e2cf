//! Rung 5, threads: each connection has a thread, and each core accepts for itself.

use std::convert::Infallible;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

use crate::rules::{Reply, Rules};
use crate::sys;
use crate::wire::{self, ACCEPT_PAUSE, HEAD_BYTES_MAX, IDLE_TIMEOUT, LINGER_BYTES_MAX, RECEIVE_BYTES};

/// Threads that serve connections; beyond, a thread that accepts serves one itself, and accepts no other meanwhile.
const THREADS_MAX: usize = 1_024;
/// Bytes of a thread's stack.
const STACK_BYTES: usize = 128 * 1024;

static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Serves each client in a thread of its own.
pub(crate) fn serve(address: SocketAddr) -> io::Result<Infallible> {
    let cores = thread::available_parallelism()?.get();
    // The kernel spreads new connections over listeners that share a port.
    let listeners = (0..cores).map(|_| sys::listen_shared(address)).collect::<io::Result<Vec<_>>>()?;
    let threads: Vec<_> =
        listeners.into_iter().map(|listener| thread::spawn(move || accept(&listener))).collect();
    for thread in threads {
        drop(thread.join());
    }
    Err(io::Error::other("a thread that accepts has panicked"))
}

fn accept(listener: &TcpListener) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let serve = || {
                    drop(Connection { stream, input: vec![0; RECEIVE_BYTES], filled: 0 }.run());
                    THREADS.fetch_sub(1, Ordering::Relaxed);
                };
                if THREADS.fetch_add(1, Ordering::Relaxed) >= THREADS_MAX {
                    serve();
                } else if thread::Builder::new().stack_size(STACK_BYTES).spawn(serve).is_err() {
                    THREADS.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Err(_) => thread::sleep(ACCEPT_PAUSE),
        }
    }
}

struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    /// Number of bytes of the input that are received and not used yet.
    filled: usize,
}

impl Connection {
    /// Reads requests and responds to each, until one is the last.
    fn run(&mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.set_read_timeout(Some(IDLE_TIMEOUT))?;
        self.stream.set_write_timeout(Some(IDLE_TIMEOUT))?;
        loop {
            let length = self.read_head()?;
            let head = length.map(|length| &self.input[..length]);
            match head.and_then(parse) {
                Ok(reply) => {
                    self.consume(length.unwrap_or_default());
                    if reply.expects_continue {
                        self.stream.write_all(wire::CONTINUE)?;
                    }
                    self.discard(reply.body_bytes)?;
                    self.respond(reply.status, reply.head_only, reply.keep_alive)?;
                    if !reply.keep_alive {
                        break;
                    }
                }
                Err(status) => {
                    self.respond(status, false, false)?;
                    break;
                }
            }
        }
        self.linger()
    }

    /// Receives until a head is complete and returns its length, or the status to refuse it with.
    fn read_head(&mut self) -> io::Result<Result<usize, u16>> {
        loop {
            let window = &self.input[..self.filled.min(HEAD_BYTES_MAX)];
            if let Some(at) = window.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                return Ok(Ok(at + 4));
            }
            if self.filled >= HEAD_BYTES_MAX {
                return Ok(Err(431));
            }
            self.receive()?;
        }
    }

    /// Receives as many bytes as have arrived and fit.
    fn receive(&mut self) -> io::Result<()> {
        match self.stream.read(&mut self.input[self.filled..])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            length => {
                self.filled += length;
                Ok(())
            }
        }
    }

    /// Removes used bytes from the front of the input.
    fn consume(&mut self, length: usize) {
        self.input.copy_within(length..self.filled, 0);
        self.filled -= length;
    }

    fn discard(&mut self, mut length: u64) -> io::Result<()> {
        loop {
            let present = length.min(self.filled as u64);
            self.consume(present as usize);
            length -= present;
            if length == 0 {
                return Ok(());
            }
            self.receive()?;
        }
    }

    fn respond(&mut self, status: u16, head_only: bool, keep_alive: bool) -> io::Result<()> {
        let body = wire::body(status);
        let date = wire::http_date(SystemTime::now());
        let (code, length) = (status.to_string(), body.len().to_string());
        // The kernel gathers the parts: nothing is copied together first.
        let parts = [
            "HTTP/1.1 ",
            &code,
            " ",
            wire::reason(status),
            "\r\nDate: ",
            &date,
            "\r\nContent-Type: text/plain\r\nContent-Length: ",
            &length,
            if keep_alive { "\r\n\r\n" } else { "\r\nConnection: close\r\n\r\n" },
            if head_only { "" } else { body },
        ];
        let mut slices = parts.map(|part| IoSlice::new(part.as_bytes()));
        let mut unsent = &mut slices[..];
        while !unsent.is_empty() {
            let sent = self.stream.write_vectored(unsent)?;
            IoSlice::advance_slices(&mut unsent, sent);
        }
        Ok(())
    }

    /// Ends our side, then discards input: unread input at a close would reset the connection and lose the response.
    fn linger(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        self.discard(LINGER_BYTES_MAX)
    }
}

/// Finds the parts of a head, then decides the response or the status to refuse it with.
fn parse(head: &[u8]) -> Result<Reply, u16> {
    let text = str::from_utf8(head).map_err(|_| 400_u16)?;
    // An empty line before a request is skipped (RFC 9112, section 2.2).
    let text = text.strip_prefix("\r\n").unwrap_or(text);
    let mut lines = text.strip_suffix("\r\n\r\n").unwrap_or(text).split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let mut headers: Vec<(&str, &str)> = Vec::new();
    for line in lines {
        headers.push(line.split_once(':').ok_or(400_u16)?);
    }
    let [method, target, version] = words[..] else { return Err(400) };
    let mut rules = Rules::new(method, target, version)?;
    for (name, value) in headers {
        rules.header(name, value)?;
    }
    rules.reply()
}
