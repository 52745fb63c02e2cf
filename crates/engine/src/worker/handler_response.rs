//! Responses of deferred handlers: the steps around them, their encoding, their end.

use std::ops::ControlFlow;
use std::rc::Rc;

use shearwater_http1::{ResponseContent, ResponseFraming};

use crate::deferred::calls::{Deferral, Deferred};
use crate::deferred::coding::move_encoded;
use crate::deferred::outbound::Progress;
use crate::deferred::shared::Shared;
use crate::exchange::Exchange;
use crate::exchange::body::BodyReader;
use crate::request::refusal::Refusal;
use crate::response::Response;
use crate::response::coder::StreamCoder;
use crate::response::draft::ResponseDraft;
use crate::response::facts::{Disposition, RequestFacts};
use crate::response::fault::Fault;
use crate::server::panics;
use crate::server::reports::named;
use crate::service::Service;
use crate::worker::request_loop::StepResult;
use crate::worker::state::WorkerState;

impl<S: Service> WorkerState<S> {
    /// Encodes what a handler has responded since. Returns the fate of the connection once the response is
    /// complete, or can't be completed.
    pub(crate) fn pump(&mut self, exchange: &mut Exchange) -> Option<Disposition> {
        if let Some(fault) = exchange.fault.take() {
            return self.abort(exchange, fault);
        }
        match exchange.shared().progress() {
            Progress::Nothing => {}
            Progress::Whole => return self.respond_whole(exchange, None),
            progress @ (Progress::Begun | Progress::Streams | Progress::Ended) => {
                if !exchange.has_begun() {
                    match self.respond_between_steps(exchange, None) {
                        ControlFlow::Continue(disposition) => exchange.begin_sending(disposition),
                        ControlFlow::Break(later) => return later,
                    }
                    // A coder that a step has chosen may have panicked at once.
                    if let Some(fault) = exchange.fault.take() {
                        return self.abort(exchange, fault);
                    }
                }
                // A coder that was chosen just now is still at work on what the handler has sent.
                let is_end = progress == Progress::Ended && exchange.shared().is_encoded();
                self.responder.append_stream(exchange.shared(), exchange.has_body, is_end);
                if is_end && exchange.shared().has_surplus() {
                    self.faulty(Fault::Built("a handler has sent more than it had announced".to_owned()));
                }
                // Without a body on the wire the response is complete after its head.
                if is_end || !exchange.has_body {
                    return exchange.disposition;
                }
            }
            Progress::Cut => {
                let why = exchange.shared().why_cut();
                return self.abort(exchange, Box::new(Fault::Built(why)));
            }
        }
        None
    }

    /// Truncates the response, or replaces it by a `500` if nothing was sent.
    pub(crate) fn abort(&mut self, exchange: &mut Exchange, fault: Box<Fault>) -> Option<Disposition> {
        if exchange.has_begun() {
            self.responder.append_stream(exchange.shared(), exchange.has_body, false);
            self.faulty(*fault);
            return Some(Disposition::Truncated);
        }
        self.respond_whole(exchange, Some(fault))
    }

    fn respond_whole(&mut self, exchange: &mut Exchange, fault: Option<Box<Fault>>) -> Option<Disposition> {
        match self.respond_between_steps(exchange, fault) {
            ControlFlow::Continue(disposition) => Some(disposition),
            ControlFlow::Break(later) => later,
        }
    }

    /// Has the steps around the handler change its response, and encodes that, or the head of a stream.
    ///
    /// Breaks if one of the steps has deferred the response: that step's handler has taken the place of the former one.
    fn respond_between_steps(
        &mut self,
        exchange: &mut Exchange,
        fault: Option<Box<Fault>>,
    ) -> ControlFlow<Option<Disposition>, Disposition> {
        let mut draft = exchange.shared().take_draft().unwrap_or_else(|| self.calls.spare_draft());
        let is_panic = matches!(fault.as_deref(), Some(Fault::Panic(_)));
        draft.fault = Fault::graver(fault, draft.fault.take());
        draft.settle();
        if exchange.shared().has_steps()
            && !is_panic
            && let Some(deferred) = self.run_steps(exchange.shared(), &mut draft)
        {
            self.calls.recycle_draft(draft);
            return ControlFlow::Break(self.defer_again(exchange, deferred));
        }
        if let Some(mut added) = exchange.added.take() {
            draft.add(&mut added);
            draft.settle();
            self.calls.recycle_draft(added);
        }
        let coder = draft.take_coder();
        let content = ResponseContent::of(exchange.facts.method, draft.status);
        if content.is_whole() && !exchange.shared().sends_stream() {
            draft.end_stream();
        }
        exchange.has_body = content.is_whole() && draft.framing().is_some() && draft.upgrade.is_none();
        if let Some((coder, framing)) = coder.zip(draft.framing()).filter(|_| exchange.has_body) {
            self.code(exchange, framing, coder);
        }
        // A whole response ends before the body does, and says `close`. Of a stream, `advance` decides at its end.
        let ends_unread = exchange.body.is_some() && draft.framing().is_none();
        let facts = RequestFacts { is_last: exchange.facts.is_last || ends_unread, ..exchange.facts };
        let responded = self.responder.respond_with(&mut draft, facts, None);
        self.calls.recycle_draft(draft);
        self.note_deferred(exchange, responded.status);
        ControlFlow::Continue(self.count(responded))
    }

