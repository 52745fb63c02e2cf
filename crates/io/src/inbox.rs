//! Connections handed to a driver by whoever accepts for it: a bounded queue, and one wake for a batch.
//!
//! A lock, not a channel: both sides move whole batches under it, and that nobody who waits for room is forgotten, and nothing
//! that was handed over when the other side ended, is plain to see. It is taken for new connections only, never for requests.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::limits::ACCEPTS_PER_TURN_MAX;
use crate::{ListenerId, Waker};

/// An inbox that holds at most `capacity` connections (at least one), and its one sender. The driver that is made with
/// the inbox takes at most [`ACCEPTS_PER_TURN_MAX`] out of it at once.
#[must_use]
pub fn inbox<C>(capacity: usize) -> (InboxSender<C>, Inbox<C>) {
    let queue = Queue {
        waiting: VecDeque::new(),
        capacity: capacity.max(1),
        wants_room: None,
        held: false,
        sender_gone: false,
        driver_gone: false,
    };
    let shared = Arc::new(Shared { queue: Mutex::new(queue), driver: OnceLock::new() });
    let sender = InboxSender { shared: Arc::clone(&shared) };
    (sender, Inbox { shared: Some(shared), taken: VecDeque::new(), due: true })
}

/// Why a connection was not taken. It comes back.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused<C> {
    /// There is no room for it now.
    Full(C),
    /// Nobody will ever take it.
    Gone(C),
}

#[derive(Debug)]
struct Shared<C> {
    queue: Mutex<Queue<C>>,
    /// Wakes the driver. There from its making on; who is not yet made looks by itself.
    driver: OnceLock<Waker>,
}

impl<C> Shared<C> {
    fn lock(&self) -> MutexGuard<'_, Queue<C>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_driver(&self) {
        if let Some(waker) = self.driver.get() {
            waker.wake();
        }
    }
}

/// Whether a connection would be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Yes.
    Free,
    /// Not now.
    Full,
    /// Never again.
    Gone,
}

#[derive(Debug)]
struct Queue<C> {
    waiting: VecDeque<(C, ListenerId)>,
    capacity: usize,
    /// Whom to wake when there is room.
    wants_room: Option<Waker>,
    /// The driver announces nobody for now: who came in would wait while others have room.
    held: bool,
    sender_gone: bool,
    driver_gone: bool,
}

impl<C> Queue<C> {
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

/// The end that hands connections over.
#[derive(Debug)]
pub struct InboxSender<C = OwnedFd> {
    shared: Arc<Shared<C>>,
}

impl<C> InboxSender<C> {
    /// Puts a connection in, and wakes nobody: that is done by [`InboxSender::wake`], once for all of a batch.
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

    /// Whether the inbox has room; where it is full `waker` is woken, once, when it isn't any more.
    #[must_use]
    pub fn await_room(&self, waker: &Waker) -> Room {
        let mut queue = self.shared.lock();
        let room = queue.room();
        queue.wants_room = (room == Room::Full).then(|| waker.clone());
        room
    }
}

impl<C> Drop for InboxSender<C> {
    /// What was handed over stays; the driver learns that nothing more will come.
    fn drop(&mut self) {
        self.shared.lock().sender_gone = true;
        self.shared.wake_driver();
    }
}

/// The end that a driver is made with. The default is one into which nobody puts anything.
#[derive(Debug)]
pub struct Inbox<C = OwnedFd> {
    /// `None` once it is empty and its sender gone.
    shared: Option<Arc<Shared<C>>>,
    /// Taken out, to be announced.
    taken: VecDeque<(C, ListenerId)>,
    /// It may hold something, or have come to its end.
    due: bool,
}

impl<C> Default for Inbox<C> {
    fn default() -> Self {
        Self { shared: None, taken: VecDeque::new(), due: false }
    }
}

impl<C> Inbox<C> {
    /// Says how the driver is woken. Before anything is handed over.
    pub(crate) fn attach(&self, waker: &Waker) {
        if let Some(shared) = &self.shared {
            // It is set once: a driver is made once.
            let _ = shared.driver.set(waker.clone());
        }
    }

    /// The driver was woken, by whomever. What was taken out stays due though nobody fills it any more.
    pub(crate) fn note_wake(&mut self) {
        self.due = self.shared.is_some() || !self.taken.is_empty();
    }

    /// The driver announces nobody for now: nothing more is taken in.
    pub(crate) fn hold(&mut self) {
        if let Some(shared) = &self.shared {
            shared.lock().held = true;
        }
    }

    /// The driver announces connections again. One that `is_full` still, while somebody waits here, takes nothing in until it has
    /// paused again or, where a connection has closed meanwhile, everybody is taken out.
    pub(crate) fn release(&mut self, is_full: bool) {
        let Some(shared) = &self.shared else { return };
        let mut queue = shared.lock();
        let someone_waits = !self.taken.is_empty() || !queue.waiting.is_empty();
        queue.held &= is_full && someone_waits;
        let has_room = queue.room() == Room::Free;
        let wants_room = queue.wants_room.take_if(|_| has_room);
        drop(queue);
        if let Some(waker) = wants_room {
            waker.wake();
        }
    }

    /// Whether it is worth a look.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Whether nothing will ever come out of it again.
    pub(crate) fn is_over(&self) -> bool {
        self.shared.is_none() && self.taken.is_empty()
    }

