//! The request loop: read → parse → call → encode → flush.
//!
//! A worker calls [`received`](Worker::received) for bytes that its driver lends, or [`resume`](Worker::resume) for stored
//! ones. Both [`run`](WorkerState::run) the loop over them, then [`flush`](Worker::flush) what it has encoded (`send.rs`).
//!
//! Steps that live elsewhere: parsing and framing in `http1`; a body that arrives later in `body.rs`, which calls the
//! handler once the body is complete, or passes it to one that reads it; whether the connection is kept in
//! `response/responder.rs`; encoding in `wire/http1.rs`; refusals in `refuse.rs`; a deferred handler in `handler_start.rs`, polled at once and after the events of each turn in which it was
//! woken (`handler_poll.rs`), its response in `handler_response.rs`; the client's FIN in `disconnects.rs`. What the connection waits for afterwards: `reconcile.rs`.

use std::ops::ControlFlow;

use shearwater_http1::{Framing, Head, HeadParser, Parsed};
use shearwater_io::{CloseKind, Driver, Token};
use shearwater_tasks::Order;

use crate::connection::{Flag, Phase};
use crate::exchange::body::waits_for_continue;
use crate::limits::{OUTPUT_FILES_MAX, OUTPUT_ITEMS_MAX, REQUESTS_PER_TURN_MAX};
use crate::request::guards::{GuardPosition, GuardsPassed};
use crate::request::{DriverView, Request};
use crate::response::facts::{Disposition, RequestFacts};
use crate::response::responder::{Outcome, Responded};
use crate::server::counters::Counter;
use crate::service::{BodyPolicy, Service};
use crate::worker::Worker;
use crate::worker::ledger_events::Source;
use crate::worker::state::WorkerState;

/// Result of processing a part of the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Bytes of the input that were processed.
    pub(crate) consumed: usize,
    pub(crate) result: StepResult,
}

/// State of the connection after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepResult {
    /// More input is needed.
    Starve,
    /// A head is complete and its body follows.
    Body,
    /// A request has been responded to.
    Responded,
    /// A request was rejected; nothing more is read.
    Refused,
    /// A request has passed the guard that it waited for, and begins anew.
    Passed,
    /// Nothing more can be processed now: a body isn't complete, a deferred handler is at work, or this was the last request.
    Waits,
}

impl Step {
    pub(crate) const fn new(consumed: usize, result: StepResult) -> Self {
        Self { consumed, result }
    }
}

/// Read.
impl<D: Driver, S: Service> Worker<D, S> {
    /// Processes received bytes, which the driver lends; copies only leftovers.
    pub(crate) fn received(&mut self, token: Token) {
        let bytes = self.driver.lent();
        let state = &mut self.state;
        state.counters.bytes_received.add(bytes.len() as u64);
        let Some(conn) = state.table.find(token) else { return };
        let index = conn.busy;
        if !conn.is_live() && !state.streams_meanwhile(token) {
            return self.received_early(token);
        }
        if state.busy.has_input(index) {
            state.keep_input(token, bytes);
            return self.resume(token);
        }
        let consumed = state.run(&mut self.parser, token, bytes, &self.driver);
        if consumed < bytes.len() {
            state.count_wait(token, &bytes[consumed..]);
            state.keep_input(token, &bytes[consumed..]);
            state.refuse_if_full(token);
        }
        self.flush(token);
    }

    /// Processes stored input: a longer part of a head, or pipelined requests.
    pub(crate) fn resume(&mut self, token: Token) {
        self.resume_with(token, WorkerState::run);
    }

    /// Passes stored input to `run`, which returns the bytes consumed; keeps the rest, and flushes.
    pub(crate) fn resume_with(
        &mut self,
        token: Token,
        run: impl FnOnce(&mut WorkerState<S>, &mut HeadParser, Token, &[u8], &dyn DriverView) -> usize,
    ) {
        let state = &mut self.state;
        let index = state.table.get(token).busy;
        let Some(busy) = state.busy.get_mut(index) else { return };
        let mut input = std::mem::take(&mut busy.input);

        let consumed = run(state, &mut self.parser, token, &input, &self.driver);
        input.consume(consumed);
        state.count_wait(token, &input);

        let conn = state.table.get(token);
        let mut busy = state.busy.take(token, &mut conn.busy);
        busy.input = input;
        state.busy.put(conn.busy, busy);
        state.refuse_if_full(token);
        self.flush(token);
    }

    /// Resumes each connection with pending input once; `order` decides which comes first.
    pub(crate) fn resume_ready(&mut self) {
        if self.order == Order::Lifo {
            self.state.ready.make_contiguous().reverse();
        }
        for _ in 0..self.state.ready.len() {
            let Some(token) = self.state.ready.pop_front() else { break };
            let Some(conn) = self.state.table.find(token) else { continue };
            conn.unset(Flag::Queued);
            if conn.phase() == Phase::Multiplexed {
                self.resume_frames(token);
            } else if conn.is_live() || self.state.streams_meanwhile(token) {
                self.resume(token);
            }
        }
    }

