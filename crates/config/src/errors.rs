//! What is wrong with a configuration, each with its place.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::source;

/// Everything that is wrong with one configuration, in the order of the file.
///
/// Displays one paragraph per problem: `file:line:column: key: what is wrong`, the line with a mark beneath, and `help: …` where there is some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errors {
    /// The file, as it was named.
    pub file: PathBuf,
    /// At most [`PROBLEMS_MAX`](crate::limits::PROBLEMS_MAX).
    pub problems: Vec<Problem>,
    /// Problems beyond that.
    pub left_out: usize,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The key that it is about, such as `site[0].root`; empty where the text is no TOML.
    pub key: String,
    /// What is wrong, and what may stand there instead.
    pub what: String,
    /// A way out, if it is more than another spelling.
    pub help: Option<String>,
    quote: String,
    indent: usize,
    width: usize,
}

/// A problem before its place is known by line and column.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) span: Range<usize>,
    pub(crate) key: String,
    pub(crate) what: String,
    pub(crate) help: Option<String>,
}

impl Errors {
    pub(crate) fn new(file: &Path, text: &str, mut found: Vec<Found>, left_out: usize) -> Self {
        found.sort_by_key(|problem| problem.span.start);
        let problems = found.into_iter().map(|problem| problem.placed(text)).collect();
        Self { file: file.to_owned(), problems, left_out }
    }
}

impl Found {
    fn placed(self, text: &str) -> Problem {
        let place = source::place(text, &self.span);
        Problem {
            line: place.line,
            column: place.column,
            key: self.key,
            what: self.what,
            help: self.help,
            quote: place.quote,
            indent: place.indent,
            width: place.width,
        }
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{file}:{problem}")?;
        }
        if self.left_out > 0 {
            write!(f, "\n{file}: {} more problems are not shown\n", self.left_out)?;
        }
        Ok(())
    }
}

/// Without the file: `line:column: key: what`, and the line with a mark beneath.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, key, what, help, quote, indent, width } = self;
        let colon = if key.is_empty() { "" } else { ": " };
        let number = line.to_string();
        let gutter = " ".repeat(number.len());
        let (indent, mark) = (" ".repeat(*indent), "^".repeat(*width));
        writeln!(f, "{line}:{column}: {key}{colon}{what}")?;
        writeln!(f, "{gutter} |\n{number} | {quote}\n{gutter} | {indent}{mark}")?;
        help.iter().try_for_each(|help| writeln!(f, "help: {help}"))
    }
}

impl std::error::Error for Errors {}
