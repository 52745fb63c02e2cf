//! Parsing of the `Range` field (RFC 9110 section 14). A pure function.

use crate::limits::RANGES_MAX;

/// A range of bytes in a file, never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte.
    pub first: u64,
    /// Last byte, inclusive.
    pub last: u64,
}

impl ByteRange {
    /// Returns the length in bytes, at least 1.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.last - self.first + 1
    }

    const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    fn union(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// Parts of a file that a `Range` selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The whole file: the field is absent or ignored (RFC 9110 section 14.2).
    Whole,
    /// No range contains a byte of the file (RFC 9110 section 15.5.17).
    Unsatisfiable,
    /// At least one and at most [`RANGES_MAX`] ranges that don't overlap: together they are never longer than the file.
    Ranges(Vec<ByteRange>),
}

/// Evaluates the value of a `Range` field for a file of `len` bytes.
///
/// Ignores values with another unit than bytes, syntax errors or more than [`RANGES_MAX`] ranges. Ignores any value for
/// an empty file. Merges overlapping ranges, in the position of the first one. Otherwise keeps the requested order, and
/// skips ranges beyond the file's end (RFC 9110 section 15.3.7.2).
///
/// ```
/// use shearwater_files::range::{Selection, ByteRange, select};
///
/// assert_eq!(select(b"bytes=2-4", 10), Selection::Ranges(vec![ByteRange { first: 2, last: 4 }]));
/// assert_eq!(select(b"bytes=10-", 10), Selection::Unsatisfiable);
/// assert_eq!(select(b"lines=2-4", 10), Selection::Whole);
/// ```
#[must_use]
pub fn select(value: &[u8], len: u64) -> Selection {
    let Some(set) = byte_ranges(value).filter(|_| len > 0) else { return Selection::Whole };
    let mut ranges = Vec::new();
    let mut count = 0;
    for element in set.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        // Empty elements of a list are allowed (RFC 9110 section 5.6.1.2).
        if element.is_empty() {
            continue;
        }
        count += 1;
        let Some(range) = RequestedRange::parse(element).filter(|_| count <= RANGES_MAX) else {
            return Selection::Whole;
        };
        if let Some(range) = range.within(len) {
            add(&mut ranges, range);
        }
    }
    match (count, ranges.is_empty()) {
        (0, _) => Selection::Whole,
        (_, true) => Selection::Unsatisfiable,
        (_, false) => Selection::Ranges(ranges),
    }
}

/// Returns the set of ranges, if the unit is bytes, case-insensitively (RFC 9110 section 14.1).
fn byte_ranges(value: &[u8]) -> Option<&[u8]> {
    let (unit, set) = value.split_at_checked(b"bytes=".len())?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(set)
}

/// A range as requested (RFC 9110 section 14.1.1).
#[derive(Debug, Clone, Copy)]
enum RequestedRange {
    /// First and last byte; an open range ends at the largest number.
    Between(u64, u64),
    /// Number of bytes at the end.
    Suffix(u64),
}

impl RequestedRange {
    fn parse(spec: &[u8]) -> Option<Self> {
        let dash = spec.iter().position(|&byte| byte == b'-')?;
        let (first, last) = (&spec[..dash], &spec[dash + 1..]);
        if first.is_empty() {
            return number(last).map(Self::Suffix);
        }
        let first = number(first)?;
        let last = if last.is_empty() { u64::MAX } else { number(last)? };
        (first <= last).then_some(Self::Between(first, last))
    }

    /// Clips the range to a file that isn't empty.
    fn within(self, len: u64) -> Option<ByteRange> {
        match self {
            Self::Between(first, last) => (first < len).then(|| ByteRange { first, last: last.min(len - 1) }),
            Self::Suffix(0) => None,
            Self::Suffix(bytes) => Some(ByteRange { first: len.saturating_sub(bytes), last: len - 1 }),
        }
    }
}

/// Parses a number of any length, saturating.
fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let append = |number: u64, digit: &u8| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    is_number.then(|| digits.iter().fold(0, append))
}

/// Adds a range and merges overlapping ones into it, in the position of the first. Each round but the last removes one.
fn add(ranges: &mut Vec<ByteRange>, mut range: ByteRange) {
    let mut place = ranges.len();
    while let Some(found) = ranges.iter().position(|other| other.overlaps(range)) {
        range = range.union(ranges.remove(found));
        place = place.min(found);
    }
    ranges.insert(place, range);
}

