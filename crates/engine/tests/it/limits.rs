//! Each limit of `limits.rs` is reached and has the documented effect.

use shearwater_engine::Limits;
use shearwater_engine::io::limits::RECV_AFTER_PAUSE_MAX;
use shearwater_engine::io::sim::{OperationKind, SimOptions};
use shearwater_engine::limits::{OUTPUT_FILES_MAX, OUTPUT_ITEMS_MAX, REQUESTS_PER_TURN_MAX};
use shearwater_engine::tasks::Order;

use crate::harness::app::{BUFFER_BYTES_MAX, text_of};
use crate::harness::unit::head;
use crate::harness::{Client, ExpectedResponse, Setting, Unit, World};

/// Returns the response to one request, sent in two pieces.
#[track_caller]
fn gets(world: &mut World, request: &[u8], response: &ExpectedResponse) {
    let mut client = world.connect();
    let (first, second) = request.split_at(request.len() / 2);
    client.send(first);
    world.settle();
    client.send(second);
    world.settle();
    client.assert_got(std::slice::from_ref(response));
    client.peer.finish();
    world.end();
}

fn ok(method: &str, target: &str, body: &[u8]) -> ExpectedResponse {
    ExpectedResponse::text("200 OK", text_of(method, target, body))
}

fn head_too_large() -> ExpectedResponse {
    ExpectedResponse::refusal(
        "431 Request Header Fields Too Large",
        "The request head is larger than the limit.",
    )
}

#[test]
fn head_bytes() {
    let bare = head("GET", "/plain/1", "X: \r\n").len();
    let mut world = World::default();
    let of_len = |len: usize| head("GET", "/plain/1", &format!("X: {}\r\n", "x".repeat(len - bare)));
    gets(&mut world, &of_len(65_536), &ok("GET", "/plain/1", b""));
    gets(&mut world, &of_len(65_537), &head_too_large());
    let mut world = World::with_limits(Limits { head_bytes_max: 200, ..Limits::default() });
    gets(&mut world, &of_len(200), &ok("GET", "/plain/1", b""));
    gets(&mut world, &of_len(201), &head_too_large());
}

#[test]
fn target_bytes() {
    let mut world = World::default();
    let of_len = |len: usize| format!("/plain/{}", "x".repeat(len - "/plain/".len()));
    gets(&mut world, &head("GET", &of_len(8192), ""), &ok("GET", &of_len(8192), b""));
    let refusal =
        ExpectedResponse::refusal("414 URI Too Long", "The request target is longer than the limit.");
    gets(&mut world, &head("GET", &of_len(8193), ""), &refusal);
}

#[test]
fn fields() {
    let mut world = World::default();
    gets(&mut world, &head("GET", "/plain/1", &"X: y\r\n".repeat(99)), &ok("GET", "/plain/1", b""));
    let refusal = ExpectedResponse::refusal(
        "431 Request Header Fields Too Large",
        "The request has more fields than the limit.",
    );
    gets(&mut world, &head("GET", "/plain/1", &"X: y\r\n".repeat(100)), &refusal);
}

#[test]
fn body_bytes() {
    let mut world = World::with_limits(Limits { body_bytes_max: 1000, ..Limits::default() });
    for route in ["plain", "buffer", "pulled"] {
        for len in [999, 1000] {
            let unit = Unit::post(route, 1, len);
            gets(&mut world, &unit.bytes, &unit.response);
            let unit = Unit::post_chunked(route, 1, len, 333);
            gets(&mut world, &unit.bytes, &unit.response);
        }
        gets(&mut world, &Unit::post(route, 1, 1001).bytes, &ExpectedResponse::too_large());
        gets(&mut world, &Unit::post_chunked(route, 1, 1001, 333).bytes, &ExpectedResponse::too_large());
    }
}

#[test]
fn a_handlers_own_bound_of_a_body() {
    let mut world = World::default();
    let len = BUFFER_BYTES_MAX as usize;
    let unit = Unit::post("buffer", 1, len);
    gets(&mut world, &unit.bytes, &unit.response);
    gets(&mut world, &Unit::post("buffer", 1, len + 1).bytes, &ExpectedResponse::too_large());
    gets(&mut world, &Unit::post_chunked("buffer", 1, len + 1, 5000).bytes, &ExpectedResponse::too_large());
}

