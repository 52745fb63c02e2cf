//! The ring: setup, submission, one enter per turn, completions. The only place that submits entries.
//!
//! It owns the memory that entries point to, and frees it only after their last completion.

#![expect(unsafe_code, reason = "entries have pointers that the kernel follows, which nothing can check")]

use std::collections::VecDeque;
use std::io;
use std::mem::{self, ManuallyDrop};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, Timespec};
use io_uring::{IoUring, Submitter, opcode, squeue};
use rustix::io::Errno;

use super::enter::Enter;
use super::entry::{Done, Name, Operation, Purpose};
use super::memory::{Buffers, Filled, Outputs};
use crate::{Output, Token};

/// Entries submitted by one call; more take several.
pub(super) const SUBMIT_ENTRIES: u32 = 256;
/// Completions that fit; the kernel keeps the others.
pub(super) const COMPLETION_ENTRIES: u32 = 4096;

/// Enters for outstanding completions when the ring ends.
const REAP_ENTERS_MAX: usize = 1000;
/// Wait of each of them.
const REAP_WAIT: Duration = Duration::from_millis(5);

/// Longest time of an alarm; the kernel refuses some that are longer.
const ALARM_MAX: Duration = Duration::from_secs(1 << 30);

/// Bytes of an eventfd's counter.
const WAKE_COUNT_BYTES: usize = 8;

/// The ring of one worker.
pub(super) struct Ring {
    enter: Enter,
    /// Before the others, so that it is closed before memory that the kernel uses is freed.
    ring: IoUring,
    buffers: Buffers,
    outputs: Outputs,
    /// Takes the value of a waker's counter.
    wake_count: Box<[u8; WAKE_COUNT_BYTES]>,
    /// Time of the alarm, which the kernel reads as it takes the entry.
    alarm: Box<Timespec>,
    /// Entries for which the queue had no room: at most one per connection and verb.
    overflow: VecDeque<squeue::Entry>,
    /// Entries whose last completion is outstanding, except cancels and silent sends.
    in_flight: usize,
    /// Send entries queued since the turn's enter.
    sends: usize,
    /// True if they were submitted before the next enter.
    has_submitted: bool,
    /// The kernel increments an event counter for completions.
    is_shown: bool,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

impl Ring {
    pub(super) fn new(entries: u32, completions: u32, no_array: bool) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun().setup_taskrun_flag();
        builder.setup_submit_all().setup_clamp().setup_cqsize(completions).dontfork();
        if no_array {
            builder.setup_no_sqarray();
        }
        let ring: IoUring = builder.build(entries)?;
        Ok(Self {
            enter: Enter::new(ring.as_raw_fd(), ring.params().is_feature_no_iowait()),
            ring,
            buffers: Buffers::default(),
            outputs: Outputs::default(),
            wake_count: Box::default(),
            alarm: Box::default(),
            overflow: VecDeque::new(),
            in_flight: 0,
            sends: 0,
            has_submitted: false,
            is_shown: false,
        })
    }

