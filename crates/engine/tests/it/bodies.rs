//! Bodies: their destinations, their rejections, `100 Continue`, and handlers that panic in the middle.

use shearwater_engine::{Limits, Notice};

use crate::harness::app::{self, REFUSED_AT};
use crate::harness::unit::{chunked, get, head, post};
use crate::harness::{ExpectedResponse, SimWorld, Unit};

const EXPECT: &str = "Expect: 100-continue\r\n";

fn empty_bodies(routes: &[&str]) -> Vec<Unit> {
    let units = |route: &&str| [Unit::post(route, 1, 0), Unit::post_chunked(route, 2, 0, 1)];
    routes.iter().flat_map(units).collect()
}

#[test]
fn a_request_with_an_empty_body_gets_its_response_at_once() {
    let mut world = SimWorld::default();
    for unit in empty_bodies(&["plain", "buffer", "pulled"]) {
        world.assert_responds([&unit.bytes], &[unit.response]);
    }
    assert_eq!(world.totals().requests, 6);
    // Also if a `100` would fill the output.
    for output_bytes_max in [1, 64 * 1024] {
        let mut world = SimWorld::with_limits(Limits { output_bytes_max, ..Limits::default() });
        let request = head("POST", "/pulled/1", &format!("{EXPECT}Content-Length: 0\r\n"));
        world.assert_responds([request], &[ExpectedResponse::ok("POST", "/pulled/1", b"")]);
    }
}

#[test]
fn no_100_continue_is_sent_in_vain() {
    let begun = Unit::post_expecting("buffer", 1, 40);
    let (before, rest) = begun.bytes.split_at(begun.bytes.len() - 20);
    let http10 = format!("POST /buffer/1 HTTP/1.0\r\n{EXPECT}Content-Length: 3\r\n\r\n");
    let too_large = head("POST", "/plain/1", &format!("{EXPECT}Content-Length: 99999999999\r\n"));
    for (name, pieces, response) in [
        ("the body has begun", vec![before, rest], begun.response.clone()),
        (
            "HTTP/1.0",
            vec![http10.as_bytes(), b"abc"],
            ExpectedResponse::ok("POST", "/buffer/1", b"abc").last(),
        ),
        ("a refused body", vec![&too_large], ExpectedResponse::too_large()),
    ] {
        println!("{name}");
        SimWorld::default().assert_responds(pieces, &[response]);
    }
}

/// RFC 9110 section 10.1.1: the head alone decides the response.
#[test]
fn a_body_that_no_handler_reads_gets_no_100() {
    let refused = ExpectedResponse::text("404 Not Found", app::text_of("POST", "/status/1?404", b""));
    for (target, response) in [
        ("/status/1?404", refused),
        ("/plain/1", ExpectedResponse::ok("POST", "/plain/1", b"")),
        ("/later/0", ExpectedResponse::ok("POST", "/later/0", b"")),
        ("/later/1", ExpectedResponse::ok("POST", "/later/1", b"")),
        ("/later/2", ExpectedResponse::ok("POST", "/later/2", b"")),
        ("/panic/1", ExpectedResponse::failed()),
    ] {
        for framing in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
            let mut world = SimWorld::default();
            let mut client = world.send(head("POST", target, &format!("{EXPECT}{framing}\r\n")));
            world.pass(10);
            let responses = [response.clone().last()];
            client.assert_last(&responses);
            // A client that sends the body anyway isn't reset, and nothing in it is a request.
            world.feed(&mut client, Unit::get(2).bytes);
            client.assert_last(&responses);
            world.finish(&client);
            assert_eq!(world.totals().connections_reset, 0);
        }
    }
}

#[test]
fn a_body_that_arrives_while_its_handler_is_deferred_is_no_request() {
    let mut world = SimWorld::default();
    let mut client = world.connect();
    client.send(head("POST", "/later/2", &format!("{EXPECT}Content-Length: 500\r\n")));
    world.turn();
    client.assert_got(&[]);
    client.send(Unit::get(2).bytes);
    world.turn();
    client.assert_got(&[]);
    world.pass(10);
    world.feed(&mut client, Unit::get(3).bytes);
    client.assert_last(&[ExpectedResponse::ok("POST", "/later/2", b"").last()]);
    world.finish(&client);
    assert_eq!((world.totals().requests, world.totals().connections_reset), (1, 0));
}

