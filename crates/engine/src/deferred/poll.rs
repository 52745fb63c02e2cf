//! Polls deferred handlers and moves their output into the turn's output.

use std::ops::ControlFlow;
use std::rc::Rc;

use shearwater_http1::ResponseContent;
use shearwater_io::{Driver, Token};
use shearwater_tasks::{Polled, TaskId};

use crate::deferred::calls::Deferred;
use crate::deferred::deferral::Deferral;
use crate::deferred::exchange::{Exchange, Progress};
use crate::memory::blocks::Destination;
use crate::request::refusal::Refusal;
use crate::response::responder::{Disposition, Fault, RequestFacts};
use crate::response::{Response, ResponseDraft};
use crate::server::panics;
use crate::server::reports::named;
use crate::service::Service;
use crate::worker::Worker;
use crate::worker_state::WorkerState;

/// A deferred request in progress.
pub(crate) struct PendingCall {
    pub(crate) exchange: Rc<Exchange>,
    pub(crate) task: TaskId,
    pub(crate) facts: RequestFacts,
    /// Its body is still being received.
    pub(crate) is_reading_body: bool,
    /// The client waits for a `100` before it sends the body.
    pub(crate) owes_continue: bool,
    /// The handler has not been polled yet.
    pub(crate) is_new: bool,
    /// Disposition of the connection, once the head of a stream is encoded.
    pub(crate) disposition: Option<Disposition>,
    /// More of its body follows the head.
    has_body: bool,
    /// Fault that ended the handler before its response was complete.
    fault: Option<Box<Fault>>,
    /// Fields and settings that the deferring response got afterwards.
    added: Option<Box<ResponseDraft>>,
}

impl PendingCall {
    pub(crate) fn new(deferred: Deferred, facts: RequestFacts) -> Self {
        let Deferred { exchange, task, is_polled, added } = deferred;
        Self {
            exchange,
            task,
            facts,
            is_reading_body: false,
            owes_continue: false,
            is_new: !is_polled,
            disposition: None,
            has_body: true,
            fault: None,
            added,
        }
    }
}

impl<S: Service> WorkerState<S> {
    /// Polls the handler.
    pub(crate) fn poll(&mut self, pending: &mut PendingCall) {
        pending.is_new = false;
        let tasks = &mut self.calls.tasks;
        match panics::catch(|| tasks.poll(pending.task)) {
            Err(mut panic) => {
                panic.request = Some(named(&pending.exchange.head()));
                pending.fault = Some(Box::new(Fault::Panic(panic)));
            }
            Ok(Polled::Ready) if !pending.exchange.is_over() => {
                let why = "a handler has ended without dropping its call";
                pending.fault = Some(Box::new(Fault::Built(why.to_owned())));
            }
            Ok(Polled::Ready | Polled::Pending | Polled::Gone) => {}
        }
    }

    /// Moves a handler's output into the turn's output. Returns the fate of the connection once the response is
    /// complete, or can't be completed.
    pub(crate) fn pump(&mut self, pending: &mut PendingCall) -> Option<Disposition> {
        if let Some(fault) = pending.fault.take() {
            return self.abort(pending, fault);
        }
        match pending.exchange.progress() {
            Progress::Nothing => {}
            Progress::Whole => return self.respond_whole(pending, None),
            progress @ (Progress::Begun | Progress::Streams | Progress::Ended) => {
                if pending.disposition.is_none() {
                    match self.respond_between_steps(pending, None) {
                        ControlFlow::Continue(disposition) => pending.disposition = Some(disposition),
                        ControlFlow::Break(later) => return later,
                    }
                }
                let is_end = progress == Progress::Ended;
                pending.exchange.take_stream(self.responder.out.bytes_mut(), pending.has_body, is_end);
                if is_end && pending.exchange.has_surplus() {
                    self.faulty(Fault::Built("a handler has sent more than it had announced".to_owned()));
                }
                // Without a body on the wire the response is complete after its head.
                if is_end || !pending.has_body {
                    return pending.disposition;
                }
            }
            Progress::Cut => {
                let why = pending.exchange.why_cut();
                return self.abort(pending, Box::new(Fault::Built(why)));
            }
        }
        None
    }

    /// Truncates the response, or replaces it by a `500` if nothing was sent.
    pub(crate) fn abort(&mut self, pending: &mut PendingCall, fault: Box<Fault>) -> Option<Disposition> {
        if pending.disposition.is_some() {
            pending.exchange.take_stream(self.responder.out.bytes_mut(), pending.has_body, false);
            self.faulty(*fault);
            return Some(Disposition::Truncated);
        }
        self.respond_whole(pending, Some(fault))
    }

    fn respond_whole(&mut self, pending: &mut PendingCall, fault: Option<Box<Fault>>) -> Option<Disposition> {
        match self.respond_between_steps(pending, fault) {
            ControlFlow::Continue(disposition) => Some(disposition),
            ControlFlow::Break(later) => later,
        }
    }

