//! The acceptor: takes connections out of the kernel's queues for all workers, and hands them out in batches.
//!
//! Plain `accept4` behind a wait for readiness, whatever drives the workers: a batch costs one wait, an `accept4` for each
//! connection and one more, and a wake for each worker. What it does with its time concerns no request.

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

/// mio's name for the waker; those of the listeners are their places.
const WAKER: mio::Token = mio::Token(usize::MAX);
/// Announcements taken from the kernel at once; further ones come next time.
const ANNOUNCEMENTS_MAX: usize = 64;

/// How a turn has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// What came was handed out, as far as its share of a turn goes.
    Open,
    /// Nobody is accepted yet: a pause goes on.
    Paused,
    /// Every inbox has become full: nobody is accepted until one has room again. Said once for each time.
    Full,
    /// Something is used up: nobody is accepted for a while.
    Failed(AcceptError),
    /// A listener accepts no more connections. Reported once for each; the others go on.
    ListenerFailed {
        /// The listener.
        listener: ListenerId,
        /// The system's number for what accepting says.
        errno: i32,
    },
    /// It has ended, by [`Acceptor::stop`] or because no worker is left.
    Over,
}

/// What is to become of connections that are queued in the kernel when accepting ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopKind {
    /// All are handed out, though workers may have to make room first.
    Drain,
    /// Those that find no room at once are closed.
    AtOnce,
}

/// Listeners, and the workers that their connections go to.
#[derive(Debug)]
pub struct Acceptor {
    poll: mio::Poll,
    events: mio::Events,
    waker: Waker,
    clock: Clock,
    queues: AcceptQueues,
    dispatcher: Dispatcher,
    /// Accepted, and no inbox had room.
    held: Option<(OwnedFd, ListenerId)>,
    /// It was said that every inbox is full, and is still so.
    told_full: bool,
    retry_ms: u64,
    /// Something was used up: nobody is accepted before this time.
    paused_until_ms: Option<u64>,
    stop: Option<StopKind>,
}

impl Acceptor {
    /// Listens at `listeners` (set non-blocking here) for the workers of `dispatcher`. After something was used up it waits
    /// `retry_ms`.
    ///
    /// # Errors
    /// What the kernel says, which is out of descriptors or memory.
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
            held: None,
            told_full: false,
            retry_ms,
            paused_until_ms: None,
            stop: None,
        })
    }

    /// Ends its current or next wait, from any thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Accepts what is queued and ends. The files of Unix-domain listeners go at once. Asked again, the quicker kind counts.
    pub fn stop(&mut self, kind: StopKind) {
        if self.stop.is_none() {
            self.paused_until_ms = None;
            self.queues.stop();
        }
        if self.stop != Some(StopKind::AtOnce) {
            self.stop = Some(kind);
        }
    }

    /// Waits until somebody comes, an inbox has room or it is woken, then hands out a batch and wakes who got something.
    ///
    /// # Errors
    /// Where the kernel can't be asked any more.
    pub fn turn(&mut self) -> io::Result<Progress> {
        self.wait()?;
        let progress = self.hand_out();
        self.dispatcher.wake();
        Ok(progress)
    }

    fn wait(&mut self) -> io::Result<()> {
        let patience = self.patience();
        match self.poll.poll(&mut self.events, patience) {
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

    /// How long there is nothing to do without a word from outside.
    fn patience(&self) -> Option<Duration> {
        if let Some(until_ms) = self.paused_until_ms {
            return Some(Duration::from_millis(until_ms.saturating_sub(self.clock.now_ms)));
        }
        let busy = if self.held.is_some() {
            self.stop == Some(StopKind::AtOnce) || !self.dispatcher.await_room(&self.waker)
        } else {
            self.stop.is_some() || self.queues.are_ready()
        };
        busy.then_some(Duration::ZERO)
    }

    /// A share of each listener's queue.
    fn hand_out(&mut self) -> Progress {
        if self.paused_until_ms.is_some() {
            return Progress::Paused;
        }
        if let Some((connection, listener)) = self.held.take()
            && let Some(end) = self.give(connection, listener)
        {
            return end;
        }
        self.told_full = false;
        self.queues.begin_turn();
        while let Some(accepted) = self.queues.next(true) {
            match accepted {
                Accepted::Connection(connection, listener) => {
                    if let Some(end) = self.give(connection, listener) {
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

    /// Hands a connection out, or keeps it until there is room; what that means if it is no success.
    fn give(&mut self, connection: OwnedFd, listener: ListenerId) -> Option<Progress> {
        match self.dispatcher.dispatch(connection, listener) {
            Ok(()) => None,
            Err(Refused::Full(_)) if self.stop == Some(StopKind::AtOnce) => None,
            Err(Refused::Full(connection)) => {
                self.held = Some((connection, listener));
                let told = std::mem::replace(&mut self.told_full, true);
                Some(if told { Progress::Paused } else { Progress::Full })
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
