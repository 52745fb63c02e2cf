//! Memory that the kernel reads and writes: buffers that it fills as input arrives, equal parts of one mapping, and
//! outputs, which are owned here until their sends have completed.

#![expect(
    unsafe_code,
    reason = "memory that the kernel writes to while nothing borrows it; `msghdr` has private fields"
)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};
use std::{io, mem, ptr};

use io_uring::types::{BufRingEntry, Fd};
use io_uring::{Submitter, opcode, squeue};

use crate::connections::{GATHER_MAX, Slab};
use crate::limits::{RECV_BUFFERS_FIRST, SILENT_OUTPUTS_BYTES_MAX, SILENT_OUTPUTS_MAX};
use crate::pages::Pages;
use crate::{Output, Piece, Token};

/// Number of the only group.
pub(super) const GROUP: u16 = 0;

/// A buffer that the kernel has filled: until its release only this driver uses it.
#[derive(Debug)]
pub(super) struct Filled {
    id: u16,
    len: u32,
}

impl Filled {
    /// # Safety
    /// The kernel has reported the buffer with this many bytes; once for each report.
    pub(super) unsafe fn new(id: u16, len: u32) -> Self {
        Self { id, len }
    }

    fn into_id(self) -> u16 {
        self.id
    }

    /// Returns the number of bytes in it.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }
}

/// The buffers of one ring; none by default. Memory is touched only as it is used.
#[derive(Debug)]
pub(super) struct Buffers {
    /// The kernel's list of buffers, and their memory.
    pages: Option<(Pages, Pages)>,
    list: NonNull<BufRingEntry>,
    start: NonNull<u8>,
    count: u16,
    bytes: usize,
    tail: u16,
    /// Buffers not offered to the kernel; the one withdrawn last is reused first.
    spare: Vec<u16>,
    /// Number of buffers to withdraw as they return.
    surplus: u16,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            pages: None,
            list: NonNull::dangling(),
            start: NonNull::dangling(),
            count: 0,
            bytes: 0,
            tail: 0,
            spare: Vec::new(),
            surplus: 0,
        }
    }
}

impl Buffers {
    /// Registers `count` buffers (a power of two) of `bytes` each.
    ///
    /// # Safety
    /// They are dropped after the ring of `submitter` is closed and idle, or never.
    pub(super) unsafe fn new(submitter: &Submitter<'_>, count: u16, bytes: usize) -> io::Result<Self> {
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "receive buffers of this size");
        if !count.is_power_of_two() || u32::try_from(bytes).is_err() {
            return Err(too_large());
        }
        let list = Pages::new(usize::from(count) * size_of::<BufRingEntry>())?;
        let memory = Pages::new(usize::from(count).checked_mul(bytes).ok_or_else(too_large)?)?;
        // SAFETY: the list is page-aligned, has the stated size, and outlives the ring.
        unsafe { submitter.register_buf_ring_with_flags(list.start().as_ptr() as u64, count, GROUP, 0) }?;
        let mut buffers = Self {
            list: list.start().cast(),
            start: memory.start(),
            pages: Some((list, memory)),
            count,
            bytes,
            spare: (0..count).rev().collect(),
            ..Self::default()
        };
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
        if let Some((_, memory)) = &mut self.pages {
            memory.release();
        }
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
    pub(super) fn release(&mut self, buffer: Filled) {
        let id = buffer.into_id();
        if self.surplus == 0 {
            return self.offer(id);
        }
        self.surplus -= 1;
        self.spare.push(id);
    }

