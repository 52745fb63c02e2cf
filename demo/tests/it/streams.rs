//! Streaming routes, and their end when the program drains.

use std::time::{Duration, Instant};

use testkit::TestClient;

use crate::program::Program;

/// Reads the lines of the next event.
fn event(client: &mut TestClient) -> Vec<String> {
    let mut text = String::new();
    while !text.ends_with("\n\n") {
        text.push_str(std::str::from_utf8(&client.data()).unwrap());
    }
    text.lines().map(str::to_owned).collect()
}

fn subscribed(demo: &Program) -> TestClient {
    let mut client = demo.connect();
    assert_eq!(client.ask("GET", "/events?every_ms=10", &[]).head().status, 200);
    client
}

#[test]
fn numbers_events() {
    let demo = Program::start(&[]);
    let mut client = subscribed(&demo);
    for number in 0..10 {
        let event = event(&mut client);
        assert!(event.contains(&"event: tick".to_owned()), "{event:?}");
        assert!(event.contains(&format!("id: {number}")), "{event:?}");
        let data = event.iter().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["tick"], number);
    }
    for wrong in ["/events?every_ms=9", "/events?every_ms=60001", "/events?every_ms=x"] {
        assert_eq!(demo.get(wrong).status, 400, "{wrong}");
    }
}

#[test]
fn echoes_while_the_body_arrives() {
    let demo = Program::start(&[]);
    let mut client = demo.connect();
    client.ask("POST", "/", &["Transfer-Encoding: chunked"]).send("5\r\nfirst\r\n");
    assert_eq!(client.head().status, 200);
    assert_eq!(client.data(), b"first");
    client.send("0\r\n\r\n");
    assert_eq!(client.data(), b"");

    let whole = demo.ask("POST", "/", &["Content-Type: text/x-ahoy"], b"ahoy");
    assert_eq!((whole.field("content-type"), whole.text()), (Some("text/x-ahoy"), "ahoy"));
}

/// Draining ends an endless stream and the program.
#[test]
fn signal_ends_streams_and_program() {
    let demo = Program::start(&[]);
    let mut client = subscribed(&demo);
    event(&mut client);
    demo.terminate();
    let rest = client.rest();
    assert!(rest.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
    assert_eq!(demo.wait().status.code(), Some(0));
}

/// A request in flight whose body never ends.
fn unfinished(demo: &Program) -> TestClient {
    let mut client = demo.connect();
    client.ask("POST", "/", &["Content-Length: 2"]).send("1");
    assert_eq!(client.head().status, 200);
    client
}

#[test]
fn drain_ends_at_its_deadline() {
    let demo = Program::start(&[]);
    let _unfinished = unfinished(&demo);
    let begun = Instant::now();
    demo.terminate();
    let end = demo.wait();
    assert!(end.status.success());
    // The program's clock has a granularity of one millisecond.
    assert!(begun.elapsed() >= Duration::from_millis(4999), "cut off after {:?}", begun.elapsed());
    assert!(end.stderr.contains(" has cut off 1 connections during a request or response"), "{}", end.stderr);
    assert!(!end.stdout.contains("cut off"), "there were no guests: {}", end.stdout);
}

#[test]
fn drain_ends_at_its_deadline_for_an_upgrade_offer() {
    let demo = Program::start(&[]);
    let mut client = demo.connect();
    client.ask("GET", "/slow-async?ms=60000", &["Connection: upgrade", "Upgrade: websocket"]);
    demo.terminate();
    let end = demo.wait();
    assert!(end.status.success());
    assert!(end.stderr.contains(" has cut off 1 connections during a request or response"), "{}", end.stderr);
}

#[test]
fn second_signal_stops() {
    let demo = Program::start(&[]);
    let _unfinished = unfinished(&demo);
    let mut client = subscribed(&demo);
    demo.terminate();
    // The stream ends when the first signal is handled.
    client.rest();
    demo.terminate();
    let end = demo.wait();
    assert!(end.status.success());
    let last = end.stdout.lines().last();
    assert_eq!(last, Some("demo: second signal: requests in flight are cut off"));
}

/// Requests in flight are completed after the signal.
#[test]
fn signal_waits_for_responses() {
    let demo = Program::start(&[]);
    let mut client = demo.connect();
    // The head of the echo shows that the request is being served.
    client.ask("POST", "/", &["Content-Length: 4"]).send("a");
    assert_eq!(client.head().status, 200);
    demo.terminate();
    assert_eq!(client.send("hoy").rest(), b"ahoy");
    assert_eq!(demo.wait().status.code(), Some(0));
}
