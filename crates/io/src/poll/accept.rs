//! Accepting: from each listener in turn, bounded, until the queue is empty or something is used up.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry};

use super::{Poll, wake};
use crate::accepting::{Attempt, Stop, attempt};
use crate::inbox::Inbox;
use crate::limits::{ACCEPTS_AFTER_STOP_MAX, ACCEPTS_PER_TURN_MAX};
use crate::{AcceptError, Entrances, Event, Listener, ListenerId};

/// What is to be announced of a connection: urgent data too, where the system tells it apart.
#[cfg(any(target_os = "linux", target_os = "android"))]
const INTERESTS: Interest = Interest::READABLE.add(Interest::WRITABLE).add(Interest::PRIORITY);
/// What is to be announced of a connection.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const INTERESTS: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// The listeners and how far accepting has got.
#[derive(Debug)]
pub(super) struct Listeners {
    list: Vec<Door>,
    /// What an acceptor hands over: one listener more.
    pub(super) inbox: Inbox,
    connections_max: usize,
    paused: bool,
    stop: Stop,
    /// The listener whose turn it is; behind the last when all have had theirs.
    current: usize,
    /// Accepted from `current` in this turn.
    taken: usize,
    /// Taken from the inbox in this turn.
    handed: usize,
    /// Accepted since `stop`, to come to an end however fast new ones arrive.
    taken_since_stop: usize,
    /// Taken from the kernel, but there was no memory to register it: goes first next time.
    held: Option<(OwnedFd, ListenerId)>,
}

/// A listener.
#[derive(Debug)]
struct Door {
    listener: Listener,
    /// Its queue may hold connections.
    ready: bool,
}

impl Listeners {
    pub(super) fn new(registry: &Registry, entrances: Entrances, connections_max: usize) -> io::Result<Self> {
        let Entrances { listeners, inbox } = entrances;
        let mut list = Vec::with_capacity(listeners.len());
        for (place, listener) in listeners.into_iter().enumerate() {
            let place = ListenerId::try_from(place).map_err(|_| io::ErrorKind::InvalidInput)?;
            listener.set_nonblocking()?;
            registry.register(
                &mut SourceFd(&listener.as_raw_fd()),
                wake::listener(place),
                Interest::READABLE,
            )?;
            list.push(Door { listener, ready: false });
        }
        Ok(Self {
            list,
            inbox,
            connections_max,
            paused: false,
            stop: Stop::No,
            current: 0,
            taken: 0,
            handed: 0,
            taken_since_stop: 0,
            held: None,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn pause(&mut self) {
        self.paused = true;
        self.inbox.hold();
    }

    /// What has queued up meanwhile was noted when it was announced.
    pub(super) fn resume(&mut self, used: usize) {
        self.paused = false;
        self.inbox.release(used >= self.connections_max);
    }

    /// Each queue is looked into once more, for what came after the last `wait`.
    pub(super) fn stop(&mut self, used: usize) {
        if self.stop != Stop::No {
            return;
        }
        self.stop = Stop::Wanted;
        self.taken_since_stop = 0;
        self.resume(used);
        self.inbox.note_wake();
        for door in &mut self.list {
            door.listener.hide();
            door.ready = true;
        }
    }

    /// The listener in this place may have connections.
    pub(super) fn mark_ready(&mut self, place: ListenerId) {
        if let Some(door) = self.list.get_mut(usize::from(place)) {
            door.ready = true;
        }
    }

    /// Whether `next_accept` has something to do.
    pub(super) fn are_ready(&self) -> bool {
        let due = self.stop == Stop::Wanted
            || self.held.is_some()
            || self.inbox.is_due()
            || self.list.iter().any(|door| door.ready);
        due && !self.paused
    }

    pub(super) fn begin_turn(&mut self) {
        self.current = 0;
        self.taken = 0;
        self.handed = 0;
    }

    fn attempt(&mut self) -> Attempt {
        self.taken += 1;
        self.taken_since_stop += 1;
        attempt(&self.list[self.current].listener)
    }

    /// Whether the next connection comes out of the inbox.
    fn takes_from_inbox(&mut self) -> bool {
        self.inbox.is_due() && self.handed < ACCEPTS_PER_TURN_MAX && self.inbox.has_any()
    }

    /// Closes the listeners once they are empty, and ends when the inbox has.
    fn finish_stop(&mut self) -> Option<Event> {
        let is_empty = self.list.iter().all(|door| !door.ready);
        if self.stop == Stop::Wanted && (is_empty || self.taken_since_stop >= ACCEPTS_AFTER_STOP_MAX) {
            self.list.clear();
            self.stop = Stop::InboxOpen;
        }
        if self.stop != Stop::InboxOpen || !self.inbox.is_over() {
            return None;
        }
        self.stop = Stop::Done;
        Some(Event::AcceptStopped)
    }
}

impl Poll {
    /// The next new connection, at most [`ACCEPTS_PER_TURN_MAX`] of each listener in a turn.
    pub(super) fn next_accept(&mut self) -> Option<Event> {
        if self.listeners.paused {
            return None;
        }
        if let Some((fd, id)) = self.listeners.held.take() {
            return Some(self.admit(fd, id));
        }
        while let Some(door) = self.listeners.list.get_mut(self.listeners.current) {
            if !door.ready || self.listeners.taken == ACCEPTS_PER_TURN_MAX {
                self.listeners.current += 1;
                self.listeners.taken = 0;
                continue;
            }
            if self.conns.slots.used() >= self.listeners.connections_max {
                return Some(self.accept_failed(AcceptError::ProcessDescriptors));
            }
            match self.listeners.attempt() {
                Attempt::Accepted(fd) => {
                    let id = self.listeners.list[self.listeners.current].listener.id();
                    return Some(self.admit(fd, id));
                }
                Attempt::Retry => {}
                Attempt::Empty => self.listeners.list[self.listeners.current].ready = false,
                Attempt::Failed(error) => return Some(self.accept_failed(error)),
            }
        }
        if self.listeners.takes_from_inbox() {
            return self.next_handed();
        }
        self.listeners.finish_stop()
    }

    /// A connection that an acceptor has handed over.
    fn next_handed(&mut self) -> Option<Event> {
        if self.conns.slots.used() >= self.listeners.connections_max {
            return Some(self.accept_failed(AcceptError::ProcessDescriptors));
        }
        let (fd, listener) = self.listeners.inbox.take()?;
        self.listeners.handed += 1;
        Some(self.admit(fd, listener))
    }

    /// Registers a new connection, once and for all.
    fn admit(&mut self, fd: OwnedFd, listener: ListenerId) -> Event {
        let token = self.conns.slots.next_token();
        let registered =
            self.poll.registry().register(&mut SourceFd(&fd.as_raw_fd()), wake::connection(token), INTERESTS);
        if registered.is_err() {
            self.listeners.held = Some((fd, listener));
            return self.accept_failed(AcceptError::Memory);
        }
        let token = self.conns.slots.insert(fd);
        Event::Accepted { token, listener }
    }

    fn accept_failed(&mut self, error: AcceptError) -> Event {
        self.listeners.pause();
        Event::AcceptFailed { error }
    }
}
