//! Tests of the completion driver: sandboxes, exhausted buffers and queues, early completions.

#![expect(unsafe_code, reason = "there is no safe way to set a filter without another dependency")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use shearwater_io::listen::{ListenOptions, bind};
use shearwater_io::poll::{Poll, PollOptions};
use shearwater_io::uring::{NAME, Unavailable, Uring, UringOptions, probe, probe_for};
use shearwater_io::{AcceptError, CloseKind, Driver, Event};

use crate::contract::sockets::SocketHarness;
use crate::contract::sockets::on_uring::ByCompletion;
use crate::contract::world::{Note, World, first_accepted, pattern, plain};
use crate::contract::{Harness, PeerState, Setup, is_missing};
use crate::kernel::in_a_child;

type UringHarness = SocketHarness<ByCompletion<true>>;
type UringWorld = World<UringHarness>;

fn a_listener() -> TcpListener {
    bind((Ipv4Addr::LOCALHOST, 0).into(), ListenOptions::default()).expect("a listener")
}

/// Returns a world on this driver, unless the kernel has none.
fn world(setup: Setup) -> Option<UringWorld> {
    (!is_missing::<UringHarness>()).then(|| UringWorld::with(setup))
}

fn a_driver() -> (Uring, SocketAddr) {
    let listener = a_listener();
    let address = listener.local_addr().expect("an address");
    (Uring::new(vec![listener], UringOptions::default()).expect("a driver"), address)
}

/// Checks that the readiness driver works instead: it accepts a connection.
fn the_readiness_driver_serves() {
    let listener = a_listener();
    let address = listener.local_addr().expect("an address");
    let mut driver = Poll::new(vec![listener], PollOptions::default()).expect("a driver");
    let _peer = TcpStream::connect(address).expect("connects");
    first_accepted(&mut driver);
    assert_eq!(driver.connections(), 1);
}

// A filter can't be removed: these tests run in child processes.
#[test]
fn reports_a_seccomp_filter() {
    in_a_child(|| {
        refuse_io_uring(libc::EPERM);
        assert!(matches!(probe(), Err(Unavailable::Forbidden)));
        assert!(matches!(probe_for(2), Err(Unavailable::Forbidden)));
        let error = Uring::new(vec![a_listener()], UringOptions::default()).expect_err("it is forbidden");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("seccomp"), "{error}");
        the_readiness_driver_serves();
    });
}

#[test]
fn reports_a_kernel_without_io_uring() {
    in_a_child(|| {
        refuse_io_uring(libc::ENOSYS);
        assert!(matches!(probe(), Err(Unavailable::Missing)));
        the_readiness_driver_serves();
    });
}

#[test]
fn reports_unknown_setup_flags() {
    in_a_child(|| {
        refuse_io_uring(libc::EINVAL);
        let Err(why @ Unavailable::TooOld { .. }) = probe() else { panic!("no flag is known") };
        assert!(why.to_string().contains("Linux 6.1 or later"), "{why}");
    });
}

#[test]
fn reports_a_missing_feature_in_a_sentence() {
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
fn a_successful_probe_permits_a_driver() {
    match probe() {
        Ok(report) => {
            assert!(report.to_string().starts_with("io_uring is available"));
            let driver = Uring::new(Vec::new(), UringOptions::default()).expect("a driver");
            assert_eq!(driver.name(), NAME);
        }
        Err(_) => assert!(Uring::new(Vec::new(), UringOptions::default()).is_err()),
    }
}

/// The peers send ten times the size of all buffers at once.
#[test]
fn input_beyond_all_buffers_arrives() {
    const CONNECTIONS: usize = 300;
    const BYTES: usize = 100_000;
    let Some(mut world) = world(Setup::default()) else { return };
    let peers: Vec<_> = (0..CONNECTIONS).map(|_| world.connect()).collect();
    for (number, (peer, _)) in peers.iter().enumerate() {
        let bytes = pattern(BYTES, number as u64);
        assert_eq!(world.harness.write(*peer, &bytes), BYTES, "it fits the kernel's buffers");
    }
    world.until("all has arrived", |world| {
        peers.iter().all(|(_, token)| world.page(*token).received.len() == BYTES)
    });
    for (number, (_, token)) in peers.iter().enumerate() {
        assert!(world.page(*token).received == pattern(BYTES, number as u64));
    }
}

/// A trimmed driver releases its receive buffers; later input is complete.
#[test]
fn input_arrives_whole_after_a_rest() {
    const CONNECTIONS: usize = 100;
    const BYTES: usize = 20_000;
    let Some(mut world) = world(Setup::default()) else { return };
    let peers: Vec<_> = (0..CONNECTIONS).map(|_| world.connect()).collect();
    for round in 1..=2 {
        for (number, (peer, _)) in peers.iter().enumerate() {
            let bytes = pattern(BYTES, (round * CONNECTIONS + number) as u64);
            assert_eq!(world.harness.write(*peer, &bytes), BYTES, "it fits the kernel's buffers");
        }
        world.until("all has arrived", |world| {
            peers.iter().all(|(_, token)| world.page(*token).received.len() == round * BYTES)
        });
        for (number, (_, token)) in peers.iter().enumerate() {
            let last = &world.page(*token).received[(round - 1) * BYTES..];
            assert!(last == pattern(BYTES, (round * CONNECTIONS + number) as u64));
        }
        world.until("the driver rests", |world| world.driver().rest());
    }
}

/// S7: a response whose end nobody awaits has no event and ends no wait.
#[test]
fn an_unawaited_end_takes_no_turn() {
    const EXCHANGES: usize = 50;
    if !probe().is_ok_and(|report| report.silent_sends) {
        println!("skipped: each send has a completion here");
        return;
    }
    let (mut driver, address) = a_driver();
    let asking = thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("connects");
        for _ in 0..EXCHANGES {
            stream.write_all(b"?").expect("the queue has room");
            stream.read_exact(&mut [0; 6]).expect("it is answered");
        }
    });
    let token = first_accepted(&mut driver);
    let (mut turns, mut responded) = (0, 0);
    while responded < EXCHANGES {
        driver.wait(None).expect("the driver waits");
        turns += 1;
        while let Some(event) = driver.next() {
            assert!(matches!(event, Event::Received { .. }), "{event:?}");
            assert!(driver.send_at_once(token, &mut plain(b"answer"), || false));
            responded += 1;
        }
    }
    driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
    asking.join().expect("all was answered");
    assert!(turns < EXCHANGES + 10, "{turns}");
}

