//! Signals: the first drains, the second stops at once.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use testkit::{TestClient, TestFolder, until_refused};

use crate::process::{Server, Summary, drivers};

/// More than the sockets between the program and a client that does not read can hold.
const LARGE_BYTES: usize = 64 * 1024 * 1024;

/// Starts a server with a client that has started a download and stopped reading.
fn downloading(arguments: &[&str]) -> (TestFolder, Server, TestClient) {
    let folder = TestFolder::new();
    folder.file("public/large.bin", vec![b'x'; LARGE_BYTES]).file("public/index.html", "x");
    let server = Server::start(&folder, arguments);
    let mut client = server.connect();
    let head = client.ask("GET", "/large.bin", &[]).head();
    assert_eq!(head.field("Content-Length"), Some(LARGE_BYTES.to_string().as_str()));
    (folder, server, client)
}

/// Checks that standard error has exactly these lines.
#[track_caller]
fn assert_log(stderr: &str, expected: &[&str]) {
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{stderr}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(&format!("shearwater: {expected}")), "{stderr}");
    }
}

#[test]
fn a_signal_drains_and_prints_a_summary() {
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let folder = TestFolder::new();
        folder.file("public/f.txt", "content").file("public/index.html", "x");
        let server = Server::start(&folder, &["--workers", "2"]);
        for _ in 0..3 {
            let mut client = server.connect();
            assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
            assert_eq!(client.request("GET", "/none", &[]).status, 404);
        }
        let mut bad = server.connect();
        bad.send("GET / HTTP/1.1\r\n\r\n").end_sending();
        assert_eq!(bad.response("GET").status, 400);
        bad.is_ended();
        server.signal(signal);
        let (code, stdout, stderr) = server.end();
        assert_eq!(code, Some(0));
        assert_eq!(stdout, "Stopped: 6 requests handled, 1 rejected, 4 connections.\n");
        let in_all =
            "in all 7 requests (2xx 3, 3xx 0, 4xx 4, 5xx 0), 4 connections (0 open, 0 refused, 0 reset, ";
        assert_log(&stderr, &["draining: responding to received requests for up to 30 s", in_all]);
    }
}

#[test]
fn sigusr1_prints_counters() {
    let folder = TestFolder::new();
    folder.file("public/f.txt", "content").file("public/index.html", "x");
    let mut server = Server::start(&folder, &["--workers", "2"]);
    server.signal(Signal::USR1);
    let nothing = "shearwater: so far 0 requests (2xx 0, 3xx 0, 4xx 0, 5xx 0), \
        0 connections (0 open, 0 refused, 0 reset, 0 broken off), 0 bytes received, 0 bytes sent\n";
    assert_eq!(server.next_line(), nothing);
    let mut client = server.connect();
    assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
    let mut other = server.connect();
    let target = "/".repeat(10_000);
    assert_eq!(other.request("GET", &target, &[]).status, 414);
    server.signal(Signal::USR1);
    let line = server.next_line();
    let begins =
        "shearwater: so far 2 requests (2xx 1, 3xx 0, 4xx 1, 5xx 0), 2 connections (2 open, 0 refused, ";
    assert!(line.starts_with(begins), "{line}");
    assert!(line.ends_with("; limits reached: target_bytes_max 1\n"), "{line}");
    assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
    drop((client, other));
    let (_, stderr) = server.stop();
    let in_all = "in all 3 requests (2xx 2, 3xx 0, 4xx 1, 5xx 0), 2 connections (0 open, ";
    assert_log(&stderr, &["draining: responding to received requests for up to 30 s", in_all]);
}

#[test]
fn counts_bytes_sent_during_a_download_and_after_it_breaks() {
    if testkit::tls::skips("bytes count as sent once they are encrypted") {
        return;
    }
    for driver in drivers() {
        let (_folder, mut server, mut client) = downloading(&["--driver", driver]);
        let read = client.exactly(1024 * 1024).len() as u64;
        Summary::until(&mut server, |summary| summary.count("bytes sent") > read);
        // Closing a socket with unread input resets the connection.
        drop(client);
        let broken = Summary::until(&mut server, |summary| summary.count("broken off") == 1);
        let sent = broken.count("bytes sent");
        assert!(read < sent && sent < LARGE_BYTES as u64, "{driver}: {sent} bytes of {LARGE_BYTES}");
        let (_, stderr) = server.stop();
        assert_eq!(Summary::of(&stderr).count("bytes sent"), sent, "{driver}: {stderr}");
    }
}

#[test]
fn counts_bytes_sent_of_a_file_that_is_truncated_meanwhile() {
    if testkit::tls::skips("bytes count as sent once they are encrypted") {
        return;
    }
    for driver in drivers() {
        let (folder, mut server, mut client) = downloading(&["--driver", driver]);
        let large = File::options().write(true).open(folder.at("public/large.bin"));
        large.and_then(|file| file.set_len(1024)).expect("it can be cut");
        let body = client.rest().len() as u64;
        let failed = Summary::until(&mut server, |summary| summary.count("open") == 0);
        let head = failed.count("bytes sent") - body;
        assert!(body < LARGE_BYTES as u64 && (1..1024).contains(&head), "{driver}: {body}, {head}");
    }
}

#[test]
fn sigusr1_while_draining_changes_nothing() {
    let (_folder, mut server, mut client) = downloading(&["--drain", "1000000"]);
    server.signal(Signal::TERM);
    until_refused(server.address());
    assert!(server.next_line().starts_with("shearwater: draining: responding to received requests"));
    server.signal(Signal::USR1);
    assert!(server.next_line().starts_with("shearwater: so far 1 requests (2xx 1, "));
    assert_eq!(client.rest().len(), LARGE_BYTES);
    drop(client);
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn a_signal_right_after_the_start_stops_it() {
    let folder = TestFolder::new();
    for _ in 0..20 {
        let server = Server::start(&folder, &[]);
        let (stdout, _) = server.stop();
        assert!(stdout.starts_with("Stopped: 0 requests"), "{stdout:?}");
    }
}

#[test]
fn a_second_signal_stops_at_once() {
    if testkit::tls::skips("a connection that is cut off has no close_notify") {
        return;
    }
    for second in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let (_folder, server, mut client) = downloading(&["--drain", "1000000"]);
        server.signal(Signal::TERM);
        until_refused(server.address());
        server.signal(second);
        let (code, stdout, stderr) = server.end();
        assert_eq!(code, Some(0));
        // The process may end before the second line is written.
        let first = stderr.split_inclusive('\n').next().unwrap_or("");
        assert_log(first, &["draining: responding to received requests for up to 1000000 s"]);
        assert_eq!(stdout.lines().count(), 1, "{stdout}");
        assert!(client.rest().len() < LARGE_BYTES);
    }
}

#[test]
fn limits_the_duration_of_a_drain() {
    if testkit::tls::skips("a connection that is cut off has no close_notify") {
        return;
    }
    let (_folder, server, mut client) = downloading(&["--drain", "1"]);
    let start = Instant::now();
    let (_, stderr) = server.stop();
    assert_log(
        &stderr,
        &["draining: responding to received requests for up to 1 s", "worker ", "in all 1 requests (2xx 1, "],
    );
    assert!(stderr.contains(" has cut off 1 connections during a request or response\n"), "{stderr}");
    // Its clock counts whole milliseconds.
    assert!(start.elapsed() >= Duration::from_millis(999), "it was cut off too early: {:?}", start.elapsed());
    assert!(client.rest().len() < LARGE_BYTES);
}
