//! A deferred request: moves its handler's output into the turn's output.

use std::rc::Rc;

use shearwater_http1::ResponseContent;
use shearwater_tasks::{Polled, TaskId};

use crate::app::App;
use crate::call::{Around, Exchange, Later, Progress};
use crate::panics;
use crate::reports::named;
use crate::respond::{After, Asked, Fault};
use crate::service::Service;

/// A deferred request in progress.
pub(crate) struct Waiting {
    pub(crate) exchange: Rc<Exchange>,
    pub(crate) task: TaskId,
    pub(crate) asked: Asked,
    /// Its body is still being received.
    pub(crate) is_taking: bool,
    /// The client waits for a `100` before it sends the body.
    pub(crate) owes_continue: bool,
    /// The handler has not been polled yet.
    pub(crate) is_new: bool,
    /// Disposition of the connection, once the head of a stream is encoded.
    pub(crate) after: Option<After>,
    /// The response has a body on the wire.
    has_body: bool,
    /// Fault that ended the handler before its response was complete.
    fault: Option<Box<Fault>>,
    /// Fields inherited from the deferring response.
    around: Around,
    /// The head was replaced by a `500`.
    is_failed: bool,
}

impl Waiting {
    pub(crate) fn new(later: Later, asked: Asked) -> Self {
        let Later { exchange, task, is_polled, around } = later;
        Self {
            exchange,
            task,
            asked,
            is_taking: false,
            owes_continue: false,
            is_new: !is_polled,
            after: None,
            has_body: true,
            fault: None,
            around,
            is_failed: false,
        }
    }
}

/// Next step of a deferred request after a poll.
pub(crate) enum Next {
    /// The handler is still at work.
    Wait,
    /// The response is complete.
    End(After),
    /// The response can't be completed.
    Cut,
}

impl<A: App> Service<A> {
    /// Polls the handler.
    pub(crate) fn poll(&mut self, waiting: &mut Waiting) {
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

    /// Moves a handler's output into the turn's output.
    pub(crate) fn pump(&mut self, waiting: &mut Waiting) -> Next {
        if let Some(fault) = waiting.fault.take() {
            return self.give_up(waiting, fault);
        }
        match waiting.exchange.progress() {
            Progress::Nothing => {}
            Progress::Whole => {
                // The next request can't be found after an unread body.
                waiting.asked.is_last |= waiting.is_taking;
                return Next::End(self.append_head(waiting, None));
            }
            Progress::Begun | Progress::Streams => {
                self.append_stream(waiting, false);
                // Without a body on the wire the response is complete after its head.
                if !waiting.has_body || waiting.is_failed {
                    return Next::End(waiting.after.unwrap_or(After::Close));
                }
            }
            Progress::Ended => {
                self.append_stream(waiting, true);
                if waiting.exchange.has_surplus() {
                    self.faulty(Fault::Built("a handler has sent more than it had announced".to_owned()));
                }
                return Next::End(waiting.after.unwrap_or(After::Close));
            }
            Progress::Cut => {
                let why = waiting.exchange.why_cut();
                return self.give_up(waiting, Box::new(Fault::Built(why)));
            }
        }
        Next::Wait
    }

    /// Truncates the response, or replaces it by a `500` if nothing was sent.
    fn give_up(&mut self, waiting: &mut Waiting, fault: Box<Fault>) -> Next {
        if waiting.after.is_some() {
            waiting.exchange.take_stream(self.responder.out.bytes_mut(), waiting.has_body, false);
            self.faulty(*fault);
            return Next::Cut;
        }
        Next::End(self.append_head(waiting, Some(fault)))
    }

    fn append_stream(&mut self, waiting: &mut Waiting, is_end: bool) {
        if waiting.after.is_none() {
            waiting.after = Some(self.append_head(waiting, None));
            if waiting.is_failed {
                waiting.has_body = false;
            }
        }
        waiting.exchange.take_stream(self.responder.out.bytes_mut(), waiting.has_body, is_end);
    }

    fn append_head(&mut self, waiting: &mut Waiting, fault: Option<Box<Fault>>) -> After {
        let mut parts = waiting.exchange.take_parts().unwrap_or_default();
        let around = std::mem::take(&mut waiting.around);
        let answered = self.responder.answer_with(&mut parts, around, waiting.asked, fault);
        waiting.is_failed = answered.fault.as_ref().is_some_and(|fault| fault.fails());
        waiting.has_body = ResponseContent::of(waiting.asked.method, answered.status).is_whole();
        self.calls.recycle_parts(parts);
        let after = answered.after;
        self.count(answered);
        after
    }

    /// Sends `100 Continue` once the handler reads the body; returns true if the body may arrive from now on.
    pub(crate) fn say_continue(&mut self, waiting: &mut Waiting) -> bool {
        let goes_on = waiting.owes_continue && waiting.exchange.is_wanted();
        if goes_on {
            waiting.owes_continue = false;
            if waiting.after.is_none() {
                self.responder.go_on();
            }
        }
        goes_on
    }
}
