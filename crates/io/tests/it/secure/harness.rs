//! The contract's suite over secured connections: peers that speak the fake protocol.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use shearwater_io::secure::{RECORD_WIRE_BYTES_MAX, Secure};
use shearwater_io::sim::Sim;
use shearwater_io::{Driver, Entrances, ListenerId, limits};

use super::fake::{Fake, FakeClient};
use crate::contract::on_sim::OverSim;
use crate::contract::sockets::Kernel;
use crate::contract::{Harness, PeerId, PeerState, Setup};

/// A driver of secured connections over that of a kernel.
pub(crate) struct Over<K>(std::marker::PhantomData<K>);

impl<K: Kernel> Kernel for Over<K> {
    type Driver = Secure<K::Driver, Fake>;

    fn driver(entrances: impl Into<Entrances>, setup: Setup) -> std::io::Result<Self::Driver> {
        Ok(Secure::new(K::driver(entrances, setup)?, Fake::default()))
    }

    fn missing() -> Option<String> {
        K::missing()
    }
}

impl OverSim for Secure<Sim, Fake> {
    fn over(sim: Sim) -> Self {
        Self::new(sim, Fake::default())
    }
}

/// One peer's session, and what it has to send.
#[derive(Default)]
struct Peer {
    client: FakeClient,
    unsent: Vec<u8>,
    /// Its FIN follows what is unsent.
    finishes: bool,
    end: Option<PeerState>,
}

/// A harness whose connections are all secured.
pub(crate) struct Encrypted<H> {
    below: H,
    peers: HashMap<usize, Peer>,
}

impl<H: Harness> Encrypted<H> {
    fn begin(&mut self, peer: PeerId) -> PeerId {
        let mut state = Peer::default();
        state.unsent = state.client.handshake();
        self.peers.insert(peer.0, state);
        self.flush(peer);
        peer
    }

    fn flush(&mut self, peer: PeerId) {
        let Some(state) = self.peers.get_mut(&peer.0) else { return };
        if !state.unsent.is_empty() {
            let count = self.below.write(peer, &state.unsent);
            state.unsent.drain(..count);
        }
        if state.unsent.is_empty() && std::mem::take(&mut state.finishes) {
            self.below.shutdown(peer);
        }
    }
}

impl<H: Harness> Harness for Encrypted<H> {
    type Driver = H::Driver;

    fn missing() -> Option<String> {
        H::missing()
    }

    fn secures() -> bool {
        assert!(H::Driver::SECURES);
        true
    }

    fn lent_max(setup: Setup) -> usize {
        setup.recv_buffer_bytes + RECORD_WIRE_BYTES_MAX
    }

    fn after_pause_max() -> usize {
        limits::SECURE_RECV_AFTER_PAUSE_MAX
    }

    fn pump(&mut self) {
        let mut peers: Vec<_> = self.peers.iter().filter(|(_, peer)| !peer.unsent.is_empty()).collect();
        peers.sort_unstable_by_key(|(peer, _)| **peer);
        for peer in peers.into_iter().map(|(peer, _)| *peer).collect::<Vec<_>>() {
            self.flush(PeerId(peer));
        }
    }

    fn new(setup: Setup) -> Self {
        Self { below: H::new(setup), peers: HashMap::new() }
    }

    fn driver(&mut self) -> &mut H::Driver {
        self.below.driver()
    }

    fn connect(&mut self, listener: usize) -> PeerId {
        let peer = self.below.connect(listener);
        self.begin(peer)
    }

    fn hand_over(&mut self, listener: ListenerId) -> Option<PeerId> {
        let peer = self.below.hand_over(listener)?;
        Some(self.begin(peer))
    }

    fn wake_inbox(&mut self) {
        self.below.wake_inbox();
    }

    fn end_inbox(&mut self) {
        self.below.end_inbox();
    }

    fn address(&self, peer: PeerId) -> Option<SocketAddr> {
        self.below.address(peer)
    }

    fn add_listener(&mut self) -> usize {
        self.below.add_listener()
    }

    fn refused(&mut self, listener: usize) -> bool {
        self.below.refused(listener)
    }

    fn fail_listener(&mut self, listener: usize) -> i32 {
        self.below.fail_listener(listener)
    }

    fn write(&mut self, peer: PeerId, bytes: &[u8]) -> usize {
        let state = self.peers.get_mut(&peer.0).expect("the peer is still there");
        let sealed = state.client.seal(bytes);
        state.unsent.extend_from_slice(&sealed);
        self.flush(peer);
        bytes.len()
    }

    fn read(&mut self, peer: PeerId, max: usize, into: &mut Vec<u8>) -> PeerState {
        let state = self.peers.get_mut(&peer.0).expect("the peer is still there");
        let mut left = max;
        loop {
            let len = left.min(state.client.content.len());
            into.extend(state.client.content.drain(..len));
            left -= len;
            if left == 0 {
                return PeerState::Open;
            }
            if let Some(end) = state.end {
                return end;
            }
            let mut wire = Vec::new();
            let end = self.below.read(peer, left.min(1 << 20), &mut wire);
            state.client.receive(&wire);
            match end {
                PeerState::Open if wire.is_empty() => return end,
                PeerState::Open => {}
                PeerState::Eof | PeerState::Reset => state.end = Some(end),
            }
        }
    }

    fn shutdown(&mut self, peer: PeerId) {
        let state = self.peers.get_mut(&peer.0).expect("the peer is still there");
        let notify = state.client.close_notify();
        state.unsent.extend_from_slice(&notify);
        state.finishes = true;
        self.flush(peer);
    }

    fn reset(&mut self, peer: PeerId) {
        self.peers.remove(&peer.0);
        self.below.reset(peer);
    }

    fn narrow(&mut self, peer: PeerId) {
        self.below.narrow(peer);
    }

    fn detaches(&self) -> bool {
        false
    }

    fn tells_writes() -> bool {
        // The decorator reads the files, whatever is below.
        cfg!(target_os = "linux")
    }

    fn patience(&self) -> Duration {
        self.below.patience()
    }
}
