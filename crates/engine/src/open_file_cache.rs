//! A short-lived cache of file responses, so that concurrent requests share an open file.

use std::rc::Rc;

use shearwater_io::Item;

use crate::limits::{CACHED_OPEN_FILE_MS_MAX, CACHED_OPEN_FILES_MAX};
use crate::prebuilt::Prebuilt;

/// File responses of the last moments, at most `CACHED_OPEN_FILES_MAX`. Other caches hold them by `Weak`, so
/// that no deleted file stays open any longer.
#[derive(Default)]
pub(crate) struct OpenFileCache {
    responses: Vec<Rc<Prebuilt>>,
    /// Time at which the current entries are dropped, if any outlast their turn.
    until_ms: Option<u64>,
}

impl OpenFileCache {
    /// Caches a response if its body is a file that isn't held elsewhere, and there is room.
    #[inline]
    pub(crate) fn keep(&mut self, response: Rc<Prebuilt>) {
        let is_held = Rc::strong_count(&response) > 1;
        if matches!(response.body(), Item::File(_))
            && !is_held
            && self.responses.len() < CACHED_OPEN_FILES_MAX
        {
            self.responses.push(response);
        }
    }

    /// Drops files that may change at any moment; the rest after `CACHED_OPEN_FILE_MS_MAX`.
    #[inline]
    pub(crate) fn end_turn(&mut self, now_ms: u64) {
        if !self.responses.is_empty() {
            self.evict(now_ms);
        }
    }

    fn evict(&mut self, now_ms: u64) {
        if self.until_ms.is_some_and(|until_ms| until_ms <= now_ms) {
            self.responses.clear();
        } else {
            self.responses.retain(|response| is_left_alone(response));
        }
        let until_ms =
            self.until_ms.filter(|until_ms| now_ms < *until_ms).unwrap_or(now_ms + CACHED_OPEN_FILE_MS_MAX);
        self.until_ms = (!self.responses.is_empty()).then_some(until_ms);
    }

    /// Returns the time at which entries are to be dropped.
    #[inline]
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.until_ms
    }
}

/// Returns true if the file has not changed recently; a recently changed one is copied.
fn is_left_alone(response: &Prebuilt) -> bool {
    matches!(response.body(), Item::File(slice) if slice.file.is_lent())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::rc::Rc;

    use shearwater_io::{FileSlice, Item, Shared, SharedFile};

    use super::{CACHED_OPEN_FILE_MS_MAX, CACHED_OPEN_FILES_MAX, OpenFileCache};
    use crate::{FieldLines, Prebuilt};

    fn response(body: Item) -> Rc<Prebuilt> {
        Rc::new(Prebuilt::new("text/plain", &FieldLines::new(), body).expect("a media type"))
    }

    fn opened() -> SharedFile {
        SharedFile::new(File::open(std::env::current_exe().expect("this program")).expect("it can be read"))
    }

    fn file_of(file: SharedFile) -> Rc<Prebuilt> {
        response(Item::File(FileSlice { file: Rc::new(file), offset: 0, len: 1 }))
    }

    fn file() -> Rc<Prebuilt> {
        file_of(opened())
    }

    #[test]
    fn a_file_lasts_a_moment_and_memory_does_not() {
        let mut open_files = OpenFileCache::default();
        let (file, memory) = (file(), response(Item::Shared(Shared::Static(b"x"))));
        let weak = [Rc::downgrade(&file), Rc::downgrade(&memory)];
        open_files.keep(file);
        open_files.keep(memory);
        assert!(weak[0].upgrade().is_some() && weak[1].upgrade().is_none());
        open_files.end_turn(1_000);
        assert_eq!(open_files.due_ms(), Some(1_000 + CACHED_OPEN_FILE_MS_MAX));
        open_files.end_turn(1_000 + CACHED_OPEN_FILE_MS_MAX - 1);
        assert!(weak[0].upgrade().is_some());
        open_files.end_turn(1_000 + CACHED_OPEN_FILE_MS_MAX);
        assert!(weak[0].upgrade().is_none() && open_files.due_ms().is_none());
    }

    /// The first entry's deadline holds for later entries, however often they are used.
    #[test]
    fn the_first_one_decides_when_all_are_let_go_of() {
        let mut open_files = OpenFileCache::default();
        open_files.keep(file());
        open_files.end_turn(0);
        let later = file();
        let weak = Rc::downgrade(&later);
        open_files.keep(later);
        open_files.end_turn(CACHED_OPEN_FILE_MS_MAX - 1);
        assert!(weak.upgrade().is_some());
        open_files.end_turn(CACHED_OPEN_FILE_MS_MAX + 7);
        assert!(weak.upgrade().is_none());
        open_files.keep(file());
        open_files.end_turn(CACHED_OPEN_FILE_MS_MAX + 8);
        assert_eq!(open_files.due_ms(), Some(2 * CACHED_OPEN_FILE_MS_MAX + 8));
    }

    #[test]
    fn what_was_changed_a_moment_ago_goes_with_its_turn() {
        let mut open_files = OpenFileCache::default();
        let file = file_of(opened().copied());
        let weak = Rc::downgrade(&file);
        open_files.keep(file);
        assert!(weak.upgrade().is_some());
        open_files.end_turn(0);
        assert!(weak.upgrade().is_none() && open_files.due_ms().is_none());
    }

    #[test]
    fn a_bounded_number_of_files_lasts() {
        let mut open_files = OpenFileCache::default();
        let one = file();
        let found = Rc::downgrade(&one);
        open_files.keep(one);
        for _ in 0..3 {
            open_files.keep(found.upgrade().expect("it is kept"));
        }
        assert_eq!(open_files.responses.len(), 1);
        let weak: Vec<_> = (0..2 * CACHED_OPEN_FILES_MAX)
            .map(|_| {
                let file = file();
                let weak = Rc::downgrade(&file);
                open_files.keep(file);
                weak
            })
            .collect();
        assert_eq!(weak.iter().filter(|weak| weak.upgrade().is_some()).count(), CACHED_OPEN_FILES_MAX - 1);
    }
}
