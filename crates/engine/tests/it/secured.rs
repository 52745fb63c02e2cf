//! Connections with TLS, by sessions without cryptography.

use shearwater_engine::Timeouts;

use shearwater_engine::io::limits::SEAL_BYTES_PER_TURN_MAX;
use testkit::http2::Session;
use testkit::http2::frame::INITIAL_WINDOW_SIZE;

use crate::harness::app::{FILE_BYTES, file_bytes};
use crate::harness::letters::{ALERT, CONTENT, HELLO, HTTP2, MESSAGE, REFUSED, SecureSim, record};
use crate::harness::unit::head;
use crate::harness::{ExpectedResponse, Setting, SimClient, SimWorld};

/// A client that sends the records of a test.
pub(crate) fn connect<S: shearwater_engine::Service>(
    world: &mut SimWorld<S, SecureSim>,
    policy: u8,
) -> SimClient {
    let mut client = SimClient::new(world.net.connect());
    world.feed(&mut client, record(HELLO, &[policy]));
    client
}

fn world() -> SimWorld<crate::harness::app::TestApp, SecureSim> {
    SimWorld::with_tls(Setting::default(), crate::harness::app::TestApp)
}

fn get(host: &str) -> Vec<u8> {
    record(CONTENT, format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
}

#[test]
fn responds_421_to_a_host_of_another_client_policy() {
    let mut world = world();
    let mut client = connect(&mut world, b'a');
    world.feed(&mut client, get("a.example"));
    assert!(client.text().starts_with("HTTP/1.1 200 OK\r\n"), "{}", client.text());
    world.feed(&mut client, [get("about.example"), get("b.example"), get("a.example")].concat());
    let text = client.text();
    let statuses: Vec<_> = text.split("HTTP/1.1 ").skip(1).map(|response| &response[..3]).collect();
    assert_eq!(statuses, ["200", "200", "421"]);
    client.assert_closed();
}

/// Browsers send requests of other hosts on a connection whose certificate has their names (RFC 9113 section 9.1.1).
#[test]
fn responds_421_on_the_stream_of_a_host_of_another_client_policy() {
    let mut world = world();
    let mut client = SimClient::new(world.net.connect());
    world.feed(&mut client, record(HELLO, &[b"a", HTTP2].concat()));
    let mut session = Session::new(&[]);
    let streams = ["a.example", "b.example", "about.example"]
        .map(|host| session.send("GET", "/", &[("host", host)], b""));
    world.feed(&mut client, record(CONTENT, &session.take_output()));
    session.receive(client.read()).expect("valid frames");
    let statuses =
        streams.map(|stream| session.response(stream).expect("no reset").expect("a response").status);
    assert_eq!(statuses, [200, 421, 200]);
    assert_eq!((session.go_away(), client.peer.saw_fin()), (None, false), "the others go on");
}

#[test]
fn an_alert_arrives_though_input_is_unread() {
    let mut world = world();
    let mut client = SimClient::new(world.net.connect());
    world.feed(&mut client, record(HELLO, &[REFUSED]));
    assert_eq!(client.read(), ALERT);
    client.assert_closed();
    world.feed(&mut client, [0; 10_000]);
    assert!(!client.peer.saw_reset());
    client.peer.finish();
    world.settle();
    assert_eq!(world.worker.in_use(), (0, 0, 0));
    let mut silent = SimClient::new(world.net.connect());
    world.feed(&mut silent, record(HELLO, &[REFUSED]));
    world.pass(Timeouts::default().linger_ms + 2000);
    assert_eq!(world.worker.in_use(), (0, 0, 0), "it doesn't wait for longer");
}

#[test]
fn a_part_of_a_record_is_no_request() {
    for (rest_ms, is_finished) in [(0, true), (0, false), (Timeouts::default().head_ms + 2000, false)] {
        let mut world = world();
        let mut client = connect(&mut world, b'a');
        world.feed(&mut client, get("a.example"));
        let got = client.read().len();
        let (first, rest) = (&record(MESSAGE, b"12345")[..7], &record(MESSAGE, b"12345")[7..]);
        world.feed(&mut client, first);
        if is_finished {
            world.feed(&mut client, rest);
        }
        world.pass(rest_ms);
        client.peer.finish();
        world.settle();
        assert_eq!(client.read().len(), got, "no response to it");
        client.assert_closed();
        assert_eq!(world.worker.in_use(), (0, 0, 0));
        assert_eq!(world.control.totals().requests_refused, 0);
    }
}

/// Sends a body's record at this rate, for so long; returns the time until the response.
fn body_ends_after(bytes_per_second: usize, sent_ms: u64) -> Option<u64> {
    let mut world = world();
    let mut client = connect(&mut world, b'a');
    let head = b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 16000\r\n\r\n";
    world.feed(&mut client, record(CONTENT, head));
    let body = record(CONTENT, &[b'x'; 16_000]);
    let (began_ms, mut sent) = (world.net.now_ms(), 0);
    loop {
        let passed_ms = world.net.now_ms() - began_ms;
        if !client.read().is_empty() {
            return client.text().starts_with("HTTP/1.1 408").then_some(passed_ms);
        }
        let due =
            body.len().min(bytes_per_second * usize::try_from(passed_ms.min(sent_ms)).expect("short") / 1000);
        world.feed(&mut client, &body[sent..due.max(sent)]);
        sent = due.max(sent);
        world.pass(500);
        assert!(passed_ms < 300_000, "no response");
    }
}

#[test]
fn a_slow_body_in_one_record_keeps_its_minimum_rate() {
    let Timeouts { body_grace_ms, body_ms, .. } = Timeouts::default();
    assert_eq!(body_ends_after(500, u64::MAX), None, "the record takes 32 s");
    assert_eq!(body_ends_after(300, u64::MAX), None, "the record takes 53 s");
    let silent_ms = body_ends_after(0, 0).expect("a timeout");
    assert!((body_grace_ms..body_grace_ms + 1000).contains(&silent_ms), "{silent_ms}");
    let slow_ms = body_ends_after(100, u64::MAX).expect("a timeout");
    assert!((body_grace_ms..2 * body_grace_ms).contains(&slow_ms), "{slow_ms}");
    let stopped_ms = body_ends_after(500, 8000).expect("a timeout");
    assert!((body_grace_ms..body_grace_ms + body_ms + 1000).contains(&stopped_ms), "{stopped_ms}");
}

#[test]
fn a_silent_body_counts_as_silent() {
    let mut world = world();
    let mut client = connect(&mut world, b'a');
    let head = b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 16000\r\n\r\n";
    world.feed(&mut client, record(CONTENT, head));
    world.feed(&mut client, record(CONTENT, &[b'x'; 15_000]));
    world.pass(Timeouts::default().body_ms + 1000);
    assert!(client.text().starts_with("HTTP/1.1 408"));
    assert_eq!(world.control.totals().hit_body_ms, 1);
}

#[test]
fn handlers_see_the_session_at_once_and_later() {
    let mut world = world();
    let mut client = connect(&mut world, b'a');
    for path in ["/tls", "/tls-later"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n");
        world.feed(&mut client, record(CONTENT, request.as_bytes()));
        let text = client.text();
        let session = r#"TlsSession { version: Tls13, cipher_suite: "TLS_NULL", alpn: Some("http/1.1"), server_name: Some("a.example"), is_resumed: false, .. } ["a certificate"]"#;
        assert!(text.ends_with(session), "{path}: {text}");
    }
    let mut world = SimWorld::new(Setting::default());
    for path in ["/tls", "/tls-later"] {
        let mut plain = world.send(head("GET", path, ""));
        plain.assert_got(&[ExpectedResponse::text("200 OK", "plain")]);
    }
}

/// As over HTTP/1: rounds of an output, and outputs of a stream, share a turn until its bytes are sealed.
#[test]
fn outputs_of_a_large_stream_share_a_turn() {
    let mut world = world();
    let mut client = SimClient::new(world.net.connect());
    world.feed(&mut client, record(HELLO, &[b"a", HTTP2].concat()));
    let mut session = Session::new(&[(INITIAL_WINDOW_SIZE, 1 << 30)]);
    session.grant(0, 1 << 30);
    let stream = session.send("GET", "/file", &[("host", "a.example")], b"");
    client.send(record(CONTENT, &session.take_output()));
    let mut turns = 0;
    while world.turn_if_ready() {
        turns += 1;
    }
    session.receive(client.read()).expect("valid frames");
    let response = session.response(stream).expect("no reset").expect("a whole response");
    assert!(response.body == file_bytes(), "the file differs");
    let turns_max = FILE_BYTES.div_ceil(SEAL_BYTES_PER_TURN_MAX as usize) + 2;
    assert!(turns <= turns_max, "{turns} turns");
}
