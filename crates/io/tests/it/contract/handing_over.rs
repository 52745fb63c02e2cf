//! Clause A5: connections from an acceptor.

use shearwater_io::limits::ACCEPTS_PER_TURN_MAX;
use shearwater_io::{AcceptError, CloseKind, Driver, ListenerId};

use super::harness::{Harness, PeerId, Setup};
use super::world::{Note, World, plain};

/// Returns a world whose driver has an inbox and `listeners` listeners of its own.
fn world<H: Harness>(listeners: usize, inbox: usize, connections_max: usize) -> World<H> {
    World::with(Setup { listeners, inbox, connections_max, ..Setup::default() })
}

/// Hands over a batch, and wakes the driver once.
fn hand_over<H: Harness>(world: &mut World<H>, count: usize, listener: ListenerId) -> Vec<PeerId> {
    let peers = (0..count).map(|_| world.harness.hand_over(listener).expect("the queue has room")).collect();
    world.harness.wake_inbox();
    peers
}

fn is_accepted(note: &Note) -> bool {
    matches!(note, Note::Accepted(_))
}

fn is_full_so_often<H: Harness>(world: &World<H>, times: usize) -> bool {
    world.count(|note| matches!(note, Note::AcceptFailed(_))) == times
}

pub(crate) fn a5_who_is_handed_over_is_served<H: Harness>() {
    let mut world = world::<H>(1, 10, 4096);
    let (_, first) = world.connect();
    assert_eq!(world.page(first).listener, 0);
    let handed = hand_over(&mut world, 10, 7);
    for peer in &handed {
        world.harness.write(*peer, b"question");
    }
    world.until("all are accepted and heard", |world| {
        world.accepted.len() == 11
            && world.accepted[1..].iter().all(|token| world.page(*token).received == b"question")
    });
    for (index, peer) in handed.into_iter().enumerate() {
        let token = world.accepted[index + 1];
        assert_eq!(world.page(token).listener, 7);
        let address = world.driver().peer(token).expect("the peer is there");
        assert_eq!(Some(address), world.harness.address(peer), "in order of arrival");
        world.send(token, plain(b"answer"));
        assert_eq!(world.peer_gets(peer, 6), b"answer");
        world.close_and_wait(token);
    }
    let (_, last) = world.connect();
    assert_eq!(world.page(last).listener, 0, "its own listener still accepts");
}

pub(crate) fn a5_a_full_inbox_refuses_and_a_paused_driver_takes_nothing<H: Harness>() {
    let mut world = world::<H>(1, 5, 4096);
    hand_over(&mut world, 5, 0);
    assert!(world.harness.hand_over(0).is_none(), "it is full");
    world.driver().accept_pause();
    world.idle();
    assert_eq!(world.accepted.len(), 0);
    world.driver().accept_resume();
    world.until("no new arrival is needed", |world| world.accepted.len() == 5);
    hand_over(&mut world, 5, 0);
    world.until("there is room again", |world| world.accepted.len() == 10);
}

pub(crate) fn a5_full_is_said_once_and_they_wait<H: Harness>() {
    let mut world = world::<H>(0, 10, 3);
    let peers = hand_over(&mut world, 5, 0);
    let failed = Note::AcceptFailed(AcceptError::ProcessDescriptors);
    world.until("the driver is full", |world| world.notes.contains(&failed));
    world.idle();
    assert_eq!((world.accepted.len(), world.count(|note| *note == failed)), (3, 1), "reported once");
    for token in world.accepted.clone() {
        world.close_and_wait(token);
    }
    world.idle();
    assert_eq!(world.accepted.len(), 3, "room alone doesn't resume");
    world.driver().accept_resume();
    world.until("those in the inbox get in", |world| world.accepted.len() == 5);
    for (index, peer) in peers.into_iter().enumerate().skip(3) {
        let token = world.accepted[index];
        world.send(token, plain(b"welcome"));
        assert_eq!(world.peer_gets(peer, 7), b"welcome");
    }
}

