//! Clauses R: lent bytes, pauses, and the end of the receiving side.

use shearwater_io::{Driver, Token};

use super::world::{Ended, Note, World, pattern, plain};
use super::{Harness, PeerState, Setup};

fn small_buffer<H: Harness>() -> World<H> {
    World::with(Setup { recv_buffer_bytes: 64, ..Setup::default() })
}

pub(crate) fn r1_receiving_is_armed_at_accept<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    for round in 1..=5 {
        world.harness.write(peer, b"again");
        world.until("it is heard", |world| world.page(token).received.len() == round * 5);
    }
    assert_eq!(world.page(token).received, b"again".repeat(5));
}

pub(crate) fn r2_bytes_arrive_whole_and_in_order<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let bytes = pattern(2_000_000, 3);
    world.peer_writes(peer, &bytes);
    world.until("all has arrived", |world| world.page(token).received.len() >= bytes.len());
    assert!(world.page(token).received == bytes);
}

pub(crate) fn r2_never_more_than_the_buffer<H: Harness>() {
    let mut world = small_buffer::<H>();
    let (peer, token) = world.connect();
    // Every length around the buffer's; every event checks the lent length.
    let mut wanted = Vec::new();
    for len in 1..200 {
        let bytes = pattern(len, len as u64);
        world.peer_writes(peer, &bytes);
        wanted.extend_from_slice(&bytes);
    }
    world.until("all has arrived", |world| world.page(token).received.len() == wanted.len());
    assert_eq!(world.page(token).received, wanted);
}

pub(crate) fn r3_pause_holds_and_resume_loses_nothing<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let bytes = pattern(300_000, 4);
    let mut written = 0;
    for _ in 0..3 {
        world.recv_pause(token);
        written += world.harness.write(peer, &bytes[written..]);
        world.idle(); // what comes while paused is measured with every event
        world.recv_resume(token);
        world.until("what was written arrives", |world| world.page(token).received.len() == written);
    }
    assert!(world.page(token).received == bytes[..written]);
    world.peer_writes(peer, &bytes[written..]);
    world.until("and so does the rest", |world| world.page(token).received.len() == bytes.len());
    assert!(world.page(token).received == bytes);
}

pub(crate) fn r3_pause_within_a_turn<H: Harness>() {
    let mut world = small_buffer::<H>();
    let (peer, token) = world.connect();
    let bytes = pattern(64 * 40, 5);
    world.peer_writes(peer, &bytes);
    let mut pauses = 0;
    while world.page(token).received.len() < bytes.len() {
        world.wait(50);
        while let Some(note) = world.step() {
            if matches!(note, Note::Received(..)) {
                world.recv_pause(token);
                pauses += 1;
            }
        }
        world.recv_resume(token);
        assert!(pauses < 100_000, "the input never ends");
    }
    assert_eq!(world.page(token).received, bytes);
}

pub(crate) fn r3_pausing_and_resuming_twice<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.recv_resume(token);
    world.recv_pause(token);
    world.recv_pause(token);
    world.harness.write(peer, b"held");
    world.idle();
    world.recv_resume(token);
    world.recv_resume(token);
    world.until("it is heard", |world| world.page(token).received == b"held");
    world.harness.write(peer, b" and more");
    world.until("and so is the rest", |world| world.page(token).received == b"held and more");
}

/// Takes turns until the peer's end is reported, and checks that it was FIN, after all of `bytes`.
fn ends_after<H: Harness>(world: &mut World<H>, token: Token, bytes: &[u8]) {
    world.until("the end is told", |world| world.page(token).ended.is_some());
    assert_eq!(world.page(token).ended, Some(Ended::Eof));
    assert_eq!(world.page(token).received, bytes);
    world.idle();
}

pub(crate) fn r4_data_and_fin_together<H: Harness>() {
    for len in [1, 5, 5000] {
        let (mut world, peer, token) = World::<H>::connected();
        let bytes = pattern(len, 6);
        assert_eq!(world.harness.write(peer, &bytes), len);
        world.harness.shutdown(peer);
        ends_after(&mut world, token, &bytes);
    }
}

pub(crate) fn r4_fin_behind_a_full_buffer<H: Harness>() {
    for len in [63, 64, 65, 128, 64 * 9] {
        let mut world = small_buffer::<H>();
        let (peer, token) = world.connect();
        let bytes = pattern(len, 7);
        assert_eq!(world.harness.write(peer, &bytes), len);
        world.harness.shutdown(peer);
        ends_after(&mut world, token, &bytes);
    }
}

pub(crate) fn r4_fin_between_wait_and_receive<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.write(peer, b"last words");
    world.wait(1000);
    world.harness.shutdown(peer);
    world.rest_of_turn();
    ends_after(&mut world, token, b"last words");
}

pub(crate) fn r4_fin_while_paused<H: Harness>() {
    for len in [0, 10] {
        let (mut world, peer, token) = World::<H>::connected();
        world.recv_pause(token);
        let bytes = pattern(len, 8);
        world.harness.write(peer, &bytes);
        world.harness.shutdown(peer);
        world.idle();
        world.recv_resume(token);
        ends_after(&mut world, token, &bytes);
    }
}

pub(crate) fn r4_fin_alone<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.write(peer, b"before");
    world.until("it is heard", |world| world.page(token).received == b"before");
    world.idle();
    world.harness.shutdown(peer);
    ends_after(&mut world, token, b"before");
}

