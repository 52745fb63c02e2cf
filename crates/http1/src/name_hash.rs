//! From a field name to its number: a perfect hash over a name's words, to which case makes no difference.

use crate::Known;

const WORD_BYTES: usize = size_of::<u64>();
/// The longest name that is looked for, in bytes: four words cover it.
const NAME_BYTES_MAX: usize = 4 * WORD_BYTES;
/// The longest name that the outer words cover.
const OUTER_BYTES: usize = 2 * WORD_BYTES;

const SLOT_COUNT: usize = 256;
/// Found by trial; the assertion says whether it still fits when a name is added.
const MULTIPLIER: u64 = 0x550D_40DD_C255_7035;
static TABLE: Table = {
    assert!(is_perfect(), "two known names share a slot: try other odd multipliers");
    Table { slots: slots(), patterns: patterns(), inner: inners() }
};

struct Table {
    slots: [Option<Known>; SLOT_COUNT],
    patterns: [Pattern; Known::COUNT],
    inner: [Inner; Known::COUNT],
}

/// The first and the last eight bytes of a name. Of a shorter name both words have all: `first` at its low end, `last` at its high
/// end, with zeros beside it.
#[derive(Clone, Copy)]
struct Words {
    first: u64,
    last: u64,
}

/// A known name, made ready for comparison: as usually spelt, with the bits that all spellings share. One line of the processor's cache
/// for each: between two requests the kernel has used most of them.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Pattern {
    outer: Words,
    outer_mask: Words,
    len: usize,
}

/// What stands between the outer words of a known name of more than 16 bytes, likewise.
#[derive(Clone, Copy)]
struct Inner {
    words: Words,
    mask: Words,
}

/// The known name that `name` spells, in any case.
pub(crate) fn find(name: &[u8]) -> Option<Known> {
    find_by(words(name), name.len(), |number| is_like_within(name, number))
}

/// The known name that stands at `start..end` of `bytes`. Quicker than [`find`] where there are eight bytes behind `start` and
/// before `end`, whatever they are.
#[inline(always)]
pub(crate) fn find_at(bytes: &[u8], start: usize, end: usize) -> Option<Known> {
    let first = bytes.get(start..start + WORD_BYTES).and_then(<[u8]>::first_chunk);
    let last = bytes.get(end.wrapping_sub(WORD_BYTES)..end).and_then(<[u8]>::first_chunk);
    let (Some(first), Some(last)) = (first, last) else { return find(&bytes[start..end]) };
    let len = end - start;
    // An empty name leaves its words as they are: they begin with the colon behind it, as no name does.
    let beside = WORD_BYTES.saturating_sub(len) as u32 * u8::BITS;
    let first = u64::from_le_bytes(*first).wrapping_shl(beside).wrapping_shr(beside);
    let last = u64::from_le_bytes(*last).wrapping_shr(beside).wrapping_shl(beside);
    find_by(Words { first, last }, len, |number| is_like_within(&bytes[start..end], number))
}

#[inline(always)]
fn find_by(outer: Words, len: usize, is_like_within: impl Fn(Known) -> bool) -> Option<Known> {
    let known = TABLE.slots[slot(outer)]?;
    let pattern = &TABLE.patterns[known as usize];
    let is_same = is_like(outer, pattern.outer, pattern.outer_mask)
        && len == pattern.len
        && (len <= OUTER_BYTES || is_like_within(known));
    is_same.then_some(known)
}

/// Whether a name of more than 16 bytes spells `known` between its outer words too.
#[inline(never)]
fn is_like_within(name: &[u8], known: Known) -> bool {
    let usual = &TABLE.inner[known as usize];
    is_like(inner(name), usual.words, usual.mask)
}

#[inline(always)]
fn is_like(words: Words, usual: Words, mask: Words) -> bool {
    ((words.first ^ usual.first) & mask.first) | ((words.last ^ usual.last) & mask.last) == 0
}

/// The outer words.
const fn words(name: &[u8]) -> Words {
    match (name.first_chunk(), name.last_chunk()) {
        (Some(first), Some(last)) => {
            Words { first: u64::from_le_bytes(*first), last: u64::from_le_bytes(*last) }
        }
        _ => words_of_short(name),
    }
}

const fn words_of_short(name: &[u8]) -> Words {
    let (mut first, mut last) = (0, 0);
    let mut index = 0;
    while index < name.len() {
        first |= (name[index] as u64) << (u8::BITS * index as u32);
        last = last >> u8::BITS | (name[index] as u64) << (u64::BITS - u8::BITS);
        index += 1;
    }
    Words { first, last }
}

