//! Each limit of `limits.rs` is reached and has the documented effect.

use shearwater_engine::Limits;
use shearwater_engine::io::limits::RECV_AFTER_PAUSE_MAX;
use shearwater_engine::io::sim::{OperationKind, SimOptions};
use shearwater_engine::limits::{OUTPUT_FILES_MAX, OUTPUT_ITEMS_MAX, REQUESTS_PER_TURN_MAX};
use shearwater_engine::tasks::Order;

use crate::harness::app::BUFFER_BYTES_MAX;
use crate::harness::unit::{get, head};
use crate::harness::{ExpectedOutput, ExpectedResponse, Setting, SimClient, SimWorld, Unit};

/// Asserts the response to each request, sent in two pieces.
#[track_caller]
fn assert_each(limits: Limits, units: impl IntoIterator<Item = Unit>) {
    let mut world = SimWorld::with_limits(limits);
    for unit in units {
        let (first, second) = unit.bytes.split_at(unit.bytes.len() / 2);
        world.assert_responds([first, second], &[unit.response]);
    }
}

/// Returns a request that is rejected with this status and sentence.
fn rejected(request: Vec<u8>, status: &'static str, sentence: &str) -> Unit {
    Unit::new(request, ExpectedResponse::refusal(status, sentence))
}

fn too_large(unit: Unit) -> Unit {
    Unit::new(unit.bytes, ExpectedResponse::too_large())
}

const TOO_LARGE: &str = "431 Request Header Fields Too Large";

#[test]
fn head_bytes() {
    let bare = head("GET", "/plain/1", "X: \r\n").len();
    let of_len = |len: usize| head("GET", "/plain/1", &format!("X: {}\r\n", "x".repeat(len - bare)));
    for head_bytes_max in [65_536, 200] {
        let at_limit = Unit::new(of_len(head_bytes_max), Unit::get(1).response);
        let sentence = "The request head is larger than the limit.";
        let beyond = rejected(of_len(head_bytes_max + 1), TOO_LARGE, sentence);
        assert_each(Limits { head_bytes_max, ..Limits::default() }, [at_limit, beyond]);
    }
}

#[test]
fn target_bytes() {
    let of_len = |len: usize| format!("/plain/{}", "x".repeat(len - "/plain/".len()));
    let at_limit = Unit::new(get(&of_len(8192)), ExpectedResponse::ok("GET", &of_len(8192), b""));
    let sentence = "The request target is longer than the limit.";
    assert_each(Limits::default(), [at_limit, rejected(get(&of_len(8193)), "414 URI Too Long", sentence)]);
}

#[test]
fn fields() {
    let with = |count: usize| head("GET", "/plain/1", &"X: y\r\n".repeat(count - 1));
    let at_limit = Unit::new(with(100), Unit::get(1).response);
    let sentence = "The request has more fields than the limit.";
    assert_each(Limits::default(), [at_limit, rejected(with(101), TOO_LARGE, sentence)]);
}

#[test]
fn body_bytes() {
    let of_len = |route: &str, len| [Unit::post(route, 1, len), Unit::post_chunked(route, 1, len, 333)];
    for route in ["plain", "buffer", "pulled"] {
        let allowed = [999, 1000].into_iter().flat_map(|len| of_len(route, len));
        let units = allowed.chain(of_len(route, 1001).map(too_large));
        assert_each(Limits { body_bytes_max: 1000, ..Limits::default() }, units);
    }
}

#[test]
fn body_bytes_of_a_handler() {
    let len = BUFFER_BYTES_MAX as usize;
    let beyond = [Unit::post("buffer", 1, len + 1), Unit::post_chunked("buffer", 1, len + 1, 5000)];
    assert_each(Limits::default(), [Unit::post("buffer", 1, len)].into_iter().chain(beyond.map(too_large)));
}

#[test]
fn buffered_bytes_of_bodies() {
    let mut world = SimWorld::with_limits(Limits { buffered_bytes_max: 50_000, ..Limits::default() });
    let unit = Unit::post("buffer", 1, 30_000);
    let (part, rest) = unit.bytes.split_at(20_000);
    let [mut first, mut second, mut third] = [0; 3].map(|_| world.send(part));
    first.assert_got(&[]);
    second.assert_got(&[]);
    third.assert_last(&[ExpectedResponse::buffers_full()]);
    assert_eq!(world.totals().hit_buffered_bytes, 1);
    // The others continue, and requests that need no memory are served.
    first.send(rest);
    second.peer.finish();
    world.settle();
    first.assert_got([&unit.response]);
    let mut fourth = world.send_pieces([part, rest]);
    fourth.assert_got([&unit.response]);
    world.end();
}

#[test]
fn buffered_bytes_of_heads() {
    let mut world = SimWorld::with_limits(Limits { buffered_bytes_max: 100_000, ..Limits::default() });
    let part = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; 30_000]].concat();
    let mut clients: Vec<SimClient> = (0..20).map(|_| world.connect()).collect();
    for client in &mut clients {
        world.feed(client, &part);
    }
    clients.retain_mut(|client| client.read().starts_with(b"HTTP/1.1 503 "));
    let refused = clients.len();
    assert!((16..20).contains(&refused), "{refused} of 20 refused");
    assert_eq!(world.totals().hit_buffered_bytes, refused as u64);
    world.end();
}

