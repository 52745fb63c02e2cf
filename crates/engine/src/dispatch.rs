//! Verb 3, dispatch: input goes through `http1`, complete requests go to the app, in order.

use shearwater_http1::{Expectation, Framing, Head, Method, Parsed, Target};
use shearwater_io::Token;

use crate::app::{App, BodyPolicy};
use crate::conn::{Flag, Phase};
use crate::control::Notice;
use crate::counters::Counter;
use crate::limits::{OUTPUT_FILES_MAX, OUTPUT_ITEMS_MAX, REQUESTS_PER_TURN_MAX};
use crate::panics::Panic;
use crate::refuse::Refusal;
use crate::reports::named;
use crate::request::{Request, Turn};
use crate::respond::{After, Answered, Asked, Fault, Outcome};
use crate::service::Service;

/// How far one step has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Bytes of the input that are done with.
    pub(crate) consumed: usize,
    pub(crate) then: Then,
}

/// What a step has led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// More input is needed.
    Starve,
    /// A head is done, its body is next.
    Body,
    /// A request is answered.
    Answered,
    /// A request is refused; nothing more is read.
    Refused,
    /// Its handler is at work on it: what comes behind it has to wait.
    Waits,
}

impl Step {
    pub(crate) const fn new(consumed: usize, then: Then) -> Self {
        Self { consumed, then }
    }
}

/// A request that is there as a whole.
#[derive(Clone, Copy)]
struct Whole<'a> {
    head: &'a [u8],
    /// `None` if there is a body that the handler is not to see.
    body: Option<&'a [u8]>,
    is_followed: bool,
    /// No `100` was sent for its body, which the client may send nevertheless.
    leaves_body: bool,
}

impl<A: App> Service<A> {
    /// Feeds input to a connection and answers what it completes; gives the number of bytes that are done with. The
    /// rest belongs to an unfinished head, or has to wait because a bound of the turn is reached.
    pub(crate) fn consume(&mut self, token: Token, input: &[u8], turn: &dyn Turn) -> usize {
        let mut consumed = 0;
        let mut answered = 0;
        while answered < REQUESTS_PER_TURN_MAX && self.output_bound().is_none() {
            let step = self.step(token, &input[consumed..], turn);
            consumed += step.consumed;
            match step.then {
                Then::Starve | Then::Waits => break,
                Then::Body => {}
                Then::Answered | Then::Refused => answered += 1,
            }
            if consumed == input.len() && step.then != Then::Body {
                break;
            }
        }
        consumed
    }

    /// One step of a connection. Not inlined into the loop, which would work out beforehand, and keep in memory, where everything lies.
    #[inline(never)]
    fn step(&mut self, token: Token, input: &[u8], turn: &dyn Turn) -> Step {
        match self.table.get(token).phase {
            // Also where nothing is left: a body of no bytes is complete as soon as its head is.
            Phase::Body => self.take_body(token, input, turn),
            Phase::Taking | Phase::Exchanging => self.feed(token, input),
            Phase::First | Phase::Idle | Phase::Head if !input.is_empty() => {
                self.take_head(token, input, turn)
            }
            // Behind the last request nothing is looked at.
            Phase::Last | Phase::Linger | Phase::HandedOver | Phase::Closing | Phase::Free => {
                Step::new(input.len(), Then::Waits)
            }
            // `keep_input` puts the line end before the input, and resumes.
            Phase::StrayCr | Phase::StrayLine => Step::new(0, Then::Waits),
            Phase::First | Phase::Idle | Phase::Head | Phase::Handling => Step::new(0, Then::Waits),
        }
    }

