//! Signals: the first drains, the second stops at once.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::client::Client;
use crate::process::{Serving, Summary, Temporary, drivers};

/// More than the sockets between the program and a client that does not read can hold.
const LARGE_BYTES: usize = 64 * 1024 * 1024;

/// Waits until the server stops listening, which shows that the signal has arrived.
fn until_refused(address: SocketAddr) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        match TcpStream::connect(address) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return,
            _ => std::thread::yield_now(),
        }
    }
    panic!("it still listens");
}

/// Starts a server with a client that has begun a download and stopped reading.
fn downloading(arguments: &[&str]) -> (Temporary, Serving, Client) {
    let folder = Temporary::new();
    folder.file("public/large.bin", vec![b'x'; LARGE_BYTES]).file("public/index.html", "x");
    let serving = Serving::start(&folder, arguments);
    let mut client = serving.connect();
    let head = client.ask("GET", "/large.bin", &[]).head();
    assert_eq!(head.field("Content-Length"), Some(LARGE_BYTES.to_string().as_str()));
    (folder, serving, client)
}

/// Checks that standard error has exactly these lines.
#[track_caller]
fn said(stderr: &str, expected: &[&str]) {
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{stderr}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(&format!("shearwater: {expected}")), "{stderr}");
    }
}

#[test]
fn a_signal_drains_and_prints_a_summary() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = Temporary::new();
        folder.file("public/f.txt", "content").file("public/index.html", "x");
        let serving = Serving::start(&folder, &["--workers", "2"]);
        for _ in 0..3 {
            let mut client = serving.connect();
            assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
            assert_eq!(client.request("GET", "/none", &[]).status, 404);
        }
        let mut bad = serving.connect();
        bad.send("GET / HTTP/1.1\r\n\r\n").end_sending();
        assert_eq!(bad.response("GET").status, 400);
        bad.is_ended();
        serving.signal(signal);
        let (code, farewell, stderr) = serving.end();
        assert_eq!(code, Some(0));
        assert_eq!(farewell, "Stopped: 6 requests handled, 1 refused, 4 connections.\n");
        let in_all =
            "in all 7 requests (2xx 3, 3xx 0, 4xx 4, 5xx 0), 4 connections (0 open, 0 refused, 0 reset, ";
        said(&stderr, &["draining: responding to received requests for up to 30 s", in_all]);
    }
}

#[test]
fn sigusr1_prints_counters() {
    let folder = Temporary::new();
    folder.file("public/f.txt", "content").file("public/index.html", "x");
    let mut serving = Serving::start(&folder, &["--workers", "2"]);
    serving.signal(Signal::USR1);
    let nothing = "shearwater: so far 0 requests (2xx 0, 3xx 0, 4xx 0, 5xx 0), \
        0 connections (0 open, 0 refused, 0 reset, 0 broken off), 0 bytes received, 0 bytes sent\n";
    assert_eq!(serving.hear(), nothing);
    let mut client = serving.connect();
    assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
    let mut other = serving.connect();
    let target = "/".repeat(10_000);
    assert_eq!(other.request("GET", &target, &[]).status, 414);
    serving.signal(Signal::USR1);
    let line = serving.hear();
    let begins =
        "shearwater: so far 2 requests (2xx 1, 3xx 0, 4xx 1, 5xx 0), 2 connections (2 open, 0 refused, ";
    assert!(line.starts_with(begins), "{line}");
    assert!(line.ends_with("; limits reached: target_bytes_max 1\n"), "{line}");
    assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
    drop((client, other));
    serving.signal(Signal::TERM);
    let (code, _, stderr) = serving.end();
    assert_eq!(code, Some(0));
    let in_all = "in all 3 requests (2xx 2, 3xx 0, 4xx 1, 5xx 0), 2 connections (0 open, ";
    said(&stderr, &["draining: responding to received requests for up to 30 s", in_all]);
}

