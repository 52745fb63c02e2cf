//! Clauses X3 and X5: records of a receive, of a turn, and those that are incomplete.

use shearwater_io::limits::{SECURE_PARTIAL_BYTES_MAX, SECURE_RECORDS_PER_TURN_MAX};
use shearwater_io::secure::{Failure, RECORD_BYTES_MAX};
use shearwater_io::sim::SimOptions;
use shearwater_io::{CloseKind, Driver};

use super::edge::{Edge, Seen};
use super::fake::{FakeClient, KEPT};
use crate::contract::world::pattern;

#[test]
fn x3_all_records_of_a_receive_are_one_event() {
    let mut edge = Edge::new(SimOptions::default());
    let (peer, mut client, token) = edge.secured();
    let content = pattern(3 * 700, 1);
    let wire = [&client.seal_in(&content, 700)[..], &client.seal_in(b"", 1), &client.key_update()].concat();
    peer.write(&wire);
    edge.settle();
    assert_eq!(edge.seen(token), [Seen::Received(2100)]);
    assert_eq!(edge.content(token), content);
}

#[test]
fn x3_a_turn_opens_a_bounded_number_of_records() {
    const RECORDS: usize = 5 * SECURE_RECORDS_PER_TURN_MAX + 7;
    let mut edge = Edge::new(SimOptions::default());
    let (peer, mut client, token) = edge.secured();
    let (other, mut other_client, neighbour) = edge.secured();
    let content = pattern(RECORDS, 1);
    peer.write(&client.seal_in(&content, 1));
    peer.write(&client.close_notify());
    other.write(&other_client.seal(b"question"));
    for turn in 1..=5 {
        assert!(edge.turn() > 0);
        assert_eq!(edge.seen(token).len(), turn, "one event a turn");
        assert_eq!(edge.content(token), &content[..turn * SECURE_RECORDS_PER_TURN_MAX]);
        assert!(edge.driver.reads_later(token), "R7");
        assert_eq!(edge.content(neighbour), b"question");
    }
    edge.settle();
    assert_eq!(edge.content(token), content);
    assert_eq!(edge.seen(token)[5..], [Seen::Received(7), Seen::Eof]);
    assert!(!edge.driver.reads_later(token));
}

/// The FIN of the driver below comes while records wait.
#[test]
fn x3_the_end_follows_records_that_wait() {
    for is_paused in [false, true] {
        let mut edge = Edge::new(SimOptions::default());
        let (peer, mut client, token) = edge.secured();
        let content = pattern(10 * SECURE_RECORDS_PER_TURN_MAX, 1);
        peer.write(&client.seal_in(&content, 1));
        peer.finish();
        edge.turn();
        if is_paused {
            edge.driver.recv_pause(token);
        }
        edge.settle();
        edge.driver.recv_resume(token);
        edge.settle();
        assert_eq!(edge.content(token), content);
        assert_eq!(edge.seen(token).last(), Some(&Seen::Eof));
        assert!(!edge.driver.was_clean(token), "X6: without a close_notify");
    }
}

#[test]
fn x5_a_part_of_a_record_is_announced_once() {
    let mut edge = Edge::new(SimOptions::default());
    let (peer, mut client, token) = edge.secured();
    let wire = [client.seal(&[1; 1000]), client.seal(&[2; 1000])].concat();
    for bytes in [&wire[..1], &wire[1..3], &wire[3..900]] {
        peer.write(bytes);
        edge.settle();
        assert_eq!(edge.seen(token), [Seen::Receiving]);
    }
    assert!((900..2000).contains(&edge.counters().partial_bytes), "{:?}", edge.counters());
    peer.write(&wire[900..1500]);
    edge.settle();
    assert_eq!(edge.seen(token), [Seen::Receiving, Seen::Received(1000), Seen::Receiving]);
    peer.write(&wire[1500..]);
    edge.settle();
    assert_eq!(edge.seen(token)[3..], [Seen::Received(1000)]);
    assert_eq!(edge.counters().partial_bytes, 0, "an idle connection holds nothing");
}

