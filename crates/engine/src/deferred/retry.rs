//! Requests whose service is called again: a service that would have to wait before it can respond says what for, and
//! responds in a second call as if it were the first.
//!
//! The first response is discarded. So a service writes its response in one way, whether or not it has to wait, and
//! whoever calls it (a router, its middleware, a site) sees only the final response.

use std::any::Any;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;

use shearwater_io::Token;
use shearwater_tasks::Timers;

use crate::deferred::calls::Inherited;
use crate::deferred::deferral::Deferral;
use crate::deferred::poll::PendingCall;
use crate::limits::RETRIES_MAX;
use crate::request::{DriverView, Request};
use crate::response::Response;
use crate::response::responder::{Disposition, Fault, Outcome};
use crate::service::Service;
use crate::worker_state::WorkerState;

/// The effect of a router's `before` steps, which run in the first call only.
pub(crate) struct PassedSteps {
    router: usize,
    fields: Vec<u8>,
    /// The status, if they have set it.
    status: Option<u16>,
}

/// A repeated call, as its request sees it.
pub(crate) struct Retried {
    result: Rc<dyn Any>,
    passed: Vec<PassedSteps>,
    peer: Option<SocketAddr>,
    unix_seconds: u64,
    now_ms: u64,
}

impl DriverView for Retried {
    fn peer_of(&self, _: Token) -> Option<SocketAddr> {
        self.peer
    }

    fn unix_now(&self) -> u64 {
        self.unix_seconds
    }

    fn ms_now(&self) -> u64 {
        self.now_ms
    }

    fn retried(&self) -> Option<&Retried> {
        Some(self)
    }
}

/// State of a response at one moment: see [`Response::keep_steps`].
#[derive(Debug, Clone, Copy)]
pub struct ResponseMark {
    fields: usize,
    status: u16,
}

impl Response<'_> {
    /// Has the service called again with this request once a future is done, and discards this response.
    ///
    /// `make` creates the future from the worker's timers, for a deadline. [`Request::retried`] returns its output in
    /// the repeated call. The client may disconnect first: then the future is dropped. A request may be repeated
    /// [`RETRIES_MAX`](crate::limits::RETRIES_MAX) times; then it fails with a `500`. Too many deferred requests are rejected as by
    /// [`defer`](Self::defer).
    ///
    /// A request whose body is [pulled](crate::BodyPolicy::Call) can be repeated, but its handler can't read the body
    /// any more: deferring in the repeated call fails with a `500`.
    ///
    /// # Panics
    /// If the response [can't be deferred](Self::can_be_deferred).
    pub fn retry_when<F: Future<Output = Rc<dyn Any>> + 'static>(
        &mut self,
        request: &Request<'_>,
        make: impl FnOnce(&Rc<Timers>) -> F,
    ) {
        self.defer(request, |call| {
            let ready = make(call.timers());
            async move {
                let result = ready.await;
                call.retry(result);
            }
        });
        if let Some(Deferral::Deferred(deferred)) = &mut self.draft.deferral {
            deferred.retry = Some(Vec::new());
        }
    }

    /// Returns false for the response of a [`Call`](crate::Call), which is deferred already.
    #[must_use]
    pub fn can_be_deferred(&self) -> bool {
        self.calls.is_some()
    }

    /// Returns true after [`retry_when`](Self::retry_when): this response is discarded.
    #[must_use]
    pub fn will_be_retried(&self) -> bool {
        matches!(&self.draft.deferral, Some(Deferral::Deferred(deferred)) if deferred.retry.is_some())
    }

    /// Returns the present state, for [`keep_steps`](Self::keep_steps).
    #[must_use]
    pub fn mark(&self) -> ResponseMark {
        ResponseMark { fields: self.draft.fields.len(), status: self.draft.status }
    }

    /// Keeps the fields and the status that a router's steps set between two states, if the request will be repeated.
    /// [`Request::restore_steps`] sets them again, so the steps run once.
    pub fn keep_steps(&mut self, router: usize, from: ResponseMark, to: ResponseMark) {
        if let Some(Deferral::Deferred(deferred)) = &mut self.draft.deferral
            && let Some(passed) = &mut deferred.retry
        {
            let fields = self.draft.fields.get(from.fields..to.fields).unwrap_or_default().to_vec();
            let status = (from.status != to.status).then_some(to.status);
            passed.push(PassedSteps { router, fields, status });
        }
    }
}

impl<'a> Request<'a> {
    /// Returns the output of the future that the request has waited for: see [`Response::retry_when`].
    #[must_use]
    pub fn retried<T: 'static>(&self) -> Option<&'a T> {
        self.driver().retried()?.result.downcast_ref()
    }

    /// Sets what the steps of this router have set in an earlier call: see [`Response::keep_steps`]. Returns false if
    /// they haven't run.
    pub fn restore_steps(&self, router: usize, response: &mut Response<'_>) -> bool {
        let Some(retried) = self.driver().retried() else { return false };
        let Some(steps) = retried.passed.iter().find(|steps| steps.router == router) else { return false };
        response.draft.fields.extend_from_slice(&steps.fields);
        response.draft.status = steps.status.unwrap_or(response.draft.status);
        true
    }
}

impl<S: Service> WorkerState<S> {
    /// Calls the service again. Returns the fate of the connection if the response is complete.
    #[cold]
    pub(crate) fn retry(&mut self, pending: &mut PendingCall) -> Option<Disposition> {
        let (Some(result), Some(passed)) = (pending.exchange.take_result(), pending.retry.take()) else {
            return self.fail_retry(pending, "a repeated request has no result");
        };
        if pending.retries >= RETRIES_MAX {
            return self.fail_retry(pending, "a handler has repeated a request too often");
        }
        pending.facts.is_last |= pending.is_reading_body;
        let inherited = std::mem::take(&mut pending.inherited);
        let exchange = Rc::clone(&pending.exchange);
        let (unix_seconds, now_ms) = (self.responder.preamble.unix_seconds(), self.now_ms);
        let retried = Retried { result, passed, peer: exchange.peer(), unix_seconds, now_ms };
        let request = Request::new(
            exchange.head(),
            exchange.kept_body(),
            &retried,
            self.proxies.as_deref(),
            exchange.token(),
        );
        let service = pending.service.as_deref().unwrap_or(&self.service);
        let outcome = self.responder.call_again(service, &request, pending.facts, inherited, &mut self.calls);
        drop(exchange);
        match outcome {
            Outcome::Responded(responded) => {
                self.note_deferred(pending, responded.status);
                Some(self.count(responded))
            }
            Outcome::Deferred(Deferral::Deferred(deferred)) => {
                let is_unreadable = pending.is_reading_body && deferred.retry.is_none();
                let next = PendingCall::after(pending, deferred);
                self.release_call(std::mem::replace(pending, next));
                if is_unreadable {
                    return self.fail_retry(pending, "a repeated request's body can't be read");
                }
                if pending.is_new {
                    self.poll(pending);
                }
                self.pump(pending)
            }
            Outcome::Deferred(_) => {
                let mut draft = self.calls.spare_draft();
                Response::new(&mut draft).status(503).text("Too many requests are in progress.\n").close();
                let responded =
                    self.responder.respond_with(&mut draft, Inherited::default(), pending.facts, None);
                self.calls.recycle_draft(draft);
                self.note_deferred(pending, responded.status);
                Some(self.count(responded))
            }
        }
    }

    fn fail_retry(&mut self, pending: &mut PendingCall, why: &str) -> Option<Disposition> {
        self.abort(pending, Box::new(Fault::Built(why.to_owned())))
    }
}