pub(crate) fn r4_reset_with_unread_data<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.recv_pause(token);
    let bytes = pattern(10_000, 9);
    assert_eq!(world.harness.write(peer, &bytes), bytes.len());
    world.harness.reset(peer);
    world.idle();
    world.recv_resume(token);
    world.until("the end is told", |world| world.page(token).ended.is_some());
    assert_eq!(world.page(token).ended, Some(Ended::Broken));
    // A reset may destroy unread bytes, but corrupts none.
    assert!(bytes.starts_with(&world.page(token).received));
}

pub(crate) fn r4_reset_while_paused<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.recv_pause(token);
    world.harness.reset(peer);
    world.idle();
    world.recv_resume(token);
    world.until("the end is told", |world| world.page(token).ended == Some(Ended::Broken));
    world.close_and_wait(token);
    assert_eq!(world.driver().connections(), 0);
}

pub(crate) fn r5_a_half_closed_peer_gets_its_response<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.write(peer, b"question");
    world.harness.shutdown(peer);
    ends_after(&mut world, token, b"question");
    let response = pattern(500_000, 10);
    world.send(token, plain(&response));
    assert!(world.peer_gets(peer, response.len()) == response);
    world.until("it is sent", |world| !world.is_sending(token));
    world.close_and_wait(token);
    assert_eq!(world.peer_ends(peer), (PeerState::Eof, Vec::new()));
}

/// Returns whether the peer's FIN was reported, in either way.
fn has_shown_fin<H: Harness>(world: &World<H>, token: Token) -> bool {
    world.page(token).fin_received || world.page(token).ended == Some(Ended::Eof)
}

pub(crate) fn r6_a_fin_is_reported_while_paused<H: Harness>() {
    for len in [0, 1, 10, 100_000] {
        let (mut world, peer, token) = World::<H>::connected();
        world.recv_pause(token);
        let bytes = pattern(len, 11);
        assert_eq!(world.harness.write(peer, &bytes), len, "it fits the kernel's buffers");
        world.idle();
        assert!(!has_shown_fin(&world, token));
        world.harness.shutdown(peer);
        world.until("it shows", |world| has_shown_fin(world, token));
        world.idle();
        world.recv_resume(token);
        ends_after(&mut world, token, &bytes);
    }
}

pub(crate) fn r6_a_fin_before_the_pause_is_reported<H: Harness>() {
    for len in [1, 100_000] {
        let (mut world, peer, token) = World::<H>::connected();
        let bytes = pattern(len, 12);
        assert_eq!(world.harness.write(peer, &bytes), len, "it fits the kernel's buffers");
        world.harness.shutdown(peer);
        world.until("the first bytes are heard", |world| {
            world.wait(5);
            while let Some(note) = world.step() {
                if matches!(note, Note::Received(..)) {
                    world.recv_pause(token);
                    break;
                }
            }
            world.rest_of_turn();
            !world.page(token).received.is_empty()
        });
        world.until("the FIN shows", |world| has_shown_fin(world, token));
        world.recv_resume(token);
        ends_after(&mut world, token, &bytes);
    }
}

pub(crate) fn r6_a_reset_is_reported_while_paused<H: Harness>() {
    for len in [0, 1, 10_000] {
        let (mut world, peer, token) = World::<H>::connected();
        world.recv_pause(token);
        assert_eq!(world.harness.write(peer, &pattern(len, 13)), len);
        world.idle();
        world.harness.reset(peer);
        world.until("it is told", |world| world.page(token).ended == Some(Ended::Broken));
        world.idle();
        world.recv_resume(token);
        world.idle();
        world.close_and_wait(token);
    }
}

pub(crate) fn r6_a_fin_is_reported_once<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    for _ in 0..3 {
        world.recv_pause(token);
        world.harness.write(peer, b"x");
        world.idle();
        world.recv_resume(token);
        world.idle();
    }
    world.recv_pause(token);
    world.harness.write(peer, b"y");
    world.harness.shutdown(peer);
    world.until("it shows", |world| has_shown_fin(world, token));
    for _ in 0..3 {
        // Within a turn: nothing is received in between. Every event checks that it is reported once.
        world.recv_resume(token);
        world.recv_pause(token);
        world.idle();
    }
    world.recv_resume(token);
    ends_after(&mut world, token, b"xxxy");
}

pub(crate) fn r6_closing_a_paused_connection_ends_it<H: Harness>() {
    for len in [0, 10] {
        let (mut world, peer, token) = World::<H>::connected();
        world.recv_pause(token);
        world.harness.write(peer, &pattern(len, 14));
        world.idle();
        world.close_and_wait(token);
        assert_ne!(world.peer_ends(peer).0, PeerState::Open);
    }
}

pub(crate) fn r7_more_than_a_turn_reads_is_read_later<H: Harness>() {
    let mut world = small_buffer::<H>();
    let (peer, token) = world.connect();
    world.idle();
    assert!(!world.driver().reads_later(token), "nothing has arrived");
    let content = pattern(64 * 40, 8);
    world.peer_writes(peer, &content);
    world.until("it has had its share of a turn", |world| world.driver().reads_later(token));
    assert!(world.page(token).received.len() < content.len());
    world.until("all is read", |world| world.page(token).received.len() == content.len());
    world.idle();
    assert!(!world.driver().reads_later(token));
}
