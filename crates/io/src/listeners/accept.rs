//! Accepting: one path for both drivers of the kernel and the acceptor.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::io::Errno;

use super::inbox::Inbox;
use super::{Entrances, Listener, SharedLimit};
use crate::limits::{ACCEPTS_AFTER_STOP_MAX, ACCEPTS_PER_TURN_MAX};
use crate::{AcceptError, Event, ListenerId, socket};

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

/// Returns the resource that ran out.
fn exhausted(errno: Errno) -> AcceptError {
    match errno {
        Errno::MFILE => AcceptError::ProcessDescriptors,
        Errno::NFILE => AcceptError::SystemFiles,
        Errno::NOBUFS | Errno::NOMEM => AcceptError::Memory,
        errno => AcceptError::Other { errno: errno.raw_os_error() },
    }
}

/// A listener's queue in the kernel.
#[derive(Debug)]
struct AcceptQueue {
    listener: Listener,
    /// It may hold connections.
    is_ready: bool,
    /// The listener has failed and was reported.
    has_failed: bool,
    /// The `errno` of a failure, still to be reported.
    failure: Option<i32>,
    removal: Removal,
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

impl AcceptQueue {
    fn new(listener: Listener) -> Self {
        Self {
            listener,
            is_ready: false,
            has_failed: false,
            failure: None,
            removal: Removal::No,
            is_watched: false,
            share: usize::MAX,
            accepted: 0,
            announced_in: 0,
        }
    }

    /// Returns whether it is being closed, and nothing is left to do before that.
    fn may_close(&self) -> bool {
        let Removal::Closing(accepted) = self.removal else { return false };
        let is_drained = !self.is_ready || accepted >= ACCEPTS_AFTER_STOP_MAX;
        is_drained && !self.is_watched
    }
}

/// Progress of the removal of one listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removal {
    No,
    /// Accepting as before until this time, in milliseconds: the handshakes of connections end.
    Retired(u64),
    /// Accepting queued connections, so many until now: a bounded number.
    Closing(usize),
}

/// Progress of `accept_stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopping {
    No,
    /// Accepting queued connections, a bounded number, so that it ends however fast new ones arrive.
    Queues {
        accepted: usize,
    },
    /// The listeners are closed; an acceptor may still send connections.
    Inbox,
    Done,
}

/// A new connection, or an event of accepting.
pub(crate) enum Arrival {
    Connection(OwnedFd, ListenerId),
    Event(Event),
    /// A listener was removed. To be deregistered and closed.
    Removed(Listener),
    /// A stop closes a listener: the same, without a report.
    Closed(Listener),
}

/// The listeners and the inbox of a driver or an acceptor, emptied in turn, each by a share a turn.
#[derive(Debug)]
pub(crate) struct Listeners {
    /// By index; `None` after a removal.
    queues: Vec<Option<AcceptQueue>>,
    /// Earliest end of a retirement; `u64::MAX` without one.
    retired_until_ms: u64,
    /// Connections from an acceptor: one more listener.
    pub(crate) inbox: Inbox,
    connections_max: usize,
    pub(crate) limit: SharedLimit,
    is_paused: bool,
    stopping: Stopping,
    /// A connection that could not be placed: the next one to try.
    unplaced: Option<(OwnedFd, ListenerId)>,
    /// Index of the queue to accept from next; the number of queues when each has had its share.
    current: usize,
    /// Attempts at `current` in this turn.
    attempts: usize,
    /// Connections taken from the inbox in this turn.
    handed: usize,
    /// Number of the turn, wrapping.
    turn: u16,
}

impl Listeners {
    /// Makes the listeners non-blocking.
    ///
    /// # Errors
    /// Fails for more listeners than [`ListenerId`] counts, or with the kernel's error.
    pub(crate) fn new(entrances: Entrances, connections_max: usize) -> io::Result<Self> {
        let Entrances { listeners, inbox, limit } = entrances;
        if listeners.len() > usize::from(ListenerId::MAX) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        listeners.iter().try_for_each(Listener::set_nonblocking)?;
        Ok(Self {
            queues: listeners.into_iter().map(|listener| Some(AcceptQueue::new(listener))).collect(),
            retired_until_ms: u64::MAX,
            inbox,
            connections_max,
            limit,
            is_paused: false,
            stopping: Stopping::No,
            unplaced: None,
            current: 0,
            attempts: 0,
            handed: 0,
            turn: 0,
        })
    }

