//! Clauses X4, X6 to X9, and S5: what secured connections send, and their end.

use shearwater_io::limits::{SEAL_BYTES_PER_TURN_MAX, SEAL_ROUND_BYTES, SECURE_REPLY_BYTES_MAX};
use shearwater_io::secure::{Failure, RECORD_BYTES_MAX};
use shearwater_io::sim::SimOptions;
use shearwater_io::{CloseKind, Driver, Output};

use super::edge::{Edge, Seen};
use super::fake::FakeClient;
use crate::contract::world::{file_of, mixed, pattern, plain, with_file};

const SERVER_HELLO: u8 = 2;
const TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;

#[test]
fn x4_counts_what_was_delivered_and_received_in_bytes_of_records() {
    let mut edge = Edge::new(SimOptions::default());
    let (peer, mut client, token) = edge.secured();
    let before = edge.driver.delivered(token).expect("the simulation reports it");
    assert!(before > 0, "the handshake");
    peer.set_reading(false);
    peer.set_window(50_000);
    edge.driver.send(token, plain(&pattern(200_000, 1)));
    edge.settle();
    assert_eq!(edge.driver.delivered(token), Some(before), "the kernel has it, the peer doesn't");
    let progress = edge.driver.send_progress(token);
    assert_eq!(progress, 3 * RECORD_BYTES_MAX as u64, "whole records that the kernel has");
    client.receive(&peer.read_at_most(20_000));
    assert_eq!(edge.driver.delivered(token), Some(before + 20_000));
    edge.settle();
    assert!(edge.driver.send_progress(token) > progress);
    peer.set_reading(true);
    edge.settle();
    client.receive(&peer.read());
    assert_eq!(edge.seen(token), [Seen::Sent]);
    let delivered = edge.driver.delivered(token).expect("the simulation reports it") - before;
    assert!((200_001..201_000).contains(&delivered), "{delivered}");
    assert_eq!(client.content, pattern(200_000, 1));
    let received = edge.driver.received_on_wire(token).expect("it is secured");
    let wire = client.seal(&[1; 16_000]);
    for (count, bytes) in wire.chunks(1000).enumerate() {
        assert_eq!(edge.driver.received_on_wire(token), Some(received + 1000 * count as u64));
        peer.write(bytes);
        edge.settle();
    }
    assert_eq!(edge.content(token), [1; 16_000]);
}

#[test]
fn x6_a_close_notify_precedes_the_fin() {
    for is_shut in [false, true] {
        let mut edge = Edge::new(SimOptions::default());
        let (peer, mut client, token) = edge.secured();
        edge.driver.send(token, plain(b"the last response"));
        edge.settle();
        match is_shut {
            true => edge.driver.shutdown_write(token),
            false => edge.driver.close(token, CloseKind::Normal),
        }
        edge.settle();
        assert!(peer.saw_fin() || !is_shut && !peer.saw_reset());
        client.receive(&peer.read());
        assert_eq!((&client.content[..], client.saw_close_notify()), (&b"the last response"[..], true));
        if is_shut {
            peer.write(&client.seal(b"receiving goes on"));
            edge.settle();
            assert_eq!(edge.content(token), b"receiving goes on");
            edge.driver.close(token, CloseKind::Normal);
            edge.settle();
            assert_eq!(peer.read(), b"", "it was sent once");
        }
    }
}

#[test]
fn x6_tells_a_close_notify_from_a_truncation() {
    for is_clean in [true, false] {
        let mut edge = Edge::new(SimOptions::default());
        let (peer, mut client, token) = edge.secured();
        peer.write(&client.seal(b"all of it?"));
        if is_clean {
            peer.write(&client.close_notify());
        } else {
            peer.write(&client.seal(b"never complete")[..10]);
        }
        peer.finish();
        edge.settle();
        let seen: Vec<_> = edge.seen(token).iter().filter(|seen| **seen != Seen::Receiving).collect();
        assert_eq!(seen, [&Seen::Received(10), &Seen::Eof]);
        assert_eq!(edge.driver.was_clean(token), is_clean);
        assert_eq!(edge.counters().partial_bytes, 0);
        // R5: a half-closed peer gets its response.
        edge.driver.send(token, plain(&pattern(300_000, 1)));
        edge.settle();
        client.receive(&peer.read());
        assert_eq!(client.content, pattern(300_000, 1));
        edge.driver.close(token, CloseKind::Normal);
        edge.settle();
        client.receive(&peer.read());
        assert!(client.saw_close_notify());
    }
}

