//! The drivers on the real kernel: exhausted descriptors, wakes during a wait, segments, files without
//! `sendfile`, socket options.

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shearwater_io::limits::{
    EVENTS_PER_WAIT_MAX, FETCH_BYTES, SEND_ACCEPTED_BYTES_MIN, SEND_UNSENT_BYTES_FIRST, SEND_UNSENT_BYTES_MAX,
};
use shearwater_io::listen::{ListenOptions, bind};
use shearwater_io::os::open_descriptors;
use shearwater_io::{AcceptError, CloseKind, Driver, Event, SharedFile};
use socket2::SockRef;

use crate::contract::sockets::{ByReadiness, Kernel, SocketHarness};
use crate::contract::world::{
    Ended, Note, SentAs, World, detach, file_of, first_accepted, pattern, plain, with_file,
};
use crate::contract::{Harness, PeerId, PeerState, Setup, is_missing};

use crate::shares::{
    copied_files_take_more_turns, downloads_progress_side_by_side, long_sends_start_after_other_work,
    many_small_pieces_take_several_turns, short_files_precede_long_downloads, short_responses_precede_files,
    uploads_progress_side_by_side,
};

/// Marks a child of [`in_a_child`] to the test program.
const CHILD: &str = "SHEARWATER_IO_TEST_CHILD";

/// Runs a test that affects the whole process in a child process.
pub(crate) fn in_a_child(test: impl FnOnce()) {
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

fn a_driver<K: Kernel>(options: ListenOptions) -> (K::Driver, SocketAddr) {
    let listener = bind((Ipv4Addr::LOCALHOST, 0).into(), options).expect("a listener");
    let address = listener.local_addr().expect("an address");
    (K::driver(vec![listener], Setup::default()).expect("a driver"), address)
}

/// Waits 40 ms, which no event may cut short.
fn sleeps<K: Kernel>(world: &mut World<SocketHarness<K>>) {
    let start = Instant::now();
    assert_eq!(world.turn(40), 0);
    assert!(start.elapsed() >= Duration::from_millis(40), "woken for nothing");
}

fn descriptors_run_out<K: Kernel>() {
    in_a_child(descriptors_run_out_here::<K>);
}

/// A crowd that connects at once takes no descriptor beyond the driver's bound: the rest is for files.
fn descriptors_stay_within_connections_max<K: Kernel>() {
    in_a_child(|| {
        const CLIENTS: usize = 4000;
        const CONNECTIONS_MAX: usize = 600;
        let mut world =
            World::<SocketHarness<K>>::with(Setup { connections_max: CONNECTIONS_MAX, ..Setup::default() });
        world.turn(0);
        for _ in 0..CLIENTS {
            world.harness.connect(0);
        }
        let before = open_descriptors();
        let failed = Note::AcceptFailed(AcceptError::ProcessDescriptors);
        let mut most = 0;
        world.until("the driver is full", |world| {
            most = most.max(open_descriptors() - before);
            world.notes.contains(&failed)
        });
        world.idle();
        most = most.max(open_descriptors() - before);
        assert_eq!((world.accepted.len(), most), (CONNECTIONS_MAX, CONNECTIONS_MAX as u64));
        assert_eq!(world.count(|note| *note == failed), 1, "reported once");
    });
}

fn descriptors_run_out_here<K: Kernel>() {
    let mut world = World::<SocketHarness<K>>::new();
    let peers: Vec<_> = (0..30).map(|_| world.harness.connect(0)).collect();
    let limit = getrlimit(Resource::Nofile);
    let next = File::open("/dev/null").map(|file| std::os::fd::AsRawFd::as_raw_fd(&file)).expect("one more");
    let tight = Rlimit { current: Some(next as u64 + 10), maximum: limit.maximum };
    setrlimit(Resource::Nofile, tight).expect("a lower limit");
    let failed = Note::AcceptFailed(AcceptError::ProcessDescriptors);
    world.until("the descriptors have run out", |world| world.notes.contains(&failed));
    world.idle();
    assert_eq!(world.accepted.len(), 10);
    assert_eq!(world.count(|note| *note == failed), 1, "reported once");
    setrlimit(Resource::Nofile, limit).expect("the limit as before");
    world.driver().accept_resume();
    world.until("the queue gets in", |world| world.accepted.len() == peers.len());
}

fn a_wake_ends_a_wait_without_limit<K: Kernel>() {
    let mut world = World::<SocketHarness<K>>::new();
    // Many times, so that the wake comes before, during and after the start of the wait.
    for _ in 0..500 {
        let waker = world.driver().waker();
        let other = thread::spawn(move || waker.wake());
        world.driver().wait(None).expect("the driver waits");
        assert_eq!(world.step(), Some(Note::Woken));
        assert_eq!(world.step(), None);
        other.join().expect("the thread has ended");
    }
}

fn uses_the_kernel_s_clock<K: Kernel>() {
    let mut world = World::<SocketHarness<K>>::new();
    world.wait(0);
    let (start_ms, start) = (world.driver().now_ms(), Instant::now());
    world.wait(40);
    let (passed, real) = (world.driver().now_ms() - start_ms, start.elapsed().as_millis() as u64);
    assert!((39..=real + 1).contains(&passed), "{passed} ms by the driver, {real} by the clock");
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    assert!(unix.abs_diff(world.driver().unix_seconds()) <= 1);
}

/// S4: a blocked reader gets head and file by one call, every time. The BSDs have no `MSG_MORE`.
#[cfg(target_os = "linux")]
fn a_head_and_its_file_arrive_together<K: Kernel>() {
    const ROUNDS: usize = 200;
    let (mut driver, address) = a_driver::<K>(ListenOptions::default());
    let reader = thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("connects");
        let mut buffer = [0; 8192];
        let mut reads = Vec::new();
        let mut whole = 0;
        while whole < ROUNDS * 3004 {
            reads.push(stream.read(&mut buffer).expect("bytes"));
            whole += reads[reads.len() - 1];
            if whole % 3004 == 0 {
                std::io::Write::write_all(&mut stream, b"next").expect("asks for the next");
            }
        }
        reads
    });
    let file = file_of(&pattern(3000, 1));
    let mut sent = 0;
    while sent < ROUNDS {
        driver.wait(Some(Duration::from_millis(100))).expect("the driver waits");
        while let Some(event) = driver.next() {
            let token = match event {
                Event::Accepted { token, .. } | Event::Received { token } => token,
                _ => continue,
            };
            driver.send(token, with_file(b"head", &file, 0, 3000));
            sent += 1;
        }
    }
    let reads = reader.join().expect("the reader has ended");
    assert_eq!(reads, [3004; ROUNDS]);
}

