//! Verb 3, dispatch: parses input by `http1` and passes complete requests to the service, in order.

use shearwater_http1::{Expectation, Framing, Head, Method, Parsed, Target};
use shearwater_io::Token;

use crate::conn::{Flag, Phase};
use crate::control::Notice;
use crate::counters::Counter;
use crate::limits::{OUTPUT_FILES_MAX, OUTPUT_ITEMS_MAX, REQUESTS_PER_TURN_MAX};
use crate::panics::Panic;
use crate::refuse::Refusal;
use crate::reports::named;
use crate::request::{Request, Turn};
use crate::respond::{Disposition, Fault, Outcome, RequestFacts, Responded};
use crate::service::{BodyPolicy, Service};
use crate::worker_state::WorkerState;

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
    /// A deferred handler is at work; further input must wait.
    Waits,
}

impl Step {
    pub(crate) const fn new(consumed: usize, result: StepResult) -> Self {
        Self { consumed, result }
    }
}

/// A request whose head and body are complete in the input.
#[derive(Clone, Copy)]
struct CompleteRequest<'a> {
    head: &'a [u8],
    /// Its body; `None` if the handler must not see it.
    body: Option<&'a [u8]>,
    is_followed: bool,
    /// A `100` was not sent for its body, but the client may send it nevertheless.
    leaves_body: bool,
}

