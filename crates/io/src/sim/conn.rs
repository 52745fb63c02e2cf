//! One connection as the driver sees it, and its next step.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use super::operations::OperationKind;
use super::wire::Wire;
use crate::limits::{RECV_AFTER_PAUSE_MAX, RECVS_PER_TURN_MAX, SEND_BYTES_PER_TURN_MAX};
use crate::{Output, SendError, Token};

/// `Sent` events of one connection per turn before other connections are served.
pub(super) const SENTS_PER_TURN_MAX: usize = 4;

/// A send in flight: from the verb until its `Sent`.
#[derive(Debug, Default)]
pub(super) struct SimSend {
    pub(super) output: Output,
    pub(super) taken: u64,
    pub(super) decided: Option<Result<(), SendError>>,
    /// The turn in which it had to stop; it resumes in a later one.
    pub(super) parked_turn: u64,
    /// The turn in which it was reported as done, although it is not (S7).
    pub(super) silent_since: Option<u64>,
    /// Another send has joined it.
    pub(super) has_joined: bool,
}

/// A connection's use of the present turn.
#[derive(Debug, Default)]
pub(super) struct TurnUse {
    turn: u64,
    pub(super) recvs: usize,
    pub(super) sents: usize,
    pub(super) file_bytes: u64,
    /// True if the seed delivers input although receiving is paused.
    pub(super) leaks: bool,
}

#[derive(Debug)]
pub(super) struct SimConnection {
    pub(super) token: Token,
    pub(super) wire: Rc<RefCell<Wire>>,
    pub(super) address: SocketAddr,
    pub(super) sending: Option<SimSend>,
    pub(super) paused: bool,
    pub(super) after_pause_bytes: usize,
    pub(super) end_told: bool,
    pub(super) fin_told: bool,
    pub(super) closing: bool,
    /// A `Detached` is due.
    pub(super) detaching: bool,
    /// No progress before this time.
    pub(super) held_until_ms: u64,
    /// No progress in this turn.
    pub(super) idle_turn: u64,
    /// True if the last operation was deferred.
    pub(super) deferred: bool,
    /// True if its peer is an adopted socket.
    pub(super) is_adopted: bool,
    /// True if it is in the turn's work list.
    pub(super) queued: bool,
    pub(super) used: TurnUse,
}

impl SimConnection {
    pub(super) fn new(token: Token, wire: Rc<RefCell<Wire>>, address: SocketAddr) -> Self {
        Self {
            token,
            wire,
            address,
            sending: None,
            paused: false,
            after_pause_bytes: 0,
            end_told: false,
            fin_told: false,
            closing: false,
            detaching: false,
            held_until_ms: 0,
            idle_turn: 0,
            deferred: false,
            is_adopted: false,
            queued: false,
            used: TurnUse::default(),
        }
    }

    /// Resets the account at the start of a turn.
    pub(super) fn enter_turn(&mut self, turn: u64) {
        if self.used.turn != turn {
            self.used = TurnUse { turn, ..TurnUse::default() };
        }
    }

    /// Returns the next possible operation in this turn; `receiving_first` decides between both sides.
    pub(super) fn next_step(&self, turn: u64, receiving_first: bool) -> Option<OperationKind> {
        if self.detaching {
            return Some(OperationKind::Detached);
        }
        let (sending, receiving) = (self.sending_step(turn), self.receiving_step(turn));
        if sending == Some(OperationKind::Unsent) {
            return sending;
        }
        if receiving_first { receiving.or(sending) } else { sending.or(receiving) }
    }

    fn sending_step(&self, turn: u64) -> Option<OperationKind> {
        match &self.sending {
            None => self.closing.then_some(OperationKind::Closed),
            Some(SimSend { silent_since: Some(since), .. }) => {
                (*since != turn).then_some(OperationKind::Unsent)
            }
            Some(sending) if sending.decided.is_some() => {
                let sents = if self.used.turn == turn { self.used.sents } else { 0 };
                (self.closing || sents < SENTS_PER_TURN_MAX).then_some(OperationKind::Sent)
            }
            Some(sending) => {
                let goes = sending.parked_turn != turn && self.wire.borrow().takes_soon();
                goes.then_some(OperationKind::SendAttempt)
            }
        }
    }

    fn receiving_step(&self, turn: u64) -> Option<OperationKind> {
        let (recvs, leaks) =
            if self.used.turn == turn { (self.used.recvs, self.used.leaks) } else { (0, false) };
        if self.closing || self.end_told {
            return None;
        }
        let wire = self.wire.borrow();
        // The end follows the result of a silent send (S7).
        if (!self.paused || leaks) && wire.at_end() && !self.is_silent() {
            return Some(OperationKind::ReadEnd);
        }
        let more = wire.readable() > 0 && recvs < RECVS_PER_TURN_MAX && self.receivable_max() > 0;
        if (!self.paused || leaks) && more {
            return Some(OperationKind::Receive);
        }
        let has_ended = wire.reset || (wire.peer_finished && !self.fin_told);
        (self.paused && has_ended && !self.is_silent()).then_some(OperationKind::PeerEnd)
    }

    /// Returns whether it makes no progress at this time. The result of a silent send is never late (S7).
    pub(super) fn is_held(&self, now_ms: u64) -> bool {
        self.held_until_ms > now_ms && !self.is_silent()
    }

    /// Returns whether the worker counts its send as done, although it isn't.
    pub(super) fn is_silent(&self) -> bool {
        self.sending.as_ref().is_some_and(|sending| sending.silent_since.is_some())
    }

    /// Returns whether its reads of this turn are used up and input is left.
    pub(super) fn has_used_its_share(&self, turn: u64) -> bool {
        let has_read = self.used.turn == turn && self.used.recvs == RECVS_PER_TURN_MAX;
        has_read && !self.paused && self.wire.borrow().readable() > 0
    }

    /// Returns the bytes that clause R3 still permits.
    pub(super) const fn receivable_max(&self) -> usize {
        if self.paused { RECV_AFTER_PAUSE_MAX - self.after_pause_bytes } else { usize::MAX }
    }

    /// Returns the file bytes that clause S5 still permits in this turn.
    pub(super) const fn file_bytes_left(&self) -> u64 {
        SEND_BYTES_PER_TURN_MAX - self.used.file_bytes
    }
}