    fn offer(&mut self, id: u16) {
        let address = self.start(id) as u64;
        let index = usize::from(self.tail & (self.count - 1));
        let list = self.list.as_ptr();
        // SAFETY: the index is less than the number of entries.
        let entry = unsafe { list.add(index) };
        // SAFETY: the entry is within the ring, and the kernel reads it only once the tail has passed it.
        let entry = unsafe { &mut *entry };
        entry.set_addr(address);
        entry.set_len(self.bytes as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: this is the ring's first entry.
        let tail = unsafe { BufRingEntry::tail(list) };
        // SAFETY: the tail is shared with the kernel, which only reads it; it is aligned and lives as long as the ring.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// Returns whether the kernel can have filled a buffer like this.
    pub(super) fn has(&self, buffer: &Filled) -> bool {
        buffer.id < self.count && buffer.len() <= self.bytes
    }

    /// Returns the bytes in a buffer.
    pub(super) fn get(&self, buffer: &Filled) -> &[u8] {
        let start = self.start(buffer.id);
        // SAFETY: memory is initialised from the start, the length is within the buffer, and the kernel writes
        // to it again only after `release`, which takes `&mut self` and the buffer.
        unsafe { std::slice::from_raw_parts(start, buffer.len().min(self.bytes)) }
    }

    /// Returns the bytes in a buffer, for changes in place.
    pub(super) fn get_mut(&mut self, buffer: &mut Filled) -> &mut [u8] {
        let start = self.start(buffer.id);
        // SAFETY: as in `get`; `&mut self` and `&mut buffer` exclude every other borrow of these bytes.
        unsafe { std::slice::from_raw_parts_mut(start, buffer.len().min(self.bytes)) }
    }

    fn start(&self, id: u16) -> *mut u8 {
        assert!(id < self.count, "the kernel named a buffer of another ring");
        // SAFETY: the buffer is within the memory.
        unsafe { self.start.as_ptr().add(usize::from(id) * self.bytes) }
    }
}

/// Message headers kept for later sends; others are freed.
const SPARE_GATHERS_MAX: usize = 64;

const FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// With it the kernel counts a short send as failed, and reports it though its success would not be.
const WHOLE: i32 = libc::MSG_WAITALL;

/// A message header and its `iovec`s. The kernel reads them until the send has ended: they must not move.
struct Gather {
    slices: [libc::iovec; GATHER_MAX],
    header: libc::msghdr,
}

/// A send that the ring has.
struct QueuedSend {
    token: Token,
    output: Output,
    gather: Option<Box<Gather>>,
    /// A silent send has failed, and its output was taken.
    has_failed: bool,
}

/// The outputs of all sends in the ring.
///
/// A silent send has no completion if it succeeds. The kernel runs a send while it is submitted, unless the entry is
/// linked, drained or forced to a thread (ours are none of these), or must wait (`MSG_DONTWAIT` forbids that). So
/// once the kernel has taken the entry from the queue, it no longer uses the output: it has sent all of it, or a
/// completion says that it has not.
#[derive(Default)]
pub(super) struct Outputs {
    sends: Slab<QueuedSend>,
    /// Silent sends whose entries were queued since the last settlement.
    silent: Vec<u32>,
    /// Bytes of all of them.
    silent_bytes: u64,
    /// Empty outputs for the next silent sends.
    empty: Vec<Output>,
    /// Memory of all of them, in bytes.
    empty_bytes: usize,
    #[expect(clippy::vec_box, reason = "they move between here and `sends`, where the kernel reads them")]
    spare: Vec<Box<Gather>>,
}

impl Outputs {
    /// Adds the output of a silent send; returns its index and the entry.
    pub(super) fn insert_silent(&mut self, token: Token, fd: Fd, output: Output) -> (u32, squeue::Entry) {
        self.silent_bytes += output.len();
        let (index, entry) = self.insert_with(token, fd, output, FLAGS | WHOLE);
        self.silent.push(index);
        (index, entry.flags(squeue::Flags::SKIP_SUCCESS))
    }

    /// Adds an output in memory; returns its index and the entry that sends it. The entry points to memory of
    /// the output, which itself may move.
    pub(super) fn insert(&mut self, token: Token, fd: Fd, output: Output) -> (u32, squeue::Entry) {
        self.insert_with(token, fd, output, FLAGS)
    }

    fn insert_with(&mut self, token: Token, fd: Fd, output: Output, flags: i32) -> (u32, squeue::Entry) {
        let (entry, gather) = if output.items().is_empty() {
            // Its length is at most a quantum.
            let (start, len) = (output.bytes().as_ptr(), output.bytes().len() as u32);
            (opcode::Send::new(fd, start, len).flags(flags).build(), None)
        } else {
            let mut gather = self.spare.pop().unwrap_or_else(|| Box::new(Gather::empty()));
            let header = gather.describe(&output);
            (opcode::SendMsg::new(fd, header).flags(flags as u32).build(), Some(gather))
        };
        (self.sends.insert(QueuedSend { token, output, gather, has_failed: false }), entry)
    }

    /// Removes the output of a completed send. Each index once.
    pub(super) fn remove(&mut self, index: u32) -> (Token, Output) {
        let take = |send: &mut QueuedSend| (send.token, mem::take(&mut send.output), send.gather.take());
        let (token, output, gather) = self.sends.remove(index, take);
        if let Some(gather) = gather
            && self.spare.len() < SPARE_GATHERS_MAX
        {
            self.spare.push(gather);
        }
        (token, output)
    }

    /// Returns the output of a silent send that has failed. Each index once.
    pub(super) fn take_unsent(&mut self, index: u32) -> Option<(Token, Output)> {
        let send = self.sends.get_mut(index)?;
        send.has_failed = true;
        Some((send.token, mem::take(&mut send.output)))
    }

    /// Returns whether a silent send is unsettled.
    pub(super) fn has_silent(&self) -> bool {
        !self.silent.is_empty()
    }

    /// Returns the bytes of all unsettled silent sends.
    pub(super) fn silent_bytes(&self) -> u64 {
        self.silent_bytes
    }

    /// Frees the output of the next silent send that has not failed; returns its connection and length.
    ///
    /// # Safety
    /// The kernel has taken the entries of all silent sends from its queue.
    pub(super) unsafe fn settle(&mut self) -> Option<(Token, u64)> {
        while let Some(index) = self.silent.pop() {
            let has_failed = self.sends.get(index).is_some_and(|send| send.has_failed);
            let (token, output) = self.remove(index);
            if !has_failed {
                let len = output.len();
                self.recycle(output);
                return Some((token, len));
            }
        }
        self.silent_bytes = 0;
        None
    }

    /// Returns an empty output.
    pub(super) fn take_empty(&mut self) -> Output {
        let Some(output) = self.empty.pop() else { return Output::default() };
        self.empty_bytes -= output.capacity();
        output
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize) {
        (self.empty.len(), self.empty_bytes)
    }

    fn recycle(&mut self, mut output: Output) {
        output.clear(SILENT_OUTPUTS_BYTES_MAX);
        let bytes = self.empty_bytes + output.capacity();
        if self.empty.len() < SILENT_OUTPUTS_MAX && bytes <= SILENT_OUTPUTS_BYTES_MAX {
            self.empty_bytes = bytes;
            self.empty.push(output);
        }
    }

    /// Frees what is kept for later sends.
    pub(super) fn trim(&mut self) {
        self.spare = Vec::new();
        (self.empty, self.empty_bytes) = (Vec::new(), 0);
        self.silent.shrink_to(SILENT_OUTPUTS_MAX);
    }
}

impl Gather {
    fn empty() -> Self {
        let nothing = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: all zeros are a valid `msghdr`: null pointers and lengths of 0.
        let header = unsafe { mem::zeroed() };
        Self { slices: [nothing; GATHER_MAX], header }
    }

    /// Describes at most [`GATHER_MAX`] pieces of an output in memory.
    fn describe(&mut self, output: &Output) -> *const libc::msghdr {
        let mut count = 0;
        for piece in output.pieces(0).take(GATHER_MAX) {
            let Piece::Bytes(bytes) = piece else { break };
            self.slices[count] =
                libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            count += 1;
        }
        self.header.msg_iov = self.slices.as_mut_ptr();
        self.header.msg_iovlen = count as _; // at most GATHER_MAX; its type differs between the C libraries
        &raw const self.header
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::Ring;
    use super::*;
    use crate::limits::RECV_BUFFERS_MAX;

    #[test]
    fn offers_more_buffers_when_they_run_out_and_fewer_after_a_trim() {
        let Ok(mut ring) = Ring::new(8, 8, false) else {
            println!("skipped: there is no io_uring here");
            return;
        };
        ring.provide_buffers(RECV_BUFFERS_MAX, 64).expect("there is memory");
        let mut in_use = Vec::new();
        for _ in 0..4 {
            in_use.push(ring.buffers().in_use());
            ring.offer_more_buffers();
        }
        assert_eq!(in_use, [RECV_BUFFERS_FIRST, 2 * RECV_BUFFERS_FIRST, RECV_BUFFERS_MAX, RECV_BUFFERS_MAX]);
        ring.trim();
        // Each returns as if the kernel had used it, those offered first before others.
        (0..RECV_BUFFERS_MAX).for_each(|id| ring.release(Filled { id, len: 0 }));
        assert_eq!((ring.buffers().in_use(), ring.buffers().surplus), (RECV_BUFFERS_FIRST, 0));
        ring.offer_more_buffers();
        assert_eq!(ring.buffers().in_use(), 2 * RECV_BUFFERS_FIRST, "doubled again");
    }
}
