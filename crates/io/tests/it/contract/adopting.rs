//! Clause A9: one end of a socket pair as a connection.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use shearwater_io::{CloseKind, Driver, Token};

use super::world::{Ended, SentAs, World, pattern, plain};
use super::{Harness, Setup};

/// A world that has adopted one end of a pair. The program has the other, which doesn't block.
fn adopted<H: Harness>() -> (World<H>, UnixStream, Token) {
    let mut world = World::new();
    let (theirs, token) = world.adopt();
    (world, theirs, token)
}

/// Takes turns and reads until the program has `len` bytes, or the end.
fn program_gets<H: Harness>(world: &mut World<H>, theirs: &mut UnixStream, len: usize) -> Vec<u8> {
    let (mut got, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    world.until("the program gets its bytes", |_| {
        match theirs.read(&mut buffer) {
            Ok(0) => return true,
            Ok(count) => got.extend_from_slice(&buffer[..count]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        got.len() >= len
    });
    got
}

pub(crate) fn a9_an_adopted_socket_is_served<H: Harness>() {
    let (mut world, mut theirs, token) = adopted::<H>();
    let (asked, said) = (pattern(300_000, 1), pattern(400_000, 2));
    let mut written = 0;
    world.until("the program's bytes arrive", |world| {
        written += theirs.write(&asked[written..]).unwrap_or(0);
        world.page(token).received.len() == asked.len()
    });
    assert!(world.page(token).received == asked);
    world.send(token, plain(&said));
    assert!(program_gets(&mut world, &mut theirs, said.len()) == said);
    world.until("the send ends", |world| world.page(token).sent == [SentAs::Whole]);
    world.close_and_wait(token);
    assert_eq!(theirs.read(&mut [0]).expect("an end"), 0);
    assert_eq!(world.driver().connections(), 0);
}

pub(crate) fn a9_input_from_before_is_received<H: Harness>() {
    let mut world = World::<H>::new();
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    theirs.write_all(b"early").expect("room");
    drop(theirs);
    let token = world.adopt_socket(ours);
    world.until("the end shows", |world| world.page(token).ended == Some(Ended::Eof));
    assert_eq!(world.page(token).received, b"early");
    world.close_and_wait(token);
}

pub(crate) fn a9_each_side_ends_by_itself<H: Harness>() {
    let (mut world, mut theirs, token) = adopted::<H>();
    world.driver().shutdown_write(token);
    assert_eq!(program_gets(&mut world, &mut theirs, 1), b"");
    theirs.write_all(b"still heard").expect("room");
    theirs.shutdown(std::net::Shutdown::Write).expect("it is open");
    world.until("the end shows", |world| world.page(token).ended == Some(Ended::Eof));
    assert_eq!(world.page(token).received, b"still heard");
    world.close_and_wait(token);
}

pub(crate) fn a9_a_program_that_reads_nothing_holds_a_send_up<H: Harness>() {
    let (mut world, mut theirs, token) = adopted::<H>();
    let said = pattern(8_000_000, 3);
    world.send(token, plain(&said));
    world.idle();
    assert!(world.is_sending(token), "8 MB don't fit unread");
    assert!(program_gets(&mut world, &mut theirs, said.len()) == said);
    world.until("the send ends", |world| world.page(token).sent == [SentAs::Whole]);
    world.send(token, plain(&said));
    drop(theirs);
    world.until("the next one fails", |world| world.page(token).sent.len() == 2);
    assert_eq!(world.page(token).sent[1], SentAs::Broken);
    world.close_and_wait(token);
}

pub(crate) fn a9_pauses_hold<H: Harness>() {
    let (mut world, mut theirs, token) = adopted::<H>();
    let asked = pattern(600_000, 4);
    let mut written = 0;
    world.recv_pause(token);
    for _ in 0..20 {
        written += theirs.write(&asked[written..]).unwrap_or(0);
        world.idle(); // what comes while paused is measured with every event
    }
    assert!(written < asked.len(), "the pause holds the program up");
    world.recv_resume(token);
    world.until("all has arrived", |world| {
        written += theirs.write(&asked[written..]).unwrap_or(0);
        world.page(token).received.len() == asked.len()
    });
    assert!(world.page(token).received == asked);
    world.close_and_wait(token);
}

pub(crate) fn a9_counts_for_no_limit<H: Harness>() {
    let mut world = World::<H>::with(Setup { connections_max: 1, ..Setup::default() });
    let (theirs, token) = world.adopt();
    let (_, accepted) = world.connect();
    let (_others, third) = world.adopt();
    world.close_and_wait(accepted);
    world.connect();
    world.close(token, CloseKind::Reset);
    world.close(third, CloseKind::Normal);
    world.until("they are closed", |world| world.page(token).closed && world.page(third).closed);
    assert_eq!(world.driver().connections(), 1);
    drop(theirs);
}
