//! A secured connection's state between two events.

use std::cell::Cell;
use std::io;
use std::mem;
use std::sync::Arc;

use super::session::{Failure, RECORD_BYTES_MAX, Session};
#[cfg(not(target_os = "linux"))]
use crate::not_linux::watches::Watches;
use crate::read_ahead::Fetched;
#[cfg(target_os = "linux")]
use crate::watches::Watches;
use crate::{Item, Output, ReadEnd, SendError, Token};

/// Phase of a connection's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Handshake,
    Secured,
    /// Nothing is opened or sealed any more; the alert may still have to be sent.
    Failed,
    /// The peer doesn't speak TLS: bytes pass unchanged.
    Plain,
}

/// Queue that a connection with unopened whole records waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// No such records.
    No,
    /// Its records of this turn are used up.
    Turn,
    /// The next step is costly.
    Costly,
}

/// A secured connection.
pub(super) struct Connection<S> {
    pub(super) token: Token,
    pub(super) session: S,
    pub(super) phase: Phase,
    pub(super) waits: Waits,
    /// Bytes received and not opened.
    pub(super) partial: Vec<u8>,
    /// Memory of them and of messages that the session has in part, as counted (X5).
    pub(super) held: usize,
    /// Records of the session's own that precede the next output (X7).
    pub(super) reply: Vec<u8>,
    /// The worker's send.
    pub(super) sending: Option<Box<Sending>>,
    /// A send of the driver below: the worker's or its own.
    pub(super) flight: Option<Flight>,
    /// The end of the peer, to be reported after the unopened bytes.
    pub(super) end: Option<ReadEnd>,
    /// Bytes received, and those that the kernel has accepted (X4).
    pub(super) wire_received: u64,
    pub(super) wire_taken: u64,
    /// The last result of `delivered`.
    pub(super) delivered: Cell<u64>,
    /// Turn of the records counted, and their number.
    pub(super) records_turn: u32,
    pub(super) records: usize,
    /// Turn of the last send that counts as done and may still come back (S7).
    pub(super) silent_turn: u32,
    /// The worker has paused receiving; the driver below has.
    pub(super) is_paused: bool,
    pub(super) is_paused_below: bool,
    /// The peer's FIN is known; it was reported.
    pub(super) has_fin: bool,
    pub(super) is_fin_reported: bool,
    /// The end of the receiving side was reported; it was a close_notify.
    pub(super) has_ended: bool,
    pub(super) was_clean: bool,
    /// The driver below has reported a broken connection.
    pub(super) is_broken_below: bool,
    /// A FIN is to follow the present send.
    pub(super) ends_writing: bool,
    pub(super) has_sent_close: bool,
    pub(super) is_closing: bool,
    /// In the queue of long sends.
    pub(super) is_queued: bool,
}

const _: () = assert!(size_of::<Connection<()>>() <= 256, "docs/limits.md states it");

impl<S: Session> Connection<S> {
    pub(super) fn new(token: Token, session: S) -> Self {
        Self {
            token,
            session,
            phase: Phase::Handshake,
            waits: Waits::No,
            partial: Vec::new(),
            held: 0,
            reply: Vec::new(),
            sending: None,
            flight: None,
            end: None,
            wire_received: 0,
            wire_taken: 0,
            delivered: Cell::new(0),
            records_turn: 0,
            records: 0,
            silent_turn: 0,
            is_paused: false,
            is_paused_below: false,
            has_fin: false,
            is_fin_reported: false,
            has_ended: false,
            was_clean: false,
            is_broken_below: false,
            ends_writing: false,
            has_sent_close: false,
            is_closing: false,
            is_queued: false,
        }
    }

    /// Returns whether it opens what it receives.
    pub(super) fn is_open(&self) -> bool {
        !self.is_closing && !self.has_ended && matches!(self.phase, Phase::Handshake | Phase::Secured)
    }

    /// Moves the session's own records to the beginning of an output. Returns their bytes.
    pub(super) fn take_reply(&mut self, wire: &mut Vec<u8>) -> u64 {
        wire.extend_from_slice(&mem::take(&mut self.reply));
        wire.len() as u64
    }

    /// Returns the content of the send in flight whose records the kernel has, after `accepted` bytes of the
    /// present send of the driver below (X4).
    pub(super) fn progress(&self, accepted: u64) -> u64 {
        let Some(sending) = &self.sending else { return 0 };
        let in_flight = self.flight.as_ref().map_or(0, |flight| {
            let content = sending.sealed - sending.done;
            flight.content(content, accepted)
        });
        sending.done + in_flight
    }
}

/// A worker's send.
#[derive(Debug, Default)]
pub(super) struct Sending {
    pub(super) output: Output,
    /// Content that was sealed.
    pub(super) sealed: u64,
    /// Content of it that the kernel has accepted.
    pub(super) done: u64,
    /// The error that ends it once all sealed content was sent.
    pub(super) failure: Option<SendError>,
    /// The fetch of the next range of a file that it waits for.
    pub(super) wants: Option<Arc<Fetched>>,
    pub(super) is_fetching: bool,
    /// The next range was fetched: it is read whether or not it is cached.
    pub(super) is_fetched: bool,
}

impl Sending {
    pub(super) fn new(output: Output) -> Self {
        Self { output, ..Self::default() }
    }

    pub(super) fn is_sealed(&self) -> bool {
        self.failure.is_some() || self.sealed == self.output.len()
    }

    /// Watches the files of the output (S10).
    pub(super) fn guard_files(&self, watches: &mut Watches) {
        for (_, item) in self.output.items() {
            if let Item::File(slice) = item {
                slice.file.guard(watches);
            }
        }
    }
}

/// A send of the driver below.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    /// Bytes of the session's own before the content's records.
    pub(super) reply: u64,
    pub(super) wire: u64,
}

impl Flight {
    /// Returns the part of `content` whose records are within the first `accepted` bytes.
    fn content(self, content: u64, accepted: u64) -> u64 {
        if accepted >= self.wire {
            return content;
        }
        const RECORD: u64 = RECORD_BYTES_MAX as u64;
        let records = content.div_ceil(RECORD).max(1);
        // All records but the last are full, with the same expansion.
        let expansion = self.wire.saturating_sub(self.reply + content).div_ceil(records);
        (accepted.saturating_sub(self.reply) / (RECORD + expansion) * RECORD).min(content)
    }
}

/// Returns the error of a connection whose session has failed.
pub(super) fn broken(failure: Failure) -> io::Error {
    let kind = match failure {
        Failure::Truncated => io::ErrorKind::UnexpectedEof,
        Failure::Memory => io::ErrorKind::OutOfMemory,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, failure.label())
}
