//! The test's hand on the simulation: [`SimNet`].

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

/// Operations that a complaint shows.
const OPERATIONS_SHOWN: usize = 8;

/// Makes peers, moves the clock, and tells what the driver did. Cloning gives another handle on the same network.
#[derive(Debug, Clone)]
pub struct SimNet {
    kernel: Rc<RefCell<Kernel>>,
    connects: Rc<RefCell<u64>>,
}

impl SimNet {
    pub(super) fn new(kernel: Rc<RefCell<Kernel>>) -> Self {
        Self { kernel, connects: Rc::default() }
    }

    /// A new peer that connects to the first listener, from an address of its own.
    #[must_use]
    pub fn connect(&self) -> SimPeer {
        let address = peer_address(*self.connects.borrow());
        self.connect_as(0, address)
    }

    /// `count` new peers at once.
    #[must_use]
    pub fn connect_many(&self, count: usize) -> Vec<SimPeer> {
        (0..count).map(|_| self.connect()).collect()
    }

    /// A new peer that connects to `listener` from `address`. Where the listeners are closed, it sees a reset.
    ///
    /// # Panics
    /// Where there is no such listener.
    #[must_use]
    pub fn connect_as(&self, listener: ListenerId, address: SocketAddr) -> SimPeer {
        let (peer, arrival) = self.arrive_as(address);
        self.kernel.borrow_mut().listeners.push(listener, arrival);
        peer
    }

    /// A new peer whose connection somebody else has accepted: to be handed over, to whichever simulated driver.
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

    /// Makes the next accept fail. Failures are queued.
    pub fn fail_accept(&self, error: AcceptError) {
        self.kernel.borrow_mut().listeners.fail_next(error);
    }

    /// Ends a listener as a system does of which somebody has shut it down: it accepts nothing any more, and says `errno`.
    ///
    /// # Panics
    /// Where there is no such listener.
    pub fn fail_listener(&self, listener: ListenerId, errno: i32) {
        self.kernel.borrow_mut().listeners.kill(listener, errno);
    }

    /// Connections in the listeners' queues.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.kernel.borrow().listeners.waiting()
    }

    /// Moves the driven clock; peers read what has reached them before. The driver tells the new time from its next `wait` on
    /// (clause T3).
    pub fn advance(&self, ms: u64) {
        let mut kernel = self.kernel.borrow_mut();
        kernel.peers_read();
        kernel.clock_ms += ms;
    }

    /// The driven clock in milliseconds; it starts at 0.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.kernel.borrow().clock_ms
    }

    /// Whether the driver's next `wait` has something to do without the clock being moved. To run a worker until it
    /// has done all that it can do *now*: `while net.is_ready() { worker.turn(); }`.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.kernel.borrow().is_ready()
    }

    /// The time at which something that is delayed goes on, if there is such a thing.
    #[must_use]
    pub fn next_due_ms(&self) -> Option<u64> {
        self.kernel.borrow().next_due_ms()
    }

    /// How many operations the driver has done: the bound of `SimOptions::fault_at`.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.kernel.borrow().trace.operations()
    }

    /// The latest operations, at most [`TRACE_OPERATIONS_MAX`](super::TRACE_OPERATIONS_MAX).
    #[must_use]
    pub fn trace(&self) -> Vec<Operation> {
        self.kernel.borrow().trace.latest()
    }

    /// A number over all operations: the same for the same seed and the same conversation.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.kernel.borrow().trace.fingerprint()
    }

    /// Connections of the driver that are not yet `Closed`.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.kernel.borrow().connections
    }

    /// Asserts that the worker has left nothing behind: all tokens are `Closed`, so no output is held either.
    ///
    /// # Panics
    /// Where connections are left; it names them and the end of the trace.
    pub fn assert_quiet(&self) {
        let open = self.kernel.borrow().open_tokens();
        let trace = self.trace();
        let latest = &trace[trace.len().saturating_sub(OPERATIONS_SHOWN)..];
        assert!(open.is_empty(), "clause C2: not yet Closed: {open:?}; latest operations: {latest:#?}");
    }
}
