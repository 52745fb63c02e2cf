//! A connection's slot: all that an idle connection owns in a worker.

use crate::timer::{Node, UNLINKED};

/// "No index": an absent block, address or neighbour.
pub(crate) const NONE: u32 = u32::MAX;

/// What is being read from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The slot is unused.
    Free,
    /// Accepted; no byte has come.
    First,
    /// Between two requests.
    Idle,
    /// Between two requests, after the CR of a stray line end (RFC 9112 section 2.2).
    StrayCr,
    /// Between two requests, after a stray line end.
    StrayLine,
    /// A part of a head has come.
    Head,
    /// A head has come, its body is coming.
    Body,
    /// Likewise, and a handler that is at work on it takes the body as it comes.
    Taking,
    /// Likewise, and the handler's answer has begun: bytes go both ways.
    Exchanging,
    /// A handler is at work on the request, which is there as a whole; or its `101` is on its way.
    Handling,
    /// No further request is read: the last answer is on its way.
    Last,
    /// The last answer is sent and our side shut; what still comes is thrown away.
    Linger,
    /// Handed over to the program. The slot is in use until the connection's guard is dropped.
    HandedOver,
    /// Closed here; the driver's `Closed` is awaited.
    Closing,
}

/// What else is true of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    /// A send is in flight.
    Sending = 1,
    /// The peer has ended its side.
    ReadClosed = 2,
    /// After the last answer the client may still be sending: linger.
    Linger = 4,
    /// It waits in the ready queue, with input to go on with.
    Queued = 8,
    /// Receiving is paused.
    Paused = 16,
    /// A part of the first head counts from accept, not from its first byte.
    FirstHead = 32,
    /// The request at hand is a `HEAD`: whatever its answer is, it has no body.
    HeadOnly = 64,
    /// While a send is in flight: its rate has been measured from an earlier look on. While lingering: the short linger of a drain has
    /// been extended once. `linger_began` clears it in between.
    Measured = 128,
}

/// One connection: 32 bytes, together with the driver's part at most 64 (ARCHITECTURE.md, invariant 6).
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) generation: u32,
    /// Index of its block while a request is unfinished, else `NONE`.
    pub(crate) block: u32,
    /// Index of its address in the table of addresses, else `NONE`.
    pub(crate) address: u32,
    /// While a send is measured: what the client had taken at the last look (`deadline::look`). While lingering: bytes thrown away.
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

    /// Takes the slot for a new connection.
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

    /// Whether requests are still read from it.
    pub(crate) fn is_serving(&self) -> bool {
        match self.phase {
            Phase::First
            | Phase::Idle
            | Phase::StrayCr
            | Phase::StrayLine
            | Phase::Head
            | Phase::Body
            | Phase::Taking
            | Phase::Exchanging
            | Phase::Handling => true,
            Phase::Free | Phase::Last | Phase::Linger | Phase::HandedOver | Phase::Closing => false,
        }
    }

    /// Whether new input may be looked at now; else it has to wait its turn.
    pub(crate) fn is_live(&self) -> bool {
        match self.phase {
            Phase::First
            | Phase::Idle
            | Phase::StrayCr
            | Phase::StrayLine
            | Phase::Head
            | Phase::Body
            | Phase::Taking => !self.has(Flag::Sending) && !self.has(Flag::Queued),
            Phase::Exchanging => !self.has(Flag::Queued),
            Phase::Free
            | Phase::Handling
            | Phase::Last
            | Phase::Linger
            | Phase::HandedOver
            | Phase::Closing => false,
        }
    }

    /// Whether a handler is at work on its request.
    pub(crate) fn is_handled(&self) -> bool {
        matches!(self.phase, Phase::Taking | Phase::Exchanging | Phase::Handling)
    }

    /// Whether that handler takes a body that is coming.
    pub(crate) fn is_taking(&self) -> bool {
        matches!(self.phase, Phase::Taking | Phase::Exchanging)
    }

    /// Returns whether nothing is sent or received before its handler goes on.
    pub(crate) fn waits_for_handler(&self) -> bool {
        let is_idle = self.phase == Phase::Handling || (self.is_taking() && self.has(Flag::Paused));
        is_idle && !self.has(Flag::Sending)
    }

    /// Whether it owns nothing and there is nothing that it waits to be told: most connections, most of the time.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.block == NONE && self.flags & (Flag::Paused as u8 | Flag::ReadClosed as u8) == 0
    }

    /// Whether something goes on when what it sends has left: a request that waits, a handler, its end.
    #[inline]
    pub(crate) fn waits_for_sent(&self) -> bool {
        self.phase != Phase::Idle || !self.is_settled()
    }

    /// Whether a request is on its way in, waits, or is being answered. Not while it only waits for the client's end.
    pub(crate) fn is_at_work(&self) -> bool {
        match self.phase {
            Phase::First | Phase::Idle | Phase::StrayCr | Phase::StrayLine => {
                self.has(Flag::Sending) || self.has(Flag::Queued)
            }
            Phase::Head | Phase::Body | Phase::Taking | Phase::Exchanging | Phase::Handling | Phase::Last => {
                true
            }
            Phase::Free | Phase::Linger | Phase::HandedOver | Phase::Closing => false,
        }
    }

    /// Whether it is between requests.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::First | Phase::Idle | Phase::StrayCr | Phase::StrayLine)
    }

    /// Returns the part of a stray line end that has come, which precedes the next input. The connection is idle afterwards.
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
