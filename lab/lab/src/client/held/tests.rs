//! A client that holds connections, in a thread, against servers that are right and ones that are not.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use testkit::{Head, Response};

use super::super::{ExpectedResponse, LoadOptions, Pacing};
use super::*;
use crate::scenario;

const RIGHT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const WRONG: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno";
const REQUEST: &str = "GET / HTTP/1.1\r\n\r\n";

/// A client in a thread of its own.
struct Running {
    orders: UnixStream,
    reports: BufReader<UnixStream>,
    thread: JoinHandle<io::Result<()>>,
}

impl Running {
    /// Starts it with so many connections from a source address of the test's own.
    fn start(server: SocketAddr, source: u8, connections: u16, keep_alive_ms: u64) -> Self {
        let head = Head::parse(RIGHT.split_inclusive("\r\n\r\n").next().expect("a head").as_bytes());
        let response = Response { head: head.expect("a head"), body: b"ok".to_vec() };
        let mut expected = ExpectedResponse::new("GET", 200);
        expected.body = Some(response.body.clone());
        expected.learn_head(&response);
        let scenario = scenario::find("plaintext").expect("a scenario");
        let mut load = Load {
            connections: 0,
            pacing: Pacing::Rate(200),
            latencies: true,
            ..scenario.load(server, 0, 0)
        };
        load.requests.iter_mut().for_each(|request| REQUEST.clone_into(&mut request.request));
        load.options =
            LoadOptions { expected: Some(expected), has_random_arrivals: true, ..LoadOptions::default() };
        let share =
            SourcePorts { source: Ipv4Addr::new(127, 0, 3, source), ports: 10_000..10_000 + connections };
        let task = HeldConnections { share, opened_per_s: 10_000, pending_max: 4, keep_alive_ms };
        let (orders, given) = UnixStream::pair().expect("sockets");
        let (reports, mut written) = UnixStream::pair().expect("sockets");
        let thread = thread::spawn(move || hold(&load, &task, given.into(), &mut written));
        Self { orders, reports: BufReader::new(reports), thread }
    }

    fn toggle_requests(&mut self) {
        self.orders.write_all(b"\n").expect("it reads");
    }

    /// Waits for counts like these.
    fn counts_when(&mut self, is_wanted: impl Fn(&HeldCounts) -> bool) -> HeldCounts {
        loop {
            let mut line = String::new();
            assert!(self.reports.read_line(&mut line).expect("it reports") > 0, "it has ended");
            let counts = serde_json::from_str(&line).expect("counts");
            if is_wanted(&counts) {
                return counts;
            }
        }
    }

    /// Ends its orders, and with them the client.
    fn end(self) {
        drop(self.orders);
        self.thread.join().expect("no panic").expect("no error");
    }
}

/// Serves each connection in a thread; the n-th request of a connection gets the n-th response, and then it is closed.
fn serve(responses: &'static [&'static str]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let converse = move |mut stream: TcpStream| {
        for response in responses {
            let received = stream.read_exact(&mut [0; REQUEST.len()]);
            if received.and_then(|()| stream.write_all(response.as_bytes())).is_err() {
                return;
            }
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || converse(stream));
        }
    });
    address
}

#[test]
fn opens_asks_again_and_closes() {
    let mut client = Running::start(serve(&[RIGHT; 100]), 1, 10, 60_000);
    let opened = client.counts_when(HeldCounts::is_settled);
    assert_eq!((opened.held, opened.responses, opened.failed()), (10, 10, 0), "{opened:?}");
    client.toggle_requests();
    client.counts_when(|counts| counts.responses > 20);
    client.toggle_requests();
    let asked = client.counts_when(HeldCounts::is_settled);
    assert_eq!((asked.held, asked.failed()), (10, 0), "{asked:?}");
    client.end();
}

#[test]
fn wrong_responses_and_closed_connections_are_failures() {
    const EARLY: &str = "connections closed or reset too early";
    for (source, responses, reason, held) in [
        (2, &[WRONG, RIGHT][..], "responses with another content", 3),
        (3, &["HTTP/1.1 200 OK\r\n"][..], EARLY, 0),
        (4, &[][..], EARLY, 0),
        // Idle, but long before the timeout.
        (5, &[RIGHT][..], EARLY, 0),
    ] {
        let mut client = Running::start(serve(responses), source, 3, 60_000);
        let counts = client.counts_when(|counts| counts.is_settled() && counts.failed() == 3);
        assert_eq!(counts.held, held, "{counts:?}");
        // Unread requests make the end a reset, which a write may meet first.
        let expected = [reason, "failed writes"];
        assert!(counts.failures.keys().all(|found| expected.contains(&found.as_str())), "{counts:?}");
        client.end();
    }
}

#[test]
fn connections_that_nobody_accepts_are_failures_with_the_reason() {
    let unused = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut client = Running::start(unused, 6, 300, 60_000);
    let counts = client.counts_when(HeldCounts::is_settled);
    let failed = counts.failures["failed connects (Connection refused (os error 111))"];
    assert!((FAILURES_MAX..FAILURES_MAX + 10).contains(&failed), "it stops: {counts:?}");
    client.end();
}

#[test]
fn idle_connections_that_end_by_the_timeout_have_expired() {
    let mut client = Running::start(serve(&[RIGHT]), 7, 5, EARLY_MS);
    let expired = client.counts_when(|counts| counts.expired == 5);
    assert_eq!((expired.held, expired.failed(), expired.responses), (0, 0, 5));
    client.end();
}

#[test]
fn counts_of_processes_add_up() {
    let failures = [("timeouts".to_owned(), 2)].into();
    let one = HeldCounts { held: 3, responses: 4, slowest_ms: 7, failures, ..HeldCounts::default() };
    let mut all = HeldCounts::default();
    all.add(&one);
    all.add(&HeldCounts { slowest_ms: 3, ..one.clone() });
    assert_eq!((all.held, all.responses, all.failed(), all.slowest_ms), (6, 8, 4, 7));
}
