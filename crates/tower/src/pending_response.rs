//! A service's response: sent whole if its body is ready, else begun and streamed.

use std::pin::Pin;
use std::task::Poll;

use bytes::Buf;
use http::response::Parts;
use http_body::{Body as HttpBody, Frame};
use shearwater::{Call, Method, Response, ResponseContent};

use crate::limits::WHOLE_BODY_BYTES_MAX;
use crate::pinned_slot::PinnedSlot;
use crate::response_head;
use crate::tower_service::HttpService;
use crate::worker_pool::WorkerPool;

/// The result of polling a body.
pub(crate) type Polled<B> = Poll<Option<Result<Frame<<B as HttpBody>::Data>, <B as HttpBody>::Error>>>;

/// A response of which nothing has been sent.
pub(crate) struct PendingResponse<S: HttpService> {
    head: Parts,
    /// The body's length in bytes, if known.
    length: Option<u64>,
    /// The body, or `None` if the response has none or doesn't send it.
    body: Option<PinnedSlot<S::ResponseBody>>,
    /// The result of the body's first poll.
    first: Polled<S::ResponseBody>,
    is_head_only: bool,
}

/// The rest of a body whose head has been sent, with the next frame if it was already polled.
pub(crate) struct RemainingBody<S: HttpService> {
    pub(crate) body: PinnedSlot<S::ResponseBody>,
    pub(crate) next: Polled<S::ResponseBody>,
}

impl<S: HttpService> PendingResponse<S> {
    /// Wraps the response to a request with this method.
    pub(crate) fn new(
        response: http::Response<S::ResponseBody>,
        method: Method,
        pool: &WorkerPool<S>,
    ) -> Self {
        let (head, body) = response.into_parts();
        let length = body.size_hint().exact();
        let is_head_only = method == Method::Head;
        let is_sent = ResponseContent::of(method, head.status.as_u16()).is_whole();
        let body = (is_sent && !body.is_end_stream()).then(|| pool.bodies.take(body));
        Self { head, length, body, first: Poll::Pending, is_head_only }
    }

    /// Polls the body for its first frame.
    pub(crate) fn poll_first(
        &mut self,
        poll: impl FnOnce(Pin<&mut S::ResponseBody>) -> Polled<S::ResponseBody>,
    ) {
        if let Some(body) = &mut self.body {
            self.first = poll(body.get());
        }
    }

    /// Sends the whole response if its body is ready. Otherwise sends nothing and returns it.
    pub(crate) fn send_whole(mut self, response: &mut Response<'_>, pool: &WorkerPool<S>) -> Option<Self> {
        if self.is_head_only {
            return Some(self);
        }
        if let Some(mut body) = self.body.take() {
            let is_last = body.get().is_end_stream();
            let Some(whole) = whole::<S::ResponseBody>(&self.first, self.length, is_last) else {
                self.body = Some(body);
                return Some(self);
            };
            response.body(whole);
            pool.bodies.put(body);
        }
        send_head(self.head, response, pool);
        None
    }

    /// Sends the head. Returns `None` if no body follows.
    pub(crate) fn begin(self, call: &mut Call, pool: &WorkerPool<S>) -> Option<RemainingBody<S>> {
        let declared = response_head::length(&self.head.headers);
        send_head(self.head, &mut call.response(), pool);
        let Some(body) = self.body else {
            call.begin(declared.or(self.length.filter(|length| *length > 0)));
            return None;
        };
        call.begin(self.length.or(declared));
        Some(RemainingBody { body, next: self.first })
    }
}

/// Sets status and fields, and returns the header map to the pool.
pub(crate) fn send_head<S: HttpService>(head: Parts, response: &mut Response<'_>, pool: &WorkerPool<S>) {
    response_head::set(response, head.status, &head.headers);
    pool.heads.borrow_mut().put(head.headers);
}

/// Returns the first piece if it is the whole body and short enough to send with the head.
fn whole<B: HttpBody>(first: &Polled<B>, length: Option<u64>, is_last: bool) -> Option<&[u8]> {
    let Poll::Ready(Some(Ok(frame))) = first else { return None };
    let data = frame.data_ref()?;
    let chunk = data.chunk();
    let is_all = chunk.len() == data.remaining() && (is_last || length == Some(chunk.len() as u64));
    (is_all && chunk.len() <= WHOLE_BODY_BYTES_MAX).then_some(chunk)
}
