//! Hooks of the worker, which tell its ledger of each event. Nothing here runs without a listener.

use shearwater_http1::{Framing, Head};
use shearwater_io::{Driver, Token};

use crate::connection::busy::BusyTable;
use crate::connection::{Conn, Phase};
use crate::exchange::Exchange;
use crate::exchange::table::ExchangeTable;
use crate::observe::ledger::SendState;
use crate::observe::record::ExchangeEnd;
use crate::observe::record::{Progress, Received};
use crate::response::facts::Disposition;
use crate::server::drain::Lifecycle;
use crate::service::Service;
use crate::worker::Worker;
use crate::worker::state::WorkerState;

/// A place where a request is found.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Head(Head<'a>),
    /// A malformed head.
    Line(&'a [u8]),
    /// The unfinished head or the exchange of the connection.
    Connection,
    /// Set aside by [`note_eviction`](WorkerState::note_eviction).
    Aside {
        is_head: bool,
    },
}

/// Returns the unfinished request of a connection, unless its response has begun.
fn received<'a>(
    conn: Option<&mut Conn>,
    busy: &'a mut BusyTable,
    exchanges: &'a mut ExchangeTable,
) -> Option<Received<'a>> {
    let conn = conn.filter(|conn| !matches!(conn.phase(), Phase::ProxyHeader | Phase::Multiplexed))?;
    if let Some(id) = busy.exchange(conn.busy) {
        return exchanges.get(id)?.head().map(Received::Head);
    }
    let input = &busy.get_mut(conn.busy)?.input;
    (!input.is_empty()).then(|| Received::Line(input))
}

impl<S> WorkerState<S> {
    /// Counts the response to a request that was just encoded.
    #[cold]
    pub(crate) fn note_response(&mut self, token: Token, source: Source<'_>, status: u16) {
        self.describe(token, source, status, Progress::Whole(ExchangeEnd::Complete));
    }

    /// Counts the beginning of a deferred response.
    #[cold]
    pub(crate) fn note_deferred(&mut self, exchange: &Exchange, status: u16) {
        let head = exchange.shared().head();
        if let Some(id) = exchange.stream {
            return self.note_stream(exchange.token, id, &Received::Head(head), status);
        }
        self.describe(exchange.token, Source::Head(head), status, Progress::Open);
    }

    fn describe(&mut self, token: Token, source: Source<'_>, status: u16, progress: Progress) {
        let Self { ledger: Some(ledger), table, busy, exchanges, responder, proxies, .. } = self else {
            return;
        };
        let received = match source {
            Source::Head(head) => Some(Received::Head(head)),
            Source::Line(input) => Some(Received::Line(input)),
            Source::Connection => received(table.find(token), busy, exchanges),
            Source::Aside { .. } => None,
        };
        ledger.respond(token, received, status, progress, responder, proxies.as_deref());
    }

    /// Counts the response to a complete request, unless that is deferred. `has_body` means that its
    /// body was received.
    #[cold]
    pub(crate) fn note_whole(&mut self, token: Token, head: Head<'_>, has_body: bool, status: Option<u16>) {
        let Some(ledger) = &mut self.ledger else { return };
        if let (true, Framing::Length(bytes)) = (has_body, head.framing()) {
            ledger.receive_body(token, bytes);
        }
        if let Some(status) = status {
            self.note_response(token, Source::Head(head), status);
        }
    }

    /// Counts the output of a deferred response so far; with a disposition, its end.
    pub(crate) fn note_output(&mut self, token: Token, disposition: Option<Disposition>) {
        if let Some(ledger) = &mut self.ledger {
            let end = disposition.map(|disposition| match disposition {
                Disposition::Truncated => ExchangeEnd::Truncated,
                Disposition::Keep | Disposition::Last | Disposition::HandOver => ExchangeEnd::Complete,
            });
            ledger.extend(token, &self.responder.out, end);
        }
    }

    /// Keeps the request of a connection that is evicted. Without one, that is the next one, which was never begun.
    pub(crate) fn note_eviction(&mut self, token: Token) {
        self.set_aside(token, |_| true);
    }

    fn set_aside(&mut self, token: Token, is_request: impl FnOnce(&Received<'_>) -> bool) {
        let Self { ledger: Some(ledger), table, busy, exchanges, proxies, .. } = self else { return };
        if let Some(received) = received(table.find(token), busy, exchanges).filter(is_request) {
            ledger.set_aside(token, &received, proxies.as_deref());
        }
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Counts the output of a connection's event, which the driver has sent or not.
    #[cold]
    pub(crate) fn note_flushed(&mut self, token: Token, is_sent: bool) {
        let Some(ledger) = &mut self.state.ledger else { return };
        let state = match is_sent {
            false => SendState::InFlight,
            true if self.driver.settles_later() => SendState::Silent,
            true => SendState::Sent,
        };
        ledger.flushed(token, self.driver.read_clock_us(), state);
    }

    /// Ends the exchanges whose send has succeeded.
    pub(crate) fn note_sent(&mut self, token: Token) {
        if let Some(ledger) = &mut self.state.ledger {
            ledger.sent(token, self.driver.read_clock_us(), SendState::Sent);
        }
    }

    /// Ends all exchanges of a connection that is about to be closed, or whose last send is over after that.
    #[inline(never)]
    pub(crate) fn abort_records(&mut self, token: Token, end: ExchangeEnd) {
        // A head that never became complete is no request.
        self.state.set_aside(token, |received| matches!(received, Received::Head(_)));
        if let Some(ledger) = &mut self.state.ledger {
            ledger.abort(token, self.driver.send_progress(token), end, self.driver.read_clock_us());
        }
    }

    /// Returns the end of the unfinished exchanges of a connection that is closed without another reason.
    pub(crate) fn end_by_close(&self) -> ExchangeEnd {
        if self.lifecycle == Lifecycle::Ending { ExchangeEnd::Aborted } else { ExchangeEnd::Disconnected }
    }

    /// Begins a turn: ends the exchanges whose sends have succeeded in the last one.
    pub(crate) fn settle_ledger(&mut self) {
        if let Some(ledger) = &mut self.state.ledger {
            ledger.begin_turn(self.driver.read_clock_us(), self.driver.unix_seconds());
        }
        while let Some(token) = self.driver.next_unsent() {
            self.unsent(token);
        }
        let settles_later = self.driver.settles_later();
        if let Some(ledger) = &mut self.state.ledger {
            if !settles_later {
                ledger.settle();
            }
            self.state.counters.hit_exchange_bytes.set(ledger.dropped);
        }
    }

    /// Publishes the states of connections at the end of a turn.
    pub(crate) fn count_states(&mut self) {
        let (state, counters) = (&self.state, &self.state.counters);
        let sending = state.ledger.as_ref().map_or(0, |ledger| ledger.connections());
        counters.connections_sending.set(sending as u64);
        counters.connections_unfinished.set((state.busy.len() - state.busy.idle_multiplexed) as u64);
        counters.http2_connections_open.set(state.busy.multiplexed as u64);
        let handed_over = self.handed_over.open + self.tunnels.len() + state.http2.tunnels.len();
        counters.connections_handed_over.set(handed_over as u64);
    }

    /// Stores the address of an accepted connection.
    pub(crate) fn open_in_ledger(&mut self, token: Token) {
        if let Some(ledger) = &mut self.state.ledger {
            ledger.open(token, self.state.calls.peers.of(token, &self.driver));
        }
    }
}
