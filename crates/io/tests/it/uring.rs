//! The completion driver's own: what guards forbid, buffers and queues that run out, what the kernel has taken early.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use shearwater_io::limits::QUIET_MS;
use shearwater_io::listen::{ListenOptions, bind};
use shearwater_io::poll::{Poll, PollOptions};
use shearwater_io::uring::{NAME, Unavailable, Uring, UringOptions, probe};
use shearwater_io::{AcceptError, CloseKind, Driver};

use crate::contract::harness::{Harness, PeerState, Setup, is_missing};
use crate::contract::on_uring::ByCompletion;
use crate::contract::sockets::SocketHarness;
use crate::contract::world::{Note, World, first_accepted, pattern, plain};

mod filter;

type UringHarness = SocketHarness<ByCompletion<true>>;
type UringWorld = World<UringHarness>;

/// Says to the test program that it is the child that guards are set against.
const CHILD: &str = "SHEARWATER_IO_TEST_CHILD";

fn a_listener() -> TcpListener {
    bind((Ipv4Addr::LOCALHOST, 0).into(), ListenOptions::default()).expect("a listener")
}

/// A filter can't be taken off again, so these tests run in processes of their own.
fn in_a_child(test: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        return test();
    }
    let program = std::env::current_exe().expect("the test program has a path");
    // A test's thread has the test's name.
    let this = thread::current();
    let arguments = ["--exact", this.name().expect("it has a name"), "--nocapture"];
    let output = Command::new(program).args(arguments).env(CHILD, "1").output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What is there instead works: a connection is accepted.
fn the_readiness_driver_serves() {
    let listener = a_listener();
    let address = listener.local_addr().expect("its address");
    let mut driver = Poll::new(vec![listener], PollOptions::default()).expect("a driver");
    let _peer = TcpStream::connect(address).expect("connects");
    first_accepted(&mut driver);
    assert_eq!(driver.connections(), 1);
}

#[test]
fn a_filter_that_forbids_it_is_told() {
    in_a_child(|| {
        filter::refuse_io_uring(libc::EPERM);
        assert!(matches!(probe(), Err(Unavailable::Forbidden)));
        let error = Uring::new(vec![a_listener()], UringOptions::default()).expect_err("it is forbidden");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("seccomp"), "{error}");
        the_readiness_driver_serves();
    });
}

#[test]
fn a_kernel_without_it_is_told() {
    in_a_child(|| {
        filter::refuse_io_uring(libc::ENOSYS);
        assert!(matches!(probe(), Err(Unavailable::Missing)));
        the_readiness_driver_serves();
    });
}

#[test]
fn flags_that_a_kernel_does_not_know_are_told() {
    in_a_child(|| {
        filter::refuse_io_uring(libc::EINVAL);
        let Err(why @ Unavailable::TooOld { .. }) = probe() else { panic!("no flag is known") };
        assert!(why.to_string().contains("Linux 6.1 or later"), "{why}");
    });
}

#[test]
fn what_is_missing_is_told_in_a_sentence() {
    let all = [
        Unavailable::Forbidden,
        Unavailable::Missing,
        Unavailable::TooOld { lacks: "something" },
        Unavailable::Memory,
        Unavailable::Other(ErrorKind::TimedOut.into()),
    ];
    for why in all {
        let sentence = why.to_string();
        assert!(sentence.contains("io_uring") && !sentence.contains("  "), "{sentence}");
    }
}

#[test]
fn what_is_found_makes_a_driver() {
    match probe() {
        Ok(report) => {
            assert!(report.to_string().starts_with("io_uring is available"));
            let driver = Uring::new(Vec::new(), UringOptions::default()).expect("a driver");
            assert_eq!(driver.name(), NAME);
        }
        Err(_) => assert!(Uring::new(Vec::new(), UringOptions::default()).is_err()),
    }
}

/// All at once bring in ten times what the buffers hold.
#[test]
fn input_beyond_all_buffers_arrives() {
    const CONNECTIONS: usize = 300;
    const BYTES: usize = 100_000;
    if is_missing::<UringHarness>() {
        return;
    }
    let mut world = UringWorld::new();
    let peers: Vec<_> = (0..CONNECTIONS).map(|_| world.connect()).collect();
    for (number, (peer, _)) in peers.iter().enumerate() {
        let bytes = pattern(BYTES, number as u64);
        assert_eq!(world.harness.write(*peer, &bytes), BYTES, "the kernel's buffers take it");
    }
    world.until("all has arrived", |world| {
        peers.iter().all(|(_, token)| world.page(*token).received.len() == BYTES)
    });
    for (number, (_, token)) in peers.iter().enumerate() {
        assert!(world.page(*token).received == pattern(BYTES, number as u64));
    }
}

/// A driver that hears nothing for a while lets go of what it received into; what comes later is whole.
#[test]
fn input_arrives_whole_after_a_quiet_moment() {
    const CONNECTIONS: usize = 100;
    const BYTES: usize = 20_000;
    if is_missing::<UringHarness>() {
        return;
    }
    let mut world = UringWorld::new();
    let peers: Vec<_> = (0..CONNECTIONS).map(|_| world.connect()).collect();
    for round in 1..=2 {
        for (number, (peer, _)) in peers.iter().enumerate() {
            let bytes = pattern(BYTES, (round * CONNECTIONS + number) as u64);
            assert_eq!(world.harness.write(*peer, &bytes), BYTES, "the kernel's buffers take it");
        }
        world.until("all has arrived", |world| {
            peers.iter().all(|(_, token)| world.page(*token).received.len() == round * BYTES)
        });
        for (number, (_, token)) in peers.iter().enumerate() {
            let last = &world.page(*token).received[(round - 1) * BYTES..];
            assert!(last == pattern(BYTES, (round * CONNECTIONS + number) as u64));
        }
        // What is left to do, then the quiet moment itself: it is long enough within the first of two.
        for _ in 0..2 {
            world.wait(QUIET_MS + 100);
            assert!(world.step().is_none(), "nobody has anything to say");
        }
    }
}

