//! A simulated kernel: the contract without sockets, threads or real time.
//!
//! [`Sim`] is the driver; tests use [`SimNet`] to make peers, move the clock and read the trace. All choices
//! come from one seed, so a failed run is repeatable. [`SimOptions`] sets how rough the kernel is: rare
//! behaviour that the contract permits happens as often as a test wants.
//!
//! **Time** moves by [`SimNet::advance`], and in `wait` if nothing is ready: it jumps to the next delayed
//! operation, at most to the timeout, as if the worker had slept. A `wait` without timeout, when nothing can
//! ever happen, returns at once and without an event, since only the test, on the same thread, can change
//! that.
//!
//! **TCP** is simulated faithfully: bytes are neither lost nor reordered, FIN ends one direction, and an RST
//! ends both and may destroy what its receiver has not yet read. A socket that is closed with unread input
//! sends RST; so does a closed socket that gets more input. Servers that don't linger lose their responses
//! here.
//!
//! **The worker's duties** are asserted: a panic names the clause. As on the other drivers, verbs on dead
//! tokens (clause K2) panic in builds with debug assertions and are ignored in others.

mod accept;
mod adopted;
mod conn;
mod kernel;
mod listeners;
mod net;
mod operations;
mod options;
mod transfer;
mod wire;

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::{CloseKind, Driver, Event, Inbox, Listener, ListenerId, Output, Token, Waker};
use kernel::Kernel;

pub use listeners::SimArrival;
pub use net::{SimNet, SimPeer};
pub use operations::{Operation, OperationKind, TRACE_OPERATIONS_MAX};
pub use options::{Fault, SimOptions};

/// The simulated driver. See the [module](self).
#[derive(Debug)]
pub struct Sim {
    kernel: Rc<RefCell<Kernel>>,
    net: SimNet,
    /// Bytes of the last `Received`; empty after any other event.
    lent: Vec<u8>,
    now_ms: u64,
    unix_start_seconds: u64,
}

impl Sim {
    /// Creates a driver with its listeners and no connection.
    #[must_use]
    pub fn new(options: SimOptions) -> Self {
        Self::with_inbox(options, Inbox::default())
    }

    /// Creates a driver with an inbox as well.
    #[must_use]
    pub fn with_inbox(options: SimOptions, inbox: Inbox<SimArrival>) -> Self {
        let unix_start_seconds = options.unix_start_seconds;
        let kernel = Rc::new(RefCell::new(Kernel::new(options, inbox)));
        let net = SimNet::new(Rc::clone(&kernel));
        let sim = Self { kernel, net, lent: Vec::new(), now_ms: 0, unix_start_seconds };
        sim.kernel.borrow().listeners.inbox.attach(&sim.waker());
        sim
    }

    /// Returns the test's handle.
    #[must_use]
    pub fn net(&self) -> SimNet {
        self.net.clone()
    }

    /// Applies a verb, unless its token is dead (clause K2).
    fn apply<R>(&self, token: Token, verb: &str, act: impl FnOnce(&mut Kernel) -> R) -> Option<R> {
        let mut kernel = self.kernel.borrow_mut();
        let is_live = kernel.is_live(token);
        debug_assert!(is_live, "clause K2: {verb} on {token:?}, which is closed or was never returned");
        is_live.then(|| act(&mut kernel))
    }
}

impl crate::driver::sealed::Sealed for Sim {}

