//! The waker: an event counter that the ring reads.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use io_uring::opcode;
use io_uring::types::Fd;
use rustix::event::{EventfdFlags, eventfd};

use super::ring::{Kind, Name, Ring};
use crate::{Token, Waker};

/// Bytes of an event counter.
const COUNT_BYTES: usize = 8;

/// The counter, and where the kernel puts its value.
#[derive(Debug)]
pub(super) struct Wake {
    event: Arc<OwnedFd>,
    count: Box<[u8; COUNT_BYTES]>,
}

impl Wake {
    pub(super) fn new() -> io::Result<Self> {
        // Blocking: of a non-blocking one the ring gives EAGAIN instead of waiting.
        let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        Ok(Self { event, count: Box::default() })
    }

    /// Waits for the next wake. Not while the last is waited for.
    pub(super) fn arm(&mut self, ring: &mut Ring) {
        let fd = Fd(self.event.as_raw_fd());
        let entry = opcode::Read::new(fd, self.count.as_mut_ptr(), COUNT_BYTES as u32).build();
        ring.push(entry, Name::new(Kind::Wake, Token::new(0, 0)));
    }

    /// A handle for any thread.
    pub(super) fn waker(&self) -> Waker {
        let event = Arc::clone(&self.event);
        Waker::new(move || {
            // It can't fail: it writes to a descriptor that lives as long as it does, and never nears the count's end.
            let _ = rustix::io::write(&event, &1_u64.to_ne_bytes());
        })
    }

    /// Leaves the memory to a kernel that may still write to it.
    pub(super) fn give_up(&mut self) {
        // Dropped by nobody: the kernel alone knows until when it writes.
        let _left = ManuallyDrop::new(std::mem::take(&mut self.count));
    }
}
