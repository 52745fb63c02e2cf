//! A TCP connection between a peer and the driver: bytes in flight, and the effects of FIN and RST.
//!
//! Bytes are never lost or reordered, except by a reset. What a reset destroys is drawn from the wire's own seed.

use std::collections::VecDeque;

use super::options::Rng;

#[derive(Debug)]
pub(super) struct Wire {
    /// Bytes written by the peer and not yet read by the server.
    to_server: VecDeque<u8>,
    /// Bytes taken from the server and not yet read by the peer's program.
    pub(super) to_peer: VecDeque<u8>,
    /// Bytes read by the peer's program and not yet by the test.
    pub(super) received: Vec<u8>,
    /// Maximum bytes in `to_peer`.
    pub(super) window_bytes: usize,
    /// Free bytes of the window at which the server learns that there is room.
    pub(super) room_bytes_min: usize,
    /// True if the server's next bytes are still being fetched from a disk.
    pub(super) on_disk: bool,
    /// True if the peer's program reads whenever the driver waits.
    pub(super) reading: bool,
    /// True if the peer's FIN follows `to_server`.
    pub(super) peer_finished: bool,
    /// True if the peer's program has closed its socket: later arrivals get an RST.
    peer_closed: bool,
    /// True if the server's FIN follows `to_peer`.
    pub(super) server_finished: bool,
    /// True if the server has closed its socket: later arrivals get an RST.
    server_closed: bool,
    /// True once either side has reset the connection: the next system call on it fails.
    pub(super) reset: bool,
    reset_losses: f64,
    rng: Rng,
}

impl Wire {
    pub(super) fn new(window_bytes: usize, reset_losses: f64, rng: Rng) -> Self {
        Self {
            to_server: VecDeque::new(),
            to_peer: VecDeque::new(),
            received: Vec::new(),
            window_bytes,
            room_bytes_min: 1,
            on_disk: false,
            reading: true,
            peer_finished: false,
            peer_closed: false,
            server_finished: false,
            server_closed: false,
            reset: false,
            reset_losses,
            rng,
        }
    }

    /// Refuses the connection: there is no listener.
    pub(super) fn refuse(&mut self) {
        self.server_closed = true;
        self.reset = true;
    }

    fn loses(&mut self) -> bool {
        self.rng.chance(self.reset_losses)
    }
}

/// The server's side.
impl Wire {
    /// Returns the bytes that the server could read now.
    pub(super) fn readable(&self) -> usize {
        self.to_server.len()
    }

    /// Returns whether the server would read the end now.
    pub(super) fn at_end(&self) -> bool {
        self.to_server.is_empty() && (self.peer_finished || self.reset)
    }

    pub(super) fn server_reads(&mut self, bytes: usize, into: &mut Vec<u8>) {
        take(&mut self.to_server, bytes, into);
    }

    /// Returns the bytes that the server could send now.
    pub(super) fn room(&self) -> usize {
        if self.on_disk {
            return 0;
        }
        if self.peer_closed {
            return self.window_bytes;
        }
        let free = self.window_bytes.saturating_sub(self.to_peer.len());
        if free < self.room_bytes_min { 0 } else { free }
    }

    /// Returns whether a send attempt in the next turn moves bytes: a reading peer makes room by then.
    pub(super) fn takes_soon(&self) -> bool {
        self.reset || self.room() > 0 || (self.reading && !self.on_disk && self.window_bytes > 0)
    }

    /// Takes bytes from the server, which keeps to `room`.
    pub(super) fn server_sends(&mut self, bytes: &[u8]) {
        if self.peer_closed {
            // Taken by the kernel; the peer responds with RST.
            self.reset |= !bytes.is_empty();
        } else {
            self.to_peer.extend(bytes);
        }
    }

    /// Closes the server's side without lingering: with unread input it sends an RST.
    pub(super) fn server_closes(&mut self) {
        self.server_closed = true;
        self.server_finished = true;
        if !self.to_server.is_empty() {
            self.server_resets();
        }
    }

    pub(super) fn has_server_closed(&self) -> bool {
        self.server_closed
    }

    pub(super) fn server_resets(&mut self) {
        self.server_closed = true;
        self.reset = true;
        self.to_server.clear();
        if self.loses() {
            self.to_peer.clear();
        }
    }
}

/// The peer's side.
impl Wire {
    /// Returns whether bytes written by the peer now can reach the server.
    fn is_writable(&self) -> bool {
        !self.reset && !self.peer_finished
    }

    /// Takes bytes from the peer. Returns false if the connection no longer takes them.
    pub(super) fn peer_writes(&mut self, bytes: &[u8]) -> bool {
        if !self.is_writable() {
            return false;
        }
        if self.server_closed && !bytes.is_empty() {
            self.server_resets();
        } else {
            self.to_server.extend(bytes);
        }
        true
    }

    /// Closes the peer's socket, with no further reads.
    pub(super) fn peer_closes(&mut self) {
        self.peer_finished = true;
        self.peer_closed = true;
        if !self.to_peer.is_empty() {
            self.peer_resets();
        }
    }

    pub(super) fn peer_resets(&mut self) {
        if self.reset {
            return;
        }
        self.reset = true;
        self.peer_closed = true;
        self.to_peer.clear();
        if self.loses() {
            self.to_server.clear();
        }
    }

    /// Reads at most `bytes_max` for the peer's program.
    pub(super) fn peer_reads(&mut self, bytes_max: usize) {
        let bytes = bytes_max.min(self.to_peer.len());
        take(&mut self.to_peer, bytes, &mut self.received);
    }

    /// Reads for the peer's program between two turns.
    pub(super) fn peer_reads_by_itself(&mut self) {
        if self.reading {
            self.peer_reads(usize::MAX);
        }
    }

    pub(super) fn saw_fin(&self) -> bool {
        self.server_finished && self.to_peer.is_empty() && !self.reset
    }
}

/// Moves the first `bytes` of a queue, in at most two copies, since unoptimised builds move megabytes here.
fn take(from: &mut VecDeque<u8>, bytes: usize, into: &mut Vec<u8>) {
    let (front, back) = from.as_slices();
    let of_front = bytes.min(front.len());
    into.extend_from_slice(&front[..of_front]);
    into.extend_from_slice(&back[..bytes - of_front]);
    from.drain(..bytes);
}
