//! One connection of the client: unsent requests, and how much of the next response has arrived.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::requests::Requests;
use super::{Load, Tally};

pub(super) struct Connection {
    socket: OwnedFd,
    requests: Requests,
    /// Bytes that the socket did not take yet.
    unsent: Vec<u8>,
    /// Responses that are still missing.
    outstanding: u32,
    /// Whole responses on this socket.
    pub(super) responses: u64,
    /// Index of the exchange whose response is next.
    expected: usize,
    /// Bytes of the next response.
    received: u64,
    /// False if its status line differs, as far as it has arrived.
    is_good: bool,
    /// Start of the latency of the outstanding request.
    pub(super) since: Option<Instant>,
}

/// Outcome of one receive.
pub(super) enum Received {
    Bytes,
    /// The socket is empty.
    Nothing,
    /// The connection is closed or has failed.
    End,
    /// More bytes than the outstanding responses have.
    Unexpected,
}

/// The socket has failed.
pub(super) struct Failed;

impl Connection {
    pub(super) fn new(socket: OwnedFd, requests: Requests) -> Self {
        let expected = requests.next_index();
        let (unsent, outstanding, responses, received, since) = (Vec::new(), 0, 0, 0, None);
        Self { socket, requests, unsent, outstanding, responses, expected, received, is_good: true, since }
    }

    /// Restarts on another socket; the old one closes.
    pub(super) fn renew(&mut self, socket: OwnedFd) {
        self.socket = socket;
        self.unsent.clear();
        (self.outstanding, self.responses, self.received, self.is_good) = (0, 0, 0, true);
        self.expected = self.requests.next_index();
    }

    pub(super) fn is_idle(&self) -> bool {
        self.outstanding == 0
    }

    /// Sends the next requests.
    pub(super) fn send(&mut self, load: &Load, since: Option<Instant>) -> Result<(), Failed> {
        self.requests.write_next(load, &mut self.unsent);
        self.outstanding += load.depth;
        self.since = since;
        self.flush()
    }

    /// Sends what did not fit the socket's buffer earlier.
    pub(super) fn flush(&mut self) -> Result<(), Failed> {
        while !self.unsent.is_empty() {
            match rustix::net::send(&self.socket, &self.unsent, SendFlags::NOSIGNAL) {
                Ok(length) => drop(self.unsent.drain(..length)),
                Err(Errno::AGAIN) => return Ok(()),
                Err(_) => return Err(Failed),
            }
        }
        Ok(())
    }

    pub(super) fn receive(&mut self, load: &Load, buffer: &mut [u8], tally: &mut Tally) -> Received {
        let length = match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => return Received::End,
            Ok((length, _)) => length,
            Err(Errno::AGAIN) => return Received::Nothing,
            Err(_) => return Received::End,
        };
        tally.bytes += length as u64;
        let mut bytes = &buffer[..length];
        while !bytes.is_empty() {
            if self.outstanding == 0 {
                return Received::Unexpected;
            }
            bytes = self.take(bytes, load, tally);
        }
        Received::Bytes
    }

    /// Takes bytes of one response and returns those after it.
    fn take<'a>(&mut self, bytes: &'a [u8], load: &Load, tally: &mut Tally) -> &'a [u8] {
        let exchange = &load.exchanges[self.expected];
        let missing = usize::try_from(exchange.bytes - self.received).unwrap_or(usize::MAX);
        let (now, later) = bytes.split_at(bytes.len().min(missing));
        let status = format_status(exchange.status);
        if let Some(wanted) = usize::try_from(self.received).ok().and_then(|start| status.get(start..)) {
            let length = wanted.len().min(now.len());
            self.is_good &= now[..length] == wanted[..length];
        }
        self.received += now.len() as u64;
        if self.received == exchange.bytes {
            tally.responses += 1;
            tally.status_errors += u64::from(!self.is_good);
            self.responses += 1;
            self.outstanding -= 1;
            self.expected = self.requests.index_after(self.expected);
            (self.received, self.is_good) = (0, true);
        }
        later
    }
}

/// Returns the beginning of a response with this status.
fn format_status(status: u16) -> [u8; 12] {
    let digit = |divisor| b'0' + (status / divisor % 10) as u8;
    let [a, b, c, d, e, f, g, h, i] = *b"HTTP/1.1 ";
    [a, b, c, d, e, f, g, h, i, digit(100), digit(10), digit(1)]
}
