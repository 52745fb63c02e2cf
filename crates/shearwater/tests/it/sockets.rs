//! Unix-domain listeners, and listening sockets that the program created.

use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use shearwater::{
    AcceptMode, DriverChoice, Error, Limits, ListenAddress, Notice, Server, StartError, Verbosity,
};
use shearwater_engine::{Options, Server as Engine};
use testkit::{TIMEOUT, TestClient};

use crate::local::{http2, local_server};
use crate::served::{Served, connect_unix, drivers, served_app};

/// Sends a request on a new connection and reads until its end.
fn ask(path: &Path) -> String {
    let response = connect_unix(path).ask("GET", "/", &["Connection: close"]).rest();
    String::from_utf8(response).expect("text")
}

fn server(driver: DriverChoice, workers: usize, mode: AcceptMode, path: &Path) -> Server {
    let server = local_server().verbosity(Verbosity::Off).driver(driver).workers(workers).accept_mode(mode);
    server.listen(format!("unix:{}", path.display()))
}

#[test]
fn serves_a_unix_socket_in_every_mode() {
    let folder = tempfile::tempdir().expect("a folder");
    for driver in drivers() {
        for (workers, mode) in [
            (1, AcceptMode::Reuseport),
            (3, AcceptMode::Reuseport),
            (1, AcceptMode::Dispatch),
            (3, AcceptMode::Dispatch),
        ] {
            let path = folder.path().join("socket");
            // Connections are counted by address; those without one are not.
            let limits = Limits { connections_per_address_max: 1, ..Limits::default() };
            let served = Served::of(server(driver, workers, mode, &path).limits(limits), served_app());
            assert_eq!(served.unix_sockets, [path.as_path()]);
            let mode = std::fs::metadata(&path).expect("its file").permissions().mode();
            assert_eq!(mode & 0o777, 0o660, "owner and group");
            let _idle: Vec<_> = (0..5).map(|_| UnixStream::connect(&path).expect("connects")).collect();
            for _ in 0..10 {
                let response = ask(&path);
                assert!(
                    response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("served"),
                    "{response}"
                );
            }
            assert_eq!(served.connect().get("/").text(), "served");
            let totals = served.stop();
            assert_eq!((totals.requests, totals.connections_refused), (11, 0));
            assert!(!path.exists(), "its file goes with it");
        }
    }
}

#[test]
fn drain_responds_to_queued_unix_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    for driver in drivers() {
        for workers in [1, 2] {
            let path = folder.path().join("socket");
            let served = Served::of(server(driver, workers, AcceptMode::Reuseport, &path), served_app());
            let mut clients: Vec<_> = (0..50).map(|_| connect_unix(&path)).collect();
            for client in &mut clients {
                client.ask("GET", "/", &[]);
            }
            served.control.drain(60_000);
            for mut client in clients {
                assert_eq!(client.response("GET").text(), "served");
                client.is_ended();
            }
            assert_eq!(served.wait().requests, 50);
            assert!(!path.exists());
        }
    }
}

#[test]
fn serves_only_a_unix_socket_with_its_own_mode() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let address = ListenAddress::Unix { path: path.clone(), mode: 0o600 };
    let running = Server::bind(format!("unix:{}", folder.path().join("other").display()))
        .verbosity(Verbosity::Off)
        .listen_at(address)
        .workers(1)
        .start(served_app())
        .expect("starts");
    assert_eq!(running.start_report().addresses, []);
    assert_eq!(running.start_report().unix_sockets, [folder.path().join("other"), path.clone()]);
    assert_eq!(std::fs::metadata(&path).expect("its file").permissions().mode() & 0o777, 0o600);
    assert!(ask(&path).ends_with("served"));
    running.control().stop();
    running.wait().expect("ends normally");
}

#[track_caller]
fn refusal(path: &Path) -> String {
    let started = server(DriverChoice::Auto, 1, AcceptMode::Reuseport, path).start(served_app());
    let error = started.expect_err("it can't start");
    assert!(matches!(&error, Error::Start(StartError::Bind { .. })), "{error:?}");
    error.to_string()
}

