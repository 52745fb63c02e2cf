//! Reports to a service manager: a worker that a handler blocks is no sign of life, and reloads have a beginning and an end.

use std::env;
use std::io::Read;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use shearwater::{App, Request, Response, Server, Verbosity, get};
use shearwater_io::service_manager::monotonic_us;
use testkit::{TIMEOUT, TestClient, TestFolder};

use crate::local::http2;
use crate::process::{self, Process};

/// Environment variable with the socket that a handler or a reload waits for.
const BLOCKER: &str = "SHEARWATER_TEST_BLOCKER";

/// Time within which the manager expects a sign of life.
const WATCHDOG: Duration = Duration::from_millis(400);

const TEST: &str = "service_manager::a_blocked_worker_gives_no_sign_of_life";

/// Waits until the test closes the connection.
fn block() {
    let path = env::var_os(BLOCKER).expect("a path");
    let mut stream = UnixStream::connect(path).expect("the test listens");
    stream.read_to_end(&mut Vec::new()).expect("its end");
}

/// Serves until it is drained.
fn serve() {
    let app = App::new()
        .route(
            "/",
            get(|_: &Request, response: &mut Response| {
                response.text("here");
            }),
        )
        .route(
            "/block",
            get(|_: &Request, response: &mut Response| {
                block();
                response.text("over");
            }),
        );
    let server =
        Server::bind("127.0.0.1:0").workers(2).verbosity(Verbosity::Off).notify_manager().handle_signals();
    let server = server.http2(http2());
    let server = server.on_reload(|_| {
        block();
        Err::<String, _>("error: nothing to reload\n".to_owned())
    });
    let running = server.start(app).expect("it starts");
    process::serves(running.address());
    running.wait().expect("it ends in order");
    process::has_ended();
}

/// A service manager's socket.
struct Manager(UnixDatagram);

impl Manager {
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("a socket");
        socket.set_read_timeout(Some(TIMEOUT)).expect("set");
        Self(socket)
    }

    /// Returns the next message; `None` after the timeout.
    fn next(&self) -> Option<String> {
        let mut bytes = [0; 1024];
        let length = self.0.recv(&mut bytes).ok()?;
        Some(String::from_utf8(bytes[..length].to_vec()).expect("UTF-8"))
    }

    /// Waits for a message with this line.
    fn until(&self, line: &str) {
        while let Some(message) = self.next() {
            if message.lines().any(|found| found == line) {
                return;
            }
        }
        panic!("no {line}");
    }
}

#[test]
fn a_blocked_worker_gives_no_sign_of_life() {
    if testkit::tls::skips("its server is in clear") {
        return;
    }
    if process::is_this() {
        return serve();
    }
    let folder = TestFolder::new();
    let manager = Manager::at(&folder.at("notify"));
    let blocker = UnixListener::bind(folder.at("blocker")).expect("a socket");
    let microseconds = WATCHDOG.as_micros().to_string();
    let mut server = Process::start_with(
        TEST,
        &[
            ("NOTIFY_SOCKET", &folder.at("notify")),
            ("WATCHDOG_USEC", Path::new(&microseconds)),
            (BLOCKER, &folder.at("blocker")),
        ],
    );
    let first = manager.next().expect("a message");
    let counts = "open connections: 0, requests: 0, rejected: 0";
    let expected = format!("READY=1\nSTATUS=Serving on {}; {counts}\nWATCHDOG=1", server.address);
    assert_eq!(first, expected);
    for _ in 0..3 {
        assert_eq!(manager.next().as_deref(), Some("WATCHDOG=1"), "an idle server is alive");
    }

    let mut client = TestClient::connect(server.address);
    client.ask("GET", "/block", &[]);
    let (blocked, _) = blocker.accept().expect("the handler waits");
    // A report may be under way. Then nothing comes for many times the interval.
    manager.0.set_read_timeout(Some(WATCHDOG * 5)).expect("set");
    let signs =
        std::iter::from_fn(|| manager.next()).filter(|message| message.contains("WATCHDOG=1")).count();
    assert!(signs <= 2, "{signs} signs of life of a blocked worker");

    manager.0.set_read_timeout(Some(TIMEOUT)).expect("set");
    drop(blocked);
    assert_eq!(client.response("GET").text(), "over");
    manager.until("WATCHDOG=1");
    server.signal(Signal::TERM);
    manager.until("STOPPING=1");
    server.server_ended();
}

#[test]
fn reports_the_beginning_and_the_end_of_a_reload() {
    if process::is_this() {
        return serve();
    }
    let folder = TestFolder::new();
    let manager = Manager::at(&folder.at("notify"));
    let blocker = UnixListener::bind(folder.at("blocker")).expect("a socket");
    let test = "service_manager::reports_the_beginning_and_the_end_of_a_reload";
    let variables: &[(&str, &Path)] =
        &[("NOTIFY_SOCKET", &folder.at("notify")), (BLOCKER, &folder.at("blocker"))];
    let mut server = Process::start_with(test, variables);
    let next = || manager.next().expect("a message");
    let ready = next();
    assert!(ready.starts_with("READY=1\nSTATUS=Serving"), "{ready}");
    let reload = || {
        let before = monotonic_us();
        server.signal(Signal::HUP);
        let message = next();
        let time = message.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("a reload");
        assert!((before..=monotonic_us()).contains(&time.parse().expect("a time")), "{message}");
        blocker.accept().expect("the function waits").0
    };
    for _ in 0..2 {
        drop(reload());
        let refused = next();
        let at = refused.strip_prefix(&ready).and_then(|rest| rest.strip_prefix("; last reload refused at "));
        assert!(at.is_some_and(|at| at.ends_with(" GMT")), "{refused}");
    }
    let _blocked = reload();
    server.signal(Signal::TERM);
    let over = next();
    assert!(over.starts_with("READY=1\nSTATUS=Draining"), "{over}");
    let end = next();
    let extended = end.strip_prefix("STOPPING=1\nEXTEND_TIMEOUT_USEC=").expect("the time of the drain");
    let extended: u64 = extended.parse().expect("a number");
    assert!((30_000_000..=35_000_000).contains(&extended), "{end}");
    server.server_ended();
}
