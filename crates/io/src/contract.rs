//! The types of the contract: [`Driver`], its events and its tokens. The rules are at the top of the crate.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::Output;

/// Names a connection from [`Event::Accepted`] until [`Event::Closed`] (clause K1).
///
/// One word: as two halves it would be written in two pieces and read in one, which no processor forwards.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(u64);

impl Token {
    /// A token of `slot` in its `generation`. Only drivers make them.
    #[must_use]
    pub const fn new(slot: u32, generation: u32) -> Self {
        Self((generation as u64) << u32::BITS | slot as u64)
    }

    /// The dense index that workers use for their own arrays.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.0 as u32 as usize
    }

    /// Which use of the slot this is.
    #[must_use]
    pub const fn generation(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}.{}", self.slot(), self.generation())
    }
}

/// Which of the driver's listeners accepted: an index in the order in which they were given.
pub type ListenerId = u16;

/// What happened (see the clauses at the top of the crate).
#[derive(Debug)]
pub enum Event {
    /// A new connection (A1).
    Accepted {
        /// The new connection.
        token: Token,
        /// The listener that it came through.
        listener: ListenerId,
    },
    /// Accepting was paused for want of descriptors or memory (A2).
    AcceptFailed {
        /// Why.
        error: AcceptError,
    },
    /// A listener accepts no more connections, because somebody has shut it down for example (A6).
    ListenerFailed {
        /// The listener.
        listener: ListenerId,
        /// The system's number for what accepting says.
        errno: i32,
    },
    /// The listeners are closed (A4).
    AcceptStopped,
    /// Bytes have arrived: [`Driver::lent`] (R2).
    Received {
        /// The connection.
        token: Token,
    },
    /// The peer has ended its side while receiving is paused: what it sent before may still have to be received (R6).
    FinReceived {
        /// The connection.
        token: Token,
    },
    /// Nothing more will arrive (R4).
    ReadClosed {
        /// The connection.
        token: Token,
        /// How its receiving side ended.
        end: ReadEnd,
    },
    /// A send has ended; its output comes back (S1).
    Sent {
        /// The connection.
        token: Token,
        /// What was sent, contents untouched.
        output: Output,
        /// Whether the kernel has taken all of it.
        result: Result<(), SendError>,
    },
    /// The connection is gone and its slot free (C2).
    Closed {
        /// The connection that was.
        token: Token,
    },
    /// A [`Waker`] was used (W1).
    Woken,
}

/// How the receiving side of a connection ended.
#[derive(Debug)]
pub enum ReadEnd {
    /// FIN: the peer has sent all that it will.
    Eof,
    /// The connection is broken; sending won't work either.
    Broken(io::Error),
}

/// A connection that was handed out by [`Driver::detach`].
#[derive(Debug)]
pub struct Detached {
    /// The connection.
    pub descriptor: OwnedFd,
    /// Bytes that were received and not yet delivered: they come before what the descriptor still gives.
    pub unread: Vec<u8>,
}

/// Why accepting had to pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptError {
    /// `EMFILE`: the process has no descriptor left (`RLIMIT_NOFILE`), or the driver no slot.
    ProcessDescriptors,
    /// `ENFILE`: the system has no file left.
    SystemFiles,
    /// `ENOBUFS` or `ENOMEM`.
    Memory,
    /// Something that no kernel is known to say.
    Other {
        /// The system's number for it.
        errno: i32,
    },
}

/// Why a send did not end well.
#[derive(Debug)]
pub enum SendError {
    /// The connection is broken.
    Broken(io::Error),
    /// A file held fewer bytes than its slice promised (S5).
    FileShort,
    /// A file is no longer in the version that was promised (S10).
    FileChanged,
    /// The file could not be read.
    FileUnreadable(io::Error),
    /// The connection was closed first (C2).
    Cancelled,
}

/// How to close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseKind {
    /// The kernel sends what it holds, then FIN (or RST where input is left unread).
    Normal,
    /// Discard and reset.
    Reset,
}