/// A file that `sendfile` doesn't support: this process's own memory.
#[cfg(target_os = "linux")]
fn a_file_that_sendfile_refuses_is_copied<K: Kernel>() {
    let contents = pattern(3_000_000, 2);
    let memory = Rc::new(SharedFile::new(File::open("/proc/self/mem").expect("our own memory can be read")));
    let (mut world, peer, token) = World::<SocketHarness<K>>::connected();
    let mut output = with_file(b"head", &memory, contents.as_ptr() as u64, contents.len() as u64);
    output.bytes_mut().extend_from_slice(b"tail");
    world.send(token, output);
    let got = world.peer_gets(peer, contents.len() + 8);
    assert!(got == [b"head", &contents[..], b"tail"].concat());
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.page(token).sent, [SentAs::Whole]);
}

/// An uncached file: some blocks on disk, then holes. One download is cut off in the middle.
#[cfg(target_os = "linux")]
fn fetches_and_sends_an_uncached_file<K: Kernel>() {
    const FILE: usize = 3 * FETCH_BYTES as usize + 12_345;
    let written = pattern(FILE / 2, 4);
    let file = file_of(&written);
    file.set_len(FILE as u64).expect("a hole behind it");
    file.sync_all().expect("on the disk");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("it can be evicted");
    let mut world = World::<SocketHarness<K>>::new();
    let downloads: Vec<_> = (0..3).map(|_| world.connect()).collect();
    for (_, token) in &downloads {
        let mut output = with_file(b"head", &file, 0, FILE as u64);
        output.bytes_mut().extend_from_slice(b"tail");
        world.send(*token, output);
    }
    let (cut_off, rest) = downloads.split_first().expect("three");
    world.close(cut_off.1, CloseKind::Reset);
    for (peer, token) in rest {
        let got = world.peer_gets(*peer, FILE + 8);
        assert!(got.starts_with(b"head") && got.ends_with(b"tail"));
        let (begin, hole) = got[4..FILE + 4].split_at(written.len());
        assert!(begin == written && hole.iter().all(|&byte| byte == 0));
        world.until("it comes back", |world| !world.is_sending(*token));
        assert_eq!(world.page(*token).sent, [SentAs::Whole]);
    }
}

