//! Selection of one page of a folder's names: folders first, then by name. The order on disk makes no difference. The next page begins after the last
//! name of this one, even if files were added or removed meanwhile.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::order::compare_names;
use super::text::{decoded, query_value};

/// A position in the order of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    /// True if the directory entry is a folder. A link to a folder counts as a file here.
    is_folder: bool,
    name: Vec<u8>,
}

impl Key {
    /// Parses the value of `after` in a query: a name, with a trailing slash for a folder. Returns `None` for what can't be a name.
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

    pub(super) const fn is_folder(&self) -> bool {
        self.is_folder
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }
}

/// Collects the first names after a position out of all names of a folder.
pub(super) struct Page<'a> {
    after: Option<&'a Key>,
    is_descending: bool,
    entries_max: usize,
    /// A bounded heap with the last name on top.
    first: BinaryHeap<Ranked>,
    /// Number of names before the page.
    pub(super) before: usize,
    /// Number of all names offered.
    pub(super) total: usize,
}

/// A key with its order.
struct Ranked {
    key: Key,
    is_descending: bool,
}

impl<'a> Page<'a> {
    /// Creates a page of `entries_max` names after `after`. Folders come first even if names are descending.
    pub(super) fn new(after: Option<&'a Key>, is_descending: bool, entries_max: usize) -> Self {
        Self { after, is_descending, entries_max, first: BinaryHeap::new(), before: 0, total: 0 }
    }

    /// Adds a name if it belongs to the page so far.
    pub(super) fn offer(&mut self, is_folder: bool, name: &[u8]) {
        self.total += 1;
        let is_descending = self.is_descending;
        let is_behind = |key: &Key| {
            compare((is_folder, name), (key.is_folder, &key.name), is_descending) == Ordering::Greater
        };
        if self.after.is_some_and(|after| !is_behind(after)) {
            self.before += 1;
            return;
        }
        let ranked = || Ranked { key: Key { is_folder, name: name.to_vec() }, is_descending };
        if self.first.len() < self.entries_max {
            self.first.push(ranked());
        } else if let Some(mut last) = self.first.peek_mut().filter(|last| !is_behind(&last.key)) {
            *last = ranked();
        }
    }

    /// Returns the names of the page in order.
    pub(super) fn into_keys(self) -> Vec<Key> {
        self.first.into_sorted_vec().into_iter().map(|ranked| ranked.key).collect()
    }
}

fn compare(a: (bool, &[u8]), b: (bool, &[u8]), is_descending: bool) -> Ordering {
    let by_name = compare_names(a.1, b.1);
    b.0.cmp(&a.0).then(if is_descending { by_name.reverse() } else { by_name })
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (&self.key, &other.key);
        compare((a.is_folder, &a.name), (b.is_folder, &b.name), self.is_descending)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

#[cfg(test)]
mod tests {
    use super::{Key, Page};

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
            let (mut listed, mut after) = (Vec::new(), None);
            loop {
                let mut page = Page::new(after.as_ref(), is_descending, 5);
                names.iter().for_each(|(is_folder, name)| page.offer(*is_folder, name.as_bytes()));
                assert_eq!((page.before, page.total), (listed.len(), names.len()));
                let keys = page.into_keys();
                let Some(last) = keys.last() else { break };
                assert_eq!(Key::parse(&last.value()).as_ref(), Some(last));
                after = Some(last.clone());
                listed.extend(
                    keys.into_iter().map(|key| (key.is_folder, String::from_utf8(key.name).expect("digits"))),
                );
            }
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
