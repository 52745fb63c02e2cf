//! A hash table of texts, and its hash function, both also case-insensitive.

/// Minimum ratio of slots to texts, which keeps probe sequences short.
const SLOTS_PER_TEXT: usize = 3;

/// A hash table from texts to numbers with linear probing, built at the start and then only read.
#[derive(Debug, Clone)]
pub(crate) struct TextTable {
    case: LetterCase,
    texts: Vec<u8>,
    /// Their number is a power of two.
    slots: Box<[TextSlot]>,
    len: usize,
    /// The length of the longest text.
    longest: usize,
}

#[derive(Debug, Clone, Copy)]
struct TextSlot {
    /// The upper half of the hash; the lower half selects the slot.
    hash: u32,
    start: u32,
    len: u32,
    /// `u32::MAX` if the slot is free.
    number: u32,
}

const FREE: TextSlot = TextSlot { hash: 0, start: 0, len: 0, number: u32::MAX };

impl TextTable {
    pub(crate) fn new(case: LetterCase) -> Self {
        Self { case, texts: Vec::new(), slots: Box::new([FREE]), len: 0, longest: 0 }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether the table may have a text of this length.
    #[inline]
    pub(crate) const fn may_have(&self, len: usize) -> bool {
        self.len > 0 && len <= self.longest
    }

    /// Inserts a text. Returns its number and changes nothing, if it is present already.
    ///
    /// # Panics
    /// If the number is `u32::MAX`, or the texts are longer than that together.
    pub(crate) fn insert(&mut self, text: &[u8], number: u32) -> Option<u32> {
        assert!(number != FREE.number, "the number marks a free slot");
        if let Some(known) = self.get(text) {
            return Some(known);
        }
        if (self.len + 1) * SLOTS_PER_TEXT > self.slots.len() {
            self.grow();
        }
        let start = u32::try_from(self.texts.len()).expect("texts of a configuration fit");
        let len = u32::try_from(text.len()).expect("texts of a configuration fit");
        self.texts.extend_from_slice(text);
        let hashed = hash(text, self.case);
        self.put(hashed, TextSlot { hash: (hashed >> 32) as u32, start, len, number });
        self.len += 1;
        self.longest = self.longest.max(text.len());
        None
    }

    /// Returns the number of a text.
    #[inline]
    pub(crate) fn get(&self, text: &[u8]) -> Option<u32> {
        let hashed = hash(text, self.case);
        let last = self.slots.len() - 1;
        let mut at = hashed as usize & last;
        loop {
            let slot = self.slots[at & last];
            if slot.number == FREE.number {
                return None;
            }
            if slot.hash == (hashed >> 32) as u32 && is_same(self.text(slot), text, self.case) {
                return Some(slot.number);
            }
            at += 1;
        }
    }

    #[inline]
    fn text(&self, slot: TextSlot) -> &[u8] {
        &self.texts[slot.start as usize..][..slot.len as usize]
    }

    /// Stores a slot at the first free position of its probe sequence.
    fn put(&mut self, hash: u64, slot: TextSlot) {
        let last = self.slots.len() - 1;
        let mut at = hash as usize & last;
        while self.slots[at].number != FREE.number {
            at = (at + 1) & last;
        }
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        let slots = vec![FREE; (self.slots.len() * 2).max(4)].into_boxed_slice();
        let old = std::mem::replace(&mut self.slots, slots);
        for slot in old.into_iter().filter(|slot| slot.number != FREE.number) {
            self.put(hash(self.text(slot), self.case), slot);
        }
    }
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The case bit of ASCII letters, in eight bytes. Other bytes that it equates (`[` and `{`, `_` and DEL) are not both valid in a host.
const CASE: u64 = 0x2020_2020_2020_2020;

/// Comparison of ASCII letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LetterCase {
    /// Case-sensitive.
    Differs,
    /// Case-insensitive.
    Same,
}

impl LetterCase {
    #[inline(always)]
    const fn mask(self) -> u64 {
        match self {
            Self::Differs => 0,
            Self::Same => CASE,
        }
    }
}

/// Hashes a text. The operator chooses the texts that are inserted, so the hash needs no secret.
#[inline]
fn hash(text: &[u8], case: LetterCase) -> u64 {
    let (words, tail) = text.as_chunks::<8>();
    let start = text.len() as u64;
    let state =
        words.iter().fold(start, |state, word| mix(state ^ (u64::from_le_bytes(*word) | case.mask())));
    // The last eight bytes, some of them twice: faster than computing the length of the tail.
    let last = text.last_chunk::<8>().map_or_else(|| word_of(tail), |last| u64::from_le_bytes(*last));
    mix(state ^ (last | case.mask()))
}

/// Hashes samples of two texts, in constant time.
#[inline]
pub(crate) fn hash_samples(one: &[u8], other: &[u8]) -> u64 {
    let word = |chunk: Option<&[u8; 8]>| chunk.map_or(0, |chunk| u64::from_le_bytes(*chunk));
    let ends = match other.first_chunk::<8>() {
        Some(first) => u64::from_le_bytes(*first).rotate_left(1) ^ word(other.last_chunk()),
        None => word_of(other),
    };
    let middle = word(other[other.len() / 2..].first_chunk());
    mix(mix(word(one.first_chunk()) ^ ends) ^ middle ^ other.len() as u64)
}

/// Returns whether two texts are equal.
#[inline]
fn is_same(one: &[u8], other: &[u8], case: LetterCase) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let ((words, tail), (other_words, other_tail)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let differs = |one: u64, other: u64| (one | case.mask()) ^ (other | case.mask());
    let pairs = words.iter().zip(other_words);
    let words = pairs
        .fold(0, |any, (one, other)| any | differs(u64::from_le_bytes(*one), u64::from_le_bytes(*other)));
    let last = match (one.last_chunk::<8>(), other.last_chunk::<8>()) {
        (Some(one), Some(other)) => differs(u64::from_le_bytes(*one), u64::from_le_bytes(*other)),
        _ => differs(word_of(tail), word_of(other_tail)),
    };
    words | last == 0
}

/// Packs up to seven bytes into a number that is unique among texts of the same length.
#[inline(always)]
fn word_of(mut tail: &[u8]) -> u64 {
    let mut word = 0;
    if let Some((four, rest)) = tail.split_first_chunk::<4>() {
        word = u64::from(u32::from_le_bytes(*four));
        tail = rest;
    }
    if let Some((two, rest)) = tail.split_first_chunk::<2>() {
        word = word << 16 | u64::from(u16::from_le_bytes(*two));
        tail = rest;
    }
    tail.first().map_or(word, |&byte| word << 8 | u64::from(byte))
}

/// Mixes bits by folding a 128-bit product.
#[inline(always)]
fn mix(state: u64) -> u64 {
    let wide = u128::from(state ^ MULTIPLIER) * u128::from(MULTIPLIER);
    (wide >> 64) as u64 ^ wide as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{LetterCase, TextTable, hash, hash_samples, is_same};

    #[test]
    fn finds_every_text_and_no_other() {
        let mut table = TextTable::new(LetterCase::Differs);
        assert!(table.is_empty() && !table.may_have(0));
        assert_eq!(table.get(b""), None);
        for number in 0..2000 {
            assert_eq!(table.insert(number.to_string().as_bytes(), number), None);
        }
        assert_eq!(table.insert(b"7", 1), Some(7));
        for number in 0..4000 {
            let found = table.get(number.to_string().as_bytes());
            assert_eq!(found, (number < 2000).then_some(number), "{number}");
        }
        assert_eq!(table.get(b""), None);
        assert_eq!(table.insert(b"", 3), None);
        assert_eq!(table.get(b""), Some(3));
        assert!(table.may_have(4) && !table.may_have(5));
        assert!(table.slots.len() >= 2 * table.len && table.slots.len() <= 8 * table.len);
    }

    #[test]
    fn compares_case_as_configured() {
        for (case, found) in [(LetterCase::Differs, None), (LetterCase::Same, Some(1))] {
            let mut table = TextTable::new(case);
            table.insert(b"Example.ORG", 1);
            assert_eq!(table.get(b"example.org"), found);
        }
    }

    #[test]
    fn every_byte_changes_hash_and_equality() {
        for len in 0..40 {
            let text: Vec<u8> = (0..len).map(|at| b'a' + at as u8 % 26).collect();
            assert!(is_same(&text, &text.clone(), LetterCase::Differs));
            for at in 0..len {
                let mut other = text.clone();
                other[at] = b'.';
                assert!(
                    !is_same(&text, &other, LetterCase::Differs) && !is_same(&text, &other, LetterCase::Same)
                );
                assert_ne!(hash(&text, LetterCase::Differs), hash(&other, LetterCase::Differs));
                let mut upper = text.clone();
                upper[at].make_ascii_uppercase();
                assert!(
                    !is_same(&text, &upper, LetterCase::Differs) && is_same(&text, &upper, LetterCase::Same)
                );
                assert_eq!(hash(&text, LetterCase::Same), hash(&upper, LetterCase::Same));
            }
            assert!(!is_same(&text, &[&text[..], b"x"].concat(), LetterCase::Same));
        }
    }

    #[test]
    fn sampled_hashes_of_usual_paths_spread() {
        let paths = (0..1000).map(|number| format!("/articles/2024/{number}/index.html"));
        let hashes: HashSet<_> =
            paths.map(|path| hash_samples(b"example.org", path.as_bytes()) % 1024).collect();
        assert!(hashes.len() > 550, "{}", hashes.len());
        let hosts = (0..1000).map(|number| format!("site-{number}.example.org"));
        let hashes: HashSet<_> = hosts.map(|host| hash_samples(host.as_bytes(), b"/") % 1024).collect();
        assert!(hashes.len() > 550, "{}", hashes.len());
        assert_ne!(hash_samples(b"", b"/a"), hash_samples(b"", b"/b"));
    }

    #[test]
    fn hashes_of_similar_names_spread() {
        let low_bits = |bits: u32| {
            let hashes =
                (0..1000).map(|number| hash(format!("site-{number}.example").as_bytes(), LetterCase::Same));
            hashes.map(|hash| hash % (1 << bits)).collect::<HashSet<_>>().len()
        };
        // A random hash fills about 630 of 1024 slots.
        assert!(low_bits(10) > 550, "{}", low_bits(10));
        assert!(low_bits(32) == 1000);
    }
}
