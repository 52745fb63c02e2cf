//! The simulated kernel: its slots, its clock, and a turn's work list.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::adopted::AdoptedSocket;
use super::conn::SimConnection;
use super::listeners::{Listeners, SimArrival};
use super::operations::{OperationKind, Trace, draw};
use super::options::Fault;
use super::options::Rng;
use super::options::SimOptions;
use super::wire::Wire;
use crate::clock::CatchUp;
use crate::{Event, Inbox, SharedLimit, Token};

/// A source of events in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Wake,
    Listener(usize),
    Slot(usize),
}

#[derive(Debug)]
struct SimSlot {
    generation: u32,
    conn: Option<Box<SimConnection>>,
}

#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) options: SimOptions,
    pub(super) rng: Rng,
    pub(super) trace: Trace,
    pub(super) listeners: Listeners,
    pub(super) woken: Arc<AtomicBool>,
    /// The driven clock.
    pub(super) clock_ms: u64,
    pub(super) turn: u64,
    pub(super) connections: usize,
    /// Those of them that count for no limit (A9).
    pub(super) uncounted: usize,
    pub(super) adopted: Vec<AdoptedSocket>,
    pub(super) limit: SharedLimit,
    /// Connections closed by the worker that still have bytes for their peers.
    pub(super) departed: Vec<Rc<RefCell<Wire>>>,
    /// Buffer for reading files.
    pub(super) file_scratch: Vec<u8>,
    /// Bytes that the network has accepted since the start.
    pub(super) bytes_taken: u64,
    /// The last send that failed, and the bytes of it that the network has accepted.
    pub(super) failed: Option<(Token, u64)>,
    slots: Vec<SimSlot>,
    /// Free slots; the one freed last is reused first.
    free: Vec<usize>,
    /// Each source at most once.
    work: VecDeque<Work>,
    /// First slot of the next `wait`, if the last one could not take all.
    next_slot: Option<usize>,
    pub(super) catch_up: CatchUp,
}

impl Kernel {
    pub(super) fn new(options: SimOptions, inbox: Inbox<SimArrival>) -> Self {
        Self {
            rng: Rng::new(options.seed),
            trace: Trace::new(),
            listeners: Listeners::new(options.listeners, inbox),
            woken: Arc::default(),
            clock_ms: 0,
            failed: None,
            turn: 0,
            connections: 0,
            uncounted: 0,
            adopted: Vec::new(),
            limit: SharedLimit::default(),
            departed: Vec::new(),
            file_scratch: Vec::new(),
            bytes_taken: 0,
            slots: Vec::new(),
            free: Vec::new(),
            work: VecDeque::new(),
            next_slot: None,
            catch_up: CatchUp::default(),
            options,
        }
    }
}

/// Time and turns.
impl Kernel {
    /// Begins a turn: at once if something is ready, otherwise at the next time at which something is, or at
    /// the timeout.
    pub(super) fn wait(&mut self, timeout_ms: Option<u64>) {
        self.turn += 1;
        self.carry();
        self.peers_read();
        self.gather();
        if self.work.is_empty() {
            let end = timeout_ms.map(|ms| self.clock_ms.saturating_add(ms));
            let until = self.next_due_ms().into_iter().chain(end).min();
            self.clock_ms = until.map_or(self.clock_ms, |until| until.max(self.clock_ms));
            self.gather();
        }
        if self.next_slot.is_none() {
            self.catch_up.took_all(self.clock_ms);
        } else {
            let waiting_max = self.slots.len() + self.listeners.all.len() + 1;
            self.catch_up.took(self.work.len(), waiting_max, self.clock_ms);
        }
    }