    /// The next head: `input` starts with it.
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
                Step::new(input.len(), Then::Starve)
            }
            Ok(Parsed::Partial) => self.keep_head(token, input),
            Err(reject) => {
                self.mark_head(token, input);
                self.refuse(token, Refusal::Rejected(reject))
            }
        }
    }

    /// Marks a `HEAD` whose head isn't complete, for the case that it is refused.
    fn mark_head(&mut self, token: Token, input: &[u8]) {
        if Method::is_head_begun(input) {
            self.table.get(token).set(Flag::HeadOnly);
        }
    }

    /// The head isn't complete: its parser waits for the rest of it in the block.
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
        Step::new(0, Then::Starve)
    }

    /// A complete head: answers it, or turns to its body.
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
            let whole = Whole { head: bytes, body: Some(&[]), is_followed, leaves_body: false };
            return self.answer_whole(token, whole, turn);
        }
        let policy = match crate::panics::catch(|| self.app.body_policy(&head)) {
            Ok(policy) => policy,
            Err(panic) => {
                let request = named(&self.parser.head(bytes));
                return self.fail(token, panic, Some(request));
            }
        };
        if matches!(policy, BodyPolicy::Call) {
            return self.begin_taking(token, bytes, rest, turn);
        }
        match (framing, &policy) {
            (Framing::Length(len), _) if len > self.body_bytes_max(&policy) => {
                self.refuse(token, Refusal::BodyTooLarge)
            }
            // The body is here as a whole: no need to keep anything.
            (Framing::Length(len), BodyPolicy::Discard | BodyPolicy::Buffer { .. })
                if len <= rest.len() as u64 =>
            {
                let (body, behind) = rest.split_at(len as usize);
                let is_seen = body.is_empty() || !matches!(policy, BodyPolicy::Discard);
                let seen = is_seen.then_some(body);
                let is_followed = !behind.is_empty();
                let whole = Whole { head: bytes, body: seen, is_followed, leaves_body: false };
                let step = self.answer_with_body(token, whole, turn);
                Step::new(step.consumed + body.len(), step.then)
            }
            // The head alone decides the response. It is the connection's last: the body may or may not come.
            (_, BodyPolicy::Discard) if waits_for_continue(&head, rest) => {
                let whole = Whole { head: bytes, body: None, is_followed: false, leaves_body: true };
                self.answer_with_body(token, whole, turn)
            }
            _ => self.begin_body(token, bytes, policy, waits_for_continue(&head, rest)),
        }
    }

    /// Returns the refusal of a target in a rarer form, if it is refused.
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

    /// Answers the request whose head the worker's own parser holds.
    #[inline(always)]
    fn answer_whole(&mut self, token: Token, whole: Whole<'_>, turn: &dyn Turn) -> Step {
        let is_last = self.is_last(token) || whole.leaves_body;
        let head = self.parser.head(whole.head);
        let request = Request::new(head, whole.body, turn, token);
        let app = &self.app;
        let asked = asked(&head, whole.is_followed, is_last);
        let outcome = self.responder.answer(
            asked,
            || named(&head),
            &mut self.calls,
            |response| app.respond(&request, response),
        );
        match outcome {
            Outcome::Answered(answered) => self.answered(token, answered),
            Outcome::Instead(instead) => return self.do_instead(token, whole.head, asked, instead),
        }
        Step::new(whole.head.len(), Then::Answered)
    }

    /// Likewise, out of the way of those without a body.
    #[inline(never)]
    fn answer_with_body(&mut self, token: Token, whole: Whole<'_>, turn: &dyn Turn) -> Step {
        self.answer_whole(token, whole, turn)
    }

    /// Whether the request at hand is the last that its connection may send.
    #[inline]
    pub(crate) fn is_last(&mut self, token: Token) -> bool {
        let is_last = self.served.is_last(token);
        if is_last {
            self.counters.hit_requests_per_connection.add(1);
        }
        is_last
    }

    /// Books an answer: what it says of the connection, and of the handler.
    #[inline(always)]
    pub(crate) fn answered(&mut self, token: Token, answered: Answered) {
        let after = answered.after;
        self.count(answered);
        self.set_after(token, after);
    }

    /// Counts an answer.
    #[inline(always)]
    pub(crate) fn count(&mut self, answered: Answered) {
        self.counters.requests.add(1);
        if answered.status >= 300 {
            self.counters.count_class(answered.status);
        }
        if let Some(fault) = answered.fault {
            self.faulty(*fault);
        }
    }

    /// A handler did something wrong.
    #[cold]
    pub(crate) fn faulty(&mut self, fault: Fault) {
        match fault {
            Fault::Panic(_) => self.counters.handler_panics.add(1),
            Fault::Built(_) => self.counters.handler_errors.add(1),
            Fault::File { .. } => {}
        }
        self.report(fault);
    }

    /// Refuses the request at hand: the last thing that this connection is told.
    pub(crate) fn refuse(&mut self, token: Token, refusal: Refusal) -> Step {
        if self.give_up_call(token) {
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
        self.set_after(token, After::Linger);
        Step::new(0, Then::Refused)
    }

    /// A request can't be refused any more whose answer is on its way: it ends here, short.
    fn cut_off(&mut self, token: Token, refusal: Refusal) -> Step {
        if let Some(limit) = refusal.limit(&self.counters) {
            limit.add(1);
        }
        self.set_after(token, After::Close);
        Step::new(0, Then::Refused)
    }

    /// Refuses an unfinished head if the buffers are full and no larger connection can be evicted.
    pub(crate) fn refuse_if_full(&mut self, token: Token) {
        if self.table.get(token).phase == Phase::Head && !self.make_room(token) {
            self.refuse_full(token);
        }
    }

    /// Some input waits: counts the bound that made it wait, if it was one and not a part of a head.
    pub(crate) fn put_off(&mut self, token: Token, rest: &[u8]) {
        if self.table.get(token).phase != Phase::Idle || rest.is_empty() || is_stray(rest) {
            return;
        }
        self.output_bound().unwrap_or(&self.counters.hit_requests_per_turn).add(1);
    }

    /// The bound that the turn's output has reached, if any: further requests wait until it is sent.
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

    /// A handler panicked before there was a request to answer.
    pub(crate) fn fail(&mut self, token: Token, mut panic: Box<Panic>, request: Option<String>) -> Step {
        panic.request = request;
        self.faulty(Fault::Panic(panic));
        self.counters.requests_refused.add(1);
        self.counters.count_class(500);
        self.responder.refuse(500, "Internal Server Error", self.table.get(token).has(Flag::HeadOnly));
        self.set_after(token, After::Linger);
        Step::new(0, Then::Refused)
    }

    /// Reports the first body of this worker that a handler would take and that is longer than the limit.
    pub(crate) fn report_body_limit(&mut self) {
        if !self.told_body_limit {
            self.told_body_limit = true;
            let (worker, bytes_max) = (self.worker, self.limits.body_bytes_max);
            self.tell(Notice::BodyTooLarge { worker, bytes_max });
        }
    }

    /// Sets how the connection goes on.
    #[inline(always)]
    pub(crate) fn set_after(&mut self, token: Token, after: After) {
        let conn = self.table.get(token);
        conn.unset(Flag::FirstHead);
        conn.unset(Flag::HeadOnly);
        conn.phase = match after {
            After::Keep => Phase::Idle,
            After::Close | After::Linger | After::HandOver => Phase::Last,
        };
        match after {
            After::Keep | After::Close => {}
            After::Linger => conn.set(Flag::Linger),
            After::HandOver => self.hand_over_later(token),
        }
    }
}

/// Whether it is (a part of) the line end that some old clients send behind a body, and no head yet (RFC 9112 section
/// 2.2): the connection stays idle, and owns no buffer for it.
fn is_stray(input: &[u8]) -> bool {
    matches!(input, b"\r" | b"\r\n")
}

/// Returns true if the client waits for a `100` before it sends any of its body (RFC 9110 section 10.1.1).
pub(crate) fn waits_for_continue(head: &Head<'_>, rest: &[u8]) -> bool {
    rest.is_empty()
        && head.expectation() == Expectation::Continue
        && !matches!(head.framing(), Framing::None | Framing::Length(0))
}

/// What a request says of its answer.
#[inline]
pub(crate) fn asked(head: &Head<'_>, is_followed: bool, is_last: bool) -> Asked {
    Asked {
        method: head.method(),
        version: head.version(),
        keep_alive: head.keep_alive(),
        is_followed,
        is_last,
    }
}
