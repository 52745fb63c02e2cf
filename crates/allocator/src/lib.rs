//! The program's allocator: mimalloc, and a function that returns freed memory to the system.
//!
//! An allocator releases memory only while it works, so an idle server may keep freed memory for ever. Workers
//! therefore call [`give_back`] when they become idle. `docs/decisions/0002-allocator.md` has the measurements.

#![deny(unsafe_code)]

pub use mimalloc::MiMalloc;

/// Returns memory to the system that the calling thread has freed, or that ended threads have abandoned.
///
/// Takes microseconds if there is little, and milliseconds for each 100 MB. Has no effect unless [`MiMalloc`] is the
/// global allocator.
#[expect(unsafe_code, reason = "a C function")]
pub fn give_back() {
    // SAFETY: callable at any time on any thread; it doesn't change live allocations.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::{MiMalloc, give_back};

    #[global_allocator]
    static ALLOCATOR: MiMalloc = MiMalloc;

    /// Returns this process's resident anonymous memory in KiB, or `None` if the system doesn't report it.
    fn resident_kib() -> Option<usize> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("Linux reports RssAnon");
        Some(line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number"))
    }

    #[test]
    fn what_was_freed_goes_back() {
        const BLOCKS: usize = 4000;
        let kept: Vec<u8> = vec![7; 100_000];
        let before_kib = resident_kib();
        let blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|_| vec![1; 8192]).collect();
        let held_kib = resident_kib();
        drop(blocks);
        give_back();
        assert!(kept.iter().all(|byte| *byte == 7));
        if let (Some(before), Some(held), Some(left)) = (before_kib, held_kib, resident_kib()) {
            assert!(held >= before + 8 * BLOCKS, "{before}, {held} KiB: it was not resident");
            assert!(left < before + 2048, "{before}, {held}, {left} KiB left");
        }
    }
}
