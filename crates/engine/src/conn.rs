//! A connection's slot: all that an idle connection owns in a worker.

use crate::timer::{Node, UNLINKED};

/// "No index": an absent block, address or neighbor.
pub(crate) const NONE: u32 = u32::MAX;

/// Phases of a connection, as seen by its reading side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Unused slot.
    Free,
    /// Accepted; nothing received yet.
    First,
    /// Between two requests.
    Idle,
    /// Between two requests, after the CR of a stray line end (RFC 9112 section 2.2).
    StrayCr,
    /// Between two requests, after a stray line end.
    StrayLine,
    /// Part of a head has been received.
    Head,
    /// A body is being received.
    Body,
    /// A body is being received, and a deferred handler pulls it.
    ReadingBody,
    /// A body is being received while its response is streamed.
    Streaming,
    /// The request is complete and its handler is at work, or its `101` is being sent.
    Handling,
    /// The last response is being sent; no further request is read.
    LastResponse,
    /// The last response is sent and our side shut down; input is discarded.
    Linger,
    /// Handed over to the program. The slot is in use until the connection's guard is dropped.
    HandedOver,
    /// Closed here; the driver's `Closed` is pending.
    Closing,
}

/// Further state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    /// A send is in flight.
    Sending = 1,
    /// The peer has sent a FIN.
    ReadClosed = 2,
    /// The client may still be sending after the last response: linger.
    Linger = 4,
    /// In the ready queue, with input to process.
    Queued = 8,
    /// Receiving is paused.
    Paused = 16,
    /// The head's deadline runs from accept, not from its first byte.
    FirstHead = 32,
    /// The current request is a `HEAD`: its response has no body.
    HeadOnly = 64,
    /// During a send: its rate has been measured since an earlier check. While lingering: the short linger of
    /// a drain has been extended once. `linger_began` clears it in between.
    Measured = 128,
}

/// One connection: 32 bytes; together with the driver's part at most 64 (ARCHITECTURE.md, invariant 6).
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) generation: u32,
    /// Index of its block while a request is unfinished, else `NONE`.
    pub(crate) block: u32,
    /// Index of its address in the table of addresses, else `NONE`.
    pub(crate) address: u32,
    /// During a measured send: progress at the last check (`deadline::look`). While lingering: bytes
    /// discarded.
    pub(crate) progress: u32,
    pub(crate) timer: Node,
    /// The timer's bucket in the wheel.
    pub(crate) bucket: u16,
    pub(crate) phase: Phase,
    flags: u8,
}

const _: () = assert!(size_of::<Conn>() <= 32);

impl Default for Conn {
    fn default() -> Self {
        Self::free()
    }
}

impl Conn {
    pub(crate) const fn free() -> Self {
        Self {
            generation: 0,
            block: NONE,
            address: NONE,
            progress: 0,
            timer: Node::unlinked(),
            bucket: UNLINKED,
            phase: Phase::Free,
            flags: 0,
        }
    }

    /// Initializes the slot for a new connection.
    pub(crate) fn open(&mut self, generation: u32) {
        *self = Self { generation, phase: Phase::First, ..Self::free() };
        self.set(Flag::FirstHead);
    }

    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.flags & flag as u8 != 0
    }

    pub(crate) fn set(&mut self, flag: Flag) {
        self.flags |= flag as u8;
    }

    pub(crate) fn unset(&mut self, flag: Flag) {
        self.flags &= !(flag as u8);
    }

    /// Returns true if requests are still read from it.
    pub(crate) fn is_serving(&self) -> bool {
        match self.phase {
            Phase::First
            | Phase::Idle
            | Phase::StrayCr
            | Phase::StrayLine
            | Phase::Head
            | Phase::Body
            | Phase::ReadingBody
            | Phase::Streaming
            | Phase::Handling => true,
            Phase::Free | Phase::LastResponse | Phase::Linger | Phase::HandedOver | Phase::Closing => false,
        }
    }

    /// Returns true if new input may be processed now; else it must be queued.
    pub(crate) fn is_live(&self) -> bool {
        match self.phase {
            Phase::First
            | Phase::Idle
            | Phase::StrayCr
            | Phase::StrayLine
            | Phase::Head
            | Phase::Body
            | Phase::ReadingBody => !self.has(Flag::Sending) && !self.has(Flag::Queued),
            Phase::Streaming => !self.has(Flag::Queued),
            Phase::Free
            | Phase::Handling
            | Phase::LastResponse
            | Phase::Linger
            | Phase::HandedOver
            | Phase::Closing => false,
        }
    }

    /// Returns true if a deferred handler is at work on its request.
    pub(crate) fn is_handled(&self) -> bool {
        matches!(self.phase, Phase::ReadingBody | Phase::Streaming | Phase::Handling)
    }

    /// Returns true if a deferred handler pulls a body that is still being received.
    pub(crate) fn is_pulling_body(&self) -> bool {
        matches!(self.phase, Phase::ReadingBody | Phase::Streaming)
    }

    /// Returns true if nothing is sent or received until its handler resumes.
    pub(crate) fn waits_for_handler(&self) -> bool {
        let is_idle = self.phase == Phase::Handling || (self.is_pulling_body() && self.has(Flag::Paused));
        is_idle && !self.has(Flag::Sending)
    }

    /// Returns true if it owns no block and expects no event but input, as most connections do.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.block == NONE && self.flags & (Flag::Paused as u8 | Flag::ReadClosed as u8) == 0
    }

    /// Returns true if the end of the current send unblocks something: a request, a handler, the close.
    #[inline]
    pub(crate) fn waits_for_sent(&self) -> bool {
        self.phase != Phase::Idle || !self.is_settled()
    }

    /// Returns true if a request is being received, queued or handled. False if only the client's FIN is
    /// pending.
    pub(crate) fn is_at_work(&self) -> bool {
        match self.phase {
            Phase::First | Phase::Idle | Phase::StrayCr | Phase::StrayLine => {
                self.has(Flag::Sending) || self.has(Flag::Queued)
            }
            Phase::Head
            | Phase::Body
            | Phase::ReadingBody
            | Phase::Streaming
            | Phase::Handling
            | Phase::LastResponse => true,
            Phase::Free | Phase::Linger | Phase::HandedOver | Phase::Closing => false,
        }
    }

    /// Returns true if it is between requests.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::First | Phase::Idle | Phase::StrayCr | Phase::StrayLine)
    }

    /// Returns the received part of a stray line end, which precedes the next input. The connection is idle
    /// afterwards.
    pub(crate) fn take_stray(&mut self) -> &'static [u8] {
        let stray: &[u8] = match self.phase {
            Phase::StrayCr => b"\r",
            Phase::StrayLine => b"\r\n",
            _ => return b"",
        };
        self.phase = Phase::Idle;
        stray
    }
}
