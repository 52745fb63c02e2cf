//! A deferred request: moves its handler's output into the turn's output.

use std::rc::Rc;

use shearwater_http1::ResponseContent;
use shearwater_tasks::{Polled, TaskId};

use crate::call::{Deferred, Exchange, Inherited, Progress};
use crate::panics;
use crate::reports::named;
use crate::respond::{Disposition, Fault, RequestFacts};
use crate::service::Service;
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
    inherited: Inherited,
    /// The head was replaced by a `500`.
    is_failed: bool,
}

impl PendingCall {
    pub(crate) fn new(deferred: Deferred, facts: RequestFacts) -> Self {
        let Deferred { exchange, task, is_polled, inherited } = deferred;
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
        }
    }
}

impl<S: Service> WorkerState<S> {
    /// Polls the handler.
    pub(crate) fn poll(&mut self, waiting: &mut PendingCall) {
        waiting.is_new = false;
        let tasks = &mut self.calls.tasks;
        match panics::catch(|| tasks.poll(waiting.task)) {
            Err(mut panic) => {
                panic.request = Some(named(&waiting.exchange.head()));
                waiting.fault = Some(Box::new(Fault::Panic(panic)));
            }
            Ok(Polled::Ready) if !waiting.exchange.is_over() => {
                let why = "a handler has ended without dropping its call";
                waiting.fault = Some(Box::new(Fault::Built(why.to_owned())));
            }
            Ok(Polled::Ready | Polled::Pending | Polled::Gone) => {}
        }
    }

    /// Moves a handler's output into the turn's output. Returns the fate of the connection once the response is
    /// complete, or can't be completed.
    pub(crate) fn pump(&mut self, waiting: &mut PendingCall) -> Option<Disposition> {
        if let Some(fault) = waiting.fault.take() {
            return self.abort(waiting, fault);
        }
        match waiting.exchange.progress() {
            Progress::Nothing => {}
            Progress::Whole => {
                // The next request can't be found after an unread body.
                waiting.facts.is_last |= waiting.is_reading_body;
                return Some(self.append_head(waiting, None));
            }
            Progress::Begun | Progress::Streams => {
                self.append_stream(waiting, false);
                // Without a body on the wire the response is complete after its head.
                if !waiting.has_body || waiting.is_failed {
                    return waiting.disposition;
                }
            }
            Progress::Ended => {
                self.append_stream(waiting, true);
                if waiting.exchange.has_surplus() {
                    self.faulty(Fault::Built("a handler has sent more than it had announced".to_owned()));
                }
                return waiting.disposition;
            }
            Progress::Cut => {
                let why = waiting.exchange.why_cut();
                return self.abort(waiting, Box::new(Fault::Built(why)));
            }
        }
        None
    }

    /// Truncates the response, or replaces it by a `500` if nothing was sent.
    fn abort(&mut self, waiting: &mut PendingCall, fault: Box<Fault>) -> Option<Disposition> {
        if waiting.disposition.is_some() {
            waiting.exchange.take_stream(self.responder.out.bytes_mut(), waiting.has_body, false);
            self.faulty(*fault);
            return Some(Disposition::Close);
        }
        Some(self.append_head(waiting, Some(fault)))
    }

    fn append_stream(&mut self, waiting: &mut PendingCall, is_end: bool) {
        if waiting.disposition.is_none() {
            waiting.disposition = Some(self.append_head(waiting, None));
            if waiting.is_failed {
                waiting.has_body = false;
            }
        }
        waiting.exchange.take_stream(self.responder.out.bytes_mut(), waiting.has_body, is_end);
    }

    fn append_head(&mut self, waiting: &mut PendingCall, fault: Option<Box<Fault>>) -> Disposition {
        let mut draft = waiting.exchange.take_draft().unwrap_or_default();
        let inherited = std::mem::take(&mut waiting.inherited);
        let responded = self.responder.respond_with(&mut draft, inherited, waiting.facts, fault);
        waiting.is_failed = responded.fault.as_ref().is_some_and(|fault| fault.fails());
        waiting.has_body = ResponseContent::of(waiting.facts.method, responded.status).is_whole();
        self.calls.recycle_draft(draft);
        let disposition = responded.disposition;
        self.count(responded);
        disposition
    }

    /// Sends `100 Continue` once the handler reads the body; returns true if the body may arrive from now on.
    pub(crate) fn send_continue(&mut self, waiting: &mut PendingCall) -> bool {
        let is_continued = waiting.owes_continue && waiting.exchange.is_wanted();
        if is_continued {
            waiting.owes_continue = false;
            if waiting.disposition.is_none() {
                self.responder.append_continue();
            }
        }
        is_continued
    }
}