#[test]
fn chunk_lines_and_trailers() {
    let mut world = World::default();
    let chunked = |body: &str| {
        [&head("POST", "/plain/1", "Transfer-Encoding: chunked\r\n")[..], body.as_bytes()].concat()
    };
    let sentences = [
        (
            format!("5;{}\r\n", "x".repeat(300)),
            "400 Bad Request",
            "A chunk's size line is longer than the limit.",
        ),
        (
            format!("0\r\nX: {}\r\n\r\n", "x".repeat(9000)),
            "431 Request Header Fields Too Large",
            "The trailers are larger than the limit.",
        ),
        (
            format!("0\r\n{}\r\n", "X: y\r\n".repeat(33)),
            "431 Request Header Fields Too Large",
            "The message has more trailers than the limit.",
        ),
    ];
    for (body, status, sentence) in sentences {
        gets(&mut world, &chunked(&body), &ExpectedResponse::refusal(status, sentence));
    }
}

#[test]
fn buffered_bytes_of_bodies() {
    let mut world = World::with_limits(Limits { buffered_bytes_max: 50_000, ..Limits::default() });
    let part = |world: &mut World, number| {
        let mut client = world.connect();
        client.send(&Unit::post("buffer", number, 30_000).bytes[..20_000]);
        world.settle();
        client
    };
    let mut first = part(&mut world, 1);
    let mut second = part(&mut world, 2);
    first.assert_got(&[]);
    second.assert_got(&[]);
    let mut third = part(&mut world, 3);
    third.assert_got(&[ExpectedResponse::buffers_full()]);
    third.assert_closed();
    assert_eq!(world.totals().hit_buffered_bytes, 1);
    // The others continue, and requests that need no memory are served.
    first.send(&Unit::post("buffer", 1, 30_000).bytes[20_000..]);
    second.peer.finish();
    world.settle();
    first.assert_got(&[Unit::post("buffer", 1, 30_000).response]);
    let mut fourth = part(&mut world, 4);
    fourth.send(&Unit::post("buffer", 4, 30_000).bytes[20_000..]);
    world.settle();
    fourth.assert_got(&[Unit::post("buffer", 4, 30_000).response]);
    world.end();
}

#[test]
fn buffered_bytes_of_heads() {
    let mut world = World::with_limits(Limits { buffered_bytes_max: 100_000, ..Limits::default() });
    let part = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; 30_000]].concat();
    let mut clients: Vec<Client> = (0..20).map(|_| world.connect()).collect();
    for client in &mut clients {
        client.send(&part);
        world.settle();
    }
    let refused = clients
        .iter_mut()
        .filter_map(|client| client.read().starts_with(b"HTTP/1.1 503 ").then_some(()))
        .count();
    assert!((16..20).contains(&refused), "{refused} of 20 refused");
    assert_eq!(world.totals().hit_buffered_bytes, refused as u64);
    world.end();
}

/// A client makes a worker hold more than it has sent.
#[test]
fn buffered_bytes_of_single_bytes() {
    for (route, part) in
        [("a head", &b"G"[..]), ("a body", &head("POST", "/buffer/1", "Content-Length: 9\r\n"))]
    {
        let mut world = World::with_limits(Limits { buffered_bytes_max: 100_000, ..Limits::default() });
        let mut clients: Vec<Client> = (0..200).map(|_| world.connect()).collect();
        for client in &mut clients {
            client.send(part);
            world.settle();
            assert!(world.worker.buffered_bytes() <= 100_000);
        }
        let refused = clients.iter_mut().filter(|client| client.peer.saw_fin()).count();
        assert!((150..180).contains(&refused), "{route}: {refused} of 200 refused");
        world.end();
        assert_eq!(world.worker.buffered_bytes(), 0);
    }
}

#[test]
fn buffered_bytes_of_pipelined_input() {
    let mut world = World::with_limits(Limits { buffered_bytes_max: 200_000, ..Limits::default() });
    let units: Vec<Unit> = (0..20).map(|number| Unit::post("plain", number, 2900)).collect();
    let slow = |world: &mut World| {
        let mut client = world.connect();
        client.peer.set_window(100);
        client.peer.set_reading(false);
        client.send(Unit::big().bytes);
        world.settle();
        client.send(Unit::stream(&units));
        world.settle();
        client
    };
    let mut clients: Vec<Client> = (0..6).map(|_| slow(&mut world)).collect();
    let let_go = clients.extract_if(.., |client| client.peer.saw_reset()).count();
    assert!((1..5).contains(&let_go), "{let_go} of 6 that made the worker keep too much");
    assert_eq!(world.totals().hit_buffered_bytes, let_go as u64);
    assert_eq!(world.totals().connections_reset, let_go as u64);
    // Neither earlier nor later clients are affected.
    let unit = Unit::post("buffer", 1, 100);
    let mut other = world.connect();
    other.send(&unit.bytes);
    world.settle();
    other.assert_got(&[unit.response]);
    let responses = [vec![ExpectedResponse::big()], Unit::responses(&units)].concat();
    for client in &mut clients {
        client.peer.set_window(1 << 20);
        client.peer.set_reading(true);
        world.settle();
        client.assert_got(&responses);
    }
}