/// R2, R4: urgent data cuts a receive short. Later input needs no further arrival, and the urgent byte is
/// skipped.
#[cfg(target_os = "linux")]
fn input_after_urgent_data_arrives<K: Kernel>() {
    let (mut driver, address) = a_driver::<K>(ListenOptions::default());
    let mut peer = TcpStream::connect(address).expect("connects");
    first_accepted(&mut driver);
    let mut got = Vec::new();
    for round in 1..=2 {
        std::io::Write::write_all(&mut peer, b"before ").expect("the queue has room");
        rustix::net::send(&peer, b"!", rustix::net::SendFlags::OOB).expect("the queue has room");
        std::io::Write::write_all(&mut peer, b"behind ").expect("the queue has room");
        for _ in 0..20 {
            driver.wait(Some(Duration::from_millis(10))).expect("the driver waits");
            while let Some(event) = driver.next() {
                if matches!(event, Event::Received { .. }) {
                    got.extend_from_slice(driver.lent());
                }
            }
        }
        assert_eq!(String::from_utf8_lossy(&got), "before behind ".repeat(round));
    }
}

fn reports_an_unreadable_file<K: Kernel>() {
    let directory =
        Rc::new(SharedFile::new(File::open(std::env::temp_dir()).expect("a directory can be opened")));
    let (mut world, peer, token) = World::<SocketHarness<K>>::connected();
    world.send(token, with_file(b"head", &directory, 0, 100));
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.page(token).sent, [SentAs::FileUnreadable]);
    assert_eq!(world.peer_gets(peer, 4), b"head");
}

/// The kernel reports a reset once. If a send consumes it, receiving must not report a FIN.
fn a_reset_that_fails_a_send_is_no_fin<K: Kernel>() {
    let (mut world, peer, token) = World::<SocketHarness<K>>::connected();
    world.recv_pause(token);
    world.harness.reset(peer);
    world.idle();
    world.send(token, plain(b"to nobody"));
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.page(token).sent, [SentAs::Broken]);
    world.recv_resume(token);
    world.until("receiving ends", |world| world.page(token).ended.is_some());
    assert_eq!(world.page(token).ended, Some(Ended::Broken));
}

/// Returns more connections than one wait takes, all accepted and silent.
fn a_crowd<K: Kernel>() -> (World<SocketHarness<K>>, Vec<PeerId>) {
    const CONNECTIONS: usize = EVENTS_PER_WAIT_MAX + 50;
    let mut world = World::<SocketHarness<K>>::new();
    let mut peers = Vec::new();
    while peers.len() < CONNECTIONS {
        peers.push(world.harness.connect(0));
        if peers.len() % 50 == 0 {
            world.until("they are accepted", |world| world.accepted.len() == peers.len());
        }
    }
    world.until("all are accepted", |world| world.accepted.len() == CONNECTIONS);
    world.idle();
    (world, peers)
}

/// T4: not before everything is fetched.
fn catches_up_with_the_last_input_of_a_crowd<K: Kernel>() {
    let (mut world, peers) = a_crowd::<K>();
    let quiet_ms = world.driver().now_ms();
    assert_eq!(world.driver().caught_up_ms(), quiet_ms, "nothing is ready");
    for peer in &peers {
        world.harness.write(*peer, b"x");
    }
    world.until("the clock has moved", |world| {
        world.wait(1000);
        world.driver().now_ms() > quiet_ms
    });
    assert!(world.driver().caught_up_ms() <= quiet_ms, "there are more");
    world.rest_of_turn();
    world.until("all are heard", |world| {
        world.accepted.iter().all(|token| world.page(*token).received == b"x")
    });
    world.idle();
    assert_eq!(world.driver().caught_up_ms(), world.driver().now_ms());
}

/// T4: even if every wait leaves something.
fn catches_up_under_load_from_a_crowd<K: Kernel>() {
    let (mut world, peers) = a_crowd::<K>();
    let start_ms = world.driver().now_ms();
    for _ in 0..2 {
        let before_ms = world.driver().caught_up_ms();
        world.until("what was left is fetched", |world| {
            for peer in &peers {
                world.harness.write(*peer, b"x");
            }
            world.turn(0);
            assert!(world.driver().caught_up_ms() <= world.driver().now_ms());
            world.driver().caught_up_ms() > before_ms
        });
    }
    assert!(world.driver().caught_up_ms() > start_ms);
}

