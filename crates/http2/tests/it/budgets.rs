//! Attacks, each with the limit that it hits.

use shearwater_http2::limits::*;
use shearwater_http2::{ConnectionError, ErrorCode, StreamError, StreamId};

use crate::client::*;

/// Sends numbered inputs, each in an output of its own, until the connection fails; returns how many.
fn count(client: &mut Client, input: impl Fn(u32) -> Vec<u8>, expected: ConnectionError) -> u32 {
    for number in 0..100_000 {
        client.server.output_sent();
        if let (_, Err(error)) = client.try_send(&input(number)) {
            assert_eq!(error, expected);
            return number;
        }
    }
    panic!("it never fails");
}

fn odd(number: u32) -> u32 {
    2 * number + 1
}

/// CVE-2023-44487.
#[test]
fn rapid_resets() {
    let reset_at_once = |number| [get(odd(number)), reset(odd(number), ErrorCode::Cancel)].concat();
    let error = ConnectionError::TooManyResets;
    // Of a turn, no more streams begin than its limit, and refused ones count too.
    assert_eq!(count(&mut Client::new(), reset_at_once, error), RESETS_MAX);
    let mut client = Client::new();
    for number in 0..RESETS_MAX {
        client.send(&reset_at_once(number));
    }
    client.server.begin_turn(1000);
    let later = |number| reset_at_once(number + RESETS_MAX);
    assert_eq!(count(&mut client, later, error), RESETS_PER_SECOND);
}

/// CVE-2025-8671: the server is made to reset.
#[test]
fn made_resets() {
    let malformed = |number| [get(odd(number)), window_update(odd(number), 0)].concat();
    assert_eq!(count(&mut Client::new(), malformed, ConnectionError::TooManyResets), RESETS_MAX);
    let mut client = Client::new();
    client.send(&get(1));
    for number in 1..=RESETS_MAX {
        client.send(&malformed(number));
        client.server.begin_turn(0);
    }
    client.respond_whole(1);
    let later = |number| malformed(number + RESETS_MAX + 1);
    assert_eq!(count(&mut client, later, ConnectionError::TooManyResets), 1, "a response earns a reset");
}

#[test]
fn floods_of_frames_without_content() {
    let update = frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1");
    let empty = frame(DATA, 0, 1, b"");
    for input in [
        settings(&[]),
        frame(PING, 0, 0, b"12345678"),
        frame(PING, ACK, 0, b"12345678"),
        frame(PRIORITY, 0, 9, b"\0\0\0\x01\0"),
        window_update(0, 1),
        update,
        empty,
        frame(0xEE, 0, 0, b""),
        frame(GO_AWAY, 0, 0, &[0; 8]),
    ] {
        let mut client = Client::new();
        client.send(&post(1, &[]));
        // The client's SETTINGS and acknowledgement at the beginning count too.
        let number = count(&mut client, |_| input.clone(), ConnectionError::TooManyControlFrames);
        assert_eq!(number, CONTROL_FRAMES_MAX - 2, "{}", input.escape_ascii());
    }
    let mut client = Client::new();
    (2..CONTROL_FRAMES_MAX).for_each(|_| _ = client.send(&window_update(0, 1)));
    client.server.begin_turn(1000);
    let number = count(&mut client, |_| window_update(0, 1), ConnectionError::TooManyControlFrames);
    assert_eq!(number, CONTROL_FRAMES_PER_SECOND);
}

/// A download earns the updates of its windows.
#[test]
fn window_updates_of_a_download_are_free() {
    let mut client = Client::new();
    client.send(&get(1));
    client.respond(1);
    for _ in 0..3 * CONTROL_FRAMES_MAX {
        assert!(client.server.data(StreamId::new(1), b"x", false, &mut client.out));
        client.send(&[window_update(0, 1), window_update(1, 1)].concat());
    }
    assert_eq!(WINDOW_UPDATES_PER_DATA, 2);
}

#[test]
fn acknowledgements_that_are_not_sent() {
    let mut client = Client::new();
    let ping = frame(PING, 0, 0, b"12345678");
    (0..ACKNOWLEDGEMENTS_MAX).for_each(|_| _ = client.send(&ping));
    assert_eq!(client.fail(&ping), ConnectionError::TooManyAcknowledgements);
}

#[test]
fn header_blocks_are_limited() {
    let part = frame(HEADERS, 0, 1, b"");
    let mut client = Client::new();
    client.send(&part);
    (0..CONTINUATIONS_MAX).for_each(|_| _ = client.send(&frame(CONTINUATION, 0, 1, b"")));
    let error = client.fail(&frame(CONTINUATION, 0, 1, b""));
    assert_eq!(error, ConnectionError::TooManyContinuations);
    let mut client = Client::new();
    client.send(&part);
    let full = frame(CONTINUATION, 0, 1, &vec![0; FRAME_BYTES_MAX]);
    (0..BLOCK_BYTES_MAX / FRAME_BYTES_MAX).for_each(|_| _ = client.send(&full));
    assert_eq!(client.fail(&frame(CONTINUATION, 0, 1, b"x")), ConnectionError::BlockTooLarge);
}

/// CVE-2016-6581 and CVE-2026-49975: a small block that decodes to a large list.
#[test]
fn a_header_bomb_ends_the_connection() {
    let mut bomb = b"\x40\x7F\xDD\x1E".to_vec();
    bomb.extend_from_slice(&[b'n'; 4060]);
    bomb.extend_from_slice(b"\x04abcd");
    bomb.extend_from_slice(&vec![0xBE; DECODED_BYTES_MAX / 4096]);
    assert_eq!(Client::new().fail(&frame(HEADERS, WHOLE, 1, &bomb)), ConnectionError::ListTooLarge);
}

#[test]
fn streams_are_limited() {
    let mut client = Client::new();
    (0..100).for_each(|number| _ = client.send(&get(odd(number))));
    assert_eq!(client.send(&get(201)), [Seen::Failed(201, StreamError::TooManyStreams)]);
    assert_eq!(client.frames().last().map(|frame| frame.payload.clone()), Some(vec![0, 0, 0, 7]));
    client.respond_whole(1);
    assert_eq!(client.send(&get(203)).len(), 1);
    let mut client = Client::new();
    for number in 0..200 {
        client.send(&get(odd(number)));
        client.respond_whole(odd(number));
    }
    assert_eq!(client.send(&get(401)), [Seen::Failed(401, StreamError::TooManyStreams)]);
    client.server.begin_turn(0);
    assert_ne!(client.send(&get(403)), [Seen::Failed(403, StreamError::TooManyStreams)]);
}

#[test]
fn old_closed_streams_are_evicted() {
    for (streams_max, kept) in [(1, CLOSED_STREAMS_KEPT_MIN), (10_000, CLOSED_STREAMS_KEPT_MAX)] {
        for (beyond, expected) in [(0, ConnectionError::ClosedStream), (1, ConnectionError::StreamIdentifier)]
        {
            let mut client = Client::with(Limits { streams_max, ..Limits::default() });
            for number in 0..(kept + beyond) as u32 {
                client.server.begin_turn(0);
                client.send(&get(odd(number)));
                client.respond_whole(odd(number));
            }
            client.frames();
            assert_eq!(client.fail(&get(1)), expected, "after {} streams", kept + beyond);
        }
    }
}