    /// Returns the turn's next event.
    pub(super) fn next(&mut self, lent: &mut Vec<u8>) -> Option<Event> {
        // Bounded: a step without an event is a deferred operation, which ends its source's turn, or one of
        // the bounded operations of `SimConnection::next_step`.
        while let Some(source) = self.pick() {
            let event = match source {
                Work::Wake => self.report_woken(),
                Work::Listener(index) => self.step_listener(index),
                Work::Slot(slot) => self.step_conn(slot, lent),
            };
            self.enqueue_again(source);
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// Returns whether the next `wait` returns without moving the clock.
    pub(super) fn is_ready(&self) -> bool {
        let turn = self.turn + 1;
        self.woken.load(Ordering::Acquire)
            || self.listeners.is_inbox_due()
            || (0..self.listeners.all.len()).any(|index| self.is_listener_ready(index, turn))
            || self.slots.iter().any(|slot| {
                slot.conn
                    .as_deref()
                    .is_some_and(|conn| !conn.is_held(self.clock_ms) && conn.next_step(turn, false).is_some())
            })
    }

    /// Returns the earliest time at which a delayed connection or listener resumes.
    pub(super) fn next_due_ms(&self) -> Option<u64> {
        let conns = self.slots.iter().filter_map(|slot| slot.conn.as_deref());
        conns
            .filter(|conn| conn.next_step(self.turn + 1, false).is_some())
            .map(|conn| conn.held_until_ms)
            .chain(self.listeners.all.iter().map(|listener| listener.held_until_ms))
            .filter(|due| *due > self.clock_ms)
            .min()
    }

    /// Builds the turn's work list, from the oldest slot or from where the last turn ended.
    fn gather(&mut self) {
        self.work.clear();
        if self.woken.load(Ordering::Acquire) {
            self.work.push_back(Work::Wake);
            self.listeners.inbox.note_wake();
        }
        self.listeners.empty_inbox();
        for index in 0..self.listeners.all.len() {
            if self.is_listener_ready(index, self.turn) {
                self.work.push_back(Work::Listener(index));
            }
        }
        let first = self.next_slot.take().unwrap_or(0);
        for slot in (first..self.slots.len()).chain(0..first) {
            let Some(conn) = self.slots[slot].conn.as_deref_mut() else { continue };
            conn.enter_turn(self.turn);
            conn.queued = false;
            conn.used.leaks = conn.paused && self.rng.chance(self.options.data_after_pause);
            if self.work.len() < self.options.events_per_wait_max {
                self.enqueue(slot);
            } else {
                self.next_slot.get_or_insert(slot);
            }
        }
    }

    /// Adds a connection that can continue in this turn to the work list.
    pub(super) fn enqueue(&mut self, slot: usize) {
        let (turn, now) = (self.turn, self.clock_ms);
        let Some(conn) = self.conn_at(slot) else { return };
        conn.enter_turn(turn);
        let held = conn.is_held(now) || conn.idle_turn == turn;
        if !conn.queued && !held && conn.next_step(turn, false).is_some() {
            conn.queued = true;
            self.work.push_back(Work::Slot(slot));
        }
    }

    /// Like [`Kernel::enqueue`], after a verb; the seed may defer it to a later turn.
    pub(super) fn enqueue_completion(&mut self, slot: usize) {
        if self.rng.chance(self.options.late_completions) {
            let turn = self.turn;
            if let Some(conn) = self.conn_at(slot) {
                conn.idle_turn = turn;
            }
        } else {
            self.enqueue(slot);
        }
    }

    fn pick(&mut self) -> Option<Work> {
        let at = if self.work.len() > 1 && self.rng.chance(self.options.reorder_within_turn) {
            self.rng.below(self.work.len())
        } else {
            0
        };
        let source = self.work.remove(at)?;
        if let Work::Slot(slot) = source
            && let Some(conn) = self.conn_at(slot)
        {
            conn.queued = false;
        }
        Some(source)
    }

    fn enqueue_again(&mut self, source: Work) {
        match source {
            Work::Wake => {}
            Work::Listener(index) => {
                if self.is_listener_ready(index, self.turn) {
                    self.work.push_back(source);
                }
            }
            Work::Slot(slot) => self.enqueue(slot),
        }
    }

    pub(super) fn peers_read(&mut self) {
        for slot in &self.slots {
            if let Some(conn) = slot.conn.as_deref() {
                conn.wire.borrow_mut().peer_reads_by_itself();
            }
        }
        self.departed.retain(|wire| {
            wire.borrow_mut().peer_reads_by_itself();
            !wire.borrow().to_peer.is_empty() && Rc::strong_count(wire) > 1
        });
    }

    fn report_woken(&mut self) -> Option<Event> {
        self.operation(OperationKind::Wake, None, false);
        self.woken.swap(false, Ordering::AcqRel).then_some(Event::Woken)
    }
}

/// Operations: counted, traced, and hit by faults.
impl Kernel {
    /// Counts an operation and returns its fault.
    pub(super) fn operation(
        &mut self,
        kind: OperationKind,
        token: Option<Token>,
        deferrable: bool,
    ) -> Option<Fault> {
        let scripted = self.options.fault_at.filter(|(at, _)| *at == self.trace.operations);
        let fault = match scripted {
            Some((_, fault)) => Some(fault),
            None => draw(&mut self.rng, &self.options, kind, deferrable),
        };
        self.trace.record(kind, token, fault, self.clock_ms);
        fault
    }

    /// Returns the end of a `Delay`.
    pub(super) fn delayed_until_ms(&mut self) -> u64 {
        let longest = usize::try_from(self.options.delay_ms_max).unwrap_or(usize::MAX);
        self.clock_ms + 1 + self.rng.below(longest) as u64
    }

    /// Runs one step of a connection: an operation, with its event if any.
    fn step_conn(&mut self, slot: usize, lent: &mut Vec<u8>) -> Option<Event> {
        let turn = self.turn;
        let receiving_first = self.rng.chance(self.options.reorder_within_turn / 2.0);
        let conn = self.conn_at(slot)?;
        let kind = conn.next_step(turn, receiving_first)?;
        let (token, deferrable) = (conn.token, !conn.deferred);
        let fault = self.operation(kind, Some(token), deferrable);
        if self.apply_fault(slot, fault) {
            return None;
        }
        match kind {
            OperationKind::Receive => self.receive(slot, fault, lent),
            OperationKind::ReadEnd => self.report_end(slot),
            OperationKind::PeerEnd => self.report_end_while_paused(slot),
            OperationKind::SendAttempt => {
                self.attempt_send(slot, fault);
                None
            }
            OperationKind::Detached => self.report_detached(slot),
            OperationKind::Unsent => self.report_unsent(slot),
            OperationKind::Sent => self.report_sent(slot),
            _ => self.report_closed(slot),
        }
    }

    /// Reports the next silent send of an earlier turn, without an event.
    pub(super) fn next_unsent(&mut self) -> Option<Token> {
        let turn = self.turn;
        let is_due = |slot: &usize| {
            let conn = self.slots[*slot].conn.as_deref();
            conn.is_some_and(|conn| conn.next_step(turn, false) == Some(OperationKind::Unsent))
        };
        let slot = (0..self.slots.len()).find(is_due)?;
        let token = self.conn_at(slot)?.token;
        let fault = self.operation(OperationKind::Unsent, Some(token), false);
        self.apply_fault_at_verb(slot, fault);
        self.report_unsent(slot);
        self.enqueue(slot);
        Some(token)
    }

    pub(super) fn has_silent(&self) -> bool {
        self.slots.iter().any(|slot| slot.conn.as_deref().is_some_and(SimConnection::is_silent))
    }

    /// Applies a fault to the connection of a verb, which can't be deferred.
    pub(super) fn apply_fault_at_verb(&mut self, slot: usize, fault: Option<Fault>) {
        self.apply_fault(slot, fault.filter(|fault| matches!(fault, Fault::Rst | Fault::Fin)));
    }

    /// Applies a fault to the connection. Returns true if the operation is deferred.
    pub(super) fn apply_fault(&mut self, slot: usize, fault: Option<Fault>) -> bool {
        let turn = self.turn;
        let until = if fault == Some(Fault::Delay) { self.delayed_until_ms() } else { 0 };
        let Some(conn) = self.conn_at(slot) else { return true };
        match fault {
            Some(Fault::Rst) => conn.wire.borrow_mut().peer_resets(),
            Some(Fault::Fin) => conn.wire.borrow_mut().peer_finished = true,
            Some(Fault::Eagain) => conn.idle_turn = turn,
            Some(Fault::Delay) => conn.held_until_ms = until,
            Some(Fault::Short) | None => {}
        }
        conn.deferred = matches!(fault, Some(Fault::Eagain | Fault::Delay));
        conn.deferred
    }
}

/// Slots.
impl Kernel {
    pub(super) fn conn_at(&mut self, slot: usize) -> Option<&mut SimConnection> {
        self.slots.get_mut(slot)?.conn.as_deref_mut()
    }

    /// Returns the connection of a token that is not yet `Closed`.
    pub(super) fn conn(&self, token: Token) -> Option<&SimConnection> {
        let conn = self.slots.get(token.slot()).and_then(|slot| slot.conn.as_deref());
        conn.filter(|conn| conn.token == token)
    }

    /// Returns whether a verb may still use a token.
    pub(super) fn is_live(&self, token: Token) -> bool {
        self.conn(token).is_some_and(|conn| !conn.closing)
    }

    /// Inserts an accepted connection into a slot.
    pub(super) fn insert(&mut self, make: impl FnOnce(Token) -> SimConnection) -> Token {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(SimSlot { generation: 0, conn: None });
            self.slots.len() - 1
        });
        let number = u32::try_from(slot).expect("fewer than 2^32 connections fit in memory");
        let token = Token::new(number, self.slots[slot].generation);
        let mut conn = make(token);
        conn.enter_turn(self.turn);
        self.slots[slot].conn = Some(Box::new(conn));
        self.connections += 1;
        self.limit.enter_anyway();
        token
    }

    /// Frees the slot of a connection whose `Closed` is returned now.
    pub(super) fn remove(&mut self, slot: usize) -> Option<Box<SimConnection>> {
        let conn = self.slots[slot].conn.take()?;
        self.slots[slot].generation = self.slots[slot].generation.wrapping_add(1);
        self.free.push(slot);
        self.connections -= 1;
        if conn.is_adopted {
            self.uncounted -= 1;
        } else {
            self.limit.leave(1);
        }
        Some(conn)
    }

    /// Returns the connections that are not yet closed, for panic messages.
    pub(super) fn open_tokens(&self) -> Vec<Token> {
        self.slots.iter().filter_map(|slot| slot.conn.as_deref().map(|conn| conn.token)).collect()
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.limit.leave(self.connections - self.uncounted);
    }
}
