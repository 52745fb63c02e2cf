//! The same bytes give the same events however they are split.

use shearwater_http2::{ConnectionError, ErrorCode, PREFACE, limits::Limits};

use crate::client::*;

/// Joins content that follows content of the same stream.
fn joined(seen: Vec<Seen>) -> Vec<Seen> {
    let mut all: Vec<Seen> = Vec::new();
    for event in seen {
        match (all.last_mut(), event) {
            (Some(Seen::Data(last, content, ends)), Seen::Data(stream, more, more_ends))
                if *last == stream =>
            {
                content.extend(more);
                *ends |= more_ends;
            }
            (_, event) => all.push(event),
        }
    }
    all
}

type Outcome = (Vec<Seen>, Result<(), ConnectionError>, Vec<Frame>);

fn run<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Outcome {
    let mut client = Client::raw(Limits::default());
    let (mut all, mut end) = (Vec::new(), Ok(()));
    for piece in pieces {
        let (seen, result) = client.try_send(piece);
        all.extend(seen);
        end = result;
        if end.is_err() {
            break;
        }
    }
    (joined(all), end, client.frames())
}

/// Makes a conversation of valid and invalid frames.
fn conversation(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = [&PREFACE[..], &settings(&[])].concat();
    let mut last = 1;
    for _ in 0..random.usize(..25) {
        let old = random.u32(..=last / 2) * 2 + 1;
        bytes.extend(match random.u8(..16) {
            0..=3 => {
                last += 2;
                [get(last), post(last + 2, &[])].concat()
            }
            4 => {
                last += 4;
                post(last, &[("content-length", "5")])
            }
            5..=7 => frame(DATA, random.u8(..2), old, b"hello"),
            8 => frame(DATA, PADDED, old, b"\x03abc..."),
            9 => window_update(random.u32(..2) * old, random.u32(..3)),
            10 => reset(old, ErrorCode::Cancel),
            11 => frame(HEADERS, WHOLE, old, &block(&[("sum", "1")])),
            12 => [frame(HEADERS, 1, last + 6, &block(GET)), frame(CONTINUATION, 4, last + 6, b"")].concat(),
            13 => frame(PING, 0, 0, b"12345678"),
            14 => frame(0xEE, 0, 0, b"unknown"),
            _ => (0..random.usize(..12)).map(|_| random.u8(..4)).collect(),
        });
    }
    bytes
}

#[test]
fn events_do_not_depend_on_splits() {
    let mut random = testkit::random::part(1, 11);
    let (mut failed, mut survived) = (0, 0);
    for _ in 0..1_500 {
        let bytes = conversation(&mut random);
        let whole = run(std::iter::once(&bytes[..]));
        assert_eq!(run(bytes.chunks(1)), whole, "byte by byte: {}", bytes.escape_ascii());
        let at = random.usize(..bytes.len());
        let (first, second) = bytes.split_at(at);
        assert_eq!(run([first, second].into_iter()), whole, "at {at}: {}", bytes.escape_ascii());
        match whole.1 {
            Ok(()) => survived += 1,
            Err(_) => failed += 1,
        }
    }
    assert!(failed > 100 && survived > 100, "{failed} {survived}");
}