#[cfg(test)]
mod tests {
    use super::{Selection, select};
    use crate::limits::RANGES_MAX;

    /// Formats ranges as `first-last`; `*` if unsatisfiable, empty if ignored.
    fn selected(value: &str, len: u64) -> String {
        match select(value.as_bytes(), len) {
            Selection::Whole => String::new(),
            Selection::Unsatisfiable => "*".to_owned(),
            Selection::Ranges(ranges) => {
                let texts = ranges.iter().map(|range| format!("{}-{}", range.first, range.last));
                texts.collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn selects_each_form_of_range() {
        for (value, ranges) in [
            ("bytes=0-0", "0-0"),
            ("bytes=0-", "0-99"),
            ("bytes=0-99", "0-99"),
            ("bytes=0-100", "0-99"),
            ("bytes=99-", "99-99"),
            ("bytes=007-0010", "7-10"),
            ("bytes=-1", "99-99"),
            ("bytes=-100", "0-99"),
            ("bytes=-1000", "0-99"),
            ("BYTES=1-2", "1-2"),
            ("bytes=50-99999999999999999999999", "50-99"),
            ("bytes=-99999999999999999999999", "0-99"),
            ("bytes=100-", "*"),
            ("bytes=100-200", "*"),
            ("bytes=-0", "*"),
            ("bytes=99999999999999999999999-", "*"),
            ("bytes=200-,-0,300-400", "*"),
            // Several: those beyond the end are skipped, overlapping ones are merged, the order is the client's.
            ("bytes=0-1,4-5", "0-1 4-5"),
            ("bytes=,0-1 ,\t, 4-5,", "0-1 4-5"),
            ("bytes=4-5,0-1", "4-5 0-1"),
            ("bytes=0-1,2-3", "0-1 2-3"),
            ("bytes=0-1,100-,-1", "0-1 99-99"),
            ("bytes=0-10,5-20", "0-20"),
            ("bytes=0-10,50-60,5-20", "0-20 50-60"),
            ("bytes=50-60,0-10,5-55", "0-60"),
            ("bytes=90-,10-20,-5", "90-99 10-20"),
            ("bytes=1-1,1-1,1-1", "1-1"),
            ("bytes=0-0,0-", "0-99"),
        ] {
            assert_eq!(selected(value, 100), ranges, "{value}");
        }
    }

    #[test]
    fn ignores_invalid_ranges() {
        const INVALID: &str = "bytes bytes= bytes=, bytes=- bytes=--1 bytes=1 bytes=a-b bytes=1-b bytes=2-1 \
            bytes=0-1,2-1 bytes=0-1;2-3 bytes=+0-1 bytes=0x0-1 bytes=1-2-3 byte=0-1 seconds=0-1 \
            bytes:0-1 bytes=0-1,x none";
        let others = [
            "",
            "bytes= , ",
            "bytes=0-1 2-3",
            "bytes=0 - 1",
            "bytes =0-1",
            " bytes=0-1",
            "bytes=0-1\0",
            "bytes=\u{663}-",
            "bytes 0-1/100",
        ];
        for value in INVALID.split_whitespace().chain(others) {
            assert_eq!(selected(value, 100), "", "{value}");
        }
        for value in ["bytes=0-", "bytes=-1", "bytes=0-0", "bytes=5-"] {
            assert_eq!(selected(value, 0), "", "an empty file has no ranges: {value}");
        }
    }

    #[test]
    fn ignores_more_ranges_than_the_limit() {
        let ranges = |count: usize| {
            let texts: Vec<_> = (0..count).map(|number| format!("{0}-{0}", number * 2)).collect();
            format!("bytes={}", texts.join(","))
        };
        assert_eq!(selected(&ranges(RANGES_MAX), 1000).split(' ').count(), RANGES_MAX);
        assert_eq!(selected(&ranges(RANGES_MAX + 1), 1000), "");
        assert_eq!(selected(&format!("bytes=5-6{}", ",".repeat(60_000)), 1000), "5-6");
        assert_eq!(selected(&format!("bytes={}", "0-,".repeat(20_000)), 1000), "");
    }
}