/// One send of the driver below, and one turn, for a ticket and the response to the first request.
#[test]
fn x7_tickets_precede_the_next_output() {
    let mut edge = Edge::new(SimOptions { sends_at_once: 1.0, ..SimOptions::default() });
    let (peer, token) = edge.connect();
    let mut client = FakeClient::default();
    peer.write(&client.hello());
    edge.settle();
    let before = edge.net.trace().len();
    peer.write(&[client.finished(), client.seal(b"question")].concat());
    edge.driver.wait(None).expect("the simulation never fails");
    let mut output = plain(b"response");
    while let Some(event) = edge.driver.next() {
        if matches!(event, shearwater_io::Event::Received { .. }) {
            assert!(edge.driver.send_at_once(token, &mut output, || false));
            assert_eq!(output.bytes(), b"response", "X8: the sealed copy was sent");
        }
    }
    edge.settle();
    client.receive(&peer.read());
    assert_eq!((&client.messages[..], &client.content[..]), (&[SERVER_HELLO, TICKET][..], &b"response"[..]));
    let is_send = |operation: &&shearwater_io::sim::Operation| {
        operation.kind == shearwater_io::sim::OperationKind::SendAttempt
    };
    assert_eq!(edge.net.trace()[before..].iter().filter(is_send).count(), 1);
}

#[test]
fn x7_replies_are_sent_without_an_output_and_beside_one() {
    for is_sending in [false, true] {
        let mut edge = Edge::new(SimOptions::default());
        let (peer, mut client, token) = edge.secured();
        if is_sending {
            peer.set_reading(false);
            peer.set_window(40_000);
            edge.driver.send(token, plain(&pattern(400_000, 1)));
            edge.settle();
        }
        for _ in 0..3 {
            peer.write(&client.key_update());
            edge.settle();
        }
        peer.set_reading(true);
        edge.settle();
        client.receive(&peer.read());
        assert_eq!(client.messages[2..], [KEY_UPDATE; 3]);
        assert_eq!(client.content.len(), if is_sending { 400_000 } else { 0 });
    }
}

#[test]
fn x7_a_peer_that_reads_no_replies_is_refused() {
    let mut edge = Edge::new(SimOptions::default());
    let (peer, mut client, token) = edge.secured();
    peer.set_reading(false);
    peer.set_window(100);
    for _ in 0..SECURE_REPLY_BYTES_MAX / FakeClient::default().key_update().len() {
        peer.write(&client.key_update());
        edge.turn();
    }
    assert_eq!(edge.seen(token), [], "it may be slow");
    for _ in 0..200 {
        peer.write(&client.key_update());
        edge.turn();
    }
    assert_eq!(edge.seen(token), [Seen::Broken]);
    assert_eq!(edge.counters().failures(Failure::Other), 1);
}

/// The records are the driver's own: they don't come back.
#[test]
fn x8_an_unsent_send_returns_the_workers_output() {
    let mut edge = Edge::new(SimOptions { unsent: 1.0, ..SimOptions::default() });
    let (peer, mut client, token) = edge.secured();
    peer.set_reading(false);
    peer.set_window(1000);
    let mut output = plain(&pattern(5000, 1));
    assert!(edge.driver.send_at_once(token, &mut output, || false) && output.is_empty());
    let mut second = plain(b"and more");
    assert!(!edge.driver.send_at_once(token, &mut second, || true));
    edge.driver.wait(None).expect("the simulation never fails");
    assert_eq!(edge.driver.next_unsent(), Some(token));
    peer.set_reading(true);
    let mut returned = None;
    while returned.is_none() {
        edge.driver.wait(None).expect("the simulation never fails");
        while let Some(event) = edge.driver.next() {
            if let shearwater_io::Event::Sent { output, result: Ok(()), .. } = event {
                returned = Some(output);
            }
        }
    }
    let whole = [&pattern(5000, 1)[..], b"and more"].concat();
    assert_eq!(returned.expect("from above").bytes(), whole);
    client.receive(&peer.read());
    assert_eq!(client.content, whole);
}

