//! Deadlines of HTTP/2 connections: the earliest of those of the connection and of its streams.
//!
//! | wait | from | limit | then |
//! |---|---|---|---|
//! | the first request | accept | `first_head_ms` | GOAWAY |
//! | the rest of a frame or of a header block | its first byte | `head_ms` | GOAWAY |
//! | content of a request, while the client may send some | as in HTTP/1 | `body_grace_ms`, `body_ms`, rate | `408`, or RST_STREAM |
//! | windows for content | the last check | `write_ms`, rate | reset of the connection |
//! | a request, with no stream open | the end of the last one | `idle_ms`, `drain_idle_ms` | GOAWAY |
//! | handlers, after the client's FIN | the FIN | `half_closed_ms` | close |

use std::mem;

use shearwater_http1::Framing;
use shearwater_io::{CloseKind, Driver, Token};

use crate::connection::Flag;
use crate::exchange::Exchange;
use crate::http2::{Multiplexed, Stream};
use crate::limits::{IDLE_TRIM_AFTER_MS, SILENT_MS_MIN, Timeouts};
use crate::observe::record::ExchangeEnd;
use crate::request::refusal::Refusal;
use crate::service::Service;
use crate::timers::wheel::{coarse_tick_at, tick_at};
use crate::worker::Worker;
use crate::worker::state::WorkerState;
use shearwater_http2::{ErrorCode, StreamId};

/// A wait of a connection that is bounded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    FirstHead,
    Frame,
    Windows,
    Idle,
    /// The connection has been idle for a moment, and keeps only what it needs.
    Trim,
    HalfClosed,
    Content(StreamId),
}

/// Returns the deadline of a connection itself, without that of its streams.
fn own_deadline(many: &Multiplexed, timeouts: &Timeouts, ends_soon: bool) -> Option<(u64, Wait)> {
    let after = |since: Option<u64>, wait_ms: u64, wait| Some((since?.saturating_add(wait_ms), wait));
    let idle = many.idle_since_ms();
    let idle_ms = if ends_soon { timeouts.drain_idle_ms } else { timeouts.idle_ms };
    let waits = [
        many.first_head_due_ms.filter(|_| !ends_soon).map(|due_ms| (due_ms, Wait::FirstHead)),
        after(many.partial_since_ms, timeouts.head_ms, Wait::Frame),
        after(many.checked_ms, timeouts.write_ms, Wait::Windows),
        after(idle, idle_ms, Wait::Idle),
        after(idle.filter(|_| !many.is_trimmed && !ends_soon), IDLE_TRIM_AFTER_MS, Wait::Trim),
        after(many.fin_ms, timeouts.half_closed_ms, Wait::HalfClosed),
    ];
    waits.into_iter().flatten().min_by_key(|(due_ms, _)| *due_ms)
}

/// Returns the deadline of a request's content, unless the client must not send any, or waits for a `100`.
fn content_deadline(stream: &Stream, exchange: &Exchange) -> Option<(u64, Wait)> {
    let body = exchange.body.as_ref().filter(|body| !body.owes_continue && stream.uncredited == 0)?;
    Some((body.budget.due_ms(), Wait::Content(stream.id)))
}

impl<S> WorkerState<S> {
    /// Returns the earliest deadline.
    fn http2_deadline(&mut self, token: Token) -> Option<(u64, Wait)> {
        let ends_soon = self.leaving.ends_soon(token);
        let index = self.table.get(token).busy;
        let many = self.busy.get_mut(index)?.many.as_deref()?;
        let mut first = own_deadline(many, &self.timeouts, ends_soon);
        for stream in many.streams() {
            let Some(exchange) = self.exchanges.get(stream.exchange) else { continue };
            let own = content_deadline(stream, exchange);
            first = [first, own].into_iter().flatten().min_by_key(|(due_ms, _)| *due_ms);
        }
        first
    }

