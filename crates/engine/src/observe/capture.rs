//! Hooks of the worker: where exchanges are described, get their response and end. Nothing here runs without a listener.

use shearwater_http1::{Framing, Head, Method};
use shearwater_io::{Driver, Token};

use crate::connection::Phase;
use crate::deferred::deferral::Deferral;
use crate::exchange::Exchange;
use crate::observe::finished::ExchangeEnd;
use crate::observe::record::Progress;
use crate::request::refusal::Refusal;
use crate::request_loop::Step;
use crate::response::responder::{Disposition, Outcome};
use crate::server::drain::Lifecycle;
use crate::service::Service;
use crate::worker::Worker;
use crate::worker_state::WorkerState;

const COMPLETE: Progress = Progress::Whole(ExchangeEnd::Complete);

/// Facts of a handler's outcome. By value: a reference would force the outcome into memory on the hot path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Noted {
    Responded(u16),
    Deferred,
    /// Too many are deferred: the request is rejected next.
    Full,
}

impl Noted {
    #[inline(always)]
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Responded(responded) => Self::Responded(responded.status),
            Outcome::Deferred(Deferral::Full) => Self::Full,
            Outcome::Deferred(_) => Self::Deferred,
        }
    }
}

impl<S> WorkerState<S> {
    /// Counts the response to the request in the worker's own parser. `has_body` means that its body was received.
    #[cold]
    pub(crate) fn note_response(&mut self, token: Token, head: &[u8], has_body: bool, outcome: Noted) {
        let Self { exchanges: Some(exchanges), parser, responder, proxies, .. } = self else { return };
        let head = parser.head(head);
        if let (true, Framing::Length(bytes)) = (has_body, head.framing()) {
            exchanges.receive_body(token, bytes);
        }
        match outcome {
            Noted::Responded(status) => {
                exchanges.describe(token, &head, proxies.as_deref());
                exchanges.respond(token, status, responder, COMPLETE);
            }
            Noted::Full => exchanges.describe(token, &head, proxies.as_deref()),
            Noted::Deferred => exchanges.begin(token),
        }
    }

    /// Counts the response to a request whose body was kept or discarded as it arrived.
    #[cold]
    pub(crate) fn note_buffered(&mut self, token: Token, head: &Head<'_>, bytes: u64, outcome: Noted) {
        let Self { exchanges: Some(exchanges), responder, proxies, .. } = self else { return };
        exchanges.receive_body(token, bytes);
        match outcome {
            Noted::Responded(status) => {
                exchanges.describe(token, head, proxies.as_deref());
                exchanges.respond(token, status, responder, COMPLETE);
            }
            Noted::Full => exchanges.describe(token, head, proxies.as_deref()),
            Noted::Deferred => {}
        }
    }

    /// Counts the beginning of a deferred response.
    #[inline(never)]
    pub(crate) fn note_deferred(&mut self, exchange: &Exchange, status: u16) {
        let Self { exchanges: Some(exchanges), responder, proxies, .. } = self else { return };
        let token = exchange.token;
        exchanges.describe(token, &exchange.shared().head(), proxies.as_deref());
        exchanges.respond(token, status, responder, Progress::Open);
    }

    /// Counts the output of a deferred response so far.
    pub(crate) fn note_output(&mut self, token: Token) {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.begin(token);
            exchanges.extend(token, &self.responder.out);
        }
    }

    /// Counts the end of a deferred response.
    pub(crate) fn note_end(&mut self, token: Token, disposition: Disposition) {
        if let Some(exchanges) = &mut self.exchanges {
            let end = match disposition {
                Disposition::Truncated => ExchangeEnd::Truncated,
                Disposition::Keep | Disposition::Last | Disposition::HandOver => ExchangeEnd::Complete,
            };
            exchanges.complete(token, &self.responder.out, end);
        }
    }

    /// Describes an unfinished request, unless its response has begun; returns false if there is none.
    #[inline(never)]
    pub(crate) fn describe_unfinished(&mut self, token: Token) -> bool {
        let Self { exchanges: Some(exchanges), table, busy, open, proxies, .. } = self else { return false };
        exchanges.unpark(token);
        if exchanges.is_described(token) {
            return true;
        }
        let Some(conn) = table.find(token) else { return false };
        if conn.phase() == Phase::Head {
            let Some(busy) = busy.get_mut(conn.busy) else { return false };
            exchanges.describe_line(token, &busy.input, proxies.as_deref());
            return true;
        }
        let exchange = busy.exchange(conn.busy).and_then(|id| open.get(id));
        // A response that has begun and has no record any more ended as unknown.
        let Some(head) = exchange.and_then(|exchange| exchange.head()) else { return false };
        exchanges.describe(token, &head, proxies.as_deref());
        true
    }

    /// Keeps the request of a connection that is evicted.
    pub(crate) fn note_eviction(&mut self, token: Token) {
        let is_described = self.describe_unfinished(token);
        let Self { exchanges: Some(exchanges), table, busy, proxies, .. } = self else { return };
        let Some(conn) = table.find(token).filter(|conn| conn.phase() != Phase::ProxyHeader) else { return };
        // Input behind a response that is being sent: its first line is a request that was never begun.
        let is_begun = is_described || busy.exchange(conn.busy).is_some();
        let waiting = busy.get_mut(conn.busy).filter(|busy| !is_begun && !busy.input.is_empty());
        if let Some(waiting) = waiting {
            exchanges.describe_line(token, &waiting.input, proxies.as_deref());
        }
        exchanges.park(token);
    }

    /// Counts the response of a refusal.
    pub(crate) fn note_refusal(&mut self, token: Token, status: u16) {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.respond(token, status, &self.responder, COMPLETE);
        }
    }
}

