//! The acceptor: batches, full inboxes, the end.

use std::io::Read;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::io::Errno;
use shearwater_io::acceptor::{Acceptor, Progress, StopKind};
use shearwater_io::inbox::inbox;
use shearwater_io::limits::ACCEPTS_PER_TURN_MAX;
use shearwater_io::poll::{Poll, PollOptions};
use shearwater_io::{Dispatcher, Driver, Entrances, Event, Listener, Token};
use socket2::SockRef;

/// Turns after which a missing event counts as lost.
const TURNS_MAX: usize = 1000;

/// An acceptor of one listener, and drivers whose inboxes hold `capacity`.
struct AcceptorWorld {
    /// `None` once it has ended.
    acceptor: Option<Acceptor>,
    drivers: Vec<Poll>,
    address: SocketAddr,
}

impl AcceptorWorld {
    fn new(workers: usize, capacity: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        Self::with(vec![Listener::new(listener.into(), 3)], workers, capacity)
    }

    fn with(listeners: Vec<Listener>, workers: usize, capacity: usize) -> Self {
        let address = SockRef::from(&listeners[0]).local_addr().expect("an address");
        let address = address.as_socket().expect("of TCP");
        let (senders, inboxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| inbox(capacity)).unzip();
        let driver = |inbox| {
            let entrances = Entrances { inbox, ..Entrances::default() };
            Poll::new(entrances, PollOptions::default()).expect("a driver")
        };
        let drivers = inboxes.into_iter().map(driver).collect();
        let acceptor = Acceptor::new(listeners, Dispatcher::new(senders), 10).expect("an acceptor");
        Self { acceptor: Some(acceptor), drivers, address }
    }

    fn connect(&self, count: usize) -> Vec<TcpStream> {
        (0..count).map(|_| TcpStream::connect(self.address).expect("the kernel's queue takes it")).collect()
    }

    fn stop(&mut self, kind: StopKind) {
        self.acceptor.as_mut().expect("it has not ended").stop(kind);
    }

    /// Runs a turn without waiting. Drops the acceptor at its end.
    fn turn(&mut self) -> Progress {
        let acceptor = self.acceptor.as_mut().expect("it has not ended");
        acceptor.waker().wake();
        let progress = acceptor.turn().expect("the driver waits");
        if progress == Progress::Over {
            self.acceptor = None;
        }
        progress
    }

    /// Runs turns until `progress`; returns the number of `Full` reports before.
    #[track_caller]
    fn until(&mut self, progress: Progress) -> usize {
        let mut full = 0;
        for _ in 0..TURNS_MAX {
            match self.turn() {
                said if said == progress => return full,
                said => full += usize::from(said == Progress::Full),
            }
        }
        panic!("{progress:?} does not come")
    }
}

/// Returns the connections that a driver accepts in a few turns without waiting, and whether accepting has
/// stopped.
fn announced(driver: &mut Poll) -> (Vec<Token>, bool) {
    let (mut tokens, mut stopped) = (Vec::new(), false);
    for _ in 0..10 {
        driver.wait(Some(Duration::ZERO)).expect("the driver waits");
        while let Some(event) = driver.next() {
            match event {
                Event::Accepted { token, listener } => {
                    assert_eq!(listener, 3, "the acceptor's number");
                    tokens.push(token);
                }
                Event::AcceptStopped => stopped = true,
                _ => {}
            }
        }
    }
    (tokens, stopped)
}

#[test]
fn distributes_connections_in_turn() {
    let mut world = AcceptorWorld::new(3, 100);
    let peers = world.connect(90);
    for _ in 0..TURNS_MAX {
        world.turn();
        world.drivers.iter_mut().for_each(|driver| drop(announced(driver)));
        if world.drivers.iter().map(Driver::connections).sum::<usize>() == peers.len() {
            break;
        }
    }
    assert_eq!(world.drivers.iter().map(Driver::connections).collect::<Vec<_>>(), [30, 30, 30]);
}

