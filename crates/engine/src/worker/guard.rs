//! Guards of requests: run before the body is received, and again for requests that begin anew after a wait.

use std::ops::ControlFlow;

use shearwater_http1::{Framing, HeadParser};
use shearwater_io::Token;

use crate::deferred::calls::Deferral;
use crate::request::guards::{GuardPosition, GuardsPassed};
use crate::request::{DriverView, Request};
use crate::response::facts::{Disposition, RequestFacts};
use crate::response::responder::Outcome;
use crate::service::Service;
use crate::worker::request_loop::{Arrived, CompleteRequest, Step, StepResult, facts};
use crate::worker::state::WorkerState;

impl<S: Service> WorkerState<S> {
    /// Runs the guards of a request behind those that it has passed. Breaks with the step if it doesn't pass.
    ///
    /// `counted` is as in [`CompleteRequest`].
    #[inline(never)]
    pub(crate) fn guard(
        &mut self,
        token: Token,
        arrived: Arrived<'_>,
        passed: GuardsPassed,
        counted: Option<bool>,
        driver: &dyn DriverView,
    ) -> ControlFlow<Step, GuardsPassed> {
        let Arrived { head, bytes, rest } = arrived;
        let (body_len, is_alone) = (arrived.whole_body_len(), head.framing() == Framing::None);
        let request = Request::new(head, is_alone.then_some(&[]), driver, self.proxies.as_deref(), token);
        let request = request.at(GuardPosition { passed, ..GuardPosition::default() });
        let caught = match self.responder.guard(&self.service, &request, &mut self.calls) {
            Ok(Some(passed)) => return ControlFlow::Continue(passed),
            Ok(None) => Ok(()),
            Err(panic) => Err(panic),
        };
        let is_followed = body_len.is_some_and(|len| len < rest.len());
        // One that waits with its body is counted when it begins anew.
        let waits = self.calls.deferral.is_some();
        let is_last = counted.unwrap_or_else(|| !waits && self.count_served(token, is_followed));
        let facts = facts(&head, is_followed, is_last || body_len.is_none());
        let request = Request::new(head, None, driver, self.proxies.as_deref(), token);
        let outcome = self.responder.called(caught, &request, facts, &mut self.calls);
        if let Outcome::Deferred(Deferral::Deferred(_)) = outcome {
            // The body waits along with the request: a response would have to discard it first.
            let facts = RequestFacts { is_last: is_last || !is_alone, ..facts };
            return ControlFlow::Break(self.conclude(token, outcome, facts, head, bytes.len()));
        }
        if self.ledger.is_some() {
            self.note_whole(token, head, body_len.is_some(), outcome.status());
        }
        let consumed = bytes.len() + body_len.unwrap_or(0);
        ControlFlow::Break(self.conclude(token, outcome, facts, head, consumed))
    }

    /// Begins a request anew that has passed the guard it waited for. Returns the consumed bytes of `rest`, the input after
    /// its head.
    #[cold]
    pub(crate) fn begin_anew(
        &mut self,
        parser: &mut HeadParser,
        token: Token,
        rest: &[u8],
        driver: &dyn DriverView,
    ) -> usize {
        let Some(exchange) = self.take_exchange(token) else { return 0 };
        let (shared, passed) = (exchange.shared().clone(), exchange.passed_guards().unwrap_or_default());
        let is_alone = shared.head().framing() == Framing::None;
        // Only a response to a request without a body may have been the connection's last.
        let counted = is_alone.then_some(exchange.facts.is_last);
        self.end_exchange(exchange);
        self.end_request(token, Disposition::Keep);
        parser.adopt(&shared.head());
        let bytes = shared.head().raw().to_vec();
        let arrived = Arrived { head: parser.head(&bytes), bytes: &bytes, rest };
        let step = match self.guard(token, arrived, passed, counted, driver) {
            ControlFlow::Break(step) => step,
            ControlFlow::Continue(passed) if is_alone => {
                let mut whole = CompleteRequest::new(arrived.head, bytes.len(), Some(&[]));
                (whole.is_followed, whole.passed, whole.counted) = (!rest.is_empty(), passed, counted);
                self.respond_with_body(token, whole, driver)
            }
            ControlFlow::Continue(passed) => match self.begin_with_body(token, arrived, passed, driver) {
                ControlFlow::Break(step) => step,
                ControlFlow::Continue((policy, is_awaited)) => {
                    self.begin_body(parser, token, &bytes, (&policy, passed), is_awaited)
                }
            },
        };
        let consumed = step.consumed.saturating_sub(bytes.len());
        match step.result {
            StepResult::Body | StepResult::Responded => {
                consumed + self.run(parser, token, &rest[consumed..], driver)
            }
            _ => consumed,
        }
    }
}
