//! Whole pages of memory mapped from the kernel: zeroed, touched only as they are used, and released on
//! demand.

#![expect(unsafe_code, reason = "maps memory from the kernel, independent of the program's allocator")]

use std::ptr::{self, NonNull};
use std::sync::LazyLock;
use std::{fs, io};

/// True if the kernel may use huge pages for memory that didn't ask for them. Advice against them locks the whole
/// address space once more per mapping, so it is given only then.
static HUGE_UNASKED: LazyLock<bool> = LazyLock::new(|| {
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    // Without this file the kernel has none, or hides its setting: it ignores needless advice.
    setting.map_or(true, |setting| setting.contains("[always]"))
});

/// A private mapping.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

impl Pages {
    /// Maps `bytes` of memory, rounded up to whole pages.
    ///
    /// # Errors
    /// Fails with the kernel's error: no memory, or a length of 0.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let (protection, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let pages = Self { start, bytes };
        if *HUGE_UNASKED {
            // One touched byte would cost 2 MiB.
            pages.advise(libc::MADV_NOHUGEPAGE);
        }
        Ok(pages)
    }

    /// Returns its first byte's address.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Releases the pages; they are zero when touched next. Nobody borrows them now.
    pub(crate) fn release(&mut self) {
        self.advise(libc::MADV_DONTNEED);
    }

    /// Returns its length in bytes; the last page may extend beyond.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Resizes it to `bytes`. Keeps the bytes within both lengths, possibly at a new address; frees what is
    /// beyond.
    ///
    /// # Errors
    /// Fails with the kernel's error: no memory, or a length of 0. Nothing is changed then.
    pub(crate) fn resize(&mut self, bytes: usize) -> io::Result<()> {
        let start = self.start.as_ptr().cast();
        // SAFETY: the whole mapping, which this value owns; `&mut self` excludes borrows, so it may move.
        let moved = unsafe { libc::mremap(start, self.bytes, bytes, libc::MREMAP_MAYMOVE) };
        if moved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.start = NonNull::new(moved.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        self.bytes = bytes;
        Ok(())
    }

    /// Returns all of it. Not for memory that the kernel may write to.
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is readable and initialised; untouched bytes are 0.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// Returns all of it for writing.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is readable and writable, and `&mut self` excludes other borrows.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    fn advise(&self, advice: libc::c_int) {
        // SAFETY: the whole mapping, which this value owns. Both kinds of advice used leave it readable and
        // writable.
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
    fn released_pages_are_zero() {
        let mut pages = Pages::new(10_000).expect("there is memory");
        let last = pages.start().as_ptr().wrapping_add(9_999);
        for value in [1, 2] {
            // SAFETY: the byte is within the mapping, which nothing else uses.
            let found = unsafe { std::ptr::replace(last, value) };
            assert_eq!(found, 0);
            pages.release();
        }
        assert!(Pages::new(0).is_err());
    }

    #[test]
    fn a_resize_keeps_the_common_part() {
        let mut pages = Pages::new(10_000).expect("there is memory");
        pages.as_mut_slice()[..10_000].fill(7);
        for bytes in [1_000_000, 5_000, 20_000] {
            pages.resize(bytes).expect("there is memory");
            assert_eq!(pages.len(), bytes);
            assert!(pages.as_slice()[..5_000].iter().all(|byte| *byte == 7));
        }
        assert!(pages.as_slice()[8_192..].iter().all(|byte| *byte == 0), "freed, and new again");
        assert!(pages.resize(0).is_err());
        assert_eq!(pages.as_slice()[4_999], 7, "nothing has changed");
    }
}