#[test]
fn reports_unix_sockets_that_cannot_be_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let living = Served::of(server(DriverChoice::Auto, 1, AcceptMode::Reuseport, &path), served_app());
    let sentence = refusal(&path);
    let expected = format!("unix:{} is taken by another program: choose another", path.display());
    assert!(sentence.starts_with(&expected), "{sentence}");
    assert!(ask(&path).ends_with("served"), "the first continues");
    living.stop();
    std::fs::write(&path, "kept").expect("a file");
    assert!(refusal(&path).contains("no socket, and it is not replaced"));
    assert_eq!(std::fs::read(&path).expect("it is there"), b"kept");
    assert!(refusal(&folder.path().join("nowhere/socket")).contains("no such folder"));
    assert!(refusal(&folder.path().join("x".repeat(120))).contains("too long"));
}

#[test]
fn replaces_the_socket_of_a_killed_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a server that dies"));
    let served = Served::of(server(DriverChoice::Auto, 2, AcceptMode::Reuseport, &path), served_app());
    assert!(ask(&path).ends_with("served"));
    served.stop();
}

#[test]
fn serves_given_sockets_with_any_number_of_workers() {
    if testkit::tls::skips("its server is in clear") {
        return;
    }
    for driver in drivers() {
        for workers in [1, 3] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = listener.local_addr().expect("its address");
            // Connections from before the start are in the queue.
            let mut early = TestClient::connect(address);
            let served = Served::of(
                Server::on(listener).http2(http2()).verbosity(Verbosity::Off).driver(driver).workers(workers),
                served_app(),
            );
            assert_eq!(served.addresses, [address]);
            assert_eq!(early.get("/").text(), "served");
            for _ in 0..10 {
                assert_eq!(served.connect().get("/").text(), "served");
            }
            drop(early);
            assert_eq!(served.stop().connections_accepted, 11);
            let refused = TcpStream::connect(address).expect_err("nobody listens there any more");
            assert!(matches!(refused.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset));
        }
    }
}

#[test]
fn serves_a_given_unix_socket_beside_an_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let unix = UnixListener::bind(&path).expect("a socket");
    let served =
        Served::of(local_server().verbosity(Verbosity::Off).workers(1).listen_on(unix), served_app());
    assert_eq!(served.unix_sockets, [path.as_path()]);
    assert_eq!(served.connect().get("/").text(), "served");
    assert_eq!(connect_unix(&path).get("/").text(), "served");
    served.stop();
    assert!(path.exists(), "the program made the file");
}

#[test]
fn rejects_sockets_that_do_not_listen() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let connected = TcpStream::connect(listener.local_addr().expect("its address")).expect("connects");
    let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    for socket in [OwnedFd::from(connected), OwnedFd::from(datagrams)] {
        match Server::on(socket).workers(1).start(served_app()).err() {
            Some(Error::Start(StartError::Socket(error))) => {
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Another owner of the socket may shut it down; only a restart helps then.
#[test]
fn reports_a_failed_listener_once_and_accepts_on_the_others() {
    if testkit::tls::skips("its server is in clear") {
        return;
    }
    for driver in drivers() {
        for accept in [AcceptMode::Reuseport, AcceptMode::Dispatch] {
            let given = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = given.local_addr().expect("its address").to_string();
            // As a stream, because a listener has no such method.
            let shared = TcpStream::from(OwnedFd::from(given.try_clone().expect("one more descriptor")));
            let options = Options {
                listen: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
                sockets: vec![given.into()],
                workers: 1,
                driver,
                accept,
                http2: http2(),
                ..Options::default()
            };
            let routes = served_app().build().expect("its routes are right");
            let server = Engine::bind(options).expect("a free port");
            let running = server.start(move |worker| routes.service(worker)).expect("it starts");
            shared.shutdown(Shutdown::Both).expect("it listens");
            let worker = (accept == AcceptMode::Reuseport).then_some(0);
            let told = running.notice(TIMEOUT).expect("a notice is sent");
            let said = told.to_string();
            assert!(said.contains(&address) && said.contains("Invalid argument"), "{said}");
            let failed = Notice::ListenerFailed { worker, address, errno: 22 };
            assert_eq!(told, failed);
            let mut client = TestClient::connect(running.start_report().addresses[0]);
            assert_eq!(client.get("/").text(), "served");
            assert_ne!(running.notice(Duration::ZERO), Some(failed), "once");
            running.control().stop();
            running.wait().expect("it ends normally");
        }
    }
}
