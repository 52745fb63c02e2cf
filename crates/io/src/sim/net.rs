//! The test's handles on the simulation: [`SimNet`] and [`SimPeer`].

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use super::kernel::Kernel;
use super::listeners::SimArrival;
use super::operations::Operation;
use super::options::Rng;
use super::options::peer_address;
use super::wire::Wire;
use crate::{AcceptError, ListenerId, SharedLimit};

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

    /// Connects a new peer to `listener` from `address`. If it is closed, or there is none, the peer sees a reset.
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

    /// Has the connections count for this limit. To be called before the first connection.
    pub fn set_limit(&self, limit: SharedLimit) {
        self.kernel.borrow_mut().limit = limit;
    }

    /// Makes the next accept fail. Several failures are queued.
    pub fn fail_accept(&self, error: AcceptError) {
        self.kernel.borrow_mut().listeners.failures.push_back(error);
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
        self.kernel.borrow().listeners.all.iter().map(|listener| listener.queue.len()).sum()
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
        let mut kernel = self.kernel.borrow_mut();
        kernel.carry();
        kernel.is_ready()
    }

    /// Returns the time at which the next delayed operation resumes, if any.
    #[must_use]
    pub fn next_due_ms(&self) -> Option<u64> {
        self.kernel.borrow().next_due_ms()
    }

    /// Returns the number of operations so far: the bound of `SimOptions::fault_at`.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.kernel.borrow().trace.operations
    }

    /// Returns the latest operations, at most [`TRACE_OPERATIONS_MAX`](super::TRACE_OPERATIONS_MAX).
    #[must_use]
    pub fn trace(&self) -> Vec<Operation> {
        self.kernel.borrow().trace.latest.iter().copied().collect()
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

/// The client of one connection. Clones are handles on the same client; dropping does nothing.
///
/// Its actions reach the server at once; the driver reports them in its next turn. Written bytes are kept
/// until the server reads them: the test bounds them with [`SimPeer::unread`].
#[derive(Debug, Clone)]
pub struct SimPeer {
    wire: Rc<RefCell<Wire>>,
    address: SocketAddr,
}

impl SimPeer {
    pub(super) const fn new(wire: Rc<RefCell<Wire>>, address: SocketAddr) -> Self {
        Self { wire, address }
    }

    /// Returns its address, equal to that of `Driver::peer`.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends bytes. Returns false if the connection no longer takes them: after `finish`, or after a reset.
    ///
    /// If the server has closed its socket, it responds with a reset, which may destroy what the peer has not
    /// yet read of the response.
    #[expect(clippy::must_use_candidate, reason = "a test with an open connection ignores it")]
    pub fn write(&self, bytes: &[u8]) -> bool {
        self.wire.borrow_mut().peer_writes(bytes)
    }

    /// Ends the sending side (FIN). Receiving continues.
    pub fn finish(&self) {
        self.wire.borrow_mut().peer_finished = true;
    }

    /// Resets the connection. Bytes that the server has not yet read may be lost.
    pub fn reset(&self) {
        self.wire.borrow_mut().peer_resets();
    }

    /// Closes the socket: FIN, or RST if there are unread bytes. Later bytes of the server get an RST.
    pub fn close(&self) {
        self.wire.borrow_mut().peer_closes();
    }

    /// Reads all that has arrived, and returns it after what was read before.
    #[must_use]
    pub fn read(&self) -> Vec<u8> {
        self.read_at_most(usize::MAX)
    }

    /// Reads at most `bytes_max` from the socket, and returns it after what was read before.
    #[must_use]
    pub fn read_at_most(&self, bytes_max: usize) -> Vec<u8> {
        let mut wire = self.wire.borrow_mut();
        wire.peer_reads(bytes_max);
        std::mem::take(&mut wire.received)
    }

    /// Sets whether the peer reads whenever the driver waits (the default), or only by [`SimPeer::read`].
    pub fn set_reading(&self, reading: bool) {
        self.wire.borrow_mut().reading = reading;
    }

    /// Sets the bytes that the connection to the peer holds before the server's sends must wait.
    pub fn set_window(&self, bytes: usize) {
        self.wire.borrow_mut().window_bytes = bytes;
    }

    /// Sets the free bytes at which the server's sends resume. A kernel with a large send buffer reports room
    /// only when a third is free.
    pub fn set_room_min(&self, bytes: usize) {
        self.wire.borrow_mut().room_bytes_min = bytes.max(1);
    }

    /// Sets whether the server's next bytes are still being fetched from a disk: nothing is sent until then,
    /// whatever room there is.
    pub fn set_on_disk(&self, on_disk: bool) {
        self.wire.borrow_mut().on_disk = on_disk;
    }

    /// Returns the bytes written and not yet read by the server.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.wire.borrow().readable()
    }

    /// Returns whether it has read all that the server sent, and then FIN.
    #[must_use]
    pub fn saw_fin(&self) -> bool {
        self.wire.borrow().saw_fin()
    }

    /// Returns whether the connection was reset, by either side, or was refused.
    #[must_use]
    pub fn saw_reset(&self) -> bool {
        self.wire.borrow().reset
    }
}