pub(crate) fn a5_who_would_wait_behind_a_full_driver_is_refused<H: Harness>() {
    let mut world = world::<H>(0, 10, 3);
    hand_over(&mut world, 4, 0);
    let failed = Note::AcceptFailed(AcceptError::ProcessDescriptors);
    world.until("the driver is full", |world| world.notes.contains(&failed));
    assert!(world.harness.hand_over(0).is_none(), "other workers may have room");
    world.driver().accept_resume();
    assert!(world.harness.hand_over(0).is_none(), "it is still full");
    world.until("it says so again", |world| world.count(|note| *note == failed) == 2);
    for token in world.accepted.clone() {
        world.close_and_wait(token);
    }
    world.driver().accept_resume();
    hand_over(&mut world, 2, 0);
    world.until("there is room again", |world| world.accepted.len() == 6);
}

pub(crate) fn a5_room_between_a_resume_and_the_next_look_holds_nobody_up<H: Harness>() {
    for closes_first in [false, true] {
        let mut world = world::<H>(0, 10, 3);
        hand_over(&mut world, 4, 0);
        world.until("the driver is full", |world| is_full_so_often(world, 1));
        // It is still full when it resumes, and has room at the check, unless that comes first.
        if !closes_first {
            world.driver().accept_resume();
        }
        for index in 0..2 {
            let token = world.accepted[index];
            world.close(token, CloseKind::Normal);
        }
        if closes_first {
            world.driver().accept_resume();
        }
        world.until("it looks", |world| world.accepted.len() == 4 || is_full_so_often(world, 2));
        world.driver().accept_resume();
        world.until("the fourth gets in", |world| world.accepted.len() == 4);
        world.idle();
        hand_over(&mut world, 1, 0);
        world.until("there is room for the fifth", |world| world.accepted.len() == 5);
    }
}

pub(crate) fn a5_stop_waits_for_the_sender<H: Harness>() {
    for listeners in [0, 1] {
        let mut world = world::<H>(listeners, 500, 4096);
        let stopped = |world: &World<H>| world.notes.contains(&Note::AcceptStopped);
        hand_over(&mut world, ACCEPTS_PER_TURN_MAX + 20, 0);
        world.driver().accept_stop();
        world.idle();
        assert!(!stopped(&world), "more may come from the acceptor");
        hand_over(&mut world, 5, 0);
        world.harness.end_inbox();
        world.until("accepting has stopped", |world| stopped(world));
        assert_eq!(world.accepted.len(), ACCEPTS_PER_TURN_MAX + 25, "no connection is lost");
        assert_eq!(world.notes.last(), Some(&Note::AcceptStopped));
        world.idle();
        assert_eq!(world.count(|note| *note == Note::AcceptStopped), 1);
    }
}

pub(crate) fn a5_a_turn_takes_a_bounded_number<H: Harness>() {
    let mut world = world::<H>(0, 500, 4096);
    hand_over(&mut world, 3 * ACCEPTS_PER_TURN_MAX, 0);
    world.until("all are accepted", |world| {
        let before = world.count(is_accepted);
        world.turn(5);
        let accepted = world.count(is_accepted) - before;
        assert!(accepted <= ACCEPTS_PER_TURN_MAX, "{accepted} in one turn");
        world.accepted.len() == 3 * ACCEPTS_PER_TURN_MAX
    });
}

pub(crate) fn a5_a_full_driver_loses_nobody_when_all_ends<H: Harness>() {
    let mut world = world::<H>(0, 10, 3);
    hand_over(&mut world, 5, 0);
    // The sender is gone already when the five are taken out.
    world.harness.end_inbox();
    let failed = Note::AcceptFailed(AcceptError::ProcessDescriptors);
    world.until("the driver is full", |world| world.notes.contains(&failed));
    world.driver().accept_stop();
    world.idle();
    assert!(!world.notes.contains(&Note::AcceptStopped), "two are queued");
    for token in world.accepted.clone() {
        world.close_and_wait(token);
    }
    world.driver().accept_resume();
    world.until("accepting has stopped", |world| world.notes.contains(&Note::AcceptStopped));
    assert_eq!(world.accepted.len(), 5, "no connection is lost");
}
