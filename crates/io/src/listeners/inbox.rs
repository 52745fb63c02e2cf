//! Connections handed to a driver by an acceptor: a bounded queue, and one wake per batch.
//!
//! A lock instead of a channel: both sides move whole batches under it, which makes it plain that no waiter
//! and no connection is lost when a side ends. It is taken for new connections only, never for requests.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::limits::ACCEPTS_PER_TURN_MAX;
use crate::{ListenerId, Waker};

/// Returns an inbox of at most `capacity` connections (at least one), and its only sender. The inbox's driver
/// takes at most [`ACCEPTS_PER_TURN_MAX`] from it at once.
#[must_use]
pub fn inbox<C>(capacity: usize) -> (InboxSender<C>, Inbox<C>) {
    let queue = InboxQueue {
        waiting: VecDeque::new(),
        capacity: capacity.max(1),
        wants_room: None,
        held: false,
        sender_gone: false,
        driver_gone: false,
    };
    let shared = Arc::new(InboxState { queue: Mutex::new(queue), driver: OnceLock::new() });
    let sender = InboxSender { shared: Arc::clone(&shared) };
    (sender, Inbox { shared: Some(shared), taken: VecDeque::new(), due: true })
}

/// A rejected connection, returned to the caller.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused<C> {
    /// There is no room now.
    Full(C),
    /// The driver is gone.
    Gone(C),
}

#[derive(Debug)]
struct InboxState<C> {
    queue: Mutex<InboxQueue<C>>,
    /// Wakes the driver; set once the driver exists. A new driver checks the inbox by itself.
    driver: OnceLock<Waker>,
}

impl<C> InboxState<C> {
    fn lock(&self) -> MutexGuard<'_, InboxQueue<C>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_driver(&self) {
        self.driver.get().into_iter().for_each(Waker::wake);
    }
}

/// Room in an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It accepts a connection.
    Free,
    /// Full at present.
    Full,
    /// Its driver is gone.
    Gone,
}

#[derive(Debug)]
struct InboxQueue<C> {
    waiting: VecDeque<(C, ListenerId)>,
    capacity: usize,
    /// Waker of a sender that waits for room.
    wants_room: Option<Waker>,
    /// True if the driver has paused accepting: connections would wait while other workers have room.
    held: bool,
    sender_gone: bool,
    driver_gone: bool,
}

impl<C> InboxQueue<C> {
    fn room(&self) -> Room {
        if self.driver_gone {
            Room::Gone
        } else if self.held || self.waiting.len() >= self.capacity {
            Room::Full
        } else {
            Room::Free
        }
    }
}

/// The sending end.
#[derive(Debug)]
pub struct InboxSender<C = OwnedFd> {
    shared: Arc<InboxState<C>>,
}

impl<C> InboxSender<C> {
    /// Queues a connection without a wake: [`InboxSender::wake`] wakes once per batch.
    ///
    /// # Errors
    /// [`Refused`], with the connection.
    pub fn offer(&self, connection: C, listener: ListenerId) -> Result<(), Refused<C>> {
        let mut queue = self.shared.lock();
        match queue.room() {
            Room::Free => queue.waiting.push_back((connection, listener)),
            Room::Full => return Err(Refused::Full(connection)),
            Room::Gone => return Err(Refused::Gone(connection)),
        }
        Ok(())
    }

    /// Wakes the driver.
    pub fn wake(&self) {
        self.shared.wake_driver();
    }

    /// Returns the state of the inbox; if it is full, `waker` is called once when it has room.
    #[must_use]
    pub fn await_room(&self, waker: &Waker) -> Room {
        let mut queue = self.shared.lock();
        let room = queue.room();
        queue.wants_room = (room == Room::Full).then(|| waker.clone());
        room
    }
}

impl<C> Drop for InboxSender<C> {
    /// Keeps queued connections, and reports the end to the driver.
    fn drop(&mut self) {
        self.shared.lock().sender_gone = true;
        self.shared.wake_driver();
    }
}

/// The receiving end, for a driver. The default has no sender.
#[derive(Debug)]
pub struct Inbox<C = OwnedFd> {
    /// `None` once it is empty and its sender dropped.
    shared: Option<Arc<InboxState<C>>>,
    /// Taken from the queue, to be reported.
    taken: VecDeque<(C, ListenerId)>,
    /// True if it may hold connections or have ended.
    due: bool,
}

