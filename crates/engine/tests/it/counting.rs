//! Counters: they add up, and each counts according to its name.

use shearwater_engine::Timeouts;
use shearwater_engine::io::sim::SimOptions;

use crate::harness::app::text_of;
use crate::harness::unit::head;
use crate::harness::{ExpectedResponse, Setting, Unit, World};

#[test]
fn nothing_has_happened_at_the_start() {
    let world = World::default();
    assert!(world.totals().iter().all(|(_, count)| count == 0));
    assert_eq!(world.totals().limits().count(), 30);
    assert_eq!(world.totals().iter().count(), 19 + 30);
}

#[test]
fn bytes_are_those_of_the_network() {
    let mut world = World::default();
    let mut client = world.connect();
    let units = [Unit::get(1), Unit::post("buffer", 2, 5000), Unit::big(), Unit::file(), Unit::closing(3)];
    client.send(Unit::stream(&units));
    world.end();
    let got = client.read().len();
    assert_eq!(world.totals().bytes_received, client.sent as u64);
    assert_eq!(world.totals().bytes_sent, got as u64);
}

#[test]
fn counts_bytes_of_a_response_in_flight_and_after_it_broke() {
    const WINDOW: u64 = 100_000;
    let mut world = World::default();
    let mut client = world.connect();
    client.peer.set_window(WINDOW as usize);
    client.peer.set_reading(false);
    client.send(Unit::big().bytes);
    world.settle();
    assert_eq!(world.totals().bytes_sent, WINDOW, "in flight");
    client.peer.reset();
    world.end();
    assert_eq!((world.totals().bytes_sent, world.totals().connections_broken), (WINDOW, 1));
}

#[test]
fn counts_bytes_of_a_response_that_the_server_resets() {
    const WINDOW: u64 = 100_000;
    let mut world = World::with_timeouts(Timeouts { write_ms: 1_000, ..Timeouts::default() });
    let mut client = world.connect();
    client.peer.set_window(WINDOW as usize);
    client.peer.set_reading(false);
    client.send(Unit::big().bytes);
    world.end();
    assert_eq!((world.totals().bytes_sent, world.totals().connections_reset), (WINDOW, 1));
}

#[test]
fn a_connection_breaks_once_whoever_tells_of_it() {
    let sim = SimOptions { late_completions: 0.5, reorder_within_turn: 1.0, ..SimOptions::default() };
    let mut world = World::new(Setting { sim, ..Setting::default() });
    let mut clients: Vec<_> = (0..20).map(|_| world.connect()).collect();
    for client in &mut clients {
        client.peer.set_window(100_000);
        client.peer.set_reading(false);
        client.send(Unit::big().bytes);
    }
    world.settle();
    // More than one turn releases: their sends fail in between.
    clients.iter_mut().for_each(|client| client.peer.reset());
    world.end();
    assert_eq!(world.totals().connections_broken, 20);
}

#[test]
fn every_response_is_counted_once() {
    let mut world = World::default();
    let requests = [
        Unit::get(1),
        Unit::malformed(2),
        Unit::panicking(3),
        Unit::new(head("POST", "/policy-panics/4", "Content-Length: 1\r\n"), ExpectedResponse::failed()),
        Unit::new(head("GET", "/value", ""), ExpectedResponse::failed()),
        Unit::too_large(5, 1 << 30, 0),
        Unit::post("pulled", 6, 10),
        Unit::closed_by_handler(7),
    ];
    for unit in &requests {
        let mut client = world.connect();
        client.send(&unit.bytes);
        world.settle();
        client.assert_got(std::slice::from_ref(&unit.response));
        client.peer.finish();
        world.settle();
    }
    world.end();
    let totals = world.totals();
    assert_eq!(totals.requests + totals.requests_refused, requests.len() as u64);
    assert_eq!((totals.requests, totals.requests_refused), (5, 3));
    assert_eq!((totals.handler_panics, totals.handler_errors), (2, 1));
    let classes = [totals.responses_2xx(), totals.responses_3xx, totals.responses_4xx, totals.responses_5xx];
    assert_eq!(classes, [3, 0, 2, 3]);
    assert_eq!(totals.connections_broken, 0);
}

#[test]
fn a_handler_that_refuses_is_no_refusal_of_the_servers() {
    let mut world = World::default();
    let mut client = world.connect();
    let response = ExpectedResponse::text("404 Not Found", text_of("GET", "/status?404", b""));
    client.send(head("GET", "/status?404", ""));
    world.settle();
    client.assert_got(&[response]);
    client.peer.finish();
    world.end();
    assert_eq!((world.totals().requests, world.totals().requests_refused), (1, 0));
}

