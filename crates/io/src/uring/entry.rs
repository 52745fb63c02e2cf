//! Entries of the ring, their names, and their completions.

#![expect(unsafe_code, reason = "one field of an entry has no setter; completions prove that memory is free")]

use std::ptr;

use io_uring::types::{CancelBuilder, Fd, Timespec};
use io_uring::{cqueue, opcode, squeue};
use rustix::io::Errno;

use super::memory::{Filled, GROUP};
use crate::Token;

/// Bits of a name that hold the slot.
const SLOT_BITS: u32 = 28;
/// Number of slots that a name can hold.
pub(super) const SLOTS_MAX: usize = 1 << SLOT_BITS;

/// Purpose of an entry: the top bits of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Listener,
    Recv,
    Send,
    /// A send that completes only if it fails.
    Silent,
    Writable,
    PeerEnd,
    Wake,
    Marker,
    Alarm,
    Cancel,
}

/// Kinds by number, as many as four bits can name; the last ones are unused.
const PURPOSES: [Purpose; 16] = {
    let mut purposes = [Purpose::Cancel; 16];
    let named = [
        Purpose::Listener,
        Purpose::Recv,
        Purpose::Send,
        Purpose::Silent,
        Purpose::Writable,
        Purpose::PeerEnd,
        Purpose::Wake,
        Purpose::Marker,
        Purpose::Alarm,
        Purpose::Cancel,
    ];
    let mut number = 0;
    while number < named.len() {
        purposes[number] = named[number];
        number += 1;
    }
    purposes
};

/// An entry's name (`user_data`): purpose 4 bits, slot 28, generation 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name(pub(super) u64);

impl Name {
    /// Creates a name for a connection. A listener's slot is its number, a send's the index of its output.
    pub(super) fn new(purpose: Purpose, token: Token) -> Self {
        Self((purpose as u64) << 60 | (token.slot() as u64) << 32 | u64::from(token.generation()))
    }

    pub(super) fn purpose(self) -> Purpose {
        PURPOSES[(self.0 >> 60) as usize]
    }

    pub(super) fn token(self) -> Token {
        Token::new((self.0 >> 32) as u32 & (SLOTS_MAX as u32 - 1), self.0 as u32)
    }
}

/// Flag of a completion with a provided buffer.
const IORING_CQE_F_BUFFER: u32 = 1;

/// One completion: proof that the kernel has ended with the memory that it names.
#[derive(Debug)]
pub(super) struct Done {
    name: Name,
    result: i32,
    flags: u32,
}

impl Done {
    pub(super) fn purpose(&self) -> Purpose {
        self.name.purpose()
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

    /// Returns the provided buffer that the kernel has filled, once.
    pub(super) fn take_filled(&mut self) -> Option<Filled> {
        let id = cqueue::buffer_select(self.flags)?;
        self.flags &= !IORING_CQE_F_BUFFER;
        // SAFETY: the kernel has reported it with this completion, which is used once.
        Some(unsafe { Filled::new(id, u32::try_from(self.result).unwrap_or(0)) })
    }

    /// Returns the index of a completed send's output.
    pub(super) fn into_sent(self) -> u32 {
        self.into_index(Purpose::Send)
    }

    /// Returns the index of the output of a send that completes only if it fails.
    pub(super) fn into_unsent(self) -> u32 {
        self.into_index(Purpose::Silent)
    }

    fn into_index(self, purpose: Purpose) -> u32 {
        let Self { name, flags, .. } = self;
        assert!(name.purpose() == purpose && !cqueue::more(flags), "the kernel still has the output");
        name.token().slot() as u32
    }

    /// Returns a completion that no kernel has made, without a buffer of its own.
    #[cfg(test)]
    pub(super) fn forged(name: Name, result: i32, flags: u32) -> Self {
        Self { name, result, flags }
    }

    /// # Safety
    /// `entry` was taken from the ring, and is used once.
    pub(super) unsafe fn new(entry: &cqueue::Entry) -> Self {
        Self { name: Name(entry.user_data()), result: entry.result(), flags: entry.flags() }
    }
}

/// An operation that points to no memory, or to memory that is never freed.
#[derive(Debug)]
pub(super) struct Operation(squeue::Entry);

impl Operation {
    /// Waits for one of these events.
    pub(super) fn poll(fd: Fd, events: libc::c_short) -> Self {
        Self(opcode::PollAdd::new(fd, events as u32).build())
    }

    /// Reports each change of these events.
    pub(super) fn poll_changes(fd: Fd, events: libc::c_short) -> Self {
        Self(opcode::PollAdd::new(fd, events as u32).multi(true).build())
    }

    /// Receives once, into a provided buffer.
    pub(super) fn recv(fd: Fd) -> Self {
        let entry = opcode::Recv::new(fd, ptr::null_mut(), 0).buf_group(GROUP).build();
        Self(entry.flags(squeue::Flags::BUFFER_SELECT))
    }

    /// Receives up to `credit` bytes, plus the rest of the provided buffer that reaches it.
    pub(super) fn recv_until_used_up(fd: Fd, credit: u32) -> Self {
        Self(limited(opcode::RecvMulti::new(fd, GROUP).build(), credit))
    }

    /// Completes when everything that is ready now has completed.
    pub(super) fn marker() -> Self {
        static NO_TIME: Timespec = Timespec::new();
        Self(opcode::Timeout::new(&raw const NO_TIME).build())
    }

    pub(super) fn into_entry(self) -> squeue::Entry {
        self.0
    }

    /// Cancels others. Only a failure completes.
    pub(super) fn cancel(which: CancelBuilder) -> Self {
        Self(opcode::AsyncCancel2::new(which).build().flags(squeue::Flags::SKIP_SUCCESS))
    }
}

/// Ends a multishot receive with the buffer that reaches this many bytes (Linux 6.17; older kernels return
/// `EINVAL`).
fn limited(mut entry: squeue::Entry, bytes: u32) -> squeue::Entry {
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
    fn every_name_is_decoded() {
        for purpose in PURPOSES {
            for slot in [0, 4711, SLOTS_MAX as u32 - 1] {
                for generation in [0, 1, u32::MAX] {
                    let token = Token::new(slot, generation);
                    let name = Name::new(purpose, token);
                    assert_eq!((name.purpose(), name.token()), (purpose, token));
                }
            }
        }
    }
}
