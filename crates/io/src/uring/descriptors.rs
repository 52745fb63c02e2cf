//! Descriptors of connections: a cache over the [`Store`].
//!
//! Beyond its bound, idle connections keep only their file, in the store. A descriptor is opened again when a verb
//! needs one. Entries in the kernel hold the file itself: an armed receive continues without a descriptor.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::store::Store;
use super::{RingState, Uring};
use crate::Token;
use crate::connections::{Flags, NONE, Slot, SlotState};
use crate::limits::{
    CANCEL_CONNECTIONS_MAX, DESCRIPTOR_RETRY_MS, DESCRIPTOR_SCAN_MAX, DESCRIPTOR_SHORTAGE_SCAN_MAX,
    DESCRIPTORS_MIN,
};

/// Part of the bound that stays free between turns: new connections and those with input take it.
const FREE_PART: usize = 8;

/// Number of times that the process had no descriptor for a connection. Idle connections of all drivers give theirs up
/// then.
static SHORTAGES: AtomicUsize = AtomicUsize::new(0);

/// Account of the descriptors of a driver's connections.
#[derive(Debug)]
pub(super) struct Descriptors {
    /// `None` if every connection has a descriptor: there are enough, or the kernel can't store files. In a cell
    /// because calls that only read open a descriptor, too.
    store: Option<RefCell<Store>>,
    /// Open ones, including those of detached connections until their tokens are closed.
    open: usize,
    /// Bound of `open`.
    max: usize,
    /// Bound of open ones within a turn.
    high: usize,
    /// Bound of open ones between turns, unless more connections are active.
    low: usize,
    /// The slot to examine next for an idle connection.
    hand: usize,
    /// Slots that this turn may still examine for want of a descriptor.
    scan_left: usize,
    /// True if none could be opened in this turn.
    is_short: bool,
    /// True if a file could not be stored in this turn.
    is_full: bool,
    /// The shortages for which idle connections were stored.
    shortages: usize,
}

impl Descriptors {
    pub(super) fn new(store: Option<Store>, max: usize) -> Self {
        let max = if store.is_some() { max } else { usize::MAX };
        Self {
            store: store.map(RefCell::new),
            open: 0,
            max,
            high: max.max(DESCRIPTORS_MIN),
            low: max - max / FREE_PART,
            hand: 0,
            scan_left: DESCRIPTOR_SHORTAGE_SCAN_MAX,
            is_short: false,
            is_full: false,
            shortages: SHORTAGES.load(Ordering::Relaxed),
        }
    }

    /// Counts a new connection.
    pub(super) fn note_opened(&mut self) {
        self.open += 1;
    }

    /// Counts the end of a detached connection.
    pub(super) fn note_closed(&mut self) {
        self.open -= 1;
    }

    /// Returns whether the next turn may find a descriptor that was missing in this one.
    pub(super) fn are_short(&self) -> bool {
        self.is_short
    }

    /// Begins a turn: descriptors may be free again. Returns whether one was missing in the last turn.
    pub(super) fn begin_turn(&mut self) -> bool {
        self.is_full = false;
        self.scan_left = DESCRIPTOR_SHORTAGE_SCAN_MAX;
        std::mem::take(&mut self.is_short)
    }

    /// Frees the memory of a busier moment.
    pub(super) fn trim(&mut self) {
        if let Some(store) = &mut self.store {
            store.get_mut().trim();
        }
    }

    /// Closes a connection's descriptor, and removes its file from the store.
    pub(super) fn close(&mut self, token: Token, slot: &mut Slot<RingState>) {
        if slot.fd.take().is_some() {
            self.open -= 1;
        }
        self.forget(token, slot);
    }

    /// Removes the file of a connection from the store, if it is there.
    pub(super) fn forget(&mut self, token: Token, slot: &mut Slot<RingState>) {
        if slot.extra.is_stored()
            && let Some(store) = &mut self.store
        {
            store.get_mut().remove(token.slot());
            slot.extra.set_stored(false);
        }
    }

