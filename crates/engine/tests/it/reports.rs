//! Counters and notices: counters add up, and what clients can provoke is reported once a second, on one line.

use std::sync::Arc;

use shearwater_engine::io::sim::{Sim, SimOptions};
use shearwater_engine::limits::REPORT_KINDS_MAX;
use shearwater_engine::limits::TASKS_PER_TURN_MAX;
use shearwater_engine::{Control, Limits, Notice, Setup, Timeouts, Totals, Worker};

use crate::harness::app::{ON_PURPOSE, TestApp, text_of};
use crate::harness::unit::{chunked, get, head};
use crate::harness::{ExpectedResponse, Setting, SimWorld, Unit};

const WINDOW: usize = 100_000;

/// Sends each request on a separate connection that ends.
fn send_each(world: &mut SimWorld, requests: impl IntoIterator<Item: AsRef<[u8]>>) {
    for request in requests {
        let client = world.send(request);
        client.peer.finish();
        world.settle();
    }
}

fn classes(totals: &Totals) -> [u64; 4] {
    [totals.responses_2xx(), totals.responses_3xx, totals.responses_4xx, totals.responses_5xx]
}

#[test]
fn counters_start_at_0() {
    let world = SimWorld::default();
    assert!(world.totals().iter().all(|(_, count)| count == 0));
    assert_eq!(world.totals().limits().count(), 32);
    assert_eq!(world.totals().iter().count(), 47 + 32);
}

#[test]
fn counts_the_bytes_of_the_network() {
    let mut world = SimWorld::default();
    let mut client = world.connect();
    let units = [Unit::get(1), Unit::post("buffer", 2, 5000), Unit::big(), Unit::file(), Unit::closing(3)];
    client.send(Unit::stream(&units));
    world.end();
    let got = client.read().len();
    assert_eq!(world.totals().bytes_received, client.sent as u64);
    assert_eq!(world.totals().bytes_sent, got as u64);
}

/// The client resets the connection, or the server after a timeout.
#[test]
fn counts_bytes_of_a_response_in_flight_and_after_a_reset() {
    for is_reset_by_client in [true, false] {
        let mut world = SimWorld::with_timeouts(Timeouts { write_ms: 1_000, ..Timeouts::default() });
        let mut client = world.connect();
        client.stop_reading(WINDOW);
        world.feed(&mut client, Unit::big().bytes);
        assert_eq!(world.totals().bytes_sent, WINDOW as u64, "in flight");
        if is_reset_by_client {
            client.peer.reset();
        }
        world.end();
        let totals = world.totals();
        let resets = (totals.connections_broken, totals.connections_reset);
        assert_eq!(resets, (u64::from(is_reset_by_client), u64::from(!is_reset_by_client)));
        assert_eq!(totals.bytes_sent, WINDOW as u64);
    }
}

#[test]
fn counts_a_broken_connection_once() {
    let sim = SimOptions { late_completions: 0.5, reorder_within_turn: 1.0, ..SimOptions::default() };
    let mut world = SimWorld::new(Setting { sim, ..Setting::default() });
    let mut clients: Vec<_> = (0..20).map(|_| world.connect()).collect();
    for client in &mut clients {
        client.stop_reading(WINDOW);
        client.send(Unit::big().bytes);
    }
    world.settle();
    // More than one turn releases: their sends fail in between.
    clients.iter_mut().for_each(|client| client.peer.reset());
    world.end();
    assert_eq!(world.totals().connections_broken, 20);
}