impl<S: Service> WorkerState<S> {
    /// Processes input and responds to the requests in it; returns the bytes consumed. The rest is a partial
    /// head, or waits because a limit of the turn is reached.
    pub(crate) fn consume(&mut self, token: Token, input: &[u8], turn: &dyn Turn) -> usize {
        let mut consumed = 0;
        let mut responded = 0;
        while responded < REQUESTS_PER_TURN_MAX && self.output_bound().is_none() {
            let step = self.step(token, &input[consumed..], turn);
            consumed += step.consumed;
            match step.result {
                StepResult::Starve | StepResult::Waits => break,
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
    fn step(&mut self, token: Token, input: &[u8], turn: &dyn Turn) -> Step {
        match self.table.get(token).phase {
            // Also without input: an empty body is complete as soon as its head is.
            Phase::Body => self.take_body(token, input, turn),
            Phase::ReadingBody | Phase::Streaming => self.feed(token, input),
            Phase::First | Phase::Idle | Phase::Head if !input.is_empty() => {
                self.take_head(token, input, turn)
            }
            // Input after the last request is discarded.
            Phase::LastResponse | Phase::Linger | Phase::HandedOver | Phase::Closing | Phase::Free => {
                Step::new(input.len(), StepResult::Waits)
            }
            // `keep_input` puts the line end before the input, and resumes.
            Phase::StrayCr | Phase::StrayLine => Step::new(0, StepResult::Waits),
            Phase::First | Phase::Idle | Phase::Head | Phase::Handling => Step::new(0, StepResult::Waits),
        }
    }

    /// Parses the next head.
    #[inline(always)]
    fn take_head(&mut self, token: Token, input: &[u8], turn: &dyn Turn) -> Step {
        let conn = self.table.get(token);
        if conn.phase == Phase::Head {
            let mut block = self.blocks.take(token, &mut conn.block);
            std::mem::swap(&mut self.parser, &mut block.parser);
            self.blocks.put(conn.block, block);
        } else {
            self.parser.reset();
        }
        match self.parser.parse(input) {
            Ok(Parsed::Complete { head_len }) => self.take_request(token, input, head_len, turn),
            Ok(Parsed::Partial) if is_stray(input) && self.table.get(token).phase == Phase::Idle => {
                let is_whole = input.len() == b"\r\n".len();
                self.table.get(token).phase = if is_whole { Phase::StrayLine } else { Phase::StrayCr };
                Step::new(input.len(), StepResult::Starve)
            }
            Ok(Parsed::Partial) => self.keep_head(token, input),
            Err(reject) => {
                self.mark_head(token, input);
                self.refuse(token, Refusal::Rejected(reject))
            }
        }
    }

    /// Marks a `HEAD` whose head isn't complete, in case it is rejected.
    fn mark_head(&mut self, token: Token, input: &[u8]) {
        if Method::is_head_begun(input) {
            self.table.get(token).set(Flag::HeadOnly);
        }
    }

    /// Moves the parser of an incomplete head into the block.
    fn keep_head(&mut self, token: Token, input: &[u8]) -> Step {
        self.mark_head(token, input);
        let conn = self.table.get(token);
        let mut block = self.blocks.take(token, &mut conn.block);
        std::mem::swap(&mut self.parser, &mut block.parser);
        self.parser.make_room();
        self.blocks.put(conn.block, block);
        if conn.phase != Phase::Head {
            conn.phase = Phase::Head;
            self.head_began(token);
        }
        Step::new(0, StepResult::Starve)
    }

    /// Responds to a request whose head is complete, or begins to receive its body.
    #[inline(always)]
    fn take_request(&mut self, token: Token, input: &[u8], head_len: usize, turn: &dyn Turn) -> Step {
        let (bytes, rest) = input.split_at(head_len);
        let head = self.parser.head(bytes);
        if head.method() == Method::Head {
            self.table.get(token).set(Flag::HeadOnly);
        }
        if !head.is_origin_form()
            && let Some(refusal) = self.refused_target(&head)
        {
            return self.refuse(token, refusal);
        }
        if head.expectation() == Expectation::Unknown {
            return self.refuse(token, Refusal::Expectation);
        }
        let framing = head.framing();
        if framing == Framing::None {
            let is_followed = !rest.is_empty();
            let whole = CompleteRequest { head: bytes, body: Some(&[]), is_followed, leaves_body: false };
            return self.respond_whole(token, whole, turn);
        }
        let policy = match crate::panics::catch(|| self.service.body_policy(&head)) {
            Ok(policy) => policy,
            Err(panic) => {
                return self.fail(token, panic, named(&self.parser.head(bytes)));
            }
        };
        if matches!(policy, BodyPolicy::Call) {
            return self.begin_pulled_body(token, bytes, rest, turn);
        }
        match (framing, &policy) {
            (Framing::Length(len), _) if len > self.body_bytes_max(&policy) => {
                self.refuse(token, Refusal::BodyTooLarge)
            }
            // The whole body is in the input: nothing is buffered.
            (Framing::Length(len), BodyPolicy::Discard | BodyPolicy::Buffer { .. })
                if len <= rest.len() as u64 =>
            {
                let (body, behind) = rest.split_at(len as usize);
                let is_seen = body.is_empty() || !matches!(policy, BodyPolicy::Discard);
                let seen = is_seen.then_some(body);
                let is_followed = !behind.is_empty();
                let whole = CompleteRequest { head: bytes, body: seen, is_followed, leaves_body: false };
                let step = self.respond_with_body(token, whole, turn);
                Step::new(step.consumed + body.len(), step.result)
            }
            // Responds without the body, which may or may not follow: the connection closes afterwards.
            (_, BodyPolicy::Discard) if waits_for_continue(&head, rest) => {
                let whole =
                    CompleteRequest { head: bytes, body: None, is_followed: false, leaves_body: true };
                self.respond_with_body(token, whole, turn)
            }
            _ => self.begin_body(token, bytes, policy, waits_for_continue(&head, rest)),
        }
    }

    /// Returns the refusal of a target in a rare form, if it is rejected.
    #[cold]
    fn refused_target(&self, head: &Head<'_>) -> Option<Refusal> {
        match head.target() {
            Target::Authority { .. } => Some(Refusal::Connect),
            Target::Absolute { scheme, .. } => {
                let is_served = scheme.eq_ignore_ascii_case("http")
                    || self.trusted_gateway && scheme.eq_ignore_ascii_case("https");
                (!is_served).then_some(Refusal::Misdirected)
            }
            Target::Origin { .. } | Target::Asterisk => None,
        }
    }

    /// Responds to the request in the worker's own parser.
    #[inline(always)]
    fn respond_whole(&mut self, token: Token, whole: CompleteRequest<'_>, turn: &dyn Turn) -> Step {
        let is_last = self.is_last(token) || whole.leaves_body;
        let head = self.parser.head(whole.head);
        let request = Request::new(head, whole.body, turn, token);
        let service = &self.service;
        let facts = facts(&head, whole.is_followed, is_last);
        let outcome = self.responder.respond(
            facts,
            || named(&head),
            &mut self.calls,
            |response| service.respond(&request, response),
        );
        match outcome {
            Outcome::Responded(responded) => self.responded(token, responded),
            Outcome::Deferred(deferral) => return self.defer(token, whole.head, facts, deferral),
        }
        Step::new(whole.head.len(), StepResult::Responded)
    }

    /// Keeps the path of requests with a body out of line.
    #[inline(never)]
    fn respond_with_body(&mut self, token: Token, whole: CompleteRequest<'_>, turn: &dyn Turn) -> Step {
        self.respond_whole(token, whole, turn)
    }

    /// Returns true if the current request is the last that its connection may send.
    #[inline]
    pub(crate) fn is_last(&mut self, token: Token) -> bool {
        let is_last = self.served.is_last(token);
        if is_last {
            self.counters.hit_requests_per_connection.add(1);
        }
        is_last
    }

    /// Counts a response and applies its disposition to the connection.
    #[inline(always)]
    pub(crate) fn responded(&mut self, token: Token, responded: Responded) {
        let disposition = responded.disposition;
        self.count(responded);
        self.set_disposition(token, disposition);
    }

    /// Counts a response and reports its fault.
    #[inline(always)]
    pub(crate) fn count(&mut self, responded: Responded) {
        self.counters.requests.add(1);
        if responded.status >= 300 {
            self.counters.count_class(responded.status);
        }
        if let Some(fault) = responded.fault {
            self.faulty(*fault);
        }
    }

    /// Counts and reports a handler's fault.
    #[cold]
    pub(crate) fn faulty(&mut self, fault: Fault) {
        match fault {
            Fault::Panic(_) => self.counters.handler_panics.add(1),
            Fault::Built(_) => self.counters.handler_errors.add(1),
            Fault::File { .. } => {}
        }
        self.report(fault);
    }

    /// Rejects the current request with the connection's last response.
    pub(crate) fn refuse(&mut self, token: Token, refusal: Refusal) -> Step {
        if self.drop_call(token) {
            return self.cut_off(token, refusal);
        }
        self.counters.requests_refused.add(1);
        self.counters.count_class(refusal.status());
        if let Some(limit) = refusal.limit(&self.counters) {
            limit.add(1);
        }
        self.responder.refuse(
            refusal.status(),
            &refusal.sentence(),
            self.table.get(token).has(Flag::HeadOnly),
        );
        self.set_disposition(token, Disposition::Linger);
        Step::new(0, StepResult::Refused)
    }

    /// Truncates a response in progress, because its request can't be rejected any more.
    fn cut_off(&mut self, token: Token, refusal: Refusal) -> Step {
        if let Some(limit) = refusal.limit(&self.counters) {
            limit.add(1);
        }
        self.set_disposition(token, Disposition::Close);
        Step::new(0, StepResult::Refused)
    }

    /// Rejects a partial head if the buffers are full and no larger connection can be evicted.
    pub(crate) fn refuse_if_full(&mut self, token: Token) {
        if self.table.get(token).phase == Phase::Head && !self.make_room(token) {
            self.refuse_full(token);
        }
    }

    /// Counts the limit that makes pipelined requests wait, if there is any.
    pub(crate) fn count_wait(&mut self, token: Token, rest: &[u8]) {
        if self.table.get(token).phase != Phase::Idle || rest.is_empty() || is_stray(rest) {
            return;
        }
        self.output_bound().unwrap_or(&self.counters.hit_requests_per_turn).add(1);
    }

    /// Returns the output limit that is reached, if any: further requests wait until the output is sent.
    #[inline]
    fn output_bound(&self) -> Option<&Counter> {
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

    /// Responds with a `500` after a panic outside of the response handler.
    pub(crate) fn fail(&mut self, token: Token, mut panic: Box<Panic>, request: String) -> Step {
        panic.request = Some(request);
        self.faulty(Fault::Panic(panic));
        self.counters.requests_refused.add(1);
        self.counters.count_class(500);
        self.responder.refuse(500, "Internal Server Error", self.table.get(token).has(Flag::HeadOnly));
        self.set_disposition(token, Disposition::Linger);
        Step::new(0, StepResult::Refused)
    }

    /// Reports the worker's first rejected body that is longer than the limit.
    pub(crate) fn report_body_limit(&mut self) {
        if !self.is_body_limit_reported {
            self.is_body_limit_reported = true;
            let (worker, bytes_max) = (self.worker, self.limits.body_bytes_max);
            self.notify(Notice::BodyTooLarge { worker, bytes_max });
        }
    }

    /// Applies a disposition to the connection.
    #[inline(always)]
    pub(crate) fn set_disposition(&mut self, token: Token, disposition: Disposition) {
        let conn = self.table.get(token);
        conn.unset(Flag::FirstHead);
        conn.unset(Flag::HeadOnly);
        conn.phase = match disposition {
            Disposition::Keep => Phase::Idle,
            Disposition::Close | Disposition::Linger | Disposition::HandOver => Phase::LastResponse,
        };
        match disposition {
            Disposition::Keep | Disposition::Close => {}
            Disposition::Linger => conn.set(Flag::Linger),
            Disposition::HandOver => self.hand_over_later(token),
        }
    }
}

/// Returns true for (a part of) the line end that some old clients send after a body (RFC 9112 section 2.2):
/// the connection stays idle and owns no buffer for it.
fn is_stray(input: &[u8]) -> bool {
    matches!(input, b"\r" | b"\r\n")
}

/// Returns true if the client waits for a `100` before it sends any of its body (RFC 9110 section 10.1.1).
pub(crate) fn waits_for_continue(head: &Head<'_>, rest: &[u8]) -> bool {
    rest.is_empty()
        && head.expectation() == Expectation::Continue
        && !matches!(head.framing(), Framing::None | Framing::Length(0))
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