    /// Sets the deadline of a connection without a send in flight.
    pub(crate) fn reconcile_http2_deadline(&mut self, token: Token) {
        let now_ms = self.now_ms;
        let index = self.table.get(token).busy;
        let has_input = self.busy.has_input(index);
        let Some(many) = self.busy.get_mut(index).and_then(|busy| busy.many.as_deref_mut()) else { return };
        many.observe_waits(has_input, now_ms);
        match self.http2_deadline(token) {
            // As for HTTP/1, so that not each request moves the timer.
            Some((due_ms, Wait::Idle | Wait::Trim)) if !self.leaving.ends_soon(token) => {
                self.wheel.set(self.table.conns_mut(), token.slot(), coarse_tick_at(due_ms));
            }
            Some((due_ms, _)) => self.wheel.set(self.table.conns_mut(), token.slot(), tick_at(due_ms)),
            None => self.wheel.clear(self.table.conns_mut(), token.slot()),
        }
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Acts on the deadline of a connection without a send in flight.
    pub(crate) fn http2_expired(&mut self, token: Token) {
        if self.driver.reads_later(token) {
            return self.state.postpone_deadline(token);
        }
        let (now_ms, ends_soon) = (self.state.now_ms, self.state.leaving.ends_soon(token));
        let due = self.state.http2_deadline(token).filter(|(due_ms, _)| *due_ms <= now_ms);
        let counters = &self.state.counters;
        match due.map(|(_, wait)| wait) {
            None => self.state.reconcile_http2_deadline(token),
            Some(Wait::FirstHead) => {
                counters.hit_first_head_ms.add(1);
                self.close_http2(token);
            }
            Some(Wait::Trim) => self.state.trim_http2(token),
            Some(Wait::Idle) => {
                let limit = if ends_soon { &counters.hit_drain_idle_ms } else { &counters.hit_idle_ms };
                limit.add(1);
                self.close_http2(token);
            }
            Some(Wait::Frame) => {
                counters.hit_head_ms.add(1);
                if self.state.enter(token) {
                    self.state.abort_http2();
                    self.flush_entered(token);
                }
            }
            Some(Wait::Windows) => self.check_windows(token),
            Some(Wait::HalfClosed) => {
                counters.hit_half_closed_ms.add(1);
                self.shut_as(token, CloseKind::Normal, ExchangeEnd::TimedOut);
            }
            Some(Wait::Content(id)) if self.extend_content(token, id) => {}
            Some(Wait::Content(id)) => {
                if self.state.enter(token) {
                    self.state.expire_content(token, id);
                    self.flush_entered(token);
                }
            }
        }
    }

    /// Ends a connection after its open streams, and begins no further one.
    pub(crate) fn close_http2(&mut self, token: Token) {
        if self.state.enter(token) {
            let (out, many) = self.state.entered();
            many.connection.refuse_streams(out.bytes_mut());
            self.flush_entered(token);
        }
    }

    /// Extends the time of content whose next bytes are in an incomplete record. Returns false if none has come since the
    /// last time.
    fn extend_content(&mut self, token: Token, id: StreamId) -> bool {
        let Some(on_wire) = self.driver.received_on_wire(token) else { return false };
        let (rule, now_ms) = (self.state.body_rate_rule, self.state.now_ms);
        let index = self.state.table.get(token).busy;
        let many = self.state.busy.get_mut(index).and_then(|busy| busy.many.as_deref_mut());
        let Some(many) = many else { return false };
        let more = on_wire - mem::replace(&mut many.wire_bytes, on_wire);
        let exchange = many.find(id).map(|stream| stream.exchange);
        let exchange = exchange.and_then(|id| self.state.exchanges.get(id));
        let Some(body) = exchange.and_then(|exchange| exchange.body.as_mut()) else { return false };
        body.budget = body.budget.earn(&rule, more, now_ms);
        let is_extended = more > 0 && body.budget.due_ms() > now_ms;
        if is_extended {
            self.state.reconcile_http2_deadline(token);
        }
        is_extended
    }

    /// Returns the time since which a connection has been idle, if it may be closed to make room for others.
    pub(crate) fn http2_idle_since(&mut self, token: Token) -> Option<u64> {
        let index = self.state.table.get(token).busy;
        let since_ms = self.state.busy.get_mut(index)?.many.as_deref()?.idle_since_ms()?;
        let is_old = since_ms.saturating_add(SILENT_MS_MIN) <= self.state.now_ms;
        (self.room.takes_any || is_old).then_some(since_ms)
    }

    /// Resets a client whose windows have let too little content pass since the last check.
    fn check_windows(&mut self, token: Token) {
        let (write_ms, now_ms) = (self.state.timeouts.write_ms, self.state.now_ms);
        let least = self.state.limits.send_bytes_min(write_ms);
        let index = self.state.table.get(token).busy;
        let Some(many) = self.state.busy.get_mut(index).and_then(|busy| busy.many.as_deref_mut()) else {
            return;
        };
        let sent = std::mem::take(&mut many.content_sent);
        many.checked_ms = Some(now_ms);
        let counters = &self.state.counters;
        match sent {
            0 => counters.hit_write_ms.add(1),
            _ if sent < least => counters.hit_send_rate.add(1),
            _ => return self.state.reconcile_http2_deadline(token),
        }
        self.shut_as(token, CloseKind::Reset, ExchangeEnd::TimedOut);
    }

    /// Acts on the client's FIN: it may still get the responses to its complete requests.
    pub(crate) fn http2_fin(&mut self, token: Token) {
        let index = self.state.table.get(token).busy;
        let is_idle = self.state.open_streams(token) == 0 && !self.state.busy.has_input(index);
        if is_idle && !self.state.table.get(token).has(Flag::Sending) {
            return self.shut(token, CloseKind::Normal);
        }
        if self.state.enter(token) {
            let (_, many) = self.state.entered();
            many.fin_waits = many.has_input;
            if !many.fin_waits {
                self.state.end_incomplete(token);
            }
            self.flush_entered(token);
        }
    }
}

impl<S: Service> WorkerState<S> {
    /// Frees what an idle connection doesn't need.
    fn trim_http2(&mut self, token: Token) {
        let conn = self.table.get(token);
        let mut busy = self.busy.take(token, &mut conn.busy);
        if let Some(many) = &mut busy.many {
            many.trim();
        }
        self.busy.put(conn.busy, busy);
        self.reconcile_http2_deadline(token);
    }

