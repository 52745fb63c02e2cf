//! Accepting: armed for good while there is room. What the kernel has taken early waits here, unannounced.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::Fd;
use rustix::io::Errno;

use super::Uring;
use super::ring::{Done, Kind, Name};
use crate::accepting::{Attempt, Stop, attempt, refused};
use crate::inbox::Inbox;
use crate::limits::{ACCEPTS_AFTER_STOP_MAX, ACCEPTS_PER_TURN_MAX};
use crate::{AcceptError, Entrances, Event, Listener, ListenerId, Token};

/// Where there is room for no more connections than this they are accepted one by one: an entry that accepts again and
/// again takes the whole of the kernel's queue.
const ACCEPTED_SINGLY_BELOW: usize = 512;

/// Unannounced connections from which on no more are taken from the kernel.
const UNANNOUNCED_MAX: usize = 16 * ACCEPTS_PER_TURN_MAX;

/// The listeners and how far accepting has got.
#[derive(Debug)]
pub(super) struct Listeners {
    list: Vec<Door>,
    /// What an acceptor hands over: one listener more.
    pub(super) inbox: Inbox,
    connections_max: usize,
    paused: bool,
    stop: Stop,
    failed: Option<AcceptError>,
    /// Taken from the kernel, not yet announced: one queue of the kernel's beyond [`UNANNOUNCED_MAX`] at most.
    unannounced: VecDeque<(OwnedFd, ListenerId)>,
    /// Announced in this turn.
    taken: usize,
    /// Announced in this turn, out of the inbox.
    handed: usize,
    /// Accepted by hand since `stop`, to come to an end however fast new ones arrive.
    taken_since_stop: usize,
    /// Listeners that were found empty after `stop`.
    emptied: usize,
}

/// A listener.
#[derive(Debug)]
struct Door {
    listener: Listener,
    armed: Armed,
    cancelling: bool,
}

/// What the kernel does with a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Armed {
    Not,
    /// Accepts all that come.
    Many,
    /// Accepts one.
    One,
    /// There is no room: only says when somebody comes.
    Watch,
    /// Accepting there has no meaning any more.
    Never,
}

impl Door {
    fn is_armed(&self) -> bool {
        !matches!(self.armed, Armed::Not | Armed::Never)
    }

    fn entry(&self) -> Option<Entry> {
        let fd = Fd(self.listener.as_raw_fd());
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        match self.armed {
            Armed::Many => Some(opcode::AcceptMulti::new(fd).flags(flags).build()),
            Armed::One => {
                Some(opcode::Accept::new(fd, ptr::null_mut(), ptr::null_mut()).flags(flags).build())
            }
            Armed::Watch => Some(opcode::PollAdd::new(fd, libc::POLLIN as u32).build()),
            Armed::Not | Armed::Never => None,
        }
    }
}

