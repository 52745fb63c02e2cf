//! Clauses S: outputs are sent whole, in order, and returned.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use shearwater_io::limits::SEND_BYTES_PER_TURN_MAX;
use shearwater_io::{CloseKind, Driver, Item, Output, Shared, Token};

use super::world::{Ended, Note, SentAs, World, block_item, file_of, mixed, pattern, plain, with_file};
use super::{Harness, PeerState};

pub(crate) fn s1_an_output_comes_back_untouched<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    for pieces in [1, 2, 3] {
        let (output, wanted) = mixed(pieces);
        world.send(token, output);
        assert!(world.peer_gets(peer, wanted.len()) == wanted);
        // The same output must return: checked at its return.
        world.until("it comes back", |world| !world.is_sending(token));
        assert_eq!(world.page(token).sent.last(), Some(&SentAs::Whole));
    }
    assert_eq!(world.page(token).sent.len(), 3);
}

pub(crate) fn s1_an_empty_output_comes_back_as_sent<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.send(token, Output::new());
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.page(token).sent, [SentAs::Whole]);
    world.send(token, plain(b"not empty"));
    assert_eq!(world.peer_gets(peer, 9), b"not empty");
}

pub(crate) fn s1_an_output_comes_back_from_a_broken_connection<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.reset(peer);
    world.until("it is broken", |world| world.page(token).ended == Some(Ended::Broken));
    let (output, _) = mixed(3);
    world.send(token, output);
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.page(token).sent, [SentAs::Broken]);
    world.close_and_wait(token);

    // Also with a reset while the send waits.
    let (peer, token) = world.connect();
    world.harness.narrow(peer);
    let (output, _) = mixed(80);
    world.send(token, output);
    world.idle();
    assert!(world.is_sending(token), "8 MB don't fit unread");
    world.harness.reset(peer);
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.page(token).sent, [SentAs::Broken]);
    world.until("receiving ends too", |world| world.page(token).ended == Some(Ended::Broken));
}

/// Sends that end as they begin, all before the first report; some are closed meanwhile (C2).
pub(crate) fn s1_sends_begun_together_come_back_each<H: Harness>() {
    let mut world = World::<H>::new();
    let peers: Vec<_> = (0..6).map(|_| world.connect()).collect();
    let file = file_of(&pattern(3000, 3));
    let wanted = |number: usize| [vec![b'a'; number + 1], pattern(3000, 3)].concat();
    for (number, (_, token)) in peers.iter().enumerate() {
        world.send(*token, with_file(&vec![b'a'; number + 1], &file, 0, 3000));
        if number % 3 == 1 {
            world.close(*token, CloseKind::Normal);
        }
    }
    world.until("all come back", |world| peers.iter().all(|(_, token)| !world.is_sending(*token)));
    for (number, (peer, token)) in peers.iter().enumerate() {
        if number % 3 == 1 {
            world.until("it is closed", |world| world.page(*token).closed);
        } else {
            assert_eq!(world.page(*token).sent, [SentAs::Whole]);
            assert!(world.peer_gets(*peer, number + 1 + 3000) == wanted(number));
        }
    }
}

pub(crate) fn s1_releases_a_shared_block<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let block: Rc<Arc<[u8]>> = Rc::new(pattern(300_000, 11).into());
    let mut output = plain(b"head");
    output.push(Item::Shared(Shared::Block(Rc::clone(&block))));
    world.send(token, output);
    world.peer_gets(peer, 300_004);
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(Rc::strong_count(&block), 2, "ours and the output's");
    world.send(token, Output::new());
    world.until("that comes back", |world| !world.is_sending(token));
    assert_eq!(Rc::strong_count(&block), 1, "the driver has kept none");
}

pub(crate) fn s2_a_second_send_is_refused<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.narrow(peer);
    let (output, _) = mixed(80);
    world.send(token, output);
    let second = catch_unwind(AssertUnwindSafe(|| world.driver().send(token, plain(b"too early"))));
    assert!(second.is_err(), "drivers assert it");
}

pub(crate) fn s3_partial_sends_resume_in_order<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let (output, wanted) = mixed(75);
    assert!(wanted.len() > 8_000_000);
    world.send(token, output);
    let mut got = Vec::new();
    let mut turns = 0;
    while got.len() < wanted.len() {
        // A reader that takes a different amount each time.
        world.harness.read(peer, 10_000 + turns * 7919 % 190_000, &mut got);
        world.turn(2);
        turns += 1;
        assert!(turns < 50_000, "{} of {} bytes", got.len(), wanted.len());
    }
    assert!(got == wanted);
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.page(token).sent, [SentAs::Whole]);
}

