//! `[performance]`: connections, idle timeouts and buffer sizes.

use rustix::process::Signal;

use super::{on_each_driver, until_closed};
use crate::client::Client;
use crate::process::{Serving, Summary};

#[test]
pub(super) fn max_connections() {
    let settings = "[server]\nworkers = 1\n[performance]\nmax_connections = 2\n";
    on_each_driver(settings, |_, mut serving| {
        assert!(serving.banner.contains("up to 2 connections"), "{}", serving.banner);
        let mut one = serving.connect();
        let mut two = serving.connect();
        assert_eq!(one.request("GET", "/f.txt", &[]).status, 200);
        assert_eq!(two.request("GET", "/f.txt", &[]).status, 200);
        // The third waits in the kernel's queue until one of them closes.
        let mut three = serving.connect();
        three.ask("GET", "/f.txt", &[]);
        let said = serving.hear();
        assert!(
            said.contains("accepts no connections for now: it holds 2, its share of max_connections"),
            "{said}"
        );
        assert_eq!(one.request("GET", "/f.txt", &[]).status, 200);
        let so_far = Summary::so_far(&mut serving);
        assert_eq!((so_far.count("connections"), so_far.count("open")), (2, 2));
        drop(one);
        assert_eq!(three.response("GET").status, 200);
    });
}

#[test]
pub(super) fn connection_timeout() {
    on_each_driver("[performance]\nconnection_timeout = 1\n", |_, mut serving| {
        let came = until_closed(&serving, "GET / HTTP/1.1\r\n");
        assert!(came.starts_with("HTTP/1.1 408 "), "{came}");
        assert_eq!(Summary::so_far(&mut serving).reached("first_head_ms"), 1);
    });
}

#[test]
pub(super) fn keep_alive_timeout() {
    on_each_driver("[performance]\nkeep_alive_timeout = 1\n", |_, mut serving| {
        let came = until_closed(&serving, "GET /f.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(came.starts_with("HTTP/1.1 200 ") && came.ends_with("\r\n\r\ncontent"), "{came}");
        assert_eq!(Summary::so_far(&mut serving).reached("idle_ms"), 1);
    });
}

/// Sends requests while the server is stopped, so that all arrive at once.
fn at_once(serving: &Serving, request: &str, count: usize) -> Client {
    let mut client = serving.connect();
    assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
    serving.signal(Signal::STOP);
    client.send(request.repeat(count));
    serving.signal(Signal::CONT);
    for _ in 0..count {
        assert_eq!(client.response("GET").text(), "content");
    }
    client
}

/// A receive of 64 KiB has more requests than a turn handles (64); four receives of 1 KiB have 40.
#[test]
pub(super) fn request_buffer_size() {
    let request = format!("GET /f.txt HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(63));
    assert_eq!(request.len(), 100);
    for (size, are_many_at_once) in [(1024, false), (65_536, true)] {
        let settings = format!("[server]\nworkers = 1\n[performance]\nrequest_buffer_size = {size}\n");
        on_each_driver(&settings, |_, mut serving| {
            at_once(&serving, &request, 300);
            let reached = Summary::so_far(&mut serving).reached("REQUESTS_PER_TURN_MAX");
            assert_eq!(reached > 0, are_many_at_once, "{reached}");
        });
    }
}

#[test]
pub(super) fn response_buffer_size() {
    for (size, is_reached) in [(1024, true), (65_536, false)] {
        let settings = format!("[server]\nworkers = 1\n[performance]\nresponse_buffer_size = {size}\n");
        on_each_driver(&settings, |_, mut serving| {
            at_once(&serving, "GET /f.txt HTTP/1.1\r\nHost: a\r\n\r\n", 50);
            let reached = Summary::so_far(&mut serving).reached("output_bytes_max");
            assert_eq!(reached > 0, is_reached, "{reached}");
        });
    }
}
