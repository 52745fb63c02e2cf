//! Polls deferred handlers and moves their output into the turn's output.

use std::rc::Rc;

use shearwater_http1::ResponseContent;
use shearwater_io::{Driver, Token};
use shearwater_tasks::{Polled, TaskId};

use crate::deferred::calls::{Deferred, Inherited};
use crate::deferred::exchange::{Exchange, Progress};
use crate::deferred::retry::PassedSteps;
use crate::response::responder::{Disposition, Fault, RequestFacts};
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
    /// The response has a body on the wire.
    has_body: bool,
    /// Fault that ended the handler before its response was complete.
    fault: Option<Box<Fault>>,
    /// Fields inherited from the deferring response.
    pub(crate) inherited: Inherited,
    /// The head was replaced by a `500`.
    is_failed: bool,
    /// Service that was called, if a reload has replaced it since.
    pub(crate) service: Option<Rc<dyn Service>>,
    /// The service is called again once the future is done.
    pub(crate) retry: Option<Vec<PassedSteps>>,
    /// Times that it was.
    pub(crate) retries: u8,
}

impl PendingCall {
    pub(crate) fn new(deferred: Deferred, facts: RequestFacts) -> Self {
        let Deferred { exchange, task, is_polled, inherited, retry } = deferred;
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
            inherited,
            is_failed: false,
            service: None,
            retry,
            retries: 0,
        }
    }

    /// Creates the successor of a call whose service was called again and has deferred again.
    pub(crate) fn after(earlier: &Self, deferred: Deferred) -> Self {
        let Self { is_reading_body, owes_continue, retries, .. } = *earlier;
        let (service, retries) = (earlier.service.clone(), retries + 1);
        Self { is_reading_body, owes_continue, service, retries, ..Self::new(deferred, earlier.facts) }
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
            Progress::Whole => {
                // The next request can't be found after an unread body.
                pending.facts.is_last |= pending.is_reading_body;
                return Some(self.append_head(pending, None));
            }
            Progress::Retry => return self.retry(pending),
            Progress::Begun | Progress::Streams => {
                self.append_stream(pending, false);
                // Without a body on the wire the response is complete after its head.
                if !pending.has_body || pending.is_failed {
                    return pending.disposition;
                }
            }
            Progress::Ended => {
                self.append_stream(pending, true);
                if pending.exchange.has_surplus() {
                    self.faulty(Fault::Built("a handler has sent more than it had announced".to_owned()));
                }
                return pending.disposition;
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
        Some(self.append_head(pending, Some(fault)))
    }

    fn append_stream(&mut self, pending: &mut PendingCall, is_end: bool) {
        if pending.disposition.is_none() {
            pending.disposition = Some(self.append_head(pending, None));
            if pending.is_failed {
                pending.has_body = false;
            }
        }
        pending.exchange.take_stream(self.responder.out.bytes_mut(), pending.has_body, is_end);
    }

    fn append_head(&mut self, pending: &mut PendingCall, fault: Option<Box<Fault>>) -> Disposition {
        let mut draft = pending.exchange.take_draft().unwrap_or_default();
        let inherited = std::mem::take(&mut pending.inherited);
        let responded = self.responder.respond_with(&mut draft, inherited, pending.facts, fault);
        pending.is_failed = responded.fault.as_ref().is_some_and(|fault| fault.fails());
        pending.has_body = ResponseContent::of(pending.facts.method, responded.status).is_whole();
        self.calls.recycle_draft(draft);
        self.note_deferred(pending, responded.status);
        self.count(responded)
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
        if !tasks.is_empty() || tasks.ready() > 0 || !self.state.calls.timers.is_empty() {
            self.run_ready();
        }
    }

    fn run_ready(&mut self) {
        let calls = &mut self.state.calls;
        calls.timers.expire();
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
