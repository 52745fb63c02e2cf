//! Outputs that the kernel reads. They are owned here until their sends have completed.

#![expect(
    unsafe_code,
    reason = "the C library's `msghdr` has private fields: zeroes are the only way to make one"
)]

use std::ptr;

use io_uring::types::Fd;
use io_uring::{opcode, squeue};

use crate::connections::{GATHER_MAX, Slab};
use crate::{Output, Piece, Token};

/// Message headers kept for later sends; others are freed.
const SPARE_GATHERS_MAX: usize = 64;

const FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// A message header and its `iovec`s. The kernel reads them until the send has ended: they must not move.
struct Gather {
    slices: [libc::iovec; GATHER_MAX],
    header: libc::msghdr,
}

/// A send in the ring.
#[derive(Default)]
struct InRing {
    token: Option<Token>,
    output: Output,
    gather: Option<Box<Gather>>,
}

/// The outputs of all sends in the ring.
#[derive(Default)]
pub(super) struct Outputs {
    sends: Slab<InRing>,
    #[expect(clippy::vec_box, reason = "they move between here and `sends`, where the kernel reads them")]
    spare: Vec<Box<Gather>>,
}

impl Outputs {
    /// Adds an output in memory; returns its index and the entry that sends it. The entry points to memory of
    /// the output, which itself may move.
    pub(super) fn insert(&mut self, token: Token, fd: Fd, output: Output) -> (u32, squeue::Entry) {
        let (entry, gather) = if output.items().is_empty() {
            // Its length is at most a quantum.
            let (start, len) = (output.bytes().as_ptr(), output.bytes().len() as u32);
            (opcode::Send::new(fd, start, len).flags(FLAGS).build(), None)
        } else {
            let mut gather = self.spare.pop().unwrap_or_else(|| Box::new(Gather::empty()));
            let header = gather.describe(&output);
            (opcode::SendMsg::new(fd, header).flags(FLAGS as u32).build(), Some(gather))
        };
        (self.sends.insert(InRing { token: Some(token), output, gather }), entry)
    }

    /// Removes the output of a completed send. Each index once.
    pub(super) fn remove(&mut self, index: u32) -> (Token, Output) {
        let InRing { token, output, gather } = self.sends.remove(index);
        if let Some(gather) = gather.filter(|_| self.spare.len() < SPARE_GATHERS_MAX) {
            self.spare.push(gather);
        }
        (token.expect("a send completes once"), output)
    }

    /// Frees message headers.
    pub(super) fn trim(&mut self) {
        self.spare = Vec::new();
    }
}

impl Gather {
    fn empty() -> Self {
        let nothing = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: all zeros are a valid `msghdr`: null pointers and lengths of 0.
        let header = unsafe { std::mem::zeroed() };
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
