//! Closing connections: the last response arrives whole, whatever the client still sends.

use shearwater_engine::Limits;
use shearwater_engine::io::sim::SimOptions;
use shearwater_engine::limits::DISCONNECTS_PER_TURN_MAX;

use crate::harness::app::text_of;
use crate::harness::unit::head;
use crate::harness::{ExpectedResponse, Setting, Unit, World};

/// One request for each kind of rejection or failure, with its status.
fn refused() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("400", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("400", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnothing".to_vec()),
        ("413", head("POST", "/plain/1", "Content-Length: 99999999999\r\n")),
        (
            "413",
            [
                &head("POST", "/buffer/1", "Transfer-Encoding: chunked\r\n")[..],
                b"ffffff\r\n",
                &[b'x'; 40_000],
            ]
            .concat(),
        ),
        ("414", head("GET", &format!("/{}", "x".repeat(8192)), "")),
        ("417", head("GET", "/", "Expect: nothing\r\n")),
        ("422", [&head("POST", "/pulled-refuses", "Content-Length: 9999999\r\n")[..], &[b'x'; 200]].concat()),
        ("431", head("GET", "/", &"X: y\r\n".repeat(100))),
        ("431", head("GET", "/", &format!("X: {}\r\n", "y".repeat(65_536)))),
        ("500", head("GET", "/panic", "")),
        ("500", head("GET", "/value", "")),
        ("500", [&head("POST", "/pulled-panics", "Content-Length: 9999\r\n")[..], b"x"].concat()),
        ("501", b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n".to_vec()),
        ("501", head(&"M".repeat(33), "/", "")),
        ("505", b"GET / HTTP/3.0\r\nHost: a\r\n\r\n".to_vec()),
        ("200", Unit::closed_by_handler(1).bytes),
    ]
}

#[test]
fn the_last_response_arrives_though_the_client_sends_on() {
    for (status, request) in refused() {
        let mut world = World::default();
        let mut client = world.connect();
        client.peer.set_reading(false);
        client.send(&request);
        for _ in 0..20 {
            client.send([b'z'; 10_000]);
            world.turn_if_ready();
        }
        world.settle();
        assert_eq!(client.peer.unread(), 0, "{status}: what comes is read");
        client.send(b"and more");
        world.settle();
        let got = String::from_utf8_lossy(client.read()).into_owned();
        let about = String::from_utf8_lossy(&request[..request.len().min(60)]).into_owned();
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{about}: {got}");
        assert_eq!(got.matches("Server: shearwater\r\n").count(), 1, "{about}: {got}");
        client.assert_closed();
        client.peer.finish();
        world.end();
        client.assert_closed();
    }
}

#[test]
fn what_was_held_back_is_read_after_the_last_response() {
    let mut world = World::default();
    let mut client = world.connect();
    client.peer.set_window(1000);
    client.peer.set_reading(false);
    let units = [Unit::big(), Unit::closed_by_handler(1)];
    client.send([Unit::stream(&units), vec![b'z'; 300_000]].concat());
    world.settle();
    assert!(client.peer.unread() > 100_000, "receiving is paused");
    client.peer.set_reading(true);
    world.settle();
    assert_eq!(client.peer.unread(), 0);
    client.assert_got(&Unit::responses(&units));
    client.assert_closed();
    client.peer.finish();
    world.end();
    client.assert_closed();
}

#[test]
fn who_sends_more_than_is_thrown_away_is_reset() {
    let limits = Limits { linger_bytes_max: 50_000, ..Limits::default() };
    let mut world = World::with_limits(limits);
    let mut client = world.connect();
    client.send(Unit::malformed(1).bytes);
    world.settle();
    client.assert_closed();
    client.send(vec![b'z'; 50_000]);
    world.settle();
    client.assert_closed();
    client.send(b"z");
    world.settle();
    assert!(client.peer.saw_reset());
    world.end();
    assert_eq!((world.totals().hit_linger_bytes, world.totals().connections_reset), (1, 1));
}

#[test]
fn when_many_leave_at_once_a_turn_lets_go_of_a_few() {
    let mut world = World::default();
    let mut leaving: Vec<_> = (0..10 * DISCONNECTS_PER_TURN_MAX).map(|_| world.connect()).collect();
    let mut staying = world.connect();
    world.settle();
    for (index, client) in leaving.iter_mut().enumerate() {
        match index % 3 {
            0 => client.send(b"GET / HT"),
            1 => client.peer.reset(),
            _ => {}
        }
        client.peer.finish();
    }
    staying.send(Unit::get(1).bytes);
    world.turn();
    staying.assert_got(&[Unit::get(1).response]);
    let open = world.in_use().0;
    assert!(open >= 9 * DISCONNECTS_PER_TURN_MAX, "{open}");
    let now_ms = world.net.now_ms();
    world.settle();
    assert_eq!(world.net.now_ms(), now_ms, "the others don't wait for anything");
    assert_eq!(world.in_use().0, 1);
    world.end();
}

#[test]
fn those_who_come_and_leave_at_once_do_not_pile_up() {
    const EACH_TURN: usize = 4 * DISCONNECTS_PER_TURN_MAX;
    let mut world = World::default();
    let mut clients = Vec::new();
    for turn in 0..50 {
        for _ in 0..EACH_TURN {
            let client = world.connect();
            client.peer.finish();
            clients.push(client);
        }
        world.turn();
        let open = world.in_use().0;
        assert!(open <= 4 * EACH_TURN, "{open} are open after {turn} turns");
    }
    world.end();
}

#[test]
fn nothing_behind_the_last_request_is_responded() {
    let lasts = [Unit::closing(1), Unit::http10(1, false), Unit::closed_by_handler(1), Unit::panicking(1)];
    for last in lasts {
        let mut world = World::default();
        let mut client = world.connect();
        client.send(
            [&Unit::get(0).bytes, &last.bytes, &Unit::get(2).bytes, &Unit::malformed(3).bytes]
                .map(|bytes| &bytes[..])
                .concat(),
        );
        world.end();
        client.assert_got(&[Unit::get(0).response, last.response]);
        client.assert_closed();
        assert_eq!(world.totals().requests, 2);
    }
}

/// A client that requests the close may continue sending before it sees the response (RFC 9112 section 9.6).
#[test]
fn what_comes_late_behind_the_last_request_resets_nothing() {
    let closing = |target: &str| {
        let response = ExpectedResponse::text("200 OK", text_of("GET", target, b"")).last();
        Unit::new(head("GET", target, "Connection: close\r\n"), response)
    };
    let lasts = [closing("/plain/1"), closing("/later/0"), closing("/later/1"), Unit::http10(1, false)];
    for last in lasts {
        let mut world = World::default();
        let mut client = world.connect();
        client.peer.set_reading(false);
        client.send(&last.bytes);
        world.settle();
        client.send(Unit::get(2).bytes);
        world.settle();
        client.peer.set_reading(true);
        client.send(Unit::get(3).bytes);
        world.settle();
        client.assert_got(std::slice::from_ref(&last.response));
        client.assert_closed();
        client.peer.finish();
        world.settle();
        assert_eq!((world.in_use(), world.net.now_ms()), ((0, 0, 0), 0), "the client's end is enough");
        assert_eq!((world.totals().connections_reset, world.totals().requests), (0, 1));
    }
}

#[test]
fn a_half_closed_client_gets_all_its_responses() {
    let mut world = World::default();
    let units: Vec<Unit> = (0..300).map(Unit::get).collect();
    let mut client = world.connect();
    client.send(Unit::stream(&units));
    client.peer.finish();
    world.settle();
    client.assert_got(&Unit::responses(&units));
    client.assert_closed();
    world.end();
    assert_eq!(world.net.now_ms(), 0, "without waiting for anything");
}

#[test]
fn a_half_closed_client_that_reads_late_gets_a_large_response() {
    let mut world = World::default();
    let mut client = world.connect();
    client.peer.set_reading(false);
    let units = [Unit::get(1), Unit::big(), Unit::file(), Unit::get(2)];
    client.send(Unit::stream(&units));
    client.peer.finish();
    world.settle();
    client.peer.set_reading(true);
    world.end();
    client.assert_got(&Unit::responses(&units));
    client.assert_closed();
}

#[test]
fn an_end_in_the_middle_is_told() {
    for cut in [1, 20, Unit::post("buffer", 1, 50).bytes.len() - 1] {
        let mut world = World::default();
        let mut client = world.connect();
        client.send(&Unit::post("buffer", 1, 50).bytes[..cut]);
        client.peer.finish();
        world.settle();
        client.assert_got(&[ExpectedResponse::incomplete()]);
        client.assert_closed();
        world.end();
    }
}

#[test]
fn an_end_between_requests_is_met_with_an_end() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send(Unit::get(1).bytes);
    world.settle();
    client.peer.finish();
    world.settle();
    client.assert_got(&[Unit::get(1).response]);
    client.assert_closed();
    let mut client = world.connect();
    client.peer.finish();
    world.settle();
    client.assert_closed();
    assert_eq!(world.net.now_ms(), 0);
    world.end();
}