    /// Returns index and descriptor of each listener.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = (ListenerId, RawFd)> {
        let all = self.queues.iter().enumerate();
        // `new` and `add` have checked that the index fits.
        all.filter_map(|(index, queue)| Some((index as ListenerId, queue.as_ref()?.listener.as_raw_fd())))
    }

    /// Adds a listener, which must be non-blocking. Returns its index, or it once accepting has been stopped.
    ///
    /// # Errors
    /// Fails for more listeners than [`ListenerId`] counts.
    pub(crate) fn add(&mut self, listener: Listener) -> Result<ListenerId, Listener> {
        let free = self.queues.iter().position(Option::is_none);
        let index = ListenerId::try_from(free.unwrap_or(self.queues.len()));
        let (Ok(index), Stopping::No) = (index, self.stopping) else { return Err(listener) };
        let queue = Some(AcceptQueue::new(listener));
        match self.queues.get_mut(usize::from(index)) {
            Some(free) => *free = queue,
            None => self.queues.push(queue),
        }
        Ok(index)
    }

    /// Has a listener fail, to be reported.
    pub(crate) fn fail_listener(&mut self, index: ListenerId, errno: i32) {
        if let Some(Some(queue)) = self.queues.get_mut(usize::from(index)) {
            (queue.is_ready, queue.has_failed, queue.failure) = (false, true, Some(errno));
        }
    }

    /// Begins to remove the listeners with this number (A8). Returns false without one, or once accepting was stopped.
    pub(crate) fn remove(&mut self, id: ListenerId, now_ms: u64) -> bool {
        let (mut count, is_open) = (0, self.stopping == Stopping::No);
        let is_it =
            |queue: &&mut AcceptQueue| is_open && queue.listener.id() == id && queue.removal == Removal::No;
        for queue in self.queues.iter_mut().flatten().filter(is_it) {
            let until_ms = now_ms.saturating_add(queue.listener.retire());
            queue.removal = Removal::Retired(until_ms);
            self.retired_until_ms = self.retired_until_ms.min(until_ms);
            count += 1;
        }
        count > 0
    }

    /// Returns the timeout of a wait that ends in time for a removal.
    pub(crate) fn bound_wait(&self, timeout: Option<Duration>, now_ms: u64) -> Option<Duration> {
        if self.retired_until_ms == u64::MAX || self.is_paused {
            return timeout;
        }
        let left = Duration::from_millis(self.retired_until_ms.saturating_sub(now_ms));
        Some(timeout.map_or(left, |timeout| timeout.min(left)))
    }

    /// Closes the listeners whose handshakes have had their time.
    #[cold]
    fn end_retirements(&mut self, now_ms: u64) {
        self.retired_until_ms = u64::MAX;
        for queue in self.queues.iter_mut().flatten() {
            match queue.removal {
                Removal::Retired(until_ms) if until_ms <= now_ms => {
                    queue.removal = Removal::Closing(0);
                    queue.is_ready = !queue.has_failed;
                    queue.share = usize::MAX;
                }
                Removal::Retired(until_ms) => {
                    self.retired_until_ms = self.retired_until_ms.min(until_ms);
                }
                Removal::No | Removal::Closing(_) => {}
            }
        }
    }

    /// Takes a listener that is removed and drained.
    fn take_removed(&mut self) -> Option<Listener> {
        if self.stopping != Stopping::No || self.unplaced.is_some() {
            return None;
        }
        self.queues
            .iter_mut()
            .find_map(|queue| queue.take_if(|queue| queue.may_close()))
            .map(|queue| queue.listener)
    }

    /// Returns the number of listeners.
    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    /// Records that the kernel has reported queued connections.
    pub(crate) fn mark_ready(&mut self, index: ListenerId) {
        if let Some(Some(queue)) = self.queues.get_mut(usize::from(index)) {
            queue.is_ready = !queue.has_failed;
        }
    }

    /// Pauses accepting (A3). Readiness events are kept.
    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
        self.inbox.hold();
    }

    /// Resumes accepting while `used` connections are held.
    pub(crate) fn resume(&mut self, used: usize) {
        self.is_paused = false;
        self.inbox.release(used >= self.connections_max || self.limit.is_full());
    }

    /// Ends accepting once all queued connections are accepted (A4), those included that arrived after the
    /// last wait. Unlinks the files of Unix-domain listeners. Returns false if called before.
    pub(crate) fn stop(&mut self, used: usize) -> bool {
        if self.stopping != Stopping::No {
            return false;
        }
        self.stopping = Stopping::Queues { accepted: 0 };
        self.resume(used);
        self.inbox.note_wake();
        self.retired_until_ms = u64::MAX;
        for queue in self.queues.iter_mut().flatten() {
            queue.listener.hide();
            queue.removal = Removal::No;
            queue.is_ready = !queue.has_failed;
            queue.share = usize::MAX;
        }
        true
    }

    /// Takes a listener, to be deregistered and closed.
    pub(crate) fn take(&mut self) -> Option<Listener> {
        self.queues.iter_mut().find_map(Option::take).map(|queue| queue.listener)
    }

    /// Returns whether [`Listeners::next`] has something to do.
    pub(crate) fn are_due(&self) -> bool {
        let is_due = self.are_ready() || self.unplaced.is_some() || self.inbox.is_due() || self.may_close();
        is_due && !self.is_paused
    }

    /// Returns whether a listener may have connections, or an event to report.
    fn are_ready(&self) -> bool {
        let mut queues = self.queues.iter().flatten();
        queues.any(|queue| queue.is_ready || queue.failure.is_some() || queue.may_close())
    }

    /// Returns whether the listeners are to be closed, empty or after as many connections as are bounded.
    fn may_close(&self) -> bool {
        let Stopping::Queues { accepted } = self.stopping else { return false };
        let mut queues = self.queues.iter().flatten();
        let is_drained = accepted >= ACCEPTS_AFTER_STOP_MAX || !queues.clone().any(|queue| queue.is_ready);
        is_drained && !queues.any(|queue| queue.is_watched)
    }

    /// Renews the shares of listeners and inbox for a turn. Returns whether a listener is about to be closed.
    pub(crate) fn begin_turn(&mut self, now_ms: u64) -> bool {
        (self.current, self.attempts, self.handed) = (0, 0, 0);
        self.turn = self.turn.wrapping_add(1);
        let is_due = self.retired_until_ms <= now_ms;
        if is_due {
            self.end_retirements(now_ms);
        }
        is_due
    }

    /// Returns the next arrival while `used` connections are held. A turn accepts at most
    /// [`ACCEPTS_PER_TURN_MAX`] connections of each listener, and as many from the inbox.
    pub(crate) fn next(&mut self, used: usize) -> Option<Arrival> {
        if self.is_paused {
            return None;
        }
        let has_room = used < self.connections_max;
        if let Some((fd, listener)) = self.unplaced.take_if(|_| has_room && self.limit.enter()) {
            return Some(Arrival::Connection(fd, listener));
        }
        if self.unplaced.is_some() {
            return Some(Arrival::Event(self.fail(AcceptError::ProcessDescriptors)));
        }
        if let Some(arrival) = self.next_queued(has_room) {
            return Some(arrival);
        }
        if self.inbox.is_due() && self.handed < ACCEPTS_PER_TURN_MAX && self.inbox.has_any() {
            if !has_room || !self.limit.enter() {
                return Some(Arrival::Event(self.fail(AcceptError::ProcessDescriptors)));
            }
            let (fd, listener) = self.inbox.take()?;
            self.handed += 1;
            return Some(Arrival::Connection(fd, listener));
        }
        self.take_removed().map(Arrival::Removed).or_else(|| self.finish_stop())
    }

    /// Accepts from the listeners. Fails if a connection waits and there is no room.
    fn next_queued(&mut self, has_room: bool) -> Option<Arrival> {
        while let Some(queue) = self.queues.get_mut(self.current) {
            let Some(queue) = queue.as_mut().filter(|_| self.attempts < ACCEPTS_PER_TURN_MAX) else {
                (self.current, self.attempts) = (self.current + 1, 0);
                continue;
            };
            let listener = queue.listener.id();
            if let Some(errno) = queue.failure.take() {
                return Some(Arrival::Event(Event::ListenerFailed { listener, errno }));
            }
            if !queue.is_ready {
                (self.current, self.attempts) = (self.current + 1, 0);
                continue;
            }
            // An attempt has a place while it lasts. One in vain would show another driver a full limit.
            if has_room && self.limit.is_scarce() && !queue.listener.has_pending() {
                queue.is_ready = false;
                continue;
            }
            if !has_room || !self.limit.enter() {
                if queue.listener.has_pending() {
                    return Some(Arrival::Event(self.fail(AcceptError::ProcessDescriptors)));
                }
                queue.is_ready = false;
                continue;
            }
            self.attempts += 1;
            match socket::accept(&queue.listener).inspect_err(|_| self.limit.leave(1)) {
                Ok(fd) => {
                    if let Stopping::Queues { accepted } = &mut self.stopping {
                        *accepted += 1;
                    }
                    if let Removal::Closing(accepted) = &mut queue.removal {
                        *accepted += 1;
                    }
                    queue.accepted = queue.accepted.saturating_add(1);
                    queue.is_ready = queue.accepted < queue.share;
                    return Some(Arrival::Connection(fd, listener));
                }
                Err(Errno::AGAIN) => queue.is_ready = false,
                Err(errno @ (Errno::BADF | Errno::INVAL | Errno::NOTSOCK)) => {
                    (queue.is_ready, queue.has_failed) = (false, true);
                    let errno = errno.raw_os_error();
                    return Some(Arrival::Event(Event::ListenerFailed { listener, errno }));
                }
                // It is closed already; there may be others.
                Err(errno) if is_of_the_connection(errno) => {}
                Err(errno) => return Some(Arrival::Event(self.fail(exhausted(errno)))),
            }
        }
        None
    }

    /// Pauses for lack of a resource; returns its event (A2).
    pub(crate) fn fail(&mut self, error: AcceptError) -> Event {
        self.pause();
        Event::AcceptFailed { error }
    }

    /// Keeps a connection that could not be placed.
    pub(crate) fn put_back(&mut self, fd: OwnedFd, listener: ListenerId) {
        self.limit.leave(1);
        self.unplaced = Some((fd, listener));
    }

    /// Returns whether a connection could not be placed.
    pub(crate) fn has_unplaced(&self) -> bool {
        self.unplaced.is_some()
    }

    /// Closes the listeners once they are empty, and ends after the inbox.
    fn finish_stop(&mut self) -> Option<Arrival> {
        if self.may_close() {
            if let Some(listener) = self.take() {
                return Some(Arrival::Closed(listener));
            }
            self.stopping = Stopping::Inbox;
        }
        if self.stopping != Stopping::Inbox || !self.inbox.is_over() {
            return None;
        }
        self.stopping = Stopping::Done;
        Some(Arrival::Event(Event::AcceptStopped))
    }
}