    /// Whether there is a connection to be taken out.
    pub(crate) fn has_any(&mut self) -> bool {
        if self.due && self.taken.is_empty() {
            self.refill();
        }
        !self.taken.is_empty()
    }

    /// The next connection.
    pub(crate) fn take(&mut self) -> Option<(C, ListenerId)> {
        if self.has_any() { self.taken.pop_front() } else { None }
    }

    /// Takes a batch out, and tells who waits for the room.
    fn refill(&mut self) {
        self.due = false;
        let Some(shared) = &self.shared else { return };
        let mut queue = shared.lock();
        let count = queue.waiting.len().min(ACCEPTS_PER_TURN_MAX);
        self.taken.extend(queue.waiting.drain(..count));
        // What was taken stays due until it was given out: the next look finds out whether there is more.
        self.due = count > 0;
        // Nobody waits any more: a hold that was kept for their sake ends, though the driver has not paused again.
        queue.held &= count > 0;
        let has_room = queue.room() == Room::Free;
        let wants_room = queue.wants_room.take_if(|_| has_room);
        let over = queue.sender_gone && queue.waiting.is_empty();
        drop(queue);
        if let Some(waker) = wants_room {
            waker.wake();
        }
        if over {
            self.shared = None;
        }
    }
}

impl<C> Drop for Inbox<C> {
    /// What nobody has taken is let go of, and the sender told.
    fn drop(&mut self) {
        let Some(shared) = &self.shared else { return };
        let mut queue = shared.lock();
        queue.driver_gone = true;
        let left = std::mem::take(&mut queue.waiting);
        let wants_room = queue.wants_room.take();
        drop(queue);
        drop(left);
        if let Some(waker) = wants_room {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Inbox, Refused, Room, inbox};
    use crate::Waker;
    use crate::limits::ACCEPTS_PER_TURN_MAX;

    /// A waker and how often it was used.
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
    fn a_full_one_refuses_and_tells_once_when_there_is_room() {
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
        assert_eq!(wakes.load(Ordering::Relaxed), 1, "asked once, told once");
    }

    #[test]
    fn nothing_is_lost_when_the_sender_ends() {
        let (sender, mut inbox) = inbox(3 * ACCEPTS_PER_TURN_MAX);
        let (waker, wakes) = counted();
        inbox.attach(&waker);
        let count = 2 * ACCEPTS_PER_TURN_MAX + 1;
        (0..count).for_each(|number| sender.offer(number, 7).expect("there is room"));
        assert_eq!(wakes.load(Ordering::Relaxed), 0, "a batch is announced by one wake, when it is whole");
        sender.wake();
        drop(sender);
        assert_eq!(wakes.load(Ordering::Relaxed), 2, "the batch and the end");
        assert!(!inbox.is_over());
        assert_eq!(all(&mut inbox), (0..count).collect::<Vec<_>>());
        assert!(inbox.is_over() && !inbox.is_due());
    }

    #[test]
    fn a_wake_forgets_nobody_who_is_taken_out() {
        let (sender, mut inbox) = inbox(3);
        (0..3).for_each(|number| sender.offer(number, 0).expect("there is room"));
        drop(sender);
        assert_eq!(inbox.take(), Some((0, 0)));
        inbox.note_wake();
        assert!(inbox.is_due() && !inbox.is_over(), "two wait, and the sender is gone");
        assert_eq!(all(&mut inbox), [1, 2]);
        inbox.note_wake();
        assert!(inbox.is_over() && !inbox.is_due());
    }

    #[test]
    fn one_that_is_held_refuses_until_there_is_room() {
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
        assert_eq!(sender.offer(3, 0), Ok(()), "nobody waits: it is not held for ever");
    }

    #[test]
    fn a_hold_ends_with_those_who_wait() {
        let (sender, mut inbox) = inbox(9);
        let (waker, wakes) = counted();
        assert_eq!(sender.offer(1, 0), Ok(()));
        inbox.hold();
        assert_eq!(sender.await_room(&waker), Room::Full);
        inbox.release(true);
        // A connection closes before the driver looks: it takes the one who waits, and doesn't pause again.
        assert_eq!(all(&mut inbox), [1]);
        assert_eq!((wakes.load(Ordering::Relaxed), sender.offer(2, 0)), (1, Ok(())));
    }

    #[test]
    fn a_driver_that_is_gone_takes_nothing_and_lets_go_of_what_it_has() {
        let (sender, inbox) = inbox(1);
        let (waker, wakes) = counted();
        let connection = Arc::new(());
        sender.offer(Arc::clone(&connection), 0).expect("there is room");
        assert_eq!(sender.await_room(&waker), Room::Full);
        drop(inbox);
        assert_eq!((Arc::strong_count(&connection), wakes.load(Ordering::Relaxed)), (1, 1));
        assert!(matches!(sender.offer(connection, 0), Err(Refused::Gone(_))));
        assert_eq!(sender.await_room(&waker), Room::Gone, "nobody to wait for");
    }

    #[test]
    fn one_that_nobody_fills_is_over_and_never_due() {
        let mut inbox = Inbox::<usize>::default();
        inbox.note_wake();
        assert!(inbox.is_over() && !inbox.is_due() && !inbox.has_any());
    }
}
