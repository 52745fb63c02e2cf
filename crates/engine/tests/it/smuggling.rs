//! Ambiguous requests are rejected with a 400 and a close, and the input after them is never a request.

use crate::harness::{Unit, World};

/// Shapes of request smuggling, each followed by the attacker's hidden request.
const SHAPES: &[&str] = &[
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nX: y\r\n Content-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nX: y\rContent-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nX: y\nContent-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a b\r\n\r\n",
    "POST / HTTP/1.1\r\n\r\n",
    "POST  / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1 \r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\nGET",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n",
    "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
];

const WISHED: &str = "GET /wished HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn shapes_of_smuggling_are_refused() {
    let mut world = World::default();
    for shape in SHAPES {
        let whole = format!("{shape}{WISHED}{WISHED}");
        // At once; byte by byte; and after a good request.
        for piece_bytes in [whole.len(), 1] {
            let mut client = world.connect();
            for piece in whole.as_bytes().chunks(piece_bytes) {
                client.send(piece);
                world.settle();
            }
            assert_refused(shape, client.read());
            client.assert_closed();
            client.peer.finish();
            world.settle();
        }
        let mut client = world.connect();
        client.send([&Unit::get(1).bytes[..], whole.as_bytes()].concat());
        world.settle();
        let got = client.read();
        let refusal = got.windows(12).position(|window| window == b"HTTP/1.1 400").expect("a refusal");
        assert_refused(shape, &got[refusal..]);
        client.assert_closed();
        client.peer.finish();
        world.settle();
    }
    world.end();
    assert_eq!(world.totals().requests_refused, 3 * SHAPES.len() as u64);
    assert_eq!(world.totals().requests, SHAPES.len() as u64);
}

fn assert_refused(shape: &str, got: &[u8]) {
    let text = String::from_utf8_lossy(got);
    assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{shape:?}: {text}");
    assert!(text.contains("\r\nConnection: close\r\n"), "{shape:?}: {text}");
    assert_eq!(text.matches("Server: shearwater\r\n").count(), 1, "{shape:?}: {text}");
    assert!(!text.contains("wished"), "{shape:?}: {text}");
}