/// The completion driver's part: one entry per listener reports connections, and is then queued again.
#[cfg(target_os = "linux")]
impl Listeners {
    /// Returns the next listener to be watched, and counts it as watched; none while accepting is paused.
    pub(crate) fn next_to_watch(&mut self) -> Option<(ListenerId, RawFd)> {
        if self.is_paused || self.stopping != Stopping::No {
            return None;
        }
        let is_free = |queue: &AcceptQueue| {
            let is_closing = matches!(queue.removal, Removal::Closing(_));
            !queue.is_ready && !queue.has_failed && !queue.is_watched && !is_closing
        };
        let index = self.queues.iter().position(|queue| queue.as_ref().is_some_and(is_free))?;
        let queue = self.queues[index].as_mut()?;
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
        let Some(Some(queue)) = self.queues.get_mut(usize::from(index)) else { return };
        queue.is_watched = false;
        if self.stopping == Stopping::No && !matches!(queue.removal, Removal::Closing(_)) {
            let more_waited = queue.announced_in == self.turn.wrapping_sub(1);
            let share = if more_waited { queue.share.saturating_mul(2) } else { queue.accepted };
            (queue.share, queue.accepted) = (share.clamp(1, ACCEPTS_PER_TURN_MAX), 0);
            queue.announced_in = self.turn;
        }
    }

    /// Returns the indices of watched listeners.
    pub(crate) fn watched(&self) -> impl Iterator<Item = ListenerId> {
        self.indices(|queue| queue.is_watched)
    }

    /// Returns the indices of listeners that are watched and about to be closed: their entries are to be cancelled.
    pub(crate) fn watched_in_vain(&self) -> impl Iterator<Item = ListenerId> {
        self.indices(|queue| queue.is_watched && matches!(queue.removal, Removal::Closing(_)))
    }

    fn indices(&self, wanted: impl Fn(&AcceptQueue) -> bool) -> impl Iterator<Item = ListenerId> {
        let all = self.queues.iter().enumerate();
        let wanted = all.filter(move |(_, queue)| queue.as_ref().is_some_and(&wanted));
        wanted.map(|(index, _)| index as ListenerId)
    }
}
