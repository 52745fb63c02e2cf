//! The ring: setup, submission, one enter per turn, completions. The only place that submits entries.
//!
//! An entry may point into memory. This is sound because the driver owns that memory, does not move it, and
//! frees it only after the entry's last completion ([`Ring::is_idle`] when the driver ends).

#![expect(unsafe_code, reason = "entries have pointers that the kernel follows, which nothing can check")]

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{IoUring, Submitter, cqueue, opcode, squeue};
use rustix::io::Errno;

use crate::Token;
use crate::limits::{SENT_LATE_MS_MAX, SENT_LATE_SENDS_MAX};

/// Entries submitted by one call; more take several.
pub(super) const SUBMIT_ENTRIES: u32 = 256;
/// Completions that fit; the kernel keeps the others.
pub(super) const COMPLETION_ENTRIES: u32 = 4096;

const SENT_LATE_MAX: Duration = Duration::from_millis(SENT_LATE_MS_MAX);

/// Bits of a name that hold the slot.
const SLOT_BITS: u32 = 28;
/// Number of slots that a name can hold.
pub(super) const SLOTS_MAX: usize = 1 << SLOT_BITS;

/// Purpose of an entry: the top bits of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Listener,
    Recv,
    Send,
    Writable,
    PeerEnd,
    Wake,
    Marker,
    Cancel,
}

/// Kinds by number, as many as four bits can name; the last ones are unused.
const KINDS: [Kind; 16] = {
    let mut kinds = [Kind::Cancel; 16];
    let named = [
        Kind::Listener,
        Kind::Recv,
        Kind::Send,
        Kind::Writable,
        Kind::PeerEnd,
        Kind::Wake,
        Kind::Marker,
        Kind::Cancel,
    ];
    let mut number = 0;
    while number < named.len() {
        kinds[number] = named[number];
        number += 1;
    }
    kinds
};

/// An entry's name (`user_data`): kind 4 bits, slot 28, generation 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name(u64);

impl Name {
    /// Creates a name for a connection; a listener's slot is its number.
    pub(super) fn new(kind: Kind, token: Token) -> Self {
        Self((kind as u64) << 60 | (token.slot() as u64) << 32 | u64::from(token.generation()))
    }

    fn kind(self) -> Kind {
        KINDS[(self.0 >> 60) as usize]
    }

    fn token(self) -> Token {
        Token::new((self.0 >> 32) as u32 & (SLOTS_MAX as u32 - 1), self.0 as u32)
    }
}

/// One completion.
#[derive(Debug)]
pub(super) struct Done {
    name: Name,
    result: i32,
    flags: u32,
}

impl Done {
    pub(super) fn kind(&self) -> Kind {
        self.name.kind()
    }

    pub(super) fn token(&self) -> Token {
        self.name.token()
    }

    /// Returns the result of the operation.
    pub(super) fn result(&self) -> Result<u32, Errno> {
        u32::try_from(self.result).map_err(|_| Errno::from_raw_os_error(-self.result))
    }

    /// Returns whether it is the entry's last completion.
    pub(super) fn is_last(&self) -> bool {
        !cqueue::more(self.flags)
    }

    /// Returns the provided buffer that was used.
    pub(super) fn buffer(&self) -> Option<u16> {
        cqueue::buffer_select(self.flags)
    }
}

impl From<cqueue::Entry> for Done {
    fn from(entry: cqueue::Entry) -> Self {
        Self { name: Name(entry.user_data()), result: entry.result(), flags: entry.flags() }
    }
}

