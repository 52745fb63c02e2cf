//! Clauses A: connections are accepted, held back, handed over by an acceptor, and the listeners closed.

use shearwater_io::limits::ACCEPTS_PER_TURN_MAX;
use shearwater_io::{AcceptError, CloseKind, Driver, ListenerId};

use super::world::{Note, World, plain};
use super::{Harness, PeerId, Setup};

fn is_accepted(note: &Note) -> bool {
    matches!(note, Note::Accepted(_))
}

pub(crate) fn a1_accepted_once_and_first<H: Harness>() {
    let mut world = World::<H>::new();
    let peers: Vec<_> = (0..10).map(|_| world.harness.connect(0)).collect();
    for peer in &peers {
        world.harness.write(*peer, b"early");
    }
    // Every event checks that nothing of a token precedes its Accepted.
    world.until("all are accepted and heard", |world| {
        world.accepted.len() == 10
            && world.accepted.iter().all(|token| world.page(*token).received == b"early")
    });
    world.idle();
    assert_eq!(world.count(is_accepted), 10);
}

pub(crate) fn a1_reports_listener_and_peer<H: Harness>() {
    let mut world = World::<H>::with(Setup { listeners: 3, ..Setup::default() });
    for listener in [2, 0, 1, 2] {
        let peer = world.harness.connect(listener);
        let before = world.accepted.len();
        world.until("it is accepted", |world| world.accepted.len() > before);
        let token = world.accepted[before];
        assert_eq!(usize::from(world.page(token).listener), listener);
        let address = world.driver().peer(token).expect("the peer is there");
        assert_eq!(Some(address), world.harness.address(peer));
    }
}

pub(crate) fn a2_reports_full_once<H: Harness>() {
    let mut world = World::<H>::with(Setup { connections_max: 3, ..Setup::default() });
    for _ in 0..5 {
        world.harness.connect(0);
    }
    let failed = Note::AcceptFailed(AcceptError::ProcessDescriptors);
    world.until("the driver is full", |world| world.notes.contains(&failed));
    world.idle();
    assert_eq!(world.accepted.len(), 3);
    assert_eq!(world.count(|note| matches!(note, Note::AcceptFailed(_))), 1, "reported once");
}

pub(crate) fn a2_reports_full_only_if_a_connection_waits<H: Harness>() {
    let mut world = World::<H>::with(Setup { connections_max: 3, ..Setup::default() });
    for _ in 0..3 {
        world.connect();
    }
    world.idle();
    let is_failed = |note: &Note| matches!(note, Note::AcceptFailed(_));
    assert_eq!(world.count(is_failed), 0);
    world.harness.connect(0);
    world.until("it says so", |world| world.count(is_failed) == 1);
    assert_eq!(world.accepted.len(), 3);
}

pub(crate) fn a2_the_last_slot_goes_to_a_busy_listener<H: Harness>() {
    for busy in 0..3 {
        let mut world = World::<H>::with(Setup { listeners: 3, connections_max: 1, ..Setup::default() });
        world.idle();
        world.harness.connect(busy);
        world.until("it is accepted", |world| world.accepted.len() == 1);
    }
}

pub(crate) fn a2_the_queue_waits_until_there_is_room<H: Harness>() {
    let mut world = World::<H>::with(Setup { connections_max: 3, ..Setup::default() });
    let peers: Vec<_> = (0..5).map(|_| world.harness.connect(0)).collect();
    world.until("the driver is full", |world| world.count(|note| matches!(note, Note::AcceptFailed(_))) == 1);
    for token in world.accepted.clone() {
        world.close_and_wait(token);
    }
    world.idle();
    assert_eq!(world.accepted.len(), 3, "room alone doesn't resume");
    world.driver().accept_resume();
    world.until("those in the queue get in", |world| world.accepted.len() == 5);
    for index in 3..5 {
        let token = world.accepted[index];
        world.send(token, plain(b"welcome"));
    }
    for peer in &peers[3..] {
        assert_eq!(world.peer_gets(*peer, 7), b"welcome");
    }
}

pub(crate) fn a3_paused_accepts_none<H: Harness>() {
    let mut world = World::<H>::new();
    world.driver().accept_pause();
    let peers: Vec<_> = (0..5).map(|_| world.harness.connect(0)).collect();
    world.idle();
    assert!(world.accepted.len() <= ACCEPTS_PER_TURN_MAX, "connections taken from the kernel before");
    let early = world.accepted.len();
    world.idle();
    assert_eq!(world.accepted.len(), early, "no connection after them");
    world.driver().accept_resume();
    world.until("no new arrival is needed", |world| world.accepted.len() == peers.len());
}

pub(crate) fn a3_a_turn_accepts_a_bounded_number<H: Harness>() {
    let mut world = World::<H>::new();
    for _ in 0..3 * ACCEPTS_PER_TURN_MAX {
        world.harness.connect(0);
    }
    world.until("all are accepted", |world| {
        let before = world.count(is_accepted);
        world.turn(5);
        let accepted = world.count(is_accepted) - before;
        assert!(accepted <= ACCEPTS_PER_TURN_MAX, "{accepted} in one turn");
        world.accepted.len() == 3 * ACCEPTS_PER_TURN_MAX
    });
}

