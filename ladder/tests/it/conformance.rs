//! Responses, limits, pipelining and input in pieces.

use std::net::SocketAddr;

use testkit::{ClientResponse, TestClient};

use crate::{KEEP_ALIVE, on_rungs};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const HEAD_BYTES_MAX: usize = 64 * 1024;
const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Returns a request whose head is `length` bytes long.
fn long_head(length: usize) -> String {
    let rest = "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n".len();
    format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "b".repeat(length - rest))
}

fn post(length: usize) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")
}

fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> ClientResponse {
    TestClient::connect(address).send(request).response("GET")
}

/// Checks that a request is refused, and that the connection then ends in order.
fn assert_refused(address: SocketAddr, request: impl AsRef<[u8]>, status: u16) {
    let mut client = TestClient::connect(address);
    let response = client.try_send(request).response("GET");
    assert_eq!((response.status, response.field("Connection")), (status, Some("close")));
    client.is_ended();
}

#[test]
fn all_rungs_send_the_same_responses() {
    on_rungs(1, |rung, address| {
        let keep_alive = (rung < KEEP_ALIVE).then_some("close");
        for (method, target, status, body) in [
            ("GET", "/", 200, "Hello, World!"),
            ("GET", "/?a=b", 200, "Hello, World!"),
            ("POST", "/", 200, "Hello, World!"),
            ("HEAD", "/", 200, ""),
            ("GET", "/other", 404, "Not Found"),
        ] {
            let response = TestClient::connect(address).request(method, target, &[]);
            assert_eq!((response.status, response.text()), (status, body), "{method} {target}");
            assert_eq!(response.content_length(), Some(if method == "HEAD" { 13 } else { body.len() }));
            assert_eq!(response.field("Connection"), keep_alive);
            let names: Vec<_> = response.fields.iter().map(|(name, _)| &name[..]).collect();
            assert_eq!(names[..3], ["Date", "Content-Type", "Content-Length"]);
            let date = response.field("Date").unwrap();
            assert!(date.len() == 29 && date.ends_with(" GMT"), "{date}");
        }
    });
}

#[test]
fn heads_and_bodies_of_the_limits_length_are_served_and_longer_ones_are_refused() {
    on_rungs(1, |_, address| {
        assert_eq!(exchange(address, long_head(HEAD_BYTES_MAX)).status, 200);
        assert_refused(address, long_head(HEAD_BYTES_MAX + 1), 431);
        assert_refused(address, "x".repeat(200_000), 431);
        let whole = [post(BODY_BYTES_MAX).into_bytes(), vec![b'x'; BODY_BYTES_MAX]].concat();
        assert_eq!(exchange(address, whole).status, 200);
        assert_refused(address, post(BODY_BYTES_MAX + 1) + "some of it", 413);
    });
}

#[test]
fn malformed_requests_are_refused() {
    on_rungs(1, |_, address| {
        for (request, status) in [
            ("GET /\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: other\r\n\r\n", 417),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ] {
            assert_refused(address, request, status);
        }
    });
}

#[test]
fn a_client_that_expects_100_continue_gets_it_before_its_response() {
    on_rungs(1, |_, address| {
        let mut client = TestClient::connect(address);
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
        assert_eq!(client.response("POST").status, 100);
        assert_eq!(client.send("hello").response("POST").status, 200);
    });
}

#[test]
fn requests_that_arrive_byte_by_byte_are_served() {
    on_rungs(1, |rung, address| {
        let mut client = TestClient::connect(address);
        for byte in (post(3) + "abc").bytes() {
            client.send([byte]);
        }
        assert_eq!(client.response("POST").status, 200);
        if rung >= KEEP_ALIVE {
            for byte in GET.bytes() {
                client.send([byte]);
            }
            assert_eq!(client.response("GET").status, 200);
        }
    });
}

#[test]
fn a_connection_that_is_not_kept_ends_after_its_response() {
    on_rungs(1, |_, address| {
        for request in ["GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"]
        {
            assert_refused(address, request, 200);
        }
    });
}

#[test]
fn pipelined_requests_get_their_responses_in_order() {
    on_rungs(KEEP_ALIVE, |_, address| {
        let other = GET.replace("/ ", "/other ");
        let batch = [GET, &other, &(post(5) + "hello"), GET].concat();
        let mut client = TestClient::connect(address);
        for cut in 0..batch.len() {
            client.send(&batch[..cut]).send(&batch[cut..]);
            let statuses = [0; 4].map(|_| client.response("GET").status);
            assert_eq!(statuses, [200, 404, 200, 200], "cut at {cut}");
        }
        let mut client = TestClient::connect(address);
        client.send(GET.repeat(400)).send("bad\r\n\r\n");
        assert!((0..400).all(|_| client.response("GET").status == 200));
        assert_eq!(client.response("GET").status, 400);
        client.is_ended();
    });
}

#[test]
fn a_client_that_has_ended_its_side_gets_its_responses() {
    on_rungs(KEEP_ALIVE, |_, address| {
        let mut client = TestClient::connect(address);
        client.send(GET.repeat(3)).end_sending();
        assert!((0..3).all(|_| client.response("GET").status == 200));
        client.is_ended();
    });
}

#[test]
fn clients_are_served_side_by_side() {
    on_rungs(KEEP_ALIVE + 1, |_, address| {
        let mut clients: Vec<_> = (0..64).map(|_| TestClient::connect(address)).collect();
        for client in &mut clients {
            client.send("GET / HT");
        }
        for client in clients.iter_mut().rev() {
            assert_eq!(client.send("TP/1.1\r\nHost: a\r\n\r\n").response("GET").status, 200);
        }
    });
}

#[test]
fn one_busy_client_does_not_keep_the_others_away() {
    on_rungs(KEEP_ALIVE, |rung, address| {
        let mut busy = TestClient::connect(address);
        assert_eq!(busy.get("/").status, 200);
        let mut second = TestClient::connect(address);
        second.send(GET);
        if rung == KEEP_ALIVE {
            let last = (1..1_000).map(|_| busy.get("/")).last().unwrap();
            assert_eq!(last.field("Connection"), Some("close"));
            busy.is_ended();
            drop(busy);
        }
        assert_eq!(second.response("GET").status, 200);
    });
}
