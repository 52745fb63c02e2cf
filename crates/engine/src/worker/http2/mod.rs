//! HTTP/2 connections. While one is worked on, its state is in the responder, which then encodes for it: [`enter`] and
//! [`leave`]. What handlers write waits for the end of the turn, so that a connection has one send for all of them.
//!
//! [`enter`]: WorkerState::enter
//! [`leave`]: WorkerState::leave

mod deadlines;
mod receive;
mod respond;
mod tunnels;

use std::mem;

use shearwater_http2::{HeadBuffer, limits::Limits as Http2Limits};
use shearwater_io::{CloseKind, Driver, Output, Token};
use shearwater_tasks::TaskId;

use crate::connection::{Flag, Phase};
use crate::exchange::id::ExchangeId;
use crate::http2::tunnel::StreamTunnels;
use crate::http2::{Filled, Multiplexed};
use crate::limits::EVICTED_BYTES_MIN;
use crate::memory::NONE;
use crate::observe::record::ExchangeEnd;
use crate::request::DriverView;
use crate::response::facts::Disposition;
use crate::server::options::Http2Options;
use crate::service::Service;
use crate::worker::Worker;
use crate::worker::state::WorkerState;

/// A worker's state for HTTP/2, beside that of its connections.
pub(crate) struct Http2 {
    pub(crate) options: Http2Options,
    /// Buffers for one head; none before the first.
    head: Option<Box<HeadBuffer>>,
    /// Connections whose handlers have written in this turn.
    unflushed: Vec<Token>,
    pub(crate) tunnels: StreamTunnels,
    /// Protocols that streams are upgraded to.
    pub(crate) protocols: Vec<String>,
}

impl Http2 {
    pub(crate) fn new(options: Http2Options, protocols: Vec<String>) -> Self {
        Self { options, head: None, unflushed: Vec::new(), tunnels: StreamTunnels::default(), protocols }
    }

    /// Returns true if a connection has output, or a tunnel can continue, without an event.
    pub(crate) fn is_busy(&self) -> bool {
        !self.unflushed.is_empty() || !self.tunnels.ready.is_empty()
    }

    /// Frees the spare memory.
    pub(crate) fn trim(&mut self) {
        (self.head, self.unflushed) = (None, Vec::new());
        self.tunnels.trim();
    }
}

impl<S: Service> WorkerState<S> {
    /// Begins HTTP/2 on a connection, which has its SETTINGS to send.
    pub(crate) fn begin_http2(&mut self, token: Token, is_secured: bool) {
        let limits = Http2Limits {
            head: self.limits.head(),
            streams_max: self.http2.options.streams_max,
            extended_connect: !self.http2.protocols.is_empty(),
            is_secured,
            ..Http2Limits::default()
        };
        let mut many = Box::new(Multiplexed::new(limits, self.now_ms));
        let conn = self.table.get(token);
        let age_ms = u64::from((self.now_ms as u32).wrapping_sub(conn.number));
        many.first_head_due_ms = Some((self.now_ms + self.timeouts.first_head_ms).saturating_sub(age_ms));
        conn.multiplex();
        if let Some(ledger) = &mut self.ledger {
            ledger.multiplex(token);
        }
        let mut busy = self.busy.take(token, &mut conn.busy);
        busy.many = Some(many);
        self.busy.put(conn.busy, busy);
        self.busy.multiplexed += 1;
        self.busy.idle_multiplexed += 1;
        self.counters.http2_connections.add(1);
    }

    /// Moves a connection's state and output into the responder. Returns false if it has none.
    pub(crate) fn enter(&mut self, token: Token) -> bool {
        let Some(conn) = self.table.find(token) else { return false };
        let busy = self.busy.get_mut(conn.busy);
        let Some(mut many) = busy.and_then(|busy| busy.many.take()) else { return false };
        many.now_us = self.ledger.as_ref().map_or(0, |ledger| ledger.turn_us());
        if let Some(ledger) = &mut self.ledger {
            ledger.swap_current(&mut many.ended);
        }
        // The worker's buffer stays with the worker where that is possible.
        if !many.pending.is_empty() {
            mem::swap(&mut self.responder.out, &mut many.pending);
        }
        self.responder.http2 = Some(many);
        true
    }

