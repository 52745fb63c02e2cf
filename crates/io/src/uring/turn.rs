//! A turn: one enter, then the completions one by one, then work by hand.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::types::Fd;

use super::descriptors::until_retry;
use super::entry::{Done, Purpose};
use super::ring::COMPLETION_ENTRIES;
use super::{RingState, Uring};
use crate::connections::{Flags, Pushed, Slot};
use crate::{Event, ListenerId};

/// Capacity that idle queues keep.
const QUEUE_KEPT: usize = 64;

impl Uring {
    pub(super) fn begin_turn(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.ring.mute_event(true);
        let timeout = self.end_turn(timeout);
        self.ring.enter(timeout)?;
        self.store_surplus();
        self.clock.read();
        self.conns.begin_turn(self.clock.now_ms);
        if self.listeners.begin_turn(self.clock.now_ms) {
            self.unwatch_removed();
        }
        while let Some(done) = self.held.pop_back() {
            self.completions.push_front(done);
        }
        self.take_completions();
        self.settle_silent();
        self.completions_left = self.completions.len();
        for _ in 0..self.writable.len() {
            let Some(token) = self.writable.pop_front() else { break };
            self.note_writable(token);
        }
        self.conns.note_fetched();
        if self.ring.is_drained() {
            self.marker.took_all(self.clock.now_ms);
        }
        Ok(())
    }

    /// Queues the entries that a wait begins with. Returns its timeout: zero if there is work left, none if the alarm
    /// expires by then.
    fn end_turn(&mut self, timeout: Option<Duration>) -> Option<Duration> {
        self.release_lent();
        let was_short = self.descriptors.begin_turn();
        self.rearm_recvs();
        self.watch_listeners();
        let is_short = was_short || self.descriptors.are_short();
        let timeout = if is_short { until_retry(timeout) } else { timeout };
        if self.is_busy() {
            return Some(Duration::ZERO);
        }
        let timeout = self.listeners.bound_wait(timeout, self.clock.now_ms);
        self.alarm.cover(timeout, &self.clock, &mut self.ring)
    }

    /// Submits what a wait would submit; returns its timeout.
    pub(super) fn arm_event(&mut self, timeout: Option<Duration>) -> io::Result<Option<Duration>> {
        let timeout = self.end_turn(timeout);
        if timeout == Some(Duration::ZERO) {
            return Ok(timeout);
        }
        self.ring.mute_event(true);
        self.ring.enter(Some(Duration::ZERO))?;
        self.ring.mute_event(false);
        // The kernel may have taken only a part.
        let is_done = self.ring.is_submitted() && self.ring.is_drained();
        Ok(if is_done { timeout } else { Some(Duration::ZERO) })
    }

    /// Frees memory of a busier moment. The kernel writes to no buffer between two enters, so all that it has
    /// written is reported by completions: none may be left.
    pub(super) fn trim(&mut self) -> bool {
        if self.is_busy() || self.lent.is_some() || !self.ring.is_drained() {
            return false;
        }
        self.ring.trim();
        self.conns.slots.trim();
        self.descriptors.trim();
        self.completions.shrink_to(QUEUE_KEPT);
        self.held.shrink_to(QUEUE_KEPT);
        self.rearm.shrink_to(QUEUE_KEPT);
        self.rearm_bulk.shrink_to(QUEUE_KEPT);
        self.writable.shrink_to(QUEUE_KEPT);
        self.unsent.shrink_to(QUEUE_KEPT);
        self.behind.shrink_to(QUEUE_KEPT);
        true
    }

    /// Returns whether there is work that needs no event of the kernel.
    pub(super) fn is_busy(&self) -> bool {
        self.conns.has_work()
            || !self.completions.is_empty()
            || !self.held.is_empty()
            || (self.waits_to_be_armed() && !self.descriptors.are_short())
            || !self.unsent.is_empty()
            || !self.behind.is_empty()
            || self.settles_soon
            || self.listeners.are_due()
    }

