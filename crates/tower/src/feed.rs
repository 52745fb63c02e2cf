//! A body on its way from the worker that receives it to whoever reads it, on whatever thread: one piece waits at most.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::SizeHint;

use crate::body_error::BodyError;

/// What both ends share.
#[derive(Debug, Default)]
struct State {
    /// The piece that waits to be read.
    piece: Option<Bytes>,
    /// Nothing comes behind the piece: that was all, or it was cut off.
    end: Option<End>,
    /// Somebody has begun to read.
    is_wanted: bool,
    /// Nobody will read on.
    is_deserted: bool,
    reader: Option<Waker>,
    feeder: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Complete,
    Cut,
}

/// Ends of a new body; `length` is its length in bytes, where that is known, and `piece` what there is of it already.
pub(crate) fn feed(length: Option<u64>, piece: Option<Bytes>) -> (Feed, Fed) {
    let state = Arc::new(Mutex::new(State { piece, ..State::default() }));
    (Feed { state: Arc::clone(&state) }, Fed { state, left: length })
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing panics while it is held.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the waker of who waits now.
fn keep(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *place = Some(cx.waker().clone()),
    }
}

/// The end that is fed. Dropped early, it cuts the body off.
#[derive(Debug)]
pub(crate) struct Feed {
    state: Arc<Mutex<State>>,
}

/// What the reader has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand {
    /// It takes a piece.
    Wanted,
    /// It is gone.
    Deserted,
}

impl Feed {
    /// Waits until the reader takes a piece, or is gone.
    pub(crate) fn poll_demand(&self, cx: &Context<'_>) -> Poll<Demand> {
        let mut state = lock(&self.state);
        if state.is_deserted {
            return Poll::Ready(Demand::Deserted);
        }
        if state.is_wanted && state.piece.is_none() {
            return Poll::Ready(Demand::Wanted);
        }
        keep(&mut state.feeder, cx);
        Poll::Pending
    }

    /// Hands a piece on, which was [wanted](Self::poll_demand). A reader that waits with the waker of `cx` is not woken: who feeds
    /// it polls it next.
    pub(crate) fn push(&self, piece: Bytes, cx: &Context<'_>) {
        let mut state = lock(&self.state);
        debug_assert!(state.piece.is_none(), "one piece waits at most");
        state.piece = Some(piece);
        let reader = state.reader.take();
        drop(state);
        wake_other(reader, cx);
    }

