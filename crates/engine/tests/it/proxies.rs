//! Trusted proxies: PROXY headers, the client's address, and the limit per address.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use shearwater_engine::limits::{PROXY_HEADER_BYTES_MAX, PROXY_LINE_BYTES_MAX};
use shearwater_engine::{ClientHeader, ExchangeListener, FinishedExchange, Limits, Notice, Timeouts};

use crate::harness::unit::{get, head};
use crate::harness::{ExpectedResponse, Setting, SimClient, SimWorld, Unit};

const LINE: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n";
const PROXIES: &[&str] = &["127.0.0.0/8"];

fn world() -> SimWorld {
    SimWorld::new(Setting::trusting(PROXIES, true))
}

/// Returns a header of version 2 with a client of IPv4.
fn binary(command: u8, client: [u8; 4], values: &[u8]) -> Vec<u8> {
    let addresses = [&client[..], &[198, 51, 100, 2, 0xDC, 0x04, 0x01, 0xBB]].concat();
    let len = (addresses.len() + values.len()) as u16;
    [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[command, 0x11], &len.to_be_bytes(), &addresses, values].concat()
}

fn some(address: &str) -> String {
    format!("{:?}", Some(address.parse::<SocketAddr>().expect("an address")))
}

/// Asserts what a request on a new connection learns of its client, at once and later.
#[track_caller]
fn assert_client(world: &mut SimWorld, preamble: &[u8], fields: &str, expected: &str) {
    for target in ["/client", "/client-later"] {
        let mut client = world.send([preamble, &head("GET", target, fields)].concat());
        let own = format!("{:?}", Some(client.peer.address()));
        let expected = if expected == "peer" { &own } else { expected };
        client.assert_got(&[ExpectedResponse::text("200 OK", expected)]);
        world.finish(&client);
    }
}

/// Asserts that a connection that sends these bytes is reset without a response and with this report.
#[track_caller]
fn assert_reset(world: &mut SimWorld, bytes: impl AsRef<[u8]>, said: &str) {
    let before = world.totals();
    let mut client = world.send(bytes);
    assert!(client.peer.saw_reset() && client.read().is_empty(), "{said}");
    // Other reports of the same kind wait for a second.
    world.pass(2000);
    let notices = world.notices();
    assert!(
        matches!(&notices[..], [Notice::ProxyRejected { worker: 0, why, .. }] if why == said),
        "{notices:?}, not {said}"
    );
    world.end();
    let totals = world.totals();
    assert_eq!(totals.proxy_headers_rejected, before.proxy_headers_rejected + 1);
    assert_eq!(totals.connections_reset, before.connections_reset + 1);
    assert_eq!((totals.requests, totals.requests_refused), (before.requests, before.requests_refused));
}

