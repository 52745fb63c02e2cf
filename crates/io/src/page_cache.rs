//! Page-cache checks of file ranges, with recent results, and reading ahead.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::AsFd;

use rustix::io::{Errno, retry_on_intr};

use crate::fs::Meta;
use crate::limits::{FETCH_CHECK_MS, FETCH_CHECKS_MAX};

/// Distance of page-cache checks, and size of a read that waits for the disk.
#[cfg(target_os = "linux")]
const STEP_BYTES: u64 = 64 * 1024;

/// Niceness of the read-ahead thread: about a tenth of a worker's share of a shared core.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Returns whether a range can be read without waiting for a disk. Checks a byte per step; what can't be
/// checked counts as cached.
#[cfg(target_os = "linux")]
pub(crate) fn are_in_memory(file: &File, offset: u64, len: u64) -> bool {
    steps(offset, len).all(|at| is_in_memory(file, at))
}

/// Returns an offset in each step, the last byte included.
#[cfg(target_os = "linux")]
fn steps(offset: u64, len: u64) -> impl Iterator<Item = u64> {
    let last = (offset + len).saturating_sub(1);
    (offset..last).step_by(STEP_BYTES as usize).chain([last])
}

#[cfg(target_os = "linux")]
fn is_in_memory(file: &File, offset: u64) -> bool {
    use rustix::io::{ReadWriteFlags, preadv2};
    let mut byte = [0; 1];
    let mut into = [IoSliceMut::new(&mut byte)];
    preadv2(file, &mut into, offset, ReadWriteFlags::NOWAIT) != Err(Errno::AGAIN)
}

/// Reads what is in the page cache from `offset` on, into one part after the other.
///
/// # Errors
/// `WouldBlock` if nothing is, `Unsupported` if the file system can't tell.
#[cfg(target_os = "linux")]
pub(crate) fn read_cached(file: &File, into: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize> {
    use rustix::io::{ReadWriteFlags, preadv2};
    match preadv2(file, into, offset, ReadWriteFlags::NOWAIT) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Err(std::io::ErrorKind::Unsupported.into()),
        read => Ok(read?),
    }
}

/// This system has no check.
#[cfg(not(target_os = "linux"))]
pub(crate) fn read_cached(_: &File, _: &mut [IoSliceMut<'_>], _: u64) -> std::io::Result<usize> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Reads metadata as it is cached: of a file on a server, without asking that.
#[cfg(target_os = "linux")]
pub(crate) fn known_meta(file: &File) -> std::io::Result<Meta> {
    use rustix::fs::{AtFlags, StatxFlags, makedev, statx};

    use crate::fs::Timestamp;
    let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    // Not the access time, which a read makes unknown.
    let wanted = StatxFlags::BASIC_STATS.difference(StatxFlags::ATIME);
    let known = statx(file, "", how, wanted)?;
    let time = |time: rustix::fs::StatxTimestamp| Timestamp::new(time.tv_sec, time.tv_nsec.into());
    Ok(Meta {
        len: known.stx_size,
        mtime: time(known.stx_mtime),
        ctime: time(known.stx_ctime),
        ino: known.stx_ino,
        dev: makedev(known.stx_dev_major, known.stx_dev_minor),
        links: known.stx_nlink.into(),
    })
}

/// Reads metadata.
#[cfg(not(target_os = "linux"))]
pub(crate) fn known_meta(file: &File) -> std::io::Result<Meta> {
    Meta::of(file)
}

/// Reads the range into the page cache, and blocks until it is there. Sending reports any error.
#[cfg(target_os = "linux")]
pub(crate) fn fetch(file: impl AsFd, offset: u64, len: u64) {
    use rustix::fs::{Advice, fadvise};
    let mut byte = [0; 1];
    let _ = fadvise(&file, offset, std::num::NonZeroU64::new(len), Advice::WillNeed);
    for at in steps(offset, len) {
        let _ = rustix::io::pread(&file, &mut byte, at);
    }
}

/// Reads a range of a file once; less at its end.
pub(crate) fn read(file: impl AsFd, offset: u64, len: u64) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    let read = retry_on_intr(|| rustix::io::pread(&file, &mut bytes, offset))?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Lowers this thread's priority below that of the workers.
#[cfg(target_os = "linux")]
pub(crate) fn lower_priority() {
    // Failing is harmless. On Linux priorities are per thread.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

/// Counts all pages as cached: this system has no check.
#[cfg(not(target_os = "linux"))]
pub(crate) fn are_in_memory(_file: &File, _offset: u64, _len: u64) -> bool {
    true
}

/// Never called: all pages count as cached.
#[cfg(not(target_os = "linux"))]
pub(crate) fn lower_priority() {}

/// Never called: all pages count as cached.
#[cfg(not(target_os = "linux"))]
pub(crate) fn fetch(_file: impl AsFd, _offset: u64, _len: u64) {}

/// Identity of a file while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inode {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
}

impl Inode {
    /// Returns the identity that the metadata states.
    pub(crate) fn of(meta: &Meta) -> Self {
        Self { dev: meta.dev, ino: meta.ino }
    }
}

/// A cached range of each of the files checked most recently, at most `FETCH_CHECKS_MAX`.
#[derive(Debug, Default)]
pub(crate) struct CheckedRanges {
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
    pub(crate) fn hold(&self, file: Inode, offset: u64, len: u64, now_ms: u64) -> bool {
        let known = self.found.iter().find(|(inode, _)| *inode == file);
        known.is_some_and(|(_, found)| {
            found.holds(now_ms) && found.from <= offset && offset + len <= found.until
        })
    }

    /// Records that all of a range is in the page cache.
    pub(crate) fn note(&mut self, file: Inode, offset: u64, len: u64, now_ms: u64) {
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

    use super::{CheckedRanges, FETCH_CHECK_MS, FETCH_CHECKS_MAX, Inode, are_in_memory, fetch};
    use crate::SharedFile;

    #[test]
    fn fetched_ranges_are_in_memory() {
        const LEN: u64 = 1 << 20;
        let file = crate::test_file(LEN);
        // Whether a hole counts as cached depends on the file system; after a fetch it does on each.
        fetch(&file, 0, LEN);
        assert!(are_in_memory(&file, 0, LEN));
        assert!(are_in_memory(&file, LEN, LEN), "nothing to read beyond the end");
        assert!(are_in_memory(&File::open("/").expect("a directory"), 0, 1), "an error doesn't block");
    }

    fn inode(path: &str) -> Inode {
        let file = SharedFile::new(File::open(path).expect("the file opens"));
        file.inode().expect("the system reports it")
    }

    #[test]
    fn a_check_is_valid_briefly_and_for_one_file() {
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
    fn joins_adjoining_ranges_with_the_older_time() {
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
    fn keeps_checks_of_a_bounded_number_of_files() {
        let (mut looks, file) = (CheckedRanges::default(), inode("/dev/null"));
        let files: Vec<_> = (0..2 * FETCH_CHECKS_MAX as u64).map(|ino| Inode { ino, ..file }).collect();
        for file in &files {
            looks.note(*file, 0, 1, 7);
        }
        let held: Vec<_> = files.iter().map(|file| looks.hold(*file, 0, 1, 7)).collect();
        assert_eq!(held, [[false; FETCH_CHECKS_MAX], [true; FETCH_CHECKS_MAX]].concat(), "the latest checks");
    }
}