pub(crate) fn s3_a_gathered_output_is_in_order<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let mut output = Output::new();
    let mut wanted = Vec::new();
    for number in 0..200_u64 {
        let head = format!("<{number}>");
        output.bytes_mut().extend_from_slice(head.as_bytes());
        wanted.extend_from_slice(head.as_bytes());
        let block = pattern(number as usize % 37, number);
        output.push(block_item(&block));
        wanted.extend_from_slice(&block);
    }
    world.send(token, output);
    assert_eq!(world.peer_gets(peer, wanted.len()), wanted);
}

pub(crate) fn s5_a_file_is_sent_in_shares<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let contents = pattern(6_000_000, 12);
    let output = with_file(b"", &file_of(&contents), 0, contents.len() as u64);
    let mut before = 0;
    let mut got = Vec::new();
    world.send(token, output);
    let mut turns = 0;
    while world.is_sending(token) {
        let progress = world.driver().send_progress(token);
        assert!(progress - before <= SEND_BYTES_PER_TURN_MAX, "{before} to {progress} in one turn");
        before = progress;
        world.harness.read(peer, usize::MAX, &mut got);
        world.turn(5);
        turns += 1;
        assert!(turns < 50_000, "{progress} bytes sent");
    }
    assert!(turns as u64 >= contents.len() as u64 / SEND_BYTES_PER_TURN_MAX);
    let left = contents.len() - got.len();
    got.extend(world.peer_gets(peer, left));
    assert!(got == contents);
}

pub(crate) fn s5_reports_a_short_file<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let mut output = with_file(b"head", &file_of(&pattern(1000, 13)), 400, 1000);
    output.bytes_mut().extend_from_slice(b"never sent");
    world.send(token, output);
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.page(token).sent, [SentAs::FileShort]);
    world.close_and_wait(token);
    let (_, got) = world.peer_ends(peer);
    assert_eq!(got, [b"head", &pattern(1000, 13)[400..]].concat());
}

pub(crate) fn s5_files_sent_one_after_the_other_share_the_turn<H: Harness>() {
    // More than one turn's share, so that the rest of one and the start of the next share a turn.
    const FILE: u64 = 600_000;
    let (mut world, peer, token) = World::<H>::connected();
    let file = file_of(&pattern(FILE as usize, 14));
    let one = || with_file(b"", &file, 0, FILE);
    let mut sent = 0;
    let mut got = Vec::new();
    world.send(token, one());
    let mut before = world.driver().send_progress(token);
    for _ in 0..200 {
        world.wait(1);
        while let Some(note) = world.step() {
            if matches!(note, Note::Sent(..)) {
                sent += FILE;
                world.send(token, one());
            }
        }
        let taken = sent + world.driver().send_progress(token);
        assert!(taken - before <= SEND_BYTES_PER_TURN_MAX, "{} in one turn", taken - before);
        before = taken;
        world.harness.read(peer, usize::MAX, &mut got);
    }
    assert!(sent > FILE, "the send progresses");
}

pub(crate) fn s6_progress_never_goes_back<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    assert_eq!(world.driver().send_progress(token), 0);
    let (output, wanted) = mixed(20);
    world.send(token, output);
    let mut got = Vec::new();
    let mut before = 0;
    while got.len() < wanted.len() {
        let read_before = got.len() as u64;
        if world.is_sending(token) {
            let progress = world.driver().send_progress(token);
            assert!(
                progress >= before && progress >= read_before,
                "{before}, then {progress}; read {read_before}"
            );
            assert!(progress <= wanted.len() as u64);
            before = progress;
        }
        world.harness.read(peer, 50_000, &mut got);
        world.turn(1);
    }
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.driver().send_progress(token), 0);
    assert!(before > 0, "the reader had data");
}

pub(crate) fn s6_a_failed_send_reports_its_bytes<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.narrow(peer);
    let (output, wanted) = mixed(80);
    world.send(token, output);
    world.idle();
    let progress = world.driver().send_progress(token);
    assert!(progress > 0 && progress < wanted.len() as u64, "{progress}");
    world.harness.reset(peer);
    world.until("it comes back", |world| !world.is_sending(token));
    assert!(
        world.page(token).failed_after >= progress,
        "{} after {progress}",
        world.page(token).failed_after
    );
}