/// A send that has ended but isn't reported needs no readiness; recorded readiness must not outlive it.
fn discards_readiness_of_an_ended_send<K: Kernel>() {
    let (mut world, peer, token) = World::<SocketHarness<K>>::connected();
    world.send(token, plain(b"first"));
    world.wait(0);
    while let Some(note) = world.step() {
        if note == Note::Sent(token, SentAs::Whole) && world.page(token).sent.len() == 1 {
            world.send(token, plain(b"second")); // ends at once, is announced in the next turn
        }
    }
    assert!(world.is_sending(token));
    world.harness.write(peer, b"makes the kernel say: readable, and writable too");
    world.until("both are told", |world| !world.is_sending(token) && !world.page(token).received.is_empty());
    world.idle();
    sleeps(&mut world);
}

fn an_idle_wait_is_one_wait<K: Kernel>() {
    // Irrelevant readiness (a fresh socket is writable) must not keep the driver awake.
    let (mut world, _, _) = World::<SocketHarness<K>>::connected();
    world.idle();
    sleeps(&mut world);
}

fn a_detached_connection_wakes_no_driver<K: Kernel>() {
    let (mut world, peer, token) = World::<SocketHarness<K>>::connected();
    let fd = world.detach(token).expect("the connection is detached").descriptor;
    world.idle();
    world.harness.write(peer, b"for another");
    sleeps(&mut world);
    drop(fd);
    world.close_and_wait(token);
}

fn accepted_connections_have_the_listener_s_options<K: Kernel>() {
    for (nodelay, keepalive) in [(true, true), (false, false)] {
        let options = ListenOptions { nodelay, keepalive, ..ListenOptions::default() };
        let (mut driver, address) = a_driver::<K>(options);
        let _peer = TcpStream::connect(address).expect("connects");
        let token = first_accepted(&mut driver);
        let fd = detach(&mut driver, token).descriptor;
        assert_eq!(SockRef::from(&fd).tcp_nodelay().expect("told"), nodelay);
        assert_eq!(SockRef::from(&fd).keepalive().expect("told"), keepalive);
        assert!(rustix::io::fcntl_getfd(&fd).expect("told").contains(rustix::io::FdFlags::CLOEXEC));
    }
}

/// For a client that reads nothing the kernel holds bounded unsent bytes, besides those in flight.
#[cfg(target_os = "linux")]
fn bounds_unsent_bytes_in_the_kernel<K: Kernel>() {
    let (mut driver, address) = a_driver::<K>(ListenOptions::default());
    let _peer = TcpStream::connect(address).expect("connects");
    let token = first_accepted(&mut driver);
    let fd = detach(&mut driver, token).descriptor;
    let bound = SockRef::from(&fd).tcp_notsent_lowat().expect("told");
    assert_eq!(bound, SEND_UNSENT_BYTES_FIRST);
}

/// A client that reads may have more unsent bytes in the kernel.
#[cfg(target_os = "linux")]
fn a_reading_client_gets_a_larger_unsent_bound<K: Kernel>() {
    for (len, is_trusted) in [(SEND_ACCEPTED_BYTES_MIN - 1, false), (4 * SEND_ACCEPTED_BYTES_MIN, true)] {
        let content = pattern(len as usize, 6);
        let (mut world, peer, token) = World::<SocketHarness<K>>::connected();
        world.send(token, with_file(b"", &file_of(&content), 0, len));
        for piece in content.chunks(256 * 1024) {
            // The peer doesn't read meanwhile, so it continues until the socket is full.
            world.idle();
            assert!(world.peer_gets(peer, piece.len()) == piece);
        }
        world.until("it is told", |world| !world.is_sending(token));
        let fd = world.detach(token).expect("the connection is detached").descriptor;
        let bound = SockRef::from(&fd).tcp_notsent_lowat().expect("told");
        assert_eq!(bound == SEND_UNSENT_BYTES_MAX, is_trusted, "{bound}");
    }
}

fn rejects_an_empty_buffer<K: Kernel>() {
    let setup = Setup { recv_buffer_bytes: 0, ..Setup::default() };
    assert!(K::driver(Vec::new(), setup).is_err());
}

fn a_driver_without_listeners_waits_and_stops<K: Kernel>() {
    let mut driver = K::driver(Vec::new(), Setup::default()).expect("a driver");
    driver.wait(Some(Duration::ZERO)).expect("the driver waits");
    assert!(driver.next().is_none());
    driver.accept_stop();
    driver.wait(Some(Duration::ZERO)).expect("the driver waits");
    assert!(matches!(driver.next(), Some(Event::AcceptStopped)));
    assert!(driver.next().is_none());
}