    /// Handles bytes that may not be processed now: stores those of a later request, discards those after the last one.
    #[cold]
    fn received_early(&mut self, token: Token) {
        let conn = self.state.table.get(token);
        match conn.phase() {
            Phase::ProxyHeader => self.received_proxy_header(token),
            Phase::Multiplexed => self.received_frames(token),
            _ if conn.is_serving() => {
                self.state.keep_input(token, self.driver.lent());
                self.pause_early(token);
            }
            _ => self.received_late(token),
        }
    }

    /// Discards bytes after the last request; resets a client that sends too many of them.
    fn received_late(&mut self, token: Token) {
        let len = self.driver.lent().len();
        let state = &mut self.state;
        let conn = state.table.get(token);
        if conn.phase() == Phase::Linger && conn.discard(len) > state.limits.linger_bytes_max {
            state.counters.hit_linger_bytes.add(1);
            self.shut(token, CloseKind::Reset);
        }
    }
}

/// A request that can be responded to now.
#[derive(Clone, Copy)]
pub(crate) struct CompleteRequest<'a> {
    head: Head<'a>,
    head_len: usize,
    /// Its body; `None` if the handler must not see it.
    body: Option<&'a [u8]>,
    /// More input has arrived after it: a drain keeps the connection open for that.
    pub(crate) is_followed: bool,
    /// A `100` was not sent for its body, but the client may send it nevertheless.
    leaves_body: bool,
    /// Guards that it has passed.
    pub(crate) passed: GuardsPassed,
    /// True if it is the connection's last request; `None` if it wasn't counted yet.
    pub(crate) counted: Option<bool>,
}

impl<'a> CompleteRequest<'a> {
    pub(crate) fn new(head: Head<'a>, head_len: usize, body: Option<&'a [u8]>) -> Self {
        let (is_followed, leaves_body, passed, counted) = (false, false, GuardsPassed(0), None);
        Self { head, head_len, body, is_followed, leaves_body, passed, counted }
    }
}

/// A complete head, and the input after it.
#[derive(Clone, Copy)]
pub(crate) struct Arrived<'a> {
    pub(crate) head: Head<'a>,
    /// The head's bytes.
    pub(crate) bytes: &'a [u8],
    pub(crate) rest: &'a [u8],
}

impl Arrived<'_> {
    /// Returns the length of a body that has arrived as a whole; `None` if a part of it is missing.
    pub(crate) fn whole_body_len(&self) -> Option<usize> {
        match self.head.framing() {
            Framing::None => Some(0),
            Framing::Length(len) => usize::try_from(len).ok().filter(|&len| len <= self.rest.len()),
            Framing::Chunked | Framing::Open => None,
        }
    }
}

/// Parse and call.
impl<S: Service> WorkerState<S> {
    /// Processes input and responds to the requests in it; returns the bytes consumed. The rest is a partial
    /// head, or waits because a limit of the turn is reached.
    pub(crate) fn run(
        &mut self,
        parser: &mut HeadParser,
        token: Token,
        input: &[u8],
        driver: &dyn DriverView,
    ) -> usize {
        let mut consumed = 0;
        let mut responded = 0;
        while responded < REQUESTS_PER_TURN_MAX && self.output_bound().is_none() {
            let step = self.step(parser, token, &input[consumed..], driver);
            consumed += step.consumed;
            match step.result {
                StepResult::Starve | StepResult::Waits | StepResult::Passed => break,
                StepResult::Body => {}
                StepResult::Responded | StepResult::Refused => responded += 1,
            }
            if consumed == input.len() && step.result != StepResult::Body {
                break;
            }
        }
        consumed
    }

    /// Processes the next head or piece of a body. Not inlined into the loop, where the compiler would
    /// precompute field addresses and spill them.
    #[inline(never)]
    fn step(&mut self, parser: &mut HeadParser, token: Token, input: &[u8], driver: &dyn DriverView) -> Step {
        let conn = self.table.get(token);
        match conn.phase() {
            // Also without input: an empty body is complete as soon as its head is.
            Phase::Body => return self.receive_body(token, input, driver),
            Phase::Idle if !input.is_empty() => parser.reset(),
            Phase::Head if !input.is_empty() => self.swap_parser(parser, token),
            // A handler comes first; `keep_input` puts a stray line end before the input, and resumes.
            _ if conn.is_serving() => return Step::new(0, StepResult::Waits),
            // Input after the last request is discarded.
            _ => return Step::new(input.len(), StepResult::Waits),
        }
        match parser.parse(input) {
            Ok(Parsed::Complete { head_len }) => self.begin(parser, token, input, head_len, driver),
            Ok(Parsed::Partial) => self.keep_head(parser, token, input),
            Err(error) => self.begin_http2_or_refuse(parser, token, error, input),
        }
    }

