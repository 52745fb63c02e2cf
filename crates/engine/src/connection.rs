//! A connection: its phases, every transition between them, and what is armed in each.
//!
//! | phase | meaning | next, and when | reading | deadline | busy with |
//! |---|---|---|---|---|---|
//! | `Idle` | between requests; the last response may still be in flight | as `Head`; `Head`: a part of a head; `Multiplexed`: HTTP/2 begins; `Linger`: its TLS handshake has failed; `StrayCr`, `StrayLine`: a stray line end; `ProxyHeader`: one must come first | on | `idle_ms` from the last response, or the stray line end after it; `drain_idle_ms` while draining | queued input |
//! | `StrayCr`, `StrayLine` | after (a part of) a stray line end | `Idle`: more input | on | that of `Idle` | – |
//! | `Head` | a part of a head | `Idle`: responded; `Body`: a body follows; `Waiting`: deferred; `Multiplexed`: a preface of HTTP/2 | on | `head_ms` from its first byte | partial head |
//! | `Body` | input is the body of the exchange | `Idle`: it is complete, and responded; `Waiting`: it is complete | while the handler has room | the exchange's | exchange |
//! | `Waiting` | the request is complete, its exchange open | `Idle`: responded; `Waiting`: upgraded; `HandedOver`, `Tunnel`: the `101` is sent | on until input arrives | the exchange's | exchange |
//! | `Multiplexed` | HTTP/2: requests on streams | none | on | `worker/http2/deadlines.rs` | streams |
//! | `ProxyHeader` | accepted, its PROXY header is incomplete | `Idle`: it is complete; `Evicted` | on | that of `Idle` | partial header |
//! | `Evicted` | makes room for another connection until the end of the turn | `LastResponse`: refused; `Truncated`: its response had begun | as before | as before | – |
//! | `Truncated` | a response was cut off, and the rest of it is being sent | none | as before | as before | – |
//! | `LastResponse` | the last response is being sent | `Linger`: it is sent | as before | as before | – |
//! | `Linger` | our side is shut down, input is discarded | none | on | `linger_ms`, short while draining | – |
//! | `HandedOver` | the driver detaches the descriptor for the program, which then owns it | none | off | none | – |
//! | `Tunnel` | bytes pass between the client and the program (`tunnel.rs`) | `Linger`: the program's are sent, and no more come | the tunnel's | that of a send, once the program has closed its end | – |
//! | `Closing` | closed here | `Free`: the driver's `Closed` | off | none | – |
//!
//! Each phase except `Closing` may become `Closing`. Each in which requests are read (`Idle`, `Head`, `Body`, `Waiting` and `Multiplexed`)
//! may become `LastResponse` (refused, or the last), `Truncated` or `Evicted`. Three flags outweigh the table. Until the
//! first head is complete (`Fresh`), the deadline is `first_head_ms` from accept; a drain shortens it to `drain_idle_ms`,
//! or to `head_ms` if a part of the head has arrived. While `Sending`, it is that of the send, and input that may not be
//! processed yet pauses reading: all but the body of an exchange that sends. With `ReadClosed`, the connection ends as soon
//! as its input is processed.
//!
//! Transitions are the methods of [`Conn`]. `Worker::reconcile` derives the last three columns. The states of an exchange
//! and its deadline are in `exchange/mod.rs`.

use crate::memory::NONE;
use crate::response::facts::Disposition;
use crate::timers::wheel::{Node, Timed, UNLINKED};

pub(crate) mod addresses;
pub(crate) mod busy;
pub(crate) mod disconnects;
pub(crate) mod served;

/// Phases of a connection, as seen by its reading side. The module's table explains them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Unused slot.
    Free,
    Idle,
    StrayCr,
    StrayLine,
    Head,
    Body,
    Waiting,
    Multiplexed,
    ProxyHeader,
    Evicted,
    Truncated,
    LastResponse,
    Linger,
    HandedOver,
    Tunnel,
    Closing,
}

