//! Hands connections out to workers, round-robin, skipping full ones.

use std::os::fd::OwnedFd;

use crate::inbox::{InboxSender, Refused, Room};
use crate::{ListenerId, Waker};

/// The senders of all workers' inboxes, and the round-robin position.
#[derive(Debug)]
pub struct Dispatcher<C = OwnedFd> {
    workers: Vec<Worker<C>>,
    next: usize,
}

/// One worker.
#[derive(Debug)]
struct Worker<C> {
    sender: InboxSender<C>,
    /// True if it has received a connection since its last wake.
    owes_wake: bool,
}

impl<C> Dispatcher<C> {
    /// Begins with the first worker.
    #[must_use]
    pub fn new(senders: Vec<InboxSender<C>>) -> Self {
        let workers = senders.into_iter().map(|sender| Worker { sender, owes_wake: false }).collect();
        Self { workers, next: 0 }
    }

    /// Gives a connection to the next worker in turn that has room. Wakes nobody yet.
    ///
    /// # Errors
    /// [`Refused::Full`] if no inbox has room, [`Refused::Gone`] if no worker is left.
    pub fn dispatch(&mut self, connection: C, listener: ListenerId) -> Result<(), Refused<C>> {
        let mut left = connection;
        let mut someone_lives = false;
        for step in 0..self.workers.len() {
            let index = (self.next + step) % self.workers.len();
            let worker = &mut self.workers[index];
            left = match worker.sender.offer(left, listener) {
                Ok(()) => {
                    worker.owes_wake = true;
                    self.next = index + 1;
                    return Ok(());
                }
                Err(Refused::Full(connection)) => {
                    someone_lives = true;
                    connection
                }
                Err(Refused::Gone(connection)) => connection,
            };
        }
        Err(if someone_lives { Refused::Full(left) } else { Refused::Gone(left) })
    }

    /// Wakes every worker that has received a connection since its last wake, once.
    pub fn wake(&mut self) {
        for worker in self.workers.iter_mut().filter(|worker| worker.owes_wake) {
            worker.owes_wake = false;
            worker.sender.wake();
        }
    }

    /// Returns whether the inboxes of all remaining workers are full; then `waker` is called when one has
    /// room. Returns `false` if no worker is left.
    #[must_use]
    pub fn await_room(&self, waker: &Waker) -> bool {
        let mut someone_is_full = false;
        for worker in &self.workers {
            match worker.sender.await_room(waker) {
                Room::Free => return false,
                Room::Full => someone_is_full = true,
                Room::Gone => {}
            }
        }
        someone_is_full
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Dispatcher;
    use crate::Waker;
    use crate::inbox::{Inbox, Refused, inbox};

    fn dispatcher(workers: usize, capacity: usize) -> (Dispatcher<usize>, Vec<Inbox<usize>>) {
        let (senders, inboxes) = (0..workers).map(|_| inbox(capacity)).unzip();
        (Dispatcher::new(senders), inboxes)
    }

    fn all(inbox: &mut Inbox<usize>) -> Vec<usize> {
        inbox.note_wake();
        std::iter::from_fn(|| inbox.take()).map(|(connection, _)| connection).collect()
    }

    #[test]
    fn each_gets_its_turn_and_one_wake_a_batch() {
        let (mut dispatcher, mut inboxes) = dispatcher(3, 9);
        let wakes: Vec<_> = inboxes.iter().map(|_| Arc::new(AtomicUsize::new(0))).collect();
        for (inbox, wakes) in inboxes.iter().zip(&wakes) {
            let wakes = Arc::clone(wakes);
            inbox.attach(&Waker::new(move || {
                wakes.fetch_add(1, Ordering::Relaxed);
            }));
        }
        let count = || wakes.iter().map(|wakes| wakes.load(Ordering::Relaxed)).collect::<Vec<_>>();
        (0..7).for_each(|number| dispatcher.dispatch(number, 0).expect("the queue has room"));
        assert_eq!(count(), [0, 0, 0]);
        dispatcher.wake();
        dispatcher.wake();
        assert_eq!(count(), [1, 1, 1]);
        dispatcher.dispatch(7, 0).expect("the queue has room");
        dispatcher.wake();
        assert_eq!(count(), [1, 2, 1], "the rotation continues");
        let got: Vec<_> = inboxes.iter_mut().map(all).collect();
        assert_eq!(got, [vec![0, 3, 6], vec![1, 4, 7], vec![2, 5]]);
    }

    #[test]
    fn a_full_one_is_passed_over_and_all_full_refuses() {
        let (mut dispatcher, mut inboxes) = dispatcher(2, 2);
        (0..4).for_each(|number| dispatcher.dispatch(number, 0).expect("the queue has room"));
        assert_eq!(dispatcher.dispatch(4, 0), Err(Refused::Full(4)));
        assert!(dispatcher.await_room(&Waker::new(|| ())));
        assert_eq!(all(&mut inboxes[1]), [1, 3]);
        assert!(!dispatcher.await_room(&Waker::new(|| ())));
        dispatcher.dispatch(4, 0).expect("the second has room");
        dispatcher.dispatch(5, 0).expect("the second again: the first is full");
        assert_eq!(all(&mut inboxes[1]), [4, 5]);
        assert_eq!(all(&mut inboxes[0]), [0, 2]);
    }

    #[test]
    fn who_is_gone_is_passed_over_until_nobody_is_left() {
        let (mut dispatcher, mut inboxes) = dispatcher(2, 1);
        drop(inboxes.remove(0));
        dispatcher.dispatch(0, 0).expect("the second has room");
        assert_eq!(dispatcher.dispatch(1, 0), Err(Refused::Full(1)));
        assert!(dispatcher.await_room(&Waker::new(|| ())), "a dropped worker has no room");
        drop(inboxes);
        assert_eq!(dispatcher.dispatch(1, 0), Err(Refused::Gone(1)));
        assert!(!dispatcher.await_room(&Waker::new(|| ())));
        assert_eq!(Dispatcher::new(Vec::new()).dispatch(2, 0), Err(Refused::Gone(2)));
    }
}
