//! Types of the contract: [`Driver`], its events and its tokens. The crate's documentation has the rules.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use crate::limits::RECV_BUFFER_BYTES;
use crate::listeners::Listener;
use crate::output::Output;
use crate::secure::{Counters, Failure, SessionFacts};

/// Names a connection from [`Event::Accepted`] until [`Event::Closed`] (clause K1).
///
/// A single word: two halves would be written by two stores and read by one load, which defeats store
/// forwarding.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Token(u64);

impl Token {
    /// Returns a token of `slot` in its `generation`. For drivers only.
    #[must_use]
    pub const fn new(slot: u32, generation: u32) -> Self {
        Self((generation as u64) << u32::BITS | slot as u64)
    }

    /// Returns the dense index that workers use for their own arrays.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.0 as u32 as usize
    }

    /// Returns the generation of the slot.
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

/// Number of a listener, given by who made it.
pub type ListenerId = u16;

/// An event of a driver (see the clauses in the crate's documentation).
#[derive(Debug)]
pub enum Event {
    /// A new connection (A1).
    Accepted {
        /// The new connection.
        token: Token,
        /// The listener that it came through.
        listener: ListenerId,
    },
    /// Accepting was paused because descriptors or memory ran out (A2).
    AcceptFailed {
        /// The exhausted resource.
        error: AcceptError,
    },
    /// A listener accepts no more connections, for example after a shutdown from outside (A6).
    ListenerFailed {
        /// The listener.
        listener: ListenerId,
        /// The `errno` of accepting.
        errno: i32,
    },
    /// A listener was removed: its queue is empty and its socket closed (A8).
    ListenerRemoved {
        /// The listener.
        listener: ListenerId,
    },
    /// The listeners are closed (A4).
    AcceptStopped,
    /// Bytes have arrived: [`Driver::lent`] (R2).
    Received {
        /// The connection.
        token: Token,
    },
    /// The peer has ended its side while receiving is paused: earlier bytes may still have to be received
    /// (R6).
    FinReceived {
        /// The connection.
        token: Token,
    },
    /// The handshake of a secured connection has ended (X1).
    Secured {
        /// The connection.
        token: Token,
        /// `Ok` if content may be received and sent.
        result: Result<(), Failure>,
    },
    /// A part of a record has arrived: its content follows with the rest (X5).
    Receiving {
        /// The connection.
        token: Token,
    },
    /// Nothing more will arrive (R4).
    ReadClosed {
        /// The connection.
        token: Token,
        /// State of its receiving side.
        end: ReadEnd,
    },
    /// A send that [`Driver::send_at_once`] had reported as done isn't: it is in flight from now on (S7).
    Unsent {
        /// The connection.
        token: Token,
    },
    /// A send has ended and returns its output (S1).
    Sent {
        /// The connection.
        token: Token,
        /// The output, contents untouched.
        output: Output,
        /// `Ok` if the kernel has accepted all of it.
        result: Result<(), SendError>,
    },
    /// The end of [`Driver::detach`] (C5).
    Detached {
        /// The connection.
        token: Token,
        /// The connection's descriptor and input, or why it could not be detached.
        result: io::Result<Detached>,
    },
    /// The connection is gone and its slot free (C2).
    Closed {
        /// The closed connection.
        token: Token,
    },
    /// A [`Waker`] was used (W1).
    Woken,
}

/// The end of a connection's receiving side.
#[derive(Debug)]
pub enum ReadEnd {
    /// FIN: the peer sends nothing more.
    Eof,
    /// The connection is broken; sending fails too.
    Broken(io::Error),
}

/// A connection detached by [`Driver::detach`].
#[derive(Debug)]
pub struct Detached {
    /// The connection.
    pub descriptor: OwnedFd,
    /// Bytes received and not yet delivered: they precede what the descriptor returns.
    pub unread: Vec<u8>,
}

/// The resource that ran out in accepting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptError {
    /// `EMFILE`: the process has no descriptor left (`RLIMIT_NOFILE`), or the driver no slot.
    ProcessDescriptors,
    /// `ENFILE`: the system's file table is full.
    SystemFiles,
    /// `ENOBUFS` or `ENOMEM`.
    Memory,
    /// Any other error; no kernel is known to return one.
    Other {
        /// The `errno`.
        errno: i32,
    },
}

/// Errors of a send.
#[derive(Debug)]
pub enum SendError {
    /// The connection is broken.
    Broken(io::Error),
    /// A file had fewer bytes than its slice promised (S5).
    FileShort,
    /// A file is no longer in the promised version (S10).
    FileChanged,
    /// The file could not be read.
    FileUnreadable(io::Error),
    /// The connection was closed while the send was in flight (C2).
    Cancelled,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(error) => write!(f, "the connection is broken: {error}"),
            Self::FileShort => f.write_str("it has become shorter"),
            Self::FileChanged => f.write_str("it was changed in place"),
            Self::FileUnreadable(error) => error.fmt(f),
            Self::Cancelled => f.write_str("the connection was closed"),
        }
    }
}