#[test]
fn a_proxy_header_names_the_client() {
    let mut world = world();
    assert_client(&mut world, LINE, "", &some("192.0.2.1:56324"));
    assert_client(&mut world, b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n", "", &some("[2001:db8::1]:1"));
    assert_client(&mut world, &binary(0x21, [192, 0, 2, 7], &[4, 0, 1, 0]), "", &some("192.0.2.7:56324"));
    // The proxy's own connections, such as health checks, and clients that it can't name.
    assert_client(&mut world, &binary(0x20, [192, 0, 2, 7], b""), "", "peer");
    assert_client(&mut world, b"PROXY UNKNOWN\r\n", "", "peer");
}

#[test]
fn requests_behind_a_header_are_served_however_they_arrive() {
    // The last value claims to be longer than the header, whose own length decides.
    let header = binary(0x21, [192, 0, 2, 7], &[4, 0, 20, 0]);
    let requests = [Unit::get(1), Unit::post("buffer", 2, 40), Unit::get(3)];
    let whole = [header, Unit::stream(&requests)].concat();
    for split in 0..=whole.len() {
        let mut world = world();
        let mut client = world.send_pieces([&whole[..split], &whole[split..]]);
        client.assert_got(&requests.clone().map(|unit| unit.response));
        world.assert_usable(&mut client);
        world.finish(&client);
    }
    let mut world = world();
    let mut client = world.send_pieces(whole.chunks(1));
    client.assert_got(&requests.map(|unit| unit.response));
    world.finish(&client);
}

#[test]
fn resets_connections_without_a_valid_header() {
    let mut world = world();
    let missing = "it doesn't begin with a PROXY header";
    let malformed = "its PROXY header is malformed";
    assert_reset(&mut world, get("/plain/1"), missing);
    assert_reset(&mut world, b"\r\n\r\nGET / HTTP/1.1\r\n", missing);
    assert_reset(&mut world, b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\n", malformed);
    assert_reset(&mut world, binary(0x22, [192, 0, 2, 7], b""), malformed);
    assert_eq!(world.totals().hit_proxy_header_bytes, 0);
}

#[test]
fn limits_the_length_of_a_header() {
    let mut world = world();
    let large = "its PROXY header is too large";
    assert_reset(&mut world, [b"PROXY ", &[b'x'; PROXY_LINE_BYTES_MAX][..]].concat(), large);
    // Known from its length alone.
    assert_reset(&mut world, b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xFF\xFF", large);
    assert_eq!(world.totals().hit_proxy_header_bytes, 2);
    let values = vec![0; PROXY_HEADER_BYTES_MAX - 28];
    let mut client = world.send(&binary(0x21, [192, 0, 2, 7], &values)[..PROXY_HEADER_BYTES_MAX - 1]);
    assert!(
        world.worker.buffered_bytes() >= PROXY_HEADER_BYTES_MAX - 1,
        "it counts as an unfinished request"
    );
    world.feed(&mut client, b"\0");
    world.assert_usable(&mut client);
    world.finish(&client);
}

#[test]
fn resets_peers_that_are_no_trusted_proxies() {
    let mut world = SimWorld::new(Setting::trusting(&["10.0.0.0/8", "unix"], true));
    assert_reset(&mut world, [LINE, &get("/plain/1")].concat(), "it isn't a trusted proxy");
}

/// A peer without an address may be anyone: not even a valid header helps.
#[test]
fn closes_a_peer_that_is_gone_without_a_report() {
    let mut world = world();
    let mut client = world.connect();
    client.send([LINE, &get("/plain/1")].concat());
    client.peer.reset();
    world.settle();
    world.end();
    let totals = world.totals();
    assert_eq!((world.notices(), totals.proxy_headers_rejected, totals.requests), (vec![], 0, 0));
}

#[test]
fn a_second_header_is_a_malformed_request() {
    for second in [LINE, &binary(0x21, [192, 0, 2, 7], b"")] {
        let mut world = world();
        let (text, client) = world.ask([LINE, second, &get("/client")].concat());
        assert!(text.starts_with("HTTP/1.1 400 ") || text.starts_with("HTTP/1.1 505 "), "{text}");
        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "nothing behind it is read: {text}");
        world.finish(&client);
    }
}

/// Header and first head share a deadline, which no byte extends.
#[test]
fn a_header_has_the_deadline_of_the_first_head() {
    let timeouts = Timeouts { first_head_ms: 5000, ..Timeouts::default() };
    for (pieces, said) in
        [(&[][..], ""), (&[&LINE[..10]], ""), (&[LINE], ""), (&[LINE, b"GET"], "HTTP/1.1 408 ")]
    {
        let mut world = SimWorld::new(Setting { timeouts, ..Setting::trusting(PROXIES, true) });
        let mut client = world.connect();
        world.settle();
        for piece in pieces {
            for byte in *piece {
                world.feed(&mut client, [*byte]);
                world.pass(40);
            }
        }
        let left_ms = world.sleep_until_closed(&client);
        let all_ms = world.net.now_ms();
        assert!((5000..5600).contains(&all_ms) && left_ms <= 5600, "{all_ms} ms");
        assert!(
            client.text().starts_with(said) && (client.got.is_empty() == said.is_empty()),
            "{:?}",
            client.text()
        );
        assert_eq!(world.totals().hit_first_head_ms, 1);
        world.finish(&client);
    }
}

#[test]
fn a_client_that_leaves_before_the_end_of_its_header_is_closed_at_once() {
    for sent in [&b""[..], &LINE[..20]] {
        let mut world = world();
        let mut client = world.send(sent);
        client.peer.finish();
        world.settle();
        client.assert_closed();
        world.end();
        assert_eq!((world.net.now_ms(), world.notices()), (0, vec![]));
    }
}

#[test]
fn a_drain_ends_connections_that_send_no_header() {
    let mut world = world();
    let mut client = world.send(&LINE[..20]);
    world.control.drain(60_000);
    let ms = world.run();
    assert!(ms < 3000, "{ms} ms");
    client.assert_closed();
    assert_eq!(world.totals().connections_cut_off, 0);
}

#[test]
fn full_buffers_reset_a_partial_header() {
    let limits = Limits { buffered_bytes_max: 1, ..Limits::default() };
    let mut world = SimWorld::new(Setting { limits, ..Setting::trusting(PROXIES, true) });
    let client = world.send(&LINE[..20]);
    assert!(client.peer.saw_reset());
    world.end();
    assert_eq!(world.totals().hit_buffered_bytes, 1);
}

#[test]
fn a_large_partial_header_is_evicted_by_a_reset() {
    let limits = Limits { buffered_bytes_max: 11_500, ..Limits::default() };
    let mut world = SimWorld::new(Setting { limits, ..Setting::trusting(PROXIES, true) });
    let values = vec![0; PROXY_HEADER_BYTES_MAX - 28];
    let header = binary(0x21, [192, 0, 2, 7], &values);
    let large = world.send(&header[..header.len() - 1]);
    let mut others: Vec<SimClient> = (0..3).map(|_| world.send([LINE, b"GET /plain/9"].concat())).collect();
    assert!(large.peer.saw_reset(), "{} bytes", world.worker.buffered_bytes());
    others[2].send(b" HTTP/1.1\r\nHost: a\r\n\r\n");
    world.settle();
    assert!(others[2].text().starts_with("HTTP/1.1 200 OK\r\n"));
    others.iter().for_each(|client| client.peer.finish());
    world.end();
}

#[test]
fn a_request_header_of_a_trusted_proxy_names_the_client() {
    for (header, fields, expected) in [
        (ClientHeader::XForwardedFor, "X-Forwarded-For: 6.6.6.6, 192.0.2.1\r\n", &*some("192.0.2.1:0")),
        (ClientHeader::XForwardedFor, "X-Forwarded-For: 192.0.2.1:99, 127.0.0.9\r\n", &some("192.0.2.1:99")),
        (ClientHeader::XForwardedFor, "X-Forwarded-For: 6.6.6.6, nobody\r\n", "peer"),
        (ClientHeader::XForwardedFor, "Forwarded: for=6.6.6.6\r\n", "peer"),
        (ClientHeader::XForwardedFor, "X-Forwarded_For: 6.6.6.6\r\n", "peer"),
        (ClientHeader::XForwardedFor, "", "peer"),
        (ClientHeader::Forwarded, "Forwarded: for=6.6.6.6, for=192.0.2.1;by=_x\r\n", &some("192.0.2.1:0")),
        (ClientHeader::Forwarded, "X-Forwarded-For: 6.6.6.6\r\n", "peer"),
    ] {
        let mut setting = Setting::trusting(PROXIES, false);
        setting.proxies.client_header = Some(header);
        assert_client(&mut SimWorld::new(setting), b"", fields, expected);
        let mut setting = Setting::trusting(&["10.0.0.0/8"], false);
        setting.proxies.client_header = Some(header);
        assert_client(&mut SimWorld::new(setting), b"", fields, "peer");
    }
}

/// The PROXY header says whose requests follow: only those of another trusted proxy may name a client.
#[test]
fn a_request_header_counts_only_behind_trusted_proxies() {
    let mut setting = Setting::trusting(&["127.0.0.0/8", "10.0.0.0/8"], true);
    setting.proxies.client_header = Some(ClientHeader::XForwardedFor);
    let mut world = SimWorld::new(setting);
    let forged = "X-Forwarded-For: 6.6.6.6\r\n";
    assert_client(&mut world, LINE, forged, &some("192.0.2.1:56324"));
    assert_client(&mut world, &binary(0x21, [10, 0, 0, 7], b""), forged, &some("6.6.6.6:0"));
    assert_client(&mut world, b"PROXY UNKNOWN\r\n", forged, "peer");
    assert_client(&mut world, &binary(0x20, [10, 0, 0, 7], b""), forged, "peer");
}

/// Asserts the scheme of a request on a new connection, at once and later.
#[track_caller]
fn assert_scheme(world: &mut SimWorld, preamble: &[u8], origin: &str, fields: &str, expected: &str) {
    for target in ["/scheme", "/scheme-later"] {
        let mut client = world.send([preamble, &head("GET", &format!("{origin}{target}"), fields)].concat());
        client.assert_got(&[ExpectedResponse::text("200 OK", expected)]);
        world.finish(&client);
    }
}

#[test]
fn a_trusted_proxy_says_that_a_request_came_by_tls() {
    let by_tls = [0x20, 0, 5, 0x01, 0, 0, 0, 0];
    for (header, preamble, origin, fields, expected) in [
        (Some(ClientHeader::XForwardedFor), &b""[..], "", "X-Forwarded-Proto: https\r\n", "https"),
        (Some(ClientHeader::XForwardedFor), b"", "", "X-Forwarded-Proto: http\r\n", "http"),
        (Some(ClientHeader::XForwardedFor), b"", "", "Forwarded: for=192.0.2.1;proto=https\r\n", "http"),
        (Some(ClientHeader::Forwarded), b"", "", "Forwarded: for=192.0.2.1;proto=https\r\n", "https"),
        (Some(ClientHeader::Forwarded), b"", "", "X-Forwarded-Proto: https\r\n", "http"),
        (None, b"", "", "X-Forwarded-Proto: https\r\n", "http"),
        (None, b"", "https://a", "", "https"),
        (None, b"", "http://a", "", "http"),
        (None, &binary(0x21, [192, 0, 2, 7], &by_tls), "", "", "https"),
        (None, &binary(0x21, [192, 0, 2, 7], b""), "", "", "http"),
        // The PROXY header's client isn't trusted: its own headers count for nothing.
        (Some(ClientHeader::XForwardedFor), LINE, "", "X-Forwarded-Proto: https\r\n", "http"),
    ] {
        let mut setting = Setting::trusting(PROXIES, !preamble.is_empty());
        setting.proxies.client_header = header;
        assert_scheme(&mut SimWorld::new(setting), preamble, origin, fields, expected);
    }
}

#[test]
fn others_cant_say_that_a_request_came_by_tls() {
    let fields = "X-Forwarded-Proto: https\r\nForwarded: for=192.0.2.1;proto=https\r\n";
    for header in [ClientHeader::XForwardedFor, ClientHeader::Forwarded] {
        let mut setting = Setting::trusting(&["10.0.0.0/8"], false);
        setting.proxies.client_header = Some(header);
        assert_scheme(&mut SimWorld::new(setting), b"", "", fields, "http");
    }
    assert_scheme(&mut SimWorld::new(Setting::default()), b"", "", fields, "http");
}

#[test]
fn each_request_of_a_connection_has_its_own_client() {
    let mut setting = Setting::trusting(PROXIES, false);
    setting.proxies.client_header = Some(ClientHeader::XForwardedFor);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&seen);
    setting.listeners.push(ExchangeListener::new(&["x-forwarded-for"], move |_| {
        let log = Arc::clone(&log);
        move |finished: &FinishedExchange<'_>| {
            let peer = finished.peer().is_some_and(|peer| peer.ip().is_loopback());
            let client = finished.client().map_or("-".to_owned(), |client| client.ip().to_string());
            log.lock().expect("a log").push(format!("{client} {peer} {:?}", finished.status()));
        }
    }));
    let mut world = SimWorld::new(setting);
    let targets = ["/plain/1", "/later/2", "/buffer/3", "/client", "/plain/8"];
    let requests =
        targets.map(|target| head("POST", target, "X-Forwarded-For: 192.0.2.9\r\nContent-Length: 0\r\n"));
    let mixed = [
        requests.concat(),
        head("GET", "/plain/4", "X-Forwarded-For: 2001:db8::7\r\n"),
        head("GET", "/plain/5", ""),
        head("GET", "https://a/plain/6", "X-Forwarded-For: 192.0.2.8\r\n"),
        head("GET", "/plain/7", "X-Forwarded-For: 192.0.2.7\r\nExpect: nothing\r\n"),
    ];
    let mut client = world.send(mixed.concat());
    let mut bad = world.send("GET  / HTTP/1.1\r\nX-Forwarded-For: 192.0.2.6\r\n\r\n");
    world.pass(3000);
    world.finish(&client);
    let own = |client: &mut SimClient| client.peer.address().ip().to_string();
    let mut seen = std::mem::take(&mut *seen.lock().expect("a log"));
    let statuses = |count: usize| vec!["192.0.2.9 true Some(200)".to_owned(); count];
    let malformed = format!("{} true Some(400)", own(&mut bad));
    assert!(seen.contains(&malformed), "{seen:?}");
    seen.retain(|line| *line != malformed);
    let expected = [
        statuses(targets.len()),
        vec![
            "2001:db8::7 true Some(200)".to_owned(),
            format!("{} true Some(200)", own(&mut client)),
            "192.0.2.8 true Some(200)".to_owned(),
            "192.0.2.7 true Some(417)".to_owned(),
        ],
    ];
    assert_eq!(seen, expected.concat());
}