/// More entries in one turn than the queue of entries holds, and more completions than theirs.
#[test]
fn full_queues_lose_nothing() {
    const CONNECTIONS: usize = 2200;
    if is_missing::<UringHarness>() {
        return;
    }
    let mut world = UringWorld::new();
    let mut peers = Vec::new();
    while peers.len() < CONNECTIONS {
        peers.extend((0..200).map(|_| world.harness.connect(0)));
        world.until("they are accepted", |world| world.accepted.len() == peers.len());
    }
    let tokens = world.accepted.clone();
    for token in &tokens {
        world.send(*token, plain(b"goodbye"));
        world.close(*token, CloseKind::Normal);
    }
    world.until("all are closed", |world| tokens.iter().all(|token| world.page(*token).closed));
    for peer in peers {
        let (state, got) = world.peer_ends(peer);
        assert_eq!((state, &got[..]), (PeerState::Eof, &b"goodbye"[..]));
    }
}

/// Where room gets scarce connections are accepted one by one: none is taken that there is no room for.
#[test]
fn a_crowd_fills_the_driver_exactly() {
    const ROOM: usize = 600;
    if is_missing::<UringHarness>() {
        return;
    }
    let mut world = UringWorld::with(Setup { connections_max: ROOM, ..Setup::default() });
    let mut connected = 0;
    while connected < ROOM + 100 {
        for _ in 0..50 {
            world.harness.connect(0);
        }
        connected += 50;
        world.idle();
    }
    let failed = Note::AcceptFailed(AcceptError::ProcessDescriptors);
    world.until("it is full", |world| world.accepted.len() == ROOM && world.notes.contains(&failed));
    assert_eq!(world.count(|note| *note == failed), 1, "said once");
    for token in world.accepted.clone().into_iter().take(100) {
        world.close_and_wait(token);
    }
    world.driver().accept_resume();
    world.until("the rest gets in", |world| world.accepted.len() == connected);
}

/// A driver that is exactly full and that nobody else wants to reach has nothing to say.
#[test]
fn full_is_told_when_somebody_comes() {
    if is_missing::<UringHarness>() {
        return;
    }
    let mut world = UringWorld::with(Setup { connections_max: 3, ..Setup::default() });
    for _ in 0..3 {
        world.connect();
    }
    world.idle();
    assert_eq!(world.count(|note| matches!(note, Note::AcceptFailed(_))), 0);
    world.harness.connect(0);
    world.until("it says so", |world| world.count(|note| matches!(note, Note::AcceptFailed(_))) == 1);
    assert_eq!(world.accepted.len(), 3);
}

/// C5: what the kernel has put into buffers goes along, and comes before what the descriptor gives.
#[test]
fn a_detached_connection_takes_its_input_along() {
    if !probe().is_ok_and(|report| report.limited_multishot) {
        println!("skipped: this kernel takes no more than is asked for");
        return;
    }
    // Small buffers: some of the input is delivered, some waits for the next turn, some is in the socket.
    let mut world = UringWorld::with(Setup { recv_buffer_bytes: 64, ..Setup::default() });
    let (peer, token) = world.connect();
    world.idle(); // armed, and waiting
    let bytes = pattern(2000, 1);
    assert_eq!(world.harness.write(peer, &bytes), bytes.len());
    world.wait(1000);
    assert!(matches!(world.step(), Some(Note::Received(..))), "it begins to arrive");
    let mut got = world.page(token).received.clone();
    let detached = world.driver().detach(token).expect("it is handed out");
    assert!(!detached.unread.is_empty(), "the kernel was ahead");
    got.extend_from_slice(&detached.unread);
    world.mark_detached(token);
    world.until("the driver is done with it", |world| world.page(token).closed);
    let mut stream = TcpStream::from(detached.descriptor);
    stream.set_nonblocking(false).expect("it can block");
    let before = got.len();
    got.resize(bytes.len(), 0);
    stream.read_exact(&mut got[before..]).expect("the rest is in the socket");
    assert!(got == bytes);
}

/// The end of a driver ends all that the kernel does for it: addresses are free, peers hear of it.
#[test]
fn a_dropped_driver_leaves_nothing_behind() {
    if is_missing::<UringHarness>() {
        return;
    }
    let listener = a_listener();
    let address = listener.local_addr().expect("its address");
    let mut listener = Some(listener);
    for _ in 0..30 {
        let listener = listener
            .take()
            .unwrap_or_else(|| bind(address, ListenOptions::default()).expect("the address is free again"));
        let mut driver = Uring::new(vec![listener], UringOptions::default()).expect("a driver");
        let mut peer = TcpStream::connect(address).expect("connects");
        let token = first_accepted(&mut driver);
        // In flight at the end: an accept, a receive, a send that nobody reads, and one more in the queue.
        driver.send(token, plain(&pattern(8_000_000, 1)));
        drop(driver);
        let ended = peer.read_to_end(&mut Vec::new());
        assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    }
}
