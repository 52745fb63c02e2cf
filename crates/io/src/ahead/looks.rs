//! Recent page-cache checks: many downloads of one file share one check.

use crate::limits::{FETCH_CHECK_MS, FETCH_CHECKS_MAX};
use crate::shared_file::Inode;

/// A cached range of each of the files checked most recently, at most `FETCH_CHECKS_MAX`.
#[derive(Debug, Default)]
pub(super) struct CheckedRanges {
    found: Vec<(Inode, CheckedRange)>,
    /// Index of the entry to replace once the table is full.
    oldest: usize,
}

/// A range found in the page cache.
#[derive(Debug, Clone, Copy)]
struct CheckedRange {
    from: u64,
    until: u64,
    /// Time of the oldest check that it covers, by the driver's clock.
    checked_ms: u64,
}

impl CheckedRanges {
    /// Returns whether all of a range was recently found in the page cache.
    pub(super) fn hold(&self, file: Inode, offset: u64, len: u64, now_ms: u64) -> bool {
        let known = self.found.iter().find(|(inode, _)| *inode == file);
        known.is_some_and(|(_, found)| {
            found.holds(now_ms) && found.from <= offset && offset + len <= found.until
        })
    }

    /// Records that all of a range is in the page cache.
    pub(super) fn note(&mut self, file: Inode, offset: u64, len: u64, now_ms: u64) {
        let new = CheckedRange { from: offset, until: offset + len, checked_ms: now_ms };
        if let Some((_, found)) = self.found.iter_mut().find(|(inode, _)| *inode == file) {
            *found = found.joined(new);
        } else if self.found.len() < FETCH_CHECKS_MAX {
            self.found.push((file, new));
        } else {
            self.found[self.oldest] = (file, new);
            self.oldest = (self.oldest + 1) % FETCH_CHECKS_MAX;
        }
    }
}

impl CheckedRange {
    fn holds(self, now_ms: u64) -> bool {
        now_ms < self.checked_ms + FETCH_CHECK_MS
    }

    /// Merges adjoining ranges, keeping the older time; otherwise returns the new one.
    fn joined(self, new: Self) -> Self {
        let adjoins = self.holds(new.checked_ms) && new.from <= self.until && self.from <= new.until;
        if !adjoins {
            return new;
        }
        Self { from: new.from.min(self.from), until: new.until.max(self.until), checked_ms: self.checked_ms }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::{CheckedRanges, FETCH_CHECK_MS, FETCH_CHECKS_MAX, Inode};
    use crate::SharedFile;

    fn inode(path: &str) -> Inode {
        let file = SharedFile::new(File::open(path).expect("the file opens"));
        file.inode().expect("the system reports it")
    }

    #[test]
    fn what_was_found_holds_for_a_moment_and_for_this_file() {
        let (mut looks, file) = (CheckedRanges::default(), inode("/dev/null"));
        assert!(!looks.hold(file, 0, 1, 0), "no check was made");
        looks.note(file, 100, 50, 7);
        for now_ms in [7, 7 + FETCH_CHECK_MS - 1] {
            assert!(looks.hold(file, 100, 50, now_ms) && looks.hold(file, 120, 30, now_ms));
            assert!(!looks.hold(file, 99, 2, now_ms) && !looks.hold(file, 149, 2, now_ms));
        }
        assert!(!looks.hold(inode("/dev/zero"), 100, 50, 7));
        assert!(!looks.hold(file, 100, 50, 7 + FETCH_CHECK_MS));
    }

    #[test]
    fn adjoining_stretches_become_one_of_the_older_look() {
        let (mut looks, file) = (CheckedRanges::default(), inode("/dev/null"));
        looks.note(file, 100, 50, 7);
        looks.note(file, 150, 50, 7 + FETCH_CHECK_MS - 1);
        assert!(looks.hold(file, 100, 100, 7 + FETCH_CHECK_MS - 1));
        assert!(!looks.hold(file, 150, 50, 7 + FETCH_CHECK_MS), "the first check expires");
        looks.note(file, 1000, 50, 8);
        assert!(
            looks.hold(file, 1000, 50, 8) && !looks.hold(file, 100, 50, 8),
            "a distant range is separate"
        );
    }

    #[test]
    fn a_bounded_number_of_files_is_remembered() {
        let (mut looks, file) = (CheckedRanges::default(), inode("/dev/null"));
        let files: Vec<_> = (0..2 * FETCH_CHECKS_MAX as u64).map(|ino| Inode { ino, ..file }).collect();
        for file in &files {
            looks.note(*file, 0, 1, 7);
        }
        let held: Vec<_> = files.iter().map(|file| looks.hold(*file, 0, 1, 7)).collect();
        assert_eq!(held, [[false; FETCH_CHECKS_MAX], [true; FETCH_CHECKS_MAX]].concat(), "the latest checks");
    }
}
