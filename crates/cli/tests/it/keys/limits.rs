//! `[limits]`, except minimum rates, which are in `rates`.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};

use super::on_each_driver;
use crate::client::WAIT_MAX;
use crate::process::{Serving, Summary};

/// Returns the status of the response to bytes on a new connection.
fn status(serving: &Serving, bytes: &str) -> u16 {
    serving.connect().send(bytes).head().status
}

fn get(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

/// Checks that a request at the limit is accepted, and one beyond it is refused and counted under the key's name.
fn bound(key: &str, value: u64, allowed: &str, responded: u16, refused: &str, refused_with: u16) {
    on_each_driver(&format!("[limits]\n{key} = {value}\n"), |_, mut serving| {
        assert_eq!(status(&serving, allowed), responded, "{key}");
        assert_eq!(Summary::so_far(&mut serving).reached(key), 0, "{key}");
        assert_eq!(status(&serving, refused), refused_with, "{key}");
        assert_eq!(Summary::so_far(&mut serving).reached(key), 1, "{key}");
    });
}

#[test]
pub(super) fn head_bytes_max() {
    let of_len = |len: usize| {
        let bare = get("/f.txt", "X: \r\n").len();
        get("/f.txt", &format!("X: {}\r\n", "x".repeat(len - bare)))
    };
    bound("head_bytes_max", 400, &of_len(400), 200, &of_len(401), 431);
}

#[test]
pub(super) fn target_bytes_max() {
    bound("target_bytes_max", 6, &get("/f.txt", ""), 200, &get("/f.txt?", ""), 414);
}

#[test]
pub(super) fn fields_max() {
    let fields = |count: usize| get("/f.txt", &"A: 1\r\n".repeat(count - 1));
    bound("fields_max", 3, &fields(3), 200, &fields(4), 431);
}

#[test]
pub(super) fn body_bytes_max() {
    let post =
        |body: &str| format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    bound("body_bytes_max", 4, &post("four"), 405, &post("five!"), 413);
}

/// Partial heads exceed the limit together, but not each alone.
#[test]
pub(super) fn buffered_bytes_max() {
    const HELD: usize = 20_000;
    for (bytes, is_reached) in [(65_536, true), (10_000_000, false)] {
        let settings = format!("[server]\nworkers = 1\n[limits]\nbuffered_bytes_max = {bytes}\n");
        on_each_driver(&settings, |_, mut serving| {
            let part = format!("GET /f.txt HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(HELD));
            let mut clients: Vec<_> = (0..6).map(|_| serving.connect()).collect();
            for client in &mut clients {
                client.send(&part);
            }
            let all = (clients.len() * part.len()) as u64;
            let so_far = Summary::until(&mut serving, |so_far| so_far.count("bytes received") >= all);
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

/// Checks that a new connection is reset.
#[track_caller]
fn is_reset(address: SocketAddr) {
    let read = TcpStream::connect_timeout(&address, WAIT_MAX).and_then(|mut stream| {
        stream.set_read_timeout(Some(WAIT_MAX))?;
        stream.read(&mut [0])
    });
    let error = read.expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
}

#[test]
pub(super) fn connections_per_address_max() {
    on_each_driver("[limits]\nconnections_per_address_max = 2\n", |_, mut serving| {
        let mut held = [serving.connect(), serving.connect()];
        for client in &mut held {
            assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
        }
        is_reset(serving.address());
        Summary::until(&mut serving, |so_far| (so_far.count("refused"), so_far.count("open")) == (1, 2));
        drop(held);
        Summary::until(&mut serving, |so_far| so_far.count("open") == 0);
        assert_eq!(serving.connect().request("GET", "/f.txt", &[]).status, 200);
    });
}

#[test]
pub(super) fn requests_per_connection_max() {
    on_each_driver("[limits]\nrequests_per_connection_max = 2\n", |_, mut serving| {
        let mut client = serving.connect();
        assert_eq!(client.request("GET", "/f.txt", &[]).field("Connection"), None);
        assert_eq!(client.request("GET", "/f.txt", &[]).field("Connection"), Some("close"));
        client.is_ended();
        assert_eq!(Summary::so_far(&mut serving).reached("requests_per_connection_max"), 1);
    });
}

#[test]
pub(super) fn linger_bytes_max() {
    for (bytes, is_reached) in [(1000, true), (10_000_000, false)] {
        on_each_driver(&format!("[limits]\nlinger_bytes_max = {bytes}\n"), |_, mut serving| {
            let mut client = serving.connect();
            assert_eq!(client.send("GET / HTTP/1.1\r\n\r\n").response("GET").status, 400);
            client.is_ended();
            client.send("x".repeat(5000));
            Summary::until(&mut serving, |so_far| {
                so_far.reached("linger_bytes_max") == 1 || so_far.count("bytes received") >= 5000
            });
            drop(client);
            let ended = Summary::until(&mut serving, |so_far| so_far.count("open") == 0);
            assert_eq!(ended.reached("linger_bytes_max"), u64::from(is_reached));
            assert_eq!(ended.count("reset"), u64::from(is_reached));
        });
    }
}