    /// Restarts the time of all content: the pause was ours.
    pub(crate) fn restart_content(&mut self, token: Token) {
        let (rule, now_ms) = (self.body_rate_rule, self.now_ms);
        let index = self.table.get(token).busy;
        let Some(many) = self.busy.get_mut(index).and_then(|busy| busy.many.as_deref()) else { return };
        for stream in many.streams() {
            let body = self.exchanges.get(stream.exchange).and_then(|exchange| exchange.body.as_mut());
            body.into_iter().for_each(|body| body.restart(&rule, now_ms));
        }
    }

    fn abort_http2(&mut self) {
        let (out, many) = self.entered();
        many.connection.abort(out.bytes_mut());
    }

    /// Rejects a request whose content arrives too slowly.
    fn expire_content(&mut self, token: Token, id: StreamId) {
        let (_, many) = self.entered();
        let exchange = many.find(id).map(|stream| stream.exchange);
        let body = exchange.and_then(|id| self.exchanges.get(id)).and_then(|exchange| exchange.body.as_ref());
        let ends_silence = body.is_some_and(|body| body.budget.ends_silence());
        let counters = &self.counters;
        let limit = if ends_silence { &counters.hit_body_ms } else { &counters.hit_body_rate };
        limit.add(1);
        self.refuse_exchange(token, id, Refusal::Timeout);
    }

    /// Ends the streams of a client that has sent its FIN: those whose requests are incomplete, and those whose handlers end
    /// with their client.
    pub(super) fn end_incomplete(&mut self, token: Token) {
        let now_ms = self.now_ms;
        let (out, many) = self.entered();
        many.connection.refuse_streams(out.bytes_mut());
        many.fin_ms.get_or_insert(now_ms);
        many.fin_waits = false;
        let of_stream =
            |stream: &Stream| (stream.id, stream.exchange, stream.is_early_whole, stream.tunnel.is_some());
        let streams: Vec<_> = many.streams().iter().map(of_stream).collect();
        for (id, exchange, is_early_whole, is_tunnel) in streams {
            if is_tunnel && !is_early_whole {
                self.reset_stream(token, id, ErrorCode::Cancel, ExchangeEnd::Disconnected);
            }
            let Some(exchange) = self.exchanges.get(exchange) else { continue };
            let ends = exchange.shared.as_ref().is_some_and(|shared| shared.ends_with_client());
            let waits_for_guard = exchange.shared.as_ref().is_some_and(|shared| shared.guard.get().is_some());
            let has_body = exchange.head().is_some_and(|head| head.framing() != Framing::None);
            let is_early = waits_for_guard && has_body && !is_early_whole;
            if ends || is_early || exchange.body.is_some() {
                self.reset_stream(token, id, ErrorCode::Cancel, ExchangeEnd::Disconnected);
            }
        }
    }
}
