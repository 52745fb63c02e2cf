//! The part of each attacker: what the connections of each attack of the catalogue send and how they read.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::script::{Filler, Reading, Script};
use super::site::{LARGE, LARGE_LENGTH, PAGE};
use crate::harness::client::{request, request_with};
use crate::harness::random::Random;

/// A pace that passes every limit between two pieces.
const ONE_A_SECOND: Duration = Duration::from_secs(1);
/// More than any connection gets to send.
const ENDLESS: u64 = u64::MAX / 2;
/// Bytes that a fast sender sends at a time.
const PIECE: usize = 64 * 1024;
/// Length of a large body: below the server's bound of 10 MiB.
const BODY_LENGTH: u64 = 9_400_000;
/// Length of a large head: below the server's bound of 64 KiB.
const HEAD_LENGTH: usize = 60_000;
/// The most ranges that the server does not ignore.
const RANGES_LOOKED_AT: u64 = 64;
/// Of so many bytes of the large file is half asked for, where ranges are large.
const SHARE: u64 = LARGE_LENGTH / 4096;
/// Requests in one pipeline.
const PIPELINED: usize = 10_000;

/// One script for all connections of an attack: most scripts are long and all the same.
type Shared = LazyLock<Arc<Script>>;

fn filler(piece: &[u8], every: Duration, bytes: u64) -> Option<Filler> {
    Some(Filler { piece: piece.into(), every, bytes })
}

fn post(target: &str, length: u64) -> Vec<u8> {
    request_with("POST", target, &format!("Content-Length: {length}\r\n"))
}

/// A head without an end, byte by byte.
pub(super) fn slow_head(_: &mut Random, _: u64) -> Arc<Script> {
    static PART: Shared = LazyLock::new(|| {
        let opening = "GET / HTTP/1.1\r\nHost: trial.test\r\nX-Slow: ";
        Arc::new(Script { filler: filler(b"a", ONE_A_SECOND, ENDLESS), ..Script::new(opening) })
    });
    Arc::clone(&PART)
}

/// A body, byte by byte; every other is kept.
pub(super) fn slow_body(_: &mut Random, number: u64) -> Arc<Script> {
    let target = if number.is_multiple_of(2) { "/keep" } else { "/count" };
    let filler = filler(b"a", ONE_A_SECOND, 100_000);
    Arc::new(Script { filler, ..Script::new(post(target, 100_000)) })
}

/// A large file, read byte by byte.
pub(super) fn slow_reader(_: &mut Random, _: u64) -> Arc<Script> {
    let reading = Reading::Slowly { bytes: 1, every: ONE_A_SECOND };
    Arc::new(Script { reading, ..Script::new(request("GET", LARGE)) })
}

/// A large head whose end never comes.
pub(super) fn large_head(_: &mut Random, _: u64) -> Arc<Script> {
    static PART: Shared = LazyLock::new(|| {
        let mut head = "GET / HTTP/1.1\r\nHost: trial.test\r\n".to_owned();
        while head.len() < HEAD_LENGTH {
            let length = (HEAD_LENGTH - head.len()).min(6_000);
            head.push_str("X-Large: ");
            head.extend(std::iter::repeat_n('a', length));
            head.push_str("\r\n");
        }
        Arc::new(Script::new(head))
    });
    Arc::clone(&PART)
}

/// A large body at some megabytes a second, so that many are under way at once; every other is kept.
pub(super) fn large_body(_: &mut Random, number: u64) -> Arc<Script> {
    let target = if number.is_multiple_of(2) { "/keep" } else { "/count" };
    let filler = filler(&[b'a'; PIECE], Duration::from_millis(30), BODY_LENGTH);
    Arc::new(Script { filler, answers: 1, ..Script::new(post(target, BODY_LENGTH)) })
}

/// Nothing at all.
pub(super) fn silence(_: &mut Random, _: u64) -> Arc<Script> {
    static PART: Shared = LazyLock::new(|| Arc::new(Script::new("")));
    Arc::clone(&PART)
}