#[test]
fn rejects_a_body_while_reading_it() {
    let mut world = SimWorld::default();
    let refusal = ExpectedResponse::refusal("422 Unprocessable Content", "The body was refused.");
    let request = head("POST", "/pulled-refuses/1", "Content-Length: 200\r\n");
    let within = vec![b'x'; REFUSED_AT];
    world.assert_responds([&request[..], &within, b"x"], [&refusal]);
    // Nothing of the body is left: the connection is kept.
    let kept = ExpectedResponse { connection: None, ..refusal };
    world.assert_responds([[&request[..], &within, &within].concat()], [&kept]);
    assert_eq!((world.totals().requests, world.totals().requests_refused), (2, 0));
}

#[test]
fn a_panic_costs_its_request_and_nothing_else() {
    let mut world = SimWorld::default();
    let unit = Unit::post("buffer", 7, 100);
    let mut other = world.send(&unit.bytes[..90]);
    for target in
        ["/pulled-panics/1", "/pulled-ends-in-panic/2", "/policy-panics/3", "/panic/4", "/half-panic/5"]
    {
        let request = post(target, "hello");
        let (head, body) = request.split_at(request.len() - 5);
        for pieces in [[head, body], [&request, &String::from_utf8_lossy(&get("/plain/1"))]] {
            let mut client = world.send_pieces(pieces);
            client.assert_last(&[ExpectedResponse::failed()]);
            client.peer.finish();
            world.settle();
        }
    }
    world.feed(&mut other, &unit.bytes[90..]);
    other.assert_got(&[unit.response]);
    world.finish(&other);
    assert_eq!(world.totals().handler_panics, 10);
    assert_eq!(world.notices().len(), 5, "each location is reported");
}

#[test]
fn trailers_are_no_fields_and_no_request() {
    let units = [Unit::post_chunked("buffer", 1, 10, 3), Unit::get(2)];
    SimWorld::default().assert_responds([Unit::stream(&units)], &Unit::responses(&units));
}

#[test]
fn a_file_that_is_too_short_ends_the_connection() {
    let mut world = SimWorld::default();
    let mut client = world.connect();
    client.send([get("/short-file"), Unit::get(1).bytes].concat());
    world.end();
    assert!(client.read().ends_with(app::file_bytes()), "all that there is of it, and nothing after it");
    assert_eq!(world.totals().connections_broken, 0, "the client didn't cause it");
}

#[test]
fn a_file_that_has_changed_since_its_head_ends_the_connection_short() {
    let mut world = SimWorld::default();
    let mut client = world.connect();
    client.send([get("/changed-file"), Unit::get(1).bytes].concat());
    world.end();
    let got = client.read();
    let body = got.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
    assert!(app::file_bytes().starts_with(&got[body..]), "nothing after it");
    assert!(got.len() - body < app::file_bytes().len(), "the last bytes are held back");
    let totals = world.totals();
    assert_eq!((totals.connections_broken, totals.files_failed), (0, 1), "the client didn't cause it");
    let notices = world.notices();
    let error = "it was changed in place".to_owned();
    assert_eq!(notices, [Notice::FileCutShort { worker: 0, error, left_out: 0 }]);
}

