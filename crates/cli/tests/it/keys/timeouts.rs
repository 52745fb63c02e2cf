//! `[timeouts]`, except `body_grace`, which is in `rates`.

use rustix::process::Signal;

use super::{SOONER_THAN_DEFAULTS, on_each_driver, until_closed};
use crate::process::Summary;

#[test]
pub(super) fn head() {
    on_each_driver("[timeouts]\nhead = \"100ms\"\n", |_, mut serving| {
        let came = until_closed(&serving, "GET /f.txt HTTP/1.1\r\nHost: a\r\n\r\nGET / HTT");
        assert!(came.starts_with("HTTP/1.1 200 ") && came.contains("contentHTTP/1.1 408 "), "{came}");
        assert_eq!(Summary::so_far(&mut serving).reached("head_ms"), 1);
    });
}

#[test]
pub(super) fn body() {
    on_each_driver("[timeouts]\nbody = \"100ms\"\n", |_, mut serving| {
        let came = until_closed(&serving, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx");
        assert!(came.starts_with("HTTP/1.1 408 "), "{came}");
        assert_eq!(Summary::so_far(&mut serving).reached("body_ms"), 1);
    });
}

#[test]
pub(super) fn write() {
    on_each_driver("[timeouts]\nwrite = \"100ms\"\n", |folder, mut serving| {
        // More than the sockets between both can hold.
        folder.file("www/large.bin", vec![b'x'; 64 * 1024 * 1024]);
        let mut client = serving.connect();
        client.ask("GET", "/large.bin", &[]).head();
        let so_far = Summary::until(&mut serving, |so_far| so_far.count("reset") == 1);
        assert_eq!(so_far.reached("write_ms") + so_far.reached("send_bytes_per_second_min"), 1);
    });
}

/// A client that has read the last response and doesn't close its side.
#[test]
pub(super) fn linger() {
    on_each_driver("[timeouts]\nlinger = \"100ms\"\n", |_, mut serving| {
        let mut client = serving.connect();
        assert_eq!(client.send("GET / HTTP/1.1\r\n\r\n").response("GET").status, 400);
        client.is_ended();
        let begun = std::time::Instant::now();
        let so_far = Summary::until(&mut serving, |so_far| so_far.count("open") == 0);
        assert_eq!(so_far.reached("linger_ms"), 1);
        assert!(begun.elapsed() < SOONER_THAN_DEFAULTS, "that was the default");
    });
}

/// While ending, a connection between two requests is closed after a moment, or stays until all ends.
#[test]
pub(super) fn drain_idle() {
    for (drain_idle, is_reached) in [("0s", true), ("24h", false)] {
        let settings =
            format!("[server]\ndrain_timeout = \"1s\"\n[timeouts]\ndrain_idle = \"{drain_idle}\"\n");
        on_each_driver(&settings, |_, serving| {
            let mut client = serving.connect();
            assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
            serving.signal(Signal::TERM);
            let (code, _, stderr) = serving.end();
            assert_eq!(code, Some(0));
            assert_eq!(Summary::of(&stderr).reached("drain_idle_ms"), u64::from(is_reached), "{stderr}");
        });
    }
}
