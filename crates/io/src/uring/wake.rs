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

/// Bytes of an eventfd's counter.
const COUNT_BYTES: usize = 8;

/// The eventfd, and the buffer for its value.
#[derive(Debug)]
pub(super) struct Wake {
    event: Arc<OwnedFd>,
    count: Box<[u8; COUNT_BYTES]>,
}

impl Wake {
    pub(super) fn new() -> io::Result<Self> {
        // Blocking: reading a non-blocking one by the ring fails with EAGAIN instead of waiting.
        let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        Ok(Self { event, count: Box::default() })
    }

    /// Arms the next wake, after the last has completed.
    pub(super) fn arm(&mut self, ring: &mut Ring) {
        let fd = Fd(self.event.as_raw_fd());
        let entry = opcode::Read::new(fd, self.count.as_mut_ptr(), COUNT_BYTES as u32).build();
        ring.push(entry, Name::new(Kind::Wake, Token::new(0, 0)));
    }

    /// Returns a handle for any thread.
    pub(super) fn waker(&self) -> Waker {
        let event = Arc::clone(&self.event);
        Waker::new(move || {
            // Never fails: it writes to a descriptor that it owns, and never nears the counter's end.
            let _ = rustix::io::write(&event, &1_u64.to_ne_bytes());
        })
    }

    /// Leaks the buffer to a kernel that may still write to it.
    pub(super) fn leak(&mut self) {
        // Never freed: only the kernel knows when it stops writing.
        let _left = ManuallyDrop::new(std::mem::take(&mut self.count));
    }
}
