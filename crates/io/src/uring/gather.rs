//! Message headers of outputs in several pieces. The kernel reads them until the send has ended: they must
//! not move.

#![expect(
    unsafe_code,
    reason = "the C library's `msghdr` has private fields: zeroes are the only way to make one"
)]

use std::ptr;

use crate::connections::GATHER_MAX;
use crate::{Output, Piece};

/// Message headers kept for later sends; others are freed.
const GATHERS_KEPT_MAX: usize = 64;

/// A message header and its `iovec`s.
struct Gather {
    slices: [libc::iovec; GATHER_MAX],
    header: libc::msghdr,
}

/// The message headers, by the index of their send.
#[derive(Default)]
pub(super) struct Gathers(Vec<Option<Box<Gather>>>);

impl std::fmt::Debug for Gathers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Gathers").field(&self.0.len()).finish()
    }
}

impl Gathers {
    /// Describes at most [`GATHER_MAX`] pieces of an output in memory. The pointer is valid until
    /// [`Gathers::release`] of this send, as long as the output is unchanged.
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

    /// Frees unused headers, up to the last one in use.
    pub(super) fn trim(&mut self) {
        while self.0.len() > GATHERS_KEPT_MAX && self.0.last().is_some_and(Option::is_none) {
            self.0.pop();
        }
        self.0.shrink_to_fit();
    }

    /// Frees a send's header after its end.
    pub(super) fn release(&mut self, send: u32) {
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