    pub(super) fn submitter(&self) -> Submitter<'_> {
        self.ring.submitter()
    }

    /// Has the kernel increment an event counter for completions, from when it defers them.
    pub(super) fn show_completions(&mut self, event: &OwnedFd) -> io::Result<()> {
        self.ring.submitter().register_eventfd(event.as_raw_fd())?;
        self.is_shown = true;
        Ok(())
    }

    /// Stops or resumes increments of the event counter. Those of a turn's own enters would wake the other event loop for
    /// what the turn takes anyway.
    ///
    /// The kernel announces completions, then looks whether increments are stopped; the caller resumes them, then looks for
    /// completions. On x86-64 both sides have a full barrier in between. The kernel's is weaker elsewhere: increments are
    /// never stopped there.
    pub(super) fn mute_event(&mut self, is_muted: bool) {
        if !self.is_shown || !cfg!(target_arch = "x86_64") {
            return;
        }
        if is_muted {
            self.ring.completion().disable_eventfd();
        } else {
            self.ring.completion().enable_eventfd();
            fence(Ordering::SeqCst);
        }
    }

    /// Returns whether there are no completions to take, neither here nor in the kernel.
    pub(super) fn is_drained(&mut self) -> bool {
        !self.has_more() && !self.has_completions()
    }

    pub(super) fn params(&self) -> &io_uring::Parameters {
        self.ring.params()
    }

    /// Provides `count` buffers (a power of two) of `bytes` each for receiving, once.
    pub(super) fn provide_buffers(&mut self, count: u16, bytes: usize) -> io::Result<()> {
        // SAFETY: the ring keeps them until it is closed, or leaks them.
        self.buffers = unsafe { Buffers::new(&self.ring.submitter(), count, bytes) }?;
        Ok(())
    }

    pub(super) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    pub(super) fn buffers_mut(&mut self) -> &mut Buffers {
        &mut self.buffers
    }

    /// Returns the buffer that the kernel has filled, once. One that can't be is ignored: see [`Buffers::has`].
    pub(super) fn take_filled(&self, done: &mut Done) -> Option<Filled> {
        done.take_filled().filter(|buffer| self.buffers.has(buffer))
    }

    /// Returns a buffer to the kernel.
    pub(super) fn release(&mut self, buffer: Filled) {
        self.buffers.release(buffer);
    }

    /// Doubles the buffers offered to the kernel: they have run out.
    pub(super) fn offer_more_buffers(&mut self) {
        self.buffers.offer_more();
    }

    /// Queues an operation under a name. The next [`Ring::enter`] submits it.
    pub(super) fn push(&mut self, operation: Operation, name: Name) {
        assert!(
            !matches!(name.purpose(), Purpose::Send | Purpose::Silent),
            "a completion of this name frees an output: see `Ring::send`"
        );
        // SAFETY: it points to nothing that is ever freed.
        unsafe { self.queue(operation.into_entry(), name) }
    }

    /// Queues a read of the waker's counter.
    pub(super) fn await_wake(&mut self, event: RawFd) {
        let (start, len) = (self.wake_count.as_mut_ptr(), WAKE_COUNT_BYTES as u32);
        let entry = opcode::Read::new(Fd(event), start, len).build();
        // SAFETY: only the kernel uses this memory, which the ring frees after the last completion.
        unsafe { self.queue(entry, Name::new(Purpose::Wake, Token::new(0, 0))) }
    }

    /// Queues an alarm after this time, or moves the one that is set. Its expiry is a completion; a move of one
    /// that has expired has no effect.
    pub(super) fn set_alarm(&mut self, after: Duration, is_set: bool) {
        let name = Name::new(Purpose::Alarm, Token::new(0, 0));
        *self.alarm = Timespec::from(after.min(ALARM_MAX));
        let time = &raw const *self.alarm;
        let (entry, name) = if is_set {
            let entry = opcode::TimeoutUpdate::new(name.0, time).build().flags(squeue::Flags::SKIP_SUCCESS);
            (entry, Name::new(Purpose::Cancel, Token::new(0, 0)))
        } else {
            (opcode::Timeout::new(time).build(), name)
        };
        // SAFETY: the ring frees the time after it is closed, and writes it only between two enters. Entries that are
        // queued together read the time of the last one, which is the earliest.
        unsafe { self.queue(entry, name) }
    }

    /// Queues a send of an output in memory that never waits, and owns the output until [`Ring::reclaim`].
    pub(super) fn send(&mut self, token: Token, fd: Fd, output: Output) {
        self.sends += 1;
        let (index, entry) = self.outputs.insert(token, fd, output);
        // SAFETY: nobody has access to the output before its completion is taken.
        unsafe { self.queue(entry, Name::new(Purpose::Send, Token::new(index, 0))) }
    }

    /// Queues such a send, whose entry completes only if it fails ([`Ring::reclaim_unsent`]), and replaces the
    /// output by an empty one. [`Ring::settle`] returns those that have succeeded.
    pub(super) fn send_silently(&mut self, token: Token, fd: Fd, output: &mut Output) {
        self.sends += 1;
        let output = mem::replace(output, self.outputs.take_empty());
        let (index, entry) = self.outputs.insert_silent(token, fd, output);
        // SAFETY: nobody has access to the output before the entry's completion is taken, or before the kernel
        // has run it without one.
        unsafe { self.queue(entry, Name::new(Purpose::Silent, Token::new(index, 0))) }
    }

    /// Returns the connection and the output of a silent send that has failed.
    pub(super) fn reclaim_unsent(&mut self, done: Done) -> Option<(Token, Output)> {
        self.outputs.take_unsent(done.into_unsent())
    }

    /// Returns whether a silent send is unsettled.
    pub(super) fn has_silent(&self) -> bool {
        self.outputs.has_silent()
    }

    /// Returns the bytes of all unsettled silent sends.
    pub(super) fn silent_bytes(&self) -> u64 {
        self.outputs.silent_bytes()
    }

    /// Settles silent sends if their results are known: calls `succeeded` with the connection and the length of
    /// each that has not failed. Their results are known once the kernel has taken all entries, and all
    /// completions that it had posted by then were taken from it.
    pub(super) fn settle(&mut self, mut succeeded: impl FnMut(Token, u64)) {
        if !self.outputs.has_silent() || !self.overflow.is_empty() || self.has_completions() {
            return;
        }
        let queue = self.ring.submission();
        if !queue.is_empty() || queue.cq_overflow() {
            return;
        }
        drop(queue);
        // SAFETY: the kernel has taken all entries from its queue.
        while let Some((token, len)) = unsafe { self.outputs.settle() } {
            succeeded(token, len);
        }
    }

    /// Returns the connection and the output of a completed send.
    pub(super) fn reclaim(&mut self, done: Done) -> (Token, Output) {
        self.outputs.remove(done.into_sent())
    }

    /// Returns the number of outputs kept for silent sends, and their memory in bytes.
    #[cfg(test)]
    pub(super) fn empty_outputs(&self) -> (usize, usize) {
        self.outputs.kept()
    }

    /// Frees memory of ended sends.
    pub(super) fn trim(&mut self) {
        self.buffers.trim();
        self.outputs.trim();
    }

    /// # Safety
    /// What the entry points to lives, and only the kernel uses it, until the last completion is taken.
    unsafe fn queue(&mut self, entry: squeue::Entry, name: Name) {
        if completes(name.purpose()) {
            self.in_flight += 1;
        }
        let entry = entry.user_data(name.0);
        if !self.overflow.is_empty() || !self.try_push(&entry) {
            self.overflow.push_back(entry);
        }
    }

    fn try_push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: only `queue` makes entries for this, whose caller guarantees it.
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    /// Cancels the entry of this name. Its last completion still comes; the cancel's own is ignored.
    pub(super) fn cancel(&mut self, name: Name) {
        self.push_cancel(CancelBuilder::user_data(name.0));
    }

    fn push_cancel(&mut self, which: CancelBuilder) {
        self.push(Operation::cancel(which), Name::new(Purpose::Cancel, Token::new(0, 0)));
    }

    /// Submits queued entries and waits: not at all, for a time, or without limit.
    pub(super) fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        (self.sends, self.has_submitted) = (0, false);
        self.make_room()?;
        if timeout == Some(Duration::ZERO) {
            return self.submit();
        }
        let entries = self.ring.submission().len();
        passing(self.enter.submit_and_wait(entries, timeout))
    }

    /// Submits the entries in the queue without waiting, and runs the kernel's work that is due: no call without any.
    fn submit(&mut self) -> io::Result<()> {
        let runs_work = self.has_more();
        let entries = self.ring.submission().len();
        if entries == 0 && !runs_work {
            return Ok(());
        }
        passing(self.enter.submit(entries, runs_work))
    }

    /// Submits queued entries without waiting, once a turn, if one of them sends. Other completions that are
    /// due may come too: they belong to the next turn.
    pub(super) fn submit_sends(&mut self) {
        if self.sends > 0 && !self.has_submitted {
            self.has_submitted = true;
            // An error recurs at the turn's own enter, which reports it.
            let _ = self.make_room().and_then(|()| self.submit());
        }
    }

    /// Submits all queued entries without waiting. Returns whether none is left.
    pub(super) fn submit_all(&mut self) -> bool {
        // An error recurs at the turn's own enter, which reports it.
        let _ = self.make_room().and_then(|()| self.submit());
        self.is_submitted()
    }

    /// Returns whether no entry is queued.
    pub(super) fn is_submitted(&mut self) -> bool {
        self.overflow.is_empty() && self.ring.submission().is_empty()
    }

    /// Submits entries until the overflow fits into the queue.
    fn make_room(&mut self) -> io::Result<()> {
        while !self.overflow.is_empty() {
            self.submit()?;
            if self.ring.submission().is_full() {
                break; // the kernel takes nothing until completions have been taken
            }
            self.refill();
        }
        Ok(())
    }

    fn refill(&mut self) {
        while let Some(entry) = self.overflow.pop_front() {
            if !self.try_push(&entry) {
                self.overflow.push_front(entry);
                return;
            }
        }
    }

    /// Returns the next completion, skipping ignored ones.
    pub(super) fn take(&mut self) -> Option<Done> {
        loop {
            let entry = self.ring.completion().next()?;
            // SAFETY: it was just taken.
            let done = unsafe { Done::new(&entry) };
            if completes(done.purpose()) {
                self.in_flight -= usize::from(done.is_last());
            }
            if done.purpose() != Purpose::Cancel {
                return Some(done);
            }
        }
    }

    /// Returns whether the kernel has more completions: an enter runs a bounded part of what is due.
    pub(super) fn has_more(&mut self) -> bool {
        let queue = self.ring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    /// Returns whether there are completions to take.
    pub(super) fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }
}

