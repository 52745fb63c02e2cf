//! Listeners: TCP options and ports; Unix-domain sockets, their files and connections.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use shearwater_io::limits::{KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES, LISTENER_GRACE_MS};
use shearwater_io::listen::{ListenOptions, bind, bind_unix, set_mode};
use shearwater_io::{CloseKind, Driver, Entrances, Event, Listener};
use socket2::SockRef;

use crate::contract::Setup;
#[cfg(target_os = "linux")]
use crate::contract::sockets::on_uring::ByCompletion;
use crate::contract::sockets::{ByReadiness, Kernel};
use crate::contract::world::{file_of, pattern, with_file};
use crate::fs::Tree;

fn any_v4() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

#[test]
fn an_address_in_use_is_refused_unless_shared() {
    let first = bind(any_v4(), ListenOptions::default()).expect("a listener");
    let address = first.local_addr().expect("an address");
    let error = bind(address, ListenOptions::default()).expect_err("it is in use");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);

    let shared = ListenOptions { reuse_port: true, ..ListenOptions::default() };
    let first = bind(any_v4(), shared).expect("a listener");
    let address = first.local_addr().expect("an address");
    let second = bind(address, shared).expect("another on the same address");
    assert_eq!(second.local_addr().expect("an address"), address);
}

#[test]
fn an_address_is_free_again_after_connections() {
    let listener = bind(any_v4(), ListenOptions::default()).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let peer = TcpStream::connect(address).expect("connects");
    let accepted = listener.accept().expect("accepts").0;
    drop((accepted, listener, peer)); // our side first: it is the one left in TIME_WAIT
    bind(address, ListenOptions::default()).expect("TIME_WAIT is no obstacle");
}

#[test]
fn a_listener_does_not_block() {
    let listener = bind(any_v4(), ListenOptions::default()).expect("a listener");
    assert_eq!(listener.accept().expect_err("nobody is there").kind(), ErrorKind::WouldBlock);
}

#[test]
fn ipv6_takes_ipv4_unless_it_must_not() {
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    for only_v6 in [false, true] {
        let options = ListenOptions { only_v6, ..ListenOptions::default() };
        let listener = match bind(any, options) {
            Ok(listener) => listener,
            // A host without IPv6 proves nothing.
            Err(error) => return assert_eq!(error.raw_os_error(), Some(97), "{error}"),
        };
        let port = listener.local_addr().expect("an address").port();
        let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        assert_eq!(connected, !only_v6);
    }
}

#[test]
fn a_backlog_beyond_the_kernel_s_is_lowered() {
    let options = ListenOptions { backlog: u32::MAX, ..ListenOptions::default() };
    let listener = bind(any_v4(), options).expect("the kernel takes what it can");
    TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
}

/// Accepted connections inherit the listener's options, without a call.
#[test]
fn connections_inherit_the_options_of_their_listener() {
    for (nodelay, keepalive) in [(true, false), (false, true), (true, true), (false, false)] {
        let options = ListenOptions { nodelay, keepalive, ..ListenOptions::default() };
        let listener = bind(any_v4(), options).expect("a listener");
        let _peer = TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
        listener.set_nonblocking(false).expect("it may wait");
        let accepted = listener.accept().expect("accepts").0;
        let socket = SockRef::from(&accepted);
        assert_eq!(socket.tcp_nodelay().expect("the option is readable"), nodelay);
        assert_eq!(socket.keepalive().expect("the option is readable"), keepalive);
        if keepalive {
            let times = [socket.tcp_keepalive_time(), socket.tcp_keepalive_interval()];
            let seconds = times.map(|time| time.expect("the option is readable").as_secs());
            assert_eq!(seconds, [KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S].map(u64::from));
            assert_eq!(socket.tcp_keepalive_retries().expect("the option is readable"), KEEPALIVE_PROBES);
        }
    }
}

fn refusal(path: &Path) -> ErrorKind {
    bind_unix(path, 0o600, 16, 0).expect_err("it is refused").kind()
}

#[test]
fn creates_the_file_with_its_mode_and_removes_it() {
    let folder = Tree::new();
    let path = folder.at("socket");
    for mode in [0o600, 0o660, 0o666, 0o777] {
        let listener = bind_unix(&path, mode, 16, 0).expect("a listener");
        let found = fs::symlink_metadata(&path).expect("its file");
        assert_eq!(found.permissions().mode() & 0o7777, mode);
        UnixStream::connect(&path).expect("it listens");
        drop(listener);
        assert!(!path.exists(), "it has left nothing");
    }
}