    /// Swaps the worker's parser with that of the connection's partial head.
    #[inline(never)]
    fn swap_parser(&mut self, parser: &mut HeadParser, token: Token) {
        let conn = self.table.get(token);
        let mut busy = self.busy.take(token, &mut conn.busy);
        busy.swap_parser(parser, self.limits.head());
        self.busy.put(conn.busy, busy);
    }

    /// Keeps the parser of a partial head. A stray line end needs none.
    #[inline(never)]
    pub(crate) fn keep_head(&mut self, parser: &mut HeadParser, token: Token, input: &[u8]) -> Step {
        let conn = self.table.get(token);
        if is_stray(input) && conn.phase() == Phase::Idle && !conn.has(Flag::Fresh) {
            conn.keep_stray(input.len() == b"\r\n".len());
            return Step::new(input.len(), StepResult::Starve);
        }
        conn.begin_head();
        self.swap_parser(parser, token);
        parser.make_room();
        Step::new(0, StepResult::Starve)
    }

    /// Responds to a request whose head is complete, or begins to receive its body.
    #[inline(always)]
    fn begin(
        &mut self,
        parser: &mut HeadParser,
        token: Token,
        input: &[u8],
        head_len: usize,
        driver: &dyn DriverView,
    ) -> Step {
        let (bytes, rest) = input.split_at(head_len);
        let head = parser.head(bytes);
        if let Some(refusal) = self.refused_head(token, &head, driver) {
            return self.refuse_as(token, refusal, Source::Head(head));
        }
        let framing = head.framing();
        if framing == Framing::None {
            let is_followed = !rest.is_empty();
            let whole = CompleteRequest { is_followed, ..CompleteRequest::new(head, head_len, Some(&[])) };
            return self.respond(token, whole, driver);
        }
        let (arrived, mut passed) = (Arrived { head, bytes, rest }, GuardsPassed(0));
        if self.has_guards {
            match self.guard(token, arrived, passed, None, driver) {
                ControlFlow::Break(step) => return step,
                ControlFlow::Continue(all) => passed = all,
            }
        }
        match self.begin_with_body(token, arrived, passed, driver) {
            ControlFlow::Break(step) => step,
            ControlFlow::Continue((policy, is_awaited)) => {
                self.begin_body(parser, token, bytes, (&policy, passed), is_awaited)
            }
        }
    }

    /// Responds to a request with a body that has passed its guards. Continues if its body is to be received first: with the
    /// policy for that, and whether the client waits for a `100`.
    pub(crate) fn begin_with_body(
        &mut self,
        token: Token,
        arrived: Arrived<'_>,
        passed: GuardsPassed,
        driver: &dyn DriverView,
    ) -> ControlFlow<Step, (BodyPolicy, bool)> {
        let Arrived { head, bytes, rest } = arrived;
        let (framing, head_len) = (head.framing(), bytes.len());
        let policy = match self.policy_of(&head) {
            ControlFlow::Continue(policy) => policy,
            ControlFlow::Break(refusal) => {
                return ControlFlow::Break(self.refuse_as(token, refusal, Source::Head(head)));
            }
        };
        let is_passed = matches!(policy, BodyPolicy::Pass { .. }) && arrived.whole_body_len().is_some();
        if policy.is_read_by_handler() && !is_passed {
            let bytes_max = self.body_bytes_max(&policy);
            return ControlFlow::Break(self.begin_reading_handler(token, arrived, passed, bytes_max, driver));
        }
        let step = match (framing, &policy) {
            // The whole body is in the input: nothing is buffered.
            (Framing::Length(len), _) if len <= rest.len() as u64 => {
                let (body, behind) = rest.split_at(len as usize);
                let is_seen = body.is_empty() || !matches!(policy, BodyPolicy::Discard);
                let seen = is_seen.then_some(body);
                let is_followed = !behind.is_empty();
                let whole = CompleteRequest::new(head, head_len, seen);
                let whole = CompleteRequest { is_followed, passed, ..whole };
                let step = self.respond_with_body(token, whole, driver);
                Step::new(step.consumed + body.len(), step.result)
            }
            // Responds without the body, which may or may not follow: the connection closes afterwards.
            (_, BodyPolicy::Discard) if waits_for_continue(&head, rest) => {
                let whole = CompleteRequest::new(head, head_len, None);
                let whole = CompleteRequest { leaves_body: true, passed, ..whole };
                self.respond_with_body(token, whole, driver)
            }
            _ => return ControlFlow::Continue((policy, waits_for_continue(&head, rest))),
        };
        ControlFlow::Break(step)
    }