pub(crate) fn s7_a_send_done_at_once_has_no_event<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    for round in 0..40 {
        let response = pattern(1 + round * 37, 1);
        let at_once = world.send_at_once(token, &mut plain(&response));
        if at_once {
            // Nothing is in flight: the next may follow in the same turn.
            assert_eq!(world.driver().send_progress(token), 0);
            world.send(token, plain(b"and more"));
        }
        let more: &[u8] = if at_once { b"and more" } else { b"" };
        assert!(world.peer_gets(peer, response.len() + more.len()) == [&response[..], more].concat());
        world.until("what is in flight comes back", |world| !world.is_sending(token));
    }
    world.close_and_wait(token);
}

pub(crate) fn s7_unawaited_sends_arrive<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    // Also without other events, and if the socket takes only a part.
    for len in [1, 6, 60_000, 70_000, 3_000_000] {
        let response = pattern(len, len as u64);
        world.send_for(token, &mut plain(&response), false);
        assert!(world.peer_gets(peer, len) == response);
        world.until("none is in flight", |world| !world.is_sending(token));
    }
    world.close_and_wait(token);
}

/// Sends that count as done at first, one a turn, until the peer's buffers are full: returns all bytes.
pub(super) fn fill<H: Harness>(world: &mut World<H>, token: Token) -> Vec<u8> {
    const LEN: usize = 30_000;
    let mut sent = Vec::new();
    while !world.is_sending(token) {
        let response = pattern(LEN, sent.len() as u64);
        let mut output = plain(&response[..LEN / 2]);
        output.push(block_item(&response[LEN / 2..]));
        world.send_for(token, &mut output, false);
        sent.extend_from_slice(&response);
        // What is unsent is reported in this turn.
        world.turn(1);
        assert!(sent.len() < 100_000_000, "no buffer is as large");
    }
    sent
}

pub(crate) fn s7_what_a_full_socket_left_arrives<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.narrow(peer);
    let sent = fill(&mut world, token);
    assert!(world.peer_gets(peer, sent.len()) == sent);
    world.until("it comes back", |world| !world.is_sending(token));
    world.assert_taken(sent.len() as u64);
    world.close_and_wait(token);
}

/// Several sends in a turn, before the driver knows how the first one has ended.
pub(crate) fn s7_sends_after_one_done_at_once_are_in_order<H: Harness>() {
    const LEN: usize = 20_000;
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.narrow(peer);
    let (mut wanted, mut got) = (Vec::new(), Vec::new());
    for round in 0..400 {
        while !world.is_sending(token) && wanted.len() < got.len() + 8 * LEN {
            let response = pattern(LEN, wanted.len() as u64);
            world.send_for(token, &mut plain(&response), round % 3 == 0);
            wanted.extend_from_slice(&response);
        }
        // A reader that is often behind.
        if round % 8 > 3 {
            world.harness.read(peer, LEN * (round % 5), &mut got);
        }
        world.turn(1);
    }
    let left = wanted.len() - got.len();
    got.extend(world.peer_gets(peer, left));
    assert!(got == wanted);
    world.until("none is in flight", |world| !world.is_sending(token));
    world.assert_taken(wanted.len() as u64);
}

/// The end of the peer's side right after a send that counts as done, although the buffers are full.
pub(crate) fn s7_the_end_follows_what_was_sent<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.narrow(peer);
    let mut sent = fill(&mut world, token);
    let mut got = Vec::new();
    world.until("it comes back", |world| {
        world.harness.read(peer, 5000, &mut got);
        !world.is_sending(token)
    });
    world.harness.write(peer, b"question");
    world.harness.shutdown(peer);
    let response = pattern(60_000, 2);
    let mut has_sent = false;
    while !has_sent {
        world.wait(5);
        while let Some(note) = world.step() {
            if matches!(note, Note::Received(..)) {
                world.send_for(token, &mut plain(&response), false);
                has_sent = true;
            }
        }
    }
    // An end before an `Unsent` would be noticed.
    world.until("it has ended", |world| world.page(token).ended.is_some());
    sent.extend_from_slice(&response);
    let left = sent.len() - got.len();
    got.extend(world.peer_gets(peer, left));
    assert!(got == sent);
    world.until("none is in flight", |world| !world.is_sending(token));
    world.close_and_wait(token);
    assert_eq!(world.peer_ends(peer), (PeerState::Eof, Vec::new()));
}

