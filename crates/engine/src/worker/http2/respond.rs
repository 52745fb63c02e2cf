//! Responses on streams: immediate and deferred ones, refusals, and their records.

use std::mem;

use shearwater_http2::{ErrorCode, StreamId};
use shearwater_io::Token;

use crate::deferred::calls::{Deferral, Deferred};
use crate::exchange::Exchange;
use crate::exchange::body::BodyReader;
use crate::exchange::id::ExchangeId;
use crate::http2::Stream;
use crate::http2::outgoing::End;
use crate::observe::record::{ExchangeEnd, Group, Received};
use crate::request::guards::{GuardPosition, GuardsPassed};
use crate::request::refusal::Refusal;
use crate::request::{DriverView, Request};
use crate::response::facts::Disposition;
use crate::response::responder::Outcome;
use crate::service::Service;
use crate::worker::http2::receive::Begun;
use crate::worker::state::WorkerState;
use shearwater_http1::Method;

impl<S: Service> WorkerState<S> {
    /// Responds to a complete request.
    pub(super) fn respond_to_stream(
        &mut self,
        token: Token,
        begun: Begun<'_>,
        passed: GuardsPassed,
        driver: &dyn DriverView,
    ) {
        let request = Request::new(begun.head, Some(&[]), driver, self.proxies.as_deref(), token);
        let request = request.at(GuardPosition::late(passed));
        let outcome = self.responder.call(&self.service, &request, begun.facts(), &mut self.calls);
        self.calls.note_block(&begun.head);
        self.conclude_stream(token, begun, outcome, None, driver);
    }

    /// Counts the response that was encoded, or keeps a deferred handler, which reads `body` if there is one.
    pub(super) fn conclude_stream(
        &mut self,
        token: Token,
        begun: Begun<'_>,
        outcome: Outcome,
        body: Option<BodyReader>,
        driver: &dyn DriverView,
    ) {
        match outcome {
            Outcome::Responded(responded) => {
                if self.ledger.is_some() {
                    self.note_stream(token, begun.id, &Received::Head(begun.head), responded.status);
                }
                self.count(responded);
                self.begin_tunnel(token, begun.id);
            }
            Outcome::Deferred(Deferral::Deferred(deferred)) => {
                let mut exchange = self.exchanges.begin(token);
                (exchange.stream, exchange.facts) = (Some(begun.id), begun.facts());
                self.defer_stream(exchange, deferred, body, driver);
            }
            Outcome::Deferred(_) => {
                self.refuse_stream(token, begun.id, Refusal::CallsFull, &Received::Head(begun.head));
            }
        }
    }

    /// Polls a deferred handler, and keeps the exchange unless its response is complete. A handler that reads content is
    /// polled at the end of the turn, when content that was received with the head is there.
    pub(super) fn defer_stream(
        &mut self,
        mut exchange: Box<Exchange>,
        deferred: Deferred,
        body: Option<BodyReader>,
        driver: &dyn DriverView,
    ) {
        let (token, id) = (exchange.token, exchange.stream.expect("an exchange of a stream"));
        if body.is_some() {
            deferred.shared.expect_body();
        }
        exchange.handle(deferred, body, &mut self.busy.pool);
        if !self.has_room_for(token, exchange.shared().held_bytes()) {
            self.keep_stream(exchange);
            return self.refuse_exchange(token, id, Refusal::BuffersFull);
        }
        if exchange.is_new {
            match exchange.task.filter(|_| exchange.body.is_some()) {
                Some(task) => self.calls.tasks.wake(task),
                None => self.poll(&mut exchange),
            }
        }
        self.advance_stream(exchange, driver);
    }

