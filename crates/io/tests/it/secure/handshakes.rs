//! Clauses X1 and X2: the handshake, its failures, and its costly steps.

use shearwater_io::limits::{
    SECURE_COSTLY_PER_TURN_MAX, SECURE_HANDSHAKE_BYTES_MAX, SECURE_PARTIAL_BYTES_MAX,
};
use shearwater_io::secure::{Failure, Version};
use shearwater_io::sim::SimOptions;
use shearwater_io::{CloseKind, Driver};

use super::edge::{Edge, Seen};
use super::fake::{ENDLESS, FakeClient};
use crate::contract::world::plain;

const TICKET: u8 = 4;
const SERVER_HELLO: u8 = 2;

#[test]
fn x1_secured_precedes_content_wherever_the_input_is_split() {
    let whole = FakeClient::default().handshake().len() + FakeClient::default().seal(b"GET /").len();
    for split in 0..=whole {
        let mut edge = Edge::new(SimOptions::default());
        let (peer, token) = edge.connect();
        let mut client = FakeClient::default();
        let wire = [client.handshake(), client.seal(b"GET /")].concat();
        peer.write(&wire[..split]);
        edge.settle();
        peer.write(&wire[split..]);
        edge.settle();
        let seen: Vec<_> = edge.seen(token).iter().filter(|seen| **seen != Seen::Receiving).collect();
        assert_eq!(seen, [&Seen::Secured, &Seen::Received(5)], "split at {split}");
        client.receive(&peer.read());
        assert_eq!(client.messages, [SERVER_HELLO, TICKET]);
        assert_eq!(edge.driver.received_on_wire(token), Some(wire.len() as u64));
    }
}

#[test]
fn x1_reports_the_facts_of_a_session() {
    let mut edge = Edge::new(SimOptions::default());
    let (_, _, full) = edge.secured();
    let (peer, resumed) = edge.connect();
    assert!(edge.driver.session(resumed).is_none(), "not before the handshake");
    let mut client = FakeClient::default();
    peer.write(&[client.hello_with_ticket(), client.finished()].concat());
    edge.settle();
    let facts = |token| edge.driver.session(token).expect("it is secured");
    assert_eq!((facts(full).version, facts(full).is_resumed), (Version::Tls13, false));
    assert_eq!((facts(resumed).version, facts(resumed).is_resumed), (Version::Tls12, true));
    assert_eq!(facts(full).alpn, Some("http/1.1"));
    let counters = edge.counters();
    assert_eq!((counters.handshakes(Version::Tls12), counters.handshakes(Version::Tls13)), (1, 1));
    assert_eq!((counters.resumed, counters.connections), (1, 2));
}

/// As after a PROXY header, whose receive may include the hello.
#[test]
fn x1_takes_over_what_the_worker_has_received() {
    let mut edge = Edge::new(SimOptions::default());
    edge.secures = false;
    let (peer, token) = edge.connect();
    let mut client = FakeClient::default();
    let wire = [client.handshake(), client.seal(b"GET /")].concat();
    peer.write(&wire[..20]);
    edge.settle();
    assert_eq!(edge.content(token), &wire[..20], "it is plain until then");
    edge.forget(token);
    edge.driver.secure(token, 0, &wire[..20]);
    edge.settle();
    peer.write(&wire[20..]);
    edge.settle();
    assert_eq!(edge.seen(token), [Seen::Secured, Seen::Received(5)]);
}

#[test]
fn x1_a_failed_handshake_is_reported_with_its_reason_after_the_alert() {
    type Hello = fn(&mut FakeClient) -> Vec<u8>;
    let failing: [(Failure, Hello); 3] = [
        (Failure::Version, FakeClient::hello_of_old),
        (Failure::Alert, |client| client.alert(40)),
        (Failure::BadRecord, |client| {
            let mut hello = client.hello();
            hello[8] ^= 1;
            hello
        }),
    ];
    for (failure, wire) in failing {
        let mut edge = Edge::new(SimOptions::default());
        let (peer, token) = edge.connect();
        let mut client = FakeClient::default();
        peer.write(&wire(&mut client));
        edge.settle();
        assert_eq!(edge.seen(token), [Seen::Failed(failure)]);
        assert_eq!(edge.counters().failures(failure), 1);
        client.receive(&peer.read());
        assert_eq!(client.alerts.len(), usize::from(failure != Failure::Alert));
        // Nothing more is opened or sealed; the end shows, so that the worker can wait for it.
        peer.write(b"whatever follows");
        edge.driver.send(token, plain(b"no content"));
        edge.settle();
        edge.driver.shutdown_write(token);
        peer.finish();
        edge.settle();
        assert_eq!(edge.seen(token), [Seen::Failed(failure), Seen::NotSent, Seen::Eof]);
        assert!(peer.saw_fin() && peer.read().is_empty());
        edge.driver.close(token, CloseKind::Normal);
        edge.settle();
        assert_eq!(edge.counters().connections, 0);
    }
}