#[test]
fn changes_the_mode_of_its_own_file_only() {
    let folder = Tree::new();
    let path = folder.at("socket");
    let listener = bind_unix(&path, 0o600, 16, 0).expect("a listener");
    let file = listener.handle().file().expect("its file");
    set_mode(&path, file, 0o660).expect("it is there");
    let mode = |path| fs::symlink_metadata(path).expect("a file").permissions().mode() & 0o7777;
    assert_eq!(mode(path.clone()), 0o660);
    fs::rename(&path, folder.at("moved")).expect("moved");
    assert_eq!(set_mode(&path, file, 0o666).expect_err("it is gone").kind(), ErrorKind::NotFound);
    fs::write(folder.at("secret"), "").expect("a file");
    fs::set_permissions(folder.at("secret"), PermissionsExt::from_mode(0o600)).expect("its mode");
    for target in ["secret", "moved"] {
        std::os::unix::fs::symlink(folder.at(target), &path).expect("a link");
        assert_eq!(set_mode(&path, file, 0o666).expect_err("a link").kind(), ErrorKind::AlreadyExists);
        fs::remove_file(&path).expect("it is there");
    }
    assert_eq!((mode(folder.at("secret")), mode(folder.at("moved"))), (0o600, 0o660));
}

#[test]
fn replaces_the_file_of_a_dead_server() {
    let folder = Tree::new();
    let path = folder.at("socket");
    drop(UnixListener::bind(&path).expect("a server that dies"));
    assert!(UnixStream::connect(&path).is_err() && path.exists());
    let _listener = bind_unix(&path, 0o600, 16, 0).expect("replaced");
    UnixStream::connect(&path).expect("it listens");
}

#[test]
fn keeps_the_file_of_a_running_server() {
    let folder = Tree::new();
    let path = folder.at("socket");
    let living = UnixListener::bind(&path).expect("a server");
    assert_eq!(refusal(&path), ErrorKind::AddrInUse);
    living.accept().expect("a waiting sender");
    UnixStream::connect(&path).expect("it still listens");
    // A listener that no longer accepts still counts as alive.
    let full = folder.at("full");
    let _full = bind_unix(&full, 0o600, 1, 0).expect("a listener");
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let peer =
            socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).expect("a socket");
        peer.set_nonblocking(true).expect("non-blocking");
        drop(peer.connect(&socket2::SockAddr::unix(&full).expect("an address")));
        waiting.push(peer);
    }
    assert_eq!(refusal(&full), ErrorKind::AddrInUse);
    let datagrams = folder.at("datagrams");
    let _datagrams = std::os::unix::net::UnixDatagram::bind(&datagrams).expect("a socket of another kind");
    assert_eq!(refusal(&datagrams), ErrorKind::AddrInUse);
}

#[test]
fn keeps_files_that_are_no_sockets() {
    let folder = Tree::new();
    fs::write(folder.at("file"), "kept").expect("a file");
    fs::create_dir(folder.at("folder")).expect("a folder");
    std::os::unix::fs::symlink(folder.at("nowhere"), folder.at("link")).expect("a link");
    for name in ["file", "folder", "link"] {
        assert_eq!(refusal(&folder.at(name)), ErrorKind::AlreadyExists, "{name}");
    }
    assert_eq!(fs::read(folder.at("file")).expect("it is there"), b"kept");
}

#[test]
fn rejects_names_that_can_not_be_bound() {
    let folder = Tree::new();
    assert_eq!(refusal(&folder.at("nowhere/socket")), ErrorKind::NotFound);
    assert_eq!(refusal(&folder.at("x".repeat(200))), ErrorKind::InvalidInput);
}

#[test]
fn keeps_the_file_of_another_server() {
    let folder = Tree::new();
    let path = folder.at("socket");
    let first = bind_unix(&path, 0o600, 16, 0).expect("a listener");
    fs::remove_file(&path).expect("the file can be changed");
    let _second = bind_unix(&path, 0o600, 16, 0).expect("the name is free");
    drop(first);
    UnixStream::connect(&path).expect("the second still listens");
}

/// Returns the next event, which must come. A wait may return without one (T1): only a timeout fails.
fn event(driver: &mut impl Driver) -> Event {
    let begun_ms = driver.now_ms();
    while driver.now_ms() - begun_ms < 20_000 {
        if let Some(event) = driver.next() {
            return event;
        }
        driver.wait(Some(Duration::from_millis(20))).expect("the driver waits");
    }
    panic!("nothing happens")
}

