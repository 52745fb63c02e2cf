//! Provided buffers: equal parts of one mapping, which the kernel fills as input arrives.

#![expect(unsafe_code, reason = "memory that the kernel writes to while nothing borrows it")]

use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

use crate::limits::RECV_BUFFERS_FIRST;
use crate::pages::Pages;

/// Number of the only group.
pub(super) const GROUP: u16 = 0;

/// The buffers of one ring. Memory is touched only as it is used.
#[derive(Debug)]
pub(super) struct Buffers {
    ring: ManuallyDrop<Pages>,
    memory: ManuallyDrop<Pages>,
    count: u16,
    bytes: usize,
    tail: u16,
    /// Buffers not offered to the kernel; the one withdrawn last is reused first.
    spare: Vec<u16>,
    /// Number of buffers to withdraw as they return.
    surplus: u16,
    /// True if the kernel may still write: the memory is leaked instead of unmapped.
    leaked: bool,
}

impl Buffers {
    /// Registers `count` buffers (a power of two) of `bytes` each.
    pub(super) fn new(submitter: &Submitter<'_>, count: u16, bytes: usize) -> io::Result<Self> {
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "receive buffers of this size");
        if !count.is_power_of_two() || u32::try_from(bytes).is_err() {
            return Err(too_large());
        }
        let ring = Pages::new(usize::from(count) * size_of::<BufRingEntry>())?;
        let memory = Pages::new(usize::from(count).checked_mul(bytes).ok_or_else(too_large)?)?;
        // SAFETY: the ring's memory is page-aligned, has the stated size, and outlives the ring of entries or
        // is leaked (`leak`).
        unsafe { submitter.register_buf_ring_with_flags(ring.start().as_ptr() as u64, count, GROUP, 0) }?;
        let (ring, memory) = (ManuallyDrop::new(ring), ManuallyDrop::new(memory));
        let spare = (0..count).rev().collect();
        let mut buffers = Self { ring, memory, count, bytes, tail: 0, spare, surplus: 0, leaked: false };
        buffers.offer_spare(RECV_BUFFERS_FIRST);
        Ok(buffers)
    }

    /// Doubles the buffers offered: they have run out.
    pub(super) fn offer_more(&mut self) {
        self.surplus = 0;
        self.offer_spare(self.in_use());
    }

    /// Frees memory while the kernel has nothing to report and nothing borrows, and reduces the offer to its
    /// initial size as buffers return.
    pub(super) fn trim(&mut self) {
        self.memory.release();
        self.surplus = self.in_use().saturating_sub(RECV_BUFFERS_FIRST);
    }

    /// Returns the number of buffers offered to the kernel or filled by it.
    fn in_use(&self) -> u16 {
        // `spare` holds `count` at most.
        self.count - self.spare.len() as u16
    }

    fn offer_spare(&mut self, more: u16) {
        for _ in 0..more {
            let Some(id) = self.spare.pop() else { return };
            self.offer(id);
        }
    }

    pub(super) fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// Returns the bytes of one buffer.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns a buffer to the kernel.
    pub(super) fn release(&mut self, id: u16) {
        if self.surplus == 0 {
            return self.offer(id);
        }
        self.surplus -= 1;
        self.spare.push(id);
    }

    fn offer(&mut self, id: u16) {
        let address = self.start(id) as u64;
        let index = usize::from(self.tail & (self.count - 1));
        let ring = self.ring.start().as_ptr().cast::<BufRingEntry>();
        // SAFETY: the index is less than the number of entries.
        let entry = unsafe { ring.add(index) };
        // SAFETY: the entry is within the ring, and the kernel reads it only once the tail has passed it.
        let entry = unsafe { &mut *entry };
        entry.set_addr(address);
        entry.set_len(self.bytes as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: this is the ring's first entry.
        let tail = unsafe { BufRingEntry::tail(ring) };
        // SAFETY: the tail is shared with the kernel, which only reads it; it is aligned and lives as long as the ring.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// Returns the bytes in a buffer that came with a completion.
    pub(super) fn get(&self, id: u16, len: usize) -> &[u8] {
        let start = self.start(id);
        // SAFETY: memory is initialised from the start, `len` is within the buffer, and the kernel writes to
        // it again only after `release`, which takes `&mut self`.
        unsafe { std::slice::from_raw_parts(start, len.min(self.bytes)) }
    }

    fn start(&self, id: u16) -> *mut u8 {
        assert!(id < self.count, "the kernel named a buffer of another ring");
        // SAFETY: the buffer is within the memory.
        unsafe { self.memory.start().as_ptr().add(usize::from(id) * self.bytes) }
    }

    /// Leaks the memory to a kernel that may still write to it.
    pub(super) fn leak(&mut self) {
        self.leaked = true;
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if self.leaked {
            return;
        }
        // SAFETY: dropped once, and the kernel has ended every entry that could use it.
        unsafe { ManuallyDrop::drop(&mut self.ring) };
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(&mut self.memory) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::Ring;
    use super::*;
    use crate::limits::RECV_BUFFERS_MAX;

    #[test]
    fn more_are_offered_when_they_run_out_and_fewer_after_a_quiet_moment() {
        let Ok(ring) = Ring::new(8, 8, false) else {
            println!("skipped: there is no io_uring here");
            return;
        };
        let mut buffers = Buffers::new(&ring.submitter(), RECV_BUFFERS_MAX, 64).expect("there is memory");
        let mut in_use = Vec::new();
        for _ in 0..4 {
            in_use.push(buffers.in_use());
            buffers.offer_more();
        }
        assert_eq!(in_use, [RECV_BUFFERS_FIRST, 2 * RECV_BUFFERS_FIRST, RECV_BUFFERS_MAX, RECV_BUFFERS_MAX]);
        buffers.trim();
        // Each returns as if the kernel had used it, those offered first before others.
        (0..RECV_BUFFERS_MAX).for_each(|id| buffers.release(id));
        assert_eq!((buffers.in_use(), buffers.surplus), (RECV_BUFFERS_FIRST, 0));
        buffers.offer_more();
        assert_eq!(buffers.in_use(), 2 * RECV_BUFFERS_FIRST, "doubled again");
        // Before the buffers: the kernel must have released them.
        drop(ring);
    }
}