/// Each worker's driver can be made right after the probe.
#[test]
fn a_probe_for_workers_leaves_room_for_them() {
    const WORKERS: usize = 4;
    if is_missing::<UringHarness>() {
        return;
    }
    assert_eq!(probe_for(WORKERS).expect("there is room"), probe().expect("it works"));
    let drivers: Vec<_> = (0..WORKERS).map(|_| a_driver()).collect();
    assert_eq!(drivers.len(), WORKERS);
}

/// More entries in one turn than their queue holds, and more completions than theirs.
#[test]
fn full_queues_lose_nothing() {
    const CONNECTIONS: usize = 2200;
    let Some(mut world) = world(Setup::default()) else { return };
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

/// One wait submits all entries before it sleeps, however many queues they fill: the last of these has input.
#[test]
fn submits_entries_beyond_two_queues_before_the_wait() {
    const CONNECTIONS: usize = 900;
    let Some(mut world) = world(Setup::default()) else { return };
    let mut peers = Vec::new();
    while peers.len() < CONNECTIONS {
        peers.extend((0..100).map(|_| world.harness.connect(0)));
        world.until("they are accepted", |world| world.accepted.len() == peers.len());
    }
    let tokens = world.accepted.clone();
    // No more at once than there are buffers: a connection without one is disarmed before the first part.
    for (peers, tokens) in peers.chunks(50).zip(tokens.chunks(50)) {
        for (peer, token) in peers.iter().zip(tokens) {
            world.recv_pause(*token);
            world.harness.write(*peer, b"x");
        }
        world.until("what was armed has ended", |world| {
            tokens.iter().all(|token| world.page(*token).received == b"x")
        });
    }
    world.idle();
    world.harness.write(peers[CONNECTIONS - 1], b"y");
    for token in &tokens {
        world.recv_resume(*token);
    }
    world.turn(1000);
    assert_eq!(world.page(tokens[CONNECTIONS - 1]).received, b"xy", "it lay in the socket all the time");
}

/// R3: the first input during a pause is the last, though the entry would bring more.
#[test]
fn a_pause_disarms_with_the_first_input() {
    let Some(mut world) = world(Setup::default()) else { return };
    let (peer, token) = world.connect();
    world.idle();
    world.recv_pause(token);
    for piece in [b"a", b"b", b"c"] {
        world.harness.write(peer, piece);
        world.idle();
    }
    assert_eq!(world.page(token).received, b"a");
    world.recv_resume(token);
    world.until("the rest is heard", |world| world.page(token).received == b"abc");
}

/// A descriptor number that an entry names is not free before the entry has ended: another connection would
/// get it.
#[test]
fn entries_of_a_closed_connection_read_no_other_input() {
    if is_missing::<UringHarness>() {
        return;
    }
    let (mut driver, address) = a_driver();
    let _peer = TcpStream::connect(address).expect("connects");
    let token = first_accepted(&mut driver);
    // Its receive is queued, and it is closed before the kernel gets the entry.
    driver.close(token, CloseKind::Reset);
    let (mut ours, mut theirs) = UnixStream::pair().expect("a pair");
    theirs.write_all(b"not for you").expect("the queue has room");
    let mut closed = false;
    for _ in 0..100 {
        driver.wait(Some(Duration::from_millis(5))).expect("the driver waits");
        while let Some(event) = driver.next() {
            closed |= matches!(event, Event::Closed { .. });
        }
    }
    assert!(closed);
    ours.set_nonblocking(true).expect("it can");
    assert_eq!(ours.read(&mut [0; 20]).expect("it is still there"), 11);
}

/// Slots that run out while connections come are used up to the last one, and none beyond.
#[test]
fn a_crowd_fills_the_driver_exactly() {
    const ROOM: usize = 600;
    let Some(mut world) = world(Setup { connections_max: ROOM, ..Setup::default() }) else { return };
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
    assert_eq!(world.count(|note| *note == failed), 1, "reported once");
    for token in world.accepted.clone().into_iter().take(100) {
        world.close_and_wait(token);
    }
    world.driver().accept_resume();
    world.until("the rest gets in", |world| world.accepted.len() == connected);
}

/// C5: detaching returns the bytes in buffers, which precede those in the socket.
#[test]
fn detach_returns_input_from_buffers() {
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
    let detached = world.detach(token).expect("the connection is detached");
    assert!(!detached.unread.is_empty(), "the kernel was ahead");
    got.extend_from_slice(&detached.unread);
    world.close_and_wait(token);
    let mut stream = TcpStream::from(detached.descriptor);
    stream.set_nonblocking(false).expect("it can block");
    let before = got.len();
    got.resize(bytes.len(), 0);
    stream.read_exact(&mut got[before..]).expect("the rest is in the socket");
    assert!(got == bytes);
}

/// Dropping a driver ends all of its kernel operations: addresses are free, peers are notified.
#[test]
fn a_dropped_driver_leaves_nothing_behind() {
    if is_missing::<UringHarness>() {
        return;
    }
    let listener = a_listener();
    let address = listener.local_addr().expect("an address");
    let mut listener = Some(listener);
    for _ in 0..30 {
        let listener = listener
            .take()
            .unwrap_or_else(|| bind(address, ListenOptions::default()).expect("the address is free again"));
        let mut driver = Uring::new(vec![listener], UringOptions::default()).expect("a driver");
        let mut peer = TcpStream::connect(address).expect("connects");
        let token = first_accepted(&mut driver);
        // In flight at the end: an accept, a receive, a send that the peer doesn't read, and a queued one.
        driver.send(token, plain(&pattern(8_000_000, 1)));
        drop(driver);
        let ended = peer.read_to_end(&mut Vec::new());
        assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    }
}

/// Connections accepted by the kernel but not yet reported are closed with the driver.
#[test]
fn a_dropped_driver_closes_what_it_has_accepted() {
    if is_missing::<UringHarness>() {
        return;
    }
    let (mut driver, address) = a_driver();
    driver.wait(Some(Duration::ZERO)).expect("the driver waits");
    let peers: Vec<_> = (0..10).map(|_| TcpStream::connect(address).expect("connects")).collect();
    driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
    drop(driver);
    for mut peer in peers {
        peer.set_read_timeout(Some(Duration::from_secs(2))).expect("it can");
        let ended = peer.read(&mut [0; 1]);
        assert!(
            matches!(&ended, Ok(0))
                || ended.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset),
            "{ended:?}"
        );
    }
}

