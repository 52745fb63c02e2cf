//! Accepts connections, for all drivers and the acceptor.
//!
//! It takes a bounded share from each listener in turn, until the queues are empty or a resource is
//! exhausted. Drivers differ in how they learn of queued connections.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::inbox::Inbox;
use super::{Entrances, Listener};
use crate::limits::{ACCEPTS_AFTER_STOP_MAX, ACCEPTS_PER_TURN_MAX};
use crate::{AcceptError, Event, ListenerId, socket};

/// Result of one attempt to accept.
enum Attempt {
    Accepted(OwnedFd),
    /// The queued connection is closed already; there may be others.
    Retry,
    Empty,
    Failed(AcceptError),
    /// The socket no longer listens.
    ListenerFailed(Errno),
}

/// Takes one connection from the listener's queue.
fn attempt(listener: &Listener) -> Attempt {
    match socket::accept(listener) {
        Ok(fd) => Attempt::Accepted(fd),
        Err(Errno::AGAIN) => Attempt::Empty,
        Err(errno @ (Errno::BADF | Errno::INVAL | Errno::NOTSOCK)) => Attempt::ListenerFailed(errno),
        Err(Errno::MFILE) => Attempt::Failed(AcceptError::ProcessDescriptors),
        Err(Errno::NFILE) => Attempt::Failed(AcceptError::SystemFiles),
        Err(Errno::NOBUFS | Errno::NOMEM) => Attempt::Failed(AcceptError::Memory),
        Err(errno) if is_of_the_connection(errno) => Attempt::Retry,
        Err(errno) => Attempt::Failed(AcceptError::Other { errno: errno.raw_os_error() }),
    }
}

/// Returns whether an error is of the accepted connection, which Linux passes on, instead of accepting.
fn is_of_the_connection(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::INTR
            | Errno::CONNABORTED
            | Errno::PROTO
            | Errno::NETDOWN
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP
            | Errno::NETUNREACH
            | Errno::PERM
            | Errno::TIMEDOUT
            | Errno::CONNRESET
    )
}

/// Returns whether a connection is queued in the kernel.
fn has_pending(listener: &Listener) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // On an error the next attempt to accept reports the reason.
    poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&at_once)) != Ok(0)
}

/// A listener's queue in the kernel.
#[derive(Debug)]
struct AcceptQueue {
    listener: Listener,
    /// It may hold connections.
    is_ready: bool,
    /// The listener has failed and was reported.
    has_failed: bool,
    /// True if an entry of the ring watches it. Until that ends, closing the descriptor doesn't end the
    /// listening.
    is_watched: bool,
    /// Connections to accept before the queue counts as empty until its next readiness event.
    share: usize,
    /// Connections accepted since the last readiness event.
    accepted: usize,
    /// Turn of the last readiness event.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "read by the completion driver only"))]
    announced_in: u16,
}

/// Result of accepting from several queues.
#[derive(Debug)]
pub(crate) enum Accepted {
    Connection(OwnedFd, ListenerId),
    Failed(AcceptError),
    /// The listener accepts no more (A6). Once for each.
    ListenerFailed {
        listener: ListenerId,
        errno: i32,
    },
}

/// The accept queues of several listeners, emptied in turn, each by a share a turn.
#[derive(Debug)]
pub(crate) struct AcceptQueues {
    queues: Vec<AcceptQueue>,
    /// Index of the queue to accept from next; the number of queues when each has had its share.
    current: usize,
    /// Attempts at `current` in this turn.
    attempts: usize,
    /// Connections accepted since `stop`: bounded, so that it ends however fast new ones arrive.
    since_stop: Option<usize>,
    /// Number of the turn, wrapping.
    turn: u16,
}

impl AcceptQueues {
    /// Makes the listeners non-blocking.
    /// # Errors
    /// Fails for more listeners than [`ListenerId`] counts, or with the kernel's error.
    pub(crate) fn new(listeners: Vec<Listener>) -> io::Result<Self> {
        if listeners.len() > usize::from(ListenerId::MAX) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        listeners.iter().try_for_each(Listener::set_nonblocking)?;
        let queue = |listener| AcceptQueue {
            listener,
            is_ready: false,
            has_failed: false,
            is_watched: false,
            share: usize::MAX,
            accepted: 0,
            announced_in: 0,
        };
        let queues = listeners.into_iter().map(queue).collect();
        Ok(Self { queues, current: 0, attempts: 0, since_stop: None, turn: 0 })
    }

