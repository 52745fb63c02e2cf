//! Bodies: their destinations, their rejections, and handlers that panic in the middle.

use shearwater_engine::Limits;

use crate::harness::app::{self, REFUSED_AT, text_of};
use crate::harness::unit::head;
use crate::harness::{ExpectedResponse, Unit, World};

fn ok(method: &str, target: &str, body: &[u8]) -> ExpectedResponse {
    ExpectedResponse::text("200 OK", text_of(method, target, body))
}

/// Returns the responses to a client that sends these pieces, one per turn.
#[track_caller]
fn said(world: &mut World, pieces: &[&[u8]], responses: &[ExpectedResponse]) {
    let mut client = world.connect();
    for piece in pieces {
        client.send(piece);
        world.settle();
    }
    client.assert_got(responses);
    client.peer.finish();
    world.end();
}

#[test]
fn an_empty_body_is_responded_at_once() {
    let mut world = World::default();
    for route in ["plain", "buffer", "pulled"] {
        let unit = Unit::post(route, 1, 0);
        said(&mut world, &[&unit.bytes], &[unit.response]);
        let unit = Unit::post_chunked(route, 2, 0, 1);
        said(&mut world, &[&unit.bytes], &[unit.response]);
    }
    assert_eq!(world.totals().requests, 6);
}

#[test]
fn an_empty_body_that_expects_is_responded_at_once() {
    // Also if a `100` would fill the output.
    for output_bytes_max in [1, 64 * 1024] {
        let mut world = World::with_limits(Limits { output_bytes_max, ..Limits::default() });
        let mut client = world.connect();
        client.send(head("POST", "/pulled/1", "Expect: 100-continue\r\nContent-Length: 0\r\n"));
        world.settle();
        client.assert_got(&[ExpectedResponse::text("200 OK", text_of("POST", "/pulled/1", b""))]);
        client.peer.finish();
        world.end();
    }
}

#[test]
fn a_body_that_has_begun_gets_no_100() {
    let mut world = World::default();
    let unit = Unit::post_expecting("buffer", 1, 40);
    let (begun, rest) = unit.bytes.split_at(unit.bytes.len() - 20);
    said(&mut world, &[begun, rest], &[unit.response]);
}

#[test]
fn http_1_0_gets_no_100() {
    let mut world = World::default();
    let request = "POST /buffer/1 HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    said(&mut world, &[request.as_bytes(), b"abc"], &[ok("POST", "/buffer/1", b"abc").last()]);
}

#[test]
fn a_refused_body_gets_no_100() {
    let mut world = World::default();
    let request = head("POST", "/plain/1", "Expect: 100-continue\r\nContent-Length: 99999999999\r\n");
    said(&mut world, &[&request], &[ExpectedResponse::too_large()]);
}

/// RFC 9110 section 10.1.1: the head alone decides the response.
#[test]
fn a_body_that_nobody_reads_gets_no_100() {
    let refused = ExpectedResponse::text("404 Not Found", text_of("POST", "/status/1?404", b""));
    for (target, response) in [
        ("/status/1?404", refused),
        ("/plain/1", ok("POST", "/plain/1", b"")),
        ("/later/0", ok("POST", "/later/0", b"")),
        ("/later/1", ok("POST", "/later/1", b"")),
        ("/later/2", ok("POST", "/later/2", b"")),
        ("/panic/1", ExpectedResponse::failed()),
    ] {
        for framing in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
            let mut world = World::default();
            let mut client = world.connect();
            client.send(head("POST", target, &format!("Expect: 100-continue\r\n{framing}\r\n")));
            world.pass(10);
            client.assert_got(&[response.clone().last()]);
            client.assert_closed();
            // A client that sends the body anyway isn't reset, and nothing in it is a request.
            client.send(Unit::get(2).bytes);
            world.settle();
            client.assert_got(&[response.clone().last()]);
            client.assert_closed();
            client.peer.finish();
            world.end();
            assert_eq!(world.totals().connections_reset, 0);
        }
    }
}

#[test]
fn a_body_that_comes_while_its_handler_waits_is_no_request() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send(head("POST", "/later/2", "Expect: 100-continue\r\nContent-Length: 500\r\n"));
    world.turn();
    client.assert_got(&[]);
    client.send(Unit::get(2).bytes);
    world.turn();
    client.assert_got(&[]);
    world.pass(10);
    client.send(Unit::get(3).bytes);
    world.settle();
    client.assert_got(&[ok("POST", "/later/2", b"").last()]);
    client.assert_closed();
    client.peer.finish();
    world.end();
    assert_eq!((world.totals().requests, world.totals().connections_reset), (1, 0));
}