/// A client makes a worker hold more than it has sent.
#[test]
fn buffered_bytes_of_single_bytes() {
    for (name, part) in
        [("a head", &b"G"[..]), ("a body", &head("POST", "/buffer/1", "Content-Length: 9\r\n"))]
    {
        let mut world = SimWorld::with_limits(Limits { buffered_bytes_max: 100_000, ..Limits::default() });
        let mut clients: Vec<SimClient> = (0..200).map(|_| world.connect()).collect();
        for client in &mut clients {
            world.feed(client, part);
            assert!(world.worker.buffered_bytes() <= 100_000);
        }
        let refused = clients.iter_mut().filter(|client| client.peer.saw_fin()).count();
        assert!((150..180).contains(&refused), "{name}: {refused} of 200 refused");
        world.end();
        assert_eq!(world.worker.buffered_bytes(), 0);
    }
}

#[test]
fn buffered_bytes_of_pipelined_input() {
    let mut world = SimWorld::with_limits(Limits { buffered_bytes_max: 200_000, ..Limits::default() });
    let units: Vec<Unit> = (0..20).map(|number| Unit::post("plain", number, 2900)).collect();
    let slow = |world: &mut SimWorld| {
        let mut client = world.connect();
        client.stop_reading(100);
        world.feed(&mut client, Unit::big().bytes);
        world.feed(&mut client, Unit::stream(&units));
        client
    };
    let mut clients: Vec<SimClient> = (0..6).map(|_| slow(&mut world)).collect();
    let reset = clients.extract_if(.., |client| client.peer.saw_reset()).count();
    assert!((1..5).contains(&reset), "{reset} of 6 that made the worker keep too much");
    assert_eq!(world.totals().hit_buffered_bytes, reset as u64);
    assert_eq!(world.totals().connections_reset, reset as u64);
    // Neither earlier nor later clients are affected.
    let unit = Unit::post("buffer", 1, 100);
    world.send(&unit.bytes).assert_got([&unit.response]);
    let responses = [vec![ExpectedResponse::big()], Unit::responses(&units)].concat();
    for client in &mut clients {
        client.peer.set_window(1 << 20);
        world.read_on(client);
        client.assert_got(&responses);
    }
}

/// Returns the number of sends so far.
fn sends(world: &SimWorld) -> usize {
    world.net.trace().iter().filter(|operation| operation.kind == OperationKind::SendAttempt).count()
}

/// Asserts that these requests, sent at once, get their responses; returns the world before its end.
#[track_caller]
fn pipelined(limits: Limits, units: &[Unit]) -> SimWorld {
    let mut world = SimWorld::with_limits(limits);
    world.send(Unit::stream(units)).assert_got(&Unit::responses(units));
    world
}

#[test]
fn requests_per_turn() {
    let units: Vec<Unit> = (0..REQUESTS_PER_TURN_MAX * 3).map(Unit::get).collect();
    let mut world = pipelined(Limits::default(), &units);
    assert_eq!(sends(&world), 3, "one send for each turn");
    assert_eq!((world.totals().hit_requests_per_turn, world.totals().hit_output_bytes), (2, 0));
    world.end();
}

#[test]
fn others_have_their_turn_between() {
    let mut world = SimWorld::default();
    let units: Vec<Unit> = (0..REQUESTS_PER_TURN_MAX * 10).map(Unit::get).collect();
    let (mut busy, mut modest) = (world.connect(), world.connect());
    world.settle();
    busy.send(Unit::stream(&units));
    modest.send(Unit::get(1).bytes);
    world.turn();
    world.turn();
    modest.assert_got(&[Unit::get(1).response]);
    assert!(busy.read().len() < 100_000, "the busy one has not all of its responses yet");
    world.settle();
    busy.assert_got(&Unit::responses(&units));
    world.end();
}

#[test]
fn output_bytes() {
    let units: Vec<Unit> = (0..10).map(Unit::get).collect();
    for (output_bytes_max, expected) in [(0, 10), (1, 10), (400, 4), (1 << 20, 1)] {
        let mut world = pipelined(Limits { output_bytes_max, ..Limits::default() }, &units);
        assert_eq!(sends(&world), expected, "{output_bytes_max}");
        let hits = (world.totals().hit_output_bytes, world.totals().hit_requests_per_turn);
        assert_eq!(hits, (expected as u64 - 1, 0), "{output_bytes_max}");
        world.end();
    }
}

#[test]
fn output_items() {
    let units: Vec<Unit> = (0..OUTPUT_ITEMS_MAX + 1).map(|_| Unit::file()).collect();
    let mut world = pipelined(Limits { output_bytes_max: 1 << 30, ..Limits::default() }, &units);
    assert_eq!((world.totals().hit_output_items, world.totals().hit_output_bytes), (1, 0));
    world.end();
}

