//! Unix-domain listeners, also together with TCP.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use shearwater::{
    AcceptMode, App, DriverChoice, Error, Limits, ListenAddress, Request, Response, Server, StartError,
    Verbosity,
};

use crate::client::WAIT_MAX;
use crate::served::{Served, drivers};

/// A temporary folder.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("shearwater-sockets-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a folder");
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn app() -> App {
    App::of(|_: &Request, response: &mut Response| {
        response.text("served");
    })
}

/// Sends a request on a new connection and reads until its end.
fn ask(path: &Path) -> String {
    let mut stream = UnixStream::connect(path).expect("connects");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("sends");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("an orderly close");
    response
}

fn server(driver: DriverChoice, workers: usize, mode: AcceptMode, path: &Path) -> Server {
    let server = Server::new("127.0.0.1:0")
        .verbosity(Verbosity::Off)
        .driver(driver)
        .workers(workers)
        .accept_mode(mode);
    server.listen(format!("unix:{}", path.display()))
}

#[test]
fn it_is_served_by_every_driver_in_every_mode() {
    let folder = Temporary::new();
    for driver in drivers() {
        for (workers, mode) in [
            (1, AcceptMode::Reuseport),
            (3, AcceptMode::Reuseport),
            (1, AcceptMode::Dispatch),
            (3, AcceptMode::Dispatch),
        ] {
            let path = folder.at("socket");
            // Connections are counted by address; those without one are not.
            let limits = Limits { connections_per_address_max: 1, ..Limits::default() };
            let served = Served::of(server(driver, workers, mode, &path).limits(limits), app());
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
            assert_eq!(served.connect().request("GET", "/", &[]).text(), "served");
            let totals = served.stop();
            assert_eq!((totals.requests, totals.connections_refused), (11, 0));
            assert!(!path.exists(), "its file goes with it");
        }
    }
}

#[test]
fn who_is_in_the_queue_is_responded_in_a_drain() {
    let folder = Temporary::new();
    for driver in drivers() {
        for workers in [1, 2] {
            let path = folder.at("socket");
            let served = Served::of(server(driver, workers, AcceptMode::Reuseport, &path), app());
            let mut streams: Vec<_> =
                (0..50).map(|_| UnixStream::connect(&path).expect("connects")).collect();
            for stream in &mut streams {
                stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
                stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sends");
            }
            served.control.drain(60_000);
            for mut stream in streams {
                let mut response = String::new();
                stream.read_to_string(&mut response).expect("an orderly close");
                assert!(
                    response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("served"),
                    "{response}"
                );
            }
            assert_eq!(served.wait().requests, 50);
            assert!(!path.exists());
        }
    }
}

#[test]
fn a_mode_of_its_own_and_nothing_but_a_socket() {
    let folder = Temporary::new();
    let path = folder.at("socket");
    let address = ListenAddress::Unix { path: path.clone(), mode: 0o600 };
    let running = Server::new(format!("unix:{}", folder.at("other").display()))
        .verbosity(Verbosity::Off)
        .listen_at(address)
        .workers(1)
        .start_app(app())
        .expect("starts");
    assert_eq!(running.start_report().addresses, []);
    assert_eq!(running.start_report().unix_sockets, [folder.at("other"), path.clone()]);
    assert_eq!(std::fs::metadata(&path).expect("its file").permissions().mode() & 0o777, 0o600);
    assert!(ask(&path).ends_with("served"));
    running.control().stop();
    running.wait().expect("ends normally");
}

#[track_caller]
fn refusal(path: &Path) -> String {
    let started = server(DriverChoice::Auto, 1, AcceptMode::Reuseport, path).start_app(app());
    let error = started.expect_err("it can't start");
    assert!(matches!(&error, Error::Start(StartError::Bind { .. })), "{error:?}");
    error.to_string()
}

#[test]
fn what_can_not_be_bound_is_told_with_what_to_do() {
    let folder = Temporary::new();
    let path = folder.at("socket");
    let living = Served::of(server(DriverChoice::Auto, 1, AcceptMode::Reuseport, &path), app());
    let sentence = refusal(&path);
    let expected = format!("unix:{} is taken by another program: choose another", path.display());
    assert!(sentence.starts_with(&expected), "{sentence}");
    assert!(ask(&path).ends_with("served"), "the first continues");
    living.stop();
    std::fs::write(&path, "kept").expect("a file");
    assert!(refusal(&path).contains("no socket, and it is not replaced"));
    assert_eq!(std::fs::read(&path).expect("it is there"), b"kept");
    assert!(refusal(&folder.at("nowhere/socket")).contains("there is no such folder"));
    assert!(refusal(&folder.at(&"x".repeat(120))).contains("too long"));
}

#[test]
fn what_a_killed_server_has_left_is_replaced() {
    let folder = Temporary::new();
    let path = folder.at("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a server that dies"));
    let served = Served::of(server(DriverChoice::Auto, 2, AcceptMode::Reuseport, &path), app());
    assert!(ask(&path).ends_with("served"));
    served.stop();
}
