//! The test's handle on the simulation: [`SimNet`].

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use super::SimPeer;
use super::kernel::Kernel;
use super::listeners::SimArrival;
use super::options::peer_address;
use super::rng::Rng;
use super::trace::Operation;
use super::wire::Wire;
use crate::{AcceptError, ListenerId};

/// Operations that a panic message shows.
const OPERATIONS_SHOWN: usize = 8;

/// Makes peers, moves the clock, and reads the trace. Clones are handles on the same network.
#[derive(Debug, Clone)]
pub struct SimNet {
    kernel: Rc<RefCell<Kernel>>,
    connects: Rc<RefCell<u64>>,
}

impl SimNet {
    pub(super) fn new(kernel: Rc<RefCell<Kernel>>) -> Self {
        Self { kernel, connects: Rc::default() }
    }

    /// Connects a new peer to the first listener, from an address of its own.
    #[must_use]
    pub fn connect(&self) -> SimPeer {
        let address = peer_address(*self.connects.borrow());
        self.connect_as(0, address)
    }

    /// Connects `count` new peers.
    #[must_use]
    pub fn connect_many(&self, count: usize) -> Vec<SimPeer> {
        (0..count).map(|_| self.connect()).collect()
    }

    /// Connects a new peer to `listener` from `address`. If the listeners are closed, it sees a reset.
    ///
    /// # Panics
    /// Panics if there is no such listener.
    #[must_use]
    pub fn connect_as(&self, listener: ListenerId, address: SocketAddr) -> SimPeer {
        let (peer, arrival) = self.arrive_as(address);
        self.kernel.borrow_mut().listeners.push(listener, arrival);
        peer
    }

    /// Returns a new peer and its connection, accepted elsewhere, to be handed to any simulated driver.
    #[must_use]
    pub fn arrive(&self) -> (SimPeer, SimArrival) {
        let address = peer_address(*self.connects.borrow());
        self.arrive_as(address)
    }

    fn arrive_as(&self, address: SocketAddr) -> (SimPeer, SimArrival) {
        let kernel = self.kernel.borrow();
        let number = self.connects.replace_with(|number| *number + 1);
        let rng = Rng::new(kernel.options.seed ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let wire = Wire::new(kernel.options.send_buffer_bytes, kernel.options.reset_losses, rng);
        let wire = Rc::new(RefCell::new(wire));
        (SimPeer::new(Rc::clone(&wire), address), SimArrival { wire, address })
    }

    /// Makes the next accept fail. Several failures are queued.
    pub fn fail_accept(&self, error: AcceptError) {
        self.kernel.borrow_mut().listeners.fail_next(error);
    }

    /// Fails a listener with `errno`, as after a shutdown from outside: it accepts no more.
    ///
    /// # Panics
    /// Panics if there is no such listener.
    pub fn fail_listener(&self, listener: ListenerId, errno: i32) {
        self.kernel.borrow_mut().listeners.kill(listener, errno);
    }

    /// Returns the number of connections in the listeners' queues.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.kernel.borrow().listeners.waiting()
    }

    /// Moves the driven clock, after peers have read what has reached them. The driver reports the new time
    /// from its next `wait` on (clause T3).
    pub fn advance(&self, ms: u64) {
        let mut kernel = self.kernel.borrow_mut();
        kernel.peers_read();
        kernel.clock_ms += ms;
    }

    /// Returns the driven clock in milliseconds; it starts at 0.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.kernel.borrow().clock_ms
    }

    /// Returns whether the driver's next `wait` has something to do without moving the clock. To run a worker
    /// until it is idle: `while net.is_ready() { worker.turn(); }`.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.kernel.borrow().is_ready()
    }

    /// Returns the time at which the next delayed operation resumes, if any.
    #[must_use]
    pub fn next_due_ms(&self) -> Option<u64> {
        self.kernel.borrow().next_due_ms()
    }

    /// Returns the number of operations so far: the bound of `SimOptions::fault_at`.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.kernel.borrow().trace.operations()
    }

    /// Returns the latest operations, at most [`TRACE_OPERATIONS_MAX`](super::TRACE_OPERATIONS_MAX).
    #[must_use]
    pub fn trace(&self) -> Vec<Operation> {
        self.kernel.borrow().trace.latest()
    }

    /// Returns a hash of all operations: the same for the same seed and the same conversation.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.kernel.borrow().trace.fingerprint()
    }

    /// Returns the number of connections that are not yet `Closed`.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.kernel.borrow().connections
    }

    /// Asserts that all tokens are `Closed`, so that no output is held either.
    ///
    /// # Panics
    /// Panics if connections are left, and names them and the latest operations.
    pub fn assert_quiet(&self) {
        let open = self.kernel.borrow().open_tokens();
        let trace = self.trace();
        let latest = &trace[trace.len().saturating_sub(OPERATIONS_SHOWN)..];
        assert!(open.is_empty(), "clause C2: not yet Closed: {open:?}; latest operations: {latest:#?}");
    }
}
