//! Request bodies: as services read them, and how a worker feeds them from a call.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Frame, SizeHint};
use shearwater::engine::Call;
use shearwater::engine::{Expectation, Framing, Head, Version};

use crate::body_channel::{BodyError, BodyLength, BodyReceiver, BodySender, Demand, channel};
use crate::head_pool::HeadPool;
use crate::limits::HEAD_IN_BLOCK_BYTES_MAX;

/// The body of a request. It is `Send` and `Sync` and may be read on any thread.
///
/// Pieces are received as fast as they are read. Unless the whole body arrived with the head, nothing is received and
/// no `100 Continue` sent (RFC 9110 section 10.1.1) before the first poll. A body that hasn't been read when the
/// response is complete ends with an error.
#[derive(Debug)]
pub struct Body {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// No body, or nothing left of it.
    Empty,
    /// A body that arrived in full.
    Whole(Bytes),
    /// A body that arrives in pieces.
    Streamed(BodyReceiver),
}

impl Body {
    /// Creates an empty body.
    #[must_use]
    pub const fn empty() -> Self {
        Self { kind: Kind::Empty }
    }

    /// Creates a body that has arrived in full.
    pub(crate) const fn whole(bytes: Bytes) -> Self {
        Self { kind: Kind::Whole(bytes) }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let kind = &mut self.get_mut().kind;
        match kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                *kind = Kind::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Kind::Streamed(receiver) => receiver.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Streamed(receiver) => receiver.is_at_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Streamed(receiver) => receiver.size_hint(),
        }
    }
}

/// Maximum number of polls of the reader per turn: before a piece, after it, and after the end.
const POLLS_MAX: usize = 3;

/// The framing of a request's body.
#[derive(Clone, Copy)]
pub(crate) struct ExpectedBody {
    framing: Framing,
    /// The client waits for a `100 Continue` before it sends the body.
    expects_continue: bool,
    is_http2: bool,
}

impl ExpectedBody {
    pub(crate) fn from_head(head: &Head<'_>) -> Self {
        let expects_continue = head.expectation() == Expectation::Continue;
        let framing = match head.framing() {
            // What follows an extended CONNECT is the tunnel's.
            Framing::Open if head.protocol().is_some() => Framing::None,
            framing => framing,
        };
        Self { framing, expects_continue, is_http2: head.version() == Version::Http2 }
    }

    /// Returns true if there is no body.
    pub(crate) fn is_none(self) -> bool {
        self.length().bytes == Some(0)
    }

    fn length(self) -> BodyLength {
        let bytes = match self.framing {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Chunked | Framing::Open => None,
        };
        // In HTTP/1, trailers follow chunks only.
        BodyLength { bytes, may_have_trailers: bytes.is_none() || self.is_http2 }
    }
}

/// Feeds a body to its reader. Empty once the body is complete or its reader has gone.
#[derive(Debug)]
pub(crate) struct RequestBody {
    sender: Option<BodySender>,
}

impl RequestBody {
    /// The state of a request without a body.
    pub(crate) const NONE: Self = Self { sender: None };

    /// Returns the body of a call, and the state that feeds it. A body that has arrived in full needs no feeding.
    pub(crate) fn begin(
        call: &mut Call,
        expected: ExpectedBody,
        pool: &mut HeadPool,
        cx: &mut Context<'_>,
    ) -> (Body, Self) {
        if expected.is_none() {
            return (Body::empty(), Self::NONE);
        }
        let length = expected.length();
        let first =
            if expected.expects_continue { Poll::Pending } else { first(call, length.bytes, pool, cx) };
        let piece = match first {
            Poll::Ready(None) if has_no_trailers(call, length) => return (Body::empty(), Self::NONE),
            Poll::Ready(None) => None,
            Poll::Ready(Some(piece)) => Some(piece),
            Poll::Pending => None,
        };
        if let Some(piece) = &piece
            && call.poll_read(cx) == Poll::Ready(None)
            && has_no_trailers(call, length)
        {
            return (Body::whole(piece.clone()), Self::NONE);
        }
        let (sender, receiver) = channel(length, piece);
        (Body { kind: Kind::Streamed(receiver) }, Self { sender: Some(sender) })
    }

    /// Polls a future that may read the body, and feeds it pieces on demand.
    pub(crate) fn poll_with<T>(
        &mut self,
        call: &mut Call,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Call, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        for _ in 0..POLLS_MAX {
            let polled = poll(call, cx);
            if polled.is_ready() || !self.forward(call, cx) {
                return polled;
            }
        }
        // Continues in the worker's next turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Passes on a piece, or the end, if the reader wants it and it has arrived. Returns true if so.
    fn forward(&mut self, call: &mut Call, cx: &mut Context<'_>) -> bool {
        let Some(sender) = &self.sender else { return false };
        match sender.poll_demand(cx) {
            Poll::Pending => return false,
            Poll::Ready(Demand::Closed) => {
                self.sender = None;
                return false;
            }
            Poll::Ready(Demand::Wanted) => {}
        }
        match call.poll_take(cx) {
            Poll::Pending => return false,
            Poll::Ready(Some(piece)) => sender.push(Bytes::from(piece), cx),
            Poll::Ready(None) => {
                self.sender.take().into_iter().for_each(|sender| sender.finish(trailers(call), cx));
            }
        }
        true
    }
}

/// Returns true if no trailers follow a body that was read to its end.
fn has_no_trailers(call: &Call, length: BodyLength) -> bool {
    !length.may_have_trailers || call.trailers().next().is_none()
}

/// Returns the trailers of a body that was read to its end, if there are any.
fn trailers(call: &Call) -> Option<Box<HeaderMap>> {
    let mut map = HeaderMap::new();
    for field in call.trailers() {
        // The engine accepts nothing that these reject.
        let name = HeaderName::from_bytes(field.name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
            map.append(name, value);
        }
    }
    (!map.is_empty()).then(|| Box::new(map))
}

/// Takes the first piece of a body. Short bodies are copied into the head pool, so that the call keeps its buffer.
fn first(
    call: &mut Call,
    length: Option<u64>,
    pool: &mut HeadPool,
    cx: &mut Context<'_>,
) -> Poll<Option<Bytes>> {
    match length {
        Some(length) if length <= HEAD_IN_BLOCK_BYTES_MAX as u64 => {
            call.poll_read(cx).map(|piece| piece.map(|piece| pool.copy(piece)))
        }
        _ => call.poll_take(cx).map(|piece| piece.map(Bytes::from)),
    }
}