    /// Runs `call` on a connection's descriptor, opened for it alone if there is none. `None` without one.
    pub(super) fn with<R>(
        &self,
        token: Token,
        slot: &Slot<RingState>,
        call: impl FnOnce(BorrowedFd<'_>) -> R,
    ) -> Option<R> {
        if let Some(fd) = &slot.fd {
            return Some(call(fd.as_fd()));
        }
        let fd = self.store.as_ref()?.borrow_mut().open(token.slot()).ok()?;
        Some(call(fd.as_fd()))
    }

    /// Shuts down the sending side of a connection without a descriptor.
    pub(super) fn end_writing(&mut self, token: Token, slot: &Slot<RingState>) {
        if slot.fd.is_none()
            && let Some(store) = &mut self.store
        {
            store.get_mut().end_writing(token.slot());
        }
    }

    /// Returns whether there is a descriptor for one more connection.
    #[inline]
    pub(super) fn have_room(&self) -> bool {
        self.open < self.high
    }
}

impl Uring {
    /// Runs `call` on the descriptor of an open connection.
    pub(super) fn with_descriptor<R>(
        &self,
        token: Token,
        call: impl FnOnce(BorrowedFd<'_>) -> R,
    ) -> Option<R> {
        self.descriptors.with(token, self.conns.slots.open(token)?, call)
    }

    /// Opens a connection's descriptor unless it is open. Returns false if none is free: the caller tries again in
    /// the next turn.
    #[cold]
    pub(super) fn open_descriptor(&mut self, token: Token) -> bool {
        let Some(slot) = self.conns.slots.held_mut(token) else { return false };
        if slot.fd.is_some() || self.descriptors.is_short {
            return slot.fd.is_some();
        }
        if !self.descriptors.have_room() && !self.store_some() {
            // Busy connections use all of them, until they end or wait for room.
            self.descriptors.is_short = true;
            return false;
        }
        let Some(slot) = self.conns.slots.held_mut(token) else { return false };
        let Some(store) = &mut self.descriptors.store else { return false };
        match store.get_mut().open(token.slot()) {
            Ok(fd) => {
                slot.fd = Some(fd);
                self.descriptors.open += 1;
            }
            Err(_) => {
                self.descriptors.is_short = true;
                SHORTAGES.fetch_add(1, Ordering::Relaxed);
            }
        }
        !self.descriptors.is_short
    }

    /// Stores idle connections in the middle of a turn. Returns whether there is a descriptor for one more now.
    #[cold]
    pub(super) fn store_some(&mut self) -> bool {
        // A queued entry names a descriptor by its number.
        if self.descriptors.scan_left > 0 && self.ring.submit_all() {
            let goal = self.descriptors.high - DESCRIPTORS_MIN;
            let examined = self.store_idle(goal, self.descriptors.scan_left, false);
            self.descriptors.scan_left -= examined;
        }
        self.descriptors.have_room()
    }

    /// Stores idle connections after an enter, as long as there are too many descriptors. Connections that were
    /// active in the last turns keep theirs unless the bound is exceeded, or a connection of any driver has found none.
    #[inline]
    pub(super) fn store_surplus(&mut self) {
        let Descriptors { open, max, low, shortages, .. } = self.descriptors;
        let found = SHORTAGES.load(Ordering::Relaxed);
        if (open > low || found != shortages) && self.ring.is_submitted() {
            let low = if found == shortages { low } else { 0 };
            self.store_idle(low, DESCRIPTOR_SCAN_MAX, low > 0 && open <= max);
            self.descriptors.shortages = found;
        }
    }

    /// Stores idle connections until `goal` descriptors are open or `scan` slots were examined; returns how many were.
    /// No entry may be queued.
    #[cold]
    fn store_idle(&mut self, goal: usize, scan: usize, keeps_active: bool) -> usize {
        let Descriptors { store, open, hand, is_full, .. } = &mut self.descriptors;
        let Some(store) = store else { return 0 };
        let (slots, turn) = (&mut self.conns.slots, self.conns.work.turn);
        let scan = scan.min(slots.len());
        for examined in 0..scan {
            if *open <= goal {
                return examined;
            }
            let index = if *hand < slots.len() { *hand } else { 0 };
            *hand = index + 1;
            let Some((_, slot)) = slots.at(index) else { continue };
            if !is_idle(slot) || (keeps_active && slot.extra.was_active(turn)) {
                continue;
            }
            let Some(fd) = &slot.fd else { continue };
            if !slot.extra.is_stored() {
                *is_full = *is_full || store.get_mut().put(index, fd.as_fd()).is_err();
                if *is_full {
                    continue; // others may be stored already
                }
            }
            slot.extra.set_stored(true);
            slot.fd = None;
            *open -= 1;
        }
        scan
    }

    /// Returns whether to close without cancelling: the kernel searches all armed entries for the one to cancel.
    pub(super) fn is_crowded(&self) -> bool {
        self.conns.slots.used() > self.descriptors.max.min(CANCEL_CONNECTIONS_MAX)
    }
}

/// Bounds a wait while a connection needs a descriptor.
#[cold]
pub(super) fn until_retry(timeout: Option<Duration>) -> Option<Duration> {
    const RETRY: Duration = Duration::from_millis(DESCRIPTOR_RETRY_MS);
    Some(timeout.map_or(RETRY, |timeout| timeout.min(RETRY)))
}

/// Returns whether no work by hand needs the connection's descriptor soon.
fn is_idle(slot: &Slot<RingState>) -> bool {
    slot.fd.is_some()
        && !slot.flags.has(Flags::CLOSING.and(Flags::QUEUED))
        && (slot.send == NONE || slot.flags.has(Flags::AWAITING))
}

#[cfg(test)]
mod tests;
