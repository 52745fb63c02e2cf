//! What a handler does instead of answering at once: it answers later, or gives the connection away.

use std::future::Future;
use std::os::fd::OwnedFd;

use crate::call::{Call, Later};
use crate::request::Request;
use crate::response::Response;

/// Takes over a connection.
pub(crate) type Taker = Box<dyn FnOnce(HandedOver)>;

/// What takes the place of an answer.
pub(crate) enum Instead {
    Later(Later),
    HandOver(Taker),
    /// As many requests are being answered later as may be.
    Full,
}

/// A connection that the server has let go of, with what was received on it.
#[derive(Debug)]
#[non_exhaustive]
pub struct HandedOver {
    /// The connection, in non-blocking mode.
    pub descriptor: OwnedFd,
    /// The head of the request, as it was received: it is unanswered.
    pub head: Vec<u8>,
    /// What came behind the head and was not looked at.
    pub unread: Vec<u8>,
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

    /// Gives the connection away instead of answering: `take` is called on this worker's thread as soon as earlier answers are sent, and the
    /// server knows the connection no more. It is for another protocol ([RFC 9110 section 7.8](https://www.rfc-editor.org/rfc/rfc9110#section-7.8)),
    /// whose side then answers the request itself. For a request that has no body: any other becomes a `500`.
    ///
    /// # Panics
    /// Within a [`Call`].
    pub fn hand_over(&mut self, take: impl FnOnce(HandedOver) + 'static) {
        assert!(self.calls.is_some(), "a call answers itself");
        self.forget_later();
        self.parts.instead = Some(Instead::HandOver(Box::new(take)));
    }

    /// A handler that was to answer later is not to.
    fn forget_later(&mut self) {
        if let (Some(Instead::Later(later)), Some(calls)) = (self.parts.instead.take(), &mut self.calls) {
            calls.abandon(later.exchange, later.task);
        }
    }
}
