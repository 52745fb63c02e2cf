//! The completion driver: io_uring on Linux.
//!
//! A ring per worker, entered once a turn. Listeners are polled, and connections accepted by hand. Receives
//! are multishot if the kernel can bound them; input comes in provided buffers, so that an idle connection
//! holds none. An output in memory is one entry that never waits; the rest for a full socket, and files, go
//! by hand as in the readiness driver. Beyond a number of descriptors, idle connections have none
//! (`descriptors.rs`).

mod alarm;
mod close;
mod descriptors;
mod enter;
mod entry;
mod memory;
mod probe;
mod recv;
mod ring;
mod send;
mod store;
mod turn;
mod wake;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::Fd;

use crate::clock::Clock;
use crate::connections::{Connections, Sending, Slot, SlotState};
use crate::listeners::accept::{Arrival, Listeners};
use crate::{
    CloseKind, Driver, Entrances, Event, Listener, ListenerId, Output, Token, Waker, limits, socket,
};
use alarm::Alarm;
use descriptors::Descriptors;
use entry::{Done, Name, Operation, Purpose, SLOTS_MAX};
use memory::Filled;
use ring::{COMPLETION_ENTRIES, Marker, Ring, SUBMIT_ENTRIES};
use store::Store;
use wake::WakeEvents;

pub use crate::driver::UringOptions;
pub use probe::{Report, Unavailable, probe, probe_for};

/// The name of this driver.
pub const NAME: &str = "uring";

// One armed receive may deliver as much as may follow a pause (R3).
const _: () =
    assert!(limits::RECV_BUFFER_BYTES_MAX * limits::RECVS_PER_TURN_MAX <= limits::RECV_AFTER_PAUSE_MAX);

/// The ring's state of a connection: two bytes, so that a slot has 16.
#[derive(Debug, Default)]
struct RingState {
    /// Low byte of the number of the turn of its last receive: after 256 idle turns a connection may wait for one
    /// more.
    turn: u8,
    /// Receives in `turn`, full receives since the last send, `IN_REARM` and `IS_STORED`.
    counts: u8,
}

/// Bits of `RingState::counts`.
impl RingState {
    /// The low bits: receives in `turn`.
    const RECVS: u8 = 0b111;
    /// Position and bits of the number of full receives.
    const FULL_SHIFT: u32 = 3;
    const FULL: u8 = 0b111 << Self::FULL_SHIFT;
    /// The connection is in `rearm` or `rearm_bulk`.
    const IN_REARM: u8 = 1 << 6;
    /// The store has the file of the connection: see [`Store`].
    const IS_STORED: u8 = 1 << 7;

    fn set_stored(&mut self, is_stored: bool) {
        self.counts = self.counts & !Self::IS_STORED | if is_stored { Self::IS_STORED } else { 0 };
    }

    /// Returns whether it was accepted, or something was received, in this turn or the one before.
    fn was_active(&self, turn: u8) -> bool {
        turn.wrapping_sub(self.turn) <= 1
    }
}

impl SlotState for RingState {
    fn is_stored(&self) -> bool {
        self.counts & Self::IS_STORED != 0
    }
}

const _: () = assert!(size_of::<Slot<RingState>>() <= 16, "docs/limits.md and ARCHITECTURE.md state it");

/// The completion driver of one worker. Bound to the thread that made it.
#[derive(Debug)]
pub struct Uring {
    ring: Ring,
    /// The lent buffer.
    lent: Option<Filled>,
    conns: Connections<RingState>,
    descriptors: Descriptors,
    listeners: Listeners,
    wakes: Arc<WakeEvents>,
    marker: Marker,
    alarm: Alarm,
    clock: Clock,
    /// Completions taken from the ring: at most [`COMPLETION_ENTRIES`] and those in `held`.
    completions: VecDeque<Done>,
    /// Number of them that belong to this turn.
    completions_left: usize,
    /// Completions of connections that have used up their share of the turn: the first of the next.
    held: VecDeque<Done>,
    /// Connections to arm for receiving again: at most one entry each.
    rearm: VecDeque<Token>,
    /// Those of them whose last receive was a bulk receive.
    rearm_bulk: VecDeque<Token>,
    /// Connections reported as writable; empty between turns.
    writable: VecDeque<Token>,
    /// Silent sends that have failed, for `next` to report: at most one per connection.
    unsent: VecDeque<(Token, Option<Sending>)>,
    /// Connections with a send behind an unsettled silent one: at most one entry each.
    behind: Vec<Token>,
    /// Connections that are detached when their receives have ended, with the bytes received until then.
    detaching: Vec<(Token, Vec<u8>)>,
    /// True if silent sends are to be settled soon: the next wait doesn't block.
    settles_soon: bool,
    /// True if sends may be silent.
    sends_silently: bool,
    /// True if receives are multishot, up to a credit of bytes.
    multishot: bool,
}