#[test]
fn requests_per_turn() {
    let mut world = World::default();
    let mut client = world.connect();
    let units: Vec<Unit> = (0..REQUESTS_PER_TURN_MAX * 3).map(Unit::get).collect();
    client.send(Unit::stream(&units));
    world.settle();
    client.assert_got(&Unit::responses(&units));
    assert_eq!(sends(&world), 3, "one send for each turn");
    assert_eq!((world.totals().hit_requests_per_turn, world.totals().hit_output_bytes), (2, 0));
    world.end();
}

#[test]
fn others_have_their_turn_between() {
    let mut world = World::default();
    let units: Vec<Unit> = (0..REQUESTS_PER_TURN_MAX * 10).map(Unit::get).collect();
    let (mut busy, mut modest) = (world.connect(), world.connect());
    world.settle();
    busy.send(Unit::stream(&units));
    modest.send(Unit::get(1).bytes);
    world.turn();
    world.turn();
    modest.assert_got(&[Unit::get(1).response]);
    assert!(busy.read().len() < 100_000, "the busy one is not done yet");
    world.settle();
    busy.assert_got(&Unit::responses(&units));
    world.end();
}

#[test]
fn output_bytes() {
    for (output_bytes_max, wanted) in [(0, 10), (1, 10), (400, 4), (1 << 20, 1)] {
        let mut world = World::with_limits(Limits { output_bytes_max, ..Limits::default() });
        let mut client = world.connect();
        let units: Vec<Unit> = (0..10).map(Unit::get).collect();
        client.send(Unit::stream(&units));
        world.settle();
        client.assert_got(&Unit::responses(&units));
        assert_eq!(sends(&world), wanted, "{output_bytes_max}");
        let hits = (world.totals().hit_output_bytes, world.totals().hit_requests_per_turn);
        assert_eq!(hits, (wanted as u64 - 1, 0), "{output_bytes_max}");
        world.end();
    }
}

#[test]
fn output_items() {
    let mut world = World::with_limits(Limits { output_bytes_max: 1 << 30, ..Limits::default() });
    let mut client = world.connect();
    let units: Vec<Unit> = (0..OUTPUT_ITEMS_MAX + 1).map(|_| Unit::file()).collect();
    client.send(Unit::stream(&units));
    world.settle();
    client.assert_got(&Unit::responses(&units));
    assert_eq!((world.totals().hit_output_items, world.totals().hit_output_bytes), (1, 0));
    world.end();
}

#[test]
fn output_files() {
    // Pairs of files opened per request, and the number of waits after them.
    for (files, waits) in
        [(0, 0), (1, 0), (OUTPUT_FILES_MAX - 1, 0), (OUTPUT_FILES_MAX, 1), (3 * OUTPUT_FILES_MAX, 3)]
    {
        let mut world = World::with_limits(Limits { output_bytes_max: 1 << 30, ..Limits::default() });
        let mut client = world.connect();
        let mut units: Vec<Unit> = (0..files).map(|_| Unit::own_file()).collect();
        units.push(Unit::get(1));
        client.send(Unit::stream(&units));
        world.settle();
        client.assert_got(&Unit::responses(&units));
        assert_eq!(world.totals().hit_output_files, waits, "{files}");
        world.end();
    }
}

/// Returns the number of sends so far.
fn sends(world: &World) -> usize {
    world.net.trace().iter().filter(|operation| operation.kind == OperationKind::SendAttempt).count()
}

