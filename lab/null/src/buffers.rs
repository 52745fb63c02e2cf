//! The ring of receive buffers that the kernel takes from when bytes arrive: an idle connection holds none.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// Most buffers on offer.
pub(crate) const BUFFERS_MAX: u16 = 32_768;
/// The kernel wants the ring to begin on a page.
const PAGE_BYTES: usize = 4096;
/// The name of our only group.
pub(crate) const GROUP: u16 = 0;

/// The entries shared with the kernel and the memory that they name. Never freed: it lives as long as the process.
pub(crate) struct Buffers {
    entries: NonNull<BufRingEntry>,
    memory: NonNull<u8>,
    /// How many there are, a power of two, as the kernel asks.
    count: u16,
    buffer_bytes: usize,
    tail: u16,
}

impl Buffers {
    /// Registers a ring of buffers and offers all of them.
    #[expect(unsafe_code, reason = "the buffer ring is memory shared with the kernel")]
    pub(crate) fn register(submitter: &Submitter<'_>, count: u16, buffer_bytes: usize) -> io::Result<Self> {
        let count = count.clamp(1, BUFFERS_MAX).next_power_of_two();
        let entries = pages(usize::from(count) * size_of::<BufRingEntry>()).cast();
        let memory = pages(usize::from(count) * buffer_bytes);
        let address = entries.as_ptr() as u64;
        // SAFETY: the entries are allocated, page-aligned, zeroed and never freed.
        unsafe { submitter.register_buf_ring_with_flags(address, count, GROUP, 0)? };
        let mut buffers = Self { entries, memory, count, buffer_bytes, tail: 0 };
        (0..count).for_each(|id| buffers.offer(id));
        buffers.publish();
        Ok(buffers)
    }

    /// The first bytes of a buffer that a completion has handed to us.
    #[expect(unsafe_code, reason = "the kernel wrote these bytes")]
    pub(crate) fn received(&self, id: u16, length: usize) -> &[u8] {
        let start = usize::from(id % self.count) * self.buffer_bytes;
        // SAFETY: `start` is at most the last buffer's, which lies within the allocation.
        let first = unsafe { self.memory.add(start) };
        let length = length.min(self.buffer_bytes);
        // SAFETY: so many bytes lie within the buffer, are initialised (zeroed, then written by the kernel), and nobody
        // writes to a buffer between its completion and `offer`, which needs `&mut self`.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), length) }
    }

    /// Gives a buffer back; the kernel sees it with the next [`Self::publish`].
    #[expect(unsafe_code, reason = "the entries are shared with the kernel")]
    pub(crate) fn offer(&mut self, id: u16) {
        let id = id % self.count;
        let slot = usize::from(self.tail % self.count);
        // SAFETY: a buffer within the allocation, as above.
        let buffer = unsafe { self.memory.add(usize::from(id) * self.buffer_bytes) };
        // SAFETY: `slot` is less than `count`, the number of entries allocated.
        let mut entry = unsafe { self.entries.add(slot) };
        // SAFETY: the entry lies beyond the published tail, so the kernel does not read it, and nobody else has a
        // reference to it. Its last field in slot 0 is the tail itself, which these setters leave alone.
        let entry = unsafe { entry.as_mut() };
        entry.set_addr(buffer.as_ptr() as u64);
        entry.set_len(self.buffer_bytes as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Shows the kernel what was offered: one store per turn.
    #[expect(unsafe_code, reason = "the tail is shared with the kernel")]
    pub(crate) fn publish(&self) {
        // SAFETY: the argument is the first entry of the ring.
        let tail = unsafe { BufRingEntry::tail(self.entries.as_ptr()) };
        // SAFETY: aligned, valid for the process's life, and written by us alone; the kernel reads it with acquire.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

/// Zeroed memory that begins on a page and is never freed.
#[expect(unsafe_code, reason = "alignment to a page is not to be had from a Vec")]
fn pages(bytes: usize) -> NonNull<u8> {
    let layout = Layout::from_size_align(bytes.max(PAGE_BYTES), PAGE_BYTES)
        .expect("the alignment is a power of two and the size far below isize::MAX");
    // SAFETY: the size is not zero.
    let memory = unsafe { alloc_zeroed(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}