#[test]
fn an_end_while_paused_comes_after_the_responses() {
    let mut world = World::default();
    let mut client = world.connect();
    client.peer.set_window(1000);
    client.peer.set_reading(false);
    let units: Vec<Unit> = (0..60).map(|number| Unit::post("plain", number, 5000)).collect();
    client.send(Unit::stream(&units));
    client.peer.finish();
    world.settle();
    assert!(client.peer.unread() > 100_000, "receiving is paused");
    client.peer.set_reading(true);
    world.end();
    client.assert_got(&Unit::responses(&units));
    client.assert_closed();
}

#[test]
fn a_reset_with_data_unread_leaves_nothing() {
    for reset_losses in [0.0, 1.0] {
        let sim = SimOptions { reset_losses, ..SimOptions::default() };
        let mut world = World::new(Setting { sim, ..Setting::default() });
        let mut client = world.connect();
        client.peer.set_window(1000);
        client.peer.set_reading(false);
        client.send(Unit::stream(&[Unit::big(), Unit::get(1)]));
        world.settle();
        client.send(Unit::post("buffer", 2, 20_000).bytes);
        client.peer.reset();
        world.settle();
        assert_eq!(world.net.connections(), 0, "at once, not by a timeout");
        world.end();
        assert_eq!(world.totals().connections_broken, 1);
    }
}

#[test]
fn a_reset_of_an_idle_connection_frees_it_at_once() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send(Unit::get(1).bytes);
    world.settle();
    client.peer.reset();
    world.settle();
    assert_eq!(world.in_use(), (0, 0, 0));
    assert_eq!(world.totals().connections_broken, 1);
}
