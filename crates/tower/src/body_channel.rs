//! A channel for a request body, from the worker to a reader on any thread. It holds one piece at most.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};

/// An error of reading a request body to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError {
    /// The request has ended: its client disconnected, the body was rejected, or the response was completed first.
    Over,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over => f.write_str("the request ended before its body was read"),
        }
    }
}

impl std::error::Error for BodyError {}

/// The state shared by both ends.
#[derive(Debug, Default)]
struct State {
    /// The piece to be read.
    piece: Option<Bytes>,
    /// The end of the body after the piece, if it has ended.
    end: Option<End>,
    /// The trailers to be read after the piece.
    trailers: Option<Box<HeaderMap>>,
    /// The reader has polled.
    is_wanted: bool,
    /// The reader was dropped.
    is_closed: bool,
    reader: Option<Waker>,
    sender: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Complete,
    Cut,
}

/// Creates a channel. `piece` is the body's beginning.
pub(crate) fn channel(length: BodyLength, piece: Option<Bytes>) -> (BodySender, BodyReceiver) {
    let state = Arc::new(Mutex::new(State { piece, ..State::default() }));
    let BodyLength { bytes, may_have_trailers } = length;
    let receiver = BodyReceiver { state: Arc::clone(&state), left: bytes, may_have_trailers };
    (BodySender { state }, receiver)
}

/// The length of a body before it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLength {
    /// Its bytes, if known.
    pub(crate) bytes: Option<u64>,
    /// Trailers may follow it.
    pub(crate) may_have_trailers: bool,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing panics while the lock is held.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores a task's waker.
fn store(waker: &mut Option<Waker>, cx: &Context<'_>) {
    match waker {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *waker = Some(cx.waker().clone()),
    }
}

/// The sending end. Dropped before [`finish`](Self::finish), it cuts the body off.
#[derive(Debug)]
pub(crate) struct BodySender {
    state: Arc<Mutex<State>>,
}

/// The state of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand {
    /// The reader wants a piece.
    Wanted,
    /// The reader was dropped.
    Closed,
}

impl BodySender {
    /// Waits until the reader wants a piece or is dropped.
    pub(crate) fn poll_demand(&self, cx: &Context<'_>) -> Poll<Demand> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Poll::Ready(Demand::Closed);
        }
        if state.is_wanted && state.piece.is_none() {
            return Poll::Ready(Demand::Wanted);
        }
        store(&mut state.sender, cx);
        Poll::Pending
    }

    /// Passes on a piece that was [wanted](Self::poll_demand). Doesn't wake a reader with the waker of `cx`, which
    /// polls it next.
    pub(crate) fn push(&self, piece: Bytes, cx: &Context<'_>) {
        let mut state = lock(&self.state);
        debug_assert!(state.piece.is_none(), "the channel holds one piece");
        state.piece = Some(piece);
        let reader = state.reader.take();
        drop(state);
        wake_other(reader, cx);
    }

    /// Marks the body as complete, with these trailers.
    pub(crate) fn finish(self, trailers: Option<Box<HeaderMap>>, cx: &Context<'_>) {
        let mut state = lock(&self.state);
        (state.end, state.trailers) = (Some(End::Complete), trailers);
        let reader = state.reader.take();
        drop(state);
        wake_other(reader, cx);
    }
}

fn wake_other(waker: Option<Waker>, cx: &Context<'_>) {
    if let Some(waker) = waker.filter(|waker| !waker.will_wake(cx.waker())) {
        waker.wake();
    }
}

impl Drop for BodySender {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.end.get_or_insert(End::Cut);
        let reader = state.reader.take();
        drop(state);
        if let Some(waker) = reader {
            waker.wake();
        }
    }
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct BodyReceiver {
    state: Arc<Mutex<State>>,
    /// The number of bytes to come, if known.
    left: Option<u64>,
    /// The body isn't complete with its last byte.
    may_have_trailers: bool,
}

