//! Whole pages of memory that the kernel may write to: zeroed, touched only as they are used, and given back to the system
//! without being unmapped.

#![expect(unsafe_code, reason = "memory straight from the kernel, whatever the program's allocator is")]

use std::io;
use std::ptr::{self, NonNull};

/// A mapping of this process alone.
#[derive(Debug)]
pub(super) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

impl Pages {
    /// Maps `bytes` of memory, rounded up to whole pages.
    ///
    /// # Errors
    /// What the kernel says: no memory, or a length of 0.
    pub(super) fn new(bytes: usize) -> io::Result<Self> {
        let (protection, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping, where the kernel likes: it overlaps nothing.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let pages = Self { start, bytes };
        // Huge pages would make one touched byte cost 2 MiB. Kernels without them say no.
        pages.advise(libc::MADV_NOHUGEPAGE);
        Ok(pages)
    }

    /// Where it begins.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Gives the pages back; they are zeroes when they are touched next. Nobody borrows them now.
    pub(super) fn release(&mut self) {
        self.advise(libc::MADV_DONTNEED);
    }

    fn advise(&self, advice: libc::c_int) {
        // SAFETY: the whole mapping, which is ours. Both kinds of advice that are given leave it readable and writable.
        let _ = unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, advice) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and unmapped once.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::Pages;

    #[test]
    fn what_was_given_back_is_zero_again() {
        let mut pages = Pages::new(10_000).expect("there is memory");
        let last = pages.start().as_ptr().wrapping_add(9_999);
        for value in [1, 2] {
            // SAFETY: the byte lies within the mapping, which nobody else uses.
            let found = unsafe { std::ptr::replace(last, value) };
            assert_eq!(found, 0);
            pages.release();
        }
        assert!(Pages::new(0).is_err());
    }
}