#[test]
fn counts_each_response_once() {
    let mut world = SimWorld::default();
    let not_found = ExpectedResponse::text("404 Not Found", text_of("GET", "/status?404", b""));
    let policy_panics = head("POST", "/policy-panics/4", "Content-Length: 1\r\n");
    let requests = [
        Unit::get(1),
        Unit::malformed(2),
        Unit::panicking(3),
        Unit::new(policy_panics, ExpectedResponse::failed()),
        Unit::new(get("/value"), ExpectedResponse::failed()),
        Unit::too_large(5, 1 << 30, 0),
        Unit::post("pulled", 6, 10),
        Unit::closed_by_handler(7),
        Unit::new(get("/status?404"), not_found),
    ];
    for unit in &requests {
        let mut client = world.send(&unit.bytes);
        client.assert_got([&unit.response]);
        client.peer.finish();
        world.settle();
    }
    world.end();
    let totals = world.totals();
    assert_eq!((totals.requests, totals.requests_refused), (6, 3), "a handler's 404 is no refusal");
    assert_eq!((totals.handler_panics, totals.handler_errors), (2, 1));
    assert_eq!((classes(&totals), totals.connections_broken), ([3, 0, 3, 3], 0));
}

#[test]
fn counts_responses_by_class() {
    let mut world = SimWorld::default();
    for (status, times) in [(200, 2), (204, 1), (301, 1), (304, 3), (404, 4), (499, 1), (500, 1), (503, 5)] {
        send_each(&mut world, vec![get(&format!("/status?{status}")); times]);
    }
    world.end();
    assert_eq!((world.totals().responses(), classes(&world.totals())), (18, [3, 4, 5, 6]));
}

#[test]
fn rejects_and_counts_beyond_each_limit() {
    let x = |count: usize| "x".repeat(count);
    for (name, status, request) in [
        ("head_bytes_max", 431, head("GET", "/", &format!("X: {}\r\n", x(65_536)))),
        ("target_bytes_max", 414, get(&"/".repeat(8193))),
        ("fields_max", 431, head("GET", "/", &"X: y\r\n".repeat(100))),
        ("METHOD_BYTES_MAX", 501, head(&"M".repeat(33), "/", "")),
        ("body_bytes_max", 413, head("POST", "/", "Content-Length: 99999999\r\n")),
        ("chunk_line_bytes_max", 400, chunked("/plain/1", &format!("5;{}\r\n", x(300)))),
        ("trailer_bytes_max", 431, chunked("/plain/1", &format!("0\r\nX: {}\r\n\r\n", x(9000)))),
        ("trailers_max", 431, chunked("/plain/1", &format!("0\r\n{}\r\n", "X: y\r\n".repeat(33)))),
        ("first_head_ms", 408, b"GET".to_vec()),
        ("body_ms", 408, head("POST", "/buffer/1", "Expect: 100-continue\r\nContent-Length: 9\r\n")),
    ] {
        let mut world = SimWorld::with_timeouts(Timeouts { body_ms: 1000, ..Timeouts::default() });
        let mut client = world.connect();
        client.send(request);
        world.sleep_until_closed(&client);
        world.finish(&client);
        assert!(client.text().contains(&format!("HTTP/1.1 {status} ")), "{name}: {}", client.text());
        let reached: Vec<_> = world.totals().limits().filter(|(_, times)| *times > 0).collect();
        assert_eq!(reached, [(name, 1)]);
        assert!(world.totals().to_string().ends_with(&format!("; limits reached: {name} 1")));
    }
}

#[test]
fn sums_the_workers_of_a_control() {
    let (control, _notices) = Control::new();
    let control = Arc::new(control);
    let limits = Limits { connections_per_address_max: 1, ..Limits::default() };
    let setup = Setup::new(0, limits, Timeouts::default(), Arc::clone(&control));
    let mut workers = [0, 1].map(|worker| {
        let sim = Sim::new(SimOptions::default());
        let net = sim.net();
        let mut setup = setup.clone();
        setup.worker = worker;
        (Worker::new(sim, TestApp, setup), net)
    });
    let mut resets = 0;
    for (worker, net) in &mut workers {
        // Both networks number their clients alike: the same address at two workers.
        let peer = net.connect();
        peer.write(&Unit::get(1).bytes);
        while net.is_ready() {
            worker.turn().expect("the simulated driver doesn't break");
        }
        resets += usize::from(peer.saw_reset());
    }
    assert_eq!(resets, 1, "connections of an address are counted over all workers");
    let totals = control.totals();
    assert_eq!((totals.connections_accepted, totals.connections_refused, totals.requests), (2, 1, 1));
}

