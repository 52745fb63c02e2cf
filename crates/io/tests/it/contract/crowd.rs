//! Many connections, concurrent and sequential.

use std::collections::HashMap;

use shearwater_io::{CloseKind, Driver};

use super::harness::{Harness, PeerState};
use super::world::{Note, World, pattern, plain};

const CROWD: usize = 1000;

pub(crate) fn a_thousand_connections_are_responded<H: Harness>() {
    let mut world = World::<H>::new();
    let mut peers = Vec::new();
    while peers.len() < CROWD {
        peers.extend((0..100).map(|_| world.harness.connect(0)));
        world.until("they are accepted", |world| world.accepted.len() == peers.len());
    }
    let by_address: HashMap<_, _> = (0..CROWD)
        .map(|index| {
            let token = world.accepted[index];
            (world.driver().peer(token).expect("the peer is there"), token)
        })
        .collect();
    for round in 0..3 {
        for (number, peer) in peers.iter().enumerate() {
            world.harness.write(*peer, format!("question {number} of {round}\n").as_bytes());
        }
        response_each_line(&mut world);
        for (number, peer) in peers.iter().enumerate() {
            let wanted = format!("QUESTION {number} OF {round}\n");
            assert_eq!(world.peer_gets(*peer, wanted.len()), wanted.as_bytes());
            let token = by_address[&world.harness.address(*peer).expect("it is connected")];
            assert!(world.page(token).received.ends_with(wanted.to_ascii_lowercase().as_bytes()));
        }
        world.until("all is sent", |world| world.accepted.iter().all(|token| !world.is_sending(*token)));
    }
}

/// Takes turns until each peer has its complete line back, in capitals.
fn response_each_line<H: Harness>(world: &mut World<H>) {
    let mut responded = 0;
    for _ in 0..100_000 {
        world.wait(100);
        while let Some(note) = world.step() {
            let Note::Received(token, _) = note else { continue };
            if let Some(lines) = world.page(token).received.strip_suffix(b"\n") {
                let line = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or(lines);
                let response = [&line.to_ascii_uppercase()[..], b"\n"].concat();
                world.send(token, plain(&response));
                responded += 1;
            }
        }
        if responded == CROWD {
            return;
        }
    }
    panic!("{responded} of {CROWD} are answered");
}

pub(crate) fn churn_leaves_nothing_behind<H: Harness>() {
    let mut world = World::<H>::new();
    for round in 0..200_usize {
        let (peer, token) = world.connect();
        world.harness.write(peer, b"question");
        match round % 4 {
            0 => {
                world.until("it is heard", |world| !world.page(token).received.is_empty());
                world.send(token, plain(&pattern(round * 50, 1)));
                world.peer_gets(peer, round * 50);
                world.until("it is sent", |world| !world.is_sending(token));
            }
            1 => world.harness.reset(peer),
            2 => world.harness.shutdown(peer),
            _ => {}
        }
        let kind = if round % 3 == 0 { CloseKind::Reset } else { CloseKind::Normal };
        world.close(token, kind);
        world.until("it is closed", |world| world.page(token).closed);
        if round % 4 != 1 {
            assert_ne!(world.peer_ends(peer).0, PeerState::Open);
        }
        assert_eq!(token.slot(), 0);
    }
    assert_eq!(world.driver().connections(), 0);
}
