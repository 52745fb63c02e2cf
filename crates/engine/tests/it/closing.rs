//! Closing connections: the last response arrives whole, whatever the client still sends.

use shearwater_engine::Limits;
use shearwater_engine::io::sim::SimOptions;
use shearwater_engine::limits::DISCONNECTS_PER_TURN_MAX;

use crate::harness::unit::{chunked, get, head};
use crate::harness::{ExpectedResponse, Setting, SimWorld, Unit};

/// One request for each kind of rejection or failure, with its status.
fn refused() -> Vec<(&'static str, Vec<u8>)> {
    let with_body =
        |target: &str, body: &[u8]| [&head("POST", target, "Content-Length: 9999999\r\n")[..], body].concat();
    let x = |count: usize| "x".repeat(count);
    vec![
        ("400", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("400", chunked("/", "nothing")),
        ("413", head("POST", "/plain/1", "Content-Length: 99999999999\r\n")),
        ("413", chunked("/buffer/1", &format!("ffffff\r\n{}", x(40_000)))),
        ("414", get(&format!("/{}", x(8192)))),
        ("417", head("GET", "/", "Expect: nothing\r\n")),
        ("422", with_body("/pulled-refuses", &[b'x'; 200])),
        ("431", head("GET", "/", &"X: y\r\n".repeat(100))),
        ("431", head("GET", "/", &format!("X: {}\r\n", x(65_536)))),
        ("500", get("/panic")),
        ("500", get("/value")),
        ("500", with_body("/pulled-panics", b"x")),
        ("501", b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n".to_vec()),
        ("501", head(&"M".repeat(33), "/", "")),
        ("505", b"GET / HTTP/3.0\r\nHost: a\r\n\r\n".to_vec()),
        ("200", Unit::closed_by_handler(1).bytes),
    ]
}

#[test]
fn the_last_response_arrives_though_the_client_keeps_sending() {
    for (status, request) in refused() {
        let mut world = SimWorld::default();
        let mut client = world.connect();
        client.peer.set_reading(false);
        client.send(&request);
        for _ in 0..20 {
            client.send([b'z'; 10_000]);
            world.turn_if_ready();
        }
        world.settle();
        assert_eq!(client.peer.unread(), 0, "{status}: input is read");
        world.feed(&mut client, b"and more");
        let text = client.text();
        let about = String::from_utf8_lossy(&request[..request.len().min(60)]).into_owned();
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{about}: {text}");
        assert_eq!(text.matches("Server: shearwater\r\n").count(), 1, "{about}: {text}");
        client.assert_closed();
        world.finish(&client);
        client.assert_closed();
    }
}

#[test]
fn paused_input_is_read_after_the_last_response() {
    let mut world = SimWorld::default();
    let mut client = world.connect();
    client.stop_reading(1000);
    let units = [Unit::big(), Unit::closed_by_handler(1)];
    world.feed(&mut client, [Unit::stream(&units), vec![b'z'; 300_000]].concat());
    assert!(client.peer.unread() > 100_000, "receiving is paused");
    world.read_on(&client);
    assert_eq!(client.peer.unread(), 0);
    client.assert_last(&Unit::responses(&units));
    world.finish(&client);
    client.assert_closed();
}

#[test]
fn a_client_that_sends_more_than_is_discarded_is_reset() {
    let mut world = SimWorld::with_limits(Limits { linger_bytes_max: 50_000, ..Limits::default() });
    let mut client = world.send(Unit::malformed(1).bytes);
    client.assert_closed();
    world.feed(&mut client, vec![b'z'; 50_000]);
    client.assert_closed();
    world.feed(&mut client, b"z");
    assert!(client.peer.saw_reset());
    world.end();
    assert_eq!((world.totals().hit_linger_bytes, world.totals().connections_reset), (1, 1));
}

#[test]
fn a_turn_releases_a_few_of_many_that_disconnect_at_once() {
    let mut world = SimWorld::default();
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
    assert_eq!((world.net.now_ms(), world.in_use().0), (now_ms, 1), "the others don't wait for anything");
    world.end();
}

#[test]
fn clients_that_disconnect_at_once_do_not_pile_up() {
    const EACH_TURN: usize = 4 * DISCONNECTS_PER_TURN_MAX;
    let mut world = SimWorld::default();
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
fn nothing_after_the_last_request_gets_a_response() {
    for last in [Unit::closing(1), Unit::http10(1, false), Unit::closed_by_handler(1), Unit::panicking(1)] {
        let mut world = SimWorld::default();
        let mut client = world.connect();
        client.send(Unit::stream(&[Unit::get(0), last.clone(), Unit::get(2), Unit::malformed(3)]));
        world.end();
        client.assert_last(&[Unit::get(0).response, last.response]);
        assert_eq!(world.totals().requests, 2);
    }
}

/// A client that requests the close may continue sending before it sees the response (RFC 9112 section 9.6).
#[test]
fn late_input_after_the_last_request_resets_nothing() {
    let closing = |target: &str| {
        let response = ExpectedResponse::ok("GET", target, b"").last();
        Unit::new(head("GET", target, "Connection: close\r\n"), response)
    };
    for last in [closing("/plain/1"), closing("/later/0"), closing("/later/1"), Unit::http10(1, false)] {
        let mut world = SimWorld::default();
        let mut client = world.connect();
        client.peer.set_reading(false);
        world.feed(&mut client, &last.bytes);
        world.feed(&mut client, Unit::get(2).bytes);
        client.peer.set_reading(true);
        world.feed(&mut client, Unit::get(3).bytes);
        client.assert_last(&[last.response]);
        client.peer.finish();
        world.settle();
        assert_eq!((world.in_use(), world.net.now_ms()), ((0, 0, 0), 0), "the client's FIN is enough");
        assert_eq!((world.totals().connections_reset, world.totals().requests), (0, 1));
    }
}

#[test]
fn a_half_closed_client_gets_all_its_responses() {
    let uploads = (0..60).map(|number| Unit::post("plain", number, 5000)).collect();
    let large = vec![Unit::get(1), Unit::big(), Unit::file(), Unit::get(2)];
    for (name, units, window, is_paused) in [
        ("many requests", (0..300).map(Unit::get).collect(), 1 << 20, false),
        ("large responses", large, 1 << 16, false),
        ("paused input", uploads, 1000, true),
    ] {
        let mut world = SimWorld::default();
        let mut client = world.connect();
        client.stop_reading(window);
        client.send(Unit::stream(&units));
        client.peer.finish();
        world.settle();
        assert_eq!(client.peer.unread() > 100_000, is_paused, "{name}: {} unread", client.peer.unread());
        world.read_on(&client);
        client.assert_last(&Unit::responses(&units));
        world.end();
        assert_eq!(world.net.now_ms(), 0, "{name}: without waiting for anything");
    }
}

#[test]
fn a_fin_within_a_request_gets_a_400() {
    let bytes = Unit::post("buffer", 1, 50).bytes;
    for cut in [1, 20, bytes.len() - 1] {
        let mut world = SimWorld::default();
        let mut client = world.connect();
        client.send(&bytes[..cut]);
        client.peer.finish();
        world.settle();
        client.assert_last(&[ExpectedResponse::incomplete()]);
        world.end();
    }
}

#[test]
fn a_fin_between_requests_closes_at_once() {
    let mut world = SimWorld::default();
    world.assert_responds([Unit::get(1).bytes], &[Unit::get(1).response]);
    world.assert_responds([b""], &[]);
    assert_eq!(world.net.now_ms(), 0);
}

#[test]
fn a_reset_with_unread_data_leaves_nothing() {
    for reset_losses in [0.0, 1.0] {
        let sim = SimOptions { reset_losses, ..SimOptions::default() };
        let mut world = SimWorld::new(Setting { sim, ..Setting::default() });
        let mut client = world.connect();
        client.stop_reading(1000);
        world.feed(&mut client, Unit::stream(&[Unit::big(), Unit::get(1)]));
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
    let mut world = SimWorld::default();
    let client = world.send(Unit::get(1).bytes);
    client.peer.reset();
    world.settle();
    assert_eq!(world.in_use(), (0, 0, 0));
    assert_eq!(world.totals().connections_broken, 1);
}
