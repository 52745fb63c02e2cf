//! Accepting: from each listener in turn, bounded, until the queue is empty or something is used up.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry};

use super::{Poll, wake};
use crate::accepting::{Attempt, Stop, attempt, listener_id};
use crate::limits::{ACCEPTS_AFTER_STOP_MAX, ACCEPTS_PER_TURN_MAX};
use crate::{AcceptError, Event, ListenerId};

/// What is to be announced of a connection: urgent data too, where the system tells it apart.
#[cfg(any(target_os = "linux", target_os = "android"))]
const INTERESTS: Interest = Interest::READABLE.add(Interest::WRITABLE).add(Interest::PRIORITY);
/// What is to be announced of a connection.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const INTERESTS: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// The listeners and how far accepting has got.
#[derive(Debug)]
pub(super) struct Listeners {
    list: Vec<Listener>,
    connections_max: usize,
    paused: bool,
    stop: Stop,
    /// The listener whose turn it is; behind the last when all have had theirs.
    current: usize,
    /// Accepted from `current` in this turn.
    taken: usize,
    /// Accepted since `stop`, to come to an end however fast new ones arrive.
    taken_since_stop: usize,
    /// Taken from the kernel, but there was no memory to register it: goes first next time.
    held: Option<(OwnedFd, ListenerId)>,
}

#[derive(Debug)]
struct Listener {
    socket: TcpListener,
    /// Its queue may hold connections.
    ready: bool,
}

impl Listeners {
    pub(super) fn new(
        registry: &Registry,
        sockets: Vec<TcpListener>,
        connections_max: usize,
    ) -> io::Result<Self> {
        let mut list = Vec::with_capacity(sockets.len());
        for (index, socket) in sockets.into_iter().enumerate() {
            let id = listener_id(index)?;
            socket.set_nonblocking(true)?;
            registry.register(&mut SourceFd(&socket.as_raw_fd()), wake::listener(id), Interest::READABLE)?;
            list.push(Listener { socket, ready: false });
        }
        Ok(Self {
            list,
            connections_max,
            paused: false,
            stop: Stop::No,
            current: 0,
            taken: 0,
            taken_since_stop: 0,
            held: None,
        })
    }

    pub(super) fn pause(&mut self) {
        self.paused = true;
    }

    /// What has queued up meanwhile was noted when it was announced.
    pub(super) fn resume(&mut self) {
        self.paused = false;
    }

    /// Each queue is looked into once more, for what came after the last `wait`.
    pub(super) fn stop(&mut self) {
        if self.stop != Stop::No {
            return;
        }
        self.stop = Stop::Wanted;
        self.taken_since_stop = 0;
        self.paused = false;
        for listener in &mut self.list {
            listener.ready = true;
        }
    }

    pub(super) fn mark_ready(&mut self, id: ListenerId) {
        if let Some(listener) = self.list.get_mut(usize::from(id)) {
            listener.ready = true;
        }
    }

    /// Whether `next_accept` has something to do.
    pub(super) fn are_ready(&self) -> bool {
        let due = self.stop == Stop::Wanted
            || self.held.is_some()
            || self.list.iter().any(|listener| listener.ready);
        due && !self.paused
    }

    pub(super) fn begin_turn(&mut self) {
        self.current = 0;
        self.taken = 0;
    }

    fn attempt(&mut self) -> Attempt {
        self.taken += 1;
        self.taken_since_stop += 1;
        attempt(&self.list[self.current].socket)
    }

    /// Closes the listeners once they are empty.
    fn finish_stop(&mut self) -> Option<Event> {
        let is_empty = self.list.iter().all(|listener| !listener.ready);
        if self.stop != Stop::Wanted || !is_empty && self.taken_since_stop < ACCEPTS_AFTER_STOP_MAX {
            return None;
        }
        self.list.clear();
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
        while let Some(listener) = self.listeners.list.get_mut(self.listeners.current) {
            if !listener.ready || self.listeners.taken == ACCEPTS_PER_TURN_MAX {
                self.listeners.current += 1;
                self.listeners.taken = 0;
                continue;
            }
            if self.conns.slots.used() >= self.listeners.connections_max {
                return Some(self.accept_failed(AcceptError::ProcessDescriptors));
            }
            match self.listeners.attempt() {
                // The index came from a ListenerId (Listeners::new).
                Attempt::Accepted(fd) => return Some(self.admit(fd, self.listeners.current as ListenerId)),
                Attempt::Retry => {}
                Attempt::Empty => self.listeners.list[self.listeners.current].ready = false,
                Attempt::Failed(error) => return Some(self.accept_failed(error)),
            }
        }
        self.listeners.finish_stop()
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
        self.listeners.paused = true;
        Event::AcceptFailed { error }
    }
}
