//! A worker's state except its driver, so that requests can be processed while the driver lends their bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use shearwater_io::{SharedLimit, SlotArray, Token};

use crate::connection::addresses::Addresses;
use crate::connection::busy::BusyTable;
use crate::connection::served::Served;
use crate::connection::{Conn, Flag, Phase};
use crate::deferred::calls::Calls;
use crate::exchange::body::BodyRateRule;
use crate::exchange::table::ExchangeTable;
use crate::leaving::Leaving;
use crate::limits::{Limits, Timeouts};
use crate::memory::eviction::Eviction;
use crate::memory::spare::Outputs;
use crate::observe::ledger::Ledger;
use crate::proxies::Proxies;
use crate::response::responder::Responder;
use crate::server::control::Control;
use crate::server::counters::Counters;
use crate::server::notice::Notice;
use crate::server::reports::Reports;
use crate::timers::wheel::Wheel;
use crate::worker::http2::Http2;

/// The search for connections to close.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Slots to examine before the search ends without a result; 0 without a search.
    pub(crate) left: usize,
    /// Slot to examine next.
    pub(crate) next: usize,
    /// Closes even those that were used within the last second.
    pub(crate) takes_any: bool,
    /// Closes connections without a request earlier.
    pub(crate) is_crowded: bool,
    /// The search has found one that is too young.
    pub(crate) has_silent: bool,
    /// Time until which responses end their connections; `u64::MAX` if they don't.
    pub(crate) until_ms: u64,
}

/// A worker's state.
pub(crate) struct WorkerState<S> {
    pub(crate) service: S,
    pub(crate) worker: usize,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    /// Addresses behind trusted proxies, if there are any.
    pub(crate) proxies: Option<Box<Proxies>>,
    pub(crate) http2: Http2,
    pub(crate) body_rate_rule: BodyRateRule,
    /// Hosts differ in their policies on client certificates.
    pub(crate) checks_hosts: bool,
    /// The service has guards.
    pub(crate) has_guards: bool,
    pub(crate) table: Table,
    pub(crate) served: Served,
    /// Connections that end soon.
    pub(crate) leaving: Leaving,
    pub(crate) busy: BusyTable,
    /// Open exchanges.
    pub(crate) exchanges: ExchangeTable,
    /// Handlers of deferred requests.
    pub(crate) calls: Calls,
    pub(crate) wheel: Wheel,
    /// Ready queue: connections with pending input, each once (`Flag::Queued`), so at most one entry per
    /// connection.
    pub(crate) ready: VecDeque<Token>,
    pub(crate) responder: Responder,
    pub(crate) outputs: Outputs,
    pub(crate) addresses: Option<Arc<Addresses>>,
    pub(crate) limit: SharedLimit,
    pub(crate) counters: Arc<Counters>,
    pub(crate) control: Arc<Control>,
    /// Connections that were evicted in this turn.
    pub(crate) evicted: Vec<(Token, Eviction)>,
    /// Clock of this turn.
    pub(crate) now_ms: u64,
    /// Faults reported within the last second.
    pub(crate) reports: Reports,
    /// Unfinished exchanges, if anything listens for them.
    pub(crate) ledger: Option<Box<Ledger>>,
    /// The first body over the limit has been reported.
    pub(crate) is_body_limit_reported: bool,
}

impl<S> WorkerState<S> {
    /// Queues a notice for the operator, or counts that it was dropped.
    pub(crate) fn notify(&self, notice: Notice) {
        if !self.control.notify(notice) {
            self.counters.hit_notices.add(1);
        }
    }

    /// Appends a connection to the ready queue, unless it is in it.
    pub(crate) fn queue(&mut self, token: Token) {
        let conn = self.table.get(token);
        if !conn.has(Flag::Queued) {
            conn.set(Flag::Queued);
            self.ready.push_back(token);
        }
    }

    /// Stores input that can't be processed yet, or is incomplete.
    pub(crate) fn keep_input(&mut self, token: Token, bytes: &[u8]) {
        let conn = self.table.get(token);
        let stray = conn.take_stray();
        let mut busy = self.busy.take(token, &mut conn.busy);
        busy.input.extend(stray, &mut self.busy.pool);
        busy.input.extend(bytes, &mut self.busy.pool);
        self.busy.put(conn.busy, busy);
        if !stray.is_empty() {
            self.queue(token);
        }
    }

    /// Releases the state of a connection that is no longer busy: see [`reconcile`](crate::worker::Worker::reconcile).
    pub(crate) fn reconcile_busy(&mut self, token: Token) {
        let conn = self.table.get(token);
        if conn.is_idle() {
            self.busy.release_spent(&mut conn.busy);
        } else if !conn.is_serving() {
            // Nothing more is read: the last request's memory need not wait for the response to be sent.
            self.busy.release(&mut conn.busy);
        }
    }
}

/// All connections of a worker.
#[derive(Default)]
pub(crate) struct Table {
    conns: SlotArray<Conn>,
    open: usize,
}

impl Table {
    /// Initializes the slot of an accepted connection.
    pub(crate) fn open(&mut self, token: Token, now_ms: u64) {
        let slot = token.slot();
        self.conns.grow_to(slot);
        self.conns[slot].open(token.generation(), now_ms);
        self.open += 1;
    }

    /// Frees the slot.
    pub(crate) fn free(&mut self, token: Token) {
        self.conns[token.slot()].free();
        self.open -= 1;
    }

    /// Returns the connection of a token, unless it has been closed.
    pub(crate) fn find(&mut self, token: Token) -> Option<&mut Conn> {
        let conn = self.conns.get_mut(token.slot())?;
        (conn.generation == token.generation() && conn.phase() != Phase::Free).then_some(conn)
    }

    /// Returns the connection of a token that is known to be open.
    ///
    /// # Panics
    /// If its slot was never used.
    pub(crate) fn get(&mut self, token: Token) -> &mut Conn {
        &mut self.conns[token.slot()]
    }

    /// Returns the connections by slot, for the wheel, whose nodes they contain.
    pub(crate) fn conns_mut(&mut self) -> &mut SlotArray<Conn> {
        &mut self.conns
    }

    /// Returns the number of slots, used or not.
    pub(crate) fn slots(&self) -> usize {
        self.conns.len()
    }

    /// Returns the token of a slot that is in use.
    pub(crate) fn token(&self, slot: usize) -> Token {
        Token::new(slot as u32, self.conns[slot].generation)
    }

    /// Returns the tokens of all connections that match `wanted`.
    pub(crate) fn tokens(&self, wanted: impl Fn(&Conn) -> bool) -> Vec<Token> {
        let used =
            self.conns.iter().enumerate().filter(|(_, conn)| conn.phase() != Phase::Free && wanted(conn));
        used.map(|(slot, conn)| Token::new(slot as u32, conn.generation)).collect()
    }

    /// Frees the memory of the last slots that are free. Returns the number of slots left.
    pub(crate) fn trim(&mut self) -> usize {
        self.conns.trim(|conn| conn.phase() == Phase::Free);
        self.conns.len()
    }

    /// Returns the number of open connections.
    pub(crate) fn len(&self) -> usize {
        self.open
    }
}
