//! One hostile connection at work: it sends, reads and leaves as its script says, and notices when it is put out.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::TcpStream;
use socket2::SockRef;

use super::ending::{End, How};
use super::received::Received;
use super::script::{Reading, Script};

/// What one connection sends or receives before the others have their turn, bytes.
const BYTES_PER_TURN_MAX: usize = 256 * 1024;

/// What the kernel tells of a socket.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signs {
    writable: bool,
    read_closed: bool,
    error: bool,
}

impl From<&Event> for Signs {
    fn from(event: &Event) -> Self {
        Self {
            writable: event.is_writable(),
            read_closed: event.is_read_closed(),
            error: event.is_error() || event.is_write_closed(),
        }
    }
}

/// When a connection has to be looked at again.
#[derive(Debug)]
pub(super) enum Next {
    /// When the kernel tells something.
    Event,
    /// Then at the latest.
    At(Instant),
    /// Never: this is how it ended.
    End(End),
}

/// Why a connection has nothing more to do.
type Ended = How;

/// A hostile connection.
#[derive(Debug)]
pub(super) struct Visitor {
    /// The socket, to be registered.
    pub(super) stream: TcpStream,
    script: Arc<Script>,
    opened: Instant,
    connected: bool,
    writable: bool,
    sent: u64,
    half_closed: bool,
    server_ended: bool,
    piece_due: Instant,
    read_due: Instant,
    received: Received,
}

impl Visitor {
    /// Takes over a socket that is connecting since `opened`.
    pub(super) fn new(stream: TcpStream, script: Arc<Script>, opened: Instant) -> Self {
        Self {
            stream,
            script,
            opened,
            connected: false,
            writable: false,
            sent: 0,
            half_closed: false,
            server_ended: false,
            piece_due: opened,
            read_due: opened,
            received: Received::default(),
        }
    }

    /// How long ago it set out to connect.
    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.opened)
    }

    /// Its end, if it ended `how` now.
    pub(super) fn end(&self, how: How) -> End {
        End { status: self.received.status(), how }
    }

    /// Does what is due, given what the kernel told; `scratch` is where received bytes go.
    pub(super) fn turn(&mut self, now: Instant, signs: Signs, scratch: &mut [u8]) -> Next {
        self.writable |= signs.writable;
        if signs.error && self.is_broken() {
            self.drain(scratch);
            return Next::End(self.end(if self.connected { How::Reset } else { How::Refused }));
        }
        self.connected |= signs.writable;
        if !self.connected {
            return self.leaving_time(now).map_or(Next::Event, Next::At);
        }
        match self.act(now, signs, scratch) {
            Ok(due) => {
                let due = due.into_iter().chain(self.leaving_time(now)).min();
                due.map_or(Next::Event, Next::At)
            }
            Err(how) => Next::End(self.end(how)),
        }
    }

    fn act(&mut self, now: Instant, signs: Signs, scratch: &mut [u8]) -> Result<Option<Instant>, Ended> {
        if self.script.leaves_after.is_some_and(|time| self.age(now) >= time) {
            return Err(self.leave());
        }
        let to_send = match self.send(now) {
            Ok(due) => due,
            Err(how) => {
                self.drain(scratch);
                return Err(how);
            }
        };
        let to_read = self.read(now, signs.read_closed, scratch)?;
        if self.is_served() {
            return Err(How::Served);
        }
        if self.script.leaves_after_bytes.is_some_and(|most| self.received.total() >= most) {
            return Err(self.leave());
        }
        Ok(to_send.into_iter().chain(to_read).min())
    }

    fn is_served(&self) -> bool {
        let good = self.received.status().is_some_and(|status| (200..400).contains(&status));
        self.script.answers > 0 && good && self.received.answers() >= self.script.answers
    }

    fn leaving_time(&self, now: Instant) -> Option<Instant> {
        self.script.leaves_after.map(|time| (self.opened + time).max(now))
    }

    /// A reset: what was sent and not delivered is gone.
    fn leave(&self) -> Ended {
        // Where the socket does not take it, the connection ends in order instead.
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        How::Left
    }

    fn is_broken(&self) -> bool {
        !matches!(self.stream.take_error(), Ok(None))
    }

    /// Sends what is due; gives when more is.
    fn send(&mut self, now: Instant) -> Result<Option<Instant>, Ended> {
        let mut budget = BYTES_PER_TURN_MAX;
        while self.writable {
            let Some(bytes) = self.script.bytes_at(self.sent) else {
                self.end_sending();
                return Ok(None);
            };
            if self.piece_due > now {
                return Ok(Some(self.piece_due));
            }
            if budget == 0 {
                return Ok(Some(now));
            }
            match self.stream.write(&bytes[..bytes.len().min(budget)]) {
                Ok(length) => {
                    self.sent += length as u64;
                    budget -= length;
                    self.piece_due =
                        self.script.pause_at(self.sent).map_or(self.piece_due, |pause| now + pause);
                }
                Err(error) if would_block(&error) => self.writable = false,
                Err(_) => return Err(How::Reset),
            }
        }
        Ok(None)
    }

    fn end_sending(&mut self) {
        if self.script.half_close && !self.half_closed {
            self.half_closed = true;
            // A connection that is gone already shows it on the next read.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
    }

    /// Reads what is due; gives when more is.
    fn read(&mut self, now: Instant, closed: bool, scratch: &mut [u8]) -> Result<Option<Instant>, Ended> {
        if self.server_ended {
            return Ok(None);
        }
        let (most, due) = match self.script.reading {
            _ if closed => (usize::MAX, None),
            Reading::AtOnce => (BYTES_PER_TURN_MAX, None),
            Reading::Never => return Ok(None),
            Reading::Slowly { .. } if self.read_due > now => return Ok(Some(self.read_due)),
            Reading::Slowly { bytes, every } => {
                self.read_due = now + every;
                (bytes, Some(self.read_due))
            }
        };
        if self.receive(most, scratch)? {
            return Ok(due);
        }
        Ok(Some(due.unwrap_or(now)))
    }

    /// Receives up to `most` bytes. True when there is no more for now, false when there may be.
    fn receive(&mut self, most: usize, scratch: &mut [u8]) -> Result<bool, Ended> {
        let mut left = most;
        while left > 0 {
            let room = scratch.len().min(left);
            match self.stream.read(&mut scratch[..room]) {
                Ok(0) => {
                    self.server_ended = true;
                    return if self.script.sends_on { Ok(true) } else { Err(How::Closed) };
                }
                Ok(length) => {
                    self.received.take(&scratch[..length]);
                    left -= length;
                }
                Err(error) if would_block(&error) => return Ok(true),
                Err(_) => return Err(How::Reset),
            }
            if self.script.leaves_after_bytes.is_some_and(|bytes| self.received.total() >= bytes) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes what had come before the end: it may hold the answer.
    fn drain(&mut self, scratch: &mut [u8]) {
        if !self.server_ended {
            // However it ends: what counts is the status that may be in it.
            let _ = self.receive(BYTES_PER_TURN_MAX, scratch);
        }
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected)
}