impl Driver for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn unix_seconds(&self) -> u64 {
        self.unix_start_seconds + self.now_ms / 1000
    }

    fn read_clock_us(&self) -> u64 {
        self.kernel.borrow().clock_ms.saturating_mul(1000)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.lent.clear();
        let timeout_ms =
            timeout.map(|timeout| u64::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX));
        let mut kernel = self.kernel.borrow_mut();
        kernel.wait(timeout_ms);
        self.now_ms = kernel.clock_ms;
        Ok(())
    }

    fn descriptor(&mut self) -> io::Result<RawFd> {
        Err(ErrorKind::Unsupported.into())
    }

    fn arm(&mut self, timeout: Option<Duration>) -> io::Result<Option<Duration>> {
        let kernel = self.kernel.borrow();
        if kernel.is_ready() {
            return Ok(Some(Duration::ZERO));
        }
        let due_ms = kernel.next_due_ms().map(|due_ms| due_ms - kernel.clock_ms);
        Ok(due_ms.map(Duration::from_millis).into_iter().chain(timeout).min())
    }

    fn caught_up_ms(&mut self) -> u64 {
        self.kernel.borrow().catch_up.ms()
    }

    fn next(&mut self) -> Option<Event> {
        self.lent.clear();
        self.kernel.borrow_mut().next(&mut self.lent)
    }

    fn lent(&self) -> &[u8] {
        &self.lent
    }

    fn lent_mut(&mut self) -> &mut [u8] {
        &mut self.lent
    }

    fn accept_pause(&mut self) {
        self.kernel.borrow_mut().accept_pause();
    }

    fn accept_resume(&mut self) {
        self.kernel.borrow_mut().accept_resume();
    }

    fn accept_stop(&mut self) {
        self.kernel.borrow_mut().accept_stop();
    }

    fn listener_add(&mut self, listener: Listener) {
        self.kernel.borrow_mut().listeners.add(listener.id());
    }

    fn listener_remove(&mut self, listener: ListenerId) -> bool {
        self.kernel.borrow_mut().listeners.remove(listener)
    }

    fn recv_pause(&mut self, token: Token) {
        self.apply(token, "recv_pause", |kernel| kernel.recv_pause(token));
    }

    fn recv_resume(&mut self, token: Token) {
        self.apply(token, "recv_resume", |kernel| kernel.recv_resume(token));
    }

    fn reads_later(&self, token: Token) -> bool {
        let kernel = self.kernel.borrow();
        kernel.conn(token).is_some_and(|conn| conn.has_used_its_share(kernel.turn))
    }

    fn send(&mut self, token: Token, output: Output) {
        self.apply(token, "send", |kernel| kernel.send(token, output));
    }

    fn send_at_once(&mut self, token: Token, output: &mut Output, is_awaited: impl FnOnce() -> bool) -> bool {
        let send = |kernel: &mut Kernel| kernel.send_at_once(token, output, is_awaited);
        self.apply(token, "send_at_once", send).unwrap_or(false)
    }

    fn settles_later(&mut self) -> bool {
        self.kernel.borrow().has_silent()
    }

    fn next_unsent(&mut self) -> Option<Token> {
        self.kernel.borrow_mut().next_unsent()
    }

    fn send_progress(&self, token: Token) -> u64 {
        let kernel = self.kernel.borrow();
        if let Some((failed, taken)) = kernel.failed
            && failed == token
        {
            return taken;
        }
        let sending = kernel.conn(token).and_then(|conn| conn.sending.as_ref());
        sending.filter(|sending| sending.silent_since.is_none()).map_or(0, |sending| sending.taken)
    }

    fn bytes_taken(&self) -> u64 {
        self.kernel.borrow().bytes_taken
    }

    fn waits_for_disk(&self, token: Token) -> bool {
        let kernel = self.kernel.borrow();
        kernel.conn(token).is_some_and(|conn| conn.sending.is_some() && conn.wire.borrow().on_disk)
    }

    fn unacknowledged(&self, token: Token) -> Option<u64> {
        let kernel = self.kernel.borrow();
        kernel.conn(token).map(|conn| conn.wire.borrow().to_peer.len() as u64)
    }

    fn shutdown_write(&mut self, token: Token) {
        self.apply(token, "shutdown_write", |kernel| kernel.shutdown_write(token));
    }

    fn close(&mut self, token: Token, kind: CloseKind) {
        self.apply(token, "close", |kernel| kernel.close(token, kind));
    }

    fn detach(&mut self, token: Token) {
        self.apply(token, "detach", |kernel| kernel.detach(token));
    }

    fn adopt(&mut self, socket: OwnedFd) -> io::Result<Token> {
        Ok(self.kernel.borrow_mut().adopt(socket))
    }

    fn peer(&self, token: Token) -> io::Result<SocketAddr> {
        let kernel = self.kernel.borrow();
        let connected = kernel.conn(token).filter(|conn| !conn.wire.borrow().reset);
        connected.map(|conn| conn.address).ok_or_else(|| ErrorKind::NotConnected.into())
    }

    fn waker(&self) -> Waker {
        let woken = Arc::clone(&self.kernel.borrow().woken);
        Waker::new(move || woken.store(true, Ordering::Release))
    }

    fn connections(&self) -> usize {
        self.kernel.borrow().connections
    }
}