/// A half-closed peer leaves its socket readable for ever, which must not trigger checks for writability.
fn a_half_closed_peer_does_not_wake_the_driver<K: Kernel>() {
    let (mut world, peer, token) = World::<SocketHarness<K>>::connected();
    let response = pattern(8_000_000, 15);
    world.send(token, plain(&response));
    world.harness.shutdown(peer);
    world.until("its end is told", |world| world.page(token).ended == Some(Ended::Eof));
    world.idle();
    sleeps(&mut world);
    assert!(world.peer_gets(peer, response.len()) == response);
    world.until("it is sent", |world| !world.is_sending(token));
    world.close_and_wait(token);
}

/// Entries for a paused connection in the kernel don't keep its detached descriptor open.
fn a_paused_connection_that_is_detached_can_be_closed<K: Kernel>() {
    let (mut world, peer, token) = World::<SocketHarness<K>>::connected();
    world.recv_pause(token);
    world.harness.write(peer, b"a");
    world.idle();
    let detached = world.detach(token).expect("the connection is detached");
    world.idle();
    drop(detached);
    assert_ne!(world.peer_ends(peer).0, PeerState::Open);
    sleeps(&mut world);
}

/// All tests of this file for one driver.
macro_rules! kernel_suite {
    ($kernel:ty; $($name:ident),+) => {
        $(
            #[test]
            fn $name() {
                if !super::is_missing::<super::SocketHarness<$kernel>>() {
                    super::$name::<$kernel>();
                }
            }
        )+
    };
    ($kernel:ty) => {
        kernel_suite! { $kernel; descriptors_run_out, descriptors_stay_within_connections_max }
        kernel_suite! { each of $kernel }
    };
    (each of $kernel:ty) => {
        kernel_suite! { $kernel;
            a_wake_ends_a_wait_without_limit, uses_the_kernel_s_clock, reports_an_unreadable_file, a_reset_that_fails_a_send_is_no_fin, short_files_precede_long_downloads, downloads_progress_side_by_side, uploads_progress_side_by_side, copied_files_take_more_turns, many_small_pieces_take_several_turns, short_responses_precede_files, long_sends_start_after_other_work, catches_up_with_the_last_input_of_a_crowd, catches_up_under_load_from_a_crowd, discards_readiness_of_an_ended_send, an_idle_wait_is_one_wait, a_half_closed_peer_does_not_wake_the_driver, a_paused_connection_that_is_detached_can_be_closed, a_detached_connection_wakes_no_driver, accepted_connections_have_the_listener_s_options, rejects_an_empty_buffer, a_driver_without_listeners_waits_and_stops
        }
        #[cfg(target_os = "linux")]
        kernel_suite! { $kernel; a_head_and_its_file_arrive_together, a_file_that_sendfile_refuses_is_copied, fetches_and_sends_an_uncached_file, input_after_urgent_data_arrives, bounds_unsent_bytes_in_the_kernel, a_reading_client_gets_a_larger_unsent_bound }
    };
}

mod on_poll {
    use shearwater_io::Driver;
    use shearwater_io::poll::{Poll, PollOptions};

    kernel_suite!(super::ByReadiness);

    /// S7: the contract leaves it to the driver. Here it saves an event per response.
    #[test]
    fn plain_bytes_that_the_socket_takes_are_sent_at_once() {
        let (mut world, peer, token) = super::World::<super::SocketHarness<super::ByReadiness>>::connected();
        for _ in 0..3 {
            assert!(world.send_at_once(token, &mut super::plain(b"answer")));
            assert_eq!(world.peer_gets(peer, 6), b"answer");
        }
    }

    #[test]
    fn is_named_for_its_mechanism() {
        let driver = Poll::new(Vec::new(), PollOptions::default()).expect("a driver");
        assert_eq!(driver.name(), if cfg!(target_os = "linux") { "epoll" } else { "kqueue" });
    }
}

#[cfg(target_os = "linux")]
mod on_uring {
    kernel_suite!(crate::contract::sockets::on_uring::ByCompletion<true>);
}

/// Connections aren't bounded by descriptors here.
#[cfg(target_os = "linux")]
mod on_uring_stored {
    kernel_suite!(each of crate::contract::sockets::on_uring::Stored<true>);
}
