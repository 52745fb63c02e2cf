//! Silent sends, and what depends on a turn.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::{Done, Flags, NONE, Uring};
use crate::driver::UringOptions;
use crate::limits::{
    RECVS_PER_TURN_MAX, SILENT_BYTES_PER_TURN_MAX, SILENT_OUTPUTS_BYTES_MAX, SILENT_OUTPUTS_MAX,
    SILENT_SEND_BYTES_MAX,
};
use crate::{CloseKind, Driver, Event, Output, ReadEnd, Token};

const BUFFER_BYTES: usize = 1024;

/// Returns a driver with `count` connections, and their peers. `None` if the kernel has no io_uring.
fn connected(count: usize) -> Option<(Uring, Vec<Token>, Vec<TcpStream>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let options = UringOptions { recv_buffer_bytes: BUFFER_BYTES, ..UringOptions::default() };
    let mut driver = Uring::new(vec![listener], options).map_err(|why| println!("skipped: {why}")).ok()?;
    let peers = (0..count).map(|_| TcpStream::connect(address).expect("connects")).collect();
    let mut tokens = Vec::new();
    while tokens.len() < count {
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        while let Some(event) = driver.next() {
            if let Event::Accepted { token, .. } = event {
                tokens.push(token);
            }
        }
    }
    driver.wait(Some(Duration::ZERO)).expect("the receives are submitted");
    Some((driver, tokens, peers))
}

fn send(driver: &mut Uring, token: Token, len: u64, is_awaited: bool) -> bool {
    let mut output = Output::new();
    output.bytes_mut().resize(len as usize, b'x');
    driver.send_at_once(token, &mut output, || is_awaited)
}

#[test]
fn only_short_unawaited_sends_are_silent() {
    let longest = SILENT_SEND_BYTES_MAX;
    for (len, is_awaited, is_silent) in
        [(longest, false, true), (6, true, false), (longest + 1, false, false)]
    {
        let Some((mut driver, tokens, _peers)) = connected(1) else { return };
        assert_eq!(send(&mut driver, tokens[0], len, is_awaited), is_silent, "{len} {is_awaited}");
        driver.wait(Some(Duration::ZERO)).expect("the driver waits");
        let mut events = 0;
        while driver.conns.slots.open(tokens[0]).is_some_and(|slot| slot.send != NONE) || events == 0 {
            driver.wait(Some(Duration::from_millis(u64::from(!is_silent)))).expect("the driver waits");
            events += std::iter::from_fn(|| driver.next()).count() + usize::from(is_silent);
        }
        assert_eq!(events, 1);
        assert_eq!(driver.bytes_taken(), len);
    }
}

#[test]
fn keeps_a_bounded_number_of_outputs() {
    const COUNT: usize = SILENT_OUTPUTS_MAX + 20;
    let Some((mut driver, tokens, _peers)) = connected(COUNT) else { return };
    for len in [100, 40_000] {
        for token in &tokens {
            assert!(send(&mut driver, *token, len, false));
        }
        driver.wait(Some(Duration::ZERO)).expect("the driver waits");
        while driver.next().is_some() {}
        let (count, bytes) = driver.ring.empty_outputs();
        assert!(
            count > 0 && count <= SILENT_OUTPUTS_MAX && bytes <= SILENT_OUTPUTS_BYTES_MAX,
            "{count}, {bytes}"
        );
    }
    assert!(driver.rest());
    assert_eq!(driver.ring.empty_outputs(), (0, 0));
}

#[test]
fn a_wait_does_not_hold_many_sent_bytes() {
    let count = (SILENT_BYTES_PER_TURN_MAX / SILENT_SEND_BYTES_MAX) as usize;
    let Some((mut driver, tokens, _peers)) = connected(count + 1) else { return };
    for token in &tokens[..count] {
        assert!(!driver.is_busy(), "the wait may block");
        assert!(send(&mut driver, *token, SILENT_SEND_BYTES_MAX, false));
    }
    assert!(send(&mut driver, tokens[count], 1, false) && driver.is_busy());
    driver.wait(None).expect("the driver waits");
    assert!(driver.ring.silent_bytes() == 0 && !driver.is_busy());
}

/// Its entry names the descriptor, which must stay open until the kernel has it.
#[test]
fn a_close_follows_a_silent_send() {
    let Some((mut driver, tokens, mut peers)) = connected(1) else { return };
    assert!(send(&mut driver, tokens[0], 6, false));
    driver.close(tokens[0], CloseKind::Normal);
    while driver.connections() > 0 {
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        while let Some(event) = driver.next() {
            assert!(matches!(event, Event::Closed { .. }), "{event:?}");
        }
    }
    let mut got = Vec::new();
    peers[0].read_to_end(&mut got).expect("it ends");
    assert_eq!(got, b"xxxxxx");
}

/// The next connection must not get the number of a descriptor that an entry names.
#[test]
fn a_connection_accepted_after_a_close_gets_nothing_of_its_silent_send() {
    let Some((mut driver, tokens, mut peers)) = connected(1) else { return };
    let address = peers[0].peer_addr().expect("an address");
    let mut next = TcpStream::connect(address).expect("connects");
    driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
    assert!(send(&mut driver, tokens[0], 6, false) || !driver.sends_silently);
    driver.close(tokens[0], CloseKind::Normal);
    let mut accepted = 0;
    while accepted == 0 || driver.connections() > 1 {
        while let Some(event) = driver.next() {
            accepted += usize::from(matches!(event, Event::Accepted { .. }));
        }
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
    }
    let mut got = Vec::new();
    peers[0].read_to_end(&mut got).expect("it ends");
    assert_eq!(got, b"xxxxxx");
    next.set_nonblocking(true).expect("it can");
    assert!(next.read(&mut [0]).is_err(), "nothing was sent to it");
}