/// Requests, a file, a half-close, and the end of accepting, in that order.
fn a_unix_socket_is_served<K: Kernel>() {
    if let Some(why) = K::missing() {
        println!("skipped: {why}");
        return;
    }
    const FILE: usize = 1_000_000;
    let folder = Tree::new();
    let path = folder.at("socket");
    let listener = bind_unix(&path, 0o600, 16, 9).expect("a listener");
    let entrances = Entrances { listeners: vec![listener], ..Entrances::default() };
    let mut driver = K::driver(entrances, Setup::default()).expect("a driver");
    let client = thread::spawn({
        let path = path.clone();
        move || {
            let mut stream = UnixStream::connect(path).expect("connects");
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
            stream.write_all(b"question").expect("asks");
            stream.shutdown(std::net::Shutdown::Write).expect("the side ends");
            let mut got = Vec::new();
            stream.read_to_end(&mut got).expect("an end in order");
            got
        }
    });
    let file = file_of(&pattern(FILE, 1));
    let mut heard = Vec::new();
    loop {
        match event(&mut driver) {
            Event::Accepted { token, listener } => {
                assert_eq!(listener, 9);
                assert!(driver.peer(token).is_err(), "it has no address of TCP");
            }
            Event::Received { .. } => heard.extend_from_slice(driver.lent()),
            Event::ReadClosed { token, .. } => {
                driver.send(token, with_file(b"head", &file, 0, FILE as u64));
            }
            Event::Sent { token, result, .. } => {
                result.expect("all of it was taken");
                driver.shutdown_write(token);
                driver.close(token, CloseKind::Normal);
            }
            Event::Closed { .. } => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(heard, b"question");
    assert!(client.join().expect("the client has ended") == [b"head", &pattern(FILE, 1)[..]].concat());
    let _queued = UnixStream::connect(&path).expect("connects");
    driver.accept_stop();
    assert!(!path.exists(), "nobody new finds it");
    assert!(matches!(event(&mut driver), Event::Accepted { .. }), "who was there before is taken in");
    assert!(matches!(event(&mut driver), Event::AcceptStopped));
}

/// Takes turns until a listener is removed; returns the number of connections accepted until then.
fn accepted_until_removed(driver: &mut impl Driver) -> usize {
    let mut accepted = 0;
    loop {
        match event(driver) {
            Event::Accepted { .. } => accepted += 1,
            Event::ListenerRemoved { .. } => return accepted,
            Event::ReadClosed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Nothing that a client believes to be connected is reset: its handshake had begun before the removal.
#[cfg(target_os = "linux")]
fn a_removed_listener_drops_connection_requests<K: Kernel>() {
    let socket = bind(any_v4(), ListenOptions::default()).expect("a listener");
    let address = socket.local_addr().expect("an address");
    let listeners = vec![Listener::exclusive(socket.into(), 0)];
    let mut driver =
        K::driver(Entrances { listeners, ..Entrances::default() }, Setup::default()).expect("a driver");
    let _early = TcpStream::connect(address).expect("connects");
    let since = Instant::now();
    assert!(driver.listener_remove(0));
    let late = TcpStream::connect_timeout(&address, Duration::from_millis(LISTENER_GRACE_MS / 2));
    assert_eq!(late.expect_err("its request is dropped").kind(), ErrorKind::TimedOut);
    assert_eq!(accepted_until_removed(&mut driver), 1);
    assert!(since.elapsed() >= Duration::from_millis(LISTENER_GRACE_MS), "handshakes have their time");
    let refused = TcpStream::connect(address).expect_err("it is closed");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[cfg(target_os = "linux")]
#[test]
fn a_removed_listener_drops_connection_requests_by_readiness() {
    a_removed_listener_drops_connection_requests::<ByReadiness>();
}

#[cfg(target_os = "linux")]
#[test]
fn a_removed_listener_drops_connection_requests_by_completions() {
    if ByCompletion::<true>::missing().is_none() {
        a_removed_listener_drops_connection_requests::<ByCompletion<true>>();
    }
}

/// Another process that has the socket keeps accepting on it.
#[cfg(target_os = "linux")]
#[test]
fn a_removed_listener_leaves_a_shared_socket_as_it_is() {
    let socket = bind(any_v4(), ListenOptions::default()).expect("a listener");
    let address = socket.local_addr().expect("an address");
    let shared = socket.try_clone().expect("one more descriptor");
    let mut driver = ByReadiness::driver(vec![socket], Setup::default()).expect("a driver");
    let _early = TcpStream::connect(address).expect("connects");
    assert!(driver.listener_remove(0));
    assert_eq!(accepted_until_removed(&mut driver), 1);
    let _late = TcpStream::connect(address).expect("connects");
    shared.accept().expect("it is queued");
}

#[test]
fn a_unix_socket_that_is_removed_is_gone_at_once() {
    let folder = Tree::new();
    let path = folder.at("socket");
    let listener = bind_unix(&path, 0o600, 16, 0).expect("a listener");
    let other = listener.share().expect("one more descriptor");
    let driver = |listener| {
        let entrances = Entrances { listeners: vec![listener], ..Entrances::default() };
        ByReadiness::driver(entrances, Setup::default()).expect("a driver")
    };
    let (mut first, mut second) = (driver(listener), driver(other));
    let _queued = UnixStream::connect(&path).expect("connects");
    assert!(first.listener_remove(0));
    assert!(!path.exists(), "nobody new finds it");
    let accepted = accepted_until_removed(&mut first);
    assert!(second.listener_remove(0));
    assert_eq!(accepted + accepted_until_removed(&mut second), 1);
}

#[test]
fn a_unix_socket_is_served_by_readiness() {
    a_unix_socket_is_served::<ByReadiness>();
}

#[cfg(target_os = "linux")]
#[test]
fn a_unix_socket_is_served_by_completions() {
    a_unix_socket_is_served::<ByCompletion<true>>();
}
