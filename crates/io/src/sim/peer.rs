//! The peer of a simulated connection, driven by the test.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use super::wire::Wire;

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
        self.wire.borrow_mut().peer_finishes();
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
        wire.take_received()
    }

    /// Sets whether the peer reads whenever the driver waits (the default), or only by [`SimPeer::read`].
    pub fn set_reading(&self, reading: bool) {
        self.wire.borrow_mut().reading = reading;
    }

    /// Sets the bytes that the connection to the peer holds before the server's sends must wait.
    pub fn set_window(&self, bytes: usize) {
        self.wire.borrow_mut().set_window(bytes);
    }

    /// Sets the free bytes at which the server's sends resume. A kernel with a large send buffer reports room
    /// only when a third is free.
    pub fn set_room_min(&self, bytes: usize) {
        self.wire.borrow_mut().set_room_min(bytes);
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
        self.wire.borrow().saw_reset()
    }
}
