//! `[performance]` except timeouts, `[cache]` and `[logging]`.

use std::fs;
use std::time::{Duration, Instant, UNIX_EPOCH};

use rustix::process::Signal;
use testkit::{TIMEOUT, TestClient};

use super::on_each_driver;
use crate::process::{Server, Summary};

#[test]
pub(crate) fn max_connections() {
    let settings = "[server]\nworkers = 1\n[performance]\nmax_connections = 2\n";
    on_each_driver(settings, |_, mut server| {
        let mut one = server.connect();
        let mut two = server.connect();
        assert_eq!(one.request("GET", "/f.txt", &[]).status, 200);
        assert_eq!(two.request("GET", "/f.txt", &[]).status, 200);
        // An idle one makes room for the third.
        let mut three = server.connect();
        three.ask("GET", "/f.txt", &[]);
        let line = server.next_line();
        let full =
            "accepts no connections for now: the server holds 2, its max_connections; idle ones are closed";
        assert!(line.contains(full), "{line}");
        assert_eq!(three.response("GET").status, 200);
        let so_far = Summary::so_far(&mut server);
        assert_eq!(so_far.count("connections"), 3);
        assert!(so_far.count("open") <= 2);
    });
}

/// Sends requests while the server is stopped, so that all arrive at once.
fn at_once(server: &Server, request: &str, count: usize) -> TestClient {
    let mut client = server.connect();
    assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
    server.signal(Signal::STOP);
    client.send(request.repeat(count));
    server.signal(Signal::CONT);
    for _ in 0..count {
        assert_eq!(client.response("GET").text(), "content");
    }
    client
}

