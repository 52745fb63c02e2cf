//! Properties of every `Range`, compared with a model that marks the requested bytes.

use shearwater_files::limits::RANGES_MAX;
use shearwater_files::range::{ByteRange, Selection, select};

/// Pseudorandom numbers from a seed (xorshift), the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn one_of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.below(texts.len() as u64) as usize]
    }
}

/// Returns a valid range and the bytes that it requests of a file of `len`.
fn range(numbers: &mut Numbers, len: u64) -> (String, Vec<u64>) {
    let first = numbers.below(len + 4);
    match numbers.below(3) {
        0 => (format!("-{first}"), (len.saturating_sub(first)..len).collect()),
        1 => (format!("{first}-"), (first..len).collect()),
        _ => {
            let last = first + numbers.below(8);
            (format!("{first}-{last}"), (first..len.min(last + 1)).collect())
        }
    }
}

fn assert_sound(spans: &[ByteRange], len: u64, shown: &str) {
    assert!((1..=RANGES_MAX).contains(&spans.len()), "{shown}");
    assert!(spans.iter().all(|span| span.first <= span.last && span.last < len), "{shown}");
    assert!(spans.iter().map(|span| u128::from(span.bytes())).sum::<u128>() <= u128::from(len), "{shown}");
    for (index, span) in spans.iter().enumerate() {
        let apart = |other: &ByteRange| span.last < other.first || other.last < span.first;
        assert!(spans[index + 1..].iter().all(apart), "{shown}");
    }
}

#[test]
fn the_spans_are_the_bytes_that_are_asked_for_in_their_order() {
    let mut numbers = Numbers(0x5eed);
    let mut seen = [0; 3];
    for _ in 0..200_000 {
        let len = 1 + numbers.below(40);
        let count = 1 + numbers.below(6);
        let ranges: Vec<_> = (0..count).map(|_| range(&mut numbers, len)).collect();
        let mut value = String::from("bytes=");
        for (text, _) in &ranges {
            value += text;
            value += numbers.one_of(&[",", ", ", "\t,", ",,", " , ,"]);
        }
        let mut wanted = vec![false; len as usize];
        for &byte in ranges.iter().flat_map(|(_, bytes)| bytes) {
            wanted[byte as usize] = true;
        }
        match select(value.as_bytes(), len) {
            Selection::Whole => panic!("{value:?} is valid"),
            Selection::Unsatisfiable => {
                seen[0] += 1;
                assert!(!wanted.contains(&true), "{value:?} of {len}");
            }
            Selection::Ranges(spans) => {
                seen[1] += 1;
                assert_sound(&spans, len, &value);
                let is_in = |byte: u64| spans.iter().any(|span| (span.first..=span.last).contains(&byte));
                let got: Vec<_> = (0..len).map(is_in).collect();
                assert_eq!(got, wanted, "{value:?} of {len}");
                // Position of the first request for each span.
                let place = |span: &ByteRange| {
                    ranges.iter().position(|(_, bytes)| {
                        bytes.iter().any(|byte| (span.first..=span.last).contains(byte))
                    })
                };
                assert!(spans.is_sorted_by_key(place), "{value:?} of {len}");
                seen[2] += usize::from(spans.len() > 1);
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 1_000), "{seen:?}");
}

#[test]
fn whatever_is_sent_the_response_is_sound() {
    const ALPHABET: &[&str] =
        &["bytes=", "0", "1", "9", "18446744073709551615", "-", ",", " ", "x", "=", "\0"];
    let mut numbers = Numbers(0xbad5eed);
    let mut spans_seen = 0;
    for _ in 0..200_000 {
        let mut value = String::from(numbers.one_of(&["bytes=", "Bytes=", ""]));
        for _ in 0..numbers.below(12) {
            value += numbers.one_of(ALPHABET);
        }
        for len in [0, 1, 2, 100, u64::MAX] {
            if let Selection::Ranges(spans) = select(value.as_bytes(), len) {
                assert_sound(&spans, len, &value);
                spans_seen += 1;
            }
        }
    }
    assert!(spans_seen > 1_000, "{spans_seen}");
}
