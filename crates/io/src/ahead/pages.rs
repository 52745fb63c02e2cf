//! Page-cache checks and read-ahead of file ranges.

use std::fs::File;
use std::os::fd::AsFd;

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
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    let mut byte = [0; 1];
    let mut into = [std::io::IoSliceMut::new(&mut byte)];
    preadv2(file, &mut into, offset, ReadWriteFlags::NOWAIT) != Err(Errno::AGAIN)
}

/// Reads the range into the page cache, and blocks until it is there. Sending reports any error.
#[cfg(target_os = "linux")]
pub(super) fn fetch(file: impl AsFd, offset: u64, len: u64) {
    use rustix::fs::{Advice, fadvise};
    let mut byte = [0; 1];
    let _ = fadvise(&file, offset, std::num::NonZeroU64::new(len), Advice::WillNeed);
    for at in steps(offset, len) {
        let _ = rustix::io::pread(&file, &mut byte, at);
    }
}

/// Lowers this thread's priority below that of the workers.
#[cfg(target_os = "linux")]
pub(super) fn lower_priority() {
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
pub(super) fn lower_priority() {}

/// Never called: all pages count as cached.
#[cfg(not(target_os = "linux"))]
pub(super) fn fetch(_file: impl AsFd, _offset: u64, _len: u64) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{are_in_memory, fetch};
    use std::fs::File;

    #[test]
    fn what_was_fetched_is_in_memory() {
        const LEN: u64 = 1 << 20;
        let path = std::env::temp_dir().join(format!("shearwater-pages-{}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(&path).expect("a file");
        std::fs::remove_file(&path).expect("the file can be removed");
        file.set_len(LEN).expect("a sparse file");
        // Whether a hole counts as cached depends on the file system; after a fetch it does on each.
        fetch(&file, 0, LEN);
        assert!(are_in_memory(&file, 0, LEN));
        assert!(are_in_memory(&file, LEN, LEN), "nothing to read beyond the end");
        assert!(are_in_memory(&File::open("/").expect("a directory"), 0, 1), "an error doesn't block");
    }
}