    fn waits_to_be_armed(&self) -> bool {
        !self.rearm.is_empty() || !self.rearm_bulk.is_empty()
    }

    /// Moves completions from the ring to `completions`.
    pub(super) fn take_completions(&mut self) {
        while self.completions.len() < COMPLETION_ENTRIES as usize {
            let Some(done) = self.ring.take() else { return };
            match done.purpose() {
                Purpose::Listener => self.listeners.watch_ended(done.token().slot() as ListenerId),
                Purpose::Writable => self.awaited(&done),
                Purpose::Silent => self.silent_failed(done),
                Purpose::Marker => self.marker.completed(),
                Purpose::Alarm => self.alarm.note(),
                Purpose::Wake => {
                    self.conns.work.woken = true;
                    self.listeners.inbox.note_wake();
                    self.wakes.await_wake(&mut self.ring);
                }
                _ => self.completions.push_back(done),
            }
        }
    }

    pub(super) fn release_lent(&mut self) {
        if let Some(buffer) = self.lent.take() {
            self.ring.release(buffer);
        }
    }

    /// Returns the turn's next event: failed silent sends, completions of verbs, then the kernel's, then sends by
    /// hand, then new connections.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.release_lent();
        self.conns.work.after_sent = false;
        if let Some(token) = self.take_unsent() {
            return Some(Event::Unsent { token });
        }
        loop {
            if let Some(event) = self.conns.next_completion() {
                return Some(self.after_event(event));
            }
            if self.completions_left > 0 {
                self.completions_left -= 1;
                let done = self.completions.pop_front()?;
                if let Some(event) = self.completed(done) {
                    return Some(event);
                }
                continue;
            }
            // A wake follows what had happened before it.
            if let Some(woken) = self.conns.next_woken() {
                return Some(woken);
            }
            // Submits ready responses first: work by hand takes time.
            let Some((token, pushed)) = self.conns.push_next(|| self.ring.submit_sends()) else {
                return self.next_accept();
            };
            match pushed {
                Pushed::Ended(send) => {
                    let event = self.conns.sent_event(token, send);
                    return Some(self.after_event(event));
                }
                Pushed::Full => self.await_writable(token),
                Pushed::Share | Pushed::Fetching => {}
            }
        }
    }

    /// Handles one completion of the kernel.
    fn completed(&mut self, done: Done) -> Option<Event> {
        match done.purpose() {
            Purpose::Recv => self.received(done),
            Purpose::Send => self.sent(done),
            Purpose::PeerEnd => self.watch_ended(done),
            // Handled earlier: see `take_completions` and `Ring::take`.
            Purpose::Listener
            | Purpose::Silent
            | Purpose::Writable
            | Purpose::Wake
            | Purpose::Marker
            | Purpose::Alarm
            | Purpose::Cancel => None,
        }
    }

    /// Closes the connection of a reported send if that was all it waited for.
    pub(super) fn after_event(&mut self, event: Event) -> Event {
        if let Event::Sent { token, .. } = event {
            self.finish_close(token);
        }
        event
    }
}

/// Flags of a connection's entries whose last completion is outstanding: receiving, watching for the peer's end,
/// sending, waiting to send.
pub(super) const IN_KERNEL: Flags =
    Flags::ARMED.and(Flags::END_WATCHED).and(Flags::SENDING).and(Flags::AWAITING);

/// Marks an entry to be pushed by `flag`; returns the connection's descriptor.
pub(super) fn pend(slot: &mut Slot<RingState>, flag: Flags) -> Option<Fd> {
    let fd = slot.fd.as_ref()?.as_raw_fd();
    slot.flags.set(flag);
    Some(Fd(fd))
}

/// Records the last completion of an entry that `flag` marks.
pub(super) fn settle(slot: &mut Slot<RingState>, flag: Flags) {
    debug_assert!(slot.flags.has(flag), "an entry has completed twice");
    slot.flags.clear(flag);
}
