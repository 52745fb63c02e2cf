//! The other end of a simulated connection, in the test's hand.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use super::wire::Wire;

/// The client of one connection. Cloning gives another handle on the same client; dropping does nothing.
///
/// What it does reaches the server at once; the driver tells in its next turn. What a test writes is kept until the
/// server reads it: [`SimPeer::unread`] tells how much that is, and the test bounds it.
#[derive(Debug, Clone)]
pub struct SimPeer {
    wire: Rc<RefCell<Wire>>,
    address: SocketAddr,
}

impl SimPeer {
    pub(super) const fn new(wire: Rc<RefCell<Wire>>, address: SocketAddr) -> Self {
        Self { wire, address }
    }

    /// Its address, as `Driver::peer` gives it.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends bytes. False where the connection no longer takes them: after `finish`, or after a reset.
    ///
    /// Where the server has closed its socket, they are answered with a reset, which may destroy what the peer has
    /// not yet read of the server's answer.
    #[expect(clippy::must_use_candidate, reason = "a test that knows the connection is open needs no answer")]
    pub fn write(&self, bytes: &[u8]) -> bool {
        self.wire.borrow_mut().peer_writes(bytes)
    }

    /// Ends the sending side (FIN). Receiving goes on.
    pub fn finish(&self) {
        self.wire.borrow_mut().peer_finishes();
    }

    /// Resets the connection. What the server had not yet read may be lost.
    pub fn reset(&self) {
        self.wire.borrow_mut().peer_resets();
    }

    /// Closes the socket: FIN, or RST where there are unread bytes; what the server sends later is answered with RST.
    pub fn close(&self) {
        self.wire.borrow_mut().peer_closes();
    }

    /// Reads all that has arrived, and gives it with what was read before.
    #[must_use]
    pub fn read(&self) -> Vec<u8> {
        self.read_at_most(usize::MAX)
    }

    /// Reads at most `bytes_max` from the socket, and gives it with what was read before.
    #[must_use]
    pub fn read_at_most(&self, bytes_max: usize) -> Vec<u8> {
        let mut wire = self.wire.borrow_mut();
        wire.peer_reads(bytes_max);
        wire.take_received()
    }

    /// Whether the peer reads by itself whenever the driver waits (the default), or only by [`SimPeer::read`].
    pub fn set_reading(&self, reading: bool) {
        self.wire.borrow_mut().reading = reading;
    }

    /// Sets how many bytes the way to the peer holds before the server's sends have to wait.
    pub fn set_window(&self, bytes: usize) {
        self.wire.borrow_mut().set_window(bytes);
    }

    /// Sets how many bytes of that must be free before the server's sends go on. A kernel with a large send buffer speaks up only
    /// when a third of it is.
    pub fn set_room_min(&self, bytes: usize) {
        self.wire.borrow_mut().set_room_min(bytes);
    }

    /// Sets whether what the server sends next is still being fetched from a disk: until then nothing goes out, whatever room there is.
    pub fn set_on_disk(&self, on_disk: bool) {
        self.wire.borrow_mut().on_disk = on_disk;
    }

    /// Bytes that it has written and the server has not yet read.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.wire.borrow().readable()
    }

    /// Whether it has read all that the server sent, and then FIN.
    #[must_use]
    pub fn saw_fin(&self) -> bool {
        self.wire.borrow().saw_fin()
    }

    /// Whether the connection was reset, by whichever side, or was refused.
    #[must_use]
    pub fn saw_reset(&self) -> bool {
        self.wire.borrow().saw_reset()
    }
}
