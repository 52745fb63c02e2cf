//! A turn: one enter, then the completions one by one, then work by hand.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::types::Fd;

use super::entry::{Done, Purpose};
use super::ring::COMPLETION_ENTRIES;
use super::{InRing, Uring};
use crate::connections::{Flags, NONE, Pushed, Slot};
use crate::{Event, ListenerId, Token};

/// Capacity that idle queues keep.
const QUEUE_KEPT: usize = 64;

impl Uring {
    pub(super) fn begin_turn(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.release_lent();
        self.rearm_recvs();
        self.watch_listeners();
        let timeout = if self.is_busy() { Some(Duration::ZERO) } else { timeout };
        self.ring.enter(timeout)?;
        self.clock.read();
        self.conns.begin_turn(self.clock.now_ms);
        self.listeners.begin_turn();
        while let Some(done) = self.held.pop_back() {
            self.completions.push_front(done);
        }
        self.take_completions();
        self.completions_left = self.completions.len();
        while let Some(token) = self.writable.pop_front() {
            self.note_writable(token);
        }
        self.conns.note_fetched();
        if !self.ring.has_more() && !self.ring.has_completions() {
            self.marker.took_all(self.clock.now_ms);
        }
        Ok(())
    }

    /// Frees memory of a busier moment. The kernel writes to no buffer between two enters, so all that it has
    /// written is reported by completions: none may be left.
    pub(super) fn trim(&mut self) -> bool {
        if self.is_busy() || self.lent.is_some() || self.ring.has_completions() || self.ring.has_more() {
            return false;
        }
        self.ring.trim();
        self.completions.shrink_to(QUEUE_KEPT);
        self.held.shrink_to(QUEUE_KEPT);
        self.rearm.shrink_to(QUEUE_KEPT);
        self.rearm_bulk.shrink_to(QUEUE_KEPT);
        self.writable.shrink_to(QUEUE_KEPT);
        true
    }

    /// Returns whether there is work that needs no event of the kernel.
    fn is_busy(&self) -> bool {
        self.conns.has_work()
            || !self.completions.is_empty()
            || !self.held.is_empty()
            || !self.rearm.is_empty()
            || !self.rearm_bulk.is_empty()
            || self.listeners.are_due()
    }

    /// Moves completions from the ring to `completions`.
    pub(super) fn take_completions(&mut self) {
        while self.completions.len() < COMPLETION_ENTRIES as usize {
            let Some(done) = self.ring.take() else { return };
            match done.purpose() {
                Purpose::Listener => self.listeners.watch_ended(done.token().slot() as ListenerId),
                Purpose::Writable => self.awaited(&done),
                Purpose::Marker => self.marker.completed(),
                Purpose::Wake => {
                    self.conns.work.woken = true;
                    self.listeners.inbox.note_wake();
                    self.ring.await_wake(self.wake.as_raw_fd());
                }
                _ => self.completions.push_back(done),
            }
        }
    }

    fn note_writable(&mut self, token: Token) {
        let Some(slot) = self.conns.slots.held_mut(token) else { return };
        settle(slot, Flags::AWAITING);
        if slot.flags.has(Flags::CLOSING) {
            self.finish_close(token);
        } else if slot.send != NONE {
            slot.flags.set(Flags::WRITABLE);
            self.conns.work.sends.enqueue(token, &mut slot.flags);
        }
    }

    pub(super) fn release_lent(&mut self) {
        if let Some(buffer) = self.lent.take() {
            self.ring.release(buffer);
        }
    }

    /// Returns the turn's next event: completions of verbs, then the kernel's, then sends by hand, then new
    /// connections.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.release_lent();
        self.conns.work.after_sent = false;
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
            // A wake follows what had happened before it: the ends of sends may have been late.
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
            Purpose::PeerEnd => self.watch_ended(&done),
            // Handled earlier: see `take_completions` and `Ring::take`.
            Purpose::Listener | Purpose::Writable | Purpose::Wake | Purpose::Marker | Purpose::Cancel => None,
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

/// Marks an entry to be pushed by `flag`; returns the connection's descriptor.
pub(super) fn pend(slot: &mut Slot<InRing>, flag: Flags) -> Option<Fd> {
    let fd = slot.fd.as_ref()?.as_raw_fd();
    slot.flags.set(flag);
    slot.extra.pending += 1;
    Some(Fd(fd))
}

/// Records the last completion of an entry that `flag` marks.
pub(super) fn settle(slot: &mut Slot<InRing>, flag: Flags) {
    debug_assert!(slot.flags.has(flag), "an entry has completed twice");
    slot.flags.clear(flag);
    slot.extra.pending -= 1;
}
