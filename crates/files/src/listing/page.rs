//! Pages of a folder's names: folders first, then by name, independent of the order on disk.
//!
//! The next page begins after the last name of this one, even if files were added or removed meanwhile.

use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;

use super::order::compare_names;
use super::text::{decoded, query_value};
use crate::clock_cache::Evictable;

/// Bytes of memory that a name takes besides its own.
const KEY_BYTES: u64 = 48;

/// A position in the order of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    /// True if the directory entry is a folder. A link to a folder counts as a file here.
    is_folder: bool,
    name: Vec<u8>,
}

impl Key {
    pub(super) fn new(is_folder: bool, name: &[u8]) -> Self {
        Self { is_folder, name: name.to_vec() }
    }

    /// Parses the value of `after` in a query: a name, with a trailing slash for a folder. Returns `None` for invalid
    /// names.
    pub(super) fn parse(value: &str) -> Option<Self> {
        let mut name = decoded(value);
        let is_folder = name.pop_if(|last| *last == b'/').is_some();
        let can_be_name = !name.is_empty() && !name.contains(&0);
        can_be_name.then_some(Self { is_folder, name })
    }

    /// Returns the value of `after` for this position.
    pub(super) fn value(&self) -> String {
        let mut value = query_value(&self.name);
        if self.is_folder {
            value.push('/');
        }
        value
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }
}

/// The names of a folder in the order of its pages, of one reading.
pub(crate) struct Names {
    sorted: Vec<Key>,
    is_descending: bool,
    /// True if the folder has no more names than were read.
    pub(super) are_all_read: bool,
    /// When they were read, by the worker's clock.
    pub(super) read_ms: u64,
    bytes: u64,
    was_used: Cell<bool>,
}

impl Names {
    /// Sorts the names of a folder. Folders come first even if names are descending.
    pub(super) fn new(mut names: Vec<Key>, is_descending: bool, are_all_read: bool, read_ms: u64) -> Self {
        names.sort_unstable_by(|a, b| compare(a, b, is_descending));
        let bytes = names.iter().map(|key| key.name.len() as u64 + KEY_BYTES).sum();
        Self { sorted: names, is_descending, are_all_read, read_ms, bytes, was_used: Cell::new(false) }
    }

    /// Number of all names.
    pub(super) const fn total(&self) -> usize {
        self.sorted.len()
    }

    /// Returns the number of names up to `after`, which need not be one of them.
    pub(super) fn start(&self, after: &Key) -> usize {
        self.sorted.partition_point(|key| compare(key, after, self.is_descending) != Ordering::Greater)
    }

    /// Returns at most `entries_max` names from `start` on.
    pub(super) fn page(&self, start: usize, entries_max: usize) -> &[Key] {
        let rest = &self.sorted[start.min(self.total())..];
        &rest[..rest.len().min(entries_max)]
    }
}

impl Evictable for Rc<Names> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn was_used(&self) -> &Cell<bool> {
        &self.was_used
    }
}

fn compare(a: &Key, b: &Key, is_descending: bool) -> Ordering {
    let by_name = compare_names(&a.name, &b.name);
    b.is_folder.cmp(&a.is_folder).then(if is_descending { by_name.reverse() } else { by_name })
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::{Key, Names};
    use crate::clock_cache::Evictable;
    use crate::limits::{LISTING_NAMES_KEPT_BYTES_MAX, LISTING_NAMES_MAX};

    #[test]
    fn the_longest_names_of_a_folder_can_be_kept() {
        let names = vec![Key::new(false, &[b'n'; 255]); LISTING_NAMES_MAX];
        let bytes = Rc::new(Names::new(names, false, true, 0)).bytes();
        assert!(
            (LISTING_NAMES_KEPT_BYTES_MAX / 2..=LISTING_NAMES_KEPT_BYTES_MAX).contains(&bytes),
            "{bytes}"
        );
    }

    #[test]
    fn consecutive_pages_cover_all_names_in_order() {
        for is_descending in [false, true] {
            // 17 is prime: each name occurs once, in scrambled order.
            let names: Vec<(bool, String)> =
                (1..17).map(|number| (number % 5 == 0, format!("{:02}", number * 7 % 17))).collect();
            let mut sorted = names.clone();
            sorted.sort_by(|a, b| {
                b.0.cmp(&a.0).then(if is_descending { b.1.cmp(&a.1) } else { a.1.cmp(&b.1) })
            });
            let keys = names.iter().map(|(is_folder, name)| Key::new(*is_folder, name.as_bytes())).collect();
            let names = Names::new(keys, is_descending, true, 0);
            let (mut listed, mut start) = (Vec::new(), 0);
            loop {
                let page = names.page(start, 5);
                let Some(last) = page.last() else { break };
                assert_eq!(Key::parse(&last.value()).as_ref(), Some(last));
                start = names.start(last);
                listed.extend(
                    page.iter()
                        .map(|key| (key.is_folder, String::from_utf8(key.name.clone()).expect("digits"))),
                );
                assert_eq!(start, listed.len());
            }
            assert_eq!(names.page(names.total() + 1, 5), []);
            assert_eq!(listed, sorted);
        }
    }

    #[test]
    fn keys_survive_a_query_with_any_bytes() {
        for (value, is_folder, name) in [
            ("a", false, &b"a"[..]),
            ("a/", true, b"a"),
            ("a%2f", true, b"a"),
            ("%41%ff+", false, b"A\xff+"),
            ("%4", false, b"%4"),
            ("%zz%41", false, b"%zzA"),
        ] {
            let key = Key { is_folder, name: name.to_vec() };
            assert_eq!(Key::parse(value), Some(key), "{value}");
        }
        for value in ["", "/", "%00", "a%00b/", "%00%00%00%01"] {
            assert_eq!(Key::parse(value), None, "{value}");
        }
        for name in [&b"a&b=c+d#e?f%g"[..], b"\xff\n\x01", "ü/".as_bytes()] {
            let key = Key { is_folder: false, name: name.to_vec() };
            let value = key.value();
            assert!(value.bytes().all(|byte| byte.is_ascii_graphic() && !b"&#+?".contains(&byte)), "{value}");
            if !name.ends_with(b"/") {
                assert_eq!(Key::parse(&value), Some(key), "{value}");
            }
        }
    }
}