#[test]
fn responses_are_counted_by_their_class() {
    let mut world = World::default();
    for (status, times) in [(200, 2), (204, 1), (301, 1), (304, 3), (404, 4), (499, 1), (500, 1), (503, 5)] {
        for _ in 0..times {
            let mut client = world.connect();
            client.send(head("GET", &format!("/status?{status}"), ""));
            client.peer.finish();
            world.settle();
        }
    }
    world.end();
    let totals = world.totals();
    let classes = [totals.responses_2xx(), totals.responses_3xx, totals.responses_4xx, totals.responses_5xx];
    assert_eq!((totals.responses(), classes), (18, [3, 4, 5, 6]));
}

#[test]
fn each_limit_that_is_reached_is_counted_by_its_name() {
    let get = |target: &str, fields: &str| head("GET", target, fields);
    let chunked = |body: &str| {
        [&head("POST", "/plain/1", "Transfer-Encoding: chunked\r\n")[..], body.as_bytes()].concat()
    };
    for (name, request) in [
        ("head_bytes_max", get("/", &format!("X: {}\r\n", "x".repeat(65_536)))),
        ("target_bytes_max", get(&"/".repeat(8193), "")),
        ("fields_max", get("/", &"X: y\r\n".repeat(100))),
        ("METHOD_BYTES_MAX", head(&"M".repeat(33), "/", "")),
        ("body_bytes_max", head("POST", "/", "Content-Length: 99999999\r\n")),
        ("chunk_line_bytes_max", chunked(&format!("5;{}\r\n", "x".repeat(300)))),
        ("trailer_bytes_max", chunked(&format!("0\r\nX: {}\r\n\r\n", "x".repeat(9000)))),
        ("trailers_max", chunked(&format!("0\r\n{}\r\n", "X: y\r\n".repeat(33)))),
        ("first_head_ms", b"GET".to_vec()),
        ("body_ms", head("POST", "/buffer/1", "Expect: 100-continue\r\nContent-Length: 9\r\n")),
    ] {
        let timeouts = Timeouts { body_ms: 1000, ..Timeouts::default() };
        let mut world = World::with_timeouts(timeouts);
        let mut client = world.connect();
        client.send(request);
        let peer = client.peer.clone();
        world.sleep_until(|| peer.saw_fin());
        client.peer.finish();
        world.end();
        let reached: Vec<_> = world.totals().limits().filter(|(_, times)| *times > 0).collect();
        assert_eq!(reached, [(name, 1)]);
        assert!(world.totals().to_string().ends_with(&format!("; limits reached: {name} 1")));
    }
}

#[test]
fn workers_of_one_control_are_summed() {
    use std::sync::Arc;

    use shearwater_engine::io::sim::{Sim, SimOptions};
    use shearwater_engine::{Control, Limits, Setup, Worker};

    use crate::harness::app::TestApp;

    let (control, _notices) = Control::new();
    let control = Arc::new(control);
    let limits = Limits { connections_per_address_max: 1, ..Limits::default() };
    let setup = Setup::new(0, limits, Timeouts::default(), Arc::clone(&control));
    let mut workers = Vec::new();
    for worker in 0..2 {
        let sim = Sim::new(SimOptions::default());
        let net = sim.net();
        let mut setup = setup.clone();
        setup.worker = worker;
        workers.push((Worker::new(sim, TestApp, setup), net));
    }
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
fn handlers_that_are_ready_are_counted_and_the_turns_in_which_some_are() {
    const CLIENTS: u64 = 5;
    let mut world = World::default();
    let ask = |world: &mut World, target: &str| {
        let mut client = world.connect();
        client.send(head("GET", target, ""));
        client
    };
    // Each waits for one turn.
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| ask(&mut world, "/later/1")).collect();
    world.settle();
    let totals = world.totals();
    assert_eq!((totals.task_turns, totals.tasks_ready), (1, CLIENTS), "all in the same turn");
    // Neither an immediately ready task nor one that is never woken is counted.
    clients.push(ask(&mut world, "/later/4"));
    clients.push(ask(&mut world, "/never/0"));
    clients.push(ask(&mut world, "/plain/1"));
    world.settle();
    let totals = world.totals();
    assert_eq!((totals.task_turns, totals.tasks_ready), (1, CLIENTS));
    clients.iter_mut().for_each(|client| client.peer.reset());
    world.settle();
}