impl Listeners {
    pub(super) fn new(entrances: Entrances, connections_max: usize) -> io::Result<Self> {
        let Entrances { listeners, inbox } = entrances;
        let mut list = Vec::with_capacity(listeners.len());
        for listener in listeners {
            listener.set_nonblocking()?;
            list.push(Door { listener, armed: Armed::Not, cancelling: false });
        }
        if list.len() > usize::from(ListenerId::MAX) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self {
            list,
            inbox,
            connections_max,
            paused: false,
            stop: Stop::No,
            failed: None,
            unannounced: VecDeque::new(),
            taken: 0,
            handed: 0,
            taken_since_stop: 0,
            emptied: 0,
        })
    }

    pub(super) fn resume(&mut self, used: usize) {
        self.paused = false;
        self.inbox.release(used >= self.connections_max);
    }

    pub(super) fn begin_turn(&mut self) {
        self.taken = 0;
        self.handed = 0;
    }

    /// Whether `next_accept` has something to do.
    pub(super) fn are_due(&self) -> bool {
        let due = !self.unannounced.is_empty()
            || self.failed.is_some()
            || self.inbox.is_due()
            || self.is_stopping();
        due && !self.paused
    }

    /// Whether the queues are to be emptied by hand now.
    fn is_stopping(&self) -> bool {
        self.stop == Stop::Wanted && !self.list.iter().any(Door::is_armed)
    }

    /// Connections that may still be taken from the kernel while `used` are held.
    fn room(&self, used: usize) -> usize {
        self.connections_max.saturating_sub(used + self.unannounced.len())
    }

    /// How a listener is to be armed while `room` connections may come, `singly` of which are under way.
    fn arming(&self, room: usize, singly: usize) -> Armed {
        if self.unannounced.len() >= UNANNOUNCED_MAX {
            Armed::Not
        } else if room > ACCEPTED_SINGLY_BELOW {
            Armed::Many
        } else if room > singly {
            Armed::One
        } else if room == 0 && self.unannounced.is_empty() {
            Armed::Watch
        } else {
            Armed::Not
        }
    }

    /// As if each listener's cancel had been sent off and found nothing.
    #[cfg(test)]
    pub(super) fn lose_cancels(&mut self) {
        for listener in &mut self.list {
            listener.cancelling = true;
        }
    }

    /// Whether the next connection comes out of the inbox.
    fn takes_from_inbox(&mut self) -> bool {
        self.inbox.is_due() && self.handed < ACCEPTS_PER_TURN_MAX && self.inbox.has_any()
    }

    /// Closes the listeners once they are empty, and ends when the inbox has.
    fn finish_stop(&mut self) -> Option<Event> {
        if self.is_stopping() {
            self.list.clear();
            self.stop = Stop::InboxOpen;
        }
        if self.stop != Stop::InboxOpen || !self.inbox.is_over() {
            return None;
        }
        self.stop = Stop::Done;
        Some(Event::AcceptStopped)
    }

    /// A connection accepted by hand after `stop`.
    fn drain(&mut self) -> Attempt {
        while let Some(door) = self.list.get(self.emptied) {
            if self.taken_since_stop == ACCEPTS_AFTER_STOP_MAX {
                break;
            }
            self.taken_since_stop += 1;
            match attempt(&door.listener) {
                Attempt::Empty => self.emptied += 1,
                Attempt::Retry => {}
                found => return found,
            }
        }
        Attempt::Empty
    }
}

fn name(index: usize) -> Name {
    // The index came from a ListenerId (Listeners::new).
    Name::new(Kind::Accept, Token::new(index as u32, 0))
}

impl Uring {
    /// Arms the listeners that aren't, as far as there is room.
    pub(super) fn arm_accepts(&mut self) {
        if self.listeners.paused || self.listeners.stop != Stop::No {
            return;
        }
        if self.listeners.list.iter().all(|listener| listener.armed != Armed::Not) {
            return;
        }
        let room = self.listeners.room(self.conns.slots.used());
        let mut singly = self.listeners.list.iter().filter(|listener| listener.armed == Armed::One).count();
        for index in 0..self.listeners.list.len() {
            if self.listeners.list[index].armed != Armed::Not {
                continue;
            }
            let armed = self.listeners.arming(room, singly);
            singly += usize::from(armed == Armed::One);
            let listener = &mut self.listeners.list[index];
            listener.armed = armed;
            if let Some(entry) = listener.entry() {
                self.ring.push(entry, name(index));
            }
        }
    }

    fn disarm_accept(&mut self, index: usize) {
        let listener = &mut self.listeners.list[index];
        if listener.is_armed() && !listener.cancelling {
            listener.cancelling = true;
            self.ring.cancel(name(index));
        }
    }

    fn disarm_accepts(&mut self) {
        for index in 0..self.listeners.list.len() {
            self.disarm_accept(index);
        }
    }

    pub(super) fn pause_accept(&mut self) {
        self.listeners.paused = true;
        self.listeners.inbox.hold();
        self.disarm_accepts();
    }

    pub(super) fn stop_accept(&mut self) {
        if self.listeners.stop == Stop::No {
            self.listeners.stop = Stop::Wanted;
            self.listeners.resume(self.conns.slots.used());
            self.listeners.inbox.note_wake();
            self.listeners.list.iter_mut().for_each(|door| door.listener.hide());
            self.disarm_accepts();
        }
    }

