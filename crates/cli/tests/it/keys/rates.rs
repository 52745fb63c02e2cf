//! Minimum rates: `limits.body_bytes_per_second_min`, `timeouts.body_grace` and `limits.send_bytes_per_second_min`.

use std::fs::File;
use std::io::Read;

use super::{on_each_driver, until_closed};
use crate::process::{Serving, Summary};

/// A stalled body.
const STALLED: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nxxxxx";

/// Checks that a stalled body is refused by this limit and no other.
#[track_caller]
fn refused_by(mut serving: Serving, limit: &str) {
    let came = until_closed(&serving, STALLED);
    assert!(came.starts_with("HTTP/1.1 408 "), "{came}");
    let so_far = Summary::so_far(&mut serving);
    let reached = ["body_bytes_per_second_min", "body_ms"].map(|name| (name, so_far.reached(name)));
    assert_eq!(reached, reached.map(|(name, _)| (name, u64::from(name == limit))));
}

#[test]
pub(super) fn body_bytes_per_second_min() {
    let timeouts = "[timeouts]\nbody_grace = \"100ms\"\nbody = \"2000ms\"\n";
    on_each_driver(timeouts, |_, serving| refused_by(serving, "body_bytes_per_second_min"));
    let none = format!("{timeouts}[limits]\nbody_bytes_per_second_min = 0\n");
    on_each_driver(&none, |_, serving| refused_by(serving, "body_ms"));
}

#[test]
pub(super) fn body_grace() {
    on_each_driver("[timeouts]\nbody_grace = \"100ms\"\nbody = \"4000ms\"\n", |_, serving| {
        refused_by(serving, "body_bytes_per_second_min");
    });
    on_each_driver("[timeouts]\nbody_grace = \"4000ms\"\nbody = \"100ms\"\n", |_, serving| {
        refused_by(serving, "body_ms");
    });
}

/// A client reads continuously, but below the minimum rate.
#[test]
pub(super) fn send_bytes_per_second_min() {
    const PIECE_BYTES: u64 = 64 * 1024;
    /// More than can be read until the rate is checked.
    const LARGE_BYTES: u64 = 1 << 36;
    let settings = "[limits]\nsend_bytes_per_second_min = 4294967295\n[timeouts]\nwrite = \"300ms\"\n";
    on_each_driver(settings, |folder, mut serving| {
        let file = File::create(folder.path().join("www/large.bin")).expect("a file");
        file.set_len(LARGE_BYTES).expect("a file without content");
        let mut client = serving.connect();
        client.ask("GET", "/large.bin", &[]).head();
        let mut piece = vec![0; PIECE_BYTES as usize];
        let so_far = Summary::until(&mut serving, |so_far| {
            so_far.count("open") == 0 || client.stream.read_exact(&mut piece).is_err()
        });
        assert_eq!(so_far.reached("write_ms"), 0);
        let reached = |so_far: &Summary| so_far.reached("send_bytes_per_second_min") == 1;
        Summary::until(&mut serving, reached);
    });
}
