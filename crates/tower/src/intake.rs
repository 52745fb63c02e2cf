//! A request's body on its way from its call to whoever reads it.

use std::task::{Context, Poll};

use bytes::Bytes;
use shearwater::{Call, Expectation, Framing, Head};

use crate::body::Body;
use crate::feed::{Demand, Feed, feed};
use crate::head_pool::HeadPool;
use crate::limits::HEAD_IN_BLOCK_BYTES_MAX;

/// How often a reader is polled at once: before a piece, behind it, and behind the end.
const LOOKS_MAX: usize = 3;

/// What a head says of the body behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Announced {
    framing: Framing,
    /// The client waits for a word before it sends it.
    is_held_back: bool,
}

impl Announced {
    pub(crate) fn by(head: &Head<'_>) -> Self {
        let is_held_back = head.expectation() == Expectation::Continue;
        Self { framing: head.framing(), is_held_back }
    }

    fn length(self) -> Option<u64> {
        match self.framing {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Chunked => None,
        }
    }
}

/// The end at which a body is fed; nothing where it is complete, or nobody reads it.
#[derive(Debug)]
pub(crate) struct Intake {
    feed: Option<Feed>,
}

impl Intake {
    /// The body of a call, and what keeps it coming. One that is there as a whole needs nothing more.
    pub(crate) fn begin(
        call: &mut Call,
        announced: Announced,
        pool: &mut HeadPool,
        cx: &mut Context<'_>,
    ) -> (Body, Self) {
        let length = announced.length();
        if length == Some(0) {
            return (Body::empty(), Self { feed: None });
        }
        let first = if announced.is_held_back { Poll::Pending } else { first(call, length, pool, cx) };
        let piece = match first {
            Poll::Ready(None) => return (Body::empty(), Self { feed: None }),
            Poll::Ready(Some(piece)) => Some(piece),
            Poll::Pending => None,
        };
        if let Some(piece) = &piece
            && call.poll_read(cx) == Poll::Ready(None)
        {
            return (Body::whole(piece.clone()), Self { feed: None });
        }
        let (feed, fed) = feed(length, piece);
        (Body::fed(fed), Self { feed: Some(feed) })
    }

    /// Polls what may be reading the body, and feeds it as it asks for more.
    pub(crate) fn alongside<T>(
        &mut self,
        call: &mut Call,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Call, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        for _ in 0..LOOKS_MAX {
            let polled = poll(call, cx);
            if polled.is_ready() || !self.pass_on(call, cx) {
                return polled;
            }
        }
        // It goes on in its worker's next turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Hands a piece on, or the end, if that is wanted and there; whether there was something.
    fn pass_on(&mut self, call: &mut Call, cx: &mut Context<'_>) -> bool {
        let Some(feed) = &self.feed else { return false };
        match feed.poll_demand(cx) {
            Poll::Pending => return false,
            Poll::Ready(Demand::Deserted) => {
                self.feed = None;
                return false;
            }
            Poll::Ready(Demand::Wanted) => {}
        }
        match call.poll_take(cx) {
            Poll::Pending => return false,
            Poll::Ready(Some(piece)) => feed.push(Bytes::from(piece), cx),
            Poll::Ready(None) => self.feed.take().into_iter().for_each(|feed| feed.finish(cx)),
        }
        true
    }
}

/// What is there of a body. A little is copied to where heads are, so that the call's own memory stays with it.
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
