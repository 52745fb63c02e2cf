//! Pages of a folder's names: folders first, then by name, independent of the order on disk.
//!
//! The next page begins after the last name of this one, even if files were added or removed meanwhile.

use std::cmp::Ordering;

use shearwater_io::fs::{EntryKind, OpenError, Opened};

use crate::limits::LISTING_NAMES_MAX;
use crate::listing::text::{decoded, query_value};
use crate::now::Now;
use crate::options::Hidden;

/// Bytes of memory that a name takes besides its own.
const KEY_BYTES: u64 = 48;

/// A folder to list.
pub(crate) struct ListedFolder<'a> {
    pub(crate) opened: &'a Opened,
    /// Name beneath the root: empty, or with a trailing slash.
    pub(crate) name: &'a [u8],
    pub(crate) hidden: Hidden,
}

/// A position in the order of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListPosition {
    /// True if the directory entry is a folder. A link to a folder counts as a file here.
    is_folder: bool,
    pub(super) name: Vec<u8>,
}

impl ListPosition {
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
}

/// The names of a folder in the order of its pages, of one reading.
pub(crate) struct FolderNames {
    sorted: Vec<ListPosition>,
    is_descending: bool,
    /// True if the folder has no more names than were read.
    pub(super) are_all_read: bool,
    /// When they were read, by the worker's clock.
    pub(super) read_ms: u64,
    pub(super) bytes: u64,
}

impl FolderNames {
    /// Reads the names of an open folder, without hidden ones. Folders come first even if names are descending.
    ///
    /// # Errors
    /// If the folder can't be read.
    pub(crate) fn read(folder: &ListedFolder<'_>, is_descending: bool, now: Now) -> Result<Self, OpenError> {
        let is_shown = |name: &[u8]| {
            let is_open = folder.name.is_empty() && name == b".well-known";
            folder.hidden == Hidden::Serve || !name.starts_with(b".") || is_open
        };
        let mut names = Vec::new();
        let are_all_read = folder.opened.names(LISTING_NAMES_MAX, |name, kind| {
            if is_shown(name) {
                let is_folder = kind == Some(EntryKind::Directory);
                names.push(ListPosition { is_folder, name: name.to_vec() });
            }
        })?;
        Ok(Self::new(names, is_descending, are_all_read, now.ms))
    }

    fn new(mut names: Vec<ListPosition>, is_descending: bool, are_all_read: bool, read_ms: u64) -> Self {
        names.sort_unstable_by(|a, b| compare(a, b, is_descending));
        let bytes = names.iter().map(|key| key.name.len() as u64 + KEY_BYTES).sum();
        Self { sorted: names, is_descending, are_all_read, read_ms, bytes }
    }

    /// Number of all names.
    pub(super) const fn total(&self) -> usize {
        self.sorted.len()
    }

    /// Returns the number of names up to `after`, which need not be one of them.
    pub(crate) fn start(&self, after: &ListPosition) -> usize {
        self.sorted.partition_point(|key| compare(key, after, self.is_descending) != Ordering::Greater)
    }

    /// Returns at most `entries_max` names from `start` on.
    pub(super) fn page(&self, start: usize, entries_max: usize) -> &[ListPosition] {
        let rest = &self.sorted[start.min(self.total())..];
        &rest[..rest.len().min(entries_max)]
    }
}

fn compare(a: &ListPosition, b: &ListPosition, is_descending: bool) -> Ordering {
    let by_name = compare_names(&a.name, &b.name);
    b.is_folder.cmp(&a.is_folder).then(if is_descending { by_name.reverse() } else { by_name })
}

/// Compares names case-insensitively and numbers in them by value, then by bytes, so that only equal names are equal.
pub(super) fn compare_names(a: &[u8], b: &[u8]) -> Ordering {
    compare_naturally(a, b).then_with(|| a.cmp(b))
}

