//! The suite on the kernel's drivers: real sockets on the loopback interface.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use shearwater_io::inbox::{InboxSender, inbox};
use shearwater_io::listen::{ListenOptions, bind};
use shearwater_io::os::raise_descriptor_limit;
use shearwater_io::poll::{Poll, PollOptions};
use shearwater_io::{Driver, Entrances, Listener, ListenerId};
use socket2::SockRef;

use super::{Harness, PeerId, PeerState, Setup};

/// Maximum descriptors of the whole test program.
const DESCRIPTORS: u64 = 20_000;

/// A driver of real sockets.
pub(crate) trait Kernel {
    type Driver: Driver;

    /// Creates a driver over these entrances.
    fn driver(entrances: impl Into<Entrances>, setup: Setup) -> io::Result<Self::Driver>;

    /// Returns the reason if this system has none.
    fn missing() -> Option<String> {
        None
    }
}

/// The readiness driver.
pub(crate) struct ByReadiness;

impl Kernel for ByReadiness {
    type Driver = Poll;

    fn driver(entrances: impl Into<Entrances>, setup: Setup) -> io::Result<Poll> {
        let Setup { connections_max, recv_buffer_bytes, .. } = setup;
        Poll::new(entrances, PollOptions { connections_max, recv_buffer_bytes })
    }
}

/// A driver, and clients on the same thread.
pub(crate) struct SocketHarness<K: Kernel> {
    driver: K::Driver,
    listeners: Vec<SocketAddr>,
    shared: Vec<TcpListener>,
    peers: Vec<Option<TcpStream>>,
    addresses: Vec<SocketAddr>,
    /// Acceptor for the driver's inbox.
    foreign: TcpListener,
    sender: Option<InboxSender>,
}

impl<K: Kernel> SocketHarness<K> {
    fn stream(&mut self, peer: PeerId) -> &mut TcpStream {
        self.peers[peer.0].as_mut().expect("the peer is still there")
    }
}

impl<K: Kernel> Harness for SocketHarness<K> {
    type Driver = K::Driver;

    fn missing() -> Option<String> {
        K::missing()
    }

    fn new(setup: Setup) -> Self {
        raise_descriptor_limit(DESCRIPTORS).expect("the limit can be raised");
        let options = ListenOptions::default();
        let listeners: Vec<_> = (0..setup.listeners)
            .map(|_| bind((Ipv4Addr::LOCALHOST, 0).into(), options).expect("a listener"))
            .collect();
        let addresses = listeners.iter().map(|listener| listener.local_addr().expect("an address")).collect();
        let share = |listener: &TcpListener| listener.try_clone().expect("one more descriptor");
        let shared = listeners.iter().filter(|_| setup.shares_listeners).map(share).collect();
        let mut entrances = Entrances::from(listeners);
        let mut sender = None;
        if setup.inbox > 0 {
            let (its_sender, inbox) = inbox(setup.inbox);
            (sender, entrances.inbox) = (Some(its_sender), inbox);
        }
        let driver = K::driver(entrances, setup).expect("a driver");
        let foreign = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        Self {
            driver,
            listeners: addresses,
            shared,
            peers: Vec::new(),
            addresses: Vec::new(),
            foreign,
            sender,
        }
    }

    fn driver(&mut self) -> &mut K::Driver {
        &mut self.driver
    }

    fn connect(&mut self, listener: usize) -> PeerId {
        let stream = TcpStream::connect(self.listeners[listener]).expect("the kernel's queue takes it");
        stream.set_nonblocking(true).expect("non-blocking");
        self.addresses.push(stream.local_addr().expect("its own address"));
        self.peers.push(Some(stream));
        PeerId(self.peers.len() - 1)
    }

    fn hand_over(&mut self, listener: ListenerId) -> Option<PeerId> {
        let address = self.foreign.local_addr().expect("an address");
        let peer = TcpStream::connect(address).expect("the kernel's queue takes it");
        let accepted = self.foreign.accept().expect("it is there").0;
        accepted.set_nonblocking(true).expect("non-blocking");
        self.sender.as_ref().expect("an inbox").offer(accepted.into(), listener).ok()?;
        peer.set_nonblocking(true).expect("non-blocking");
        self.addresses.push(peer.local_addr().expect("its own address"));
        self.peers.push(Some(peer));
        Some(PeerId(self.peers.len() - 1))
    }

    fn wake_inbox(&mut self) {
        self.sender.as_ref().expect("an inbox").wake();
    }

    fn end_inbox(&mut self) {
        self.sender = None;
    }

    fn address(&self, peer: PeerId) -> Option<SocketAddr> {
        self.addresses.get(peer.0).copied()
    }