/// Large heads that each get a response don't count as uploads: otherwise a partial head would occupy memory
/// while its rest waits.
#[test]
fn large_heads_are_no_uploads() {
    const CLIENTS: usize = 40;
    // Three buffers, the last of them partly filled.
    const HEAD: usize = 35_000;
    const ROUNDS: usize = 12;
    let Some(mut world) = world(Setup::default()) else { return };
    let clients: Vec<_> = (0..CLIENTS).map(|_| world.connect()).collect();
    world.idle();
    let head = pattern(HEAD, 1);
    for round in 1..=ROUNDS {
        for (peer, _) in &clients {
            world.peer_writes(*peer, &head);
        }
        let mut turns = 0;
        while clients.iter().any(|(_, token)| world.page(*token).received.len() < round * HEAD) {
            world.turn(5);
            turns += 1;
        }
        // With an upload's share it would be two clients a turn.
        assert!(turns < CLIENTS / 2, "{turns} turns in round {round}");
        for (_, token) in &clients {
            world.send(*token, plain(b"an answer"));
        }
        world.until("all are answered", |world| clients.iter().all(|(_, token)| !world.is_sending(*token)));
    }
}

/// Makes the kernel refuse to set up a ring, with this error.
fn refuse_io_uring(errno: i32) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut program = [
        // The call's number is the first field of the filter's input.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: libc::SYS_io_uring_setup as u32,
        },
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: this option takes numbers only.
    let promised = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(promised, 0, "no new privileges");
    // SAFETY: the program is read during the call. It applies to all threads, including those that a test
    // starts.
    let set = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const filter,
        )
    };
    assert_eq!(set, 0, "the filter is set");
}

#[test]
fn a_probe_interrupts_no_later_call_of_its_thread() {
    use std::io::{ErrorKind, Read};
    let (mut ours, _theirs) = std::os::unix::net::UnixStream::pair().expect("sockets");
    ours.set_read_timeout(Some(std::time::Duration::from_millis(20))).expect("a timeout");
    for _ in 0..20 {
        // It may be forbidden here; then nothing is left either.
        drop(shearwater_io::uring::probe_for(2));
        let error = ours.read(&mut [0]).expect_err("nobody writes");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
}
