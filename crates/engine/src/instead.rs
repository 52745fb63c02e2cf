//! Handlers that don't answer at once: they answer later, or upgrade the connection.

use std::future::Future;
use std::net::SocketAddr;
use std::task::Context;

use crate::call::{Call, Later};
use crate::request::Request;
use crate::response::Response;
use crate::upgrade::Taker;

/// What takes the place of an answer.
pub(crate) enum Instead {
    Later(Later),
    Upgrade(Taker),
    /// As many requests are being answered later as may be.
    Full,
}

impl Response<'_> {
    /// Answers later: `make` gets the request as a [`Call`], and the future that it makes runs as a task of this worker, beginning as soon
    /// as the handler returns. Fields that are set in this response, before or afterwards, stand beside those of the call; a status and a body
    /// that are set in it are forgotten. The last one holds.
    ///
    /// A future that is ready at once costs no wait, and nothing is allocated for it once its worker has seen some.
    ///
    /// While [`Limits::calls_max`](crate::Limits::calls_max) requests of a worker are being answered later, a further one is refused with
    /// `503`.
    ///
    /// # Panics
    /// Within a [`Call`]: that answers itself.
    pub fn later<F: Future<Output = ()> + 'static>(
        &mut self,
        request: &Request<'_>,
        make: impl FnOnce(Call) -> F,
    ) {
        self.forget_later();
        let calls = self.calls.as_deref_mut().expect("a call answers itself");
        self.parts.instead = Some(calls.begin(request, make).map_or(Instead::Full, Instead::Later));
    }

    /// Looks at something that may be ready at once, and then needs no [`later`](Self::later): it is [told](Self::tell). `look` gets the context
    /// of the future that is made next. What isn't ready goes on by [`later_when_woken`](Self::later_when_woken), which has to follow then, for
    /// what was looked at last: only its wakes count.
    ///
    /// `None` where a further request can't be answered later: it is refused as there.
    ///
    /// # Panics
    /// Within a [`Call`]: that answers itself.
    pub fn look<T>(&mut self, look: impl FnOnce(&mut Context<'_>) -> T) -> Option<T> {
        self.forget_later();
        let calls = self.calls.as_deref_mut().expect("a call answers itself");
        let looked = calls.tasks.look(look);
        if looked.is_none() {
            self.parts.instead = Some(Instead::Full);
        }
        looked
    }

    /// As [`later`](Self::later), for what was [looked](Self::look) at and isn't ready: it is polled when it has been woken since, and not at
    /// once.
    ///
    /// # Panics
    /// Within a [`Call`].
    pub fn later_when_woken<F: Future<Output = ()> + 'static>(
        &mut self,
        request: &Request<'_>,
        make: impl FnOnce(Call) -> F,
    ) {
        self.later(request, make);
        if let Some(Instead::Later(later)) = &mut self.parts.instead {
            later.is_polled = true;
        }
    }

    /// Answers as a [`Call`] does that is over at once: what is set in this response, before or afterwards, is laid over what `tell` says, as
    /// with [`later`](Self::later).
    ///
    /// # Panics
    /// Within a [`Call`].
    pub fn tell<T>(&mut self, tell: impl FnOnce(&mut Response<'_>) -> T) -> T {
        self.forget_later();
        let calls = self.calls.as_deref_mut().expect("a call answers itself");
        let mut parts = calls.spare_parts();
        let told = tell(&mut Response::new(&mut parts));
        self.parts.told = Some(parts);
        told
    }

    /// The address that a request came from, asked of the system once a connection; `None` on a Unix-domain socket, or where the client is gone.
    pub fn peer(&mut self, request: &Request<'_>) -> Option<SocketAddr> {
        match &mut self.calls {
            Some(calls) => calls.peer_of(request),
            None => request.peer(),
        }
    }

    /// A handler that was to answer later is not to.
    #[inline]
    pub(crate) fn forget_later(&mut self) {
        if self.parts.is_other() {
            self.forget();
        }
    }

    #[cold]
    fn forget(&mut self) {
        let (instead, told) = (self.parts.instead.take(), self.parts.told.take());
        let Some(calls) = &mut self.calls else { return };
        if let Some(Instead::Later(later)) = instead {
            calls.abandon(later.exchange, later.task);
        }
        told.into_iter().for_each(|parts| calls.recycle_parts(parts));
    }
}
