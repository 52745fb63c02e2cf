//! A client that holds connections, in a thread, against servers that are right and ones that are not.

use std::net::TcpListener;

use super::super::tests::serve_heads;
use super::super::{Arrivals, ExpectedResponse, LoadOptions, Pacing};
use super::*;
use crate::file_set::FileContent;
use crate::scenario;

const RIGHT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// The test's server closes a connection after these words, which no client takes for a header here.
const LAST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\nConnection: close";

/// Starts a client with so many connections from a source address of the test's own. All responses must have this body.
fn start(server: SocketAddr, body: &str, source: u8, connections: u16, keep_alive_ms: u64) -> HeldThread {
    let expected = ExpectedResponse::with_body(FileContent::of(body.as_bytes()));
    let scenario = scenario::find("plaintext").expect("a scenario").load(server, &expected, 0);
    let mut load = Load { connections: 0, pacing: Pacing::Rate(200), latencies: true, ..scenario };
    load.options = LoadOptions { arrivals: Arrivals::Poisson, ..LoadOptions::default() };
    let (source, ports) = (Ipv4Addr::new(127, 0, 3, source), 10_000..10_000 + connections);
    let task = HeldConnections { source, ports, opened_per_s: 10_000, pending_max: 4, keep_alive_ms };
    HeldThread::start(load, task).expect("sockets")
}

/// Waits for counts like these.
fn counts_when(client: &mut HeldThread, is_wanted: impl Fn(&HeldCounts) -> bool) -> HeldCounts {
    std::iter::repeat_with(|| client.order(COUNT).expect("it runs")).find(is_wanted).expect("endless")
}

fn serve(response: &'static str) -> SocketAddr {
    serve_heads(|_| response.as_bytes().to_vec())
}

#[test]
fn opens_asks_again_and_closes() {
    let mut client = start(serve(RIGHT), "ok", 1, 10, 60_000);
    let opened = counts_when(&mut client, HeldCounts::is_settled);
    assert_eq!((opened.held, opened.responses, opened.failed()), (10, 10, 0), "{opened:?}");
    client.order(START_ASKING).expect("it runs");
    counts_when(&mut client, |counts| counts.responses > 20);
    client.order(STOP_ASKING).expect("it runs");
    let asked = counts_when(&mut client, HeldCounts::is_settled);
    assert_eq!((asked.held, asked.failed()), (10, 0), "{asked:?}");
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
        let mut client = start(serve(response), body, source, 3, 60_000);
        let counts = counts_when(&mut client, |counts| counts.is_settled() && counts.failed() == 3);
        assert_eq!((counts.failures.get(reason), counts.held), (Some(&3), held), "{counts:?}");
    }
}

#[test]
fn connections_that_nobody_accepts_are_failures_with_the_reason() {
    let unused = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut client = start(unused, "", 5, 300, 60_000);
    let counts = counts_when(&mut client, HeldCounts::is_settled);
    let failed = counts.failures["failed connects (Connection refused (os error 111))"];
    assert!((FAILURES_MAX..FAILURES_MAX + 10).contains(&failed), "it stops: {counts:?}");
}

#[test]
fn idle_connections_that_end_by_the_timeout_have_expired() {
    let mut client = start(serve(LAST), "Connection: close", 6, 5, EARLY_MS);
    let expired = counts_when(&mut client, |counts| counts.expired == 5);
    assert_eq!((expired.held, expired.failed(), expired.responses), (0, 0, 5));
    let mut all = expired.clone();
    all.add(&HeldCounts { latest_expiry_ms: 60_000, ..expired });
    assert_eq!((all.expired, all.responses, all.latest_expiry_ms), (10, 10, 60_000));
}