/// The ring of one worker.
pub(super) struct Ring {
    ring: IoUring,
    /// Entries for which the queue had no room: at most one per connection and verb.
    overflow: VecDeque<squeue::Entry>,
    /// Entries whose last completion is outstanding, except cancels.
    in_flight: usize,
    /// Send entries queued since the turn's enter. They never wait: submitting them completes them.
    sends: usize,
    /// True if the worker awaits one of those completions.
    is_awaited: bool,
    /// True if they were submitted before the next enter.
    has_submitted: bool,
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
        Ok(Self {
            ring: builder.build(entries)?,
            overflow: VecDeque::new(),
            in_flight: 0,
            sends: 0,
            is_awaited: false,
            has_submitted: false,
        })
    }

    pub(super) fn submitter(&self) -> Submitter<'_> {
        self.ring.submitter()
    }

    pub(super) fn params(&self) -> &io_uring::Parameters {
        self.ring.params()
    }

    /// Queues an entry under a name. The next [`Ring::enter`] submits it.
    pub(super) fn push(&mut self, entry: squeue::Entry, name: Name) {
        if name.kind() != Kind::Cancel {
            self.in_flight += 1;
        }
        let entry = entry.user_data(name.0);
        if !self.overflow.is_empty() || !self.try_push(&entry) {
            self.overflow.push_back(entry);
        }
    }

    /// Queues a send entry that never waits. Unless its completion `is_awaited`, it doesn't end the wait of
    /// the next enter.
    pub(super) fn push_send(&mut self, entry: squeue::Entry, name: Name, is_awaited: bool) {
        self.sends += 1;
        self.is_awaited |= is_awaited;
        self.push(entry, name);
    }

    fn try_push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: memory that the entry points to lives until its last completion (see the top of this file).
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    /// Cancels the entry of this name. Its last completion still comes; the cancel's own is ignored.
    pub(super) fn cancel(&mut self, name: Name) {
        self.push_cancel(CancelBuilder::user_data(name.0));
    }

    fn push_cancel(&mut self, which: CancelBuilder) {
        let entry = opcode::AsyncCancel2::new(which).build().flags(squeue::Flags::SKIP_SUCCESS);
        self.push(entry, Name::new(Kind::Cancel, Token::new(0, 0)));
    }

    /// Makes the completion of this turn's sends end the next wait.
    pub(super) fn await_sends(&mut self) {
        self.is_awaited = true;
    }

    /// Returns the number of this turn's sends whose completions don't end the next wait.
    pub(super) fn late_sends(&self) -> usize {
        if self.is_awaited || self.sends > SENT_LATE_SENDS_MAX { 0 } else { self.sends }
    }

    /// Submits queued entries and waits: not at all, for a time, or without limit.
    pub(super) fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let sends = self.late_sends();
        (self.sends, self.is_awaited, self.has_submitted) = (0, false, false);
        self.make_room()?;
        if timeout == Some(Duration::ZERO) && self.has_nothing_to_say() {
            return Ok(());
        }
        // Otherwise the completions of this enter's sends would end the wait at once, and the next turn would
        // only wait again.
        let (completions, timeout) = match sends {
            0 => (1, timeout),
            _ => (1 + sends, Some(timeout.map_or(SENT_LATE_MAX, |timeout| timeout.min(SENT_LATE_MAX)))),
        };
        let submitter = self.ring.submitter();
        passing(match timeout {
            Some(Duration::ZERO) => submitter.submit(),
            None => submitter.submit_and_wait(completions),
            Some(timeout) => {
                let timespec = Timespec::from(timeout);
                submitter.submit_with_args(completions, &SubmitArgs::new().timespec(&timespec))
            }
        })
    }

    /// Submits queued entries without waiting, once a turn, if one of them sends. Other completions that are
    /// due may come too: they belong to the next turn.
    pub(super) fn submit_sends(&mut self) {
        if self.sends > 0 && !self.has_submitted {
            self.has_submitted = true;
            // An error recurs at the turn's own enter, which reports it.
            let _ = self.make_room().and_then(|()| passing(self.ring.submit()));
        }
    }

    /// Returns whether an enter without waiting would do nothing.
    fn has_nothing_to_say(&mut self) -> bool {
        self.ring.submission().is_empty() && !self.has_more()
    }

    /// Submits entries until the overflow fits into the queue.
    fn make_room(&mut self) -> io::Result<()> {
        while !self.overflow.is_empty() {
            passing(self.ring.submit())?;
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
            let done = Done::from(self.ring.completion().next()?);
            if done.kind() != Kind::Cancel {
                self.in_flight -= usize::from(done.is_last());
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

    /// Returns whether the kernel holds no entry.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Cancels all entries.
    pub(super) fn cancel_all(&mut self) {
        self.push_cancel(CancelBuilder::any());
    }
}

/// Ignores errors after which the next turn continues: a timeout, a signal, a full completion queue.
fn passing(result: io::Result<usize>) -> io::Result<()> {
    match result {
        Ok(_) => Ok(()),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY) => Ok(()),
            _ => Err(error),
        },
    }
}

/// Ends a multishot receive with the buffer that reaches this many bytes (Linux 6.17; older kernels return
/// `EINVAL`).
pub(super) fn limited(mut entry: squeue::Entry, bytes: u32) -> squeue::Entry {
    /// Offset of `optlen` in the kernel's `struct io_uring_sqe`.
    const OPTLEN: usize = 44;
    const { assert!(size_of::<squeue::Entry>() == 64) };
    let start = (&raw mut entry).cast::<u8>();
    // SAFETY: an entry is the kernel's struct of 64 bytes.
    let field = unsafe { start.add(OPTLEN) }.cast::<u32>();
    // SAFETY: the field is within the entry, at a multiple of its size, and any value is valid.
    unsafe { field.write(bytes) };
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_way_back() {
        for kind in KINDS {
            for slot in [0, 4711, SLOTS_MAX as u32 - 1] {
                for generation in [0, 1, u32::MAX] {
                    let token = Token::new(slot, generation);
                    let name = Name::new(kind, token);
                    assert_eq!((name.kind(), name.token()), (kind, token));
                }
            }
        }
    }
}
