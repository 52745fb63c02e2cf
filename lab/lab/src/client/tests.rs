//! The client against a server that is right, and against ones that are not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::*;
use crate::file_set::{FileContent, FileSet};
use crate::scenario;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const REFUSAL: &[u8] = b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno";

/// Sends these bytes for every blank line, a thread per connection, for as long as the test's process lives.
fn serve(response: &'static [u8]) -> SocketAddr {
    serve_each(move |_| response.to_vec())
}

/// Sends what `respond` returns for the target.
fn serve_each(respond: impl Fn(&str) -> Vec<u8> + Copy + Send + 'static) -> SocketAddr {
    serve_heads(move |head| respond(head.split(' ').nth(1).unwrap_or_default()))
}

/// Sends what `respond` returns for a head, which begins with the body of the request before. A response with `Connection: close`
/// ends the connection.
pub(crate) fn serve_heads(respond: impl Fn(&str) -> Vec<u8> + Copy + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || converse(stream, respond));
        }
    });
    address
}

fn converse(mut stream: TcpStream, respond: impl Fn(&str) -> Vec<u8>) {
    let (mut unread, mut buffer) = (Vec::new(), [0; 65_536]);
    stream.set_nodelay(true).expect("a socket");
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        unread.extend_from_slice(&buffer[..length]);
        while let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(unread.drain(..end + 4).collect()).expect("ASCII");
            let response = respond(&head);
            let closes = response.windows(17).any(|window| window == b"Connection: close");
            if stream.write_all(&response).is_err() || closes {
                return;
            }
        }
    }
}

fn load(name: &str, response: &'static [u8]) -> Load {
    let scenario = scenario::find(name).expect("a scenario");
    let expected = ExpectedResponse::with_body(FileContent::of(b"ok"));
    Load { connections: 4, ..scenario.load(serve(response), &expected, 150) }
}

fn counts(load: &Load) -> LoadCounts {
    run(load).expect("loopback works")
}

#[test]
fn counts_right_responses_to_the_byte() {
    for name in ["plaintext", "plaintext-varied", "plaintext-churn", "plaintext-x16"] {
        let counts = counts(&load(name, RESPONSE));
        assert!(counts.responses > 0 && counts.requests >= counts.responses, "{name}");
        assert_eq!((counts.socket_errors(), counts.wrong_responses()), (0, 0), "{name}");
        let least = counts.responses * RESPONSE.len() as u64;
        let most = least + 4 * 16 * RESPONSE.len() as u64;
        assert!((least..=most).contains(&counts.bytes), "{name}: {counts:?}");
    }
}

#[test]
fn a_server_may_end_a_connection_with_its_last_response_and_no_earlier() {
    const CLOSING: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let last = counts(&load("plaintext-close", CLOSING));
    assert!(last.responses > 0 && last.connections_opened >= last.responses, "{last:?}");
    assert_eq!((last.socket_errors(), last.wrong_responses()), (0, 0), "{last:?}");
    assert!(counts(&load("plaintext", CLOSING)).read_errors > 0);
}

#[test]
fn at_the_end_idle_connections_close_so_that_a_server_of_one_at_a_time_gets_to_the_others() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || listener.incoming().flatten().for_each(|it| converse(it, |_| RESPONSE.to_vec())));
    let load = Load { address, requests_per_connection: 100, ..load("plaintext", RESPONSE) };
    let one_by_one = counts(&load);
    assert!(one_by_one.responses > 400, "{one_by_one:?}");
    assert_eq!((one_by_one.socket_errors(), one_by_one.wrong_responses()), (0, 0), "{one_by_one:?}");
}

#[test]
fn sends_every_request_and_expects_its_own_status_and_length() {
    let mut load = Load { depth: 4, ..load("plaintext", RESPONSE) };
    load.requests = vec![load.requests[0].clone(); 3];
    let right = counts(&load);
    assert!(right.responses > 0 && right.wrong_responses() == 0, "{right:?}");
    load.requests[1].expected.status = 404;
    let wrong = counts(&load);
    assert!(wrong.wrong_responses() > 0 && wrong.wrong_responses() < wrong.responses, "{wrong:?}");
}

const FILE_BYTES: u32 = 100;

/// Returns a set of files, and a load that asks for them.
fn load_of_set(respond: impl Fn(&str) -> Vec<u8> + Copy + Send + 'static) -> (FileSet, Load) {
    let set = FileSet { path: "/set".to_owned(), count: 20, bytes: FILE_BYTES };
    let address = serve_each(respond);
    let (files, responses_max) = (Some(set.clone()), Some(300));
    (set, Load { address, depth: 3, files, responses_max, millis: 60_000, ..load("plaintext", RESPONSE) })
}

/// Returns the file of a target, with a head whose length depends on it.
fn file(target: &str) -> Vec<u8> {
    let filler = "-".repeat(usize::from(target.as_bytes()[8] % 8));
    let head = format!("HTTP/1.1 200 OK\r\nServer: {filler}\r\nContent-Length: {FILE_BYTES}\r\n\r\n");
    head.bytes().chain(format!("{target}\n").bytes().cycle().take(FILE_BYTES as usize)).collect()
}