impl Uring {
    /// Creates a driver with these listeners or entrances, which accepts from the first `wait` on. For the
    /// calling thread only.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an empty receive buffer or more listeners than
    /// [`crate::ListenerId`] counts; [`io::ErrorKind::Unsupported`] with the message of [`Unavailable`] if
    /// [`probe`] fails; otherwise the kernel's error.
    pub fn new(entrances: impl Into<Entrances>, options: UringOptions) -> io::Result<Self> {
        if options.recv_buffer_bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the receive buffer has no size"));
        }
        let report = probe().map_err(|why| io::Error::new(io::ErrorKind::Unsupported, why.to_string()))?;
        let wakes = WakeEvents::new()?;
        let waker = wakes.waker();
        let listeners = Listeners::new(entrances.into(), options.connections_max.min(SLOTS_MAX))?;
        listeners.inbox.attach(&waker);
        let mut ring = Ring::new(SUBMIT_ENTRIES, COMPLETION_ENTRIES, report.no_array)?;
        let bytes = options.recv_buffer_bytes.min(limits::RECV_BUFFER_BYTES_MAX);
        ring.provide_buffers(limits::RECV_BUFFERS_MAX, bytes)?;
        wakes.await_wake(&mut ring);
        let UringOptions { connections_max, descriptors_max, .. } = options;
        let store = (report.stored_files && connections_max > descriptors_max).then(Store::new);
        let mut conns = Connections::new(waker);
        conns.slots.limit = listeners.limit.clone();
        Ok(Self {
            ring,
            lent: None,
            conns,
            descriptors: Descriptors::new(store, descriptors_max),
            listeners,
            wakes,
            marker: Marker::default(),
            alarm: Alarm::default(),
            clock: Clock::new(),
            completions: VecDeque::new(),
            completions_left: 0,
            held: VecDeque::new(),
            rearm: VecDeque::new(),
            rearm_bulk: VecDeque::new(),
            writable: VecDeque::new(),
            unsent: VecDeque::new(),
            behind: Vec::new(),
            detaching: Vec::new(),
            settles_soon: false,
            sends_silently: report.silent_sends,
            multishot: options.multishot && report.limited_multishot,
        })
    }
}

/// Starts a driver by [`Uring::new`].
///
/// # Errors
/// Those of [`Uring::new`].
pub fn start(entrances: Entrances, options: UringOptions) -> io::Result<impl Driver> {
    Uring::new(entrances, options)
}

impl crate::driver::sealed::Sealed for Uring {}

