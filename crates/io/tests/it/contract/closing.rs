//! Clauses C and K: closing, resetting, detaching; slots are reused only under another generation.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

use shearwater_io::{CloseKind, Driver, Token};

use super::world::{Ended, Note, SentAs, World, mixed, pattern, plain};
use super::{Harness, PeerState};

pub(crate) fn c1_fin_follows_what_was_sent<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let response = pattern(100_000, 15);
    world.send(token, plain(&response));
    let mut got = Vec::new();
    world.until("it is sent", |world| {
        world.harness.read(peer, usize::MAX, &mut got);
        !world.is_sending(token)
    });
    world.driver().shutdown_write(token);
    let (state, rest) = world.peer_ends(peer);
    got.extend(rest);
    assert_eq!(state, PeerState::Eof);
    assert!(got == response);
    world.harness.write(peer, b"receiving goes on");
    world.until("it is heard", |world| world.page(token).received == b"receiving goes on");
    world.harness.shutdown(peer);
    world.until("and so is the end", |world| world.page(token).ended == Some(Ended::Eof));
}

pub(crate) fn c2_close_ends_with_closed<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.write(peer, b"unheard");
    world.close_and_wait(token);
    world.idle(); // whatever came after Closed would be noticed
    assert_eq!(world.driver().connections(), 0);
    let (state, got) = world.peer_ends(peer);
    assert!(state != PeerState::Open && got.is_empty());
}

pub(crate) fn c2_close_cancels_a_send<H: Harness>() {
    for kind in [CloseKind::Normal, CloseKind::Reset] {
        let (mut world, peer, token) = World::<H>::connected();
        world.harness.narrow(peer);
        let (output, _) = mixed(80);
        world.send(token, output);
        world.idle();
        assert!(world.is_sending(token), "8 MB don't fit unread");
        world.close(token, kind);
        world.until("it is closed", |world| world.page(token).closed);
        assert_eq!(world.page(token).sent, [SentAs::Cancelled]);
        let tail = &world.notes[world.notes.len() - 2..];
        assert_eq!(tail, [Note::Sent(token, SentAs::Cancelled), Note::Closed(token)]);
    }
}

pub(crate) fn c2_close_delivers_a_decided_send_first<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.send(token, plain(b"goodbye"));
    world.close(token, CloseKind::Normal);
    world.until("it is closed", |world| world.page(token).closed);
    let sent = world.page(token).sent.clone();
    assert!(sent == [SentAs::Whole] || sent == [SentAs::Cancelled], "{sent:?}");
    let (state, got) = world.peer_ends(peer);
    assert_eq!(state, PeerState::Eof);
    assert!(sent == [SentAs::Cancelled] || got == b"goodbye");
}

pub(crate) fn c2_a_send_begun_in_response_to_a_sent_comes_before_closed<H: Harness>() {
    for len in [4, 400_000] {
        let (mut world, _, token) = World::<H>::connected();
        world.send(token, plain(b"first"));
        for _ in 0..1000 {
            world.wait(5);
            while let Some(note) = world.step() {
                if note == Note::Sent(token, SentAs::Whole) && world.page(token).sent.len() == 1 {
                    world.send(token, plain(&pattern(len, 1)));
                    world.close(token, CloseKind::Normal);
                }
            }
            if world.page(token).closed {
                break;
            }
        }
        // Every event checks that the second returns, and before Closed.
        assert!(world.page(token).closed && world.page(token).sent.len() == 2);
    }
}

pub(crate) fn c2_close_in_response_to_each_event<H: Harness>() {
    let closes: [fn(&Note) -> bool; 4] = [
        |note| matches!(note, Note::Accepted(_)),
        |note| matches!(note, Note::Received(..)),
        |note| matches!(note, Note::ReadClosed(..)),
        |note| matches!(note, Note::Sent(..)),
    ];
    for is_the_one in closes {
        let mut world = World::<H>::new();
        let peer = world.harness.connect(0);
        world.harness.write(peer, b"question");
        world.harness.shutdown(peer);
        let mut closed = false;
        for _ in 0..100 {
            world.wait(5);
            while let Some(note) = world.step() {
                let token = world.accepted[0];
                if is_the_one(&note) && !closed {
                    world.close(token, CloseKind::Normal);
                    closed = true;
                } else if matches!(note, Note::Received(..)) && !world.is_sending(token) && !closed {
                    world.send(token, plain(b"answer"));
                }
            }
            if closed && world.page(world.accepted[0]).closed {
                break;
            }
        }
        world.idle();
        assert!(closed && world.page(world.accepted[0]).closed);
    }
}