/// Ways to close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseKind {
    /// The kernel sends what it holds, then FIN (or RST if input is unread).
    Normal,
    /// Discard and reset.
    Reset,
}

pub(crate) mod sealed {
    /// A supertrait that only this crate can name.
    pub trait Sealed {}
}

/// One worker's view of the kernel. The crate's documentation has the numbered rules.
///
/// Only this crate implements it: a driver takes connections out of an [`Inbox`](crate::Inbox) and bytes out of
/// an [`Output`] by functions that aren't public.
pub trait Driver: sealed::Sealed {
    /// True if connections can be secured (X1). Otherwise a worker's code for that compiles away.
    const SECURES: bool = false;

    /// Returns the driver's name: `"epoll"`, `"kqueue"`, `"uring"`, `"sim"`.
    fn name(&self) -> &'static str;

    /// Returns milliseconds of a monotonic clock, as of the last `wait` (T3).
    fn now_ms(&self) -> u64;

    /// Returns seconds since 1970, as of the last `wait` (T3).
    fn unix_seconds(&self) -> u64;

    /// Returns microseconds of the clock of [`Driver::now_ms`], by a fresh reading (T3).
    fn read_clock_us(&self) -> u64;

    /// Blocks until there is something to do (T1). `None` waits without limit.
    ///
    /// # Errors
    /// Fails only if the driver itself is broken: the worker can't continue.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// Returns the descriptor that another event loop watches instead of a blocking [`Driver::wait`] (T6). It stays the
    /// driver's, and is valid as long as that.
    ///
    /// # Errors
    /// Fails with `Unsupported` on a simulated driver, otherwise if the kernel refuses a descriptor.
    fn descriptor(&mut self) -> io::Result<RawFd>;

    /// Prepares for a wait elsewhere of at most `timeout`, at the end of a turn (T6). Returns the time after which `wait`
    /// is to be called even if the descriptor isn't readable; `None` if it will be.
    ///
    /// # Errors
    /// Fails as [`Driver::wait`] does.
    fn arm(&mut self, timeout: Option<Duration>) -> io::Result<Option<Duration>>;

    /// Returns a time of [`Driver::now_ms`] by which everything that had arrived was fetched (T4). If it is
    /// in the past, the call makes the driver catch up.
    fn caught_up_ms(&mut self) -> u64;

    /// Frees memory of a busier moment, and returns whether it did; not while there is work left (T5).
    fn rest(&mut self) -> bool {
        true
    }

    /// Returns the turn's next event (T2).
    fn next(&mut self) -> Option<Event>;

    /// Returns the bytes of the `Received` that `next` returned last (R2).
    fn lent(&self) -> &[u8];

    /// Returns the same bytes for changes in place: a decorator opens records in them (R2).
    fn lent_mut(&mut self) -> &mut [u8];

    /// Pauses accepting (A3).
    fn accept_pause(&mut self);

    /// Resumes accepting (A3).
    fn accept_resume(&mut self);

    /// Empties the accept queue and closes the listeners (A4).
    fn accept_stop(&mut self);

    /// Accepts from one more listener, which is non-blocking and whose number no other has (A7).
    fn listener_add(&mut self, listener: Listener);

    /// Empties the queue of a listener and closes it (A8). Returns false without a listener of this number.
    fn listener_remove(&mut self, listener: ListenerId) -> bool;

    /// Starts the server's side of TLS on a connection of this listener (X1). `unread` are the bytes that the worker
    /// has received of it and not used.
    fn secure(&mut self, token: Token, listener: ListenerId, unread: &[u8]) {
        let _ = (listener, unread);
        debug_assert!(false, "secure of {token:?} on a driver without TLS");
    }

    /// Returns the result of a successful handshake; `None` for a plain connection (X1).
    fn session(&self, token: Token) -> Option<&Arc<SessionFacts>> {
        let _ = token;
        None
    }

    /// Returns whether [`Driver::serves_host`] may return false in this turn.
    fn checks_hosts(&self) -> bool {
        false
    }

    /// Returns false for a host whose policy on client certificates isn't the one of the connection's session, which
    /// must not request it (RFC 9110, section 7.4). Always true for a plain connection.
    fn serves_host(&self, token: Token, host: &str) -> bool {
        let _ = (token, host);
        true
    }

    /// Returns false if the peer ended its side without a close_notify, so that content may be missing (X6).
    /// Always true for a plain connection.
    fn was_clean(&self, token: Token) -> bool {
        let _ = token;
        true
    }

    /// Returns the bytes of a secured connection that its peer's system has acknowledged, records included (X4);
    /// `None` for a plain connection, or if this system doesn't report it. It may be a system call.
    fn delivered(&self, token: Token) -> Option<u64> {
        let _ = token;
        None
    }

    /// Returns the bytes received on a secured connection, records included (X4); `None` for a plain connection.
    fn received_on_wire(&self, token: Token) -> Option<u64> {
        let _ = token;
        None
    }