    /// Has the steps around the handler change its response, and encodes that, or the head of a stream.
    ///
    /// Breaks if one of the steps has deferred the response: `pending` is now what that waits for.
    fn respond_between_steps(
        &mut self,
        pending: &mut PendingCall,
        fault: Option<Box<Fault>>,
    ) -> ControlFlow<Option<Disposition>, Disposition> {
        let mut draft = pending.exchange.take_draft().unwrap_or_else(|| self.calls.spare_draft());
        let is_panic = matches!(fault.as_deref(), Some(Fault::Panic(_)));
        draft.fault = Fault::graver(fault, draft.fault.take());
        draft.settle();
        if pending.exchange.has_steps()
            && !is_panic
            && let Some(deferred) = self.run_steps(&pending.exchange, &mut draft)
        {
            self.calls.recycle_draft(draft);
            return ControlFlow::Break(self.defer_again(pending, deferred));
        }
        if let Some(mut added) = pending.added.take() {
            draft.add(&mut added);
            draft.settle();
            self.calls.recycle_draft(added);
        }
        let content = ResponseContent::of(pending.facts.method, draft.status);
        if content.is_whole() && !pending.exchange.sends_stream() {
            draft.end_stream();
        }
        pending.has_body = content.is_whole() && draft.framing().is_some() && draft.deferral.is_none();
        // The next request can't be found after an unread body.
        let ends_unread = pending.is_reading_body && draft.framing().is_none();
        let facts = RequestFacts { is_last: pending.facts.is_last || ends_unread, ..pending.facts };
        let responded = self.responder.respond_with(&mut draft, facts, None);
        self.calls.recycle_draft(draft);
        self.note_deferred(pending, responded.status);
        ControlFlow::Continue(self.count(responded))
    }

    /// Runs the steps around a handler until one of them defers the response.
    #[cold]
    fn run_steps(&mut self, exchange: &Rc<Exchange>, draft: &mut ResponseDraft) -> Option<Deferred> {
        let mut number = 0;
        while let Some((step, key)) = exchange.step(number) {
            number += 1;
            // Bytes that are queued must fit the head.
            let queued = draft.framing().filter(|_| exchange.sends_stream());
            let request = exchange.request(self.proxies.as_deref());
            let mut response = Response { calls: Some(&mut self.calls), ..Response::resume(&mut *draft) };
            let fault = match panics::catch(|| step.response(key, &request, &mut response)) {
                Err(mut panic) => {
                    panic.request = Some(named(&exchange.head()));
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
            match draft.deferral.take() {
                Some(Deferral::Deferred(mut deferred)) => {
                    exchange.pass_steps(number, &deferred.exchange);
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
                upgrade => {
                    draft.deferral = upgrade;
                    draft.settle();
                }
            }
        }
        None
    }

    /// Continues with the handler of a step that has deferred the response. The rest of the request's body is discarded.
    #[cold]
    fn defer_again(&mut self, pending: &mut PendingCall, deferred: Deferred) -> Option<Disposition> {
        if pending.exchange.ends_with_client() {
            deferred.exchange.end_with_client();
        }
        if pending.is_reading_body {
            let index = self.table.get(pending.exchange.token()).block;
            self.blocks.get_mut(index).into_iter().for_each(|block| block.destination = Destination::Discard);
        }
        let PendingCall { is_reading_body, owes_continue, facts, .. } = *pending;
        let mut next = PendingCall { is_reading_body, owes_continue, ..PendingCall::new(deferred, facts) };
        // Fields that were set after the first `defer` come last.
        if let Some(mut added) = pending.added.take() {
            match &mut next.added {
                Some(of_step) => of_step.add(&mut added),
                none => *none = Some(added),
            }
        }
        self.release_call(std::mem::replace(pending, next));
        if pending.is_new {
            self.poll(pending);
        }
        self.pump(pending)
    }

    /// Sends `100 Continue` once the handler reads the body; returns true if the body may arrive from now on.
    pub(crate) fn send_continue(&mut self, pending: &mut PendingCall) -> bool {
        let is_continued = pending.owes_continue && pending.exchange.is_wanted();
        if is_continued {
            pending.owes_continue = false;
            if pending.disposition.is_none() {
                self.responder.append_continue();
            }
        }
        is_continued
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Polls each ready task once. Those that become ready meanwhile are polled in the next turn.
    #[inline]
    pub(crate) fn run_tasks(&mut self) {
        let tasks = &self.state.calls.tasks;
        // A dropped task may still have a wake-up pending.
        if !tasks.is_empty() || tasks.ready() > 0 || !self.state.calls.clock.timers.is_empty() {
            self.run_ready();
        }
    }

    fn run_ready(&mut self) {
        let calls = &mut self.state.calls;
        calls.clock.timers.expire();
        calls.tasks.collect();
        let ready = calls.tasks.ready();
        if ready > 0 {
            self.state.counters.task_turns.add(1);
            self.state.counters.tasks_ready.add(ready as u64);
        }
        for _ in 0..ready {
            let Some(task) = self.state.calls.tasks.next() else { return };
            self.run_task(task);
        }
    }

    fn run_task(&mut self, task: TaskId) {
        let state = &mut self.state;
        let Some(token) = state.calls.token_of(task) else { return };
        if state.task_of(token) != Some(task) {
            // Its response is complete; the task continues on its own.
            let tasks = &mut state.calls.tasks;
            if let Err(panic) = panics::catch(|| tasks.poll(task)) {
                state.faulty(Fault::Panic(panic));
            }
            return;
        }
        state.run_call(token, false);
        self.flush(token);
    }

    /// Resumes a handler after a send.
    pub(crate) fn resume_handler(&mut self, token: Token) {
        self.state.resume_call(token);
        self.state.table.get(token).restart_deadline();
        self.flush(token);
    }
}
