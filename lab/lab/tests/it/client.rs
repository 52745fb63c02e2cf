//! Our own client against a server that is right, and against ones that are not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use lab::client::crowd::{self, Crowd};
use lab::client::{Load, run};
use lab::scenario::{self, Scenario};
use lab::tally::Tally;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const REFUSAL: &[u8] = b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno";

/// Answers every blank line with these bytes, a thread per connection, for as long as the test's process lives.
fn serve(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || converse(stream, answer));
        }
    });
    address
}

fn converse(mut stream: TcpStream, answer: &[u8]) {
    let mut unread = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(length) = stream.read(&mut buffer)
        && length > 0
    {
        unread.extend_from_slice(&buffer[..length]);
        while let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            unread.drain(..end + 4);
            if stream.write_all(answer).is_err() {
                return;
            }
        }
    }
}

fn load(name: &str, answer: &'static [u8]) -> Tally {
    load_of(*scenario::find(name).expect("it is in the table"), answer)
}

fn load_of(scenario: Scenario, answer: &'static [u8]) -> Tally {
    let duration = Duration::from_millis(150);
    let load =
        Load { address: serve(answer), scenario, duration, answer_bytes: ANSWER.len(), connections: 4 };
    run(&load).expect("loopback can be used")
}

#[test]
fn right_answers_are_counted_to_the_byte() {
    for name in ["plaintext", "plaintext-varied", "plaintext-churn", "plaintext-x16"] {
        let tally = load(name, ANSWER);
        assert!(tally.responses > 0, "{name}");
        assert_eq!((tally.socket_errors(), tally.status_errors), (0, 0), "{name}");
        let least = tally.responses * ANSWER.len() as u64;
        let unfinished = 4 * 16 * ANSWER.len() as u64;
        assert!((least..=least + unfinished).contains(&tally.bytes), "{name}: {tally}");
    }
}

#[test]
fn receive_buffers_are_those_asked_for_on_later_connections_too() {
    for name in ["plaintext", "plaintext-churn"] {
        let scenario = scenario::find(name).expect("it is in the table");
        let sized = |bytes| load_of(Scenario { receive_buffer_bytes: bytes, ..*scenario }, ANSWER);
        // Less than any system refuses to grant.
        let tally = sized(Some(16_384));
        assert!(tally.responses > 0 && tally.socket_errors() == 0, "{name}: {tally}");
        assert_eq!(tally.receive_buffer_bytes, 16_384, "{name}");
        assert_eq!(sized(None).receive_buffer_bytes, 0, "{name}");
    }
}

#[test]
fn a_status_that_is_not_200_is_counted() {
    let tally = load("plaintext", REFUSAL);
    assert!(tally.responses > 0);
    assert_eq!(tally.status_errors, tally.responses);
}

#[test]
fn answers_that_are_longer_than_probed_do_not_pass() {
    let tally = load("plaintext", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nokk");
    assert!(tally.status_errors > 0, "{tally}");
}

#[test]
fn a_server_that_closes_early_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || listener.incoming().for_each(drop));
    let scenario = *scenario::find("plaintext").expect("it is in the table");
    let load =
        Load { address, scenario, duration: Duration::from_millis(100), answer_bytes: 40, connections: 2 };
    let tally = run(&load).expect("loopback can be used");
    assert!(tally.socket_errors() > 0, "{tally}");
    assert_eq!(tally.responses, 0);
}

/// What a crowd of four makes of a server, 200 requests a second for a quarter of a second.
fn face(address: SocketAddr) -> Crowd {
    let (target, duration) = ("/".to_owned(), Duration::from_millis(250));
    let request =
        crowd::Request { address, target, answer_bytes: ANSWER.len(), connections: 4, rate: 200, duration };
    crowd::run(&request).expect("loopback can be used")
}

#[test]
fn a_crowd_asks_what_is_due_and_counts_what_comes() {
    let counts = face(serve(ANSWER));
    assert_eq!(counts.errors, 0, "{counts}");
    // Nothing is late, unless the machine stood still for seconds.
    assert!((counts.requests, counts.answers) == (50, 50) || counts.timeouts > 0, "{counts}");
    assert!(
        counts.p50_us <= counts.p99_us && counts.p99_us <= counts.max_us && counts.max_us > 0,
        "{counts}"
    );
}

#[test]
fn a_crowd_counts_wrong_answers_as_errors() {
    assert!(face(serve(REFUSAL)).errors > 0);
    assert!(face(serve(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nokk")).errors > 0);
}

#[test]
fn an_answer_that_never_comes_is_the_slowest() {
    let counts = face(serve(b""));
    assert!((1..=4).contains(&counts.requests), "{counts}");
    assert_eq!((counts.answers, counts.timeouts), (0, counts.requests), "{counts}");
    assert!(counts.p50_us >= 2_000_000 && counts.max_us >= 2_000_000, "{counts}");
}