#[test]
fn input_kept_while_sending() {
    let mut world = World::new(Setting {
        sim: SimOptions { recv_buffer_bytes: 8 * 1024, data_after_pause: 1.0, ..SimOptions::default() },
        ..Setting::default()
    });
    let mut client = world.connect();
    client.peer.set_window(1000);
    client.peer.set_reading(false);
    let units: Vec<Unit> = (0..200).map(|number| Unit::post("plain", number, 5000)).collect();
    client.send(Unit::stream(&[Unit::big()]));
    world.settle();
    client.send(Unit::stream(&units));
    world.settle();
    let taken = Unit::stream(&units).len() - client.peer.unread();
    assert!(
        taken <= 8 * 1024 + RECV_AFTER_PAUSE_MAX,
        "one receive, and what may come after a pause: {taken}"
    );
    client.peer.set_window(1 << 20);
    client.peer.set_reading(true);
    world.settle();
    let mut responses = vec![ExpectedResponse::big()];
    responses.extend(Unit::responses(&units));
    client.assert_got(&responses);
    world.end();
}

#[test]
fn a_body_that_comes_while_its_100_is_on_its_way_is_held_back() {
    let mut world = World::default();
    let mut client = world.connect();
    client.peer.set_window(0);
    client.peer.set_reading(false);
    let unit = Unit::post_expecting("pulled", 1, 1_000_000);
    let at = unit.goes_on_at.expect("it expects");
    client.send(&unit.bytes[..at]);
    world.settle();
    client.send(&unit.bytes[at..]);
    world.settle();
    assert!(client.peer.unread() > 800_000, "{} bytes unread", client.peer.unread());
    client.peer.set_window(1000);
    client.peer.set_reading(true);
    world.settle();
    let mut expected = crate::harness::Expected::default();
    expected.push_go_on();
    expected.push(&unit.response);
    client.assert_expected(&expected);
    world.end();
}

#[test]
fn requests_per_connection() {
    let limits = Limits { requests_per_connection_max: 3, ..Limits::default() };
    let mut world = World::with_limits(limits);
    // One by one, all at once, and with bodies in pieces; each connection counts from 0, also in a reused
    // slot.
    let units = [Unit::get(1), Unit::post("buffer", 2, 50), Unit::get(3), Unit::get(4)];
    let last = units[2].response.clone().last();
    let responses = [units[0].response.clone(), units[1].response.clone(), last];
    for piece_bytes in [usize::MAX, 1000, 1] {
        let mut client = world.connect();
        for piece in Unit::stream(&units).chunks(piece_bytes) {
            client.send(piece);
            world.settle();
        }
        client.assert_got(&responses);
        client.assert_closed();
        client.peer.finish();
        world.settle();
    }
    // A client that requests the close gets it, and a rejection doesn't count as a response of the app.
    let mut client = world.connect();
    client.send([Unit::get(1).bytes, Unit::malformed(2).bytes].concat());
    world.settle();
    client.assert_got(&[Unit::get(1).response, Unit::malformed(2).response]);
    client.peer.finish();
    world.end();
    let totals = world.totals();
    assert_eq!((totals.hit_requests_per_connection, totals.requests, totals.connections_broken), (3, 10, 0));
}

#[test]
fn a_connection_of_one_request() {
    let mut world = World::with_limits(Limits { requests_per_connection_max: 1, ..Limits::default() });
    let mut client = world.connect();
    client.send(Unit::stream(&[Unit::get(1), Unit::get(2)]));
    world.settle();
    client.assert_got(&[Unit::get(1).response.last()]);
    client.assert_closed();
    client.peer.finish();
    world.end();
}

/// Connections with more pending requests than fit a turn continue in the configured order, all of them in
/// every turn.
#[test]
fn the_order_of_those_who_wait_is_a_setting() {
    for (order, wanted) in [(Order::Fifo, [0, 1, 0, 1, 0, 1]), (Order::Lifo, [0, 1, 1, 0, 0, 1])] {
        // Output is sent at once: the first connection waits first.
        let sim = SimOptions { sends_at_once: 1.0, ..SimOptions::default() };
        let mut world = World::new(Setting { order, sim, ..Setting::default() });
        let mut clients = [world.connect(), world.connect()];
        world.settle();
        let pipeline: Vec<Unit> = (0..2 * REQUESTS_PER_TURN_MAX + 1).map(Unit::get).collect();
        clients.iter_mut().for_each(|client| client.send(Unit::stream(&pipeline)));
        world.settle();
        let trace = world.net.trace();
        let sends = trace.iter().filter(|operation| operation.kind == OperationKind::SendAttempt);
        let slots: Vec<_> = sends.filter_map(|operation| Some(operation.token?.slot())).collect();
        assert_eq!(slots, wanted, "{order:?}");
        clients.iter_mut().for_each(|client| client.assert_got(&Unit::responses(&pipeline)));
    }
}
