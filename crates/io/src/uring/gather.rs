//! Descriptions of outputs in several pieces, which the kernel reads until the send has ended: they must not move.

#![expect(
    unsafe_code,
    reason = "the C library's `msghdr` has private fields: zeroes are the only way to make one"
)]

use std::ptr;

use crate::conns::GATHER_MAX;
use crate::{Output, Piece};

/// Descriptions kept for the next send; those of a busier moment are freed.
const GATHERS_KEPT_MAX: usize = 64;

/// One output's pieces as the kernel wants them told.
struct Gather {
    slices: [libc::iovec; GATHER_MAX],
    header: libc::msghdr,
}

/// The descriptions, by the index of their send.
#[derive(Default)]
pub(super) struct Gathers(Vec<Option<Box<Gather>>>);

impl std::fmt::Debug for Gathers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Gathers").field(&self.0.len()).finish()
    }
}

impl Gathers {
    /// Describes the pieces of an output in memory, at most [`GATHER_MAX`] of them. The pointer is good until
    /// [`Gathers::let_go`] of this send, as long as the output stays as it is.
    pub(super) fn describe(&mut self, send: u32, output: &Output) -> *const libc::msghdr {
        let index = send as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        let gather = self.0[index].get_or_insert_with(|| Box::new(Gather::empty()));
        let mut count = 0;
        for piece in output.pieces(0).take(GATHER_MAX) {
            let Piece::Bytes(bytes) = piece else { break };
            gather.slices[count] =
                libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            count += 1;
        }
        gather.header.msg_iov = gather.slices.as_mut_ptr();
        gather.header.msg_iovlen = count as _; // at most GATHER_MAX; its type differs between the C libraries
        &raw const gather.header
    }

    /// Frees the room of a busier moment, up to the last send that is described.
    pub(super) fn trim(&mut self) {
        while self.0.len() > GATHERS_KEPT_MAX && self.0.last().is_some_and(Option::is_none) {
            self.0.pop();
        }
        self.0.shrink_to_fit();
    }

    /// The send has ended.
    pub(super) fn let_go(&mut self, send: u32) {
        let index = send as usize;
        if index >= GATHERS_KEPT_MAX && index < self.0.len() {
            self.0[index] = None;
        }
    }
}

impl Gather {
    fn empty() -> Self {
        let nothing = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: all zeros are a valid `msghdr`: null pointers and lengths of 0.
        let header = unsafe { std::mem::zeroed() };
        Self { slices: [nothing; GATHER_MAX], header }
    }
}