    /// Encodes a handler's output, unless earlier output of it waits, and ends a response that is complete.
    pub(super) fn advance_stream(&mut self, mut exchange: Box<Exchange>, driver: &dyn DriverView) {
        let (token, id) = (exchange.token, exchange.stream.expect("an exchange of a stream"));
        self.credit(&mut exchange);
        let (_, many) = self.entered();
        many.current = id;
        if !many.stream(id).outgoing.is_empty() {
            return self.keep_stream(exchange);
        }
        if exchange.passed_guards().is_some() {
            return self.begin_stream_anew(exchange, driver);
        }
        match self.pump(&mut exchange) {
            None => {
                self.send_continue(&mut exchange);
                self.keep_stream(exchange);
            }
            Some(Disposition::Truncated) => {
                self.end_exchange(exchange);
                let (_, many) = self.entered();
                let stream = many.stream(id);
                (stream.exchange, stream.exchange_bytes) = (ExchangeId::NONE, 0);
                if !stream.outgoing.is_empty() {
                    stream.outgoing.end = Some(End::Cut);
                    return;
                }
                self.reset_stream(token, id, ErrorCode::InternalError, ExchangeEnd::Truncated);
            }
            Some(_) => {
                self.begin_tunnel(token, id);
                self.end_stream_exchange(exchange);
            }
        }
    }

    /// Stores the exchange of a stream.
    pub(super) fn keep_stream(&mut self, exchange: Box<Exchange>) {
        let id = exchange.stream.expect("an exchange of a stream");
        let open = self.store_exchange(exchange);
        let (_, many) = self.entered();
        let stream = many.stream(id);
        (stream.exchange, stream.exchange_bytes) = (open.id, open.bytes);
    }

    /// Ends an exchange; its stream may have content left.
    pub(super) fn end_stream_exchange(&mut self, exchange: Box<Exchange>) {
        let id = exchange.stream.expect("an exchange of a stream");
        self.end_exchange(exchange);
        let (out, many) = self.entered();
        if let Some(stream) = many.find(id) {
            (stream.exchange, stream.exchange_bytes) = (ExchangeId::NONE, 0);
        }
        let record = match many.end_drained(id, out) {
            Some(record) => record,
            None => many.remove_spent(id),
        };
        self.end_record(record);
    }

    /// Lets the client send as much content as the handler has read.
    fn credit(&mut self, exchange: &mut Exchange) {
        let Some(id) = exchange.stream.filter(|_| exchange.is_handled()) else { return };
        let queued = exchange.shared().queued_bytes();
        let (rule, now_ms) = (self.body_rate_rule, self.now_ms);
        let (out, many) = self.entered();
        let Some(stream) = many.find(id) else { return };
        let read = stream.uncredited.saturating_sub(queued + stream.early.len());
        if read > 0 {
            stream.uncredited -= read;
            many.connection.consumed(id, read, out.bytes_mut());
            // The pause was ours, not the client's.
            exchange.body.iter_mut().for_each(|body| body.restart(&rule, now_ms));
        }
    }

    /// Lets the client send as much content as it has sent.
    pub(super) fn credit_all(&mut self, id: StreamId) {
        let (out, many) = self.entered();
        let bytes = many.find(id).map_or(0, |stream| std::mem::take(&mut stream.uncredited));
        many.connection.consumed(id, bytes, out.bytes_mut());
    }

    fn has_room_for(&mut self, token: Token, more: usize) -> bool {
        if !self.busy.is_full() {
            return true;
        }
        let (_, many) = self.entered();
        // Its own memory counts as of the last flush.
        let own = many.exchange_bytes();
        self.make_memory_room_for(token, own + more)
    }

    /// Rejects the request of an exchange if the buffers are full and no larger connection can be evicted.
    pub(super) fn refuse_stream_if_full(&mut self, token: Token, id: StreamId) {
        if !self.has_room_for(token, 0) {
            self.refuse_exchange(token, id, Refusal::BuffersFull);
        }
    }

    /// Rejects the request of an exchange. A response that has begun is cut off.
    pub(super) fn refuse_exchange(&mut self, token: Token, id: StreamId, refusal: Refusal) {
        let (_, many) = self.entered();
        let exchange = many.find(id).map(|stream| stream.exchange);
        let Some(exchange) = exchange.and_then(|id| self.exchanges.take(id)) else { return };
        if exchange.has_begun() {
            self.count_limit(refusal);
            self.end_exchange(exchange);
            return self.reset_stream(token, id, ErrorCode::Cancel, ExchangeEnd::Truncated);
        }
        if let Some(head) = exchange.head() {
            self.refuse_stream(token, id, refusal, &Received::Head(head));
        }
        self.end_stream_exchange(exchange);
    }