impl<S: Service> WorkerState<S> {
    /// Rejects a request whose head is complete in the input.
    #[cold]
    pub(crate) fn refuse_head(&mut self, token: Token, refusal: Refusal, head: &[u8]) -> Step {
        let head = self.parser.head(head);
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.describe(token, &head, self.proxies.as_deref());
        }
        let is_head = head.method() == Method::Head;
        self.refuse_as(token, refusal, is_head)
    }

    /// Rejects a malformed head.
    #[cold]
    pub(crate) fn refuse_line(&mut self, token: Token, refusal: Refusal, input: &[u8]) -> Step {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.describe_line(token, input, self.proxies.as_deref());
        }
        self.refuse_as(token, refusal, Method::is_head_begun(input))
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Ends the exchanges whose output was sent at once.
    #[cold]
    pub(crate) fn note_flushed(&mut self, token: Token) {
        if let Some(exchanges) = &mut self.state.exchanges {
            let settles_later = self.driver.settles_later();
            exchanges.flushed(token, self.driver.read_clock_us(), settles_later);
        }
    }

    /// Keeps the exchanges whose output is in flight.
    pub(crate) fn note_in_flight(&mut self, token: Token) {
        if let Some(exchanges) = &mut self.state.exchanges {
            exchanges.in_flight(token, self.driver.read_clock_us());
        }
    }

    /// Ends the exchanges whose send has succeeded.
    pub(crate) fn note_sent(&mut self, token: Token) {
        if let Some(exchanges) = &mut self.state.exchanges {
            exchanges.sent(token, self.driver.read_clock_us());
        }
    }

    /// Ends all exchanges of a connection that is about to be closed. Call it once: it describes a request that has none.
    #[inline(never)]
    pub(crate) fn abort_exchanges(&mut self, token: Token, end: ExchangeEnd) {
        if self.state.exchanges.is_none() {
            return;
        }
        // A head that never became complete is no request.
        if self.state.table.find(token).is_some_and(|conn| conn.phase() != Phase::Head) {
            self.state.describe_unfinished(token);
        }
        if let Some(exchanges) = &mut self.state.exchanges {
            let bytes = self.driver.send_progress(token);
            exchanges.abort(token, bytes, end, self.driver.read_clock_us());
        }
    }

    /// Returns the end of the unfinished exchanges of a connection that is closed without another reason.
    pub(crate) fn end_by_close(&self) -> ExchangeEnd {
        if self.lifecycle == Lifecycle::Ending { ExchangeEnd::Aborted } else { ExchangeEnd::Disconnected }
    }

    /// Begins a turn: ends the exchanges whose sends have succeeded in the last one.
    pub(crate) fn begin_exchanges(&mut self) {
        if let Some(exchanges) = &mut self.state.exchanges {
            exchanges.begin_turn(self.driver.read_clock_us(), self.driver.unix_seconds());
        }
        while let Some(token) = self.driver.next_unsent() {
            self.unsent(token);
        }
        let settles_later = self.driver.settles_later();
        if let Some(exchanges) = &mut self.state.exchanges {
            if !settles_later {
                exchanges.settle();
            }
            self.state.counters.hit_exchange_bytes.set(exchanges.dropped);
        }
    }

    /// Ends the exchanges of a closed connection whose send is over: its result wasn't known at the close.
    pub(crate) fn note_cut_off(&mut self, token: Token) {
        let end = self.end_by_close();
        if let Some(exchanges) = &mut self.state.exchanges {
            exchanges.abort(token, self.driver.send_progress(token), end, self.driver.read_clock_us());
        }
    }

    /// Publishes the states of connections at the end of a turn.
    pub(crate) fn count_states(&mut self) {
        let (state, counters) = (&self.state, &self.state.counters);
        let sending = state.exchanges.as_ref().map_or(0, |exchanges| exchanges.connections());
        counters.connections_sending.set(sending as u64);
        counters.connections_unfinished.set(state.busy.len() as u64);
        counters.connections_handed_over.set(self.handed_over.open as u64);
    }

    /// Stores the address of an accepted connection.
    pub(crate) fn open_exchanges(&mut self, token: Token) {
        if let Some(exchanges) = &mut self.state.exchanges {
            exchanges.open(token, self.driver.peer(token).ok());
        }
    }
}