#[test]
fn rejects_a_body_while_reading_it() {
    let mut world = World::default();
    let refusal = ExpectedResponse::refusal("422 Unprocessable Content", "The body was refused.");
    let request = head("POST", "/pulled-refuses/1", "Content-Length: 200\r\n");
    let within = vec![b'x'; REFUSED_AT];
    said(&mut world, &[&request, &within, b"x"], std::slice::from_ref(&refusal));
    // Nothing of the body is left: the connection is kept.
    let whole = [&request[..], &within, &within].concat();
    let kept = ExpectedResponse::text("422 Unprocessable Content", "The body was refused.\n".to_owned());
    said(&mut world, &[&whole], &[kept]);
    assert_eq!((world.totals().requests, world.totals().requests_refused), (2, 0));
}

#[test]
fn panics_cost_their_request_and_nothing_else() {
    let mut world = World::default();
    let mut other = world.connect();
    let unit = Unit::post("buffer", 7, 100);
    other.send(&unit.bytes[..90]);
    world.settle();
    for target in
        ["/pulled-panics/1", "/pulled-ends-in-panic/2", "/policy-panics/3", "/panic/4", "/half-panic/5"]
    {
        let request = head("POST", target, "Content-Length: 5\r\n");
        said_beside(&mut world, &[&request, b"hello"], &[ExpectedResponse::failed()]);
        let whole = [&request[..], b"hello"].concat();
        said_beside(&mut world, &[&whole, &Unit::get(1).bytes], &[ExpectedResponse::failed()]);
    }
    other.send(&unit.bytes[90..]);
    world.settle();
    other.assert_got(&[unit.response]);
    other.peer.finish();
    world.end();
    assert_eq!(world.totals().handler_panics, 10);
    assert_eq!(world.told().len(), 5, "each place is reported");
}

/// Like [`said`], beside a connection that stays open.
#[track_caller]
fn said_beside(world: &mut World, pieces: &[&[u8]], responses: &[ExpectedResponse]) {
    let mut client = world.connect();
    for piece in pieces {
        client.send(piece);
        world.settle();
    }
    client.assert_got(responses);
    client.assert_closed();
    client.peer.finish();
    world.settle();
}

#[test]
fn trailers_are_no_fields_and_no_request() {
    let mut world = World::default();
    let unit = Unit::post_chunked("buffer", 1, 10, 3);
    said(
        &mut world,
        &[&[&unit.bytes[..], &Unit::get(2).bytes].concat()],
        &[unit.response, Unit::get(2).response],
    );
}

#[test]
fn a_file_that_is_too_short_ends_the_connection() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send([head("GET", "/short-file", ""), Unit::get(1).bytes].concat());
    world.end();
    let got = client.read();
    assert!(got.ends_with(app::file_bytes()), "all that there is of it, and nothing behind it");
    assert_eq!(world.totals().connections_broken, 0, "it is not the client's fault");
}

#[test]
fn a_file_that_is_another_than_its_head_says_ends_the_connection_short() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send([head("GET", "/changed-file", ""), Unit::get(1).bytes].concat());
    world.end();
    let got = client.read();
    let body = got.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
    assert!(app::file_bytes().starts_with(&got[body..]), "nothing behind it");
    assert!(got.len() - body < app::file_bytes().len(), "the last bytes are held back");
    let totals = world.totals();
    assert_eq!((totals.connections_broken, totals.files_failed), (0, 1), "it is not the client's fault");
}

#[test]
fn faulty_chunks_are_refused() {
    let mut world = World::default();
    let faulty = [
        "x\r\n",
        "-1\r\n",
        "5 5\r\nhello\r\n",
        "5;\r\nhello\r\n0\r\n\r\n",
        "5;=x\r\nhello\r\n0\r\n\r\n",
        "5;a=\"\r\nhello\r\n0\r\n\r\n",
        "5\nhello",
        "5\r\nhelloX",
        "10000000000000000\r\n",
        "0\r\n : x\r\n\r\n",
    ];
    for chunks in faulty {
        let request =
            [&head("POST", "/buffer/1", "Transfer-Encoding: chunked\r\n")[..], chunks.as_bytes()].concat();
        let mut client = world.connect();
        client.send(&request);
        client.send(&Unit::get(1).bytes);
        world.settle();
        let got = String::from_utf8_lossy(client.read()).into_owned();
        assert!(got.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{chunks:?}: {got}");
        assert_eq!(got.matches("Server: shearwater\r\n").count(), 1, "{chunks:?}: {got}");
        client.assert_closed();
        client.peer.finish();
    }
    world.end();
}
