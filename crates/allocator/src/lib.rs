//! The program's allocator: mimalloc, and the word that makes it give memory back.
//!
//! An allocator sees that memory is no longer needed when there is further work: what was freed last stays until then, which in a server without
//! clients may be never. So a worker that rests says so, by [`give_back`]. `docs/decisions/0002-allocator.md` has the measurements.

#![deny(unsafe_code)]

pub use mimalloc::MiMalloc;

/// Gives back to the system what the calling thread has freed, and what other threads have given up. Takes microseconds where there is little, and
/// milliseconds for each hundred megabytes. Meant for programs whose global allocator is [`MiMalloc`]; others have nothing in it.
#[expect(unsafe_code, reason = "a function of C")]
pub fn give_back() {
    // SAFETY: it may be called at any time, on any thread; it changes nothing that is allocated.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::{MiMalloc, give_back};

    #[global_allocator]
    static ALLOCATOR: MiMalloc = MiMalloc;

    /// Anonymous memory of this process that is resident, in KiB; none where the system doesn't tell.
    fn resident_kib() -> Option<usize> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("Linux says it");
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
            assert!(held >= before + 8 * BLOCKS, "{before}, {held} KiB: it was not held");
            assert!(left < before + 2048, "{before}, {held}, {left} KiB left");
        }
    }
}