impl Driver for Uring {
    fn name(&self) -> &'static str {
        NAME
    }

    fn now_ms(&self) -> u64 {
        self.clock.now_ms
    }

    fn unix_seconds(&self) -> u64 {
        self.clock.unix_seconds
    }

    fn read_clock_us(&self) -> u64 {
        self.clock.read_us()
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.begin_turn(timeout)
    }

    fn descriptor(&mut self) -> io::Result<RawFd> {
        self.wakes.descriptor(&mut self.ring)
    }

    fn arm(&mut self, timeout: Option<Duration>) -> io::Result<Option<Duration>> {
        self.arm_event(timeout)
    }

    fn caught_up_ms(&mut self) -> u64 {
        let caught_up_ms = self.marker.caught_up_ms();
        if caught_up_ms < self.clock.now_ms {
            self.marker.send(&mut self.ring, self.clock.now_ms);
        }
        caught_up_ms
    }

    fn rest(&mut self) -> bool {
        self.trim()
    }

    fn next(&mut self) -> Option<Event> {
        self.next_event()
    }

    fn lent(&self) -> &[u8] {
        self.lent.as_ref().map_or(&[], |buffer| self.ring.buffers().get(buffer))
    }

    fn lent_mut(&mut self) -> &mut [u8] {
        let Some(buffer) = &mut self.lent else { return &mut [] };
        self.ring.buffers_mut().get_mut(buffer)
    }

    fn accept_pause(&mut self) {
        self.listeners.pause();
    }

    fn accept_resume(&mut self) {
        self.listeners.resume(self.conns.slots.counted());
    }

    fn accept_stop(&mut self) {
        self.stop_accept();
    }

    fn listener_add(&mut self, listener: Listener) {
        // The next turn watches it. After a stop it is dropped.
        drop(self.listeners.add(listener));
    }

    fn listener_remove(&mut self, listener: ListenerId) -> bool {
        self.listeners.remove(listener, self.clock.now_ms)
    }

    fn recv_pause(&mut self, token: Token) {
        // An armed receive stays armed until something arrives: most pauses end before that.
        self.conns.set_paused(token, true);
    }

    fn recv_resume(&mut self, token: Token) {
        self.resume_recv(token);
    }

    fn reads_later(&self, token: Token) -> bool {
        self.waits_to_be_read(token)
    }

    fn send(&mut self, token: Token, output: Output) {
        self.start_send(token, output);
    }

    fn send_at_once(&mut self, token: Token, output: &mut Output, is_awaited: impl FnOnce() -> bool) -> bool {
        if self.can_be_silent(output) && !is_awaited() {
            return self.send_silently(token, output);
        }
        self.start_send(token, std::mem::take(output));
        false
    }

    fn settles_later(&mut self) -> bool {
        let is_open = self.ring.has_silent() || !self.unsent.is_empty();
        self.settles_soon |= is_open;
        is_open
    }

    fn next_unsent(&mut self) -> Option<Token> {
        self.take_unsent()
    }

    fn send_progress(&self, token: Token) -> u64 {
        self.conns.progress(token)
    }

    fn bytes_taken(&self) -> u64 {
        self.conns.bytes_taken()
    }

    fn unacknowledged(&self, token: Token) -> Option<u64> {
        self.with_descriptor(token, |fd| socket::unacknowledged(fd)).flatten()
    }

    fn waits_for_disk(&self, token: Token) -> bool {
        self.conns.waits_for_disk(token)
    }

    fn shutdown_write(&mut self, token: Token) {
        self.end_writing(token);
    }

    fn close(&mut self, token: Token, kind: CloseKind) {
        self.end_connection(token, kind);
    }

    fn detach(&mut self, token: Token) {
        self.detach_connection(token);
    }

    fn adopt(&mut self, socket: OwnedFd) -> io::Result<Token> {
        if self.conns.slots.next_token().slot() >= SLOTS_MAX {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let token = self.conns.slots.insert_adopted(socket);
        self.begin_connection(token);
        Ok(token)
    }

    fn peer(&self, token: Token) -> io::Result<SocketAddr> {
        self.with_descriptor(token, |fd| socket::peer(fd)).ok_or(io::ErrorKind::NotConnected)?
    }

    fn waker(&self) -> Waker {
        self.wakes.waker()
    }

    fn connections(&self) -> usize {
        self.conns.slots.used()
    }
}

fn name(index: ListenerId) -> Name {
    Name::new(Purpose::Listener, Token::new(u32::from(index), 0))
}

impl Uring {
    /// Watches the listeners without reported connections, and accepts by hand. A multishot accept would have no bound,
    /// and returns a poll mask instead of a descriptor on some kernels (6.6 and 6.7).
    pub(super) fn watch_listeners(&mut self) {
        while let Some((index, fd)) = self.listeners.next_to_watch() {
            self.ring.push(Operation::poll(Fd(fd), libc::POLLIN), name(index));
        }
    }

    /// Ends accepting. Also cancels the watching entries, which keep the kernel listening.
    pub(super) fn stop_accept(&mut self) {
        if self.listeners.stop(self.conns.slots.counted()) {
            self.listeners.watched().for_each(|index| self.ring.cancel(name(index)));
        }
    }

    /// Cancels the watching entries of listeners that are about to be closed.
    pub(super) fn unwatch_removed(&mut self) {
        self.listeners.watched_in_vain().for_each(|index| self.ring.cancel(name(index)));
    }

    /// Counts the descriptor of a new connection, and arms it.
    fn begin_connection(&mut self, token: Token) {
        self.descriptors.note_opened();
        self.note_active(token);
        self.arm_recv(token);
    }

    /// Returns the next new connection, or event of accepting.
    pub(super) fn next_accept(&mut self) -> Option<Event> {
        let has_room = self.descriptors.have_room() || !self.listeners.are_due() || self.store_some();
        let used = if has_room { self.conns.slots.counted() } else { usize::MAX };
        loop {
            return match self.listeners.next(used)? {
                Arrival::Connection(fd, listener) => {
                    let token = self.conns.slots.insert(fd);
                    self.begin_connection(token);
                    Some(Event::Accepted { token, listener })
                }
                Arrival::Event(event) => Some(event),
                Arrival::Removed(listener) => Some(Event::ListenerRemoved { listener: listener.id() }),
                // The entry that watched it has ended.
                Arrival::Closed(_) => continue,
            };
        }
    }
}