#[test]
fn counts_bytes_sent_during_a_download_and_after_it_breaks() {
    for driver in drivers() {
        let (_folder, mut serving, mut client) = downloading(&["--driver", driver]);
        let mut part = vec![0; 1024 * 1024];
        client.stream.read_exact(&mut part).expect("a part of it");
        let read = part.len() as u64;
        Summary::until(&mut serving, |summary| summary.count("bytes sent") > read);
        // Closing a socket with unread input resets the connection.
        drop(client);
        let broken = Summary::until(&mut serving, |summary| summary.count("broken off") == 1);
        let sent = broken.count("bytes sent");
        assert!(read < sent && sent < LARGE_BYTES as u64, "{driver}: {sent} bytes of {LARGE_BYTES}");
        serving.signal(Signal::TERM);
        let (code, _, stderr) = serving.end();
        assert_eq!(code, Some(0));
        assert_eq!(Summary::of(&stderr).count("bytes sent"), sent, "{driver}: {stderr}");
    }
}

#[test]
fn counts_bytes_sent_of_a_file_that_is_truncated_meanwhile() {
    for driver in drivers() {
        let (folder, mut serving, mut client) = downloading(&["--driver", driver]);
        let large = File::options().write(true).open(folder.path().join("public/large.bin"));
        large.and_then(|file| file.set_len(1024)).expect("it can be cut");
        let body = client.rest().len() as u64;
        let failed = Summary::until(&mut serving, |summary| summary.count("open") == 0);
        let head = failed.count("bytes sent") - body;
        assert!(body < LARGE_BYTES as u64 && (1..1024).contains(&head), "{driver}: {body}, {head}");
    }
}

#[test]
fn sigusr1_while_draining_changes_nothing() {
    let (_folder, mut serving, mut client) = downloading(&["--drain", "1000000"]);
    serving.signal(Signal::TERM);
    until_refused(serving.address());
    assert!(serving.hear().starts_with("shearwater: draining: responding to received requests"));
    serving.signal(Signal::USR1);
    assert!(serving.hear().starts_with("shearwater: so far 1 requests (2xx 1, "));
    assert_eq!(client.rest().len(), LARGE_BYTES);
    drop(client);
    assert_eq!(serving.end().0, Some(0));
}

#[test]
fn a_signal_right_after_the_start_stops_it() {
    let folder = Temporary::new();
    for _ in 0..20 {
        let serving = Serving::start(&folder, &[]);
        serving.signal(Signal::TERM);
        let (code, farewell, _) = serving.end();
        assert_eq!(code, Some(0));
        assert!(farewell.starts_with("Stopped: 0 requests"), "{farewell:?}");
    }
}

#[test]
fn a_second_signal_stops_at_once() {
    for second in [Signal::TERM, Signal::INT] {
        let (_folder, serving, mut client) = downloading(&["--drain", "1000000"]);
        serving.signal(Signal::TERM);
        until_refused(serving.address());
        serving.signal(second);
        let (code, farewell, stderr) = serving.end();
        assert_eq!(code, Some(0));
        // That it ends at once may come too late to be said.
        let first = stderr.split_inclusive('\n').next().unwrap_or("");
        said(first, &["draining: responding to received requests for up to 1000000 s"]);
        assert_eq!(farewell.lines().count(), 1, "{farewell}");
        assert!(client.rest().len() < LARGE_BYTES);
    }
}

#[test]
fn limits_the_duration_of_a_drain() {
    let (_folder, serving, mut client) = downloading(&["--drain", "1"]);
    let begun = Instant::now();
    serving.signal(Signal::TERM);
    let (code, _, stderr) = serving.end();
    assert_eq!(code, Some(0));
    said(
        &stderr,
        &["draining: responding to received requests for up to 1 s", "worker ", "in all 1 requests (2xx 1, "],
    );
    assert!(stderr.contains(" has cut off 1 connections during a request or response\n"), "{stderr}");
    // Its clock counts whole milliseconds.
    assert!(begun.elapsed() >= Duration::from_millis(999), "it was cut off too early: {:?}", begun.elapsed());
    assert!(client.rest().len() < LARGE_BYTES);
}
