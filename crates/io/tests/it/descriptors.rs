//! More connections than descriptors, on the completion driver.

use rustix::process::{Resource, Rlimit, setrlimit};
use shearwater_io::CloseKind;
use shearwater_io::os::open_descriptors;

use crate::contract::sockets::SocketHarness;
use crate::contract::sockets::on_uring::Stored;
use crate::contract::world::{World, file_of, pattern, plain, with_file};
use crate::contract::{Harness, PeerState, is_missing};
use crate::kernel::in_a_child;

type StoredHarness = SocketHarness<Stored<true>>;

/// A crowd beyond the descriptor limit is accepted, sends and gets responses, and leaves.
#[test]
fn serves_a_crowd_beyond_the_descriptor_limit() {
    in_a_child(serves_a_crowd);
}

fn serves_a_crowd() {
    const CROWD: usize = 400;
    const DESCRIPTORS: u64 = 80;
    if is_missing::<StoredHarness>() {
        return;
    }
    // The peers have descriptors, too.
    let tight = Some(open_descriptors() + CROWD as u64 + DESCRIPTORS);
    setrlimit(Resource::Nofile, Rlimit { current: tight, maximum: tight }).expect("a lower limit");
    let mut world = World::<StoredHarness>::new();
    let peers: Vec<_> = (0..CROWD).map(|_| world.harness.connect(0)).collect();
    world.until("all are accepted", |world| world.accepted.len() == CROWD);
    let tokens = world.accepted.clone();
    for round in 1..=2 {
        for (number, peer) in peers.iter().enumerate() {
            world.harness.write(*peer, &[number as u8]);
        }
        world.until("all have sent", |world| {
            tokens.iter().all(|token| world.page(*token).received.len() == round)
        });
        for token in &tokens {
            let output = plain(&world.page(*token).received[round - 1..]);
            world.send(*token, output);
        }
        for (number, peer) in peers.iter().enumerate() {
            assert_eq!(world.peer_gets(*peer, 1), [number as u8]);
        }
    }
    world.idle();
    let file = file_of(&pattern(100_000, 1));
    for token in &tokens {
        world.send(*token, with_file(b"", &file, 0, 100_000));
    }
    for peer in &peers {
        assert!(world.peer_gets(*peer, 100_000) == pattern(100_000, 1));
    }
    for (number, token) in tokens.iter().enumerate() {
        world.close(*token, if number % 2 == 0 { CloseKind::Normal } else { CloseKind::Reset });
    }
    world.until("all are closed", |world| tokens.iter().all(|token| world.page(*token).closed));
    for (number, peer) in peers.iter().enumerate() {
        let expected = if number % 2 == 0 { PeerState::Eof } else { PeerState::Reset };
        assert_eq!(world.peer_ends(*peer).0, expected);
    }
}