#[test]
fn exchanges_of_a_proxied_connection_have_the_client_of_its_header() {
    let mut setting = Setting::trusting(PROXIES, true);
    let seen: Arc<Mutex<Vec<Option<SocketAddr>>>> = Arc::default();
    let log = Arc::clone(&seen);
    setting.listeners.push(ExchangeListener::new(&[], move |_| {
        let log = Arc::clone(&log);
        move |finished: &FinishedExchange<'_>| log.lock().expect("a log").push(finished.client())
    }));
    let mut world = SimWorld::new(setting);
    for bytes in [&get("/plain/1")[..], b"GET  /", b"GET /plain/1 HTTP/1.1\r\nHost: a\r\nX", b"GET /"] {
        let client = world.send([LINE, bytes].concat());
        world.pass(20_000);
        world.finish(&client);
    }
    let client = Some(SocketAddr::from(([192, 0, 2, 1], 56324)));
    assert_eq!(*seen.lock().expect("a log"), [client; 4]);
}

#[test]
fn connections_count_for_the_client_of_their_proxy_header() {
    let limits = Limits { connections_per_address_max: 2, ..Limits::default() };
    let mut world =
        SimWorld::new(Setting { limits, ..Setting::trusting(&["127.0.0.0/8", "10.0.0.0/8"], true) });
    let from = |world: &mut SimWorld, client: [u8; 4]| world.send(binary(0x21, client, b""));
    let mut accepted =
        [[192, 0, 2, 1], [192, 0, 2, 1], [192, 0, 2, 2]].map(|client| from(&mut world, client));
    assert!(from(&mut world, [192, 0, 2, 1]).peer.saw_reset());
    accepted.iter_mut().for_each(|client| world.assert_usable(client));
    assert_eq!(world.totals().connections_refused, 1);
    // Neither the proxy's own connections nor those of another trusted one count.
    let mut others: Vec<SimClient> = (0..5).map(|_| from(&mut world, [10, 0, 0, 1])).collect();
    others.extend((0..5).map(|_| world.send(binary(0x20, [192, 0, 2, 1], b""))));
    others.iter_mut().for_each(|client| world.assert_usable(client));
    // A close makes room.
    accepted[0].peer.finish();
    world.settle();
    let mut next = from(&mut world, [192, 0, 2, 1]);
    world.assert_usable(&mut next);
    accepted.iter().chain(&others).chain([&next]).for_each(|client| client.peer.finish());
    world.end();
    assert_eq!(world.totals().connections_refused, 1);
}

