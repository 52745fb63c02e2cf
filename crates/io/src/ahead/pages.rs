//! The pages of a file that the system holds in memory.

use std::fs::File;
use std::os::fd::AsFd;

/// Steps in which a stretch is looked at, and in which a fetch waits for the disk.
#[cfg(target_os = "linux")]
const STEP_BYTES: u64 = 64 * 1024;

/// How far the thread that fetches stands back: about a tenth of a worker's share where they meet on one core.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Whether reading this stretch would not wait for a disk: by a look at a byte in each step. What can't be asked counts as in
/// memory.
#[cfg(target_os = "linux")]
pub(crate) fn are_in_memory(file: &File, offset: u64, len: u64) -> bool {
    steps(offset, len).all(|at| is_in_memory(file, at))
}

/// A place in each step, the last byte among them.
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

/// Has the stretch read into memory, and waits until it is. What fails here shows when it is sent.
#[cfg(target_os = "linux")]
pub(super) fn fetch(file: impl AsFd, offset: u64, len: u64) {
    use rustix::fs::{Advice, fadvise};
    let mut byte = [0; 1];
    let _ = fadvise(&file, offset, std::num::NonZeroU64::new(len), Advice::WillNeed);
    for at in steps(offset, len) {
        let _ = rustix::io::pread(&file, &mut byte, at);
    }
}

/// Lets this thread stand back behind the workers: what it does is for those who wait for a disk anyway.
#[cfg(target_os = "linux")]
pub(super) fn stand_back() {
    // Refused, it is only less polite. On Linux a priority is a thread's own.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

/// Nobody can be asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn are_in_memory(_file: &File, _offset: u64, _len: u64) -> bool {
    true
}

/// Never called: all pages count as in memory.
#[cfg(not(target_os = "linux"))]
pub(super) fn stand_back() {}

/// Never called: all pages count as in memory.
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
        std::fs::remove_file(&path).expect("it was made here");
        file.set_len(LEN).expect("a hole");
        // Whether a hole counts as in memory depends on the file system; afterwards it does on each.
        fetch(&file, 0, LEN);
        assert!(are_in_memory(&file, 0, LEN));
        assert!(are_in_memory(&file, LEN, LEN), "behind the end there is nothing to wait for");
        assert!(are_in_memory(&File::open("/").expect("a directory"), 0, 1), "an error is no wait");
    }
}
