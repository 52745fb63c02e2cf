//! Listening sockets created by the program.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use shearwater::{AcceptMode, App, Error, Notice, Request, Response, Server, StartError, Verbosity};
use shearwater_engine::{Options, Server as Engine};

use crate::client::{Client, WAIT_MAX};
use crate::served::{Served, drivers};

fn app() -> App {
    App::of(|_: &Request, response: &mut Response| {
        response.text("served");
    })
}

#[test]
fn every_driver_serves_them_with_any_number_of_workers() {
    for driver in drivers() {
        for workers in [1, 3] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = listener.local_addr().expect("its address");
            // Connections from before the start are in the queue.
            let mut early = Client::connect(address);
            let served = Served::of(
                Server::on(listener).verbosity(Verbosity::Off).driver(driver).workers(workers),
                app(),
            );
            assert_eq!(served.addresses, [address]);
            assert_eq!(early.request("GET", "/", &[]).text(), "served");
            for _ in 0..10 {
                assert_eq!(served.connect().request("GET", "/", &[]).text(), "served");
            }
            drop(early);
            assert_eq!(served.stop().connections_accepted, 11);
            let refused = TcpStream::connect(address).expect_err("nobody listens there any more");
            assert!(matches!(refused.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset));
        }
    }
}

#[test]
fn they_stand_beside_addresses_and_may_be_of_unix() {
    let path = std::env::temp_dir().join(format!("shearwater-given-{}", std::process::id()));
    drop(std::fs::remove_file(&path));
    let unix = UnixListener::bind(&path).expect("a socket");
    let served =
        Served::of(Server::new("127.0.0.1:0").verbosity(Verbosity::Off).workers(1).listen_on(unix), app());
    assert_eq!(served.unix_sockets, [path.as_path()]);
    assert_eq!(served.connect().request("GET", "/", &[]).text(), "served");
    let mut stream = UnixStream::connect(&path).expect("connects");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("sends");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("an orderly close");
    assert!(response.ends_with("served"), "{response}");
    served.stop();
    assert!(path.exists(), "its file is that of who made it");
    std::fs::remove_file(&path).expect("it is there");
}

#[test]
fn what_does_not_listen_is_refused_before_anything_serves() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let connected = TcpStream::connect(listener.local_addr().expect("its address")).expect("connects");
    let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    for socket in [OwnedFd::from(connected), OwnedFd::from(datagrams)] {
        match Server::on(socket).workers(1).start_app(app()).err() {
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
                ..Options::default()
            };
            let routes = app().build().expect("its routes are right");
            let server = Engine::bind(options).expect("a free port");
            let running = server.start(move |worker| routes.service(worker)).expect("it starts");
            shared.shutdown(Shutdown::Both).expect("it listens");
            let worker = (accept == AcceptMode::Reuseport).then_some(0);
            let told = running.notice(WAIT_MAX).expect("a notice is sent");
            let said = told.to_string();
            assert!(said.contains(&address) && said.contains("Invalid argument"), "{said}");
            let failed = Notice::ListenerFailed { worker, address, errno: 22 };
            assert_eq!(told, failed);
            let mut client = Client::connect(running.start_report().addresses[0]);
            assert_eq!(client.request("GET", "/", &[]).text(), "served");
            assert_ne!(running.notice(Duration::ZERO), Some(failed), "once");
            running.control().stop();
            running.wait().expect("it ends normally");
        }
    }
}