    /// Returns index and descriptor of each.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = (ListenerId, RawFd)> {
        // `new` has checked that the index fits.
        let descriptors = self.queues.iter().map(|queue| queue.listener.as_raw_fd());
        descriptors.enumerate().map(|(index, fd)| (index as ListenerId, fd))
    }

    /// Returns the number of listeners.
    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    /// Records that the kernel has reported queued connections.
    pub(crate) fn mark_ready(&mut self, index: ListenerId) {
        if let Some(queue) = self.queues.get_mut(usize::from(index)) {
            queue.is_ready = !queue.has_failed;
        }
    }

    /// Returns whether one of them may hold connections.
    pub(crate) fn are_ready(&self) -> bool {
        self.queues.iter().any(|queue| queue.is_ready)
    }

    /// Renews each queue's share of attempts.
    pub(crate) fn begin_turn(&mut self) {
        (self.current, self.attempts) = (0, 0);
        self.turn = self.turn.wrapping_add(1);
    }

    /// Accepts the next connection, at most [`ACCEPTS_PER_TURN_MAX`] of each listener in a turn. Fails if one
    /// waits and there is no room.
    pub(crate) fn next(&mut self, has_room: bool) -> Option<Accepted> {
        while let Some(queue) = self.queues.get_mut(self.current) {
            if !queue.is_ready || self.attempts == ACCEPTS_PER_TURN_MAX {
                self.current += 1;
                self.attempts = 0;
                continue;
            }
            if !has_room {
                if has_pending(&queue.listener) {
                    return Some(Accepted::Failed(AcceptError::ProcessDescriptors));
                }
                queue.is_ready = false;
                continue;
            }
            self.attempts += 1;
            let listener = queue.listener.id();
            match attempt(&queue.listener) {
                Attempt::Accepted(fd) => {
                    self.since_stop = self.since_stop.map(|count| count + 1);
                    queue.accepted = queue.accepted.saturating_add(1);
                    queue.is_ready = queue.accepted < queue.share;
                    return Some(Accepted::Connection(fd, listener));
                }
                Attempt::Retry => {}
                Attempt::Empty => queue.is_ready = false,
                Attempt::Failed(error) => return Some(Accepted::Failed(error)),
                Attempt::ListenerFailed(errno) => {
                    (queue.is_ready, queue.has_failed) = (false, true);
                    return Some(Accepted::ListenerFailed { listener, errno: errno.raw_os_error() });
                }
            }
        }
        None
    }

    /// Marks all as ready once more, for arrivals after the last wait, and unlinks the files of Unix-domain
    /// listeners.
    pub(crate) fn stop(&mut self) {
        self.since_stop = Some(0);
        for queue in &mut self.queues {
            queue.listener.hide();
            queue.is_ready = !queue.has_failed;
            queue.share = usize::MAX;
        }
    }

    /// Returns whether all are empty since `stop`, or the bound is reached.
    pub(crate) fn are_drained(&self) -> bool {
        !self.are_ready() || self.since_stop.is_some_and(|count| count >= ACCEPTS_AFTER_STOP_MAX)
    }

    /// Closes the listeners.
    pub(crate) fn close(&mut self) {
        self.queues.clear();
    }
}

/// The completion driver's part: one entry per listener reports connections, and is then queued again.
#[cfg(target_os = "linux")]
impl AcceptQueues {
    /// Returns the next listener to be watched, and counts it as watched.
    pub(crate) fn next_to_watch(&mut self) -> Option<(ListenerId, RawFd)> {
        let is_free = |queue: &AcceptQueue| !queue.is_ready && !queue.has_failed && !queue.is_watched;
        let index = self.queues.iter().position(is_free)?;
        let queue = &mut self.queues[index];
        queue.is_watched = true;
        Some((index as ListenerId, queue.listener.as_raw_fd()))
    }

    /// Records that the entry has ended: connections wait, or it was cancelled.
    ///
    /// The next entry reports what is left, so no attempt needs to find the queue empty, which costs the
    /// kernel as much as a connection. The share is as many connections as came the last time, and doubles if
    /// an entry ends in the turn in which it was queued.
    pub(crate) fn watch_ended(&mut self, index: ListenerId) {
        self.mark_ready(index);
        let Some(queue) = self.queues.get_mut(usize::from(index)) else { return };
        queue.is_watched = false;
        if self.since_stop.is_none() {
            let more_waited = queue.announced_in == self.turn.wrapping_sub(1);
            let share = if more_waited { queue.share.saturating_mul(2) } else { queue.accepted };
            (queue.share, queue.accepted) = (share.clamp(1, ACCEPTS_PER_TURN_MAX), 0);
            queue.announced_in = self.turn;
        }
    }

    /// Returns the indices of watched listeners.
    pub(crate) fn watched(&self) -> impl Iterator<Item = ListenerId> {
        let watched = self.queues.iter().enumerate().filter(|(_, queue)| queue.is_watched);
        watched.map(|(index, _)| index as ListenerId)
    }
}

/// Progress of `accept_stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    NotAsked,
    /// Accepting queued connections.
    Draining,
    /// The listeners are closed; an acceptor may still send connections.
    InboxOpen,
    Done,
}

/// A new connection, or an event of accepting.
pub(crate) enum Arrival {
    Connection(OwnedFd, ListenerId),
    Event(Event),
}