    /// That was all of it.
    pub(crate) fn finish(self, cx: &Context<'_>) {
        let mut state = lock(&self.state);
        state.end = Some(End::Complete);
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

impl Drop for Feed {
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

/// The end that is read.
#[derive(Debug)]
pub(crate) struct Fed {
    state: Arc<Mutex<State>>,
    /// What is still to come, in bytes.
    left: Option<u64>,
}

impl Fed {
    /// The next piece; `None` at the end.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let mut state = lock(&self.state);
        state.is_wanted = true;
        let Some(piece) = state.piece.take() else { return self.poll_end(state, cx) };
        let feeder = state.feeder.take();
        drop(state);
        wake_other(feeder, cx);
        self.left = self.left.map(|left| left.saturating_sub(piece.len() as u64));
        Poll::Ready(Some(Ok(piece)))
    }

    /// There is no piece.
    fn poll_end(
        &self,
        mut state: MutexGuard<'_, State>,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Bytes, BodyError>>> {
        match state.end {
            Some(End::Complete) => Poll::Ready(None),
            Some(End::Cut) => Poll::Ready(Some(Err(BodyError::Over))),
            None => {
                keep(&mut state.reader, cx);
                let feeder = state.feeder.take();
                drop(state);
                wake_other(feeder, cx);
                Poll::Pending
            }
        }
    }

    /// Whether nothing more will come.
    pub(crate) fn is_at_end(&self) -> bool {
        if self.left == Some(0) {
            return true;
        }
        let state = lock(&self.state);
        state.piece.is_none() && state.end == Some(End::Complete)
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.is_deserted = true;
        state.piece = None;
        let feeder = state.feeder.take();
        drop(state);
        if let Some(waker) = feeder {
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

    use super::{BodyError, Demand, Fed, feed};

    /// Counts how often it is woken.
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

    fn is_send_and_sync<T: Send + Sync>() {}

    #[test]
    fn it_may_be_read_from_any_thread() {
        is_send_and_sync::<Fed>();
        is_send_and_sync::<crate::Body>();
    }

    #[test]
    fn nothing_is_wanted_before_somebody_reads_and_one_piece_waits_at_most() {
        let ((asked, feeder), (told, reader)) = (Count::new(), Count::new());
        let (feeding, reading) = (Context::from_waker(&feeder), Context::from_waker(&reader));
        let (feed, mut fed) = feed(None, None);
        assert!(feed.poll_demand(&feeding).is_pending());
        assert!(fed.poll(&reading).is_pending());
        assert_eq!(asked.get(), 1, "whoever feeds is told");
        assert_eq!(feed.poll_demand(&feeding), Poll::Ready(Demand::Wanted));
        feed.push(PIECE, &feeding);
        assert_eq!(told.get(), 1, "whoever reads is told");
        assert!(feed.poll_demand(&feeding).is_pending(), "one waits");
        assert!(matches!(fed.poll(&reading), Poll::Ready(Some(Ok(piece))) if piece == PIECE));
        assert_eq!(asked.get(), 2);
        assert_eq!(feed.poll_demand(&feeding), Poll::Ready(Demand::Wanted), "the next is fetched ahead");
        assert!(fed.poll(&reading).is_pending());
        feed.finish(&feeding);
        assert_eq!(told.get(), 2);
        assert!(fed.is_at_end());
        assert!(matches!(fed.poll(&reading), Poll::Ready(None)));
    }

    #[test]
    fn who_is_polled_next_anyway_is_not_woken() {
        let (count, waker) = Count::new();
        let cx = Context::from_waker(&waker);
        let (feed, mut fed) = feed(None, None);
        assert!(feed.poll_demand(&cx).is_pending());
        assert!(fed.poll(&cx).is_pending());
        feed.push(PIECE, &cx);
        assert!(fed.poll(&cx).is_ready());
        assert!(fed.poll(&cx).is_pending());
        feed.finish(&cx);
        assert!(matches!(fed.poll(&cx), Poll::Ready(None)));
        assert_eq!(count.get(), 0);
    }

    #[test]
    fn the_length_is_what_is_left() {
        let cx = Context::from_waker(Waker::noop());
        let (feed, mut fed) = feed(Some(10), Some(PIECE));
        assert_eq!(fed.size_hint().exact(), Some(10));
        assert!(fed.poll(&cx).is_ready());
        assert_eq!((fed.size_hint().exact(), fed.is_at_end()), (Some(5), false));
        feed.push(PIECE, &cx);
        assert!(fed.poll(&cx).is_ready());
        assert_eq!((fed.size_hint().exact(), fed.is_at_end()), (Some(0), true));
    }

    #[test]
    fn who_goes_is_noticed_by_the_other() {
        let (count, waker) = Count::new();
        let cx = Context::from_waker(&waker);
        let (feeder, mut fed) = feed(None, Some(PIECE));
        assert!(matches!(fed.poll(&cx), Poll::Ready(Some(Ok(_)))));
        assert!(fed.poll(&cx).is_pending());
        drop(feeder);
        assert_eq!(count.get(), 1);
        assert!(matches!(fed.poll(&cx), Poll::Ready(Some(Err(BodyError::Over)))));
        assert!(!fed.is_at_end());

        let (feeder, fed) = feed(None, None);
        assert!(feeder.poll_demand(&cx).is_pending());
        drop(fed);
        assert_eq!(count.get(), 2);
        assert_eq!(feeder.poll_demand(&cx), Poll::Ready(Demand::Deserted));
    }
}
