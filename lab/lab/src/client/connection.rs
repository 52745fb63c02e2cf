//! One connection of the client: what it has sent, and how much of the answers has come.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::STATUS_LINE;
use super::request::Requests;
use crate::tally::Tally;

/// What a connection needs after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    GoOn,
    Reconnect,
}

pub(super) struct Connection {
    socket: OwnedFd,
    requests: Requests,
    /// Requests sent on this connection, and answers that came.
    asked: u32,
    answered: u32,
    /// Bytes of the batch that the socket did not take yet.
    unsent: Vec<u8>,
    /// Bytes of the answer that is coming.
    received: usize,
    /// Whether its status line is the wanted one, as far as it has come.
    good: bool,
    limit: u32,
    depth: u32,
}

/// The peer took no more bytes and never will.
struct Refused;

impl Connection {
    pub(super) fn new(socket: OwnedFd, requests: Requests, limit: u32, depth: u32) -> Self {
        let unsent = Vec::new();
        Self { socket, requests, asked: 0, answered: 0, unsent, received: 0, good: true, limit, depth }
    }

    /// Begins anew on another socket; the old one is closed by it.
    pub(super) fn renew(&mut self, socket: OwnedFd) {
        self.socket = socket;
        self.unsent.clear();
        (self.asked, self.answered, self.received, self.good) = (0, 0, 0, true);
    }

    /// Reads all that has come and asks for more.
    pub(super) fn turn(&mut self, buffer: &mut [u8], answer_bytes: usize, tally: &mut Tally) -> Turn {
        loop {
            if self.send().is_err() {
                tally.write_errors += 1;
                return Turn::Reconnect;
            }
            let length = match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => {
                    tally.read_errors += 1;
                    return Turn::Reconnect;
                }
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => return Turn::GoOn,
                Err(_) => {
                    tally.read_errors += 1;
                    return Turn::Reconnect;
                }
            };
            tally.bytes += length as u64;
            self.take(&buffer[..length], answer_bytes, tally);
            if self.limit > 0 && self.answered >= self.limit {
                return Turn::Reconnect;
            }
        }
    }

    /// Sends the next batch once all answers to the last one have come, and what of it did not fit.
    fn send(&mut self) -> Result<(), Refused> {
        if self.asked == self.answered && self.unsent.is_empty() {
            self.unsent.extend_from_slice(self.requests.next());
            self.asked += self.depth;
        }
        while !self.unsent.is_empty() {
            match rustix::net::send(&self.socket, &self.unsent, SendFlags::NOSIGNAL) {
                Ok(length) => drop(self.unsent.drain(..length)),
                Err(Errno::AGAIN) => return Ok(()),
                Err(_) => return Err(Refused),
            }
        }
        Ok(())
    }

    fn take(&mut self, mut bytes: &[u8], answer_bytes: usize, tally: &mut Tally) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(answer_bytes - self.received));
            if let Some(wanted) = STATUS_LINE.get(self.received..) {
                let length = wanted.len().min(now.len());
                self.good &= now[..length] == wanted[..length];
            }
            self.received += now.len();
            if self.received == answer_bytes {
                tally.responses += 1;
                tally.status_errors += u64::from(!self.good);
                self.answered += 1;
                (self.received, self.good) = (0, true);
            }
            bytes = later;
        }
    }
}
