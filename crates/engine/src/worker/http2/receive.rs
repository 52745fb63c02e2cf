//! Received frames: requests, their content, and their resets.

use std::mem;
use std::ops::ControlFlow;

use shearwater_http1::{Expectation, Framing, Head, HeadParser, is_same_protocol};
use shearwater_http2::{ErrorCode, HeadBuffer, StreamEvent, StreamId};
use shearwater_io::{Driver, Token};

use crate::connection::Flag;
use crate::deferred::calls::Deferral;
use crate::exchange::body::{BodyReader, To};
use crate::exchange::id::ExchangeId;
use crate::exchange::{Exchange, State};
use crate::limits::{DECODED_BYTES_PER_TURN_MAX, REQUESTS_PER_TURN_MAX};
use crate::observe::record::{ExchangeEnd, Received};
use crate::request::guards::{GuardPosition, GuardsPassed};
use crate::request::refusal::Refusal;
use crate::request::{DriverView, Request};
use crate::response::facts::RequestFacts;
use crate::response::responder::Outcome;
use crate::service::{BodyPolicy, Service};
use crate::worker::Worker;
use crate::worker::request_loop::facts;
use crate::worker::state::WorkerState;

/// A request whose head is complete.
#[derive(Clone, Copy)]
pub(super) struct Begun<'a> {
    pub(super) id: StreamId,
    pub(super) head: Head<'a>,
    /// No content follows.
    pub(super) ends: bool,
}

impl Begun<'_> {
    /// The fate of the connection doesn't depend on a stream.
    pub(super) fn facts(&self) -> RequestFacts {
        RequestFacts { keep_alive: true, ..facts(&self.head, true, false) }
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Processes received frames, which the driver lends; copies only an incomplete one.
    pub(crate) fn received_frames(&mut self, token: Token) {
        let bytes = self.driver.lent();
        let state = &mut self.state;
        let index = state.table.get(token).busy;
        if state.busy.has_input(index) {
            let is_behind = state.input_waits(token);
            state.keep_input(token, bytes);
            self.resume_frames(token);
            // Else a client that sends more than its turns take would have all of it stored.
            if is_behind && self.state.input_waits(token) {
                self.pause_early(token);
            }
            return;
        }
        if !state.enter(token) {
            return;
        }
        let consumed = state.run_frames(token, bytes, &self.driver);
        if consumed < bytes.len() {
            state.keep_input(token, &bytes[consumed..]);
        }
        self.flush_received(token);
    }

    /// Processes stored input, and sends content.
    pub(crate) fn resume_frames(&mut self, token: Token) {
        let state = &mut self.state;
        let index = state.table.get(token).busy;
        let Some(busy) = state.busy.get_mut(index) else { return };
        let mut input = mem::take(&mut busy.input);
        if !state.enter(token) {
            return;
        }
        let consumed = state.run_frames(token, &input, &self.driver);
        input.consume(consumed);
        if let Some(busy) = state.busy.get_mut(index) {
            busy.input = input;
        }
        self.flush_received(token);
    }

    /// Sends the responses, or pauses reading if too many of them wait for a send in flight.
    fn flush_received(&mut self, token: Token) {
        let (_, many) = self.state.entered();
        let has_input = many.has_input;
        if many.fin_waits && !has_input {
            self.state.end_incomplete(token);
        }
        let is_sending = self.state.table.get(token).has(Flag::Sending);
        self.flush_entered(token);
        if has_input && is_sending {
            return self.pause_early(token);
        }
        self.reset_if_full(token);
    }
}

impl<S: Service> WorkerState<S> {
    /// Processes frames of the connection that was entered; returns the bytes consumed. The rest is an incomplete frame, or
    /// waits because a limit of the turn is reached.
    fn run_frames(&mut self, token: Token, input: &[u8], driver: &dyn DriverView) -> usize {
        let new = || Box::new(HeadBuffer::new(self.limits.head()));
        let mut head = self.http2.head.take().unwrap_or_else(new);
        let now_ms = self.now_ms;
        let (_, many) = self.entered();
        many.connection.begin_turn(now_ms);
        many.has_input = false;
        let (mut consumed, mut requests) = (0, 0);
        while consumed < input.len() {
            let (_, many) = self.entered();
            let is_over = requests >= REQUESTS_PER_TURN_MAX
                || many.connection.decoded_this_turn() >= DECODED_BYTES_PER_TURN_MAX;
            if is_over || self.output_bound().is_some() {
                self.wait_for_turn(token);
                break;
            }
            let (out, many) = self.entered();
            let Ok(step) = many.connection.receive(&input[consumed..], &mut head, out.bytes_mut()) else {
                // The GOAWAY is written; the connection ends with it.
                consumed = input.len();
                break;
            };
            consumed += step.consumed;
            match step.event {
                StreamEvent::More => break,
                StreamEvent::Request { stream, ends } => {
                    requests += 1;
                    let begun = Begun { id: stream, head: head.head(), ends };
                    self.begin_stream(token, begun, driver);
                }
                StreamEvent::Data { stream, content, ends } => {
                    self.receive_content(token, stream, content, ends, driver);
                }
                event => self.receive_rare(token, event, &head, driver),
            }
        }
        self.http2.head = Some(head);
        let (_, many) = self.entered();
        if consumed > 0 && !many.connection.has_partial_head() {
            many.partial_since_ms = None;
        }
        consumed
    }

