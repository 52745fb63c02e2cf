//! Handlers that defer their response or upgrade the connection.

use std::future::Future;
use std::net::SocketAddr;
use std::task::Context;

use crate::deferred::call::Call;
use crate::deferred::calls::Deferred;
use crate::request::Request;
use crate::response::Response;
use crate::upgrade::Taker;

/// An action in place of an immediate response.
pub(crate) enum Deferral {
    Deferred(Deferred),
    Upgrade(Taker),
    /// Too many requests are deferred already.
    Full,
}

impl Response<'_> {
    /// Defers the response. `make` receives the request as a [`Call`] and returns a future, which runs as a
    /// task of this worker as soon as the handler returns. Fields set in this response, before or afterwards,
    /// are added to those of the call; its status and body are discarded. The last call to `defer` wins.
    ///
    /// A future that is ready at once doesn't wait, and needs no allocation once the worker has spare memory.
    ///
    /// If [`Limits::calls_max`](crate::Limits::calls_max) requests of a worker are deferred already, the
    /// request is rejected with `503`.
    ///
    /// # Panics
    /// Within a [`Call`], which is the response.
    pub fn defer<F: Future<Output = ()> + 'static>(
        &mut self,
        request: &Request<'_>,
        make: impl FnOnce(Call) -> F,
    ) {
        self.drop_deferral();
        let calls = self.calls.as_deref_mut().expect("called within a call");
        self.draft.deferral = Some(calls.begin(request, make).map_or(Deferral::Full, Deferral::Deferred));
    }

    /// Polls something that may be ready at once, and then needs no [`defer`](Self::defer) but
    /// [`respond_now`](Self::respond_now). `poll_now` gets the context of the next future. If it isn't ready,
    /// [`defer_when_woken`](Self::defer_when_woken) must follow for the last thing that was polled; only its
    /// wake-ups count.
    ///
    /// Returns `None` if no further request can be deferred: it is then rejected as there.
    ///
    /// # Panics
    /// Within a [`Call`], which is the response.
    pub fn poll_now<T>(&mut self, look: impl FnOnce(&mut Context<'_>) -> T) -> Option<T> {
        self.drop_deferral();
        let calls = self.calls.as_deref_mut().expect("called within a call");
        let looked = calls.tasks.poll_now(look);
        if looked.is_none() {
            self.draft.deferral = Some(Deferral::Full);
        }
        looked
    }

    /// Defers a future that was polled by [`poll_now`](Self::poll_now): it is polled again only once it has been
    /// woken, and not at once.
    ///
    /// # Panics
    /// Within a [`Call`].
    pub fn defer_when_woken<F: Future<Output = ()> + 'static>(
        &mut self,
        request: &Request<'_>,
        make: impl FnOnce(Call) -> F,
    ) {
        self.defer(request, make);
        if let Some(Deferral::Deferred(deferred)) = &mut self.draft.deferral {
            deferred.is_polled = true;
        }
    }

    /// Responds as a [`Call`] that is ready at once: fields set in this response, before or afterwards, are
    /// added to those that `respond_now` sets, as with [`defer`](Self::defer).
    ///
    /// # Panics
    /// Within a [`Call`].
    pub fn respond_now<T>(&mut self, tell: impl FnOnce(&mut Response<'_>) -> T) -> T {
        self.drop_deferral();
        let calls = self.calls.as_deref_mut().expect("called within a call");
        let mut draft = calls.spare_draft();
        let result = tell(&mut Response::new(&mut draft));
        self.draft.immediate = Some(draft);
        result
    }

    /// Returns the client's address as [`Request::client`], and queries that of the peer once per connection.
    pub fn client(&mut self, request: &Request<'_>) -> Option<SocketAddr> {
        match request.proxies() {
            None => self.peer(request),
            Some(_) => request.client(),
        }
    }

    /// Returns the peer's address as [`Request::peer`], queried once per connection.
    pub fn peer(&mut self, request: &Request<'_>) -> Option<SocketAddr> {
        match &mut self.calls {
            Some(calls) => calls.peer_of(request),
            None => request.peer(),
        }
    }

    /// Drops a deferred handler that is no longer needed.
    #[inline]
    pub(crate) fn drop_deferral(&mut self) {
        if self.draft.is_deferred() {
            self.drop_deferral_cold();
        }
    }

    #[cold]
    fn drop_deferral_cold(&mut self) {
        let (deferral, immediate) = (self.draft.deferral.take(), self.draft.immediate.take());
        let Some(calls) = &mut self.calls else { return };
        if let Some(Deferral::Deferred(deferred)) = deferral {
            calls.abandon(deferred.exchange, deferred.task);
        }
        immediate.into_iter().for_each(|draft| calls.recycle_draft(draft));
    }
}