/// Ten thousand requests; one of six reads the answers.
pub(super) fn pipeline(_: &mut Random, number: u64) -> Arc<Script> {
    static UNREAD: Shared = LazyLock::new(|| {
        let requests = request("GET", PAGE).repeat(PIPELINED);
        Arc::new(Script { reading: Reading::Never, ..Script::new(requests) })
    });
    static READ: Shared = LazyLock::new(|| {
        let answers = PIPELINED as u64;
        Arc::new(Script { reading: Reading::AtOnce, answers, ..Script::clone(&UNREAD) })
    });
    Arc::clone(if number.is_multiple_of(6) { &READ } else { &UNREAD })
}

/// A part of a conversation, cut off at any time within a third of a second.
pub(super) fn reset_at_random(random: &mut Random, _: u64) -> Arc<Script> {
    let opening = match random.below(5) {
        0 => Vec::new(),
        1 => {
            let whole = request("GET", PAGE);
            let cut = 1 + random.below(whole.len() as u64 - 2);
            whole[..usize::try_from(cut).unwrap_or(1)].to_vec()
        }
        2 => request("GET", PAGE).repeat(50),
        3 => request("GET", LARGE),
        _ => post(PAGE, BODY_LENGTH),
    };
    let slowly = Reading::Slowly { bytes: PIECE, every: Duration::from_millis(20) };
    let reading = if random.below(2) == 0 { slowly } else { Reading::AtOnce };
    let leaves_after = Some(Duration::from_millis(random.below(300)));
    Arc::new(Script { reading, leaves_after, leaves_after_bytes: Some(1 << 20), ..Script::new(opening) })
}

/// The end of the sending side: after a request, at once, in the middle of a head, in the middle of a body.
pub(super) fn half_closed(_: &mut Random, number: u64) -> Arc<Script> {
    let opening = match number % 4 {
        0 => request("GET", "/"),
        1 => Vec::new(),
        2 => b"GET / HTTP/1.1\r\nHo".to_vec(),
        _ => [post("/keep", 1_000), vec![b'a'; 10]].concat(),
    };
    Arc::new(Script { half_close: true, ..Script::new(opening) })
}

/// A request that is refused before its end, and more and more of it.
pub(super) fn refused_and_sending_on(_: &mut Random, number: u64) -> Arc<Script> {
    let opening: Vec<u8> = match number % 4 {
        0 => post("/count", 20_000_000),
        1 => b"GET /".to_vec(),
        2 => b"GET / HTTP/1.1\r\nHost: trial.test\r\nX-Endless: ".to_vec(),
        _ => request_with("POST", "/count", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
    };
    let filler = filler(&[b'a'; PIECE / 4], Duration::from_millis(50), ENDLESS);
    Arc::new(Script { filler, reading: Reading::Never, sends_on: true, ..Script::new(opening) })
}

/// Ranges of three shapes, as many as a head may hold, and as many as the server looks at; whoever gets much for it takes some and
/// leaves.
pub(super) fn many_ranges(_: &mut Random, number: u64) -> Arc<Script> {
    static PARTS: LazyLock<Vec<Arc<Script>>> = LazyLock::new(|| {
        let shapes: [Shape; 3] = [
            |index| format!("{0}-{0}", 2 * index),
            |index| format!("{index}-"),
            |index| format!("{}-{}", index * SHARE, index * SHARE + SHARE / 2),
        ];
        let of_shape = |shape| [u64::MAX, RANGES_LOOKED_AT].map(|count| Arc::new(ranges(count, shape)));
        shapes.into_iter().flat_map(of_shape).collect()
    });
    let index = usize::try_from(number).unwrap_or(0) % PARTS.len();
    Arc::clone(&PARTS[index])
}

/// The range with this number.
type Shape = fn(u64) -> String;

/// A script that asks for `count` ranges of the large file, or for as many as a head may hold.
fn ranges(count: u64, shape: Shape) -> Script {
    let mut fields = format!("Range: bytes={}", shape(0));
    for index in 1..count {
        let range = shape(index);
        if fields.len() + range.len() > HEAD_LENGTH {
            break;
        }
        fields.push(',');
        fields.push_str(&range);
    }
    fields.push_str("\r\n");
    Script {
        answers: 1,
        leaves_after_bytes: Some(256 * 1024),
        leaves_after: Some(Duration::from_secs(2)),
        ..Script::new(request_with("GET", LARGE, &fields))
    }
}