impl Drop for Ring {
    /// Waits for all completions, or leaks the memory: until the last, the kernel writes to buffers and reads
    /// outputs.
    fn drop(&mut self) {
        for _ in 0..REAP_ENTERS_MAX {
            if self.in_flight == 0 {
                return;
            }
            self.push_cancel(CancelBuilder::any());
            if self.enter(Some(REAP_WAIT)).is_err() {
                break;
            }
            while self.take().is_some() {}
        }
        // Never freed: only the kernel knows when it stops using them.
        let _buffers = ManuallyDrop::new(mem::take(&mut self.buffers));
        let _outputs = ManuallyDrop::new(mem::take(&mut self.outputs));
        let _wake_count = ManuallyDrop::new(mem::take(&mut self.wake_count));
    }
}

/// Returns whether each entry for this purpose has a last completion.
fn completes(purpose: Purpose) -> bool {
    !matches!(purpose, Purpose::Cancel | Purpose::Silent)
}

/// Ignores errors after which the next turn continues: a timeout, a signal, a full completion queue, no memory.
///
/// A lost completion is fatal: its buffer or output would never be returned.
fn passing(result: io::Result<usize>) -> io::Result<()> {
    match result {
        Ok(_) => Ok(()),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY | Errno::NOMEM) => Ok(()),
            Some(Errno::BADR) => {
                Err(io::Error::other("the kernel has lost completions of an io_uring for lack of memory"))
            }
            _ => Err(error),
        },
    }
}

