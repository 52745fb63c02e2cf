//! A service's answer: told at once where all of it is there, else begun, so that the rest can be streamed.

use std::pin::Pin;
use std::task::Poll;

use bytes::Buf;
use http::response::Parts;
use http_body::{Body as HttpBody, Frame};
use shearwater::{Call, Method, Response, ResponseContent};

use crate::limits::WHOLE_BODY_BYTES_MAX;
use crate::response_head;
use crate::seat::Seat;
use crate::spare::Spare;
use crate::tower_service::HttpService;

/// What polling a body gives.
pub(crate) type Polled<B> = Poll<Option<Result<Frame<<B as HttpBody>::Data>, <B as HttpBody>::Error>>>;

/// An answer, nothing of which was told.
pub(crate) struct Answer<S: HttpService> {
    head: Parts,
    /// The body's length in bytes, where it knows it.
    length: Option<u64>,
    /// The body, or `None` if the response has none or doesn't send it.
    body: Option<Seat<S::Answer>>,
    /// What the body has given.
    first: Polled<S::Answer>,
    is_head_only: bool,
}

/// What is left of a body whose head is on its way: the piece that is next, if it was polled for already.
pub(crate) struct Rest<S: HttpService> {
    pub(crate) body: Seat<S::Answer>,
    pub(crate) next: Polled<S::Answer>,
}

impl<S: HttpService> Answer<S> {
    /// That to a request with this method.
    pub(crate) fn new(response: http::Response<S::Answer>, method: Method, spare: &Spare<S>) -> Self {
        let (head, body) = response.into_parts();
        let length = body.size_hint().exact();
        let is_head_only = method == Method::Head;
        let is_sent = ResponseContent::of(method, head.status.as_u16()).is_whole();
        let body = (is_sent && !body.is_end_stream()).then(|| spare.bodies.take(body));
        Self { head, length, body, first: Poll::Pending, is_head_only }
    }

    /// Has the body polled for its first piece.
    pub(crate) fn look(&mut self, poll: impl FnOnce(Pin<&mut S::Answer>) -> Polled<S::Answer>) {
        if let Some(body) = &mut self.body {
            self.first = poll(body.get());
        }
    }

    /// Tells all of it, where it is there. Where it isn't, nothing is told, and it comes back.
    pub(crate) fn tell(mut self, response: &mut Response<'_>, spare: &Spare<S>) -> Option<Self> {
        if self.is_head_only {
            return Some(self);
        }
        if let Some(mut body) = self.body.take() {
            let is_last = body.get().is_end_stream();
            let Some(whole) = whole::<S::Answer>(&self.first, self.length, is_last) else {
                self.body = Some(body);
                return Some(self);
            };
            response.body(whole);
            spare.bodies.put(body);
        }
        tell_head(self.head, response, spare);
        None
    }

    /// Sends the head. `None`: nothing follows it.
    pub(crate) fn begin(self, call: &mut Call, spare: &Spare<S>) -> Option<Rest<S>> {
        let declared = response_head::length(&self.head.headers);
        tell_head(self.head, &mut call.response(), spare);
        let Some(body) = self.body else {
            call.begin(declared.or(self.length.filter(|length| *length > 0)));
            return None;
        };
        call.begin(self.length.or(declared));
        Some(Rest { body, next: self.first })
    }
}

/// Sets status and fields. What the fields lay in is used again, for those of a request.
pub(crate) fn tell_head<S: HttpService>(head: Parts, response: &mut Response<'_>, spare: &Spare<S>) {
    response_head::set(response, head.status, &head.headers);
    spare.heads.borrow_mut().put(head.headers);
}

/// The first piece, if it is the whole body and small enough to leave with the head.
fn whole<B: HttpBody>(first: &Polled<B>, length: Option<u64>, is_last: bool) -> Option<&[u8]> {
    let Poll::Ready(Some(Ok(frame))) = first else { return None };
    let data = frame.data_ref()?;
    let chunk = data.chunk();
    let is_all = chunk.len() == data.remaining() && (is_last || length == Some(chunk.len() as u64));
    (is_all && chunk.len() <= WHOLE_BODY_BYTES_MAX).then_some(chunk)
}
