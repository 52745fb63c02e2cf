//! TLS below the contract: a driver that opens and seals records over another driver.
//!
//! It knows records, buffers and budgets; the cryptography is a [`Provider`]'s. A connection is plain until the worker
//! secures it, and costs one look at its slot per event and verb then.
//!
//! **Receiving.** Records are opened in the receive buffer of the driver below, or, if a part of the first one came
//! earlier, in a buffer of the worker. A connection holds only bytes of incomplete records (`receive.rs`).
//!
//! **Sending.** A short output is sealed at once into a buffer from a pool, and sent by the verb that the worker used.
//! A longer one, or one with files, is sealed in rounds as the socket takes them (`send.rs`).

mod connection;
mod copy_buffer;
mod counters;
mod files;
mod holders;
mod receive;
mod send;
mod session;
mod turn;

pub use counters::Counters;
pub use session::{
    Failure, Opened, Provider, RECORD_BYTES_MAX, RECORD_WIRE_BYTES_MAX, Session, SessionFacts, Step, Version,
};

use std::collections::VecDeque;
use std::fs::File;
use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io, mem};

#[cfg(not(target_os = "linux"))]
use crate::not_linux::watches::Watches;
use crate::read_ahead::ReadAhead;
#[cfg(target_os = "linux")]
use crate::watches::Watches;
use crate::{CloseKind, Driver, Event, Listener, ListenerId, Output, SlotArray, Token, Waker, page_cache};
use connection::{Connection, Phase};
use copy_buffer::CopyBuffer;
use holders::Holders;
use receive::Lent;
use send::{Silent, Spare};
use turn::Budget;

/// A driver that can secure connections of another driver `D`, by sessions of `P`. See the [module](self).
pub struct Secure<D, P: Provider> {
    inner: D,
    provider: P,
    /// Secured connections by slot; `None` for plain ones.
    conns: SlotArray<Option<Box<Connection<P::Session>>>>,
    counters: Counters,
    /// The driver's own events: the first ones of `next`.
    events: VecDeque<Event>,
    /// Events that wait for the next turn.
    later: Vec<Event>,
    /// The bytes of the last `Received`, and those of the one in `events`.
    lent: Lent,
    delivery: Lent,
    /// Bytes of several receives, in which records are opened.
    scratch: Vec<u8>,
    /// Number of the turn, from 1.
    turn: u32,
    budget: Budget,
    /// Connections with more records than a turn opens: at most one entry each.
    ready: VecDeque<Token>,
    /// Connections whose next step is costly, in order. Those that have closed count in `costly_dead`.
    costly: VecDeque<Token>,
    costly_dead: usize,
    /// Connections with a reply that precedes the worker's next send of this turn.
    replying: Vec<Token>,
    /// Connections whose output is sealed in rounds: at most one entry each.
    sends: VecDeque<Token>,
    /// Connections with files, some of which were sent in this turn.
    unguarded: Vec<Token>,
    /// Outputs of sends that count as done and may still come back.
    silent: Silent,
    spare: Spare,
    /// The last send that failed, and its content that was sent (S6).
    failed: Option<(Token, u64)>,
    ahead: ReadAhead,
    /// Reads what is in the page cache.
    read_cached: fn(&File, &mut [IoSliceMut<'_>], u64) -> io::Result<usize>,
    watches: Watches,
    /// Bytes of outputs with files.
    copy_buffer: CopyBuffer,
    holders: Holders,
}

impl<D, P: Provider> fmt::Debug for Secure<D, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secure").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl<D: Driver, P: Provider> Secure<D, P> {
    /// Creates a driver over `inner`, which has not waited yet.
    pub fn new(inner: D, provider: P) -> Self {
        let ahead = ReadAhead::new(inner.waker());
        Self {
            inner,
            provider,
            conns: SlotArray::new(),
            counters: Counters::default(),
            events: VecDeque::new(),
            later: Vec::new(),
            lent: Lent::default(),
            delivery: Lent::default(),
            scratch: Vec::new(),
            turn: 1,
            budget: Budget::default(),
            ready: VecDeque::new(),
            costly: VecDeque::new(),
            costly_dead: 0,
            replying: Vec::new(),
            sends: VecDeque::new(),
            unguarded: Vec::new(),
            silent: Silent::default(),
            spare: Spare::default(),
            failed: None,
            ahead,
            read_cached: page_cache::read_cached,
            watches: Watches::default(),
            copy_buffer: CopyBuffer::default(),
            holders: Holders::default(),
        }
    }

    /// Returns the driver below.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// Returns what makes the sessions.
    pub fn provider_mut(&mut self) -> &mut P {
        &mut self.provider
    }

    /// Returns a connection's state; `None` for a plain one.
    fn find(&self, token: Token) -> Option<&Connection<P::Session>> {
        let conn = self.conns.get(token.slot())?.as_deref()?;
        (conn.token == token && conn.phase != Phase::Plain).then_some(conn)
    }

    /// Takes a connection's state out of the table, to be put back by [`Secure::put`]; `None` for a plain one.
    fn take(&mut self, token: Token) -> Option<Box<Connection<P::Session>>> {
        let slot = self.conns.get_mut(token.slot())?;
        let is_secured =
            |conn: &mut Box<Connection<P::Session>>| conn.token == token && conn.phase != Phase::Plain;
        slot.take_if(is_secured)
    }

    fn put(&mut self, conn: Box<Connection<P::Session>>) {
        let slot = conn.token.slot();
        self.conns[slot] = Some(conn);
    }
}

impl<D: Driver, P: Provider> crate::driver::sealed::Sealed for Secure<D, P> {}

impl<D: Driver, P: Provider> Driver for Secure<D, P> {
    const SECURES: bool = true;

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn now_ms(&self) -> u64 {
        self.inner.now_ms()
    }