    /// Moves a connection's state back, with the output.
    pub(crate) fn leave(&mut self, token: Token) {
        let many = self.responder.http2.as_mut().expect("a connection was entered");
        if !self.responder.out.is_empty() {
            mem::swap(&mut self.responder.out, &mut many.pending);
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.swap_current(&mut many.ended);
        }
        self.put_back(token);
    }

    /// Moves a connection's state back; the output is about to be sent, or to be added to.
    fn put_back(&mut self, token: Token) {
        let mut many = self.responder.http2.take().expect("a connection was entered");
        self.busy.idle_multiplexed -= usize::from(many.is_idle());
        many.note_idle(self.now_ms);
        self.busy.idle_multiplexed += usize::from(many.is_idle());
        if many.is_unflushed {
            // Its memory is counted once for all that its handlers do in this turn.
            let index = self.table.get(token).busy;
            if let Some(busy) = self.busy.get_mut(index) {
                busy.many = Some(many);
            }
            return;
        }
        let conn = self.table.get(token);
        let mut busy = self.busy.take(token, &mut conn.busy);
        busy.many = Some(many);
        self.busy.put(conn.busy, busy);
    }

    /// Returns the output and the state of the connection that was entered.
    fn entered(&mut self) -> (&mut Output, &mut Multiplexed) {
        let many = self.responder.http2.as_mut().expect("a connection was entered");
        (&mut self.responder.out, many)
    }

    /// Returns the number of open streams of a connection; 0 for HTTP/1.
    pub(crate) fn open_streams(&mut self, token: Token) -> usize {
        let index = self.table.get(token).busy;
        let many = self.busy.get_mut(index).and_then(|busy| busy.many.as_ref());
        many.map_or(0, |many| many.connection.open_streams())
    }

    /// Returns true if input of a connection with HTTP/2 waits for its turn, or for the end of a send.
    pub(crate) fn input_waits(&mut self, token: Token) -> bool {
        let index = self.table.find(token).map_or(NONE, |conn| conn.busy);
        let many = self.busy.get_mut(index).and_then(|busy| busy.many.as_ref());
        many.is_some_and(|many| many.has_input)
    }

    /// Appends content of the connection that was entered, as far as its windows and the output allow.
    fn fill(&mut self, token: Token, driver: &dyn DriverView) {
        loop {
            let (out, many) = self.entered();
            match many.fill(out) {
                None => break,
                Some(Filled::Partly) => {}
                Some(Filled::Drained(id)) => {
                    if let Some(exchange) = self.exchanges.take(id) {
                        exchange.shared().wake_writer();
                        self.advance_stream(exchange, driver);
                    }
                }
                Some(Filled::Tunnel(id)) => self.wake_tunnel(token, id),
                Some(Filled::Cut(id)) => self.reset_cut(token, id),
                Some(Filled::Ended(record)) => self.end_record(record),
            }
        }
    }

    /// Polls the handler of a stream, or the task that moves what a coder has encoded.
    fn run_stream(&mut self, token: Token, id: ExchangeId, task: TaskId, driver: &impl Driver) {
        if !self.enter(token) {
            return;
        }
        if let Some(mut exchange) = self.exchanges.take(id) {
            if exchange.task == Some(task) {
                self.poll(&mut exchange);
            } else {
                self.poll_coder(&mut exchange, task);
                exchange.shared().wake_writer();
            }
            self.advance_stream(exchange, driver);
        }
        self.leave_unflushed(token);
    }