#[test]
fn connections_of_trusted_proxies_are_not_limited() {
    let limits = Limits { connections_per_address_max: 1, ..Limits::default() };
    let mut world = SimWorld::new(Setting { limits, ..Setting::trusting(&["127.0.0.1"], false) });
    let from = |world: &mut SimWorld, host: u8, port: u16| {
        let client = SimClient::new(world.net.connect_as(0, SocketAddr::from(([127, 0, 0, host], port))));
        world.settle();
        client
    };
    let mut proxied: Vec<SimClient> = (0..5).map(|port| from(&mut world, 1, port)).collect();
    proxied.iter_mut().for_each(|client| world.assert_usable(client));
    let mut direct = from(&mut world, 2, 1);
    assert!(from(&mut world, 2, 2).peer.saw_reset());
    world.assert_usable(&mut direct);
    proxied.iter().chain([&direct]).for_each(|client| client.peer.finish());
    world.end();
}

/// The memory of closed connections' addresses is freed with their slots.
#[test]
fn slots_are_used_again_for_other_clients() {
    let mut world = world();
    for round in 0..3 {
        let clients: Vec<SimClient> = (0..100).map(|_| world.send(LINE)).collect();
        clients.iter().for_each(|client| client.peer.finish());
        world.end();
        world.pass(3000);
        assert_client(
            &mut world,
            &binary(0x21, [192, 0, 2, round], b""),
            "",
            &some(&format!("192.0.2.{round}:56324")),
        );
    }
}
