//! The acceptor: accepts connections for all workers and hands them out in batches, round-robin.
//!
//! It always uses `accept4` after a wait for readiness, whichever driver the workers use. A batch costs one
//! wait, an `accept4` for each connection and one more, and a wake for each worker. None of it delays a
//! request.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use mio::Interest;
use mio::unix::SourceFd;

use super::accept::{Arrival, Listeners};
use super::inbox::{InboxSender, Refused, Room};
use super::{Entrances, Listener};
use crate::clock::Clock;
use crate::{AcceptError, Event, ListenerId, Waker};

/// mio's token of the waker; a listener's token is its index.
const WAKER: mio::Token = mio::Token(usize::MAX);
/// Readiness events taken per wait; the others follow with the next wait.
const ANNOUNCEMENTS_MAX: usize = 64;

/// Outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Queued connections were handed out, up to the turn's share.
    Open,
    /// Accepting is still paused.
    Paused,
    /// Every inbox is full: accepting is paused until one has room. Reported once each time.
    Full,
    /// A resource is exhausted: accepting is paused for a while.
    Failed(AcceptError),
    /// A listener accepts no more connections. Reported once for each; the others continue.
    ListenerFailed {
        /// The listener.
        listener: ListenerId,
        /// The `errno` of accepting.
        errno: i32,
    },
    /// A listener was removed: its queue is handed out and its socket closed.
    ListenerRemoved {
        /// The listener.
        listener: ListenerId,
    },
    /// The acceptor has ended, by [`Acceptor::stop`] or because no worker is left.
    Over,
}

/// Treatment of connections that are queued in the kernel when accepting ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopKind {
    /// Hands all of them out, waiting for workers to make room.
    Drain,
    /// Closes those for which no inbox has room at once.
    AtOnce,
}

/// Listeners, and the workers that receive their connections.
#[derive(Debug)]
pub struct Acceptor {
    poll: mio::Poll,
    events: mio::Events,
    waker: Waker,
    clock: Clock,
    listeners: Listeners,
    dispatcher: Dispatcher,
    /// True if the present full state was reported.
    reported_full: bool,
    retry_ms: u64,
    /// End of the pause after a resource was exhausted.
    paused_until_ms: Option<u64>,
    stop: Option<StopKind>,
}

impl Acceptor {
    /// Accepts from `listeners` (made non-blocking) for the workers of `dispatcher`. Pauses for `retry_ms`
    /// after a resource was exhausted.
    ///
    /// # Errors
    /// Fails if the process is out of descriptors or memory.
    pub fn new(listeners: Vec<Listener>, dispatcher: Dispatcher, retry_ms: u64) -> io::Result<Self> {
        let poll = mio::Poll::new()?;
        let waker = Waker::of_poll(poll.registry(), WAKER)?;
        let entrances = Entrances { listeners, ..Entrances::default() };
        let listeners = Listeners::new(entrances, usize::MAX)?;
        for (index, fd) in listeners.descriptors() {
            let token = mio::Token(usize::from(index));
            poll.registry().register(&mut SourceFd(&fd), token, Interest::READABLE)?;
        }
        Ok(Self {
            poll,
            events: mio::Events::with_capacity(ANNOUNCEMENTS_MAX),
            waker,
            clock: Clock::new(),
            listeners,
            dispatcher,
            reported_full: false,
            retry_ms,
            paused_until_ms: None,
            stop: None,
        })
    }

    /// Returns a handle that ends the current or next wait, from any thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Accepts what is queued and ends. Unlinks Unix-domain socket files at once. Of several calls, the
    /// quickest kind counts.
    pub fn stop(&mut self, kind: StopKind) {
        if self.listeners.stop(0) {
            self.paused_until_ms = None;
        }
        if self.stop != Some(StopKind::AtOnce) {
            self.stop = Some(kind);
        }
    }

    /// Accepts from one more listener, which is non-blocking and whose number no other has. After a stop it is closed.
    /// [`Progress::ListenerFailed`] reports one that the kernel can't watch.
    pub fn add(&mut self, listener: Listener) {
        let fd = listener.as_raw_fd();
        let Ok(index) = self.listeners.add(listener) else { return };
        let token = mio::Token(usize::from(index));
        if let Err(error) = self.poll.registry().register(&mut SourceFd(&fd), token, Interest::READABLE) {
            self.listeners.fail_listener(index, error.raw_os_error().unwrap_or_default());
        }
    }

    /// Hands out what is queued at a listener, and closes it: [`Progress::ListenerRemoved`] reports the end, unless
    /// the acceptor is stopped before. Returns false without a listener of this number.
    pub fn remove(&mut self, listener: ListenerId) -> bool {
        self.listeners.remove(listener, self.clock.now_ms)
    }