/// Input after an ambiguous or malformed request, or body, is never a request. `http1`'s corpus has each shape
/// (`framing.txt`, `chunked.txt`, `fields.txt`); these are one for each place at which the engine rejects.
#[test]
fn nothing_after_a_rejected_request_is_a_request() {
    const WISHED: &str = "GET /wished HTTP/1.1\r\nHost: a\r\n\r\n";
    let both = "Content-Length: 6\r\nTransfer-Encoding: chunked";
    let with = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\nhello");
    let in_chunks = |chunks: &str| String::from_utf8(chunked("/buffer/1", chunks)).expect("text");
    let mut world = SimWorld::default();
    let shapes = [
        ("two lengths", with("Content-Length: 5\r\nContent-Length: 5")),
        ("a length and chunks", with(both)),
        ("a length that is no number", with("Content-Length: +5")),
        ("a space before the colon", with("Transfer-Encoding : chunked")),
        ("a coding after chunked", with("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity")),
        ("chunks in HTTP/1.0", with("Transfer-Encoding: chunked").replace("1.1", "1.0")),
        ("a folded line", with("X: y\r\n Content-Length: 5")),
        ("a bare CR", with("X: y\rContent-Length: 5")),
        ("a bare LF", with("X: y\nContent-Length: 5")),
        ("no host", "POST / HTTP/1.1\r\n\r\n".to_owned()),
        ("two empty lines", format!("\r\n\r\n{WISHED}")),
        ("NUL in the target", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        ("no chunk size", in_chunks("x\r\n")),
        ("a bad extension", in_chunks("5;\r\nhello\r\n0\r\n\r\n")),
        ("LF in an extension", in_chunks("5;a\nb\r\nhello\r\n0\r\n\r\n")),
        ("a chunk that is too long", in_chunks("5\r\nhelloX")),
        ("a chunk size of 2^64", in_chunks("10000000000000000\r\n")),
        ("a bad trailer", in_chunks("0\r\n : x\r\n\r\n")),
        ("LF after the last chunk", in_chunks("0\r\n\nGET")),
    ];
    for (name, shape) in &shapes {
        let whole = format!("{shape}{WISHED}{WISHED}");
        let after_another = [&Unit::get(1).bytes[..], whole.as_bytes()].concat();
        for pieces in [vec![whole.as_bytes()], whole.as_bytes().chunks(1).collect(), vec![&after_another[..]]]
        {
            let mut client = world.send_pieces(pieces);
            let text = client.text();
            let refusal = text.find("HTTP/1.1 400 Bad Request\r\n").map(|at| &text[at..]);
            let refusal = refusal.unwrap_or_else(|| panic!("{name}: {text}"));
            assert!(
                refusal.contains("\r\nConnection: close\r\n") && !text.contains("wished"),
                "{name}: {text}"
            );
            assert_eq!(refusal.matches("Server: shearwater\r\n").count(), 1, "{name}: {text}");
            client.assert_closed();
            client.peer.finish();
            world.settle();
        }
    }
    world.end();
    assert_eq!(world.totals().requests_refused, 3 * shapes.len() as u64);
    assert_eq!(world.totals().requests, shapes.len() as u64);
}

/// Under the limit of its own policy, not of the worker.
#[test]
fn a_body_that_came_whole_is_passed_with_its_head() {
    let limits = Limits { body_bytes_max: 10, ..Limits::default() };
    let (text, too_large) = (app::text_of("POST", "/passed/1", b"0123456789ab"), app::PASSED_BYTES_MAX + 1);
    for (name, pieces, is_whole) in [
        ("together", vec!["H0123456789ab"], true),
        ("the head in pieces", vec!["H|", "0123456789ab"], true),
        ("the body in pieces", vec!["H0123456789a", "b"], false),
        ("the body after its head", vec!["H", "0123456789ab"], false),
    ] {
        let request = head("POST", "/passed/1", "Content-Length: 12\r\n");
        let request = String::from_utf8(request.to_vec()).expect("text");
        let (begin, rest) = request.split_at(request.len() - 3);
        let (first, second) = match pieces.as_slice() {
            [only] => (only.replace('H', &request), String::new()),
            [first, second] if first.ends_with('|') => (begin.to_owned(), format!("{rest}{second}")),
            [first, second] => (first.replace('H', &request), (*second).to_owned()),
            _ => unreachable!("one or two"),
        };
        let mut world = SimWorld::with_limits(limits);
        let mut client = world.send(first);
        world.settle();
        world.feed(&mut client, second);
        world.pass(10);
        let response = client.text();
        assert!(response.ends_with(&text), "{name}: {response}");
        assert_eq!(response.contains("X-Passed: whole"), is_whole, "{name}: {response}");
        assert!(world.ask(get("/plain/1")).0.starts_with("HTTP/1.1 200 "), "the worker serves on");
    }
    let mut world = SimWorld::with_limits(limits);
    let (response, _) = world.ask(head("POST", "/passed/1", &format!("Content-Length: {too_large}\r\n")));
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
}
