//! An open file, as the sends of one worker share it.

use std::cell::Cell;
use std::fs::File;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::fs::Meta;
use crate::limits::LOOK_LASTS_MS;

/// An open file that several sends of one worker share.
///
/// It remembers which stretch of it was last found in memory: many clients that load one file need no look each.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// use std::rc::Rc;
///
/// use shearwater_io::{FileSlice, SharedFile};
///
/// let file = Rc::new(SharedFile::new(std::fs::File::open("/dev/null")?));
/// let slice = FileSlice { file: Rc::clone(&file), offset: 0, len: 100 };
/// assert!(!slice.file.metadata()?.is_file());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SharedFile {
    /// Counted for the thread that reads ahead, which takes part in it.
    file: Arc<File>,
    /// What was said of the file where it is to stay as it is.
    promised: Option<Meta>,
    is_lent: bool,
    found: Cell<Found>,
}

/// A stretch that was found in memory.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    from: u64,
    until: u64,
    /// When the first look at any of it was taken, on the driver's clock.
    looked_ms: u64,
}

impl SharedFile {
    /// Takes the file in. It is sent as it is at each moment, and its pages are lent to the kernel where that takes them.
    #[must_use]
    pub fn new(file: File) -> Self {
        Self { file: Arc::new(file), promised: None, is_lent: true, found: Cell::default() }
    }

    /// The same, to be sent in this version alone: the last bytes of each piece are held back until a look has shown that the
    /// content is the same still (clause S10).
    #[must_use]
    pub fn in_version(self, meta: Meta) -> Self {
        Self { promised: Some(meta), ..self }
    }

    /// The same, to be copied into the socket. Pages that are lent (`sendfile`) cost less, but what is written into the file before
    /// the client has read them is read by the client too, and no look can tell.
    #[must_use]
    pub fn copied(self) -> Self {
        Self { is_lent: false, ..self }
    }

    /// Whether the kernel is to send the file's own pages, where it can.
    #[must_use]
    pub fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Whether the content is still the promised one, as far as the system tells. A call of the system, where anything was promised.
    pub(crate) fn is_as_promised(&self) -> bool {
        let Some(promised) = &self.promised else { return true };
        Meta::of(&self.file).is_ok_and(|now| promised.has_same_content(&now))
    }

    /// The file, for another thread.
    pub(crate) fn part(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Whether all of a stretch was found in memory a moment ago.
    pub(crate) fn was_found(&self, offset: u64, len: u64, now_ms: u64) -> bool {
        let found = self.found.get();
        found.holds(now_ms) && found.from <= offset && offset + len <= found.until
    }

    /// Notes that all of a stretch is in memory now.
    pub(crate) fn note_found(&self, offset: u64, len: u64, now_ms: u64) {
        let (from, until) = (offset, offset + len);
        let found = self.found.get();
        let adjoins = found.holds(now_ms) && from <= found.until && found.from <= until;
        self.found.set(if adjoins {
            Found { from: from.min(found.from), until: until.max(found.until), ..found }
        } else {
            Found { from, until, looked_ms: now_ms }
        });
    }
}

impl Found {
    fn holds(&self, now_ms: u64) -> bool {
        now_ms < self.looked_ms + LOOK_LASTS_MS
    }
}

impl Deref for SharedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl AsFd for SharedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{LOOK_LASTS_MS, SharedFile};
    use std::fs::File;

    fn file() -> SharedFile {
        SharedFile::new(File::open("/dev/null").expect("it can be opened"))
    }

    #[test]
    fn what_was_found_holds_for_a_moment() {
        let file = file();
        assert!(!file.was_found(0, 1, 0), "no look was taken");
        file.note_found(100, 50, 7);
        for now_ms in [7, 7 + LOOK_LASTS_MS - 1] {
            assert!(file.was_found(100, 50, now_ms) && file.was_found(120, 30, now_ms));
            assert!(!file.was_found(99, 2, now_ms) && !file.was_found(149, 2, now_ms));
        }
        assert!(!file.was_found(100, 50, 7 + LOOK_LASTS_MS));
    }

    #[test]
    fn adjoining_stretches_become_one_of_the_older_look() {
        let file = file();
        file.note_found(100, 50, 7);
        file.note_found(150, 50, 7 + LOOK_LASTS_MS - 1);
        assert!(file.was_found(100, 100, 7 + LOOK_LASTS_MS - 1));
        assert!(!file.was_found(150, 50, 7 + LOOK_LASTS_MS), "the first look is the one that ages");
    }

    #[test]
    fn a_stretch_elsewhere_takes_the_place_of_the_one_before() {
        let file = file();
        file.note_found(100, 50, 7);
        file.note_found(1000, 50, 8);
        assert!(file.was_found(1000, 50, 8) && !file.was_found(100, 50, 8));
    }
}