    /// Has the rest of the input wait for the next turn, or for the end of the send in flight.
    #[cold]
    fn wait_for_turn(&mut self, token: Token) {
        self.output_bound().unwrap_or(&self.counters.hit_requests_per_turn).add(1);
        let (_, many) = self.entered();
        many.has_input = true;
        if !self.table.get(token).has(Flag::Sending) {
            self.queue(token);
        }
    }

    #[cold]
    fn receive_rare(
        &mut self,
        token: Token,
        event: StreamEvent<'_>,
        head: &HeadBuffer,
        driver: &dyn DriverView,
    ) {
        let (_, many) = self.entered();
        if let StreamEvent::Rejected { stream, .. } | StreamEvent::Trailers { stream } = event
            && many.find(stream).is_some_and(|stream| stream.tunnel.is_some())
        {
            // RFC 9113 section 8.5: a tunnel has no trailers.
            return self.reset_stream(token, stream, ErrorCode::ProtocolError, ExchangeEnd::Complete);
        }
        let (id, end) = match event {
            StreamEvent::Rejected { stream, error } => {
                // Those of trailers are no new requests.
                if many.find(stream).is_some() {
                    return self.refuse_exchange(token, stream, Refusal::Rejected(error));
                }
                self.note_begun(token);
                let (method, path) = head.rejected_target();
                let received = Received::Fields { method, path };
                return self.refuse_stream(token, stream, Refusal::Rejected(error), &received);
            }
            StreamEvent::Trailers { stream } => {
                if let Some(exchange) = many.find(stream).map(|stream| stream.exchange) {
                    self.put_trailers(exchange, head.trailer_section());
                }
                return self.receive_content(token, stream, b"", true, driver);
            }
            StreamEvent::Reset { stream, .. } => {
                self.counters.http2_resets_received.add(1);
                (stream, ExchangeEnd::Disconnected)
            }
            StreamEvent::Failed { stream, .. } => (stream, ExchangeEnd::Truncated),
            StreamEvent::Request { .. } | StreamEvent::Data { .. } | StreamEvent::More => return,
        };
        let (_, many) = self.entered();
        if let Some(stream) = many.remove(id) {
            self.drop_stream(token, stream, end);
        }
    }

    /// Notes that a stream has begun.
    fn note_begun(&mut self, token: Token) {
        self.table.get(token).begin_stream();
        self.counters.http2_streams.add(1);
        let (_, many) = self.entered();
        many.first_head_due_ms = None;
    }

    /// Responds to a request whose head is complete, or begins to receive its content.
    fn begin_stream(&mut self, token: Token, begun: Begun<'_>, driver: &dyn DriverView) {
        self.note_begun(token);
        let is_last = self.count_served(token, false);
        let (out, many) = self.entered();
        many.current = begun.id;
        if is_last {
            many.connection.drain(out.bytes_mut());
        }
        let refusal = self.refused_head(token, &begun.head, driver).or(self.refused_protocol(&begun.head));
        if let Some(refusal) = refusal {
            return self.refuse_stream(token, begun.id, refusal, &Received::Head(begun.head));
        }
        self.guard_stream(token, begun, GuardsPassed(0), driver);
    }

    /// Returns the refusal of an extended CONNECT for a protocol that the service doesn't have.
    fn refused_protocol(&self, head: &Head<'_>) -> Option<Refusal> {
        let protocol = head.protocol()?;
        let is_it = |own: &String| is_same_protocol(own.as_bytes(), protocol.as_bytes());
        (!self.http2.protocols.iter().any(is_it)).then_some(Refusal::Protocol)
    }

