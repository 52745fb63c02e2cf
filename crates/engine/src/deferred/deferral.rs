//! Handlers that defer their response or upgrade the connection, and the steps around them.

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};

use shearwater_http1::ResponseFraming;

use crate::deferred::call::Call;
use crate::deferred::calls::Deferral;
use crate::request::Request;
use crate::response::Response;
use crate::response::draft::Body;
use crate::response::fault::Fault;

/// A step that changes a handler's response, such as a router's `after` steps or a site's error pages.
///
/// [`Response::around`] decides when it runs: at once, or when a deferred response is complete.
pub trait Around {
    /// Changes a response that is complete, or the head of one that is streamed. `key` is that of [`Response::around`].
    ///
    /// The request is that of the connection, without a router's context. The step may defer the response, unless it is
    /// streamed: further steps wait for it. It must not replace the body of a response that is streamed.
    fn response(self: Rc<Self>, key: u64, request: &Request<'_>, response: &mut Response<'_>);
}

impl Response<'_> {
    /// Defers the response. `make` receives the request as a [`Call`] and returns a future, which runs as a
    /// task of this worker as soon as the handler returns.
    ///
    /// The call continues the response as it is now: status, fields and body that were set before are those of
    /// [`Call::response`]. Fields, header rules and a tag set in this response afterwards are added once the call's response
    /// and the steps around it are complete; status, body and content type have no effect any more. The last call to
    /// `defer` wins, and continues the response as far as the first call was built.
    ///
    /// A future that is ready at once doesn't wait, and needs no allocation once the worker has spare memory.
    ///
    /// If [`Limits::calls_max`](crate::Limits::calls_max) requests of a worker are deferred already, the
    /// request is rejected with `503`.
    ///
    /// # Panics
    /// If the response [can't be deferred](Self::can_be_deferred).
    pub fn defer<F: Future<Output = ()> + 'static>(
        &mut self,
        request: &Request<'_>,
        make: impl FnOnce(Call) -> F,
    ) {
        self.drop_deferral();
        let is_polled = std::mem::take(&mut self.is_polled);
        let calls = self.calls.as_deref_mut().expect("called within a call");
        let deferred = calls.begin(request, self.draft, is_polled, make);
        calls.deferral = Some(deferred.map_or(Deferral::Full, Deferral::Deferred));
    }

    /// Polls something that may be ready at once, and then needs no [`defer`](Self::defer).
    ///
    /// `poll` gets the context of the next future. If it is pending, `defer` must follow for the last thing that was
    /// polled, which is polled again only once it has been woken.
    ///
    /// Returns `None` if no further request can be deferred: it is then rejected as by `defer`.
    ///
    /// # Panics
    /// If the response [can't be deferred](Self::can_be_deferred).
    pub fn poll_first<T>(&mut self, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Option<Poll<T>> {
        self.drop_deferral();
        let calls = self.calls.as_deref_mut().expect("called within a call");
        let polled = calls.tasks.poll_now(poll);
        match &polled {
            Some(polled) => self.is_polled = polled.is_pending(),
            None => calls.deferral = Some(Deferral::Full),
        }
        polled
    }

    /// Returns false for the response of a [`Call`], which is deferred already.
    #[must_use]
    pub fn can_be_deferred(&self) -> bool {
        self.calls.is_some()
    }

    /// Returns false if the response is complete, so that the caller's step applies now. Else `step` runs with this `key`
    /// once it is complete, after the steps that were added before.
    ///
    /// A handler's invalid field has made the response a `500` by then. Steps don't run for a response that the server
    /// sends on its own: after a panic, or if the request is rejected.
    #[inline]
    pub fn around<T: Around + 'static>(&mut self, step: &Rc<T>, key: u64) -> bool {
        self.is_polled = false;
        (self.is_deferred() || self.draft.fault.is_some()) && self.around_deferred(step.clone(), key)
    }

    /// Returns true if the response isn't complete when the handler returns.
    #[inline]
    #[must_use]
    pub fn is_deferred(&self) -> bool {
        self.calls.as_ref().is_some_and(|calls| calls.deferral.is_some()) || self.draft.upgrade.is_some()
    }

    #[cold]
    fn around_deferred(&mut self, step: Rc<dyn Around>, key: u64) -> bool {
        match self.calls.as_ref().and_then(|calls| calls.deferral.as_ref()) {
            Some(Deferral::Deferred(deferred)) => {
                deferred.shared.add_step(step, key);
                true
            }
            Some(Deferral::Full) => true,
            None => {
                self.draft.settle();
                false
            }
        }
    }

    /// Returns the client's address as [`Request::client`], and queries that of the peer once per connection.
    pub fn client(&mut self, request: &Request<'_>) -> Option<SocketAddr> {
        match (&mut self.calls, request.proxies()) {
            (Some(calls), None) => calls.peer_of(request),
            _ => request.client(),
        }
    }

    /// Returns the peer's address as [`Request::peer`], queried once per connection.
    pub fn peer(&mut self, request: &Request<'_>) -> Option<SocketAddr> {
        match &mut self.calls {
            Some(calls) => calls.peer_of(request),
            None => request.peer(),
        }
    }

    /// Returns true if a step has replaced the body of this stream. A response that has failed is sent without the stream.
    pub(crate) fn is_replaced(&self, stream: Option<ResponseFraming>) -> bool {
        let has_failed = matches!(self.draft.fault.as_deref(), Some(Fault::Settled(_)));
        let is_coded = matches!(self.draft.body, Some(Body::Coded(..)));
        !has_failed && (self.is_deferred() || !is_coded && self.draft.framing() != stream)
    }

    /// Drops a deferred handler or an upgrade that is no longer wanted: the response is what else is set.
    #[inline]
    pub fn drop_deferral(&mut self) {
        if self.is_deferred() {
            self.drop_deferral_cold();
        }
    }

    /// The response is again that which was deferred, as far as the call was built, with the fields set since.
    #[cold]
    fn drop_deferral_cold(&mut self) {
        self.draft.upgrade = None;
        let Some(calls) = &mut self.calls else { return };
        let Some(Deferral::Deferred(deferred)) = calls.deferral.take() else { return };
        if let Some(mut earlier) = calls.withdraw(deferred) {
            earlier.end_stream();
            earlier.add(self.draft);
            std::mem::swap(self.draft, &mut earlier);
            calls.recycle_draft(earlier);
        }
    }
}
