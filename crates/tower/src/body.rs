//! A request's body, as services read it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::body_error::BodyError;
use crate::feed::Fed;

/// The body of a request that was received. It is `Send` and `Sync`, and may be read from any thread: what a service does with it
/// is its own business.
///
/// Pieces arrive as fast as they are read. Nothing is received, and no `100 Continue` sent (RFC 9110 section 10.1.1), before it is
/// polled for the first time, unless the whole of it has come with its head. A body that nobody has read to its end when the
/// answer is complete ends with an error.
#[derive(Debug)]
pub struct Body {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// There is none, or there is nothing left of it.
    Empty,
    /// It has come as a whole.
    Whole(Bytes),
    /// It comes in pieces.
    Fed(Fed),
}

impl Body {
    /// That of a request without one.
    #[must_use]
    pub const fn empty() -> Self {
        Self { kind: Kind::Empty }
    }

    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self { kind: Kind::Whole(bytes) }
    }

    pub(crate) fn fed(fed: Fed) -> Self {
        Self { kind: Kind::Fed(fed) }
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
            Kind::Fed(fed) => fed.poll(cx).map(|piece| piece.map(|piece| piece.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Fed(fed) => fed.is_at_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Fed(fed) => fed.size_hint(),
        }
    }
}