#[test]
fn x5_the_largest_holder_is_reset_when_memory_for_records_runs_out() {
    const HELD: usize = 16_000;
    let mut edge = Edge::new(SimOptions::default());
    let (peer, mut client, token) = edge.secured();
    let small = client.seal(&[7; 1000]);
    peer.write(&small[..500]);
    let many = SECURE_PARTIAL_BYTES_MAX / HELD + 20;
    let peers: Vec<_> = (0..many).map(|_| edge.connect()).collect();
    for (peer, _) in &peers {
        peer.write(&FakeClient::default().handshake());
    }
    edge.settle();
    for (peer, _) in &peers {
        // A record of another session: only its header counts until it is complete.
        peer.write(&FakeClient::default().seal(&[1; RECORD_BYTES_MAX])[..HELD]);
        edge.turn();
        assert!(edge.counters().partial_bytes <= SECURE_PARTIAL_BYTES_MAX);
    }
    edge.settle();
    let is_reset = |token| edge.seen(token).last() == Some(&Seen::Broken);
    let reset = peers.iter().filter(|(_, token)| is_reset(*token)).count();
    assert!((20..30).contains(&reset), "{reset} of {many}");
    assert_eq!(edge.counters().memory_resets as usize, reset);
    assert_eq!(edge.counters().failures(Failure::Memory) as usize, reset);
    peer.write(&small[500..]);
    edge.settle();
    assert_eq!(edge.content(token), [7; 1000], "neighbours are served");
    for (_, token) in &peers {
        edge.driver.close(*token, CloseKind::Reset);
    }
    edge.settle();
    assert_eq!(edge.counters().partial_bytes, 0);
}

#[test]
fn x5_messages_in_part_count_as_unopened() {
    const HELD: usize = 4 * 16_000;
    let mut edge = Edge::new(SimOptions::default());
    let mut hello = vec![0; 16_000];
    hello[..5].copy_from_slice(&[22, 3, KEPT, 0x3E, 0x7B]);
    let many = SECURE_PARTIAL_BYTES_MAX / HELD + 20;
    let peers: Vec<_> = (0..many).map(|_| edge.connect()).collect();
    for (peer, _) in &peers {
        peer.write(&hello.repeat(4));
        edge.turn();
        assert!(edge.counters().partial_bytes <= SECURE_PARTIAL_BYTES_MAX);
    }
    edge.settle();
    let failed = edge.counters().failures(Failure::Memory);
    assert!((20..30).contains(&failed), "{failed} of {many}");
    peers.iter().for_each(|(peer, _)| peer.reset());
    edge.settle();
    assert_eq!(edge.counters().partial_bytes, 0);
}

#[test]
fn a_damaged_record_breaks_the_connection_after_an_alert() {
    let mut edge = Edge::new(SimOptions::default());
    let (peer, mut client, token) = edge.secured();
    let mut wire = [client.seal(b"whole"), client.seal(b"damaged"), client.seal(b"never opened")].concat();
    wire[20] ^= 1;
    peer.write(&wire);
    edge.settle();
    assert_eq!(edge.seen(token), [Seen::Received(5), Seen::Broken]);
    client.receive(&peer.read());
    assert_eq!(client.alerts.len(), 1);
    assert_eq!(edge.counters().failures(Failure::BadRecord), 1);
    edge.driver.close(token, CloseKind::Normal);
    edge.settle();
    assert_eq!(peer.read(), b"", "no close_notify after an alert");
}

#[test]
fn x7_renegotiation_is_refused() {
    let mut edge = Edge::new(SimOptions::default());
    let (peer, mut client, token) = edge.secured();
    peer.write(&client.hello());
    edge.settle();
    assert_eq!(edge.seen(token), [Seen::Broken]);
    assert_eq!(edge.counters().failures(Failure::Unsupported), 1);
}
