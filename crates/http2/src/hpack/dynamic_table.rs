//! The dynamic table (RFC 7541 2.3.2 and 4): the newest fields, within a bound in bytes.

use std::collections::VecDeque;

use crate::limits::HEADER_TABLE_BYTES_MAX;

/// Size of an entry beside its name and value (RFC 7541 4.1).
const ENTRY_OVERHEAD_BYTES: usize = 32;

/// A dynamic table. Allocates nothing before its first entry, and at most 4 KiB of text and 2 KiB of entries.
#[derive(Debug)]
pub(super) struct DynamicTable {
    /// Text of the entries from oldest to newest, name before value; those before the oldest are evicted.
    text: Vec<u8>,
    /// Oldest first.
    entries: VecDeque<Entry>,
    /// Size of all entries (RFC 7541 4.1).
    size: usize,
    size_max: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u16,
    name_len: u16,
    value_len: u16,
    hash: u16,
}

impl Entry {
    fn size(self) -> usize {
        usize::from(self.name_len) + usize::from(self.value_len) + ENTRY_OVERHEAD_BYTES
    }
}

impl DynamicTable {
    pub(super) fn new() -> Self {
        Self { text: Vec::new(), entries: VecDeque::new(), size: 0, size_max: HEADER_TABLE_BYTES_MAX }
    }

    /// Returns its allocated memory in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.text.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// Frees the memory that no entry uses.
    pub(super) fn trim(&mut self) {
        self.compact();
        self.text.shrink_to_fit();
        self.entries.shrink_to_fit();
    }

    pub(super) fn size_max(&self) -> usize {
        self.size_max
    }

    /// Sets the bound, at most `HEADER_TABLE_BYTES_MAX`, and evicts what exceeds it (RFC 7541 4.3).
    pub(super) fn set_size_max(&mut self, size_max: usize) {
        self.size_max = size_max;
        self.evict_to(size_max);
    }

    /// Returns name and value of an entry; 0 is the newest.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let place = self.entries.len().checked_sub(index)?.checked_sub(1)?;
        Some(self.text_of(self.entries[place]))
    }

    fn text_of(&self, entry: Entry) -> (&[u8], &[u8]) {
        let start = usize::from(entry.start);
        let text = &self.text[start..start + usize::from(entry.name_len) + usize::from(entry.value_len)];
        text.split_at(entry.name_len.into())
    }

    /// Returns the index of the newest entry with this name and value.
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> Option<usize> {
        let hash = hash(value);
        let is_same = |entry: &Entry| entry.hash == hash && self.text_of(*entry) == (name, value);
        self.entries.iter().rev().position(is_same)
    }

    /// Inserts a field as the newest; evicts older ones, or all if it is larger than the table (RFC 7541 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let text_len = name.len() + value.len();
        if self.make_room(text_len) {
            let start = self.text.len();
            if start + text_len > self.text.capacity() {
                let doubled = (2 * self.text.capacity()).clamp(start + text_len, HEADER_TABLE_BYTES_MAX);
                self.text.reserve_exact(doubled - start);
            }
            self.text.extend_from_slice(name);
            self.text.extend_from_slice(value);
            self.push(start, name.len(), value);
        }
    }

    fn push(&mut self, start: usize, name_len: usize, value: &[u8]) {
        // The table's bound keeps all three within 16 bits.
        let entry = Entry {
            start: start as u16,
            name_len: name_len as u16,
            value_len: value.len() as u16,
            hash: hash(value),
        };
        self.size += entry.size();
        self.entries.push_back(entry);
    }

    /// Evicts entries until there is room for one with so much text. Returns false if it is too large.
    fn make_room(&mut self, text_len: usize) -> bool {
        let size = text_len + ENTRY_OVERHEAD_BYTES;
        if size > self.size_max {
            self.evict_to(0);
            return false;
        }
        self.evict_to(self.size_max - size);
        if self.text.len() + text_len > HEADER_TABLE_BYTES_MAX {
            self.compact();
        }
        true
    }

    fn evict_to(&mut self, size_max: usize) {
        while self.size > size_max
            && let Some(entry) = self.entries.pop_front()
        {
            self.size -= entry.size();
        }
        if self.entries.is_empty() {
            self.text.clear();
        }
    }

    /// Removes the text of evicted entries.
    fn compact(&mut self) {
        let Some(first) = self.entries.front().map(|entry| entry.start) else { return };
        self.text.drain(..usize::from(first));
        for entry in &mut self.entries {
            entry.start -= first;
        }
    }
}

/// Returns a hash of a value, to compare few entries: nobody but us chooses what our encoder inserts.
fn hash(value: &[u8]) -> u16 {
    let ends = |bytes: &[u8]| bytes.iter().fold(0u16, |hash, &byte| hash.rotate_left(5) ^ u16::from(byte));
    ends(&value[value.len().saturating_sub(16)..]) ^ value.len() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evicts_the_oldest() {
        let mut table = DynamicTable::new();
        assert_eq!(table.held_bytes(), 0);
        table.set_size_max(3 * 34);
        for name in [b"a", b"b", b"c", b"d"] {
            table.insert(name, b"1");
        }
        assert_eq!(table.get(0), Some((&b"d"[..], &b"1"[..])));
        assert_eq!(table.get(2), Some((&b"b"[..], &b"1"[..])));
        assert_eq!((table.get(3), table.get(usize::MAX)), (None, None));
        assert_eq!(
            (table.find(b"c", b"1"), table.find(b"a", b"1"), table.find(b"c", b"2")),
            (Some(1), None, None)
        );
        table.set_size_max(34);
        assert_eq!((table.find(b"d", b"1"), table.find(b"c", b"1")), (Some(0), None));
        table.insert(&[b'x'; 40], b"");
        assert_eq!((table.get(0), table.size), (None, 0));
    }

    /// A table under any sequence of operations equals a plain list.
    #[test]
    fn equals_a_list() {
        let mut random = testkit::random::part(1, 9);
        let mut table = DynamicTable::new();
        let mut list: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let size = |list: &[(Vec<u8>, Vec<u8>)]| {
            list.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>()
        };
        let mut size_max = HEADER_TABLE_BYTES_MAX;
        for _ in 0..20_000 {
            if random.u8(..) == 0 {
                size_max = random.usize(..=HEADER_TABLE_BYTES_MAX);
                table.set_size_max(size_max);
            } else {
                let value = vec![random.u8(..); random.usize(..120)];
                let name = vec![random.u8(..); random.usize(..60)];
                table.insert(&name, &value);
                list.insert(0, (name, value));
            }
            while size(&list) > size_max {
                list.pop();
            }
            assert_eq!(table.size, size(&list));
            let index = random.usize(..=list.len());
            let expected = list.get(index).map(|(name, value)| (&name[..], &value[..]));
            assert_eq!(table.get(index), expected);
            assert!(table.held_bytes() <= HEADER_TABLE_BYTES_MAX + 128 * size_of::<Entry>());
        }
        table.trim();
        assert!(table.text.len() <= table.size);
    }
}