pub(crate) fn c3_reset_resets<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.close(token, CloseKind::Reset);
    world.until("it is closed", |world| world.page(token).closed);
    assert_eq!(world.peer_ends(peer).0, PeerState::Reset);
}

pub(crate) fn c3_reset_discards_what_is_unsent<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.narrow(peer);
    let (output, wanted) = mixed(80);
    world.send(token, output);
    world.idle();
    world.close(token, CloseKind::Reset);
    world.until("it is closed", |world| world.page(token).closed);
    let (state, got) = world.peer_ends(peer);
    assert_eq!(state, PeerState::Reset);
    assert!(got.len() < wanted.len() && wanted.starts_with(&got));
}

pub(crate) fn c4_a_broken_connection_stays<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.reset(peer);
    world.until("it is broken", |world| world.page(token).ended == Some(Ended::Broken));
    world.idle();
    assert_eq!(world.driver().connections(), 1, "only the worker closes");
    world.close_and_wait(token);
    assert_eq!(world.driver().connections(), 0);
}

pub(crate) fn c5_detach_hands_the_connection_out<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    if !world.harness.detaches() {
        assert!(world.detach(token).is_err(), "unsupported calls fail");
        world.send(token, plain(b"still here"));
        assert_eq!(world.peer_gets(peer, 10), b"still here");
        return;
    }
    world.send(token, plain(b"by the driver"));
    assert_eq!(world.peer_gets(peer, 13), b"by the driver");
    world.until("it is sent", |world| !world.is_sending(token));
    let detached = world.detach(token).expect("the connection is detached");
    assert_eq!(detached.unread, b"", "nothing has come");
    let mut stream = TcpStream::from(detached.descriptor);
    let waiting = stream.read(&mut [0; 8]).expect_err("there is nothing to read");
    assert_eq!(waiting.kind(), ErrorKind::WouldBlock);
    stream.write_all(b"by hand").expect("the connection stays open");
    assert_eq!(world.peer_gets(peer, 7), b"by hand");
    world.harness.write(peer, b"to the test");
    world.idle(); // an event would have no page
    let mut got = [0; 11];
    stream.read_exact(&mut got).expect("the bytes are there");
    assert_eq!(&got, b"to the test");
    assert_eq!(world.driver().connections(), 1, "its slot is still in use");
    world.close_and_wait(token);
    assert_eq!(world.driver().connections(), 0);
    stream.write_all(b"; still here").expect("the descriptor was not the driver's");
    assert_eq!(world.peer_gets(peer, 12), b"; still here");
    drop(stream);
    assert_eq!(world.peer_ends(peer).0, PeerState::Eof);
}

/// A close takes the place of the event, and the driver closes the descriptor.
pub(crate) fn c5_a_close_ends_a_detach<H: Harness>() {
    for turns in 0..2 {
        let (mut world, peer, token) = World::<H>::connected();
        world.idle();
        world.harness.write(peer, b"unread");
        world.begin_detach(token);
        (0..turns).for_each(|_| world.wait(1));
        world.close(token, CloseKind::Normal);
        world.until("it is closed", |world| world.page(token).closed);
        assert_eq!(world.count(|note| matches!(note, Note::Detached(_))), 0);
        assert_ne!(world.peer_ends(peer).0, PeerState::Open);
    }
}

/// Input that arrives meanwhile is returned, and other connections are served.
pub(crate) fn c5_input_during_a_detach_is_returned<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    if !world.harness.detaches() {
        return;
    }
    let (other_peer, other) = world.connect();
    world.idle();
    world.harness.write(peer, b"before");
    world.begin_detach(token);
    world.harness.write(peer, b" and after");
    world.harness.write(other_peer, b"other");
    world.until("the other is heard", |world| world.page(other).received == b"other");
    let mut detached = world.detached(token).expect("the connection is detached");
    let mut stream = TcpStream::from(detached.descriptor);
    stream.set_nonblocking(false).expect("it can block");
    let before = detached.unread.len();
    detached.unread.resize(16, 0);
    stream.read_exact(&mut detached.unread[before..]).expect("the rest is in the socket");
    assert_eq!(detached.unread, b"before and after");
}

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
        |driver, token| driver.detach(token),
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