pub(crate) fn s7_sends_not_done_at_once_come_back<H: Harness>() {
    // More than any socket takes, a file, and a connection that is broken.
    let (mut world, peer, token) = World::<H>::connected();
    let response = pattern(20_000_000, 2);
    assert!(!world.send_at_once(token, &mut plain(&response)));
    assert!(world.peer_gets(peer, response.len()) == response);
    world.until("it comes back", |world| !world.is_sending(token));
    let (mut output, contents) = mixed(3);
    let at_once = world.send_at_once(token, &mut output);
    assert!(world.peer_gets(peer, contents.len()) == contents);
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.page(token).sent.len(), if at_once { 1 } else { 2 });
    world.harness.reset(peer);
    world.until("it is broken", |world| world.page(token).ended == Some(Ended::Broken));
    assert!(!world.send_at_once(token, &mut plain(b"to nobody")));
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.page(token).sent.last(), Some(&SentAs::Broken));
}

pub(crate) fn s8_shows_acknowledged_bytes_before_there_is_room<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    // Of a secured connection it counts the bytes of records: X4 compares these with their own sum.
    let Some(owed) = world.driver().unacknowledged(token).filter(|_| !H::secures()) else { return };
    assert_eq!(owed, 0, "nothing was sent");
    let response = pattern(20_000_000, 8);
    world.send(token, plain(&response));
    for _ in 0..100 {
        world.turn(5);
    }
    // The socket is full: from here on the peer's reads show in `owed`, whether or not the send continues.
    let (mut sent, mut owed) = taken(&mut world, token);
    assert!(owed > 0 && owed <= sent, "{owed} of {sent}");
    let mut got = Vec::new();
    let mut seen_before_room = 0;
    while got.len() < response.len() {
        world.harness.read(peer, 20_000, &mut got);
        world.turn(1);
        let (sent_now, owed_now) = taken(&mut world, token);
        assert!(sent_now - owed_now >= sent - owed, "the peer has what it acknowledged");
        seen_before_room += usize::from(sent_now == sent && owed_now < owed);
        (sent, owed) = (sent_now, owed_now);
    }
    assert!(got == response);
    assert!(seen_before_room > 0, "at least its end");
    world.until("it comes back", |world| !world.is_sending(token));
    world.until("all is acknowledged", |world| world.driver().unacknowledged(token) == Some(0));
    world.close_and_wait(token);
    // A closed connection has none.
    assert_eq!(world.driver().unacknowledged(token), None);
}

pub(crate) fn s11_counts_all_bytes_taken<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let mut expected = 0;
    for round in 0..20_u64 {
        // Bytes in memory, then ranges of files.
        let bytes = pattern(1 + 300 * round as usize, 1);
        world.send_at_once(token, &mut plain(&bytes));
        world.peer_gets(peer, bytes.len());
        world.until("it comes back", |world| !world.is_sending(token));
        let (output, contents) = mixed(round);
        world.send(token, output);
        world.peer_gets(peer, contents.len());
        world.until("it comes back", |world| !world.is_sending(token));
        expected += (bytes.len() + contents.len()) as u64;
        world.assert_taken(expected);
    }
    world.send(token, with_file(b"head", &file_of(&pattern(1000, 13)), 400, 1000));
    world.until("it comes back", |world| !world.is_sending(token));
    expected += 604;
    world.assert_taken(expected);

    // Sends in flight that a close cancels or the peer breaks.
    for is_broken in [false, true] {
        let (peer, token) = world.connect();
        world.harness.narrow(peer);
        let (output, _) = mixed(80);
        world.send(token, output);
        world.idle();
        let progress = world.driver().send_progress(token);
        assert!(progress > 0 && world.is_sending(token), "8 MB don't fit unread");
        expected += progress;
        world.assert_taken(expected);
        match is_broken {
            true => world.harness.reset(peer),
            false => world.close(token, CloseKind::Normal),
        }
        world.until("it comes back", |world| !world.is_sending(token));
        // The socket may have accepted more meanwhile.
        let taken = world.driver().bytes_taken();
        assert!(taken >= expected, "{taken}, {expected} before the end");
        expected = taken;
    }
}

/// Returns the bytes of a connection's only send that the kernel has accepted, and those not read by the
/// peer.
fn taken<H: Harness>(world: &mut World<H>, token: Token) -> (u64, u64) {
    let in_flight = world.driver().send_progress(token);
    let sent = if world.is_sending(token) { in_flight } else { world.page(token).output.len() };
    (sent, world.driver().unacknowledged(token).expect("it was reported before"))
}
