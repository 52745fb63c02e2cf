//! The acceptor: accepts connections for all workers and hands them out in batches.
//!
//! It always uses `accept4` after a wait for readiness, whichever driver the workers use. A batch costs one
//! wait, an `accept4` for each connection and one more, and a wake for each worker. None of it delays a
//! request.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use mio::Interest;
use mio::unix::SourceFd;

use crate::clock::Clock;
use crate::inbox::Refused;
use crate::listeners::{AcceptQueues, Accepted};
use crate::poll::wake;
use crate::{AcceptError, Dispatcher, Listener, ListenerId, Waker};

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
    queues: AcceptQueues,
    dispatcher: Dispatcher,
    /// An accepted connection for which no inbox had room.
    undelivered: Option<(OwnedFd, ListenerId)>,
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
        let waker = wake::waker_named(poll.registry(), WAKER)?;
        let queues = AcceptQueues::new(listeners)?;
        for (index, fd) in queues.descriptors() {
            poll.registry().register(
                &mut SourceFd(&fd),
                mio::Token(usize::from(index)),
                Interest::READABLE,
            )?;
        }
        Ok(Self {
            poll,
            events: mio::Events::with_capacity(ANNOUNCEMENTS_MAX),
            waker,
            clock: Clock::new(),
            queues,
            dispatcher,
            undelivered: None,
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
        if self.stop.is_none() {
            self.paused_until_ms = None;
            self.queues.stop();
        }
        if self.stop != Some(StopKind::AtOnce) {
            self.stop = Some(kind);
        }
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
        Ok(progress)
    }

    fn wait(&mut self) -> io::Result<()> {
        let wait_timeout = self.wait_timeout();
        match self.poll.poll(&mut self.events, wait_timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        self.clock.read();
        for event in self.events.iter().filter(|event| event.token() != WAKER) {
            self.queues.mark_ready(event.token().0 as ListenerId);
        }
        if self.paused_until_ms.is_some_and(|until_ms| until_ms <= self.clock.now_ms) {
            self.paused_until_ms = None;
        }
        Ok(())
    }

    /// Returns the timeout of the next wait.
    fn wait_timeout(&self) -> Option<Duration> {
        if let Some(until_ms) = self.paused_until_ms {
            return Some(Duration::from_millis(until_ms.saturating_sub(self.clock.now_ms)));
        }
        let busy = if self.undelivered.is_some() {
            self.stop == Some(StopKind::AtOnce) || !self.dispatcher.await_room(&self.waker)
        } else {
            self.stop.is_some() || self.queues.are_ready()
        };
        busy.then_some(Duration::ZERO)
    }

    /// Accepts and hands out a share of each listener's queue.
    fn hand_out(&mut self) -> Progress {
        if self.paused_until_ms.is_some() {
            return Progress::Paused;
        }
        if let Some((connection, listener)) = self.undelivered.take()
            && let Some(end) = self.deliver(connection, listener)
        {
            return end;
        }
        self.reported_full = false;
        self.queues.begin_turn();
        while let Some(accepted) = self.queues.next(true) {
            match accepted {
                Accepted::Connection(connection, listener) => {
                    if let Some(end) = self.deliver(connection, listener) {
                        return end;
                    }
                }
                Accepted::Failed(error) => return self.fail(error),
                Accepted::ListenerFailed { listener, errno } => {
                    return Progress::ListenerFailed { listener, errno };
                }
            }
        }
        if self.stop.is_some() && self.queues.are_drained() {
            return self.end();
        }
        Progress::Open
    }

    /// Hands a connection out, or holds it until there is room. Returns the outcome unless it succeeded.
    fn deliver(&mut self, connection: OwnedFd, listener: ListenerId) -> Option<Progress> {
        match self.dispatcher.dispatch(connection, listener) {
            Ok(()) => None,
            Err(Refused::Full(_)) if self.stop == Some(StopKind::AtOnce) => None,
            Err(Refused::Full(connection)) => {
                self.undelivered = Some((connection, listener));
                let reported = std::mem::replace(&mut self.reported_full, true);
                Some(if reported { Progress::Paused } else { Progress::Full })
            }
            Err(Refused::Gone(_)) => Some(self.end()),
        }
    }

    fn fail(&mut self, error: AcceptError) -> Progress {
        if self.stop == Some(StopKind::AtOnce) {
            return self.end();
        }
        self.paused_until_ms = Some(self.clock.now_ms + self.retry_ms);
        Progress::Failed(error)
    }

    fn end(&mut self) -> Progress {
        self.queues.close();
        Progress::Over
    }
}
