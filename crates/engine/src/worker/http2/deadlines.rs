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

use shearwater_io::{CloseKind, Driver, Token};

use crate::connection::Flag;
use crate::exchange::Exchange;
use crate::http2::{Multiplexed, Stream};
use crate::limits::{IDLE_TRIM_AFTER_MS, Timeouts};
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
        let conn = self.table.get(token);
        let (index, is_fresh) = (conn.busy, conn.has(Flag::Fresh));
        let has_input = self.busy.has_input(index);
        let Some(many) = self.busy.get_mut(index).and_then(|busy| busy.many.as_deref_mut()) else { return };
        many.observe_waits(has_input, now_ms);
        // That of the first head keeps running.
        if is_fresh && !self.leaving.ends_soon(token) {
            return;
        }
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
        if self.state.table.get(token).has(Flag::Fresh) && !ends_soon {
            self.state.counters.hit_first_head_ms.add(1);
            return self.close_http2(token);
        }
        let due = self.state.http2_deadline(token).filter(|(due_ms, _)| *due_ms <= now_ms);
        let counters = &self.state.counters;
        match due.map(|(_, wait)| wait) {
            None => self.state.reconcile_http2_deadline(token),
            Some(Wait::Trim) => self.trim_http2(token),
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

    fn trim_http2(&mut self, token: Token) {
        if self.state.enter(token) {
            let (_, many) = self.state.entered();
            many.trim();
            self.state.leave(token);
            self.state.reconcile_http2_deadline(token);
        }
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
        if self.state.open_streams(token) == 0 && !self.state.table.get(token).has(Flag::Sending) {
            return self.shut(token, CloseKind::Normal);
        }
        if self.state.enter(token) {
            self.state.end_incomplete(token);
            self.flush_entered(token);
        }
    }
}

impl<S: Service> WorkerState<S> {
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
    fn end_incomplete(&mut self, token: Token) {
        let now_ms = self.now_ms;
        let (out, many) = self.entered();
        many.connection.refuse_streams(out.bytes_mut());
        many.fin_ms.get_or_insert(now_ms);
        let ids: Vec<_> = many.streams().iter().map(|stream| (stream.id, stream.exchange)).collect();
        for (id, exchange) in ids {
            let Some(exchange) = self.exchanges.get(exchange) else { continue };
            let ends = exchange.shared.as_ref().is_some_and(|shared| shared.ends_with_client());
            if ends || exchange.body.is_some() {
                self.reset_stream(token, id, ErrorCode::Cancel, ExchangeEnd::Disconnected);
            }
        }
    }
}