#[test]
fn output_files() {
    // Pairs of files opened per request, and the number of waits after them.
    for (files, waits) in
        [(0, 0), (1, 0), (OUTPUT_FILES_MAX - 1, 0), (OUTPUT_FILES_MAX, 1), (3 * OUTPUT_FILES_MAX, 3)]
    {
        let mut units: Vec<Unit> = (0..files).map(|_| Unit::own_file()).collect();
        units.push(Unit::get(1));
        let mut world = pipelined(Limits { output_bytes_max: 1 << 30, ..Limits::default() }, &units);
        assert_eq!(world.totals().hit_output_files, waits, "{files}");
        world.end();
    }
}

#[test]
fn input_kept_while_sending() {
    let sim = SimOptions { recv_buffer_bytes: 8 * 1024, data_after_pause: 1.0, ..SimOptions::default() };
    let mut world = SimWorld::new(Setting { sim, ..Setting::default() });
    let mut client = world.connect();
    client.stop_reading(1000);
    let units: Vec<Unit> = (0..200).map(|number| Unit::post("plain", number, 5000)).collect();
    world.feed(&mut client, Unit::big().bytes);
    let stream = Unit::stream(&units);
    world.feed(&mut client, &stream);
    let taken = stream.len() - client.peer.unread();
    assert!(taken <= 8 * 1024 + RECV_AFTER_PAUSE_MAX, "one receive, and input after a pause: {taken}");
    client.peer.set_window(1 << 20);
    world.read_on(&client);
    client.assert_got(&[vec![ExpectedResponse::big()], Unit::responses(&units)].concat());
    world.end();
}

#[test]
fn a_body_waits_while_its_100_continue_is_in_flight() {
    let mut world = SimWorld::default();
    let mut client = world.connect();
    client.stop_reading(0);
    let unit = Unit::post_expecting("pulled", 1, 1_000_000);
    let (head, body) = unit.bytes.split_at(unit.continue_at.expect("it expects"));
    world.feed(&mut client, head);
    world.feed(&mut client, body);
    assert!(client.peer.unread() > 800_000, "{} bytes unread", client.peer.unread());
    client.peer.set_window(1000);
    world.read_on(&client);
    let mut expected = ExpectedOutput::default();
    expected.push_continue();
    expected.push(&unit.response);
    client.assert_expected(&expected);
    world.end();
}

#[test]
fn requests_per_connection() {
    let limits = Limits { requests_per_connection_max: 3, ..Limits::default() };
    let mut world = SimWorld::with_limits(limits);
    // One by one, all at once, and with bodies in pieces; each connection counts from 0, also in a reused
    // slot.
    let units = [Unit::get(1), Unit::post("buffer", 2, 50), Unit::get(3).last(), Unit::get(4)];
    for piece_bytes in [usize::MAX, 1000, 1] {
        let mut client = world.send_pieces(Unit::stream(&units).chunks(piece_bytes));
        client.assert_last(&Unit::responses(&units[..3]));
        client.peer.finish();
        world.settle();
    }
    // A client that requests the close gets it, and a rejection doesn't count as a response of the app.
    let units = [Unit::get(1), Unit::malformed(2)];
    world.assert_responds([Unit::stream(&units)], &Unit::responses(&units));
    let totals = world.totals();
    assert_eq!((totals.hit_requests_per_connection, totals.requests, totals.connections_broken), (3, 10, 0));
}

#[test]
fn a_connection_of_one_request() {
    let mut world = SimWorld::with_limits(Limits { requests_per_connection_max: 1, ..Limits::default() });
    let request = Unit::stream(&[Unit::get(1), Unit::get(2)]);
    world.assert_responds([request], &[Unit::get(1).response.last()]);
}

/// Connections with more pending requests than fit a turn continue in the configured order, all of them in
/// every turn.
#[test]
fn the_order_of_waiting_connections_is_a_setting() {
    for (order, expected) in [(Order::Fifo, [0, 1, 0, 1, 0, 1]), (Order::Lifo, [0, 1, 1, 0, 0, 1])] {
        // Output is sent at once: the first connection waits first.
        let sim = SimOptions { sends_at_once: 1.0, ..SimOptions::default() };
        let mut world = SimWorld::new(Setting { order, sim, ..Setting::default() });
        let mut clients = [world.connect(), world.connect()];
        world.settle();
        let pipeline: Vec<Unit> = (0..2 * REQUESTS_PER_TURN_MAX + 1).map(Unit::get).collect();
        clients.iter_mut().for_each(|client| client.send(Unit::stream(&pipeline)));
        world.settle();
        let trace = world.net.trace();
        let sends = trace.iter().filter(|operation| operation.kind == OperationKind::SendAttempt);
        let slots: Vec<_> = sends.filter_map(|operation| Some(operation.token?.slot())).collect();
        assert_eq!(slots, expected, "{order:?}");
        clients.iter_mut().for_each(|client| client.assert_got(&Unit::responses(&pipeline)));
    }
}