    /// Waits for a connection, for room in an inbox or for a wake, then hands out a batch and wakes its
    /// workers.
    ///
    /// # Errors
    /// Fails if the kernel can't be polled any more.
    pub fn turn(&mut self) -> io::Result<Progress> {
        self.wait()?;
        let progress = self.hand_out();
        self.dispatcher.wake();
        if progress == Progress::Over {
            while let Some(listener) = self.listeners.take() {
                self.deregister(&listener);
            }
        }
        Ok(progress)
    }

    /// Deregisters a listener that is about to be closed: another process may have the same socket.
    fn deregister(&self, listener: &Listener) {
        // A failure means that it is deregistered.
        drop(self.poll.registry().deregister(&mut SourceFd(&listener.as_raw_fd())));
    }

    fn wait(&mut self) -> io::Result<()> {
        let wait_timeout = self.wait_timeout();
        match self.poll.poll(&mut self.events, wait_timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        self.clock.read();
        for event in self.events.iter().filter(|event| event.token() != WAKER) {
            self.listeners.mark_ready(event.token().0 as ListenerId);
        }
        if self.paused_until_ms.take_if(|until_ms| *until_ms <= self.clock.now_ms).is_some() {
            self.listeners.resume(0);
        }
        Ok(())
    }

    /// Returns the timeout of the next wait.
    fn wait_timeout(&self) -> Option<Duration> {
        if let Some(until_ms) = self.paused_until_ms {
            return Some(Duration::from_millis(until_ms.saturating_sub(self.clock.now_ms)));
        }
        let busy = if self.listeners.has_unplaced() {
            self.stop == Some(StopKind::AtOnce) || !self.dispatcher.await_room(&self.waker)
        } else {
            self.listeners.are_due()
        };
        let timeout = busy.then_some(Duration::ZERO);
        self.listeners.bound_wait(timeout, self.clock.now_ms)
    }

    /// Accepts and hands out a share of each listener's queue.
    fn hand_out(&mut self) -> Progress {
        if self.paused_until_ms.is_some() {
            return Progress::Paused;
        }
        self.listeners.begin_turn(self.clock.now_ms);
        while let Some(arrival) = self.listeners.next(0) {
            let end = match arrival {
                Arrival::Connection(connection, listener) => self.deliver(connection, listener),
                Arrival::Event(event) => Some(self.progress_of(&event)),
                Arrival::Removed(listener) => {
                    self.deregister(&listener);
                    Some(Progress::ListenerRemoved { listener: listener.id() })
                }
                Arrival::Closed(listener) => {
                    self.deregister(&listener);
                    None
                }
            };
            if let Some(end) = end {
                return end;
            }
        }
        Progress::Open
    }

    /// Hands a connection out, or holds it until there is room. Returns the outcome unless it succeeded.
    fn deliver(&mut self, connection: OwnedFd, listener: ListenerId) -> Option<Progress> {
        match self.dispatcher.dispatch(connection, listener) {
            Ok(()) => {
                self.reported_full = false;
                None
            }
            Err(Refused::Full(_)) if self.stop == Some(StopKind::AtOnce) => None,
            Err(Refused::Full(connection)) => {
                self.listeners.put_back(connection, listener);
                let was_reported = std::mem::replace(&mut self.reported_full, true);
                Some(if was_reported { Progress::Paused } else { Progress::Full })
            }
            Err(Refused::Gone(_)) => Some(Progress::Over),
        }
    }

    fn progress_of(&mut self, event: &Event) -> Progress {
        match *event {
            Event::ListenerFailed { listener, errno } => Progress::ListenerFailed { listener, errno },
            Event::AcceptFailed { error } if self.stop != Some(StopKind::AtOnce) => {
                self.paused_until_ms = Some(self.clock.now_ms + self.retry_ms);
                Progress::Failed(error)
            }
            _ => Progress::Over,
        }
    }
}

/// The senders of all workers' inboxes, and the round-robin position.
#[derive(Debug)]
pub struct Dispatcher<C = OwnedFd> {
    workers: Vec<WorkerInbox<C>>,
    next: usize,
}

/// One worker.
#[derive(Debug)]
struct WorkerInbox<C> {
    sender: InboxSender<C>,
    /// True if it has received a connection since its last wake.
    owes_wake: bool,
}

impl<C> Dispatcher<C> {
    /// Begins with the first worker.
    #[must_use]
    pub fn new(senders: Vec<InboxSender<C>>) -> Self {
        let workers = senders.into_iter().map(|sender| WorkerInbox { sender, owes_wake: false }).collect();
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
    fn distributes_in_turn_with_one_wake_per_batch() {
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
    fn skips_full_workers_and_refuses_if_all_are_full() {
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
    fn skips_dropped_workers_until_none_is_left() {
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