#[test]
fn x9_a_secured_connection_is_not_detached() {
    let mut edge = Edge::new(SimOptions::default());
    let (peer, mut client, token) = edge.secured();
    edge.driver.detach(token);
    edge.settle();
    edge.driver.send(token, plain(b"still here"));
    edge.settle();
    assert_eq!(edge.seen(token), [Seen::NotDetached, Seen::Sent]);
    client.receive(&peer.read());
    assert_eq!(client.content, b"still here");
}

/// Large senders share a turn's budget with each other, and none of them delays a short response.
#[test]
fn s5_long_outputs_are_sealed_in_shares() {
    const LARGE: usize = 4 * SEAL_BYTES_PER_TURN_MAX as usize;
    let mut edge = Edge::new(SimOptions { send_buffer_bytes: 64 << 20, ..SimOptions::default() });
    let mut large: Vec<_> = (0..4).map(|_| edge.secured()).collect();
    let (peer, mut client, small) = edge.secured();
    let file = file_of(&pattern(LARGE, 1));
    for (number, (_, _, token)) in large.iter().enumerate() {
        let output: Output = match number % 2 {
            0 => with_file(b"", &file, 0, LARGE as u64),
            _ => plain(&pattern(LARGE, 1)),
        };
        edge.driver.send(*token, output);
    }
    let (mut taken, mut turns) = (edge.driver.bytes_taken(), 0);
    let mut done = [0; 4];
    while large.iter().any(|(_, _, token)| edge.seen(*token).is_empty()) {
        turns += 1;
        edge.driver.send(small, plain(b"small"));
        edge.turn();
        assert_eq!(edge.seen(small).len(), turns, "a short one is sent in its turn");
        let now = edge.driver.bytes_taken();
        assert!(now - taken <= SEAL_BYTES_PER_TURN_MAX * 101 / 100, "{} in one turn", now - taken);
        taken = now;
        for (before, (_, _, token)) in done.iter_mut().zip(&large) {
            let is_over = !edge.seen(*token).is_empty();
            let progress = if is_over { LARGE as u64 } else { edge.driver.send_progress(*token) };
            let step = progress - *before;
            assert!(is_over || step.abs_diff(SEAL_BYTES_PER_TURN_MAX / 4) <= SEAL_ROUND_BYTES, "{step}");
            *before = progress;
        }
    }
    assert!(turns as u64 >= 4 * LARGE as u64 / SEAL_BYTES_PER_TURN_MAX, "{turns} turns");
    for (peer, client, _) in &mut large {
        client.receive(&peer.read());
        assert!(client.content == pattern(LARGE, 1));
    }
    client.receive(&peer.read());
    assert_eq!(client.content, b"small".repeat(turns));
}

/// A peer that reads nothing makes the driver seal one round, not the whole output.
#[test]
fn a_stalled_send_holds_one_round() {
    let mut edge = Edge::new(SimOptions::default());
    let (peer, mut client, token) = edge.secured();
    peer.set_reading(false);
    peer.set_window(10_000);
    let (output, wanted) = mixed(20);
    edge.driver.send(token, output);
    edge.settle();
    assert!(edge.net.trace().iter().map(|operation| operation.bytes).sum::<u64>() < 20_000);
    assert!(edge.driver.rest(), "nothing is to be done");
    let mut got = Vec::new();
    while edge.seen(token).is_empty() {
        got.extend(peer.read_at_most(9000));
        edge.turn();
    }
    edge.settle();
    got.extend(peer.read());
    client.receive(&got);
    assert!(client.content == wanted && client.is_between_records());
}
