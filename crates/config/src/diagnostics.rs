//! Errors and warnings about a configuration file, displayed as rustc displays them.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::limits::{KEY_CHARS_MAX, PROBLEMS_MAX, QUOTED_CHARS_MAX, SHOWN_CHARS_MAX};

/// Errors or warnings about one file, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    /// The file's path as it was given.
    pub file: PathBuf,
    /// `error` or `warning`.
    severity: &'static str,
    /// At most [`PROBLEMS_MAX`] problems.
    pub problems: Vec<Problem>,
    /// Number of problems beyond that.
    pub left_out: usize,
}

/// One error or warning with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The key, such as `site[0].root`; empty if the text isn't valid TOML.
    pub key: String,
    /// The problem in one line.
    pub message: String,
    /// A way to fix it.
    pub help: Option<String>,
    snippet: Snippet,
}

/// A problem before its line and column are known.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) span: Range<usize>,
    pub(crate) key: String,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Found {
    /// A problem of the file as a whole.
    pub(crate) fn of_file(span: Range<usize>, message: String) -> Self {
        Self { span, key: String::new(), message, help: None }
    }
}

impl Diagnostics {
    /// Locates problems in the text. Those beyond [`PROBLEMS_MAX`] are counted in addition to `left_out`.
    pub(crate) fn new(
        file: &Path,
        text: &str,
        severity: &'static str,
        mut found: Vec<Found>,
        left_out: usize,
    ) -> Self {
        found.sort_by_key(|problem| problem.span.start);
        let left_out = left_out + found.len().saturating_sub(PROBLEMS_MAX);
        found.truncate(PROBLEMS_MAX);
        let problems = found.into_iter().map(|problem| located(problem, text)).collect();
        Self { file: file.to_owned(), severity, problems, left_out }
    }

    /// Returns the number of problems, including those left out.
    #[must_use]
    pub fn count(&self) -> usize {
        self.problems.len() + self.left_out
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            writeln!(f, "{}: {}", self.severity, problem.message)?;
            problem.write_location(f, &self.file)?;
            problem.help.iter().try_for_each(|help| writeln!(f, "help: {help}"))?;
        }
        match self.left_out {
            0 => Ok(()),
            more => writeln!(f, "\nnote: {more} more problems are not shown"),
        }
    }
}

impl std::error::Error for Diagnostics {}

impl Problem {
    /// Writes ` --> file:line:column`, the line and a mark beneath it, labelled with the key.
    fn write_location(&self, f: &mut fmt::Formatter<'_>, file: &Path) -> fmt::Result {
        let Self { line, column, key, snippet, .. } = self;
        let number = line.to_string();
        let gutter = " ".repeat(number.len());
        writeln!(f, "{gutter}--> {}:{line}:{column}", file.display())?;
        let (indent, mark) = (" ".repeat(snippet.indent), "^".repeat(snippet.width));
        let label = format!("{gutter} | {indent}{mark} {key}");
        writeln!(f, "{gutter} |\n{number} | {}\n{}", snippet.quote, label.trim_end())
    }
}

/// A quoted line with the characters to mark.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Snippet {
    /// The line without control characters. A long line is cut around the mark.
    quote: String,
    /// Characters before the mark.
    indent: usize,
    /// Characters to mark, at least 1.
    width: usize,
}

/// Offsets beyond the text or within a character are moved back to a character boundary.
fn located(problem: Found, text: &str) -> Problem {
    let start = floor(text, problem.span.start);
    let end = floor(text, problem.span.end).max(start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let before = text[line_start..start].chars().count();
    // The quote begins so that the mark is in its first half.
    let skipped = before.saturating_sub(QUOTED_CHARS_MAX / 2);
    let line = text[line_start..line_end].trim_end_matches('\r');
    let quote: String = line.chars().skip(skipped).take(QUOTED_CHARS_MAX).map(printable).collect();
    let indent = before - skipped;
    let covered = text[start..end.min(line_end)].trim_end().chars().count();
    let room = quote.chars().count().saturating_sub(indent);
    Problem {
        line: text[..line_start].matches('\n').count() + 1,
        column: before + 1,
        key: problem.key.chars().take(KEY_CHARS_MAX).map(printable).collect(),
        message: problem.message,
        help: problem.help,
        snippet: Snippet { quote, indent, width: covered.min(room).max(1) },
    }
}

fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Replaces characters that a terminal interprets.
fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Shortens a name or value for a message, and replaces control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).map(printable).collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{Found, Problem, located, shown};
    use crate::limits::{QUOTED_CHARS_MAX, SHOWN_CHARS_MAX};

    fn at(text: &str, span: std::ops::Range<usize>) -> Problem {
        located(Found::of_file(span, String::new()), text)
    }

    #[test]
    fn lines_and_columns_start_at_one_and_count_characters() {
        let text = "a = 1\né\tb = 2\r\nlast";
        for (span, line, column, quote, indent, width) in [
            (0..1, 1, 1, "a = 1", 0, 1),
            (4..5, 1, 5, "a = 1", 4, 1),
            (9..10, 2, 3, "é b = 2", 2, 1),
            (9..15, 2, 3, "é b = 2", 2, 5),
            (0..text.len(), 1, 1, "a = 1", 0, 5),
            (text.len()..text.len(), 3, 5, "last", 4, 1),
            (900..1000, 3, 5, "last", 4, 1),
            // Within a character.
            (7..7, 2, 1, "é b = 2", 0, 1),
        ] {
            let found = at(text, span.clone());
            assert_eq!((found.line, found.column), (line, column), "{span:?}");
            let snippet = found.snippet;
            assert_eq!((snippet.quote.as_str(), snippet.indent, snippet.width), (quote, indent, width));
        }
        assert_eq!(at("", 0..0).line, 1);
    }

    #[test]
    fn cuts_a_long_line_around_the_mark() {
        let text = format!("{}HERE{}", "x".repeat(5000), "y".repeat(5000));
        let found = at(&text, 5000..5004);
        assert_eq!((found.column, found.snippet.width), (5001, 4));
        assert_eq!(found.snippet.quote.chars().count(), QUOTED_CHARS_MAX);
        let marked: String = found.snippet.quote.chars().skip(found.snippet.indent).collect();
        assert!(marked.starts_with("HERE"));
        let all = at(&text, 0..10_000).snippet;
        assert_eq!((all.width, all.quote.chars().count()), (QUOTED_CHARS_MAX, QUOTED_CHARS_MAX));
    }

    #[test]
    fn quotes_no_control_characters() {
        assert!(!at("a = \"\u{1b}[31m\"", 0..1).snippet.quote.contains('\u{1b}'));
        assert_eq!(shown("a\u{7}b"), "a\u{fffd}b");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), SHOWN_CHARS_MAX + 1);
    }
}
