//! Numbers by text: built once at the start, then only read. One step for a text that is there, however many there are.

use crate::hash::{self, Case};

/// Of eight places three hold a text at most: the next free one is near.
const PLACES_PER_TEXT: usize = 3;

/// Numbers by text.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    case: Case,
    texts: Vec<u8>,
    /// A power of two, with free ones between the others.
    places: Box<[Place]>,
    len: usize,
    /// The length of the longest text.
    longest: usize,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    /// The upper half of the hash: the lower one says where to look.
    hash: u32,
    start: u32,
    len: u32,
    /// `FREE`, or the number.
    number: u32,
}

const FREE: Place = Place { hash: 0, start: 0, len: 0, number: u32::MAX };

impl Table {
    pub(crate) fn new(case: Case) -> Self {
        Self { case, texts: Vec::new(), places: Box::new([FREE]), len: 0, longest: 0 }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a text of this length may be there.
    #[inline]
    pub(crate) const fn may_have(&self, len: usize) -> bool {
        self.len > 0 && len <= self.longest
    }

    /// Adds a text; gives the number of the same one if it is there already, and changes nothing then.
    ///
    /// # Panics
    /// If the number is `u32::MAX`, or the texts are longer than that together.
    pub(crate) fn insert(&mut self, text: &[u8], number: u32) -> Option<u32> {
        assert!(number != FREE.number, "the number of a free place");
        if let Some(known) = self.get(text) {
            return Some(known);
        }
        if (self.len + 1) * PLACES_PER_TEXT > self.places.len() {
            self.grow();
        }
        let start = u32::try_from(self.texts.len()).expect("texts of a configuration fit");
        let len = u32::try_from(text.len()).expect("texts of a configuration fit");
        self.texts.extend_from_slice(text);
        let hash = hash::hash(text, self.case);
        self.put(hash, Place { hash: (hash >> 32) as u32, start, len, number });
        self.len += 1;
        self.longest = self.longest.max(text.len());
        None
    }

    /// The number of a text.
    #[inline]
    pub(crate) fn get(&self, text: &[u8]) -> Option<u32> {
        let hash = hash::hash(text, self.case);
        let last = self.places.len() - 1;
        let mut at = hash as usize & last;
        loop {
            let place = self.places[at & last];
            if place.number == FREE.number {
                return None;
            }
            if place.hash == (hash >> 32) as u32 && hash::is_same(self.text(place), text, self.case) {
                return Some(place.number);
            }
            at += 1;
        }
    }

    #[inline]
    fn text(&self, place: Place) -> &[u8] {
        &self.texts[place.start as usize..][..place.len as usize]
    }

    /// Into the first free place behind its own.
    fn put(&mut self, hash: u64, place: Place) {
        let last = self.places.len() - 1;
        let mut at = hash as usize & last;
        while self.places[at].number != FREE.number {
            at = (at + 1) & last;
        }
        self.places[at] = place;
    }

    fn grow(&mut self) {
        let places = vec![FREE; (self.places.len() * 2).max(4)].into_boxed_slice();
        let old = std::mem::replace(&mut self.places, places);
        for place in old.into_iter().filter(|place| place.number != FREE.number) {
            self.put(hash::hash(self.text(place), self.case), place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, Table};

    #[test]
    fn every_text_is_found_and_no_other() {
        let mut table = Table::new(Case::Differs);
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
        assert!(table.places.len() >= 2 * table.len && table.places.len() <= 8 * table.len);
    }

    #[test]
    fn case_matters_or_not() {
        for (case, found) in [(Case::Differs, None), (Case::Same, Some(1))] {
            let mut table = Table::new(case);
            table.insert(b"Example.ORG", 1);
            assert_eq!(table.get(b"example.org"), found);
        }
    }
}