#[test]
fn counts_ready_handlers_and_the_turns_in_which_some_are() {
    const CLIENTS: u64 = 5;
    let mut world = SimWorld::default();
    // Each handler waits for one turn.
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| world.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(get("/later/1")));
    world.settle();
    let counts = |world: &SimWorld| (world.totals().task_turns, world.totals().tasks_ready);
    assert_eq!(counts(&world), (1, CLIENTS), "all in the same turn");
    // Neither an immediately ready task nor one that is never woken is counted.
    clients.extend(["/later/4", "/never/0", "/plain/1"].map(|target| world.send(get(target))));
    assert_eq!(counts(&world), (1, CLIENTS));
    clients.iter_mut().for_each(|client| client.peer.reset());
    world.settle();
}

#[test]
fn polls_a_bounded_number_of_ready_handlers_in_a_turn() {
    const CLIENTS: usize = 2 * TASKS_PER_TURN_MAX + 10;
    let mut world = SimWorld::default();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| world.connect()).collect();
    world.settle();
    clients.iter_mut().for_each(|client| client.send(get("/later/3")));
    let (mut polled, mut most) = (0, 0);
    while world.turn_if_ready() {
        let before = std::mem::replace(&mut polled, world.totals().tasks_ready as usize);
        most = most.max(polled - before);
    }
    assert_eq!(most, TASKS_PER_TURN_MAX);
    for mut client in clients {
        assert!(client.text().starts_with("HTTP/1.1 200 "), "each gets its response");
        client.peer.reset();
    }
    world.settle();
}

fn get_each(world: &mut SimWorld, targets: &[&str]) {
    send_each(world, targets.iter().map(|target| get(target)));
}

/// Returns request, suppressed count and file of each reported panic.
fn panics(world: &SimWorld) -> Vec<(String, u64, String)> {
    let panic = |notice| match notice {
        Notice::HandlerPanicked { worker: 0, request, message, place, left_out } if message == ON_PURPOSE => {
            let place = place.expect("the hook has seen it");
            let file = place.split(':').next().expect("a file").to_owned();
            (request.expect("a request"), left_out, file)
        }
        other => panic!("{other}"),
    };
    world.notices().into_iter().map(panic).collect()
}

#[test]
fn reports_each_panicking_location_once_a_second_with_request_and_count() {
    let mut world = SimWorld::default();
    let panic = |request: &str, left_out| {
        (request.to_owned(), left_out, "crates/engine/tests/it/harness/app.rs".to_owned())
    };
    get_each(&mut world, &["/panic/1", "/panic/2", "/panic/3", "/panic/4", "/half-panic/5"]);
    assert_eq!(panics(&world), [panic("GET /panic/1", 0), panic("GET /half-panic/5", 0)]);
    world.pass(900);
    assert_eq!(panics(&world), []);
    world.pass(200);
    assert_eq!(panics(&world), [panic("GET /panic/2", 2)]);
    world.pass(5000);
    assert_eq!(panics(&world), [], "there were no more");
    get_each(&mut world, &["/panic/6"]);
    assert_eq!(panics(&world), [panic("GET /panic/6", 0)]);
    assert_eq!(world.totals().handler_panics, 6);
}

#[test]
fn reports_panics_in_bodies_alike() {
    let mut world = SimWorld::default();
    let policy_panics = head("POST", "/policy-panics/1", "Content-Length: 1\r\n");
    send_each(&mut world, [policy_panics, Unit::post("pulled-panics", 2, 500).bytes]);
    let requests: Vec<_> = panics(&world).into_iter().map(|(request, _, _)| request).collect();
    assert_eq!(requests, ["POST /policy-panics/1", "POST /pulled-panics/2"]);
}

