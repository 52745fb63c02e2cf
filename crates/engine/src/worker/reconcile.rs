//! The state of a connection between two events, and its close.

use shearwater_io::{CloseKind, Driver, Token};

use crate::connection::{Flag, Phase};
use crate::exchange::State;
use crate::observe::record::ExchangeEnd;
use crate::request::refusal::Refusal;
use crate::service::Service;
use crate::worker::Worker;
use crate::worker::state::WorkerState;

/// Queries that need the exchange.
impl<S> WorkerState<S> {
    /// Returns true if a connection's exchange reads its body while it sends.
    #[cold]
    pub(crate) fn streams_meanwhile(&mut self, token: Token) -> bool {
        let conn = self.table.get(token);
        conn.phase() == Phase::Body
            && !conn.has(Flag::Queued)
            && self.exchange(token).is_some_and(|exchange| exchange.state() == State::Sending)
    }

    /// Returns true if new input may be processed now; else it must be queued.
    pub(crate) fn is_live(&mut self, token: Token) -> bool {
        self.table.get(token).is_live() || self.streams_meanwhile(token)
    }

    /// Returns true if a head's time runs, but a record that has begun is all of it that has arrived: its content may be
    /// no request at all.
    pub(crate) fn awaits_content(&mut self, token: Token) -> bool {
        let conn = self.table.get(token);
        conn.phase() == Phase::Head && !self.busy.has_input(conn.busy)
    }

    /// Returns true if nothing is sent or received until its handler resumes.
    pub(crate) fn waits_for_handler(&mut self, token: Token) -> bool {
        let conn = self.table.get(token);
        let (phase, is_paused) = (conn.phase(), conn.has(Flag::Paused));
        !conn.has(Flag::Sending)
            && (phase == Phase::Waiting || phase == Phase::Body && is_paused && self.is_handled(token))
    }

    /// Returns true if the client has sent a FIN, possibly after input that is still to be received.
    pub(crate) fn is_half_closed(&mut self, token: Token) -> bool {
        let conn = self.table.get(token);
        conn.has(Flag::ReadClosed) || self.busy.get_mut(conn.busy).is_some_and(|busy| busy.fin_received)
    }

    /// Returns true if all received input has been processed.
    pub(crate) fn is_input_processed(&mut self, token: Token) -> bool {
        let has_input = self.busy.has_input(self.table.get(token).busy);
        self.is_live(token) && !(has_input && self.is_handled(token))
    }
}

/// Reconciling.
impl<D: Driver, S: Service> Worker<D, S> {
    /// Derives from phase and flags what a connection needs until its next event: its [`Busy`](crate::connection::busy::Busy), reading, a deadline. Ends
    /// it if nothing more can happen.
    ///
    /// Events on a connection end here, with these exceptions. Only a deadline moves: after a send by a connection that
    /// [needs nothing else](crate::connection::Conn::is_quiet), when a send begins or is checked, a drain begins, a FIN arrives during a
    /// deferred request, or a deadline is postponed or a linger extended. Eviction frees memory and closes at the end
    /// of the turn. Input ahead of its turn [pauses](Self::pause_early) reading.
    pub(crate) fn reconcile(&mut self, token: Token) {
        // Most connections have nothing but a deadline.
        if self.state.table.get(token).is_quiet() {
            return self.state.reconcile_deadline(token);
        }
        if let Some(ledger) = &mut self.state.ledger {
            let conn = self.state.table.get(token);
            if conn.is_receiving() || conn.phase() == Phase::Waiting {
                ledger.begin(token);
            }
        }
        if self.finish_or_hand_over(token) {
            return;
        }
        self.state.reconcile_busy(token);
        self.reconcile_reading(token);
        self.state.reconcile_deadline(token);
        if self.state.table.get(token).has(Flag::ReadClosed) && self.state.is_input_processed(token) {
            self.ended(token);
        }
    }

