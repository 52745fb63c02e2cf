//! Event counters: of the waker, and for another event loop.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, OnceLock};

use rustix::event::{EventfdFlags, eventfd};

use super::ring::Ring;
use crate::Waker;

/// The event counters of a driver, shared with its wakers.
#[derive(Debug)]
pub(super) struct WakeEvents {
    /// Read by the ring. Blocking: reading a non-blocking one by the ring fails with EAGAIN instead of waiting.
    wake: OwnedFd,
    /// Incremented by the kernel for completions, deferred ones included, if another event loop watches it. Nobody reads
    /// it: it is watched for edges.
    shown: OnceLock<OwnedFd>,
}

impl WakeEvents {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self { wake: eventfd(0, EventfdFlags::CLOEXEC)?, shown: OnceLock::new() }))
    }

    /// Returns a waker.
    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        let events = Arc::clone(self);
        // The writes never fail: the counters never near their end. A write to `wake` doesn't show by itself: the kernel
        // increments no counter for another one before a grace period, and then not reliably (Linux 6.18).
        Waker::new(move || {
            let _ = rustix::io::write(&events.wake, &1_u64.to_ne_bytes());
            if let Some(shown) = events.shown.get() {
                let _ = rustix::io::write(shown, &1_u64.to_ne_bytes());
            }
        })
    }

    /// Has the ring wait for the waker.
    pub(super) fn await_wake(&self, ring: &mut Ring) {
        ring.await_wake(self.wake.as_raw_fd());
    }

    /// Returns the descriptor that shows completions.
    pub(super) fn descriptor(&self, ring: &mut Ring) -> io::Result<RawFd> {
        if let Some(shown) = self.shown.get() {
            return Ok(shown.as_raw_fd());
        }
        let shown = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        ring.show_completions(&shown)?;
        Ok(self.shown.get_or_init(|| shown).as_raw_fd())
    }
}