fn compare_naturally(mut a: &[u8], mut b: &[u8]) -> Ordering {
    while let ([first, after @ ..], [other, after_other @ ..]) = (a, b) {
        let order = if first.is_ascii_digit() && other.is_ascii_digit() {
            let ((number, rest), (other, rest_of_other)) = (split_number(a), split_number(b));
            (a, b) = (rest, rest_of_other);
            number.len().cmp(&other.len()).then_with(|| number.cmp(other))
        } else {
            (a, b) = (after, after_other);
            first.to_ascii_lowercase().cmp(&other.to_ascii_lowercase())
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// Splits a name after its first digits, which lose their leading zeros: then the longer number is the larger one.
fn split_number(name: &[u8]) -> (&[u8], &[u8]) {
    let end = name.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(name.len());
    let (digits, rest) = name.split_at(end);
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    (&digits[zeros..], rest)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::{FolderNames, ListPosition, compare_names};
    use crate::limits::{LISTING_NAMES_MAX, LISTINGS_KEPT_BYTES_MAX};

    #[test]
    fn caches_the_longest_names_of_a_folder() {
        let names = vec![ListPosition { is_folder: false, name: vec![b'n'; 255] }; LISTING_NAMES_MAX];
        let bytes = FolderNames::new(names, false, true, 0).bytes;
        assert!((LISTINGS_KEPT_BYTES_MAX / 2..=LISTINGS_KEPT_BYTES_MAX).contains(&bytes), "{bytes}");
    }

    #[test]
    fn sorts_numbers_by_value_and_ignores_case() {
        let sorted = [
            "",
            ".a",
            "0",
            "00",
            "01",
            "1",
            "1.txt",
            "2",
            "9a",
            "10",
            "a",
            "a1b2",
            "a1b10",
            "a02",
            "a2b",
            "a10",
            "IMG_2",
            "img_2",
            "IMG_10",
            "v1.2.9",
            "v1.2.10",
            "v18446744073709551616",
            "v118446744073709551616",
            "z",
            "~",
        ];
        let mut names: Vec<&str> = sorted.iter().rev().copied().collect();
        names.sort_unstable_by(|a, b| compare_names(a.as_bytes(), b.as_bytes()));
        assert_eq!(names, sorted);
    }

    #[test]
    fn the_order_of_names_is_total() {
        let mut random = testkit::random::Rng::with_seed(28);
        let mut name = || -> Vec<u8> {
            let len = random.usize(..6);
            (0..len).map(|_| b"0019aAbB.~\xff"[random.usize(..11)]).collect()
        };
        for _ in 0..100_000 {
            let (a, b, c) = (name(), name(), name());
            let order = compare_names(&a, &b);
            assert_eq!(order, compare_names(&b, &a).reverse(), "{a:?} {b:?}");
            assert_eq!(order == Ordering::Equal, a == b, "{a:?} {b:?}");
            if order != Ordering::Greater && compare_names(&b, &c) != Ordering::Greater {
                assert_ne!(compare_names(&a, &c), Ordering::Greater, "{a:?} {b:?} {c:?}");
            }
        }
    }

    #[test]
    fn positions_survive_a_query_with_any_bytes() {
        for (value, is_folder, name) in [
            ("a", false, &b"a"[..]),
            ("a/", true, b"a"),
            ("a%2f", true, b"a"),
            ("%41%ff+", false, b"A\xff+"),
            ("%4", false, b"%4"),
            ("%zz%41", false, b"%zzA"),
        ] {
            let key = ListPosition { is_folder, name: name.to_vec() };
            assert_eq!(ListPosition::parse(value), Some(key), "{value}");
        }
        for value in ["", "/", "%00", "a%00b/", "%00%00%00%01"] {
            assert_eq!(ListPosition::parse(value), None, "{value}");
        }
        for name in [&b"a&b=c+d#e?f%g"[..], b"\xff\n\x01", "ü/".as_bytes()] {
            let key = ListPosition { is_folder: false, name: name.to_vec() };
            let value = key.value();
            assert!(value.bytes().all(|byte| byte.is_ascii_graphic() && !b"&#+?".contains(&byte)), "{value}");
            if !name.ends_with(b"/") {
                assert_eq!(ListPosition::parse(&value), Some(key), "{value}");
            }
        }
    }
}