    fn add_listener(&mut self) -> usize {
        let socket = bind((Ipv4Addr::LOCALHOST, 0).into(), ListenOptions::default()).expect("a listener");
        let index = self.listeners.len();
        self.listeners.push(socket.local_addr().expect("an address"));
        let id = ListenerId::try_from(index).expect("a few listeners");
        self.driver.listener_add(Listener::new(socket.into(), id));
        index
    }

    fn refused(&mut self, listener: usize) -> bool {
        TcpStream::connect(self.listeners[listener]).is_err()
    }

    fn fail_listener(&mut self, listener: usize) -> i32 {
        SockRef::from(&self.shared[listener]).shutdown(std::net::Shutdown::Both).expect("it listens");
        rustix::io::Errno::INVAL.raw_os_error()
    }

    fn write(&mut self, peer: PeerId, bytes: &[u8]) -> usize {
        let stream = self.stream(peer);
        let mut done = 0;
        while done < bytes.len() {
            match stream.write(&bytes[done..]) {
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("the peer can't write: {error}"),
            }
        }
        done
    }

    fn read(&mut self, peer: PeerId, max: usize, into: &mut Vec<u8>) -> PeerState {
        let stream = self.stream(peer);
        let mut chunk = vec![0; 64 * 1024];
        let mut left = max;
        while left > 0 {
            let most = left.min(chunk.len());
            match stream.read(&mut chunk[..most]) {
                Ok(0) => return PeerState::Eof,
                Ok(count) => {
                    into.extend_from_slice(&chunk[..count]);
                    left -= count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return PeerState::Reset,
                Err(error) => panic!("the peer can't read: {error}"),
            }
        }
        PeerState::Open
    }

    fn shutdown(&mut self, peer: PeerId) {
        self.stream(peer).shutdown(std::net::Shutdown::Write).expect("the peer can end its side");
    }

    fn reset(&mut self, peer: PeerId) {
        let stream = self.peers[peer.0].take().expect("the peer is still there");
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("linger can be set");
    }

    fn narrow(&mut self, peer: PeerId) {
        SockRef::from(&*self.stream(peer)).set_recv_buffer_size(4096).expect("a small window");
    }

    fn detaches(&self) -> bool {
        true
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(20)
    }
}

mod on_poll {
    super::super::contract_suite!(super::SocketHarness<super::ByReadiness>);
}

/// The completion driver, with multishot receives and with one entry per receive.
#[cfg(target_os = "linux")]
pub(crate) mod on_uring {
    use std::io;

    use shearwater_io::Entrances;
    use shearwater_io::uring::{Uring, UringOptions, probe};

    use super::super::Setup;
    use super::Kernel;

    /// The completion driver, with or without multishot receives.
    pub(crate) struct ByCompletion<const MULTISHOT: bool>;

    impl<const MULTISHOT: bool> Kernel for ByCompletion<MULTISHOT> {
        type Driver = Uring;

        fn driver(entrances: impl Into<Entrances>, setup: Setup) -> io::Result<Uring> {
            let Setup { connections_max, recv_buffer_bytes, .. } = setup;
            let bounds = UringOptions { connections_max, recv_buffer_bytes, ..UringOptions::default() };
            Uring::new(entrances, UringOptions { multishot: MULTISHOT, ..bounds })
        }

        fn missing() -> Option<String> {
            probe().err().map(|why| why.to_string())
        }
    }

    /// The completion driver, whose idle connections have no descriptor.
    pub(crate) struct Stored<const MULTISHOT: bool>;

    impl<const MULTISHOT: bool> Kernel for Stored<MULTISHOT> {
        type Driver = Uring;

        fn driver(entrances: impl Into<Entrances>, setup: Setup) -> io::Result<Uring> {
            let Setup { connections_max, recv_buffer_bytes, .. } = setup;
            let bounds = UringOptions { connections_max, recv_buffer_bytes, ..UringOptions::default() };
            Uring::new(entrances, UringOptions { multishot: MULTISHOT, descriptors_max: 0, ..bounds })
        }

        fn missing() -> Option<String> {
            match probe() {
                Ok(report) => (!report.stores_files()).then(|| "this kernel can't store files".to_owned()),
                Err(why) => Some(why.to_string()),
            }
        }
    }

    mod multishot {
        use super::super::super::contract_suite;

        contract_suite!(super::super::SocketHarness<super::ByCompletion<true>>);
    }

    mod one_by_one {
        use super::super::super::contract_suite;

        contract_suite!(super::super::SocketHarness<super::ByCompletion<false>>);
    }

    mod stored {
        use super::super::super::contract_suite;

        contract_suite!(super::super::SocketHarness<super::Stored<true>>);
    }

    mod stored_one_by_one {
        use super::super::super::contract_suite;

        contract_suite!(super::super::SocketHarness<super::Stored<false>>);
    }
}
