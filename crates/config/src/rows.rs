//! A section's keys as rows: to be printed as defaults, as the effective configuration, or as a page.

use crate::fields::{Fields, Visit};
use crate::pen::Pen;
use crate::reading::Written;
use crate::rules::Rule;

/// One key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) means: &'static str,
    /// What may stand there.
    pub(crate) allowed: String,
    /// The value as TOML, variables put in; `None` where nothing stands there.
    pub(crate) value: Option<String>,
    /// The value as TOML, variables as they were written.
    pub(crate) shown: Option<String>,
}

/// The rows of a section. `path` is the section's key.
pub(crate) fn rows<T: Fields>(section: &T, path: &str, written: &Written) -> Vec<Row> {
    let mut lister = Lister { path, written, rows: Vec::new() };
    // The list of keys is one for reading and writing, so it asks for a value that may change.
    section.clone().fields(&mut lister);
    lister.rows
}

struct Lister<'a> {
    path: &'a str,
    written: &'a Written,
    rows: Vec<Row>,
}

impl Visit for Lister<'_> {
    fn field<T>(&mut self, name: &'static str, means: &'static str, rule: impl Rule<T>, place: &mut T) {
        let write = |written| {
            let mut pen = Pen::new(written, format!("{}.{name}", self.path));
            rule.write(place, &mut pen).then_some(pen.text)
        };
        let (value, shown) = (write(None), write(Some(self.written)));
        self.rows.push(Row { name, means, allowed: rule.allowed(), value, shown });
    }
}