    fn unix_seconds(&self) -> u64 {
        self.inner.unix_seconds()
    }

    fn read_clock_us(&self) -> u64 {
        self.inner.read_clock_us()
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.begin_turn(timeout)
    }

    fn descriptor(&mut self) -> io::Result<RawFd> {
        self.inner.descriptor()
    }

    fn arm(&mut self, timeout: Option<Duration>) -> io::Result<Option<Duration>> {
        self.arm_inner(timeout)
    }

    fn caught_up_ms(&mut self) -> u64 {
        self.inner.caught_up_ms()
    }

    fn rest(&mut self) -> bool {
        !self.has_work() && self.trim() && self.inner.rest()
    }

    fn next(&mut self) -> Option<Event> {
        self.next_event()
    }

    fn lent(&self) -> &[u8] {
        match self.lent {
            Lent::Below => self.inner.lent(),
            Lent::Start(len) => &self.inner.lent()[..len],
            Lent::Scratch(len) => &self.scratch[..len],
        }
    }

    fn lent_mut(&mut self) -> &mut [u8] {
        match self.lent {
            Lent::Below => self.inner.lent_mut(),
            Lent::Start(len) => &mut self.inner.lent_mut()[..len],
            Lent::Scratch(len) => &mut self.scratch[..len],
        }
    }

    fn secure(&mut self, token: Token, listener: ListenerId, unread: &[u8]) {
        self.begin_session(token, listener, unread);
    }

    fn session(&self, token: Token) -> Option<&Arc<SessionFacts>> {
        self.find(token)?.session.facts()
    }

    fn checks_hosts(&self) -> bool {
        self.provider.has_client_policies()
    }

    fn serves_host(&self, token: Token, host: &str) -> bool {
        let session = self.session(token);
        session.is_none_or(|session| session.client_policy == self.provider.client_policy(host))
    }

    fn was_clean(&self, token: Token) -> bool {
        self.find(token).is_none_or(|conn| conn.was_clean)
    }

    fn delivered(&self, token: Token) -> Option<u64> {
        let conn = self.find(token)?;
        let in_flight = if conn.flight.is_some() { self.inner.send_progress(token) } else { 0 };
        let delivered = (conn.wire_taken + in_flight).saturating_sub(self.inner.unacknowledged(token)?);
        conn.delivered.set(delivered.max(conn.delivered.get()));
        Some(conn.delivered.get())
    }

    fn received_on_wire(&self, token: Token) -> Option<u64> {
        Some(self.find(token)?.wire_received)
    }

