//! The readiness driver: epoll on Linux, kqueue on macOS and the BSDs, both by way of mio.
//!
//! A connection is registered once, for reading and writing, edge-triggered, and never again: a request costs a
//! share of the turn's `epoll_wait`, one `recv` and one send. What the kernel has announced and the driver has not yet
//! used up is kept as flags of the slot; connections with such flags stand in one queue, which is a turn's work.

mod accept;
mod close;
mod recv;
mod send;
mod sends;
mod slots;
mod socket;
mod turn;
mod wake;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use crate::{CloseKind, Detached, Driver, Event, Output, Token, Waker, limits};
use accept::Listeners;
use sends::Sends;
use slots::Slots;
use turn::{Clock, Queue};

pub use socket::NAME;

/// Bounds of one [`Poll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollOptions {
    /// Connections held at once, those closed but not yet reported included. When it is reached accepting pauses
    /// itself, before another connection is taken from the kernel.
    pub connections_max: usize,
    /// Size of the one receive buffer: the most that one `Received` lends.
    pub recv_buffer_bytes: usize,
}

impl Default for PollOptions {
    fn default() -> Self {
        Self { connections_max: 1 << 20, recv_buffer_bytes: limits::RECV_BUFFER_BYTES }
    }
}

/// The readiness driver of one worker.
#[derive(Debug)]
pub struct Poll {
    poll: mio::Poll,
    events: mio::Events,
    waker: Waker,
    listeners: Listeners,
    slots: Slots,
    sends: Sends,
    queue: Queue,
    clock: Clock,
    buffer: Box<[u8]>,
    /// How much of `buffer` is lent.
    lent: usize,
    /// For files that the kernel won't send itself; empty until the first.
    copy_buffer: Vec<u8>,
}

impl Poll {
    /// A driver with these listeners (set non-blocking here), accepting from the first `wait` on.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a receive buffer of no size or more listeners than [`crate::ListenerId`]
    /// counts; else what the kernel says, which is out of descriptors or memory.
    pub fn new(listeners: Vec<TcpListener>, options: PollOptions) -> io::Result<Self> {
        if options.recv_buffer_bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the receive buffer has no size"));
        }
        let poll = mio::Poll::new()?;
        let waker = wake::waker(poll.registry())?;
        let connections_max = options.connections_max.min(wake::SLOTS_MAX);
        let listeners = Listeners::new(poll.registry(), listeners, connections_max)?;
        Ok(Self {
            poll,
            events: mio::Events::with_capacity(limits::EVENTS_PER_WAIT_MAX),
            waker,
            listeners,
            slots: Slots::new(),
            sends: Sends::default(),
            queue: Queue::default(),
            clock: Clock::new(),
            buffer: vec![0; options.recv_buffer_bytes].into_boxed_slice(),
            lent: 0,
            copy_buffer: Vec::new(),
        })
    }
}

impl Driver for Poll {
    fn name(&self) -> &'static str {
        socket::NAME
    }

    fn now_ms(&self) -> u64 {
        self.clock.now_ms
    }

    fn unix_seconds(&self) -> u64 {
        self.clock.unix_seconds
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.begin_turn(timeout)
    }

    fn has_more(&self) -> bool {
        self.queue.has_more
    }

    fn next(&mut self) -> Option<Event> {
        self.next_event()
    }

    fn lent(&self) -> &[u8] {
        &self.buffer[..self.lent]
    }

    fn accept_pause(&mut self) {
        self.listeners.pause();
    }

    fn accept_resume(&mut self) {
        self.listeners.resume();
    }

    fn accept_stop(&mut self) {
        self.listeners.stop();
    }

    fn recv_pause(&mut self, token: Token) {
        self.pause_recv(token);
    }

    fn recv_resume(&mut self, token: Token) {
        self.resume_recv(token);
    }

    fn send(&mut self, token: Token, output: Output) {
        self.start_send(token, output);
    }

    fn send_progress(&self, token: Token) -> u64 {
        self.progress(token)
    }

    fn shutdown_write(&mut self, token: Token) {
        self.end_writing(token);
    }

    fn close(&mut self, token: Token, kind: CloseKind) {
        self.end_connection(token, kind);
    }

    fn detach(&mut self, token: Token) -> io::Result<Detached> {
        // What was received was delivered: the rest is still the kernel's.
        Ok(Detached { descriptor: self.give_up(token)?, unread: Vec::new() })
    }

    fn peer(&self, token: Token) -> io::Result<SocketAddr> {
        self.peer_address(token)
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn connections(&self) -> usize {
        self.slots.used()
    }
}