    /// Runs the guards of a request behind those that it has passed, and continues unless one of them responds or waits.
    pub(super) fn guard_stream(
        &mut self,
        token: Token,
        begun: Begun<'_>,
        mut passed: GuardsPassed,
        driver: &dyn DriverView,
    ) {
        // The guards of a request without content run with its handler.
        if self.has_guards && begun.head.framing() != Framing::None {
            let request = Request::new(begun.head, None, driver, self.proxies.as_deref(), token);
            let request = request.at(GuardPosition { passed, ..GuardPosition::default() });
            let caught = match self.responder.guard(&self.service, &request, &mut self.calls) {
                Ok(Some(all)) => {
                    passed = all;
                    None
                }
                Ok(None) => Some(Ok(())),
                Err(panic) => Some(Err(panic)),
            };
            if let Some(caught) = caught {
                let outcome = self.responder.called(caught, &request, begun.facts(), &mut self.calls);
                return self.conclude_stream(token, begun, outcome, None, driver);
            }
        }
        if begun.ends || begun.head.protocol().is_some() {
            return self.respond_to_stream(token, begun, passed, driver);
        }
        match self.policy_of(&begun.head) {
            ControlFlow::Break(refusal) => {
                self.refuse_stream(token, begun.id, refusal, &Received::Head(begun.head));
            }
            ControlFlow::Continue(policy) => self.begin_content(token, begun, passed, &policy, driver),
        }
    }

    /// Begins to receive content: for the handler, which is called at once if it reads itself.
    fn begin_content(
        &mut self,
        token: Token,
        begun: Begun<'_>,
        passed: GuardsPassed,
        policy: &BodyPolicy,
        driver: &dyn DriverView,
    ) {
        let is_empty = begun.head.framing() == Framing::Length(0);
        let is_awaited = begun.head.expectation() == Expectation::Continue && !is_empty;
        let to = match policy {
            BodyPolicy::Call | BodyPolicy::Pass { .. } => To::Handler,
            BodyPolicy::Discard => To::Discard,
            BodyPolicy::Buffer { .. } => To::Keep,
        };
        let mut body = self.body_reader(Framing::None, self.body_bytes_max(policy), to);
        if to == To::Handler || to == To::Discard && is_awaited {
            body.owes_continue = is_awaited;
            let request = Request::new(begun.head, None, driver, self.proxies.as_deref(), token);
            let request = request.at(GuardPosition::late(passed));
            let outcome = self.responder.call(&self.service, &request, begun.facts(), &mut self.calls);
            // Responds without a body that is neither read nor sent yet.
            let body = Some(body).filter(|body| body.to == To::Handler);
            return self.conclude_stream(token, begun, outcome, body, driver);
        }
        let mut exchange = self.exchanges.begin(token);
        (exchange.stream, exchange.facts, exchange.passed) = (Some(begun.id), begun.facts(), passed);
        exchange.enter(State::Reading);
        exchange.body = Some(body);
        exchange.head.extend(begun.head.raw(), &mut self.busy.pool);
        let new = || Box::new(HeadParser::without_room(self.limits.head()));
        exchange.parser.get_or_insert_with(new).adopt(&begun.head);
        self.keep_stream(exchange);
        if is_awaited {
            self.responder.append_continue();
        }
        self.refuse_stream_if_full(token, begun.id);
    }

    /// Receives a piece of a request's content. Once it is complete, calls a handler that doesn't read it itself.
    pub(super) fn receive_content(
        &mut self,
        token: Token,
        id: StreamId,
        content: &[u8],
        ends: bool,
        driver: &dyn DriverView,
    ) {
        let (_, many) = self.entered();
        many.current = id;
        let found = many.find(id).map(|stream| {
            stream.received += content.len() as u64;
            stream.uncredited += content.len();
            (stream.exchange, stream.tunnel.is_some())
        });
        if let Some((_, true)) = found {
            return self.receive_for_program(token, id, content, ends);
        }
        let exchange_id = found.map(|(id, _)| id);
        let Some(mut exchange) = exchange_id.and_then(|id| self.exchanges.take(id)) else {
            // The response doesn't depend on it.
            let (out, many) = self.entered();
            return many.connection.consumed(id, content.len(), out.bytes_mut());
        };
        let Some(mut body) = exchange.body.take() else {
            return self.keep_early(exchange, content, ends);
        };
        let bytes_before = body.bytes;
        let Exchange { kept, shared, .. } = &mut *exchange;
        let stored = body.store(content, kept, shared.as_ref(), &mut self.busy.pool);
        body.earn(&self.body_rate_rule, bytes_before, self.now_ms);
        if let Err(refusal) = stored {
            if exchange.is_handled() {
                self.report_body_limit();
            }
            self.keep_stream(exchange);
            return self.refuse_exchange(token, id, refusal);
        }
        let grows = body.to != To::Discard;
        if !exchange.is_handled() {
            self.credit_all(id);
        }
        match (ends, &exchange.shared) {
            (true, None) => return self.respond_to_kept_stream(exchange, &body, driver),
            (true, Some(shared)) => shared.end_body(),
            (false, _) => exchange.body = Some(body),
        }
        self.keep_stream(exchange);
        if grows {
            self.refuse_stream_if_full(token, id);
        }
    }

