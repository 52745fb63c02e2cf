//! One TCP connection between a peer and the driver: what is on its way, and what FIN and RST do to it.
//!
//! Bytes are never lost or reordered, except by a reset. What a reset destroys is drawn from the wire's own seed.

use std::collections::VecDeque;

use super::rng::Rng;

#[derive(Debug)]
pub(super) struct Wire {
    /// Written by the peer, not yet read by the server.
    to_server: VecDeque<u8>,
    /// Taken from the server, not yet read by the peer's program.
    to_peer: VecDeque<u8>,
    /// Read by the peer's program, not yet asked for by the test.
    received: Vec<u8>,
    /// Most bytes in `to_peer`.
    window_bytes: usize,
    /// What of them must be free before the server hears that there is room.
    room_bytes_min: usize,
    /// What the server sends next lies on a disk that takes its time.
    pub(super) on_disk: bool,
    /// The peer's program reads whenever the driver waits.
    pub(super) reading: bool,
    /// The peer's FIN stands behind `to_server`.
    peer_finished: bool,
    /// The peer's program has closed its socket: what arrives for it is answered with RST.
    peer_closed: bool,
    /// The server's FIN stands behind `to_peer`.
    server_finished: bool,
    /// The server has closed its socket: what arrives for it is answered with RST.
    server_closed: bool,
    reset: bool,
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

    /// A connection that nobody listens for.
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
    /// Whether the server's next system call on it fails.
    pub(super) const fn is_broken(&self) -> bool {
        self.reset
    }

    pub(super) const fn is_server_finished(&self) -> bool {
        self.server_finished
    }

    /// Whether the peer's FIN has come, perhaps behind bytes that are still to be read.
    pub(super) const fn is_peer_finished(&self) -> bool {
        self.peer_finished
    }

    /// Bytes that the server could read now.
    pub(super) fn readable(&self) -> usize {
        self.to_server.len()
    }

    /// Whether the server would see the end now.
    pub(super) fn at_end(&self) -> bool {
        self.to_server.is_empty() && (self.peer_finished || self.reset)
    }

    pub(super) fn server_reads(&mut self, bytes: usize, into: &mut Vec<u8>) {
        take(&mut self.to_server, bytes, into);
    }

    /// Bytes that the server could send now.
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

    /// Whether a send attempt in the next turn does something: a peer that reads makes room by then.
    pub(super) fn takes_soon(&self) -> bool {
        self.reset || self.room() > 0 || (self.reading && !self.on_disk && self.window_bytes > 0)
    }

    /// The server sends. The caller keeps to `room`.
    pub(super) fn server_sends(&mut self, bytes: &[u8]) {
        if self.peer_closed {
            // Taken by the kernel; the answer to it is RST.
            self.reset |= !bytes.is_empty();
        } else {
            self.to_peer.extend(bytes);
        }
    }

    pub(super) fn server_finishes(&mut self) {
        self.server_finished = true;
    }

    /// The server closes without lingering: input that it left unread makes it an RST.
    pub(super) fn server_closes(&mut self) {
        self.server_closed = true;
        self.server_finished = true;
        if !self.to_server.is_empty() {
            self.server_resets();
        }
    }

    pub(super) fn server_resets(&mut self) {
        self.server_closed = true;
        self.reset = true;
        self.to_server.clear();
        if self.loses() {
            self.to_peer.clear();
        }
    }

    /// Whether the peer's program still has something to read.
    pub(super) fn owes_peer(&self) -> bool {
        !self.to_peer.is_empty()
    }

    /// How much that is.
    pub(super) fn owed_bytes(&self) -> u64 {
        self.to_peer.len() as u64
    }
}

/// The peer's side.
impl Wire {
    /// Whether what the peer writes now has a way to the server.
    fn is_writable(&self) -> bool {
        !self.reset && !self.peer_finished
    }

    /// False where the connection no longer takes bytes.
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

    pub(super) fn peer_finishes(&mut self) {
        self.peer_finished = true;
    }

    /// The peer's program closes its socket, reading nothing more.
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

    /// The peer's program reads at most `bytes_max`.
    pub(super) fn peer_reads(&mut self, bytes_max: usize) {
        let bytes = bytes_max.min(self.to_peer.len());
        take(&mut self.to_peer, bytes, &mut self.received);
    }

    /// What the peer's program reads between two turns.
    pub(super) fn peer_reads_by_itself(&mut self) {
        if self.reading {
            self.peer_reads(usize::MAX);
        }
    }

    /// What the peer's program has read since the last time it was asked.
    pub(super) fn take_received(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.received)
    }

    pub(super) fn set_window(&mut self, bytes: usize) {
        self.window_bytes = bytes;
    }

    pub(super) fn set_room_min(&mut self, bytes: usize) {
        self.room_bytes_min = bytes.max(1);
    }

    pub(super) fn saw_fin(&self) -> bool {
        self.server_finished && self.to_peer.is_empty() && !self.reset
    }

    pub(super) const fn saw_reset(&self) -> bool {
        self.reset
    }
}

/// Moves the first `bytes` of a queue: in two copies at most, since unoptimised builds move megabytes here.
fn take(from: &mut VecDeque<u8>, bytes: usize, into: &mut Vec<u8>) {
    let (front, back) = from.as_slices();
    let of_front = bytes.min(front.len());
    into.extend_from_slice(&front[..of_front]);
    into.extend_from_slice(&back[..bytes - of_front]);
    from.drain(..bytes);
}