/// The worker explains in clear text that this port is for https.
#[test]
fn x1_a_connection_without_tls_continues_in_clear() {
    let mut edge = Edge::new(SimOptions::default());
    let (peer, token) = edge.connect();
    peer.write(b"GET / HTTP/1.1\r\n\r\n");
    edge.settle();
    assert_eq!(edge.seen(token), [Seen::Failed(Failure::NotTls)]);
    edge.driver.send(token, plain(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    edge.settle();
    assert_eq!(peer.read(), b"HTTP/1.1 400 Bad Request\r\n\r\n");
    peer.write(b"GET");
    peer.finish();
    edge.settle();
    assert_eq!(edge.seen(token)[2..], [Seen::Received(3), Seen::Eof]);
    edge.driver.close(token, CloseKind::Normal);
    edge.settle();
    assert_eq!((edge.seen(token).last(), edge.counters().connections), (Some(&Seen::Closed), 0));
}

#[test]
fn x1_an_end_within_the_handshake_is_a_broken_connection() {
    for len in [0, 3, 40] {
        let mut edge = Edge::new(SimOptions::default());
        let (peer, token) = edge.connect();
        peer.write(&FakeClient::default().handshake()[..len]);
        peer.finish();
        edge.settle();
        assert_eq!(edge.seen(token), [Seen::Broken]);
        assert_eq!(edge.counters().failures(Failure::Truncated), 1);
        edge.driver.close(token, CloseKind::Normal);
        edge.settle();
        assert_eq!(edge.counters().failures(Failure::TimedOut), 0);
    }
    let mut edge = Edge::new(SimOptions::default());
    let (_, token) = edge.connect();
    edge.driver.close(token, CloseKind::Normal);
    assert_eq!(edge.counters().failures(Failure::TimedOut), 1, "the worker closed it");
}

#[test]
fn x1_a_hello_without_end_is_refused() {
    let mut edge = Edge::new(SimOptions::default());
    let (peer, token) = edge.connect();
    let mut hello = FakeClient::default().hello_of(16_000);
    hello[2] = ENDLESS;
    for _ in 0..SECURE_HANDSHAKE_BYTES_MAX / hello.len() {
        peer.write(&hello);
        edge.settle();
        assert_eq!(edge.seen(token), [], "a large hello is no mistake");
    }
    peer.write(&hello);
    edge.settle();
    assert_eq!(edge.seen(token), [Seen::Failed(Failure::BadRecord)]);
    assert_eq!(edge.counters().partial_bytes, 0);
}

#[test]
fn x2_a_turn_takes_a_bounded_number_of_costly_steps_in_order() {
    const CONNECTIONS: usize = 5 * SECURE_COSTLY_PER_TURN_MAX + 2;
    let mut edge = Edge::new(SimOptions::default());
    let mut all: Vec<_> = (0..CONNECTIONS).map(|_| edge.connect()).collect();
    for (peer, _) in &all {
        peer.write(&FakeClient::default().handshake());
    }
    let is_secured = |edge: &Edge, token| !edge.seen(token).is_empty();
    let mut secured = 0;
    while secured < all.len() {
        edge.turn();
        let now = all.iter().filter(|(_, token)| is_secured(&edge, *token)).count();
        assert!(now <= secured + SECURE_COSTLY_PER_TURN_MAX, "{now} after {secured}");
        assert!(all[..now].iter().all(|(_, token)| is_secured(&edge, *token)), "the first come first");
        let waiting = all.len() - now;
        assert_eq!(edge.counters().costly_waiting, waiting);
        let next = all.get(now).map(|(_, token)| *token);
        assert!(next.is_none_or(|token| edge.driver.reads_later(token)), "R7: its hello has arrived");
        secured = now;
    }
    assert_eq!(edge.counters().costly_queued as usize, CONNECTIONS - SECURE_COSTLY_PER_TURN_MAX);
    all.clear();
}

#[test]
fn x2_connections_that_close_leave_the_queue() {
    let mut edge = Edge::new(SimOptions::default());
    let all: Vec<_> = (0..100).map(|_| edge.connect()).collect();
    for (peer, _) in &all {
        peer.write(&FakeClient::default().handshake());
    }
    edge.turn();
    for (_, token) in &all[..95] {
        edge.driver.close(*token, CloseKind::Reset);
    }
    assert_eq!(edge.counters().costly_waiting, 5);
    edge.turn();
    assert_eq!(edge.counters().costly_waiting, 1, "those that are left don't wait for them");
    edge.settle();
    assert_eq!(edge.seen(all[99].1), [Seen::Secured]);
    assert_eq!(edge.counters().partial_bytes, 0);
}

/// Neighbours are served, and memory stays within its bound.
#[test]
fn ten_thousand_half_handshakes_hold_little() {
    let mut edge = Edge::new(SimOptions::default());
    let (peer, mut client, token) = edge.secured();
    let peers = edge.net.connect_many(10_000);
    edge.settle();
    let mut hello = FakeClient::default().hello_of(1500);
    hello.truncate(1400);
    for (number, half) in peers.iter().enumerate() {
        half.write(&hello);
        if number % 1000 == 0 {
            peer.write(&client.seal(b"question"));
            edge.turn();
        }
    }
    edge.settle();
    assert_eq!(edge.content(token), b"question".repeat(10));
    let counters = edge.counters();
    assert_eq!(counters.memory_resets, 0);
    assert!(
        counters.partial_bytes <= SECURE_PARTIAL_BYTES_MAX.min(10_000 * 1500),
        "{}",
        counters.partial_bytes
    );
    peers.iter().for_each(|half| half.reset());
    edge.settle();
    assert_eq!(edge.counters().partial_bytes, 0);
    assert_eq!(edge.counters().failures(Failure::Truncated), 10_000);
}
