//! Streaming routes, and their end when the program drains.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::program::Program;

/// Reads a head and returns its status line.
fn head(stream: &mut BufReader<TcpStream>) -> String {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the connection ended within a head");
        match line.trim_end() {
            "" => return lines.into_iter().next().unwrap(),
            line => lines.push(line.to_owned()),
        }
    }
}

/// Reads the lines of the next event.
fn event(stream: &mut BufReader<TcpStream>) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended within an event");
        // Skips chunk sizes.
        let text = line.trim_end();
        if ["event: ", "id: ", "data: "].iter().any(|name| text.starts_with(name)) {
            lines.push(text.to_owned());
        } else if text.is_empty() && lines.len() == 3 {
            return lines;
        }
    }
}

fn subscribed(demo: &Program) -> BufReader<TcpStream> {
    let mut stream = demo.connect();
    stream.write_all(b"GET /events?every_ms=10 HTTP/1.1\r\nHost: demo\r\n\r\n").unwrap();
    let mut stream = BufReader::new(stream);
    assert_eq!(head(&mut stream), "HTTP/1.1 200 OK");
    stream
}

#[test]
fn events_are_numbered() {
    let demo = Program::start(&[]);
    let mut stream = subscribed(&demo);
    for number in 0..10 {
        let event = event(&mut stream);
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
fn an_echo_responses_before_the_body_ends() {
    let demo = Program::start(&[]);
    let mut sender = demo.connect();
    let mut stream = BufReader::new(sender.try_clone().unwrap());
    sender
        .write_all(b"POST / HTTP/1.1\r\nHost: demo\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        .unwrap();
    assert_eq!(head(&mut stream), "HTTP/1.1 200 OK");
    let mut chunk = [0; 10];
    stream.read_exact(&mut chunk).unwrap();
    assert_eq!(&chunk, b"5\r\nfirst\r\n");
    sender.write_all(b"0\r\n\r\n").unwrap();
    let mut end = [0; 5];
    stream.read_exact(&mut end).unwrap();
    assert_eq!(&end, b"0\r\n\r\n");

    let whole = demo.ask("POST", "/", &["Content-Type: text/x-ahoy"], b"ahoy");
    assert_eq!((whole.field("content-type"), whole.text()), (Some("text/x-ahoy"), "ahoy"));
}

/// Draining ends an endless stream and the program.
#[test]
fn a_signal_ends_streams_and_program() {
    let demo = Program::start(&[]);
    let mut stream = subscribed(&demo);
    event(&mut stream);
    demo.terminate();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
    assert_eq!(demo.wait().status.code(), Some(0));
}

/// A request in flight whose body never ends.
fn unfinished(demo: &Program) -> BufReader<TcpStream> {
    let mut stream = demo.connect();
    stream.write_all(b"POST / HTTP/1.1\r\nHost: demo\r\nContent-Length: 2\r\n\r\n1").unwrap();
    let mut stream = BufReader::new(stream);
    assert_eq!(head(&mut stream), "HTTP/1.1 200 OK");
    stream
}

#[test]
fn a_drain_has_an_end() {
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
fn a_drain_has_an_end_for_a_request_that_offers_an_upgrade() {
    let demo = Program::start(&[]);
    let mut stream = demo.connect();
    let head = "GET /slow-async?ms=60000 HTTP/1.1\r\nHost: demo\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    demo.terminate();
    let end = demo.wait();
    assert!(end.status.success());
    assert!(end.stderr.contains(" has cut off 1 connections during a request or response"), "{}", end.stderr);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let demo = Program::start(&[]);
    let _unfinished = unfinished(&demo);
    let mut stream = subscribed(&demo);
    demo.terminate();
    // The stream ends when the first signal is handled.
    stream.read_to_end(&mut Vec::new()).unwrap();
    demo.terminate();
    let end = demo.wait();
    assert!(end.status.success());
    let last = end.stdout.lines().last();
    assert_eq!(last, Some("demo: second signal: requests in flight are cut off"));
}

/// Requests in flight are completed after the signal.
#[test]
fn a_signal_waits_for_responses() {
    let demo = Program::start(&[]);
    let mut stream = demo.connect();
    // The head of the echo shows that the request is being served.
    stream.write_all(b"POST / HTTP/1.1\r\nHost: demo\r\nContent-Length: 4\r\n\r\na").unwrap();
    let mut stream = BufReader::new(stream);
    assert_eq!(head(&mut stream), "HTTP/1.1 200 OK");
    demo.terminate();
    stream.get_mut().write_all(b"hoy").unwrap();
    let mut body = String::new();
    stream.read_to_string(&mut body).unwrap();
    assert_eq!(body, "ahoy");
    assert_eq!(demo.wait().status.code(), Some(0));
}