    /// Moves a connection's state back, with output that is sent at the end of the turn.
    fn leave_unflushed(&mut self, token: Token) {
        let (_, many) = self.entered();
        if !mem::replace(&mut many.is_unflushed, true) {
            self.http2.unflushed.push(token);
        }
        self.leave(token);
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Polls the task of an exchange on an HTTP/2 connection.
    #[inline(never)]
    pub(crate) fn run_stream(&mut self, token: Token, id: ExchangeId, task: TaskId) {
        self.state.run_stream(token, id, task, &self.driver);
    }

    /// Sends what handlers, and the programs of tunnels, have written in this turn.
    #[inline]
    pub(crate) fn flush_handlers(&mut self) {
        while self.state.http2.is_busy() {
            self.flush_next();
        }
    }

    fn flush_next(&mut self) {
        if let Some((token, id)) = self.state.http2.tunnels.ready.pop() {
            self.run_tunnel(token, id);
        } else if let Some(token) = self.state.http2.unflushed.pop() {
            self.flush_streams(token);
            self.reset_if_full(token);
        }
    }

    /// Resets a connection that holds much memory, if the buffers are full and no larger one can be evicted.
    fn reset_if_full(&mut self, token: Token) {
        let state = &mut self.state;
        if !state.busy.is_full() {
            return;
        }
        let Some(conn) = state.table.find(token).filter(|conn| conn.phase() == Phase::Multiplexed) else {
            return;
        };
        let index = conn.busy;
        if state.busy.held_by(index) >= EVICTED_BYTES_MIN && !state.make_memory_room(token) {
            state.count_full_buffers();
            self.shut_as(token, CloseKind::Reset, ExchangeEnd::Evicted);
        }
    }

    /// Sends the output of a connection, and content that may be sent now.
    pub(crate) fn flush_streams(&mut self, token: Token) {
        if self.state.enter(token) {
            self.flush_entered(token);
        }
    }

    /// Does the same for the connection that was entered, and leaves it.
    fn flush_entered(&mut self, token: Token) {
        let now_us = self.state.ledger.is_some().then(|| self.driver.read_clock_us());
        let state = &mut self.state;
        let (_, many) = state.entered();
        many.is_unflushed = false;
        if let Some(sent) = many.connection.take_sent_codes() {
            state.counters.count_codes(&sent);
        }
        if state.table.get(token).has(Flag::Sending) {
            state.leave(token);
            return self.reconcile(token);
        }
        state.fill(token, &self.driver);
        let (_, many) = state.entered();
        if let Some(now_us) = now_us {
            many.count_output(now_us);
        }
        let is_finished = many.connection.is_finished();
        if is_finished {
            state.cancel_entered(token, ExchangeEnd::Truncated);
        }
        state.put_back(token);
        if is_finished {
            state.end_request(token, Disposition::Last);
        }
        self.flush(token);
    }

    /// Continues a connection whose output was sent: with content, or with input that waited for that. `is_event`: the driver has
    /// reported the end. It bounds the bytes of such sends in a turn, so content follows in the same one.
    pub(crate) fn frames_sent(&mut self, token: Token, is_event: bool) {
        let state = &mut self.state;
        let index = state.table.get(token).busy;
        let Some(many) = state.busy.get_mut(index).and_then(|busy| busy.many.as_deref_mut()) else { return };
        many.connection.output_sent();
        many.restart_idle(state.now_ms);
        if is_event && many.has_content_to_send() && !many.has_input {
            return self.flush_streams(token);
        }
        if many.continues() {
            state.queue(token);
        }
        self.reconcile(token);
    }

    /// Ends a connection within a frame, whose file has changed. The client may be sending: as after a last response, a close
    /// with unread input could destroy what it hasn't read.
    pub(crate) fn cut_http2(&mut self, token: Token) {
        self.state.cancel_streams(token, ExchangeEnd::Truncated);
        self.abort_records(token, ExchangeEnd::Truncated);
        self.state.end_request(token, Disposition::Last);
        self.reconcile(token);
    }

    /// Asks the clients of connections that end soon to begin no further stream (RFC 9113 section 6.8).
    pub(crate) fn drain_http2(&mut self) {
        for token in self.state.table.tokens(|conn| conn.phase() == Phase::Multiplexed) {
            if self.state.leaving.ends_soon(token) && self.state.enter(token) {
                let now_ms = self.state.now_ms;
                let (out, many) = self.state.entered();
                many.connection.drain(out.bytes_mut());
                many.restart_idle(now_ms);
                self.flush_entered(token);
            }
        }
    }
}
