//! The suite on the simulated driver, without and with rough behaviour.

use std::net::SocketAddr;
use std::time::Duration;

use shearwater_io::inbox::{InboxSender, inbox};
use shearwater_io::sim::{Sim, SimArrival, SimNet, SimOptions, SimPeer};
use shearwater_io::{Driver, Inbox, Listener, ListenerId};

use super::{Harness, PeerId, PeerState, Setup};

/// A driver over a [`Sim`], or itself.
pub(crate) trait OverSim: Driver {
    fn over(sim: Sim) -> Self;
}

impl OverSim for Sim {
    fn over(sim: Self) -> Self {
        sim
    }
}

/// [`Sim`] and its peers. A `SEED` of 0 disables rough behaviour.
pub(crate) struct SimHarness<const SEED: u64, D = Sim> {
    driver: D,
    net: SimNet,
    peers: Vec<SimPeer>,
    sender: Option<InboxSender<SimArrival>>,
    listeners: usize,
}

impl<const SEED: u64, D: OverSim> Harness for SimHarness<SEED, D> {
    type Driver = D;

    fn new(setup: Setup) -> Self {
        // No short reads: the suite expects each of its small messages in one `Received`. `sim/` tests short
        // reads. Short delays: some tests take few turns of a millisecond or two.
        let rough = SimOptions { short_reads: 0.0, delay_ms_max: 3, ..SimOptions::rough(SEED) };
        let options = if SEED == 0 { SimOptions::default() } else { rough };
        let (sender, inbox) = match setup.inbox {
            0 => (None, Inbox::default()),
            capacity => {
                let (sender, inbox) = inbox(capacity);
                (Some(sender), inbox)
            }
        };
        let options = SimOptions {
            listeners: u16::try_from(setup.listeners).expect("a few listeners"),
            connections_max: setup.connections_max,
            recv_buffer_bytes: setup.recv_buffer_bytes,
            ..options
        };
        let listeners = setup.listeners;
        let sim = Sim::with_inbox(options, inbox);
        let net = sim.net();
        Self { driver: D::over(sim), net, peers: Vec::new(), sender, listeners }
    }

    fn driver(&mut self) -> &mut D {
        &mut self.driver
    }

    fn connect(&mut self, listener: usize) -> PeerId {
        let number = u16::try_from(self.peers.len()).expect("fewer peers than ports");
        let address = SocketAddr::from(([127, 0, 0, 1], number));
        let peer = self.net.connect_as(u16::try_from(listener).expect("a few listeners"), address);
        // As for a socket: input stays there until the test reads it.
        peer.set_reading(false);
        self.peers.push(peer);
        PeerId(self.peers.len() - 1)
    }

    fn hand_over(&mut self, listener: ListenerId) -> Option<PeerId> {
        let (peer, arrival) = self.net.arrive();
        self.sender.as_ref().expect("an inbox").offer(arrival, listener).ok()?;
        peer.set_reading(false);
        self.peers.push(peer);
        Some(PeerId(self.peers.len() - 1))
    }

    fn wake_inbox(&mut self) {
        self.sender.as_ref().expect("an inbox").wake();
    }

    fn end_inbox(&mut self) {
        self.sender = None;
    }

    fn address(&self, peer: PeerId) -> Option<SocketAddr> {
        self.peers.get(peer.0).map(SimPeer::address)
    }

    fn add_listener(&mut self) -> usize {
        // The simulated driver uses only its number.
        let socket = std::fs::File::open("/dev/null").expect("any descriptor");
        let index = self.listeners;
        self.listeners += 1;
        let id = ListenerId::try_from(index).expect("a few listeners");
        self.driver.listener_add(Listener::new(socket.into(), id));
        index
    }

    fn refused(&mut self, listener: usize) -> bool {
        let peer = self.connect(listener);
        let refused = self.peers[peer.0].saw_reset();
        self.reset(peer);
        refused
    }

    fn fail_listener(&mut self, listener: usize) -> i32 {
        const ERRNO: i32 = 22;
        let listener = u16::try_from(listener).expect("a few listeners");
        self.net.fail_listener(listener, ERRNO);
        ERRNO
    }

    fn write(&mut self, peer: PeerId, bytes: &[u8]) -> usize {
        if self.peers[peer.0].write(bytes) { bytes.len() } else { 0 }
    }

    fn read(&mut self, peer: PeerId, max: usize, into: &mut Vec<u8>) -> PeerState {
        let peer = &self.peers[peer.0];
        let bytes = peer.read_at_most(max);
        into.extend_from_slice(&bytes);
        if bytes.len() == max {
            PeerState::Open
        } else if peer.saw_reset() {
            PeerState::Reset
        } else if peer.saw_fin() {
            PeerState::Eof
        } else {
            PeerState::Open
        }
    }

    fn shutdown(&mut self, peer: PeerId) {
        self.peers[peer.0].finish();
    }

    fn reset(&mut self, peer: PeerId) {
        self.peers[peer.0].reset();
    }

    fn narrow(&mut self, peer: PeerId) {
        self.peers[peer.0].set_window(if D::SECURES { 40_000 } else { 4096 });
    }

    fn detaches(&self) -> bool {
        false
    }

    fn tells_writes() -> bool {
        false
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(20)
    }
}

mod kind {
    use super::super::contract_suite;

    contract_suite!(super::SimHarness<0>);
}

mod rough_1 {
    use super::super::contract_suite;

    contract_suite!(super::SimHarness<1>);
}

mod rough_2 {
    use super::super::contract_suite;

    contract_suite!(super::SimHarness<2>);
}