impl Phase {
    /// Returns true if the module's table has `next` after this phase.
    fn allows(self, next: Self) -> bool {
        use Phase::{
            Body, Closing, Evicted, Free, HandedOver, Head, Idle, LastResponse, Linger, Multiplexed,
            ProxyHeader, StrayCr, StrayLine, Truncated, Tunnel, Waiting,
        };
        match self {
            Free => next == Idle,
            Closing => next == Free,
            _ if next == Closing => true,
            Idle | Head | Body | Waiting | Multiplexed
                if matches!(next, Evicted | Truncated | LastResponse) =>
            {
                true
            }
            Idle => {
                matches!(
                    next,
                    StrayCr | StrayLine | Head | Idle | Body | Waiting | Multiplexed | ProxyHeader | Linger
                )
            }
            StrayCr | StrayLine => next == Idle,
            Head => matches!(next, Idle | Body | Waiting | Multiplexed),
            Body => matches!(next, Idle | Waiting),
            Waiting => matches!(next, Idle | Waiting | HandedOver | Tunnel),
            ProxyHeader => matches!(next, Idle | Evicted),
            Evicted => matches!(next, Truncated | LastResponse),
            LastResponse | Tunnel => next == Linger,
            Multiplexed | Truncated | Linger | HandedOver => false,
        }
    }
}

/// Further state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    /// A send is in flight.
    Sending = 1,
    /// The peer has sent a FIN.
    ReadClosed = 2,
    /// In the ready queue, with input to process.
    Queued = 4,
    /// Receiving is paused.
    Paused = 8,
    /// No request's head is complete yet.
    Fresh = 16,
    /// The rate of the current send has been measured since an earlier check.
    Measured = 32,
    /// The short linger of a drain was extended to the usual one.
    LingerExtended = 64,
    /// The phase's deadline starts anew at the next `reconcile` without a send in flight.
    Restart = 128,
}

/// One connection: 32 bytes; together with the driver's part at most 64 (ARCHITECTURE.md, invariant 6).
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) generation: u32,
    /// Index of its [`Busy`](busy::Busy) while it has one, else `NONE`.
    pub(crate) busy: u32,
    /// Index of its address in the table of addresses, else `NONE`.
    pub(crate) address: u32,
    /// The time of its accept in milliseconds until its first request; later see `measure_send` and `discard`.
    pub(crate) number: u32,
    pub(crate) timer: Node,
    /// The timer's bucket in the wheel.
    pub(crate) bucket: u16,
    phase: Phase,
    flags: u8,
}

const _: () = assert!(size_of::<Conn>() <= 32);

impl Default for Conn {
    fn default() -> Self {
        Self {
            generation: 0,
            busy: NONE,
            address: NONE,
            number: 0,
            timer: Node::unlinked(),
            bucket: UNLINKED,
            phase: Phase::Free,
            flags: 0,
        }
    }
}

impl Timed for Conn {
    #[inline]
    fn timer(&mut self) -> (&mut Node, &mut u16) {
        (&mut self.timer, &mut self.bucket)
    }
}

/// Transitions. No other code assigns a phase.
impl Conn {
    #[inline(always)]
    fn enter(&mut self, next: Phase) {
        debug_assert!(self.phase.allows(next), "{:?} after {:?}", next, self.phase);
        self.phase = next;
    }

    /// Initializes the slot of an accepted connection.
    pub(crate) fn open(&mut self, generation: u32, now_ms: u64) {
        self.enter(Phase::Idle); // driver contract K1: the slot is free after `Closed`
        let flags = Flag::Fresh as u8 | Flag::Restart as u8;
        *self = Self { generation, phase: Phase::Idle, flags, number: now_ms as u32, ..Self::default() };
    }

    /// A PROXY header must come first.
    pub(crate) fn expect_proxy_header(&mut self) {
        debug_assert!(self.has(Flag::Fresh), "a PROXY header after a request");
        self.enter(Phase::ProxyHeader);
    }

    /// The PROXY header is complete. The deadline of the first head keeps running.
    pub(crate) fn end_proxy_header(&mut self) {
        self.enter(Phase::Idle);
    }

    /// Frees the slot.
    pub(crate) fn free(&mut self) {
        self.enter(Phase::Free); // driver contract C4: only the worker closes
        *self = Self::default();
    }

    /// Input that is a stray line end, or its first half, leaves the connection idle and not busy.
    pub(crate) fn keep_stray(&mut self, is_whole: bool) {
        self.enter(if is_whole { Phase::StrayLine } else { Phase::StrayCr });
    }