/// A driver's listeners and its inbox.
#[derive(Debug)]
pub(crate) struct Listeners {
    pub(crate) queues: AcceptQueues,
    /// Connections from an acceptor: one more listener.
    pub(crate) inbox: Inbox,
    connections_max: usize,
    is_paused: bool,
    stop: Stop,
    /// Connections taken from the inbox in this turn.
    handed: usize,
    /// A connection that could not be registered for lack of memory: the next one to try.
    unregistered: Option<(OwnedFd, ListenerId)>,
}

impl Listeners {
    /// # Errors
    /// As [`AcceptQueues::new`].
    pub(crate) fn new(entrances: Entrances, connections_max: usize) -> io::Result<Self> {
        let Entrances { listeners, inbox } = entrances;
        Ok(Self {
            queues: AcceptQueues::new(listeners)?,
            inbox,
            connections_max,
            is_paused: false,
            stop: Stop::NotAsked,
            handed: 0,
            unregistered: None,
        })
    }

    /// Pauses accepting (A3). Readiness events are kept.
    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
        self.inbox.hold();
    }

    /// Resumes accepting while `used` connections are held.
    pub(crate) fn resume(&mut self, used: usize) {
        self.is_paused = false;
        self.inbox.release(used >= self.connections_max);
    }

    /// Ends accepting once all queued connections are accepted (A4). Returns false if called before.
    pub(crate) fn stop(&mut self, used: usize) -> bool {
        if self.stop != Stop::NotAsked {
            return false;
        }
        self.stop = Stop::Draining;
        self.resume(used);
        self.inbox.note_wake();
        self.queues.stop();
        true
    }

    /// Returns whether new connections are accepted.
    #[cfg(target_os = "linux")]
    pub(crate) fn are_open(&self) -> bool {
        !self.is_paused && self.stop == Stop::NotAsked
    }

    /// Returns whether [`Listeners::next`] has something to do.
    pub(crate) fn are_due(&self) -> bool {
        let is_due = self.queues.are_ready()
            || self.unregistered.is_some()
            || self.inbox.is_due()
            || (self.stop == Stop::Draining && self.may_close());
        is_due && !self.is_paused
    }

    /// Renews the shares of listeners and inbox for a turn.
    pub(crate) fn begin_turn(&mut self) {
        self.queues.begin_turn();
        self.handed = 0;
    }

    /// Returns the next arrival while `used` connections are held. A turn accepts at most
    /// [`ACCEPTS_PER_TURN_MAX`] connections of each listener, and as many from the inbox.
    pub(crate) fn next(&mut self, used: usize) -> Option<Arrival> {
        if self.is_paused {
            return None;
        }
        let has_room = used < self.connections_max;
        if let Some((fd, listener)) = self.unregistered.take_if(|_| has_room) {
            return Some(Arrival::Connection(fd, listener));
        }
        if self.unregistered.is_some() {
            return Some(self.fail(AcceptError::ProcessDescriptors));
        }
        match self.queues.next(has_room) {
            Some(Accepted::Connection(fd, listener)) => return Some(Arrival::Connection(fd, listener)),
            Some(Accepted::Failed(error)) => return Some(self.fail(error)),
            Some(Accepted::ListenerFailed { listener, errno }) => {
                return Some(Arrival::Event(Event::ListenerFailed { listener, errno }));
            }
            None => {}
        }
        if self.inbox.is_due() && self.handed < ACCEPTS_PER_TURN_MAX && self.inbox.has_any() {
            if !has_room {
                return Some(self.fail(AcceptError::ProcessDescriptors));
            }
            let (fd, listener) = self.inbox.take()?;
            self.handed += 1;
            return Some(Arrival::Connection(fd, listener));
        }
        self.finish_stop()
    }

    /// Keeps a connection that could not be registered, and pauses for lack of memory.
    pub(crate) fn put_back(&mut self, fd: OwnedFd, listener: ListenerId) -> Event {
        self.unregistered = Some((fd, listener));
        self.pause();
        Event::AcceptFailed { error: AcceptError::Memory }
    }

    fn fail(&mut self, error: AcceptError) -> Arrival {
        self.pause();
        Arrival::Event(Event::AcceptFailed { error })
    }

    fn may_close(&self) -> bool {
        self.queues.are_drained() && !self.queues.queues.iter().any(|queue| queue.is_watched)
    }

    /// Closes the listeners once they are empty, and ends after the inbox.
    fn finish_stop(&mut self) -> Option<Arrival> {
        if self.stop == Stop::Draining && self.may_close() {
            self.queues.close();
            self.stop = Stop::InboxOpen;
        }
        if self.stop != Stop::InboxOpen || !self.inbox.is_over() {
            return None;
        }
        self.stop = Stop::Done;
        Some(Arrival::Event(Event::AcceptStopped))
    }
}
