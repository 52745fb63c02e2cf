//! `Range` values: what is selected lies inside the file, is never longer than it, and is what a plain reading of the value asks for.

use shearwater_files::limits::RANGES_MAX;
use shearwater_files::range::{Selection, Span, select};

/// First bytes from here on choose one of the large lengths; smaller ones are the file's length.
const LARGE: u8 = 0xF8;
/// Lengths at the ends of what a file may have, in bytes.
const LARGE_BYTES: [u64; 8] = [0, 1, 1 << 31, 1 << 32, (1 << 32) + 1, 1 << 63, u64::MAX - 1, u64::MAX];

/// Selects of a file whose length is chosen by the first byte of `input`, by the value that the rest is.
///
/// # Panics
/// Where a span leaves the file, two overlap, there are too many, or the plain reading differs.
pub fn run(input: &[u8]) {
    let Some((&choice, value)) = input.split_first() else { return };
    // The parser lets no other bytes into a field's value.
    if value.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7F) {
        return;
    }
    let len = match choice.checked_sub(LARGE) {
        Some(index) => LARGE_BYTES[usize::from(index)],
        None => u64::from(choice),
    };
    let selection = select(value, len);
    if let Selection::Spans(spans) = &selection {
        check_spans(spans, len);
    }
    let asked = asked(value);
    match (&selection, asked) {
        (Selection::Whole, None) => {}
        (Selection::Whole, Some(_)) => assert_eq!(len, 0, "good ranges are ignored"),
        (_, None) => panic!("{selection:?} of a value that breaks the grammar"),
        (Selection::Unsatisfiable, Some(ranges)) => assert_eq!(covered(&ranges, len), [], "none can be had"),
        (Selection::Spans(spans), Some(ranges)) => {
            let mut told: Vec<(u128, u128)> = spans.iter().map(ends).collect();
            told.sort_unstable();
            assert_eq!(joined(told), covered(&ranges, len), "other bytes than asked for");
        }
    }
}

fn check_spans(spans: &[Span], len: u64) {
    assert!((1..=RANGES_MAX).contains(&spans.len()), "{} spans", spans.len());
    assert!(
        spans.iter().all(|span| span.first <= span.last && span.last < len),
        "outside of {len}: {spans:?}"
    );
    let mut told: Vec<(u128, u128)> = spans.iter().map(ends).collect();
    told.sort_unstable();
    assert!(told.windows(2).all(|pair| pair[0].1 <= pair[1].0), "overlaps: {spans:?}");
    let sum: u128 = spans.iter().map(|span| u128::from(span.bytes())).sum();
    assert!(sum <= u128::from(len), "{sum} bytes of {len}");
}

/// First byte, and the one behind the last.
fn ends(span: &Span) -> (u128, u128) {
    (u128::from(span.first), u128::from(span.last) + 1)
}

/// A range as it was asked for: numbers of at most 2^64 - 1, larger ones cut down to that.
#[derive(Debug, Clone, Copy)]
enum Range {
    From(u128),
    Between(u128, u128),
    Suffix(u128),
}

/// The ranges of a value, if it follows the grammar and has no more than it may.
fn asked(value: &[u8]) -> Option<Vec<Range>> {
    let text: String = value.iter().copied().map(char::from).collect();
    let (unit, set) = text.split_once('=')?;
    let elements = set.split(',').map(|element| element.trim_matches([' ', '\t']));
    let ranges: Option<Vec<Range>> = elements.filter(|element| !element.is_empty()).map(range).collect();
    ranges.filter(|ranges| unit.eq_ignore_ascii_case("bytes") && (1..=RANGES_MAX).contains(&ranges.len()))
}

fn range(element: &str) -> Option<Range> {
    match element.split_once('-')? {
        ("", last) => Some(Range::Suffix(number(last)?)),
        (first, "") => Some(Range::From(number(first)?)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Range::Between(first, last))
        }
    }
}

fn number(digits: &str) -> Option<u128> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u128::MAX).min(u128::from(u64::MAX)))
}

/// The stretches of a file of `len` bytes that `ranges` cover: first byte and the one behind the last, in order, none touching another.
fn covered(ranges: &[Range], len: u64) -> Vec<(u128, u128)> {
    let len = u128::from(len);
    let stretch = |range: &Range| match *range {
        Range::From(first) => (first, len),
        Range::Between(first, last) => (first, len.min(last + 1)),
        Range::Suffix(bytes) => (len.saturating_sub(bytes), len),
    };
    let mut stretches: Vec<(u128, u128)> =
        ranges.iter().map(stretch).filter(|(from, to)| from < to).collect();
    stretches.sort_unstable();
    joined(stretches)
}

/// Stretches in order, those that touch or overlap made one.
fn joined(stretches: Vec<(u128, u128)>) -> Vec<(u128, u128)> {
    let mut joined: Vec<(u128, u128)> = Vec::new();
    for (from, to) in stretches {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}
