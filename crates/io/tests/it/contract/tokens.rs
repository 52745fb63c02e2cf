//! Clauses K: slots are reused only under another generation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shearwater_io::{CloseKind, Driver, Token};

use super::harness::Harness;
use super::world::{World, plain};

pub(crate) fn k1_a_slot_comes_again_with_another_generation<H: Harness>() {
    let mut world = World::<H>::new();
    let mut generations = Vec::new();
    for _ in 0..20 {
        let (_, token) = world.connect();
        assert_eq!(token.slot(), 0, "the only connection has the first slot");
        assert!(!generations.contains(&token.generation()));
        generations.push(token.generation());
        world.close_and_wait(token);
    }
}

pub(crate) fn k1_slots_are_dense<H: Harness>() {
    let mut world = World::<H>::new();
    let mut live: Vec<Token> = (0..50).map(|_| world.connect().1).collect();
    for round in 0..10 {
        for victim in 0..25 {
            let token = live.remove((victim * 7 + round) % live.len());
            world.close_and_wait(token);
        }
        for _ in 0..25 {
            live.push(world.connect().1);
        }
        // Every Accepted checks that no slot is used twice.
        assert!(live.iter().all(|token| token.slot() < 50), "{live:?}");
    }
}

pub(crate) fn k1_a_closing_slot_is_not_reused<H: Harness>() {
    let mut world = World::<H>::new();
    for _ in 0..20 {
        let (_, token) = world.connect();
        world.harness.connect(0);
        world.close(token, CloseKind::Normal);
        // Accepted may precede or follow Closed, which permits different slots; the event checks them.
        let wanted = world.accepted.len() + 1;
        world
            .until("one goes, one comes", |world| world.page(token).closed && world.accepted.len() >= wanted);
    }
}

pub(crate) fn k2_verbs_on_closed_tokens_do_nothing<H: Harness>() {
    let mut world = World::<H>::new();
    let (_, old) = world.connect();
    world.close_and_wait(old);
    let (peer, token) = world.connect();
    assert_eq!(token.slot(), old.slot(), "the closed token's slot is reused");
    let verbs: [fn(&mut H::Driver, Token); 6] = [
        |driver, token| driver.recv_pause(token),
        |driver, token| driver.recv_resume(token),
        |driver, token| driver.send(token, plain(b"to nobody")),
        |driver, token| driver.shutdown_write(token),
        |driver, token| driver.close(token, CloseKind::Reset),
        |driver, token| drop(driver.detach(token)),
    ];
    for dead in [old, Token::new(4000, 3)] {
        for verb in verbs {
            // Debug builds assert, release builds ignore; either way nothing happens.
            let result = catch_unwind(AssertUnwindSafe(|| verb(world.driver(), dead)));
            assert!(result.is_ok() || cfg!(debug_assertions));
            world.idle();
        }
        assert_eq!(world.driver().send_progress(dead), 0);
        assert!(world.driver().peer(dead).is_err());
    }
    world.harness.write(peer, b"question");
    world.until("the living one is heard", |world| world.page(token).received == b"question");
    world.send(token, plain(b"answer"));
    assert_eq!(world.peer_gets(peer, 6), b"answer");
}
