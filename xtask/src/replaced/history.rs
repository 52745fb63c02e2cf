//! What a file was when: held against what a client got.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What a file is: of which generation and how long. `None`: it isn't there.
pub(super) type State = Option<(u32, u64)>;

/// A state, from before the change that led to it until after the one that led out of it.
#[derive(Debug, Clone, Copy)]
struct Span {
    state: State,
    from: Instant,
    until: Option<Instant>,
}

/// All that a file has been.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<Vec<Span>>);

impl History {
    /// A change is about to lead to this state.
    pub(super) fn begin(&self, state: State) {
        self.spans().push(Span { state, from: Instant::now(), until: None });
    }

    /// The change is over: what was before is no more.
    pub(super) fn done(&self) {
        let now = Instant::now();
        let mut spans = self.spans();
        let before = spans.len().saturating_sub(1);
        // Only the one before the last can be open.
        if let Some(span) = spans[..before].last_mut() {
            span.until.get_or_insert(now);
        }
    }

    /// Whether the file may have been so at some moment of this time.
    pub(super) fn was(&self, state: State, from: Instant, until: Instant) -> bool {
        let is_then = |span: &&Span| span.from <= until && span.until.is_none_or(|ended| ended >= from);
        self.spans().iter().rev().filter(is_then).any(|span| span.state == state)
    }

    /// Whether a change may have been under way at some moment of this time: what was before is then still, and what comes already.
    pub(super) fn was_changing(&self, from: Instant, until: Instant) -> bool {
        let overlaps =
            |pair: &[Span]| pair[1].from <= until && pair[0].until.is_none_or(|ended| ended >= from);
        self.spans().windows(2).rev().any(overlaps)
    }

    fn spans(&self) -> MutexGuard<'_, Vec<Span>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::History;
    use std::time::{Duration, Instant};

    #[test]
    fn a_state_lasts_until_the_next_change_is_over() {
        let history = History::default();
        let (one, two) = (Some((1, 8)), Some((2, 8)));
        history.begin(one);
        history.done();
        let early = Instant::now();
        history.begin(two);
        let between = Instant::now();
        assert!(history.was(one, between, between) && history.was(two, between, between));
        assert!(history.was_changing(between, between));
        history.done();
        let late = Instant::now() + Duration::from_nanos(1);
        assert!(history.was_changing(early, late) && !history.was_changing(late, late));
        assert!(!history.was_changing(early - Duration::from_secs(1), early - Duration::from_nanos(1)));
        assert!(history.was(one, early, late) && !history.was(one, late, late));
        assert!(history.was(two, late, late) && !history.was(two, early - Duration::from_secs(1), early));
        assert!(!history.was(None, early, late));
    }
}