    /// A completion of a listener.
    pub(super) fn accepted(&mut self, done: Done) {
        let used = self.conns.slots.used();
        let (index, last) = (done.token().slot(), done.is_last());
        let Some(listener) = self.listeners.list.get_mut(index) else { return };
        let armed = listener.armed;
        if last {
            listener.armed = Armed::Not;
            listener.cancelling = false;
        }
        if armed == Armed::Watch {
            if done.result().is_ok() && self.listeners.room(used) == 0 {
                self.listeners.failed = Some(AcceptError::ProcessDescriptors);
            }
            return;
        }
        match done.into_descriptor() {
            Ok(fd) => {
                let id = self.listeners.list[index].listener.id();
                self.listeners.unannounced.push_back((fd, id));
            }
            Err(Errno::CANCELED) => {}
            Err(errno) => self.accept_refused(index, errno),
        }
        let goes_on = self.listeners.arming(self.listeners.room(used), 0) == Armed::Many;
        let listener = &mut self.listeners.list[index];
        if !last && (listener.cancelling || !goes_on) {
            // A cancel that was under way may have found nothing.
            listener.cancelling = false;
            self.disarm_accept(index);
        }
    }

    fn accept_refused(&mut self, index: usize, errno: Errno) {
        match refused(errno) {
            Attempt::Failed(error) => self.listeners.failed = Some(error),
            // The listener isn't one any more: armed again it would say so again.
            Attempt::Empty if errno != Errno::AGAIN => self.listeners.list[index].armed = Armed::Never,
            _ => {}
        }
    }

    /// Closes a connection that the kernel has accepted while the driver ends.
    pub(super) fn accepted_too_late(&mut self, done: Done) {
        let watched = |door: &Door| door.armed == Armed::Watch;
        if done.kind() == Kind::Accept && !self.listeners.list.get(done.token().slot()).is_some_and(watched) {
            drop(done.into_descriptor());
        }
    }

    /// The next new connection: of the listeners and out of the inbox at most [`ACCEPTS_PER_TURN_MAX`] each in a turn.
    pub(super) fn next_accept(&mut self) -> Option<Event> {
        if !self.listeners.are_due() {
            return None;
        }
        let handed = self.listeners.takes_from_inbox();
        if !handed && self.listeners.taken == ACCEPTS_PER_TURN_MAX {
            return None;
        }
        let someone = handed || self.listeners.is_stopping() || !self.listeners.unannounced.is_empty();
        if someone && self.conns.slots.used() >= self.listeners.connections_max {
            return Some(self.accept_failed(AcceptError::ProcessDescriptors));
        }
        if handed {
            let (fd, listener) = self.listeners.inbox.take()?;
            self.listeners.handed += 1;
            return Some(self.announce(fd, listener));
        }
        if let Some((fd, listener)) = self.listeners.unannounced.pop_front() {
            self.listeners.taken += 1;
            return Some(self.announce(fd, listener));
        }
        if let Some(error) = self.listeners.failed {
            return Some(self.accept_failed(error));
        }
        self.next_queued()
    }

    /// After `stop`: the next of those that are still in the kernel's queues, and then the end.
    fn next_queued(&mut self) -> Option<Event> {
        if self.listeners.is_stopping() {
            match self.listeners.drain() {
                Attempt::Accepted(fd) => {
                    let id = self.listeners.list[self.listeners.emptied].listener.id();
                    self.listeners.taken += 1;
                    return Some(self.announce(fd, id));
                }
                Attempt::Failed(error) => return Some(self.accept_failed(error)),
                Attempt::Retry | Attempt::Empty => {}
            }
        }
        self.listeners.finish_stop()
    }

    fn announce(&mut self, fd: OwnedFd, listener: ListenerId) -> Event {
        let token = self.conns.slots.insert(fd);
        self.arm_recv(token);
        Event::Accepted { token, listener }
    }

    fn accept_failed(&mut self, error: AcceptError) -> Event {
        self.listeners.failed = None;
        self.pause_accept();
        Event::AcceptFailed { error }
    }
}