#[test]
fn reports_suppressed_panics_at_the_end() {
    let mut world = SimWorld::default();
    get_each(&mut world, &["/panic/1", "/panic/2", "/panic/3"]);
    assert_eq!(panics(&world).len(), 1);
    world.control.stop();
    world.run();
    let notices = world.notices();
    let Some(Notice::HandlerPanicked { left_out: 1, .. }) = notices.last() else { panic!("{notices:?}") };
}

#[test]
fn sleeps_until_the_second_is_over() {
    let mut world = SimWorld::default();
    get_each(&mut world, &["/panic/1", "/panic/2"]);
    assert_eq!(panics(&world).len(), 1);
    let began_ms = world.net.now_ms();
    world.turn();
    assert!((900..=1000).contains(&(world.net.now_ms() - began_ms)), "{}", world.net.now_ms());
    assert_eq!(panics(&world).len(), 1);
}

#[test]
fn reports_files_by_their_error_and_sends_the_response() {
    let mut world = SimWorld::default();
    let mut client = world.send(get("/file-fails/1"));
    assert!(client.read().starts_with(b"HTTP/1.1 403 Forbidden\r\n"));
    world.assert_usable(&mut client);
    get_each(&mut world, &["/file-fails/2", "/file-fails/3", "/file-fails/4?input/output+error"]);
    world.pass(1100);
    let lines: Vec<_> = world.notices().iter().map(ToString::to_string).collect();
    let line = |path, error, more| {
        format!(
            "worker 0: can't send \"/srv/file-fails/{path}\\nforged\": {error}; its client got a 403{more}"
        )
    };
    let denied = "permission denied";
    let expected =
        [line(1, denied, ""), line(4, "input/output+error", ""), line(2, denied, " (1 more like it)")];
    assert_eq!(lines, expected);
    let totals = world.totals();
    assert_eq!((totals.handler_panics, totals.handler_errors, totals.responses_4xx), (0, 0, 4));
}

#[test]
fn no_text_of_a_client_ends_a_line() {
    let notice = Notice::HandlerPanicked {
        worker: 0,
        request: Some("GET /\u{2028}".to_owned()),
        message: "bad \"x\"\nshearwater: forged\u{1b}[2K\u{202e}".to_owned(),
        place: Some("a.rs:1:2".to_owned()),
        left_out: 7,
    };
    let message = r#"bad "x"\nshearwater: forged\u{1b}[2K\u{202e}"#;
    let line = format!(r"worker 0: GET /\u{{2028}}: a handler panicked ({message}) at a.rs:1:2; ");
    let rest = "its client got a 500, or what had been sent by then (7 more like it)";
    assert_eq!(notice.to_string(), line + rest);
}

#[test]
fn reports_a_bounded_number_of_kinds() {
    let mut world = SimWorld::default();
    let targets: Vec<_> = (0..REPORT_KINDS_MAX + 3).map(|kind| format!("/file-fails/1?{kind}")).collect();
    let targets: Vec<_> = targets.iter().map(String::as_str).collect();
    get_each(&mut world, &targets);
    assert_eq!((world.notices().len(), world.totals().hit_notices), (REPORT_KINDS_MAX, 3));
    world.pass(1100);
    get_each(&mut world, &targets[REPORT_KINDS_MAX..]);
    assert_eq!((world.notices().len(), world.totals().hit_notices), (3, 3));
}

#[test]
fn cuts_a_long_message() {
    let mut world = SimWorld::default();
    get_each(&mut world, &[&format!("/panic/{}", "x".repeat(5000))]);
    let panics = panics(&world);
    assert!(panics[0].0.starts_with("GET /panic/xx") && panics[0].0.chars().count() == 513, "{panics:?}");
}