    /// Has a coder encode a stream whose head is about to be sent.
    #[cold]
    fn code(&mut self, exchange: &mut Exchange, framing: ResponseFraming, coder: Box<dyn StreamCoder>) {
        let shared = Rc::clone(exchange.shared());
        shared.code(framing, coder);
        // The step was refused without room for it.
        let Ok(task) = self.calls.tasks.spawn(exchange.id.0, move_encoded(Rc::clone(&shared))) else {
            return;
        };
        shared.set_coder_task(task);
        self.poll_coder(exchange, task);
    }

    /// Runs the steps around a handler until one of them defers the response.
    #[cold]
    fn run_steps(&mut self, shared: &Rc<Shared>, draft: &mut ResponseDraft) -> Option<Deferred> {
        let mut number = 0;
        while let Some((step, key)) = shared.step(number) {
            number += 1;
            // Bytes that are queued must fit the head.
            let queued = draft.framing().filter(|_| shared.sends_stream());
            let request = shared.request(self.proxies.as_deref());
            let mut response = Response { calls: Some(&mut self.calls), ..Response::resume(&mut *draft) };
            let fault = match panics::catch(|| step.response(key, &request, &mut response)) {
                Err(mut panic) => {
                    panic.request = Some(named(&shared.head()));
                    Some(Fault::Panic(panic))
                }
                Ok(()) if queued.is_some() && response.is_replaced(queued) => {
                    let why = "a step around a handler has replaced the body of a response that is streamed";
                    Some(Fault::Built(why.to_owned()))
                }
                Ok(()) => None,
            };
            if let Some(fault) = fault {
                response.drop_deferral();
                if let Some(earlier) = draft.fault.replace(Box::new(fault)) {
                    self.faulty(*earlier);
                }
                return None;
            }
            match self.calls.deferral.take() {
                Some(Deferral::Deferred(mut deferred)) => {
                    shared.pass_steps(number, &deferred.shared);
                    deferred.added = self.calls.take_additions(draft);
                    return Some(deferred);
                }
                Some(Deferral::Full) => {
                    self.counters.hit_calls.add(1);
                    let (fault, tag, refusal) = (draft.fault.take(), draft.tag, Refusal::CallsFull);
                    let text = refusal.sentence() + "\n";
                    Response::new(draft).status(refusal.status()).text(&text).close().exchange_tag(tag);
                    draft.fault = fault;
                    return None;
                }
                None => draft.settle(),
            }
        }
        None
    }

    /// Continues with the handler of a step that has deferred the response. The rest of the request's body is discarded.
    #[cold]
    fn defer_again(&mut self, exchange: &mut Exchange, mut deferred: Deferred) -> Option<Disposition> {
        if exchange.shared().ends_with_client() {
            deferred.shared.end_with_client();
        }
        // Fields that were set after the first `defer` come last.
        if let Some(mut added) = exchange.added.take() {
            match &mut deferred.added {
                Some(of_step) => of_step.add(&mut added),
                none => *none = Some(added),
            }
        }
        self.change_handler(exchange, deferred);
        exchange.body.iter_mut().for_each(BodyReader::discard);
        if exchange.is_new {
            self.poll(exchange);
        }
        self.pump(exchange)
    }

    /// Ends the exchange of a complete response, or of one that can't be completed.
    pub(crate) fn end_response(&mut self, exchange: Box<Exchange>, disposition: Disposition) -> StepResult {
        let token = exchange.token;
        self.end_exchange(exchange);
        self.note_output(token, Some(disposition));
        self.end_request(token, disposition);
        StepResult::Responded
    }
}