/// Time up to which the driver has caught up with the kernel (T4), by an expired timeout entry.
///
/// The kernel runs completions in the order in which they became ready: when this one arrives, so has everything that
/// was ready when it was submitted.
#[derive(Debug, Default)]
pub(super) struct Marker {
    caught_up_ms: u64,
    /// Time of its submission, while it is pending.
    sent_ms: Option<u64>,
}

impl Marker {
    /// Returns the time by which everything that had arrived was fetched.
    pub(super) fn caught_up_ms(&self) -> u64 {
        self.caught_up_ms
    }

    /// Records that the kernel had nothing more at `now_ms`.
    #[inline]
    pub(super) fn took_all(&mut self, now_ms: u64) {
        self.caught_up_ms = now_ms;
    }

    /// Submits the marker at `now_ms`, unless one is pending.
    pub(super) fn send(&mut self, ring: &mut Ring, now_ms: u64) {
        if self.sent_ms.is_none() {
            self.sent_ms = Some(now_ms);
            ring.push(Operation::marker(), Name::new(Purpose::Marker, Token::new(0, 0)));
        }
    }

    /// Records its completion.
    pub(super) fn completed(&mut self) {
        self.caught_up_ms = self.caught_up_ms.max(self.sent_ms.take().unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_turn_continues_after_a_shortage_but_not_after_a_lost_completion() {
        for errno in [Errno::TIME, Errno::INTR, Errno::AGAIN, Errno::BUSY, Errno::NOMEM] {
            assert!(passing(Err(errno.into())).is_ok(), "{errno}");
        }
        let lost = passing(Err(Errno::BADR.into())).expect_err("its buffer is never returned");
        assert!(lost.to_string().contains("lost completions"), "{lost}");
        assert!(passing(Err(Errno::BADF.into())).is_err());
    }

    /// Otherwise safe code could free an output that the kernel still reads.
    #[test]
    fn rejects_a_send_s_name_for_another_operation() {
        let Ok(mut ring) = Ring::new(8, 8, false) else {
            println!("skipped: there is no io_uring here");
            return;
        };
        let name = Name::new(Purpose::Send, Token::new(0, 0));
        let pushed = catch_unwind(AssertUnwindSafe(|| ring.push(Operation::marker(), name)));
        assert!(pushed.is_err());
    }
}