impl<C> Default for Inbox<C> {
    fn default() -> Self {
        Self { shared: None, taken: VecDeque::new(), due: false }
    }
}

impl<C> Inbox<C> {
    /// Sets the driver's waker, before the first connection.
    pub(crate) fn attach(&self, waker: &Waker) {
        if let Some(shared) = &self.shared {
            // Set once: a driver is created once.
            let _ = shared.driver.set(waker.clone());
        }
    }

    /// Records a wake from any source. Connections already taken stay due even without a sender.
    pub(crate) fn note_wake(&mut self) {
        self.due = self.shared.is_some() || !self.taken.is_empty();
    }

    /// Pauses taking connections in.
    pub(crate) fn hold(&mut self) {
        if let Some(shared) = &self.shared {
            shared.lock().held = true;
        }
    }

    /// Resumes taking connections. A driver that `is_full` still, while a sender waits here, takes none until
    /// it has paused again or, if a connection has closed meanwhile, the inbox is empty.
    pub(crate) fn release(&mut self, is_full: bool) {
        let Some(shared) = &self.shared else { return };
        let mut queue = shared.lock();
        let someone_waits = !self.taken.is_empty() || !queue.waiting.is_empty();
        queue.held &= is_full && someone_waits;
        let has_room = queue.room() == Room::Free;
        let wants_room = queue.wants_room.take_if(|_| has_room);
        drop(queue);
        wants_room.iter().for_each(Waker::wake);
    }

    /// Returns whether it is worth checking.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Returns whether it is empty for good.
    pub(crate) fn is_over(&self) -> bool {
        self.shared.is_none() && self.taken.is_empty()
    }

    /// Returns whether it has a connection.
    pub(crate) fn has_any(&mut self) -> bool {
        if self.due && self.taken.is_empty() {
            self.refill();
        }
        !self.taken.is_empty()
    }

    /// Returns the next connection.
    pub(crate) fn take(&mut self) -> Option<(C, ListenerId)> {
        if self.has_any() { self.taken.pop_front() } else { None }
    }

    /// Takes a batch, and wakes a sender that waits for room.
    fn refill(&mut self) {
        self.due = false;
        let Some(shared) = &self.shared else { return };
        let mut queue = shared.lock();
        let count = queue.waiting.len().min(ACCEPTS_PER_TURN_MAX);
        self.taken.extend(queue.waiting.drain(..count));
        // Taken connections stay due until they are reported: the next check finds out whether there are
        // more.
        self.due = count > 0;
        // No sender waits any more, which ends a hold kept for its sake, though the driver has not paused
        // again.
        queue.held &= count > 0;
        let has_room = queue.room() == Room::Free;
        let wants_room = queue.wants_room.take_if(|_| has_room);
        let over = queue.sender_gone && queue.waiting.is_empty();
        drop(queue);
        wants_room.iter().for_each(Waker::wake);
        if over {
            self.shared = None;
        }
    }
}

impl<C> Drop for Inbox<C> {
    /// Drops queued connections, and wakes the sender.
    fn drop(&mut self) {
        let Some(shared) = &self.shared else { return };
        let mut queue = shared.lock();
        queue.driver_gone = true;
        let left = std::mem::take(&mut queue.waiting);
        let wants_room = queue.wants_room.take();
        drop(queue);
        drop(left);
        wants_room.iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Inbox, Refused, Room, inbox};
    use crate::Waker;
    use crate::limits::ACCEPTS_PER_TURN_MAX;

    /// Returns a waker and a counter of its uses.
    fn counted() -> (Waker, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let wakes = Arc::clone(&count);
        (
            Waker::new(move || {
                wakes.fetch_add(1, Ordering::Relaxed);
            }),
            count,
        )
    }

    fn all(inbox: &mut Inbox<usize>) -> Vec<usize> {
        std::iter::from_fn(|| inbox.take()).map(|(connection, _)| connection).collect()
    }

    #[test]
    fn a_full_inbox_refuses_and_wakes_its_sender_once() {
        let (sender, mut inbox) = inbox(2);
        let (waker, wakes) = counted();
        assert_eq!(sender.await_room(&waker), Room::Free);
        assert_eq!((sender.offer(1, 0), sender.offer(2, 0)), (Ok(()), Ok(())));
        assert_eq!(sender.offer(3, 0), Err(Refused::Full(3)));
        assert_eq!(sender.await_room(&waker), Room::Full);
        assert_eq!(wakes.load(Ordering::Relaxed), 0);
        assert_eq!(all(&mut inbox), [1, 2]);
        assert_eq!(wakes.load(Ordering::Relaxed), 1);
        assert_eq!(sender.offer(3, 0), Ok(()));
        inbox.note_wake();
        assert_eq!(all(&mut inbox), [3]);
        assert_eq!(wakes.load(Ordering::Relaxed), 1, "one wake per request");
    }