impl BodyReceiver {
    /// Returns the next piece, then the trailers if there are any; `None` at the end.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut state = lock(&self.state);
        state.is_wanted = true;
        let Some(piece) = state.piece.take() else { return self.poll_end(state, cx) };
        let sender = state.sender.take();
        drop(state);
        wake_other(sender, cx);
        self.left = self.left.map(|left| left.saturating_sub(piece.len() as u64));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    /// Handles an empty channel.
    fn poll_end(
        &self,
        mut state: MutexGuard<'_, State>,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match state.end {
            Some(End::Complete) => {
                Poll::Ready(state.trailers.take().map(|trailers| Ok(Frame::trailers(*trailers))))
            }
            Some(End::Cut) => Poll::Ready(Some(Err(BodyError::Over))),
            None => {
                store(&mut state.reader, cx);
                let sender = state.sender.take();
                drop(state);
                wake_other(sender, cx);
                Poll::Pending
            }
        }
    }

    /// Returns true if neither a piece nor trailers will follow.
    pub(crate) fn is_at_end(&self) -> bool {
        if self.left == Some(0) && !self.may_have_trailers {
            return true;
        }
        let state = lock(&self.state);
        state.piece.is_none() && state.trailers.is_none() && state.end == Some(End::Complete)
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

impl Drop for BodyReceiver {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.piece = None;
        let sender = state.sender.take();
        drop(state);
        if let Some(waker) = sender {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use bytes::Bytes;

    use super::{BodyError, BodyLength, Demand, channel};

    /// A waker that counts.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Count {
        fn new() -> (Arc<Self>, Waker) {
            let count = Arc::<Self>::default();
            (Arc::clone(&count), Waker::from(count))
        }

        fn get(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    const PIECE: Bytes = Bytes::from_static(b"piece");
    const UNKNOWN: BodyLength = BodyLength { bytes: None, may_have_trailers: true };
    const TEN: BodyLength = BodyLength { bytes: Some(10), may_have_trailers: false };

    #[test]
    fn passes_one_piece_at_a_time_on_demand() {
        let ((sender_wakes, feeder), (reader_wakes, reader)) = (Count::new(), Count::new());
        let (feeding, reading) = (Context::from_waker(&feeder), Context::from_waker(&reader));
        let (sender, mut receiver) = channel(UNKNOWN, None);
        assert!(sender.poll_demand(&feeding).is_pending());
        assert!(receiver.poll(&reading).is_pending());
        assert_eq!(sender_wakes.get(), 1, "the sender is woken");
        assert_eq!(sender.poll_demand(&feeding), Poll::Ready(Demand::Wanted));
        sender.push(PIECE, &feeding);
        assert_eq!(reader_wakes.get(), 1, "the reader is woken");
        assert!(sender.poll_demand(&feeding).is_pending(), "the channel is full");
        assert!(
            matches!(receiver.poll(&reading), Poll::Ready(Some(Ok(frame))) if frame.data_ref() == Some(&PIECE))
        );
        assert_eq!(sender_wakes.get(), 2);
        assert_eq!(sender.poll_demand(&feeding), Poll::Ready(Demand::Wanted), "the next piece is prefetched");
        assert!(receiver.poll(&reading).is_pending());
        sender.finish(None, &feeding);
        assert_eq!(reader_wakes.get(), 2);
        assert!(receiver.is_at_end());
        assert!(matches!(receiver.poll(&reading), Poll::Ready(None)));
    }

    #[test]
    fn skips_wakes_within_one_task() {
        let (count, waker) = Count::new();
        let cx = Context::from_waker(&waker);
        let (sender, mut receiver) = channel(UNKNOWN, None);
        assert!(sender.poll_demand(&cx).is_pending());
        assert!(receiver.poll(&cx).is_pending());
        sender.push(PIECE, &cx);
        assert!(receiver.poll(&cx).is_ready());
        assert!(receiver.poll(&cx).is_pending());
        sender.finish(None, &cx);
        assert!(matches!(receiver.poll(&cx), Poll::Ready(None)));
        assert_eq!(count.get(), 0);
    }

    #[test]
    fn counts_down_the_remaining_length() {
        let cx = Context::from_waker(Waker::noop());
        let (sender, mut receiver) = channel(TEN, Some(PIECE));
        assert_eq!(receiver.size_hint().exact(), Some(10));
        assert!(receiver.poll(&cx).is_ready());
        assert_eq!((receiver.size_hint().exact(), receiver.is_at_end()), (Some(5), false));
        sender.push(PIECE, &cx);
        assert!(receiver.poll(&cx).is_ready());
        assert_eq!((receiver.size_hint().exact(), receiver.is_at_end()), (Some(0), true));

        let (sender, mut receiver) =
            channel(BodyLength { bytes: Some(5), may_have_trailers: true }, Some(PIECE));
        assert!(receiver.poll(&cx).is_ready());
        assert_eq!((receiver.size_hint().exact(), receiver.is_at_end()), (Some(0), false));
        sender.finish(None, &cx);
        assert!(receiver.is_at_end());
    }

    #[test]
    fn notices_that_the_other_end_was_dropped() {
        let (count, waker) = Count::new();
        let cx = Context::from_waker(&waker);
        let (sender, mut receiver) = channel(UNKNOWN, Some(PIECE));
        assert!(matches!(receiver.poll(&cx), Poll::Ready(Some(Ok(_)))));
        assert!(receiver.poll(&cx).is_pending());
        drop(sender);
        assert_eq!(count.get(), 1);
        assert!(matches!(receiver.poll(&cx), Poll::Ready(Some(Err(BodyError::Over)))));
        assert!(!receiver.is_at_end());

        let (sender, receiver) = channel(UNKNOWN, None);
        assert!(sender.poll_demand(&cx).is_pending());
        drop(receiver);
        assert_eq!(count.get(), 2);
        assert_eq!(sender.poll_demand(&cx), Poll::Ready(Demand::Closed));
    }
}
