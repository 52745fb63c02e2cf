//! Compares every scanner with a plain loop, and the native scanners with the portable one.

use super::lines::ascii;
use super::masks::{BLOCK_BYTES, BlockMasks, HALF_BYTES, LANE_BYTES, Scanner};
use super::words::{is_plain_name, portable};
use super::{Cutter, FieldSpans, LineProgress, ScanStop, baseline_lines, best, lines, words};
use testkit::random::Rng;

/// Bytes at the edges of all classes.
const EDGES: &[u8] = b"\0\x08\t\n\r\x1f !\"#$,-./09:;>?@AZ[`az{~\x7f\x80\x89\xa0\xba\xff";

fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

/// Returns an edge byte or any byte, with equal probability.
fn byte(random: &mut Rng) -> u8 {
    if random.bool() { EDGES[random.usize(..EDGES.len())] } else { random.u8(..) }
}

fn plain_bits(bytes: &[u8], matches: impl Fn(u8) -> bool) -> u64 {
    bytes.iter().enumerate().fold(0, |bits, (place, byte)| bits | u64::from(matches(*byte)) << place)
}

fn rounds(many: usize) -> usize {
    if cfg!(miri) { many / 100 } else { many }
}

#[test]
fn searches_agree_with_a_plain_loop_at_every_length_and_place() {
    for length in 0..if cfg!(miri) { 20 } else { 100 } {
        for place in 0..=length {
            for byte in *b"\r\n\t\0\x7f: ?\xff\x1f\x80" {
                let mut bytes = vec![b'x'; length];
                bytes[place..].fill(byte);
                let first = |matches: fn(&u8) -> bool| bytes.iter().position(matches);
                assert_eq!(super::colon(&bytes), first(|byte| *byte == b':'));
                assert_eq!(super::space(&bytes), first(|byte| *byte == b' '));
                assert_eq!(super::question_mark(&bytes), first(|byte| *byte == b'?'));
                assert_eq!(super::has_control(&bytes), bytes.iter().any(|byte| is_control(*byte)));
                assert_eq!(ascii(&bytes), std::str::from_utf8(&bytes).ok().filter(|text| text.is_ascii()));
                if words::all(&bytes, is_plain_name) {
                    assert!(bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-'));
                }
            }
        }
    }
}

#[test]
fn halves_agree_with_a_plain_loop() {
    let mut random = Rng::with_seed(1);
    for _ in 0..rounds(50_000) {
        let bytes: [u8; HALF_BYTES] = std::array::from_fn(|_| byte(&mut random));
        let expected = BlockMasks {
            controls: plain_bits(&bytes, is_control),
            colons: plain_bits(&bytes, |byte| byte == b':'),
        };
        assert_eq!(portable::BASELINE.half(&bytes), expected, "{}", bytes.escape_ascii());
        assert_eq!(best::BASELINE.half(&bytes), expected, "{}", bytes.escape_ascii());
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = super::x86::Avx2::detect() {
            assert_eq!(avx2.half(&bytes), expected, "{}", bytes.escape_ascii());
        }
    }
}

#[test]
fn lanes_agree_with_a_plain_loop() {
    let mut random = Rng::with_seed(2);
    for _ in 0..rounds(50_000) {
        let bytes: [u8; LANE_BYTES] = std::array::from_fn(|_| byte(&mut random));
        let (target, name) = (best::target(&bytes), best::name(&bytes));
        assert_eq!(
            (target, name),
            (portable::target(&bytes), portable::name(&bytes)),
            "{}",
            bytes.escape_ascii()
        );
        assert_eq!(u64::from(target.marks), plain_bits(&bytes, |byte| byte == b'?'));
        let begins_dots = |place: &usize| matches!(bytes[place - 1..=*place], [b'/', b'.' | b'%']);
        let dots = (1..LANE_BYTES).filter(begins_dots).fold(0_u64, |mask, place| mask | 1 << place);
        let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
        let plain = plain_bits(&bytes, is_allowed) & !dots;
        assert_eq!(u64::from(target.plain), plain, "{}", bytes.escape_ascii());
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        assert_eq!(u64::from(name.plain), plain_bits(&bytes, is_plain));
        assert_eq!(u64::from(name.digits), plain_bits(&bytes, |byte| byte.is_ascii_digit()));
        assert_eq!(u64::from(name.colons), plain_bits(&bytes, |byte| byte == b':'));
    }
}

#[test]
fn blocks_are_exact_at_every_length_and_place() {
    let mut random = Rng::with_seed(3);
    for length in 0..if cfg!(miri) { 70 } else { 200 } {
        let bytes = (0..length).map(|_| byte(&mut random)).collect::<Vec<_>>();
        for at in 0..=length {
            let seen = &bytes[at..length.min(at + BLOCK_BYTES)];
            let expected = (!seen.is_empty()).then(|| BlockMasks {
                controls: plain_bits(seen, is_control),
                colons: plain_bits(seen, |byte| byte == b':'),
            });
            assert_eq!(BlockMasks::at(best::BASELINE, &bytes, at), expected, "{at} of {length}");
        }
        assert_eq!(BlockMasks::at(best::BASELINE, &bytes, length + 1), None);
    }
}

#[test]
fn stretches_are_exact_at_every_length() {
    let mut random = Rng::with_seed(4);
    let is_allowed = |byte: &u8| byte.is_ascii_graphic() && *byte != b'#';
    for round in 0..rounds(20_000) {
        let mut bytes = vec![b'/'; 80];
        for _ in 0..round % 4 {
            let place = random.usize(..bytes.len());
            bytes[place] = byte(&mut random);
        }
        let start = random.usize(..30);
        let end = start + 1 + random.usize(..50);
        let target = &bytes[start..end];
        let mark = target.iter().position(|byte| *byte == b'?').map_or(end, |offset| start + offset);
        let has_dots = target.windows(2).any(|pair| matches!(pair, [b'/', b'.' | b'%']));
        let expected = (target.iter().all(is_allowed) && !has_dots).then_some(mark);
        let lanes_end = start + target.len().next_multiple_of(LANE_BYTES);
        let found = super::target(&bytes, start, end);
        if lanes_end <= bytes.len() {
            assert_eq!(found, expected, "{}", target.escape_ascii());
        } else {
            assert_eq!(found, None, "there is no room for the last lane");
        }
        if target.len() <= LANE_BYTES {
            let name = super::name(&bytes, start, end).expect("there is room");
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
            assert_eq!(u64::from(name.plain), plain_bits(target, is_plain));
        }
    }
    assert_eq!(super::name(&[b'a'; 17], 0, 17), None);
    assert_eq!(super::name(&[b'a'; 15], 0, 1), None);
}

/// Returns the lines and the reason for stopping, found byte by byte.
fn plain_lines(bytes: &[u8], room: usize) -> (Vec<(usize, usize, usize)>, usize, ScanStop) {
    let (mut lines, mut start) = (Vec::new(), 0);
    while let Some(end) = (start..bytes.len()).find(|at| is_control(bytes[*at])) {
        if !bytes[end..].starts_with(b"\r\n") {
            return (lines, start, ScanStop::Control(end));
        } else if end == start {
            return (lines, start, ScanStop::EmptyLine);
        } else if lines.len() == room {
            return (lines, start, ScanStop::Full);
        }
        let colon = (start..end).find(|at| bytes[*at] == b':').unwrap_or(end);
        lines.push((start, colon, end));
        start = end + 2;
    }
    (lines, start, ScanStop::Starved)
}

type Cut = fn(&[u8], &mut LineProgress, &mut [FieldSpans]) -> ScanStop;

/// Returns the splitters that this processor supports.
fn cuts() -> Vec<Cut> {
    let mut cuts: Vec<Cut> = vec![
        |bytes, progress, table| lines::lines(portable::BASELINE, bytes, progress, table),
        baseline_lines,
    ];
    #[cfg(target_arch = "x86_64")]
    if super::x86::Avx2::detect().is_some() {
        cuts.push(|bytes, progress, table| Cutter::detect().lines(bytes, progress, table));
    }
    cuts
}

#[test]
fn lines_are_cut_as_by_a_plain_loop_however_the_bytes_arrive() {
    const ROOM: usize = 12;
    let (mut random, cuts) = (Rng::with_seed(5), cuts());
    for _ in 0..rounds(20_000) {
        let mut bytes = Vec::new();
        for _ in 0..random.usize(..16) {
            bytes.extend((0..random.usize(..90)).map(|_| b"abcdefg:: \t\xff"[random.usize(..12)]));
            let end = [&b"\r\n"[..], b"\r\n", b"\r\n", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\0"];
            bytes.extend_from_slice(end[random.usize(..if bytes.len() > 200 { 8 } else { 4 })]);
        }
        let expected = plain_lines(&bytes, ROOM);
        let split = random.usize(..=bytes.len());
        for cut in &cuts {
            for first in [split, bytes.len()] {
                let mut table = vec![FieldSpans::NONE; ROOM];
                let mut progress = LineProgress::START;
                let early = cut(&bytes[..first], &mut progress, &mut table);
                if early == ScanStop::Starved {
                    progress.scanned = first;
                }
                let stop = cut(&bytes, &mut progress, &mut table);
                let lines: Vec<_> = table[..progress.lines].iter().map(FieldSpans::as_cut).collect();
                assert_eq!((lines, progress.line_start, stop), expected, "\"{}\"", bytes.escape_ascii());
            }
        }
    }
}