/// A receive of 64 KiB has more requests than a turn handles (64); four receives of 1 KiB have 40.
#[test]
pub(crate) fn request_buffer_size() {
    if testkit::tls::skips("TLS has buffers of its own") {
        return;
    }
    let request = format!("GET /f.txt HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(63));
    assert_eq!(request.len(), 100);
    for (size, are_many_at_once) in [(1024, false), (65_536, true)] {
        let settings = format!("[server]\nworkers = 1\n[performance]\nrequest_buffer_size = {size}\n");
        on_each_driver(&settings, |_, mut server| {
            at_once(&server, &request, 300);
            let reached = Summary::so_far(&mut server).reached("REQUESTS_PER_TURN_MAX");
            assert_eq!(reached > 0, are_many_at_once, "{reached}");
        });
    }
}

#[test]
pub(crate) fn response_buffer_size() {
    for (size, is_reached) in [(1024, true), (65_536, false)] {
        let settings = format!("[server]\nworkers = 1\n[performance]\nresponse_buffer_size = {size}\n");
        on_each_driver(&settings, |_, mut server| {
            at_once(&server, "GET /f.txt HTTP/1.1\r\nHost: a\r\n\r\n", 50);
            let reached = Summary::so_far(&mut server).reached("output_bytes_max");
            assert_eq!(reached > 0, is_reached, "{reached}");
        });
    }
}

/// Shows that the key turns caching of contents on and off. A cached file is revalidated twice a second, so its old version is
/// still sent right after a change. A file that isn't cached is never old, here in 300 replacements.
#[test]
pub(crate) fn cache() {
    for (settings, is_evicted_by_another, is_cached) in [
        ("enabled = true", false, true),
        ("enabled = false", false, false),
        ("file_bytes_max = 6", false, true),
        ("file_bytes_max = 5", false, false),
        ("file_bytes_max = 6\nbytes_max = 100000", true, true),
        // One file fits, with its overhead.
        ("file_bytes_max = 6\nbytes_max = 2000", false, true),
        ("file_bytes_max = 6\nbytes_max = 2000", true, false),
        ("entries_max = 2", true, true),
        ("entries_max = 1", true, false),
    ] {
        on_each_driver(&format!("[server]\nworkers = 1\n[cache]\n{settings}\n"), |folder, server| {
            folder.file("www/other.txt", "others");
            let mut client = server.connect();
            let mut text = |target: &str| client.request("GET", target, &[]).text().to_owned();
            let mut sends_old = |version: u64| {
                let content = format!("{version:06}");
                folder.file("www/new", &content);
                let path = |name: &str| folder.at("www").join(name);
                fs::rename(path("new"), path("f.txt")).expect("renamed");
                if is_evicted_by_another {
                    text("/other.txt");
                }
                text("/f.txt") != content
            };
            let start = Instant::now();
            let times = |version: &u64| if is_cached { start.elapsed() < TIMEOUT } else { *version < 300 };
            assert_eq!((0..).take_while(times).any(&mut sends_old), is_cached, "{settings}");
        });
    }
}

/// Shows that a file of this size gets a hash as its tag, and a larger one its length and time, here with the cache off.
#[test]
pub(crate) fn hashed_bytes_max() {
    for (settings, is_hashed) in [("hashed_bytes_max = 7", true), ("hashed_bytes_max = 6", false)] {
        on_each_driver(&format!("[cache]\nenabled = false\n{settings}\n"), |folder, server| {
            folder.file("www/g.txt", "content");
            folder.set_modified("www/g.txt", UNIX_EPOCH + Duration::from_secs(1));
            let mut client = server.connect();
            let mut tag = || client.request("GET", "/g.txt", &[]).field("ETag").map(str::to_owned);
            let is_expected = |tag: &str| tag == "\"3b9aca00-7\"";
            if is_hashed {
                let start = Instant::now();
                let found = std::iter::repeat_with(&mut tag).take_while(|_| start.elapsed() < TIMEOUT);
                let found = found.flatten().next().expect("a tag");
                assert_eq!((found.len(), is_expected(&found)), (34, false), "{found}");
            } else {
                assert!(tag().is_some_and(|tag| is_expected(&tag)), "at once");
            }
        });
    }
}

#[test]
pub(crate) fn level() {
    for (level, is_verbose) in
        [("off", false), ("error", false), ("warn", false), ("info", true), ("debug", true)]
    {
        on_each_driver(&format!("[logging]\nlevel = \"{level}\"\n"), |_, mut server| {
            server.signal(Signal::USR1);
            if level != "off" {
                assert!(server.next_line().starts_with("shearwater: so far 0 requests"), "{level}");
            }
            let (_, stderr) = server.stop();
            let has = |text: &str| stderr.contains(text);
            assert_eq!(has("draining: responding to received requests"), is_verbose, "{level}: {stderr}");
            assert_eq!(has("in all 0 requests"), is_verbose, "{level}: {stderr}");
            assert_eq!(has("worker 0 has ended"), level == "debug", "{level}: {stderr}");
            assert_eq!(stderr.is_empty(), !is_verbose, "{level}: {stderr}");
        });
    }
}

#[test]
fn logs_warnings_from_their_level_on() {
    if testkit::tls::skips("a handshake waits until its connection is accepted") {
        return;
    }
    for (level, is_logged) in [("error", false), ("warn", true)] {
        let settings = format!(
            "[server]\nworkers = 1\n[performance]\nmax_connections = 1\n[logging]\nlevel = \"{level}\"\n"
        );
        on_each_driver(&settings, |_, mut server| {
            let mut first = server.connect();
            assert_eq!(first.request("GET", "/f.txt", &[]).status, 200);
            let mut second = server.connect();
            second.ask("GET", "/f.txt", &[]);
            let mut log = String::new();
            while !log.contains("; limits reached: connections_max 1") {
                server.signal(Signal::USR1);
                log.push_str(&server.next_line());
            }
            drop(first);
            assert_eq!(second.response("GET").status, 200);
            server.signal(Signal::TERM);
            log.push_str(&server.end().2);
            assert_eq!(log.contains("accepts no connections for now"), is_logged, "{level}: {log}");
        });
    }
}
