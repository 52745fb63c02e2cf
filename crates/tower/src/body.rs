//! Request bodies of services.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::body_channel::BodyReceiver;
use crate::body_error::BodyError;

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

    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self { kind: Kind::Whole(bytes) }
    }

    pub(crate) fn streamed(receiver: BodyReceiver) -> Self {
        Self { kind: Kind::Streamed(receiver) }
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
            Kind::Streamed(receiver) => {
                receiver.poll(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
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