    #[test]
    fn nothing_is_lost_when_the_sender_ends() {
        let (sender, mut inbox) = inbox(3 * ACCEPTS_PER_TURN_MAX);
        let (waker, wakes) = counted();
        inbox.attach(&waker);
        let count = 2 * ACCEPTS_PER_TURN_MAX + 1;
        (0..count).for_each(|number| sender.offer(number, 7).expect("the queue has room"));
        assert_eq!(wakes.load(Ordering::Relaxed), 0, "one wake per complete batch");
        sender.wake();
        drop(sender);
        assert_eq!(wakes.load(Ordering::Relaxed), 2, "the batch and the end");
        assert!(!inbox.is_over());
        assert_eq!(all(&mut inbox), (0..count).collect::<Vec<_>>());
        assert!(inbox.is_over() && !inbox.is_due());
    }

    #[test]
    fn a_wake_keeps_taken_connections_due() {
        let (sender, mut inbox) = inbox(3);
        (0..3).for_each(|number| sender.offer(number, 0).expect("the queue has room"));
        drop(sender);
        assert_eq!(inbox.take(), Some((0, 0)));
        inbox.note_wake();
        assert!(inbox.is_due() && !inbox.is_over(), "two are queued, and the sender is gone");
        assert_eq!(all(&mut inbox), [1, 2]);
        inbox.note_wake();
        assert!(inbox.is_over() && !inbox.is_due());
    }

    #[test]
    fn a_held_inbox_refuses_until_there_is_room() {
        let (sender, mut inbox) = inbox(9);
        let (waker, wakes) = counted();
        assert_eq!(sender.offer(1, 0), Ok(()));
        inbox.hold();
        assert_eq!(sender.offer(2, 0), Err(Refused::Full(2)));
        assert_eq!(sender.await_room(&waker), Room::Full);
        inbox.release(true);
        assert_eq!(sender.offer(2, 0), Err(Refused::Full(2)), "the driver is full, and the first waits");
        assert_eq!(wakes.load(Ordering::Relaxed), 0);
        inbox.release(false);
        assert_eq!((wakes.load(Ordering::Relaxed), sender.offer(2, 0)), (1, Ok(())));
        assert_eq!(all(&mut inbox), [1, 2]);
        inbox.hold();
        inbox.release(true);
        assert_eq!(sender.offer(3, 0), Ok(()), "no connection waits: the hold ends");
    }

    #[test]
    fn a_hold_ends_with_the_waiting_connections() {
        let (sender, mut inbox) = inbox(9);
        let (waker, wakes) = counted();
        assert_eq!(sender.offer(1, 0), Ok(()));
        inbox.hold();
        assert_eq!(sender.await_room(&waker), Room::Full);
        inbox.release(true);
        // A connection closes before the driver checks: it takes the waiting one, and doesn't pause again.
        assert_eq!(all(&mut inbox), [1]);
        assert_eq!((wakes.load(Ordering::Relaxed), sender.offer(2, 0)), (1, Ok(())));
    }

    #[test]
    fn a_dropped_inbox_refuses_and_drops_its_connections() {
        let (sender, inbox) = inbox(1);
        let (waker, wakes) = counted();
        let connection = Arc::new(());
        sender.offer(Arc::clone(&connection), 0).expect("the queue has room");
        assert_eq!(sender.await_room(&waker), Room::Full);
        drop(inbox);
        assert_eq!((Arc::strong_count(&connection), wakes.load(Ordering::Relaxed)), (1, 1));
        assert!(matches!(sender.offer(connection, 0), Err(Refused::Gone(_))));
        assert_eq!(sender.await_room(&waker), Room::Gone, "no driver is left");
    }

    #[test]
    fn an_inbox_without_sender_is_over_and_never_due() {
        let mut inbox = Inbox::<usize>::default();
        inbox.note_wake();
        assert!(inbox.is_over() && !inbox.is_due() && !inbox.has_any());
    }
}