    /// Returns those of them that are held unopened, nearly always as a part of an incomplete record.
    fn unopened(&self, token: Token) -> u64 {
        let _ = token;
        0
    }

    /// Returns counts of handshakes and what they hold; `None` from a driver that secures none.
    fn secure_counters(&self) -> Option<&Counters> {
        None
    }

    /// Pauses receiving (R3).
    fn recv_pause(&mut self, token: Token);

    /// Resumes receiving (R3).
    fn recv_resume(&mut self, token: Token);

    /// Returns whether input may be pending because a bound kept this turn from reading it (R7).
    fn reads_later(&self, token: Token) -> bool;

    /// Sends (S1..S5, S10).
    fn send(&mut self, token: Token, output: Output);

    /// Sends, and returns whether that is done for the caller (S7): then the output stays with it, or an empty
    /// one replaces it. Otherwise it is moved out as by [`Driver::send`]. If `is_awaited` returns true, the
    /// result is certain; a driver to which that makes no difference doesn't call it.
    fn send_at_once(&mut self, token: Token, output: &mut Output, is_awaited: impl FnOnce() -> bool) -> bool {
        let _ = is_awaited;
        self.send(token, std::mem::take(output));
        false
    }

    /// Returns whether a send that counted as done may still come back (S7). If so, the next `wait` doesn't block.
    fn settles_later(&mut self) -> bool {
        false
    }

    /// Returns the connection of this turn's next [`Event::Unsent`], which takes the event's place (S7).
    fn next_unsent(&mut self) -> Option<Token> {
        None
    }

    /// Returns the bytes of the send in flight that the kernel has accepted; 0 without one. After a `Sent` with an
    /// error, those of that send (S6).
    fn send_progress(&self, token: Token) -> u64;

    /// Returns the bytes that the kernel has accepted on all connections since the start (S11).
    fn bytes_taken(&self) -> u64;

    /// Returns the bytes that the peer's system hasn't acknowledged; `None` if this system doesn't report it
    /// (S8).
    fn unacknowledged(&self, token: Token) -> Option<u64>;

    /// Returns whether the send in flight waits for a disk instead of the peer (S9).
    fn waits_for_disk(&self, token: Token) -> bool;

    /// Shuts down the sending side (C1).
    fn shutdown_write(&mut self, token: Token);

    /// Closes the connection (C2, C3).
    fn close(&mut self, token: Token, kind: CloseKind);

    /// Detaches the connection: [`Event::Detached`] returns it. Its token stays valid until it is closed (C5).
    fn detach(&mut self, token: Token);

    /// Takes over one end of a connected, non-blocking stream socket, as a connection without an `Accepted` (A9).
    ///
    /// # Errors
    /// Fails if the driver has no slot left, or the kernel can't watch the socket.
    fn adopt(&mut self, socket: OwnedFd) -> io::Result<Token>;

    /// Returns the peer's address.
    ///
    /// # Errors
    /// Fails if the peer is gone, with `Unsupported` if its address isn't one of TCP, or for an idle connection without a descriptor (see
    /// [`UringOptions::descriptors_max`]) if the process has none left.
    fn peer(&self, token: Token) -> io::Result<SocketAddr>;

    /// Returns a handle that wakes this driver from any thread (W1).
    fn waker(&self) -> Waker;

    /// Returns the number of connections that are not yet `Closed`.
    fn connections(&self) -> usize;
}

/// Wakes a driver from any thread (W1). Cloning is cheap.
#[derive(Clone)]
pub struct Waker(Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// Returns a waker that calls `wake`. For drivers only.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(wake))
    }

    /// Returns a waker of the poll that `registry` belongs to, whose events have this token.
    pub(crate) fn of_poll(registry: &mio::Registry, token: mio::Token) -> io::Result<Self> {
        let waker = mio::Waker::new(registry, token)?;
        // Never fails: it writes to a descriptor that it owns, and a full one wakes as well.
        Ok(Self::new(move || drop(waker.wake())))
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

/// Options of a completion driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringOptions {
    /// Maximum number of connections, including those closed but not yet reported. Accepting pauses at this
    /// number.
    pub connections_max: usize,
    /// Descriptors for connections. If there are more connections and the kernel can store files (see
    /// [`uring::Report`](crate::uring::Report)), idle ones have none; otherwise it has no effect. The driver
    /// needs some 70 more for a million connections. A bound below
    /// [`limits::DESCRIPTORS_MIN`](crate::limits::DESCRIPTORS_MIN) holds between turns.
    pub descriptors_max: usize,
    /// Maximum bytes that one `Received` lends; the driver may choose less.
    pub recv_buffer_bytes: usize,
    /// Makes receives multishot if the kernel can bound them, as the probe reports. Otherwise each
    /// receive is an entry.
    pub multishot: bool,
}

impl Default for UringOptions {
    fn default() -> Self {
        Self {
            connections_max: 1 << 20,
            descriptors_max: usize::MAX,
            recv_buffer_bytes: RECV_BUFFER_BYTES,
            multishot: true,
        }
    }
}