/// Without a multishot receive no cancelled entry ends the wait.
#[test]
fn a_close_after_a_silent_send_needs_no_other_event() {
    const LONG: Duration = Duration::from_secs(60);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let options = UringOptions { multishot: false, ..UringOptions::default() };
    let Ok(mut driver) = Uring::new(vec![listener], options).map_err(|why| println!("skipped: {why}")) else {
        return;
    };
    let mut peer = TcpStream::connect(address).expect("connects");
    peer.write_all(b"?").expect("the queue has room");
    let start = Instant::now();
    let mut is_closed = false;
    while !is_closed {
        driver.wait(Some(LONG)).expect("the driver waits");
        while let Some(event) = driver.next() {
            if let Event::Received { token } = event {
                assert!(send(&mut driver, token, 6, false) || !driver.sends_silently);
                driver.close(token, CloseKind::Normal);
            }
            is_closed |= matches!(event, Event::Closed { .. });
        }
    }
    assert!(start.elapsed() < LONG / 2, "the wait has timed out");
}

#[test]
fn a_reset_while_paused_shows_after_the_result_of_a_silent_send() {
    let Some((mut driver, tokens, mut peers)) = connected(1) else { return };
    driver.recv_pause(tokens[0]);
    peers[0].write_all(b"x").expect("the queue has room");
    while !driver.conns.slots.open(tokens[0]).is_some_and(|slot| slot.flags.has(Flags::END_WATCHED)) {
        driver.wait(Some(Duration::from_millis(1))).expect("the driver waits");
        while driver.next().is_some() {}
    }
    socket2::SockRef::from(&peers[0]).set_linger(Some(Duration::ZERO)).expect("it can");
    drop(peers);
    while driver.completions.is_empty() {
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
    }
    assert!(send(&mut driver, tokens[0], 6, false) || !driver.sends_silently);
    assert!(driver.next().is_none(), "it waits for the result");
    driver.wait(Some(Duration::ZERO)).expect("the driver waits");
    let events: Vec<_> = std::iter::from_fn(|| driver.next()).collect();
    assert!(
        matches!(events[..], [Event::Unsent { .. }, Event::Sent { .. }, Event::ReadClosed { .. }])
            || !driver.sends_silently,
        "{events:?}"
    );
}

#[test]
fn a_receive_whose_cancel_found_nothing_is_cancelled_again() {
    let Some((mut driver, tokens, mut peers)) = connected(1) else { return };
    // As if a cancel had been sent and found nothing.
    driver.conns.slots.open_mut(tokens[0]).expect("the slot is open").flags.set(Flags::CANCELLING);
    driver.close(tokens[0], CloseKind::Normal);
    peers[0].write_all(b"x").expect("the queue has room");
    while driver.connections() > 0 {
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        while driver.next().is_some() {}
    }
}

/// A connection with more completions than its share of a turn gets the rest in the next, in order.
#[test]
fn completions_held_for_the_next_turn_stay_in_order() {
    const PIECES: &[u8] = b"abcdefghijk";
    const { assert!(PIECES.len() > 2 * RECVS_PER_TURN_MAX) };
    let Some((mut driver, _, mut peers)) = connected(1) else { return };
    if !driver.multishot {
        println!("skipped: an entry ends with each piece here");
        return;
    }
    for piece in PIECES {
        peers[0].write_all(&[*piece]).expect("the queue has room");
        // Each enter brings a piece as a completion of its own.
        let before = driver.completions.len();
        while driver.completions.len() == before {
            driver.ring.enter(Some(Duration::from_secs(1))).expect("the ring is entered");
            driver.take_completions();
        }
    }
    let mut received = Vec::new();
    for turn in 1..=3 {
        driver.wait(Some(Duration::ZERO)).expect("the driver waits");
        while let Some(event) = driver.next() {
            assert!(matches!(event, Event::Received { .. }), "{event:?}");
            received.extend_from_slice(driver.lent());
        }
        assert_eq!(received, PIECES[..PIECES.len().min(turn * RECVS_PER_TURN_MAX)]);
    }
}

/// A result that can't be is an error of its connection, not a wrong length or a panic.
#[test]
fn an_impossible_receive_breaks_its_connection() {
    const MORE: u32 = 1 << 1;
    const BUFFER: u32 = 1;
    for (result, flags) in [(10, 0), (10, BUFFER | 0xFFFF << 16), (BUFFER_BYTES as i32 + 1, BUFFER)] {
        let Some((mut driver, tokens, _peers)) = connected(1) else { return };
        for _ in 0..2 {
            let done = Done::forged(super::super::recv::name(tokens[0]), result, flags | MORE);
            driver.completions.push_back(done);
        }
        driver.completions_left = driver.completions.len();
        let event = driver.next();
        assert!(matches!(&event, Some(Event::ReadClosed { end: ReadEnd::Broken(_), .. })), "{event:?}");
        assert!(driver.next().is_none(), "once");
    }
}