#[test]
fn files_of_a_set_are_requested_at_random_and_every_byte_is_checked() {
    let (_, load) = load_of_set(file);
    let right = counts(&load);
    assert!(right.responses >= 300 && right.wrong_responses() + right.socket_errors() == 0, "{right:?}");
    // A wrong last byte of some files, and a head without an end.
    let (_, load) = load_of_set(|target| {
        let mut whole = file(target);
        *whole.last_mut().expect("a file") ^= target.as_bytes()[10] & 1;
        whole
    });
    let wrong = counts(&load);
    assert!(wrong.wrong_responses() > 0 && wrong.wrong_responses() < wrong.responses, "{wrong:?}");
    let (_, load) = load_of_set(|_| b"HTTP/1.1 200 OK\r\n\r".to_vec());
    assert_eq!(counts(&Load { millis: 150, ..load }).responses, 0);
}

#[test]
fn the_hot_file_of_a_set_is_requested_as_often_as_wanted() {
    let (set, _) = load_of_set(file);
    let first: &'static str = set.target(0).leak();
    // Other files get what no file is.
    let (_, mut load) =
        load_of_set(move |target| if target == first { file(target) } else { file("/set/d000/") });
    load.hot_percent = 100;
    let hot = counts(&load);
    assert!(hot.responses >= 300 && hot.wrong_responses() == 0, "{hot:?}");
    load.hot_percent = 50;
    let half = counts(&load);
    let share = half.wrong_responses() as f64 / half.responses as f64;
    assert!((0.3..0.7).contains(&share), "{half:?}");
}

#[test]
fn requests_the_receive_buffer_on_every_connection() {
    for name in ["plaintext", "plaintext-churn"] {
        let granted = |receive_buffer_bytes| {
            counts(&Load { receive_buffer_bytes, ..load(name, RESPONSE) }).receive_buffer_bytes_granted
        };
        // Less than any system refuses to grant.
        assert_eq!([granted(Some(16_384)), granted(None)], [Some(16_384), None], "{name}");
    }
}

#[test]
fn rounds_end_after_exactly_the_responses_wanted() {
    let load = Load {
        pacing: Pacing::Rounds,
        responses_max: Some(40),
        millis: 60_000,
        ..load("plaintext", RESPONSE)
    };
    let counts = counts(&load);
    assert_eq!((counts.responses, counts.requests, counts.socket_errors()), (40, 40, 0));
}

fn at_a_rate(response: &'static [u8]) -> Load {
    Load { pacing: Pacing::Rate(200), latencies: true, millis: 250, ..load("plaintext", response) }
}

#[test]
fn a_fixed_rate_sends_what_is_due_and_records_latencies() {
    let right = counts(&at_a_rate(RESPONSE));
    assert_eq!(right.wrong_responses() + right.read_errors, 0, "{right:?}");
    // Nothing is late, unless the machine stood still for seconds.
    assert!((right.requests, right.responses) == (50, 50) || right.timeouts > 0, "{right:?}");
    let latency = right.latency.expect("recorded");
    assert!(latency.p50_ns <= latency.p99_ns && latency.p99_ns <= latency.max_ns && latency.p50_ns > 1_000);
    assert!(counts(&at_a_rate(REFUSAL)).wrong_responses() > 0);
}

#[test]
fn requests_leave_when_they_are_due_to_less_than_a_millisecond() {
    // 3.7 ms apart: waits in whole milliseconds would be 0.5 ms late on average, and so would the median latency.
    let load = Load { pacing: Pacing::Rate(270), ..at_a_rate(RESPONSE) };
    let median_ns = || counts(&load).latency.expect("recorded").p50_ns;
    // The least of some runs: other programs delay this one too.
    let least_ns = (0..20).map(|_| median_ns()).find(|median_ns| *median_ns < 400_000);
    assert!(least_ns.is_some());
}

#[test]
fn responses_that_never_come_and_requests_that_never_leave_are_the_slowest() {
    let counts = counts(&at_a_rate(b""));
    assert_eq!((counts.requests, counts.responses, counts.timeouts), (4, 0, 50), "{counts:?}");
    assert!(counts.latency.is_some_and(|latency| latency.p50_ns >= 1_990_000_000), "{counts:?}");
}

#[test]
fn downloads_beside_requests_are_counted_and_checked() {
    let with = |response| {
        let downloads = vec!["/large".to_owned(); 2];
        counts(&Load { downloads, ..at_a_rate(response) })
    };
    let right = with(RESPONSE);
    let bytes = RESPONSE.len() as u64;
    assert_eq!((right.downloaded_bytes, right.least_downloaded_bytes), (2 * bytes, bytes), "{right:?}");
    assert!(with(REFUSAL).read_errors > 0);
}
