//! Clauses A7 and A8: listeners are added to and removed from a driver that is at work.

use shearwater_io::limits::ACCEPTS_PER_TURN_MAX;
use shearwater_io::{AcceptError, Driver, ListenerId};

use super::world::{Note, World, plain};
use super::{Harness, Setup};

fn id(index: usize) -> ListenerId {
    ListenerId::try_from(index).expect("a few listeners")
}

fn remove<H: Harness>(world: &mut World<H>, index: usize) {
    assert!(world.driver().listener_remove(id(index)), "there is one");
}

fn is_removed<H: Harness>(world: &World<H>, index: usize) -> bool {
    world.notes.contains(&Note::ListenerRemoved(id(index)))
}

/// Connects to a listener and takes turns until that is accepted there.
fn connect<H: Harness>(world: &mut World<H>, listener: usize) {
    let before = world.accepted.len();
    world.harness.connect(listener);
    world.until("it is accepted", |world| world.accepted.len() > before);
    assert_eq!(usize::from(world.page(world.accepted[before]).listener), listener);
}

pub(crate) fn a7_a_listener_that_is_added_accepts<H: Harness>() {
    for listeners in [0, 1] {
        let mut world = World::<H>::with(Setup { listeners, ..Setup::default() });
        world.idle();
        let added = world.harness.add_listener();
        connect(&mut world, added);
        // What came before the next wait, too.
        let another = world.harness.add_listener();
        let before = world.accepted.len();
        for _ in 0..ACCEPTS_PER_TURN_MAX + 5 {
            world.harness.connect(another);
        }
        world.until("all are accepted", |world| world.accepted.len() == before + ACCEPTS_PER_TURN_MAX + 5);
        connect(&mut world, added);
    }
}

pub(crate) fn a7_listeners_are_added_and_removed_often<H: Harness>() {
    let mut world = World::<H>::new();
    for _ in 0..50 {
        let added = world.harness.add_listener();
        connect(&mut world, added);
        connect(&mut world, 0);
        remove(&mut world, added);
        world.until("it is closed", |world| is_removed(world, added));
        assert!(world.harness.refused(added));
    }
    connect(&mut world, 0);
}

pub(crate) fn a7_a_paused_driver_takes_none_from_a_new_listener<H: Harness>() {
    let mut world = World::<H>::new();
    world.driver().accept_pause();
    let added = world.harness.add_listener();
    for _ in 0..5 {
        world.harness.connect(added);
    }
    world.idle();
    assert_eq!(world.accepted.len(), 0);
    world.driver().accept_resume();
    world.until("no new arrival is needed", |world| world.accepted.len() == 5);
}

pub(crate) fn a7_nothing_is_added_after_a_stop<H: Harness>() {
    let mut world = World::<H>::new();
    world.driver().accept_stop();
    world.until("accepting has stopped", |world| world.notes.contains(&Note::AcceptStopped));
    let added = world.harness.add_listener();
    assert!(world.harness.refused(added));
    assert!(!world.driver().listener_remove(id(added)));
    world.idle();
    assert_eq!(world.notes, [Note::AcceptStopped]);
}

pub(crate) fn a8_a_removed_listener_is_emptied_then_closed<H: Harness>() {
    let mut world = World::<H>::with(Setup { listeners: 2, ..Setup::default() });
    world.wait(0);
    let queued = 2 * ACCEPTS_PER_TURN_MAX + 5;
    let peers: Vec<_> = (0..queued).map(|_| world.harness.connect(1)).collect();
    remove(&mut world, 1);
    assert!(!world.driver().listener_remove(1), "once");
    assert!(!world.driver().listener_remove(7), "there is none");
    world.rest_of_turn();
    world.until("it is closed", |world| is_removed(world, 1));
    assert_eq!(world.accepted.len(), queued, "the queue comes first");
    assert_eq!(world.notes.last(), Some(&Note::ListenerRemoved(1)));
    assert!(world.harness.refused(1));
    for (token, peer) in world.accepted.clone().into_iter().zip(peers) {
        world.send(token, plain(b"welcome"));
        assert_eq!(world.peer_gets(peer, 7), b"welcome");
    }
    world.idle();
    assert_eq!(world.count(|note| matches!(note, Note::ListenerRemoved(_))), 1);
}

pub(crate) fn a8_the_others_keep_accepting<H: Harness>() {
    for removed in 0..3 {
        let mut world = World::<H>::with(Setup { listeners: 3, ..Setup::default() });
        world.idle();
        remove(&mut world, removed);
        world.until("it is closed", |world| is_removed(world, removed));
        for listener in (0..3).filter(|listener| *listener != removed) {
            connect(&mut world, listener);
        }
        world.driver().accept_stop();
        world.until("accepting has stopped", |world| world.notes.contains(&Note::AcceptStopped));
    }
}

pub(crate) fn a8_a_pause_holds_a_removal_up<H: Harness>() {
    let mut world = World::<H>::with(Setup { listeners: 2, ..Setup::default() });
    world.driver().accept_pause();
    for _ in 0..5 {
        world.harness.connect(1);
    }
    world.turn(1);
    remove(&mut world, 1);
    world.idle();
    assert!(!is_removed(&world, 1));
    world.driver().accept_resume();
    world.until("it is closed", |world| is_removed(world, 1));
    assert_eq!(world.accepted.len(), 5);
}

pub(crate) fn a8_a_full_driver_loses_no_connection_of_a_removed_listener<H: Harness>() {
    let mut world = World::<H>::with(Setup { connections_max: 3, ..Setup::default() });
    for _ in 0..5 {
        world.harness.connect(0);
    }
    let failed = Note::AcceptFailed(AcceptError::ProcessDescriptors);
    world.until("the driver is full", |world| world.notes.contains(&failed));
    remove(&mut world, 0);
    world.idle();
    assert!(!is_removed(&world, 0), "two are queued");
    for token in world.accepted.clone() {
        world.close_and_wait(token);
    }
    world.driver().accept_resume();
    world.until("it is closed", |world| is_removed(world, 0));
    assert_eq!(world.accepted.len(), 5, "no connection is lost");
}

pub(crate) fn a8_a_stop_takes_the_place_of_a_removal<H: Harness>() {
    let mut world = World::<H>::with(Setup { listeners: 2, ..Setup::default() });
    for number in 0..10 {
        world.harness.connect(number % 2);
    }
    remove(&mut world, 1);
    world.driver().accept_stop();
    world.until("accepting has stopped", |world| world.notes.contains(&Note::AcceptStopped));
    assert_eq!(world.accepted.len(), 10);
    assert!(world.harness.refused(0) && world.harness.refused(1));
    world.idle();
    assert!(!is_removed(&world, 1));
}

pub(crate) fn a8_a_failed_listener_is_removed<H: Harness>() {
    let mut world = World::<H>::with(Setup { listeners: 2, shares_listeners: true, ..Setup::default() });
    world.idle();
    let errno = world.harness.fail_listener(1);
    world.until("it is reported", |world| world.notes.contains(&Note::ListenerFailed(1, errno)));
    remove(&mut world, 1);
    world.until("it is closed", |world| is_removed(world, 1));
    connect(&mut world, 0);
}

pub(crate) fn a8_connections_outlive_a_removed_listener<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    remove(&mut world, 0);
    world.until("it is closed", |world| is_removed(world, 0));
    world.harness.write(peer, b"question");
    world.until("it is heard", |world| world.page(token).received == b"question");
    world.send(token, plain(b"answer"));
    assert_eq!(world.peer_gets(peer, 6), b"answer");
}