pub(crate) fn a3_each_listener_has_its_share_of_a_turn<H: Harness>() {
    let mut world = World::<H>::with(Setup { listeners: 2, ..Setup::default() });
    for number in 0..4 * ACCEPTS_PER_TURN_MAX {
        world.harness.connect(number / (3 * ACCEPTS_PER_TURN_MAX));
    }
    let of = |world: &World<H>, listener| {
        world.accepted.iter().filter(|token| world.page(**token).listener == listener).count()
    };
    let mut met_both = false;
    world.until("all are accepted", |world| {
        let before = [of(world, 0), of(world, 1)];
        world.turn(5);
        let taken = [of(world, 0) - before[0], of(world, 1) - before[1]];
        assert!(taken.iter().all(|taken| *taken <= ACCEPTS_PER_TURN_MAX), "{taken:?} in one turn");
        met_both |= taken.iter().all(|taken| *taken > 0);
        world.accepted.len() == 4 * ACCEPTS_PER_TURN_MAX
    });
    assert!(met_both, "a busy listener doesn't starve the other");
}

pub(crate) fn a4_stop_empties_the_queue_then_closes<H: Harness>() {
    let mut world = World::<H>::with(Setup { listeners: 2, ..Setup::default() });
    let queued = ACCEPTS_PER_TURN_MAX + 20;
    for number in 0..queued {
        world.harness.connect(number % 2);
    }
    world.driver().accept_stop();
    world.until("accepting has stopped", |world| world.notes.contains(&Note::AcceptStopped));
    assert_eq!(world.accepted.len(), queued, "the queue comes first");
    let stopped = world.notes.iter().position(|note| *note == Note::AcceptStopped);
    assert!(stopped > world.notes.iter().rposition(|note| matches!(note, Note::Accepted(_))));
    assert!(world.harness.refused(0) && world.harness.refused(1));
    world.driver().accept_stop();
    world.driver().accept_resume();
    world.idle();
    assert_eq!(world.count(|note| *note == Note::AcceptStopped), 1);
}

pub(crate) fn a4_stop_takes_what_came_after_the_wait<H: Harness>() {
    let mut world = World::<H>::new();
    world.wait(0);
    for _ in 0..5 {
        world.harness.connect(0);
    }
    world.driver().accept_stop();
    world.rest_of_turn();
    world.until("accepting has stopped", |world| world.notes.contains(&Note::AcceptStopped));
    assert_eq!(world.accepted.len(), 5, "the queue comes first");
}

pub(crate) fn a4_stop_of_an_empty_queue<H: Harness>() {
    let mut world = World::<H>::new();
    world.driver().accept_pause();
    world.turn(1);
    world.driver().accept_stop();
    world.until("accepting has stopped", |world| world.notes.contains(&Note::AcceptStopped));
    assert!(world.accepted.is_empty());
    assert!(world.harness.refused(0));
}

pub(crate) fn a4_connections_outlive_the_listener<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.driver().accept_stop();
    world.until("accepting has stopped", |world| world.notes.contains(&Note::AcceptStopped));
    world.harness.write(peer, b"question");
    world.until("it is heard", |world| world.page(token).received == b"question");
    world.send(token, plain(b"answer"));
    assert_eq!(world.peer_gets(peer, 6), b"answer");
}

fn is_listener_failed(note: &Note) -> bool {
    matches!(note, Note::ListenerFailed(..))
}

pub(crate) fn a6_a_failed_listener_is_reported_once<H: Harness>() {
    let mut world = World::<H>::with(Setup { listeners: 3, shares_listeners: true, ..Setup::default() });
    let (_, before) = world.connect();
    let errno = world.harness.fail_listener(1);
    world.until("it is told", |world| world.count(is_listener_failed) == 1);
    assert!(world.notes.contains(&Note::ListenerFailed(1, errno)));
    for listener in [0, 2] {
        let accepted = world.accepted.len();
        world.harness.connect(listener);
        world.until("the others accept", |world| world.accepted.len() > accepted);
    }
    world.driver().accept_pause();
    world.idle();
    world.driver().accept_resume();
    world.idle();
    assert_eq!(world.count(is_listener_failed), 1, "reported once");
    world.close_and_wait(before);
}

pub(crate) fn a6_stop_does_not_wait_for_a_failed_listener<H: Harness>() {
    let mut world = World::<H>::with(Setup { listeners: 2, shares_listeners: true, ..Setup::default() });
    world.idle();
    world.harness.fail_listener(0);
    world.harness.connect(1);
    world.driver().accept_stop();
    world.until("accepting has stopped", |world| world.notes.contains(&Note::AcceptStopped));
    assert_eq!((world.count(is_listener_failed), world.accepted.len()), (1, 1));
}

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

fn is_full_so_often<H: Harness>(world: &World<H>, times: usize) -> bool {
    world.count(|note| matches!(note, Note::AcceptFailed(_))) == times
}

pub(crate) fn a5_serves_handed_over_connections<H: Harness>() {
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

pub(crate) fn a5_reports_full_once_and_keeps_the_others<H: Harness>() {
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

pub(crate) fn a5_a_full_driver_refuses_connections_that_would_wait<H: Harness>() {
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

pub(crate) fn a5_room_between_a_resume_and_the_next_check_blocks_nothing<H: Harness>() {
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

pub(crate) fn a5_stop_of_a_full_driver_loses_no_connection<H: Harness>() {
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