    /// Finishes or hands over a connection whose last output was sent. Returns false for other connections.
    fn finish_or_hand_over(&mut self, token: Token) -> bool {
        let conn = self.state.table.get(token);
        match conn.phase() {
            _ if conn.has(Flag::Sending) => false,
            Phase::Evicted | Phase::Truncated | Phase::LastResponse => {
                self.finish(token);
                true
            }
            Phase::Waiting => self.hand_over(token),
            _ => false,
        }
    }

    /// Pauses reading while a handler's queue is full, and resumes it as soon as input can be processed.
    fn reconcile_reading(&mut self, token: Token) {
        let state = &mut self.state;
        let conn = state.table.get(token);
        let (is_paused, has_input) = (conn.has(Flag::Paused), state.busy.has_input(conn.busy));
        if let Some(exchange) = state.exchange(token).filter(|exchange| exchange.reads_body()) {
            if exchange.is_full() {
                if !is_paused {
                    state.table.get(token).restart_deadline();
                    self.pause(token);
                }
                return;
            }
            if has_input {
                return state.queue(token);
            }
        }
        if !is_paused {
            return;
        }
        let conn = state.table.get(token);
        let is_read = match conn.phase() {
            Phase::Linger => true,
            Phase::Multiplexed => !conn.has(Flag::Sending) && !state.input_waits(token),
            _ => state.is_live(token),
        };
        if is_read {
            state.table.get(token).unset(Flag::Paused);
            state.restart_body(token);
            if state.table.get(token).phase() == Phase::Multiplexed {
                state.restart_content(token);
            }
            self.driver.recv_resume(token);
        }
    }

    fn pause(&mut self, token: Token) {
        let conn = self.state.table.get(token);
        if !conn.has(Flag::Paused) {
            conn.set(Flag::Paused);
            self.driver.recv_pause(token);
        }
    }

    /// Pauses a client that sends more before it has received its responses. If the buffers are full it is reset:
    /// a refusal can't precede the response in flight.
    ///
    /// Outside of `reconcile`, because not the state but this event decides: most clients wait for their response, and
    /// a pause for each would cost them a system call. The pause bounds a connection's stored input to one receive and
    /// what a driver may still deliver.
    pub(crate) fn pause_early(&mut self, token: Token) {
        if self.state.make_memory_room(token) {
            return self.pause(token);
        }
        self.state.count_full_buffers();
        self.shut_as(token, CloseKind::Reset, ExchangeEnd::Evicted);
    }

    /// Closes after the last response was sent. Closing with unread input would send a reset, which can destroy the
    /// response (RFC 9112 section 9.6): if the client may still be sending, shuts down our side and discards the rest.
    fn finish(&mut self, token: Token) {
        let conn = self.state.table.get(token);
        if conn.phase() != Phase::LastResponse || conn.has(Flag::ReadClosed) {
            return self.shut(token, CloseKind::Normal);
        }
        conn.linger();
        self.reconcile(token);
        self.driver.shutdown_write(token);
    }

    /// Closes after the client's FIN; a request that is still unfinished is rejected.
    pub(crate) fn ended(&mut self, token: Token) {
        if self.state.table.get(token).is_idle() || self.state.awaits_content(token) {
            return self.shut(token, CloseKind::Normal);
        }
        self.state.refuse(token, Refusal::Incomplete);
        self.flush(token);
    }

    /// Closes a connection. Its slot is free again after the driver's `Closed`.
    pub(crate) fn shut(&mut self, token: Token, kind: CloseKind) {
        self.shut_as(token, kind, self.end_by_close());
    }

    /// Closes a connection whose unfinished exchanges end like this.
    pub(crate) fn shut_as(&mut self, token: Token, kind: CloseKind, end: ExchangeEnd) {
        match self.state.table.get(token).phase() {
            Phase::Closing => return,
            Phase::HandedOver => self.handed_over.remove(token),
            Phase::Tunnel => self.close_tunnel(token),
            Phase::Multiplexed => self.state.cancel_streams(token, end),
            _ => {}
        }
        self.abort_records(token, end);
        self.state.cancel(token);
        self.state.table.get(token).close();
        if kind == CloseKind::Reset {
            self.state.counters.connections_reset.add(1);
        }
        self.reconcile(token);
        self.driver.close(token, kind);
    }
}
