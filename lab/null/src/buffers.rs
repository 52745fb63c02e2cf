//! The ring of receive buffers: the kernel takes one when bytes arrive, so an idle connection holds none.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// Number of buffers, a power of two.
const COUNT: u16 = 1024;
/// Length of one buffer.
const BUFFER_BYTES: usize = 2048;
/// Alignment that the kernel requires of the ring.
const PAGE_BYTES: usize = 4096;
/// Name of the only buffer group.
pub(crate) const GROUP: u16 = 0;

/// The entries shared with the kernel and the memory that they name. Never freed: it lives as long as the process.
pub(crate) struct BufferRing {
    entries: NonNull<BufRingEntry>,
    memory: NonNull<u8>,
    tail: u16,
}

impl BufferRing {
    /// Registers a ring of buffers and offers all of them.
    #[expect(unsafe_code, reason = "the buffer ring is memory shared with the kernel")]
    pub(crate) fn register(submitter: &Submitter<'_>) -> io::Result<Self> {
        let entries = pages(usize::from(COUNT) * size_of::<BufRingEntry>()).cast();
        let memory = pages(usize::from(COUNT) * BUFFER_BYTES);
        let address = entries.as_ptr() as u64;
        // SAFETY: the entries are allocated, page-aligned, zeroed and never freed.
        unsafe { submitter.register_buf_ring_with_flags(address, COUNT, GROUP, 0)? };
        let mut buffers = Self { entries, memory, tail: 0 };
        (0..COUNT).for_each(|id| buffers.offer(id));
        buffers.publish();
        Ok(buffers)
    }

    /// Returns the first bytes of a buffer named by a completion.
    #[expect(unsafe_code, reason = "the kernel wrote these bytes")]
    pub(crate) fn received(&self, id: u16, length: usize) -> &[u8] {
        let start = usize::from(id % COUNT) * BUFFER_BYTES;
        // SAFETY: `start` is at most the last buffer's, which lies within the allocation.
        let first = unsafe { self.memory.add(start) };
        let length = length.min(BUFFER_BYTES);
        // SAFETY: so many bytes lie within the buffer, are initialised (zeroed, then written by the kernel), and nobody
        // writes to a buffer between its completion and `offer`, which needs `&mut self`.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), length) }
    }

    /// Returns a buffer to the ring; the kernel sees it with the next [`Self::publish`].
    #[expect(unsafe_code, reason = "the entries are shared with the kernel")]
    pub(crate) fn offer(&mut self, id: u16) {
        let id = id % COUNT;
        let slot = usize::from(self.tail % COUNT);
        // SAFETY: a buffer within the allocation, as above.
        let buffer = unsafe { self.memory.add(usize::from(id) * BUFFER_BYTES) };
        // SAFETY: `slot` is less than `COUNT`, the number of entries allocated.
        let mut entry = unsafe { self.entries.add(slot) };
        // SAFETY: the entry lies beyond the published tail, so the kernel does not read it, and nobody else has a
        // reference to it. Its last field in slot 0 is the tail itself, which these setters leave alone.
        let entry = unsafe { entry.as_mut() };
        entry.set_addr(buffer.as_ptr() as u64);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Publishes the offered buffers to the kernel: one store per turn.
    #[expect(unsafe_code, reason = "the tail is shared with the kernel")]
    pub(crate) fn publish(&self) {
        // SAFETY: the argument is the first entry of the ring.
        let tail = unsafe { BufRingEntry::tail(self.entries.as_ptr()) };
        // SAFETY: aligned, valid for the process's life, and written by us alone; the kernel reads it with acquire.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

/// Allocates zeroed memory that begins on a page and is never freed.
#[expect(unsafe_code, reason = "alignment to a page is not to be had from a Vec")]
fn pages(bytes: usize) -> NonNull<u8> {
    let layout = Layout::from_size_align(bytes.max(PAGE_BYTES), PAGE_BYTES)
        .expect("the alignment is a power of two and the size far below isize::MAX");
    // SAFETY: the size is not zero.
    let memory = unsafe { alloc_zeroed(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}
