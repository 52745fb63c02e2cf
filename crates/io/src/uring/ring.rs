//! The ring: set up, filled, entered once a turn, emptied. The one place where entries are handed to the kernel.
//!
//! An entry may point into memory. What makes that sound: such memory is owned by the driver, does not move, and is let
//! go only after the entry's last completion ([`Ring::is_idle`] at the end of the driver's life).

#![expect(
    unsafe_code,
    reason = "entries hold pointers that the kernel follows: no check can see that they are good"
)]

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{IoUring, Submitter, cqueue, opcode, squeue};
use rustix::io::Errno;

use crate::Token;
use crate::limits::{SENT_LATE_MS_MAX, SENT_LATE_SENDS_MAX};

/// Entries that go to the kernel by one call; more go by several.
pub(super) const SUBMIT_ENTRIES: u32 = 256;
/// Completions that fit; the kernel keeps what does not.
pub(super) const COMPLETION_ENTRIES: u32 = 4096;

const SENT_LATE_MAX: Duration = Duration::from_millis(SENT_LATE_MS_MAX);

/// Bits of an entry's name that hold the slot.
const SLOT_BITS: u32 = 28;
/// Slots that can be named.
pub(super) const SLOTS_MAX: usize = 1 << SLOT_BITS;

/// What an entry is about: the top bits of its name.
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

/// By number. As many as four bits can name: those beyond are given to nothing.
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
    /// The name of what concerns a connection; a listener's slot is its number.
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

    /// What the call would have given.
    pub(super) fn result(&self) -> Result<u32, Errno> {
        u32::try_from(self.result).map_err(|_| Errno::from_raw_os_error(-self.result))
    }

    /// Whether the entry has come to its end.
    pub(super) fn is_last(&self) -> bool {
        !cqueue::more(self.flags)
    }

    /// The provided buffer that was used.
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
    /// Entries that found the queue full: one per connection and verb at most.
    overflow: VecDeque<squeue::Entry>,
    /// Entries whose last completion is still to come, but for cancels.
    in_flight: usize,
    /// Entries that send, queued since the turn's enter. They never wait: their completions come as they are handed over.
    sends: usize,
    /// Whether somebody waits for one of those completions.
    is_awaited: bool,
    /// Whether they were handed over before the next.
    has_handed_over: bool,
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
            has_handed_over: false,
        })
    }

    pub(super) fn submitter(&self) -> Submitter<'_> {
        self.ring.submitter()
    }

    pub(super) fn params(&self) -> &io_uring::Parameters {
        self.ring.params()
    }

    /// Queues an entry under a name. It reaches the kernel by the next [`Ring::enter`].
    pub(super) fn push(&mut self, entry: squeue::Entry, name: Name) {
        if name.kind() != Kind::Cancel {
            self.in_flight += 1;
        }
        let entry = entry.user_data(name.0);
        if !self.overflow.is_empty() || !self.try_push(&entry) {
            self.overflow.push_back(entry);
        }
    }

    /// Queues an entry that sends without waiting. Unless its completion `is_awaited`, the next enter goes on waiting when that has come.
    pub(super) fn push_send(&mut self, entry: squeue::Entry, name: Name, is_awaited: bool) {
        self.sends += 1;
        self.is_awaited |= is_awaited;
        self.push(entry, name);
    }

    fn try_push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: what the entry points to lives until its last completion (see the top of this file).
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    /// Cancels the entry of this name. Its last completion still comes, the cancel's own concerns nobody.
    pub(super) fn cancel(&mut self, name: Name) {
        self.push_cancel(CancelBuilder::user_data(name.0));
    }

    fn push_cancel(&mut self, which: CancelBuilder) {
        let entry = opcode::AsyncCancel2::new(which).build().flags(squeue::Flags::SKIP_SUCCESS);
        self.push(entry, Name::new(Kind::Cancel, Token::new(0, 0)));
    }

    /// Somebody waits for the end of one of this turn's sends after all.
    pub(super) fn await_sends(&mut self) {
        self.is_awaited = true;
    }

    /// This turn's sends whose ends by themselves don't end the next wait.
    pub(super) fn late_sends(&self) -> usize {
        if self.is_awaited || self.sends > SENT_LATE_SENDS_MAX { 0 } else { self.sends }
    }

    /// Hands over what is queued and waits: not at all, for so long, or without limit.
    pub(super) fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let sends = self.late_sends();
        (self.sends, self.is_awaited, self.has_handed_over) = (0, false, false);
        self.make_room()?;
        if timeout == Some(Duration::ZERO) && self.has_nothing_to_say() {
            return Ok(());
        }
        // By themselves the completions of what is sent here would end the wait at once, and the next turn would do nothing but wait again.
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

    /// Hands over what is queued, if something is to be sent, once a turn, and doesn't wait. The kernel may do what else is due as well: its completions are
    /// the next turn's.
    pub(super) fn hand_over_sends(&mut self) {
        if self.sends > 0 && !self.has_handed_over {
            self.has_handed_over = true;
            // What goes wrong here does so at the turn's own enter as well, which tells it.
            let _ = self.make_room().and_then(|()| passing(self.ring.submit()));
        }
    }

    /// Whether an enter that does not wait would do nothing.
    fn has_nothing_to_say(&mut self) -> bool {
        self.ring.submission().is_empty() && !self.has_more()
    }

    /// Hands over entries until those that found the queue full are in it.
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

    /// The next completion that concerns anybody.
    pub(super) fn take(&mut self) -> Option<Done> {
        loop {
            let done = Done::from(self.ring.completion().next()?);
            if done.kind() != Kind::Cancel {
                self.in_flight -= usize::from(done.is_last());
                return Some(done);
            }
        }
    }

    /// Whether the kernel has more than it told: an enter runs a bounded part of what is due.
    pub(super) fn has_more(&mut self) -> bool {
        let queue = self.ring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    /// Whether there are completions to be taken.
    pub(super) fn has_told(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Whether the kernel holds no entry.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Cancels everything.
    pub(super) fn cancel_all(&mut self) {
        self.push_cancel(CancelBuilder::any());
    }
}

/// Errors after which the next turn goes on: the time has passed, a signal, completions that must be taken first.
fn passing(result: io::Result<usize>) -> io::Result<()> {
    match result {
        Ok(_) => Ok(()),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY) => Ok(()),
            _ => Err(error),
        },
    }
}

/// Ends a multishot receive with the buffer that reaches this many bytes (Linux 6.17; older kernels say `EINVAL`).
pub(super) fn limited(mut entry: squeue::Entry, bytes: u32) -> squeue::Entry {
    /// Where the kernel's `struct io_uring_sqe` has `optlen`.
    const OPTLEN: usize = 44;
    const { assert!(size_of::<squeue::Entry>() == 64) };
    let start = (&raw mut entry).cast::<u8>();
    // SAFETY: an entry is the kernel's struct of 64 bytes.
    let field = unsafe { start.add(OPTLEN) }.cast::<u32>();
    // SAFETY: the field lies within the entry, at a multiple of its size, and any value is valid.
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