#[test]
fn waits_for_room_if_all_workers_are_full() {
    let mut world = AcceptorWorld::new(2, 4);
    let _peers = world.connect(20);
    assert_eq!(world.until(Progress::Full), 0);
    assert_eq!(world.turn(), Progress::Paused, "reported once, and no room yet");
    let (first, _) = announced(&mut world.drivers[0]);
    assert_eq!(first.len(), 4);
    // The driver with room gets the next four, and the acceptor waits again.
    assert_eq!(world.turn(), Progress::Full);
    let (second, _) = announced(&mut world.drivers[1]);
    assert_eq!(second.len(), 4, "the earlier connections");
    let mut taken = 8;
    for _ in 0..TURNS_MAX {
        world.turn();
        taken += announced(&mut world.drivers[0]).0.len() + announced(&mut world.drivers[1]).0.len();
        if taken == 20 {
            return;
        }
    }
    panic!("{taken} of 20 came through");
}

#[test]
fn a_drain_hands_out_all_queued_connections() {
    let mut world = AcceptorWorld::new(2, 4);
    let _peers = world.connect(30);
    assert_eq!(world.until(Progress::Full), 0);
    world.stop(StopKind::Drain);
    world.drivers.iter_mut().for_each(Driver::accept_stop);
    let (mut taken, mut stopped) = (0, 0);
    for _ in 0..TURNS_MAX {
        if world.acceptor.is_some() {
            assert_eq!(stopped, 0, "more may come from the acceptor");
            world.turn();
        }
        for driver in &mut world.drivers {
            let (tokens, has_stopped) = announced(driver);
            taken += tokens.len();
            stopped += usize::from(has_stopped);
        }
        if stopped == 2 {
            assert_eq!(taken, 30, "no connection is lost");
            return assert!(TcpStream::connect(world.address).is_err(), "the listener is closed");
        }
    }
    panic!("{taken} of 30 came through, {stopped} of 2 have stopped");
}

#[test]
fn a_stop_at_once_does_not_wait() {
    let mut world = AcceptorWorld::new(1, 4);
    let mut peers = world.connect(8);
    assert_eq!(world.until(Progress::Full), 0);
    world.stop(StopKind::Drain);
    world.stop(StopKind::AtOnce);
    world.stop(StopKind::Drain);
    assert_eq!(world.until(Progress::Over), 0);
    assert_eq!(announced(&mut world.drivers[0]).0.len(), 4);
    // The others are notified at once: by an end or by a reset.
    for peer in &mut peers[4..] {
        peer.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let read = peer.read(&mut [0]);
        assert!(read.as_ref().is_ok_and(|count| *count == 0) || is_reset(&read), "{read:?}");
    }
}

fn is_reset(read: &std::io::Result<usize>) -> bool {
    read.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

#[test]
fn ends_without_workers() {
    let mut world = AcceptorWorld::new(2, 4);
    world.drivers.clear();
    let _peer = world.connect(1);
    world.until(Progress::Over);
    assert!(TcpStream::connect(world.address).is_err(), "the listener is closed");
}

#[test]
fn a_turn_takes_a_bounded_number() {
    let mut world = AcceptorWorld::new(1, 1000);
    let _peers = world.connect(ACCEPTS_PER_TURN_MAX + 10);
    while world.drivers[0].connections() == 0 {
        world.turn();
        let (tokens, _) = announced(&mut world.drivers[0]);
        assert!(tokens.len() <= ACCEPTS_PER_TURN_MAX, "{} in one turn", tokens.len());
    }
}

#[test]
fn reports_a_failed_listener_once_and_accepts_on_the_others() {
    let [living, dead] = [0; 2].map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener"));
    let shared = dead.try_clone().expect("one more descriptor");
    let listeners = vec![Listener::new(living.into(), 3), Listener::new(dead.into(), 4)];
    let mut world = AcceptorWorld::with(listeners, 1, 4);
    world.turn();
    SockRef::from(&shared).shutdown(Shutdown::Both).expect("it listens");
    world.until(Progress::ListenerFailed { listener: 4, errno: Errno::INVAL.raw_os_error() });
    let _peer = world.connect(1);
    while world.drivers[0].connections() == 0 {
        assert_eq!(world.turn(), Progress::Open, "reported once");
        announced(&mut world.drivers[0]);
    }
    world.stop(StopKind::Drain);
    world.until(Progress::Over);
}