    fn unopened(&self, token: Token) -> u64 {
        self.find(token).map_or(0, |conn| conn.partial.len() as u64)
    }

    fn secure_counters(&self) -> Option<&Counters> {
        Some(&self.counters)
    }

    fn accept_pause(&mut self) {
        self.inner.accept_pause();
    }

    fn accept_resume(&mut self) {
        self.inner.accept_resume();
    }

    fn accept_stop(&mut self) {
        self.inner.accept_stop();
    }

    fn listener_add(&mut self, listener: Listener) {
        self.inner.listener_add(listener);
    }

    fn listener_remove(&mut self, listener: ListenerId) -> bool {
        self.inner.listener_remove(listener)
    }

    fn recv_pause(&mut self, token: Token) {
        self.set_paused(token, true);
    }

    fn recv_resume(&mut self, token: Token) {
        self.set_paused(token, false);
    }

    fn reads_later(&self, token: Token) -> bool {
        self.has_unopened(token) || self.inner.reads_later(token)
    }

    fn send(&mut self, token: Token, output: Output) {
        match self.take(token) {
            None => self.inner.send(token, output),
            Some(mut conn) => {
                self.begin_send(&mut conn, output);
                self.put(conn);
            }
        }
    }

    fn send_at_once(&mut self, token: Token, output: &mut Output, is_awaited: impl FnOnce() -> bool) -> bool {
        match self.take(token) {
            None => self.inner.send_at_once(token, output, is_awaited),
            Some(mut conn) => {
                let is_done = self.try_at_once(&mut conn, output, is_awaited);
                if !is_done && conn.sending.is_none() {
                    self.begin_send(&mut conn, mem::take(output));
                }
                self.put(conn);
                is_done
            }
        }
    }

    fn settles_later(&mut self) -> bool {
        self.inner.settles_later()
    }

    fn next_unsent(&mut self) -> Option<Token> {
        while let Some(token) = self.inner.next_unsent() {
            if self.note_unsent(token) {
                return Some(token);
            }
        }
        None
    }

    fn send_progress(&self, token: Token) -> u64 {
        match self.find(token) {
            None => self.inner.send_progress(token),
            Some(conn) if conn.sending.is_some() => conn.progress(self.inner.send_progress(token)),
            Some(_) => self.failed.filter(|(failed, _)| *failed == token).map_or(0, |(_, done)| done),
        }
    }

    fn bytes_taken(&self) -> u64 {
        self.inner.bytes_taken()
    }

    fn unacknowledged(&self, token: Token) -> Option<u64> {
        self.inner.unacknowledged(token)
    }

    fn waits_for_disk(&self, token: Token) -> bool {
        let sending = self.find(token).and_then(|conn| conn.sending.as_deref());
        sending.is_some_and(|sending| sending.is_fetching) || self.inner.waits_for_disk(token)
    }

    fn shutdown_write(&mut self, token: Token) {
        match self.take(token) {
            None => self.inner.shutdown_write(token),
            Some(mut conn) => {
                self.end_writing(&mut conn);
                self.put(conn);
            }
        }
    }

    fn close(&mut self, token: Token, kind: CloseKind) {
        if let Some(mut conn) = self.take(token) {
            if !conn.is_closing {
                self.begin_close(&mut conn, kind);
            }
            self.put(conn);
        }
        if let Some(conn) = self.conns.get_mut(token.slot()).and_then(Option::as_mut)
            && conn.token == token
        {
            conn.is_closing = true;
        }
        self.inner.close(token, kind);
    }

    fn detach(&mut self, token: Token) {
        if self.find(token).is_none() {
            return self.inner.detach(token);
        }
        let why =
            io::Error::new(io::ErrorKind::Unsupported, "a secured connection has no descriptor of its own");
        self.events.push_back(Event::Detached { token, result: Err(why) });
    }

    fn adopt(&mut self, socket: OwnedFd) -> io::Result<Token> {
        self.inner.adopt(socket)
    }

    fn peer(&self, token: Token) -> io::Result<SocketAddr> {
        self.inner.peer(token)
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }

    fn connections(&self) -> usize {
        self.inner.connections()
    }
}
