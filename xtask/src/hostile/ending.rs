//! How hostile connections ended, counted, with the first and the last time of each kind.

use std::collections::BTreeMap;
use std::time::Duration;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum How {
    /// It got whole what it came for.
    Served,
    /// The server ended it in order.
    Closed,
    /// The server reset it.
    Reset,
    /// It left by itself, as its script says.
    Left,
    /// It could not connect.
    Refused,
    /// It was still there when nobody watched any more.
    Held,
}

impl How {
    fn word(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Closed => "closed",
            Self::Reset => "reset",
            Self::Left => "left",
            Self::Refused => "refused",
            Self::Held => "held",
        }
    }
}

/// An end, with the status of the first answer if there was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    /// The first answer's status.
    pub(super) status: Option<u16>,
    /// How the connection ended.
    pub(super) how: How,
}

impl End {
    /// `408 closed`, `reset`.
    pub(super) fn label(self) -> String {
        let word = self.how.word();
        self.status.map_or_else(|| word.to_owned(), |status| format!("{status} {word}"))
    }
}

/// How many ended so, and when after their connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    /// How many.
    pub(super) count: u64,
    /// The first of them.
    pub(super) first: Duration,
    /// The last of them.
    pub(super) last: Duration,
}

/// All ends of an attack.
#[derive(Debug, Default, Clone)]
pub(super) struct Tally {
    ends: BTreeMap<End, Count>,
}

impl Tally {
    /// Counts an end.
    pub(super) fn add(&mut self, end: End, after: Duration) {
        let count = self.ends.entry(end).or_insert(Count { count: 0, first: after, last: after });
        count.count += 1;
        count.first = count.first.min(after);
        count.last = count.last.max(after);
    }

    /// Each kind of end with its count.
    pub(super) fn iter(&self) -> impl Iterator<Item = (End, Count)> {
        self.ends.iter().map(|(end, count)| (*end, *count))
    }

    /// `408 closed x 1000 (10.0-10.3 s), …`.
    pub(super) fn summary(&self) -> String {
        let one = |(end, count): (End, Count)| {
            let (first, last) = (count.first.as_secs_f64(), count.last.as_secs_f64());
            format!("{} x {} ({first:.1}-{last:.1} s)", end.label(), count.count)
        };
        self.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::{End, How, Tally};
    use std::time::Duration;

    #[test]
    fn ends_are_counted_by_kind_with_their_times() {
        let mut tally = Tally::default();
        let closed = End { status: Some(408), how: How::Closed };
        tally.add(closed, Duration::from_secs(12));
        tally.add(closed, Duration::from_secs(10));
        tally.add(End { status: None, how: How::Reset }, Duration::from_secs(1));
        assert_eq!(tally.summary(), "reset x 1 (1.0-1.0 s), 408 closed x 2 (10.0-12.0 s)");
    }
}