    /// Returns the received part of a stray line end, which precedes the next input.
    pub(crate) fn take_stray(&mut self) -> &'static [u8] {
        let stray: &[u8] = match self.phase {
            Phase::StrayCr => b"\r",
            Phase::StrayLine => b"\r\n",
            _ => return b"",
        };
        self.enter(Phase::Idle);
        stray
    }

    /// A part of a head has arrived.
    pub(crate) fn begin_head(&mut self) {
        if self.phase == Phase::Idle {
            self.enter(Phase::Head);
            self.restart_deadline();
        }
    }

    /// The request's head is complete, and its body follows.
    pub(crate) fn begin_body(&mut self) {
        self.enter(Phase::Body);
        self.unset(Flag::Fresh);
    }

    /// The request is complete, and its exchange open.
    pub(crate) fn begin_waiting(&mut self) {
        self.enter(Phase::Waiting);
        self.unset(Flag::Fresh);
        self.restart_deadline();
    }

    /// HTTP/2 begins. The deadline of the first head keeps running until there is a request.
    pub(crate) fn multiplex(&mut self) {
        self.enter(Phase::Multiplexed);
    }

    /// A stream has begun with the head of its request.
    pub(crate) fn begin_stream(&mut self) {
        self.unset(Flag::Fresh);
    }

    /// The response is encoded; it may not be sent yet.
    #[inline(always)]
    pub(crate) fn end_request(&mut self, disposition: Disposition) {
        // A restart that is still pending is that of the request's deadline.
        self.flags &= !(Flag::Fresh as u8 | Flag::Restart as u8);
        self.enter(match disposition {
            Disposition::Keep => Phase::Idle,
            Disposition::Last => Phase::LastResponse,
            Disposition::Truncated => Phase::Truncated,
            Disposition::HandOver => Phase::Waiting,
        });
    }

    /// Stops reading: the connection makes room for another one.
    pub(crate) fn evict(&mut self) {
        self.enter(Phase::Evicted);
    }

    pub(crate) fn linger(&mut self) {
        self.enter(Phase::Linger);
        self.number = 0;
        self.restart_deadline();
    }

    /// The program owns the descriptor from now on.
    pub(crate) fn hand_over(&mut self) {
        self.enter(Phase::HandedOver);
    }

    /// Its bytes pass to and from the program from now on.
    pub(crate) fn join(&mut self) {
        self.enter(Phase::Tunnel);
    }

    /// A send in flight is cancelled.
    pub(crate) fn close(&mut self) {
        self.enter(Phase::Closing);
        self.unset(Flag::Sending);
    }

    /// A send is in flight.
    pub(crate) fn begin_send(&mut self) {
        self.unset(Flag::Measured);
        self.set(Flag::Sending);
    }

    /// Stores the progress of a send; returns the difference to the last check.
    pub(crate) fn measure_send(&mut self, units: u32) -> u32 {
        units.wrapping_sub(std::mem::replace(&mut self.number, units))
    }

    /// Counts discarded bytes; returns their sum since the beginning of the linger.
    pub(crate) fn discard(&mut self, len: usize) -> u32 {
        self.number = self.number.saturating_add(u32::try_from(len).unwrap_or(u32::MAX));
        self.number
    }

    /// The send is over.
    pub(crate) fn end_send(&mut self) {
        self.unset(Flag::Sending);
    }

    /// Starts the phase's deadline anew.
    pub(crate) fn restart_deadline(&mut self) {
        self.set(Flag::Restart);
    }
}

/// Queries.
impl Conn {
    pub(crate) fn phase(&self) -> Phase {
        self.phase
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
        self.is_silent() || self.is_receiving() || matches!(self.phase, Phase::Waiting | Phase::Multiplexed)
    }

    /// Returns true if a part of a request has been received.
    pub(crate) fn is_receiving(&self) -> bool {
        matches!(self.phase, Phase::Head | Phase::Body)
    }

    /// Returns true if new input may be processed now; else it must be queued, unless the exchange
    /// streams meanwhile.
    pub(crate) fn is_live(&self) -> bool {
        (self.is_idle() || self.is_receiving())
            && self.flags & (Flag::Sending as u8 | Flag::Queued as u8) == 0
    }

    /// Returns true if it is idle, not busy and is read, as most connections are: it needs nothing but a deadline.
    /// The end of a send, if one is in flight, unblocks nothing.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.phase == Phase::Idle
            && self.busy == NONE
            && self.flags & (Flag::Paused as u8 | Flag::ReadClosed as u8 | Flag::Fresh as u8) == 0
    }

    /// Returns true if it is between requests, or before the first one.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::StrayCr | Phase::StrayLine)
    }

    /// Returns true if it can be closed without a response: between requests, or before its PROXY header.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_idle() || self.phase == Phase::ProxyHeader
    }
}

#[cfg(test)]
mod tests;
