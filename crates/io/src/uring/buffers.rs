//! The provided buffers: equal pieces of one stretch of memory, which the kernel fills as input arrives.

#![expect(unsafe_code, reason = "memory that the kernel writes to while nobody borrows it")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// The number of the only group.
pub(super) const GROUP: u16 = 0;
/// A ring of buffers begins at a page.
const PAGE_BYTES: usize = 4096;

/// Buffers that the kernel is offered at first. It uses them in turn, so all that it is offered get touched: more only
/// once they have run out.
const OFFERED_FIRST: u16 = 32;

/// The buffers of one ring. Memory is touched as it is used.
#[derive(Debug)]
pub(super) struct Buffers {
    ring: *mut BufRingEntry,
    memory: *mut u8,
    count: u16,
    bytes: usize,
    tail: u16,
    /// Buffers from this one on have not been offered yet.
    offered: u16,
    /// The kernel may still write: the memory is given up rather than freed.
    given_up: bool,
}

impl Buffers {
    /// Registers `count` buffers (a power of two) of `bytes` each.
    pub(super) fn new(submitter: &Submitter<'_>, count: u16, bytes: usize) -> io::Result<Self> {
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "receive buffers of this size");
        if !count.is_power_of_two() || bytes == 0 || u32::try_from(bytes).is_err() {
            return Err(too_large());
        }
        let layouts = Self::layouts(count, bytes).ok_or_else(too_large)?;
        let ring = allocate(layouts[0]).cast();
        let memory = allocate(layouts[1]);
        let mut buffers = Self { ring, memory, count, bytes, tail: 0, offered: 0, given_up: false };
        // SAFETY: the ring's memory begins at a page, is as large as said, and outlives the ring of entries or stays
        // for good (`give_up`).
        unsafe { submitter.register_buf_ring_with_flags(ring as u64, count, GROUP, 0) }?;
        buffers.offer(OFFERED_FIRST);
        Ok(buffers)
    }

    /// Offers twice as many from now on: they have run out.
    pub(super) fn offer_more(&mut self) {
        self.offer(self.offered);
    }

    fn offer(&mut self, more: u16) {
        let first = self.offered;
        self.offered = self.count.min(first.saturating_add(more));
        for id in first..self.offered {
            self.give_back(id);
        }
    }

    /// Of the ring, and of the memory.
    fn layouts(count: u16, bytes: usize) -> Option<[Layout; 2]> {
        let ring = usize::from(count) * size_of::<BufRingEntry>();
        let memory = usize::from(count).checked_mul(bytes)?;
        let of = |size| Layout::from_size_align(size, PAGE_BYTES).ok();
        Some([of(ring)?, of(memory)?])
    }

    pub(super) fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// Bytes of one buffer.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Lets the kernel fill a buffer again.
    pub(super) fn give_back(&mut self, id: u16) {
        let address = self.start(id) as u64;
        let index = usize::from(self.tail & (self.count - 1));
        // SAFETY: the index is less than the number of entries.
        let entry = unsafe { self.ring.add(index) };
        // SAFETY: the entry lies within the ring, and the kernel reads it only once the tail has passed it.
        let entry = unsafe { &mut *entry };
        entry.set_addr(address);
        entry.set_len(self.bytes as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: this is the ring's first entry.
        let tail = unsafe { BufRingEntry::tail(self.ring) };
        // SAFETY: the tail is shared with the kernel, which only reads it; it is aligned and lives as long as the ring.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// What the kernel has put into a buffer that it gave out with a completion.
    pub(super) fn get(&self, id: u16, len: usize) -> &[u8] {
        let start = self.start(id);
        // SAFETY: memory is initialised from the start, `len` lies within the buffer, and the kernel writes to it again
        // only after `give_back`, which takes `&mut self`.
        unsafe { std::slice::from_raw_parts(start, len.min(self.bytes)) }
    }

    fn start(&self, id: u16) -> *mut u8 {
        assert!(id < self.count, "the kernel names a buffer of this ring");
        // SAFETY: the buffer lies within the memory.
        unsafe { self.memory.add(usize::from(id) * self.bytes) }
    }

    /// Leaves the memory to a kernel that may still write to it.
    pub(super) fn give_up(&mut self) {
        self.given_up = true;
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        let Some([ring, memory]) = Self::layouts(self.count, self.bytes).filter(|_| !self.given_up) else {
            return;
        };
        // SAFETY: allocated with this layout; the kernel has ended every entry that could use it.
        unsafe { dealloc(self.ring.cast(), ring) };
        // SAFETY: likewise.
        unsafe { dealloc(self.memory, memory) };
    }
}

fn allocate(layout: Layout) -> *mut u8 {
    // SAFETY: no layout here is empty: there is at least one buffer of at least one byte.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    memory
}
