//! The states of a file over time.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use testkit::versions::VersionedFile;

/// Version and length of a file; `None` while it doesn't exist.
pub(super) type State = Option<(u32, u64)>;

/// A state, from before the change that led to it until after the change that ended it.
#[derive(Debug, Clone, Copy)]
struct StateSpan {
    state: State,
    from: Instant,
    until: Option<Instant>,
}

/// All states of a file.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<Vec<StateSpan>>);

impl History {
    /// Records that a change to this state begins.
    pub(super) fn begin(&self, state: State) {
        self.spans().push(StateSpan { state, from: Instant::now(), until: None });
    }

    /// Records that the change is done: the state before it is over.
    pub(super) fn done(&self) {
        let now = Instant::now();
        if let [.., before, _] = &mut self.spans()[..] {
            before.until.get_or_insert(now);
        }
    }

    /// Returns true if the file may have had this state at some moment of this time.
    pub(super) fn had(&self, state: State, from: Instant, until: Instant) -> bool {
        let overlaps = |span: &&StateSpan| span.from <= until && span.until.is_none_or(|ended| ended >= from);
        self.spans().iter().rev().filter(overlaps).any(|span| span.state == state)
    }

    /// Returns true if a change may have been under way at some moment of this time.
    pub(super) fn was_changing(&self, from: Instant, until: Instant) -> bool {
        let overlaps =
            |pair: &[StateSpan]| pair[1].from <= until && pair[0].until.is_none_or(|ended| ended >= from);
        self.spans().windows(2).rev().any(overlaps)
    }

    fn spans(&self) -> MutexGuard<'_, Vec<StateSpan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One form of a served file, with its history.
#[derive(Debug)]
pub(super) struct FileForm {
    pub(super) file: VersionedFile,
    pub(super) history: History,
    /// The state that each entity tag belongs to, by whole responses.
    tags: Mutex<HashMap<String, State>>,
    /// Versions that were received.
    versions: Mutex<HashSet<u32>>,
}

impl FileForm {
    pub(super) fn new(file: VersionedFile) -> Self {
        Self { file, history: History::default(), tags: Mutex::default(), versions: Mutex::default() }
    }

    pub(super) fn replace(&self, version: u32) -> io::Result<()> {
        self.change(Some((version, self.file.len as u64)), || self.file.replace(version))
    }

    pub(super) fn rewrite(&self, version: u32) -> io::Result<()> {
        self.change(Some((version, self.file.len as u64)), || self.file.rewrite(version))
    }

    /// Cuts the file to half its length.
    pub(super) fn truncate(&self, version: u32) -> io::Result<()> {
        let len = self.file.len as u64 / 2;
        self.change(Some((version, len)), || self.file.truncate(len))
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        self.change(None, || self.file.remove())
    }

    fn change(&self, state: State, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.history.begin(state);
        change()?;
        self.history.done();
        Ok(())
    }

    /// Records the state of a tag. Returns the state that the tag belonged to before, if that is another one.
    pub(super) fn record_tag(&self, tag: &str, state: State) -> Option<State> {
        let known = *self.known_tags().entry(opaque(tag).to_owned()).or_insert(state);
        (known != state).then_some(known)
    }

    /// Returns the state that a tag belongs to.
    pub(super) fn state_of(&self, tag: &str) -> Option<State> {
        self.known_tags().get(opaque(tag)).copied()
    }

    /// Notes a version that was received.
    pub(super) fn note_version(&self, version: u32) {
        self.known_versions().insert(version);
    }

    /// Returns the number of versions that were received.
    pub(super) fn versions(&self) -> usize {
        self.known_versions().len()
    }

    fn known_versions(&self) -> MutexGuard<'_, HashSet<u32>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_tags(&self) -> MutexGuard<'_, HashMap<String, State>> {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an entity tag without its mark of weakness: a weak tag becomes strong when its file is left alone.
pub(super) fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::History;

    #[test]
    fn a_state_lasts_until_the_next_change_is_done() {
        let history = History::default();
        let (one, two) = (Some((1, 8)), Some((2, 8)));
        history.begin(one);
        history.done();
        let early = Instant::now();
        history.begin(two);
        let between = Instant::now();
        assert!(history.had(one, between, between) && history.had(two, between, between));
        assert!(history.was_changing(between, between));
        history.done();
        let (late, before) = (Instant::now() + Duration::from_nanos(1), early - Duration::from_secs(1));
        assert!(history.was_changing(early, late) && !history.was_changing(late, late));
        assert!(history.had(one, early, late) && !history.had(one, late, late));
        assert!(history.had(two, late, late) && !history.had(two, before, early));
        assert!(!history.had(None, early, late));
    }
}
