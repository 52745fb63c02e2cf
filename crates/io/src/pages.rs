//! Whole pages of memory straight from the kernel: zeroed, touched only as they are used, and given back to the system when they
//! should be.

#![expect(unsafe_code, reason = "memory straight from the kernel, whatever the program's allocator is")]

use std::io;
use std::ptr::{self, NonNull};

/// A mapping of this process alone.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

impl Pages {
    /// Maps `bytes` of memory, rounded up to whole pages.
    ///
    /// # Errors
    /// What the kernel says: no memory, or a length of 0.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
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
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Gives the pages back; they are zeroes when they are touched next. Nobody borrows them now.
    pub(crate) fn release(&mut self) {
        self.advise(libc::MADV_DONTNEED);
    }

    /// Its length, in bytes; the last page may reach beyond.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Makes it `bytes` long. What is in both lengths stays, wherever it lies then; what is beyond is given back.
    ///
    /// # Errors
    /// What the kernel says: no memory, or a length of 0. Then nothing has changed.
    pub(crate) fn resize(&mut self, bytes: usize) -> io::Result<()> {
        let start = self.start.as_ptr().cast();
        // SAFETY: the whole mapping, which is ours; `&mut self`: nobody borrows from it, so it may move.
        let moved = unsafe { libc::mremap(start, self.bytes, bytes, libc::MREMAP_MAYMOVE) };
        if moved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.start = NonNull::new(moved.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        self.bytes = bytes;
        Ok(())
    }

    /// All of it, for who doesn't let the kernel write to it.
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is readable, and bytes of any value are bytes; untouched ones are 0.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// All of it, to write to.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is readable and writable, and `&mut self`: nobody else borrows from it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
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

    #[test]
    fn what_is_in_both_lengths_stays() {
        let mut pages = Pages::new(10_000).expect("there is memory");
        pages.as_mut_slice()[..10_000].fill(7);
        for bytes in [1_000_000, 5_000, 20_000] {
            pages.resize(bytes).expect("there is memory");
            assert_eq!(pages.len(), bytes);
            assert!(pages.as_slice()[..5_000].iter().all(|byte| *byte == 7));
        }
        assert!(pages.as_slice()[8_192..].iter().all(|byte| *byte == 0), "given back, and new again");
        assert!(pages.resize(0).is_err());
        assert_eq!(pages.as_slice()[4_999], 7, "nothing has changed");
    }
}