    /// Responds to a complete request.
    #[inline(always)]
    pub(crate) fn respond(
        &mut self,
        token: Token,
        whole: CompleteRequest<'_>,
        driver: &dyn DriverView,
    ) -> Step {
        let is_last =
            whole.counted.unwrap_or_else(|| self.count_served(token, whole.is_followed)) || whole.leaves_body;
        let CompleteRequest { head, head_len, .. } = whole;
        let request = Request::new(head, whole.body, driver, self.proxies.as_deref(), token);
        let request = request.at(GuardPosition::late(whole.passed));
        let facts = facts(&head, whole.is_followed, is_last);
        let outcome = self.responder.call(&self.service, &request, facts, &mut self.calls);
        self.calls.note_block(&head);
        if self.ledger.is_some() {
            self.note_whole(token, head, !whole.leaves_body, outcome.status());
        }
        self.conclude(token, outcome, facts, head, head_len)
    }

    /// Applies the response to a request whose head and bytes of the body were processed, or keeps its deferred handler.
    #[inline(always)]
    pub(crate) fn conclude(
        &mut self,
        token: Token,
        outcome: Outcome,
        facts: RequestFacts,
        head: Head<'_>,
        consumed: usize,
    ) -> Step {
        match outcome {
            Outcome::Responded(responded) => {
                let disposition = self.count(responded);
                self.end_request(token, disposition);
                Step::new(consumed, StepResult::Responded)
            }
            Outcome::Deferred(deferral) => self.defer_whole(token, deferral, facts, head, consumed),
        }
    }

    /// Keeps the path of requests with a body out of line.
    #[inline(never)]
    pub(crate) fn respond_with_body(
        &mut self,
        token: Token,
        whole: CompleteRequest<'_>,
        driver: &dyn DriverView,
    ) -> Step {
        self.respond(token, whole, driver)
    }

    /// Counts a request of a connection. Returns true if it is the last that the connection may send.
    #[inline]
    pub(crate) fn count_served(&mut self, token: Token, is_followed: bool) -> bool {
        self.served.may_end() && self.ends_connection(token, is_followed)
    }

    /// A connection of a removed listener ends with the last request that it has sent.
    #[inline(never)]
    fn ends_connection(&mut self, token: Token, is_followed: bool) -> bool {
        let is_last = self.served.is_last(token);
        if is_last {
            self.counters.hit_requests_per_connection.add(1);
        }
        is_last || self.leaving.is_marked(token) && !is_followed
    }

    /// Counts a response and reports its fault; returns the fate of the connection.
    #[inline(always)]
    pub(crate) fn count(&mut self, responded: Responded) -> Disposition {
        self.counters.requests.add(1);
        if responded.status >= 300 {
            self.counters.count_class(responded.status);
        }
        if let Some(fault) = responded.fault {
            self.faulty(*fault);
        }
        responded.disposition
    }

    /// Counts the limit that makes pipelined requests wait, if there is any.
    pub(crate) fn count_wait(&mut self, token: Token, rest: &[u8]) {
        if self.table.get(token).phase() != Phase::Idle || rest.is_empty() || is_stray(rest) {
            return;
        }
        self.output_bound().unwrap_or(&self.counters.hit_requests_per_turn).add(1);
    }

    /// Returns the output limit that is reached, if any: further requests wait until the output is sent.
    #[inline]
    pub(crate) fn output_bound(&self) -> Option<&Counter> {
        let out = &self.responder.out;
        if out.len() >= self.limits.output_bytes_max {
            return Some(&self.counters.hit_output_bytes);
        }
        if out.items().len() >= OUTPUT_ITEMS_MAX {
            return Some(&self.counters.hit_output_items);
        }
        let may_be = out.items().len() >= OUTPUT_FILES_MAX;
        (may_be && out.files() >= OUTPUT_FILES_MAX).then_some(&self.counters.hit_output_files)
    }

    /// Ends the current request of the connection with this disposition.
    #[inline(always)]
    pub(crate) fn end_request(&mut self, token: Token, disposition: Disposition) {
        self.table.get(token).end_request(disposition);
        if disposition == Disposition::HandOver {
            self.hand_over_later(token);
        }
    }
}

/// Returns true for (a part of) a line end after a body, which some old clients send (RFC 9112 section 2.2). The
/// connection stays idle and owns no buffer for it.
fn is_stray(input: &[u8]) -> bool {
    matches!(input, b"\r" | b"\r\n")
}

/// Extracts the facts of a request that decide the form of its response.
#[inline]
pub(crate) fn facts(head: &Head<'_>, is_followed: bool, is_last: bool) -> RequestFacts {
    RequestFacts {
        method: head.method(),
        version: head.version(),
        keep_alive: head.keep_alive(),
        is_followed,
        is_last,
    }
}
