//! A section of the configuration: the one list of its keys, and whoever goes through it.

use std::ops::Range;

use toml::de::DeTable;

use crate::reading::Reading;
use crate::rules::Rule;

/// A section, or a table inside of one.
pub(crate) trait Fields: Default + Clone {
    /// Keys that have to be there.
    const REQUIRED: &'static [&'static str] = &[];

    /// Shows every key: its name, what it means, what may stand there, and its place in this value.
    fn fields(&mut self, visit: &mut impl Visit);

    /// What is to be done with the table as a whole once its keys have been read: to say which contradict each other, and to settle
    /// what one says of another.
    fn check(&mut self, table: &Present<'_>, reading: &mut Reading<'_>) {
        let _ = (table, reading);
    }

    /// A value that shows what may stand there, where the default shows nothing.
    fn example() -> Self {
        Self::default()
    }
}

/// Goes through the keys of a section.
pub(crate) trait Visit {
    /// One key.
    fn field<T>(&mut self, name: &'static str, means: &'static str, rule: impl Rule<T>, place: &mut T);
}

/// Which keys of a table were written.
pub(crate) struct Present<'a> {
    pub(crate) table: &'a DeTable<'a>,
    pub(crate) span: Range<usize>,
}

impl Present<'_> {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// Where a key was written; the table's own place where it was not.
    pub(crate) fn span_of(&self, name: &str) -> Range<usize> {
        self.table.get_key_value(name).map_or(self.span.clone(), |(key, _)| key.span())
    }
}
