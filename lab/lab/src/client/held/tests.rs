//! A client that holds connections, in a thread, against servers that are right and ones that are not.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use super::super::tests::serve_heads;
use super::super::{ExpectedResponse, LoadOptions, Pacing};
use super::*;
use crate::scenario;

const RIGHT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// The test's server closes a connection after these words, which no client takes for a header here.
const LAST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\nConnection: close";

/// A client in a thread of its own.
struct Running {
    orders: UnixStream,
    reports: BufReader<UnixStream>,
    thread: JoinHandle<io::Result<()>>,
}

impl Running {
    /// Starts it with so many connections from a source address of the test's own. All responses must have this body.
    fn start(server: SocketAddr, body: &str, source: u8, connections: u16, keep_alive_ms: u64) -> Self {
        let mut expected = ExpectedResponse::new("GET", 200);
        expected.body = Some(body.as_bytes().to_vec());
        let scenario = scenario::find("plaintext").expect("a scenario").load(server, 0, 0);
        let mut load = Load { connections: 0, pacing: Pacing::Rate(200), latencies: true, ..scenario };
        load.options =
            LoadOptions { expected: Some(expected), has_random_arrivals: true, ..LoadOptions::default() };
        let source = Ipv4Addr::new(127, 0, 3, source);
        let share = SourcePorts { source, ports: 10_000..10_000 + connections };
        let task = HeldConnections { share, opened_per_s: 10_000, pending_max: 4, keep_alive_ms };
        let (orders, given) = UnixStream::pair().expect("sockets");
        let (reports, mut written) = UnixStream::pair().expect("sockets");
        let thread = thread::spawn(move || hold(&load, &task, given.into(), &mut written));
        Self { orders, reports: BufReader::new(reports), thread }
    }

    /// Gives an order and returns the counts.
    fn order(&mut self, order: u8) -> HeldCounts {
        let mut line = String::new();
        self.orders.write_all(&[order]).expect("it reads");
        self.reports.read_line(&mut line).expect("it reports");
        serde_json::from_str(&line).expect("counts")
    }

    /// Waits for counts like these.
    fn counts_when(&mut self, is_wanted: impl Fn(&HeldCounts) -> bool) -> HeldCounts {
        std::iter::repeat_with(|| self.order(COUNT)).find(is_wanted).expect("endless")
    }

    /// Ends its orders, and with them the client.
    fn end(self) {
        drop(self.orders);
        self.thread.join().expect("no panic").expect("no error");
    }
}

fn serve(response: &'static str) -> SocketAddr {
    serve_heads(|_| response.as_bytes().to_vec())
}

#[test]
fn opens_asks_again_and_closes() {
    let mut client = Running::start(serve(RIGHT), "ok", 1, 10, 60_000);
    let opened = client.counts_when(HeldCounts::is_settled);
    assert_eq!((opened.held, opened.responses, opened.failed()), (10, 10, 0), "{opened:?}");
    client.order(START_ASKING);
    client.counts_when(|counts| counts.responses > 20);
    client.order(STOP_ASKING);
    let asked = client.counts_when(HeldCounts::is_settled);
    assert_eq!((asked.held, asked.failed()), (10, 0), "{asked:?}");
    client.end();
}

#[test]
fn wrong_responses_and_closed_connections_are_failures() {
    const EARLY: &str = "connections closed or reset too early";
    for (source, response, body, reason, held) in [
        (2, RIGHT, "no", "responses with another content", 3),
        (3, "HTTP/1.1 200 OK\r\nConnection: close", "", EARLY, 0),
        // Idle, but long before the timeout.
        (4, LAST, "Connection: close", EARLY, 0),
    ] {
        let mut client = Running::start(serve(response), body, source, 3, 60_000);
        let counts = client.counts_when(|counts| counts.is_settled() && counts.failed() == 3);
        assert_eq!((counts.failures.get(reason), counts.held), (Some(&3), held), "{counts:?}");
        client.end();
    }
}

#[test]
fn connections_that_nobody_accepts_are_failures_with_the_reason() {
    let unused = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut client = Running::start(unused, "", 5, 300, 60_000);
    let counts = client.counts_when(HeldCounts::is_settled);
    let failed = counts.failures["failed connects (Connection refused (os error 111))"];
    assert!((FAILURES_MAX..FAILURES_MAX + 10).contains(&failed), "it stops: {counts:?}");
    client.end();
}

#[test]
fn idle_connections_that_end_by_the_timeout_have_expired() {
    let mut client = Running::start(serve(LAST), "Connection: close", 6, 5, EARLY_MS);
    let expired = client.counts_when(|counts| counts.expired == 5);
    assert_eq!((expired.held, expired.failed(), expired.responses), (0, 0, 5));
    let mut all = expired.clone();
    all.add(&HeldCounts { latest_expiry_ms: 60_000, ..expired });
    assert_eq!((all.expired, all.responses, all.latest_expiry_ms), (10, 10, 60_000));
    client.end();
}