    /// Keeps content that arrives while a guard waits, up to the stream's window.
    #[cold]
    fn keep_early(&mut self, exchange: Box<Exchange>, content: &[u8], ends: bool) {
        let id = exchange.stream.expect("an exchange of a stream");
        self.keep_stream(exchange);
        let (_, many) = self.entered();
        let stream = many.stream(id);
        stream.early.extend_from_slice(content);
        stream.is_early_whole |= ends;
    }

    /// Calls the handler of a request whose content is complete.
    fn respond_to_kept_stream(
        &mut self,
        exchange: Box<Exchange>,
        body: &BodyReader,
        driver: &dyn DriverView,
    ) {
        let (token, id) = (exchange.token, exchange.stream.expect("an exchange of a stream"));
        let outcome = self.call_kept(&exchange, body, driver);
        match outcome {
            Outcome::Deferred(Deferral::Deferred(deferred)) => {
                self.defer_stream(exchange, deferred, None, driver);
            }
            outcome => {
                let head = exchange.head().expect("its head is kept until its handler is called");
                self.conclude_stream(token, Begun { id, head, ends: true }, outcome, None, driver);
                self.end_stream_exchange(exchange);
            }
        }
    }

    /// Begins a request anew that has passed the guard it waited for, with the content that has arrived meanwhile.
    #[cold]
    pub(super) fn begin_stream_anew(&mut self, exchange: Box<Exchange>, driver: &dyn DriverView) {
        let (token, id) = (exchange.token, exchange.stream.expect("an exchange of a stream"));
        let (shared, passed) = (exchange.shared().clone(), exchange.passed_guards().unwrap_or_default());
        let ends = matches!(shared.head().framing(), Framing::None | Framing::Length(0));
        let trailers = shared.received_trailers();
        self.end_exchange(exchange);
        let (_, many) = self.entered();
        many.current = id;
        // It stays, with the time of its request.
        let stream = many.stream(id);
        (stream.exchange, stream.exchange_bytes) = (ExchangeId::NONE, 0);
        let (early, is_whole) = (mem::take(&mut stream.early), mem::take(&mut stream.is_early_whole));
        // It counts again below: until then a handler has read none of it.
        stream.uncredited = 0;
        self.guard_stream(token, Begun { id, head: shared.head(), ends }, passed, driver);
        let (_, many) = self.entered();
        let record = many.remove_spent(id);
        let exchange = many.find(id).map(|stream| {
            stream.received = 0;
            stream.exchange
        });
        self.end_record(record);
        if let Some(exchange) = exchange {
            self.put_trailers(exchange, &trailers);
            if !early.is_empty() || is_whole {
                self.receive_content(token, id, &early, is_whole, driver);
            }
        }
    }

    /// Passes trailers to the handler of an exchange, if it has one.
    fn put_trailers(&mut self, exchange: ExchangeId, section: &[u8]) {
        let shared = self.exchanges.get(exchange).and_then(|exchange| exchange.shared.as_ref());
        if let Some(shared) = shared.filter(|_| !section.is_empty()) {
            shared.put_trailers(section);
        }
    }

    /// Resets a stream whose response is cut off, or whose tunnel its program has broken off.
    pub(super) fn reset_cut(&mut self, token: Token, id: StreamId) {
        let (_, many) = self.entered();
        let is_tunnel = many.find(id).is_some_and(|stream| stream.tunnel.is_some());
        let (code, end) = match is_tunnel {
            true => (ErrorCode::Cancel, ExchangeEnd::Complete),
            false => (ErrorCode::InternalError, ExchangeEnd::Truncated),
        };
        self.reset_stream(token, id, code, end);
    }

    /// Resets a stream whose response can't be completed, or has no client any more.
    pub(super) fn reset_stream(&mut self, token: Token, id: StreamId, code: ErrorCode, end: ExchangeEnd) {
        let (out, many) = self.entered();
        many.connection.reset(id, code, out.bytes_mut());
        if let Some(stream) = many.remove(id) {
            self.drop_stream(token, stream, end);
        }
    }
}
