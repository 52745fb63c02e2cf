//! `[limits]`, `[timeouts]`, and the timeouts of `[performance]`.

use std::fs::File;
use std::io::Read;
use std::time::Instant;

use testkit::assert_reset;

use super::server::PREFACE;
use super::{SOONER_THAN_DEFAULTS, on_each_driver, until_closed};
use crate::process::Summary;

fn get(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

fn post(body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// A request at the limit is accepted, and one beyond it is refused and counted under the key's name.
#[test]
pub(crate) fn sizes_of_requests() {
    let of_len = |len: usize| {
        let bare = get("/f.txt", "X: \r\n").len();
        get("/f.txt", &format!("X: {}\r\n", "x".repeat(len - bare)))
    };
    let fields = |count: usize| get("/f.txt", &"A: 1\r\n".repeat(count - 1));
    for (key, value, allowed, status, refused, refused_with) in [
        ("head_bytes_max", 400, of_len(400), 200, of_len(401), 431),
        ("target_bytes_max", 6, get("/f.txt", ""), 200, get("/f.txt?", ""), 414),
        ("fields_max", 3, fields(3), 200, fields(4), 431),
        ("body_bytes_max", 4, post("four"), 405, post("five!"), 413),
    ] {
        on_each_driver(&format!("[limits]\n{key} = {value}\n"), |_, mut server| {
            for (bytes, status, count) in [(&allowed, status, 0), (&refused, refused_with, 1)] {
                assert_eq!(server.connect().send(bytes).head().status, status, "{key}");
                assert_eq!(Summary::so_far(&mut server).reached(key), count, "{key}");
            }
        });
    }
}

/// Partial heads exceed the limit together, but not each alone.
#[test]
pub(crate) fn buffered_bytes_max() {
    const HELD: usize = 20_000;
    for (bytes, is_reached) in [(65_536, true), (10_000_000, false)] {
        let settings = format!("[server]\nworkers = 1\n[limits]\nbuffered_bytes_max = {bytes}\n");
        on_each_driver(&settings, |_, mut server| {
            let part = format!("GET /f.txt HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(HELD));
            let mut clients: Vec<_> = (0..6).map(|_| server.connect()).collect();
            for client in &mut clients {
                client.send(&part);
            }
            let all = (clients.len() * part.len()) as u64;
            // The last bytes are counted before the limit that they exceed.
            let so_far = Summary::until(&mut server, |so_far| {
                so_far.count("bytes received") >= all
                    && (!is_reached || so_far.reached("buffered_bytes_max") > 0)
            });
            assert_eq!(so_far.reached("buffered_bytes_max") > 0, is_reached);
            // Each gets a response: a 503, or one to the finished head.
            for client in &mut clients {
                client.send("\r\n\r\n");
            }
            let refused = clients.iter_mut().filter_map(|client| (client.head().status == 503).then_some(()));
            assert_eq!(refused.count() > 0, is_reached);
        });
    }
}

#[test]
pub(crate) fn connections_per_address_max() {
    on_each_driver("[limits]\nconnections_per_address_max = 2\n", |_, mut server| {
        let mut held = [server.connect(), server.connect()];
        for client in &mut held {
            assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
        }
        assert_reset(server.address());
        Summary::until(&mut server, |so_far| (so_far.count("refused"), so_far.count("open")) == (1, 2));
        drop(held);
        Summary::until(&mut server, |so_far| so_far.count("open") == 0);
        assert_eq!(server.connect().request("GET", "/f.txt", &[]).status, 200);
    });
}

#[test]
pub(crate) fn requests_per_connection_max() {
    on_each_driver("[limits]\nrequests_per_connection_max = 2\n", |_, mut server| {
        let mut client = server.connect();
        assert_eq!(client.request("GET", "/f.txt", &[]).field("Connection"), None);
        assert_eq!(client.request("GET", "/f.txt", &[]).field("Connection"), Some("close"));
        client.is_ended();
        assert_eq!(Summary::so_far(&mut server).reached("requests_per_connection_max"), 1);
    });
}

/// The server announces its limit in its first frame (RFC 9113 section 6.5).
#[test]
pub(crate) fn streams_max() {
    const MAX_CONCURRENT_STREAMS: u16 = 3;
    if testkit::tls::skips("the protocol is negotiated") {
        return;
    }
    for streams_max in [7_u32, 10_000] {
        let settings =
            format!("[server]\nhttp2_prior_knowledge = true\n[limits]\nstreams_max = {streams_max}\n");
        on_each_driver(&settings, |_, server| {
            let mut client = server.connect();
            let header = client.send(PREFACE).exactly(9);
            assert_eq!(header[3], 4, "SETTINGS: {header:?}");
            let payload = client.exactly(u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize);
            let settings = payload.chunks_exact(6).map(|setting| {
                let (number, value) = setting.split_at(2);
                (
                    u16::from_be_bytes(number.try_into().unwrap()),
                    u32::from_be_bytes(value.try_into().unwrap()),
                )
            });
            let announced: Vec<_> =
                settings.filter(|(number, _)| *number == MAX_CONCURRENT_STREAMS).collect();
            assert_eq!(announced, [(MAX_CONCURRENT_STREAMS, streams_max)]);
        });
    }
}

#[test]
pub(crate) fn linger_bytes_max() {
    for (bytes, is_reached) in [(1000, true), (10_000_000, false)] {
        on_each_driver(&format!("[limits]\nlinger_bytes_max = {bytes}\n"), |_, mut server| {
            let mut client = server.connect();
            assert_eq!(client.send("GET / HTTP/1.1\r\n\r\n").response("GET").status, 400);
            client.is_ended();
            client.send("x".repeat(5000));
            Summary::until(&mut server, |so_far| {
                so_far.reached("linger_bytes_max") == 1 || so_far.count("bytes received") >= 5000
            });
            drop(client);
            let ended = Summary::until(&mut server, |so_far| so_far.count("open") == 0);
            assert_eq!(ended.reached("linger_bytes_max"), u64::from(is_reached));
            assert_eq!(ended.count("reset"), u64::from(is_reached));
        });
    }
}

/// The rate and the timeout of a stalled body.
const OF_BODIES: [&str; 2] = ["body_bytes_per_second_min", "body_ms"];

/// Each limit alone ends a connection that stalls, sooner than any default, and is counted under its name.
#[test]
pub(crate) fn stalled_requests() {
    let keep_alive = get("/f.txt", "");
    let head = get("/f.txt", "") + "GET / HTT";
    let stalled = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nxxxxx";
    let no_rate =
        "[timeouts]\nbody_grace = \"100ms\"\nbody = \"2s\"\n[limits]\nbody_bytes_per_second_min = 0\n";
    for (settings, bytes, start, end, limit) in [
        ("[performance]\nconnection_timeout = 1\n", "GET / HTTP/1.1\r\n", "408", "", "first_head_ms"),
        ("[performance]\nkeep_alive_timeout = 1\n", &keep_alive, "200", "\r\n\r\ncontent", "idle_ms"),
        ("[timeouts]\nhead = \"100ms\"\n", &head, "200", "", "head_ms"),
        ("[timeouts]\nbody = \"100ms\"\n", stalled, "408", "", "body_ms"),
        ("[timeouts]\nbody_grace = \"100ms\"\nbody = \"2s\"\n", stalled, "408", "", OF_BODIES[0]),
        (no_rate, stalled, "408", "", OF_BODIES[1]),
        ("[timeouts]\nbody_grace = \"4s\"\nbody = \"100ms\"\n", stalled, "408", "", OF_BODIES[1]),
    ] {
        on_each_driver(settings, |_, mut server| {
            let received = until_closed(&server, bytes);
            assert!(received.starts_with(&format!("HTTP/1.1 {start} ")), "{settings}{received}");
            assert!(received.ends_with(end), "{settings}{received}");
            assert_eq!(received.contains("contentHTTP/1.1 408 "), limit == "head_ms", "{settings}{received}");
            let so_far = Summary::so_far(&mut server);
            assert_eq!(so_far.reached(limit), 1, "{settings}");
            for other in OF_BODIES.into_iter().filter(|other| *other != limit) {
                assert_eq!(so_far.reached(other), 0, "{settings}");
            }
        });
    }
}

#[test]
pub(crate) fn write() {
    on_each_driver("[timeouts]\nwrite = \"100ms\"\n", |folder, mut server| {
        // More than the sockets between both can hold.
        folder.file("www/large.bin", vec![b'x'; 64 * 1024 * 1024]);
        let mut client = server.connect();
        client.ask("GET", "/large.bin", &[]).head();
        let so_far = Summary::until(&mut server, |so_far| so_far.count("reset") == 1);
        assert_eq!(so_far.reached("write_ms") + so_far.reached("send_bytes_per_second_min"), 1);
    });
}

/// A client that reads continuously, but below the minimum rate.
#[test]
pub(crate) fn send_bytes_per_second_min() {
    const PIECE_BYTES: u64 = 64 * 1024;
    /// More than can be read until the rate is checked.
    const LARGE_BYTES: u64 = 1 << 36;
    let settings = "[limits]\nsend_bytes_per_second_min = 4294967295\n[timeouts]\nwrite = \"300ms\"\n";
    on_each_driver(settings, |folder, mut server| {
        let file = File::create(folder.at("www/large.bin")).expect("a file");
        file.set_len(LARGE_BYTES).expect("a file without content");
        let mut client = server.connect();
        client.ask("GET", "/large.bin", &[]).head();
        let mut piece = vec![0; PIECE_BYTES as usize];
        let so_far = Summary::until(&mut server, |so_far| {
            so_far.count("open") == 0 || client.stream().read_exact(&mut piece).is_err()
        });
        assert_eq!(so_far.reached("write_ms"), 0);
        Summary::until(&mut server, |so_far| so_far.reached("send_bytes_per_second_min") == 1);
    });
}

/// A client that has read the last response and doesn't close its side.
#[test]
pub(crate) fn linger() {
    on_each_driver("[timeouts]\nlinger = \"100ms\"\n", |_, mut server| {
        let mut client = server.connect();
        assert_eq!(client.send("GET / HTTP/1.1\r\n\r\n").response("GET").status, 400);
        client.is_ended();
        let start = Instant::now();
        let so_far = Summary::until(&mut server, |so_far| so_far.count("open") == 0);
        assert_eq!(so_far.reached("linger_ms"), 1);
        assert!(start.elapsed() < SOONER_THAN_DEFAULTS, "that was the default");
    });
}

/// While draining, an idle connection is closed after a moment, or remains until the end.
#[test]
pub(crate) fn drain_idle() {
    for (drain_idle, is_reached) in [("0s", true), ("24h", false)] {
        let settings =
            format!("[server]\ndrain_timeout = \"1s\"\n[timeouts]\ndrain_idle = \"{drain_idle}\"\n");
        on_each_driver(&settings, |_, server| {
            let mut client = server.connect();
            assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
            let (_, stderr) = server.stop();
            assert_eq!(Summary::of(&stderr).reached("drain_idle_ms"), u64::from(is_reached), "{stderr}");
        });
    }
}
