//! Sends that count as done before the driver knows their results.

use shearwater_io::Driver;

use super::Harness;
use super::sending::fill;
use super::world::{SentAs, World, pattern, plain};

/// A close right after a send that counts as done, although the buffers are full: what is lost comes back.
pub(crate) fn s7_a_close_reports_what_was_not_sent<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.narrow(peer);
    let mut len = fill(&mut world, token).len() as u64;
    let mut got = Vec::new();
    world.until("it comes back", |world| {
        world.harness.read(peer, 5000, &mut got);
        !world.is_sending(token)
    });
    let before = world.page(token).sent.len();
    let mut output = plain(&pattern(60_000, 2));
    let is_done = world.send_for(token, &mut output, false);
    len += 60_000;
    world.close_and_wait(token);
    let taken = world.driver().bytes_taken();
    let sent = &world.page(token).sent[before..];
    if H::secures() {
        // The bytes of records are counted, too: they don't say whether content was lost.
        return assert!(matches!(sent, [] | [SentAs::Cancelled | SentAs::Whole]), "{sent:?}");
    }
    let lost = len - taken;
    let expected = if lost > 0 { &[SentAs::Cancelled][..] } else { &[] };
    assert!(sent == expected || !is_done && sent == [SentAs::Whole], "{lost} lost: {sent:?}");
}

/// The turn's `Unsent` can be taken before its other events, and without any the sends before it are done.
pub(crate) fn s7_unsent_sends_come_first_if_asked_for<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.harness.narrow(peer);
    for round in 0_u64.. {
        assert!(round < 10_000, "no buffer is as large");
        let response = pattern(30_000, round);
        let is_done = world.send_for(token, &mut plain(&response), false);
        let is_open = world.driver().settles_later();
        assert!(is_done || !is_open, "only a send that counts as done is unsettled");
        world.wait(1);
        let unsent = world.driver().next_unsent();
        assert!(!world.driver().settles_later(), "its result is known");
        if let Some(unsent) = unsent {
            assert_eq!((unsent, is_open), (token, true));
            world.note_unsent(token);
        }
        while world.step().is_some() {}
        if world.is_sending(token) {
            break;
        }
    }
    world.harness.reset(peer);
    world.until("it comes back", |world| !world.is_sending(token));
}