    /// Rejects a request. What follows of its content is discarded.
    #[cold]
    pub(super) fn refuse_stream(
        &mut self,
        token: Token,
        id: StreamId,
        refusal: Refusal,
        received: &Received<'_>,
    ) {
        let (_, many) = self.entered();
        many.current = id;
        self.count_refused(refusal);
        let is_head = matches!(received, Received::Head(head) if head.method() == Method::Head);
        self.responder.refuse(refusal.status(), &refusal.sentence(), is_head);
        if self.ledger.is_some() {
            self.note_stream(token, id, received, refusal.status());
        }
    }

    /// Drops a stream that has ended without a complete response.
    pub(super) fn drop_stream(&mut self, token: Token, stream: Stream, end: ExchangeEnd) {
        if let Some(tunnel) = &stream.tunnel {
            self.drop_tunnel(tunnel);
        }
        let exchange = self.exchanges.take(stream.exchange);
        if let Some(ledger) = &mut self.ledger {
            match (stream.record, exchange.as_ref().and_then(|exchange| exchange.head())) {
                (Some(record), _) => ledger.end_stream(record, stream.received, end),
                (None, Some(head)) => {
                    let record =
                        ledger.describe_stream(token, &Received::Head(head), self.proxies.as_deref());
                    ledger.end_stream(record, stream.received, end);
                }
                (None, None) => {}
            }
        }
        if let Some(exchange) = exchange {
            self.end_exchange(exchange);
        }
    }

    /// Drops all streams of the connection that was entered.
    pub(super) fn cancel_entered(&mut self, token: Token, end: ExchangeEnd) {
        loop {
            let (_, many) = self.entered();
            let Some(stream) = many.pop() else { return };
            self.drop_stream(token, stream, end);
        }
    }

    /// Drops all streams of a connection.
    pub(crate) fn cancel_streams(&mut self, token: Token, end: ExchangeEnd) {
        if self.enter(token) {
            self.cancel_entered(token, end);
            if let Some(ledger) = &mut self.ledger {
                ledger.keep_current(token);
            }
            self.leave(token);
        }
    }

    /// Drops all streams of a connection, while another one may be worked on.
    #[cold]
    pub(crate) fn evict_streams(&mut self, token: Token) {
        let present = (self.responder.http2.take(), mem::take(&mut self.responder.out));
        let mut records = Group::default();
        if let Some(ledger) = &mut self.ledger {
            ledger.swap_current(&mut records);
        }
        self.cancel_streams(token, ExchangeEnd::Evicted);
        if let Some(ledger) = &mut self.ledger {
            ledger.swap_current(&mut records);
        }
        (self.responder.http2, self.responder.out) = present;
    }
}

/// Records of exchanges.
impl<S> WorkerState<S> {
    /// Counts a response that was just encoded, or its beginning.
    pub(crate) fn note_stream(&mut self, token: Token, id: StreamId, received: &Received<'_>, status: u16) {
        let Self { ledger: Some(ledger), responder, proxies, .. } = self else { return };
        let (tag, head_bytes) = (responder.tag(), responder.head_bytes as u32);
        let many = responder.http2.as_mut().expect("a connection was entered");
        let is_whole = many.is_whole;
        if let Some(stream) = many.find(id) {
            if !is_whole {
                let mut record = ledger.describe_stream(token, received, proxies.as_deref());
                let first = &mut record.records[0];
                (first.begun_us, first.body_received) = (stream.begun_us, stream.received);
                (first.status, first.tag, first.head_bytes) = (status, tag, head_bytes);
                first.queued = head_bytes.into();
                stream.record = Some(record);
                return;
            }
            ledger.receive_stream(token, stream.begun_us, stream.received);
        }
        ledger.respond_whole(token, received, status, responder, proxies.as_deref());
    }

    /// Ends the record of a response whose last bytes are in the output.
    pub(super) fn end_record(&mut self, record: Option<Box<Group>>) {
        if let (Some(ledger), Some(record)) = (&mut self.ledger, record) {
            let received = record.records[0].body_received;
            ledger.end_stream(record, received, ExchangeEnd::Complete);
        }
    }
}