/// One worker's view of the kernel. The rules are numbered at the top of the crate.
pub trait Driver {
    /// What drives: `"epoll"`, `"kqueue"`, `"uring"`, `"sim"`.
    fn name(&self) -> &'static str;

    /// Milliseconds of a clock that never goes back, as of the last `wait` (T3).
    fn now_ms(&self) -> u64;

    /// Seconds since 1970, as of the last `wait` (T3).
    fn unix_seconds(&self) -> u64;

    /// Blocks until there is something to do (T1). `None` waits without limit.
    ///
    /// # Errors
    /// Only where the driver itself is broken: the worker can't go on.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// A time by the clock of [`Driver::now_ms`] by which everything that had arrived was fetched (T4). If it is in the past, the call makes the
    /// driver catch up.
    fn caught_up_ms(&mut self) -> u64;

    /// Gives back memory of a busier moment, and says whether it has; not while there is work left (T5).
    fn rest(&mut self) -> bool {
        true
    }

    /// The turn's next event (T2).
    fn next(&mut self) -> Option<Event>;

    /// The bytes of the `Received` that `next` gave last (R2).
    fn lent(&self) -> &[u8];

    /// Stops accepting for now (A3).
    fn accept_pause(&mut self);

    /// Accepts again (A3).
    fn accept_resume(&mut self);

    /// Empties the accept queue and closes the listeners (A4).
    fn accept_stop(&mut self);

    /// Stops receiving for now (R3).
    fn recv_pause(&mut self, token: Token);

    /// Receives again (R3).
    fn recv_resume(&mut self, token: Token);

    /// Returns true if input may be waiting because a bound kept this turn from reading it (R7).
    fn reads_later(&self, token: Token) -> bool;

    /// Sends (S1..S5, S10).
    fn send(&mut self, token: Token, output: Output);

    /// Sends, and says whether all of it is done at once (S7): then the output stays with the caller. Else it is moved in as by
    /// [`Driver::send`], and an empty one stays in its place. If the end `is_awaited`, [`Event::Sent`] tells it as soon as it has come; a
    /// driver to which that makes no difference doesn't ask.
    fn send_at_once(&mut self, token: Token, output: &mut Output, is_awaited: impl FnOnce() -> bool) -> bool {
        let _ = is_awaited;
        self.send(token, std::mem::take(output));
        false
    }

    /// Bytes of the send in flight that the kernel has taken; 0 where none is in flight (S6).
    fn send_progress(&self, token: Token) -> u64;

    /// Returns the bytes that the kernel has accepted on all connections since the start (S11).
    fn bytes_taken(&self) -> u64;

    /// Bytes taken by the kernel that the peer's system hasn't acknowledged; `None` where this system doesn't tell (S8).
    fn unacknowledged(&self, token: Token) -> Option<u64>;

    /// Whether the send in flight waits for a disk, not for the peer (S9).
    fn waits_for_disk(&self, token: Token) -> bool;

    /// Ends the sending side (C1).
    fn shutdown_write(&mut self, token: Token);

    /// Closes (C2, C3).
    fn close(&mut self, token: Token, kind: CloseKind);

    /// Hands the connection out; its token stays until it is closed (C5).
    ///
    /// # Errors
    /// Where the driver can't: the connection is then still the driver's.
    fn detach(&mut self, token: Token) -> io::Result<Detached>;

    /// The peer's address.
    ///
    /// # Errors
    /// Where the peer is already gone, or the address is none of TCP's.
    fn peer(&self, token: Token) -> io::Result<SocketAddr>;

    /// A handle that wakes this driver from any thread (W1).
    fn waker(&self) -> Waker;

    /// Connections that are not yet `Closed`.
    fn connections(&self) -> usize;
}

/// Wakes a driver from any thread (W1). Cloning is cheap.
#[derive(Clone)]
pub struct Waker(Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// A waker that calls `wake`. Only drivers make them.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(wake))
    }

    /// Makes the driver's current or next `wait` return.
    pub fn wake(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}
