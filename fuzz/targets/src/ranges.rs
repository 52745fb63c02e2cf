//! `Range` values: the selected spans lie inside the file, don't overlap, and are the bytes that the value asks for.

use shearwater_files::limits::RANGES_MAX;
use shearwater_files::range::{ByteRange, Selection, select};

use crate::grammar::is_content;

/// First bytes from here on choose one of the large lengths; smaller ones are the file's length.
const LARGE: u8 = 0xF8;
/// Lengths at the ends of the possible ones, in bytes.
const LARGE_BYTES: [u64; 8] = [0, 1, 1 << 31, 1 << 32, (1 << 32) + 1, 1 << 63, u64::MAX - 1, u64::MAX];

/// First byte, and the one after the last.
type Stretch = (u128, u128);

/// Selects spans of a file: the first byte of `input` chooses its length, the rest is the value.
pub fn run(input: &[u8]) {
    let Some((&choice, value)) = input.split_first() else { return };
    if !is_content(value) {
        return;
    }
    let len = match choice.checked_sub(LARGE) {
        Some(index) => LARGE_BYTES[usize::from(index)],
        None => u64::from(choice),
    };
    match (select(value, len), stretches(value, len.into())) {
        (Selection::Whole, None) => {}
        (Selection::Whole, Some(_)) => assert_eq!(len, 0, "valid ranges are ignored"),
        (selection, None) => panic!("{selection:?} of an invalid value"),
        (Selection::Unsatisfiable, Some(expected)) => assert_eq!(expected, [], "satisfiable"),
        (Selection::Ranges(spans), Some(expected)) => {
            assert!((1..=RANGES_MAX).contains(&spans.len()), "{} spans", spans.len());
            let is_inside = |span: &ByteRange| span.first <= span.last && span.last < len;
            assert!(spans.iter().all(is_inside), "outside of {len}: {spans:?}");
            let mut selected: Vec<Stretch> =
                spans.iter().map(|span| (span.first.into(), u128::from(span.last) + 1)).collect();
            selected.sort_unstable();
            assert!(selected.windows(2).all(|pair| pair[0].1 <= pair[1].0), "overlaps: {spans:?}");
            let sum: u128 = spans.iter().map(|span| u128::from(span.bytes())).sum();
            assert!(sum <= u128::from(len), "{sum} bytes of {len}");
            assert_eq!(joined(selected), expected, "other bytes than asked for");
        }
    }
}

/// Reads a value: the stretches that it covers, or `None` if it is invalid or has too many ranges.
fn stretches(value: &[u8], len: u128) -> Option<Vec<Stretch>> {
    let text: String = value.iter().copied().map(char::from).collect();
    let (unit, set) = text.split_once('=')?;
    let elements = set.split(',').map(|element| element.trim_matches([' ', '\t']));
    let ranges = elements.filter(|element| !element.is_empty()).map(|element| stretch(element, len));
    let ranges: Vec<Stretch> = ranges.collect::<Option<_>>()?;
    let is_valid = unit.eq_ignore_ascii_case("bytes") && (1..=RANGES_MAX).contains(&ranges.len());
    let mut covered: Vec<Stretch> = ranges.into_iter().filter(|(from, to)| from < to).collect();
    covered.sort_unstable();
    is_valid.then(|| joined(covered))
}

fn stretch(element: &str, len: u128) -> Option<Stretch> {
    match element.split_once('-')? {
        ("", suffix) => Some((len.saturating_sub(number(suffix)?), len)),
        (first, "") => Some((number(first)?, len)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some((first, len.min(last + 1)))
        }
    }
}

/// Parses a number, at most 2^64 - 1.
fn number(digits: &str) -> Option<u128> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u128::MAX).min(u128::from(u64::MAX)))
}

/// Joins sorted stretches that touch or overlap.
fn joined(stretches: Vec<Stretch>) -> Vec<Stretch> {
    let mut joined: Vec<Stretch> = Vec::new();
    for (from, to) in stretches {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}