/// The words of what stands between the outer words of a name of more than 16 bytes.
const fn inner(name: &[u8]) -> Words {
    if name.len() <= OUTER_BYTES {
        return Words { first: 0, last: 0 };
    }
    let (_, behind_first) = name.split_at(WORD_BYTES);
    let (between, _) = behind_first.split_at(behind_first.len() - WORD_BYTES);
    words(between)
}

const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; WORD_BYTES])
}

/// Bit 5 tells capitals from small letters: neither word's counts.
#[inline(always)]
const fn slot(words: Words) -> usize {
    let mixed = (words.first ^ (words.last >> 1)) & splat(!0x30);
    (mixed.wrapping_mul(MULTIPLIER) >> (u64::BITS - SLOT_COUNT.ilog2())) as usize
}

const fn slots() -> [Option<Known>; SLOT_COUNT] {
    let mut slots = [None; SLOT_COUNT];
    let mut index = 0;
    while index < Known::COUNT {
        let known = Known::all()[index];
        slots[slot(words(known.name().as_bytes()))] = Some(known);
        index += 1;
    }
    slots
}

const fn is_perfect() -> bool {
    let slots = slots();
    let mut index = 0;
    while index < Known::COUNT {
        match slots[slot(words(Known::all()[index].name().as_bytes()))] {
            Some(known) if known as usize == index => index += 1,
            _ => return false,
        }
    }
    true
}

const fn patterns() -> [Pattern; Known::COUNT] {
    let mut patterns = [pattern(Known::all()[0]); Known::COUNT];
    let mut index = 0;
    while index < Known::COUNT {
        patterns[index] = pattern(Known::all()[index]);
        index += 1;
    }
    patterns
}

const fn pattern(known: Known) -> Pattern {
    let name = known.name().as_bytes();
    assert!(name.len() <= NAME_BYTES_MAX, "a known name is longer than names are looked for");
    let outer = words(name);
    Pattern { outer, outer_mask: mask(outer), len: name.len() }
}

const fn inners() -> [Inner; Known::COUNT] {
    let nothing = Words { first: 0, last: 0 };
    let mut inners = [Inner { words: nothing, mask: nothing }; Known::COUNT];
    let mut index = 0;
    while index < Known::COUNT {
        let words = inner(Known::all()[index].name().as_bytes());
        inners[index] = Inner { words, mask: mask(words) };
        index += 1;
    }
    inners
}

const fn mask(words: Words) -> Words {
    Words { first: !case_bits(words.first), last: !case_bits(words.last) }
}

/// Bit 5 of the letters: known names have letters and hyphens only, and bit 6 tells them apart.
const fn case_bits(word: u64) -> u64 {
    (word & splat(0x40)) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_known_name_once() {
        assert!(is_perfect());
        let (slots, patterns, inners) = (slots(), patterns(), inners());
        assert_eq!(slots, TABLE.slots);
        assert_eq!(slots.iter().flatten().count(), Known::COUNT);
        for ((known, pattern), within) in Known::all().iter().zip(&patterns).zip(&inners) {
            let (outer, inner) = (words(known.name().as_bytes()), inner(known.name().as_bytes()));
            assert!(is_like(outer, pattern.outer, pattern.outer_mask), "{known:?}");
            assert!(is_like(inner, within.words, within.mask), "{known:?}");
            assert_eq!(pattern.len, known.name().len());
        }
    }

    /// Each known name and each with one byte another, in both cases, at the start and at the end of a head and within.
    #[test]
    fn a_name_is_the_same_wherever_it_stands() {
        for known in Known::all() {
            for place in 0..=known.name().len() {
                for byte in *b"\0\r-_aA" {
                    let mut name = known.name().to_ascii_lowercase().into_bytes();
                    if let Some(other) = name.get_mut(place) {
                        *other = byte;
                    }
                    let expected = name.eq_ignore_ascii_case(known.name().as_bytes()).then_some(*known);
                    for (before, behind) in
                        [("", ""), ("a\r\n", ":"), ("12345678", "12345678"), ("", ": long enough")]
                    {
                        let head = [before.as_bytes(), &name, behind.as_bytes()].concat();
                        let found = find_at(&head, before.len(), before.len() + name.len());
                        assert_eq!((found, find(&name)), (expected, expected), "{}", head.escape_ascii());
                    }
                }
            }
        }
        assert_eq!((find(b""), find_at(b"12345678:12345678", 8, 8)), (None, None));
    }
}
