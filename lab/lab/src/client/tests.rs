//! The client against a server that is right, and against ones that are not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::*;
use crate::scenario;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const REFUSAL: &[u8] = b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno";
const LONGER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nokk";

/// Sends these bytes for every blank line, a thread per connection, for as long as the test's process lives.
fn serve(response: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || converse(stream, response));
        }
    });
    address
}

fn converse(mut stream: TcpStream, response: &[u8]) {
    let (mut unread, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        unread.extend_from_slice(&buffer[..length]);
        while let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            unread.drain(..end + 4);
            if stream.write_all(response).is_err() {
                return;
            }
        }
    }
}

fn load(name: &str, response: &'static [u8]) -> Load {
    let scenario = scenario::find(name).expect("a scenario");
    Load { connections: 4, ..scenario.load(serve(response), RESPONSE.len() as u64, 150) }
}

fn tally(load: &Load) -> Tally {
    run(load).expect("loopback works")
}

#[test]
fn counts_right_responses_to_the_byte() {
    for name in ["plaintext", "plaintext-varied", "plaintext-churn", "plaintext-x16"] {
        let tally = tally(&load(name, RESPONSE));
        assert!(tally.responses > 0 && tally.requests >= tally.responses, "{name}");
        assert_eq!((tally.socket_errors(), tally.status_errors), (0, 0), "{name}");
        let least = tally.responses * RESPONSE.len() as u64;
        assert!((least..=least + 4 * 16 * RESPONSE.len() as u64).contains(&tally.bytes), "{name}: {tally:?}");
    }
}

#[test]
fn sends_every_exchange_and_expects_its_own_status_and_length() {
    let exchange = |status, bytes: usize| Exchange {
        request: "GET / HTTP/1.1\r\n\r\n".to_owned(),
        status,
        bytes: bytes as u64,
    };
    let mut load = Load { depth: 4, ..load("plaintext", RESPONSE) };
    load.exchanges = vec![exchange(200, RESPONSE.len()); 3];
    let right = tally(&load);
    assert!(right.responses > 0 && right.status_errors == 0, "{right:?}");
    load.exchanges[1].status = 404;
    let wrong = tally(&load);
    assert!(wrong.status_errors > 0 && wrong.status_errors < wrong.responses, "{wrong:?}");
}

#[test]
fn requests_the_receive_buffer_on_every_connection() {
    for name in ["plaintext", "plaintext-churn"] {
        let sized = |bytes| tally(&Load { receive_buffer_bytes: bytes, ..load(name, RESPONSE) });
        // Less than any system refuses to grant.
        assert_eq!(sized(Some(16_384)).receive_buffer_bytes, 16_384, "{name}");
        assert_eq!(sized(None).receive_buffer_bytes, 0, "{name}");
    }
}

#[test]
fn counts_wrong_statuses_lengths_and_closed_connections() {
    let refused = tally(&load("plaintext", REFUSAL));
    assert!(refused.responses > 0 && refused.status_errors == refused.responses);
    assert!(tally(&load("plaintext", LONGER)).status_errors > 0);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || listener.incoming().for_each(drop));
    let closed = tally(&Load { address, ..load("plaintext", RESPONSE) });
    assert!(closed.socket_errors() > 0 && closed.responses == 0, "{closed:?}");
}

#[test]
fn rounds_end_after_exactly_the_responses_wanted() {
    let load = Load {
        pacing: Pacing::Rounds,
        responses_max: Some(40),
        millis: 60_000,
        ..load("plaintext", RESPONSE)
    };
    let tally = tally(&load);
    assert_eq!((tally.responses, tally.requests, tally.socket_errors()), (40, 40, 0));
}

fn at_a_rate(response: &'static [u8]) -> Tally {
    tally(&Load { pacing: Pacing::Rate(200), latencies: true, millis: 250, ..load("plaintext", response) })
}

#[test]
fn a_fixed_rate_sends_what_is_due_and_records_latencies() {
    let tally = at_a_rate(RESPONSE);
    assert_eq!(tally.status_errors + tally.read_errors, 0, "{tally:?}");
    // Nothing is late, unless the machine stood still for seconds.
    assert!((tally.requests, tally.responses) == (50, 50) || tally.timeouts > 0, "{tally:?}");
    let latency = tally.latency.expect("recorded");
    assert!(latency.p50_us <= latency.p99_us && latency.p99_us <= latency.max_us && latency.p50_us > 0);
    for wrong in [REFUSAL, LONGER] {
        assert!(at_a_rate(wrong).status_errors > 0);
    }
}

#[test]
fn a_response_that_never_comes_is_the_slowest() {
    let tally = at_a_rate(b"");
    assert_eq!((tally.requests, tally.responses, tally.timeouts), (4, 0, 4), "{tally:?}");
    assert!(tally.latency.is_some_and(|latency| latency.p50_us >= 1_990_000), "{tally:?}");
}

#[test]
fn finds_a_whole_tally_in_the_output_of_wrk() {
    let tally = Tally { responses: 351_337, timeouts: 4, ..Tally::default() };
    let line = tally.line();
    assert_eq!(Tally::parse(&format!("Running 2s test\nRequests/sec: 17.5\n{line}\n")), Some(tally));
    for (was, is) in [("\"timeouts\":4,", ""), ("351337", "-nan"), ("351337", "-1")] {
        assert_eq!(Tally::parse(&line.replace(was, is)), None, "{is}");
    }
    for scenario in ["plaintext", "1k-x16"] {
        let script = crate::wrk::script(scenario::find(scenario).expect("a scenario"));
        for field in ["responses", "bytes", "duration_us", "connect_errors", "timeouts", "status_errors"] {
            assert!(script.contains(&format!("\"{field}\":%.0f")), "{field} in {script}");
        }
        assert_eq!(script.contains("string.rep(one, 16)"), scenario.ends_with("x16"));
    }
}
