//! The checkout as rules see it: text files by path, Rust sources without comments, strings and tests.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context as _, Result};
use regex::Regex;

/// Folders that no rule reads.
const SKIPPED: &[&str] = &[".git", "target"];

/// All files of the checkout, by path from its root. Those that aren't text are empty.
#[derive(Debug, Default)]
pub(super) struct Checkout(BTreeMap<String, SourceFile>);

impl Checkout {
    /// Reads the checkout at `root`.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(root.join(&folder)).with_context(|| folder.clone())? {
                let entry = entry?;
                let Ok(name) = entry.file_name().into_string() else { continue };
                let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                if entry.path().is_dir() {
                    folders.extend((!SKIPPED.contains(&name.as_str())).then_some(path));
                    continue;
                }
                match fs::read_to_string(entry.path()) {
                    Ok(text) => tree.put(&path, text),
                    // An image, for example: it exists, and no rule reads it.
                    Err(error) if error.kind() == ErrorKind::InvalidData => tree.put(&path, String::new()),
                    Err(error) => return Err(error).context(path),
                }
            }
        }
        Ok(tree)
    }

    /// Adds or replaces a file.
    pub(super) fn put(&mut self, path: &str, text: String) {
        self.0.insert(path.to_owned(), SourceFile::new(path, text));
    }

    pub(super) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.0.get(path)
    }

    pub(super) fn text(&self, path: &str) -> &str {
        self.file(path).map_or("", |file| &file.text)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.0.values()
    }

    /// Returns true if this is a file or a folder with files.
    pub(super) fn exists(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.0.contains_key(path)
            || self.files().any(|file| file.path.starts_with(&folder))
    }
}

/// A text file.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// From the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// A Rust source with its comments blanked; else empty.
    pub(super) statements: String,
    /// A Rust source with its comments and string literals blanked; else empty.
    pub(super) code: String,
    /// Comments of a Rust source, or a document, without code in backticks; other lines are empty.
    pub(super) prose: String,
    /// Lines of items under `#[cfg(test)]` and `#[test]`.
    tests: Vec<RangeInclusive<usize>>,
}

impl SourceFile {
    fn new(path: &str, text: String) -> Self {
        let is_rust = path.ends_with(".rs");
        let statements = if is_rust { blank(&text, |token| token.starts_with('/')) } else { String::new() };
        let code = if is_rust { blank(&text, |_| true) } else { String::new() };
        let is_prose = |line: &str| path.ends_with(".md") || (is_rust && line.trim_start().starts_with("//"));
        let prose =
            |line: &str| if is_prose(line) { line.split('`').step_by(2).collect() } else { String::new() };
        let prose = text.lines().map(|line| prose(line) + "\n").collect();
        let tests = test_items(&code);
        Self { path: path.to_owned(), text, statements, code, prose, tests }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(super) fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// The folder beneath `crates/`.
    pub(super) fn room(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split_once('/').map(|(room, _)| room)
    }

    /// Returns true for test code: a file of tests, or a line of a test item.
    pub(super) fn is_test(&self, line: usize) -> bool {
        let mut parts = self.path.split('/');
        parts.any(|part| matches!(part, "tests" | "tests.rs" | "fuzz" | "interop"))
            || self.tests.iter().any(|lines| lines.contains(&line))
    }

    /// Returns true for a source that users get: no test, no example.
    pub(super) fn is_shipped(&self) -> bool {
        self.is_rust() && self.path.contains("/src/") && !self.is_test(0)
    }
}

/// Returns the line, counted from 1, of a byte of a text.
pub(super) fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Comments and literals of Rust: line comments, block comments, raw strings, strings, characters.
static BLANKED: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        r"(?s)//[^\n]*|/\*.*?\*/",
        r###"|r"[^"]*"|r#".*?"#|r##".*?"##"###,
        r#"|"(?:\\.|[^"\\])*"|'(?:\\[^\n]+?|[^'\\\n])'"#
    );
    Regex::new(pattern).expect("the pattern is constant")
});

/// Overwrites the chosen comments and literals with spaces, byte by byte; lines stay.
fn blank(text: &str, is_chosen: impl Fn(&str) -> bool) -> String {
    let spaces = |token: &str| -> String {
        token.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
    };
    let replace = |found: &regex::Captures<'_>| match &found[0] {
        token if is_chosen(token) => spaces(token),
        token => token.to_owned(),
    };
    BLANKED.replace_all(text, replace).into_owned()
}

/// Finds the lines of test items in formatted code: an item ends at the first line that is indented no further than its
/// attribute and ends in a brace, a semicolon or a comma.
fn test_items(code: &str) -> Vec<RangeInclusive<usize>> {
    let lines: Vec<&str> = code.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_end = |line: &str| line.trim_end().ends_with(['}', ';', ',']);
    let mut items = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let attribute = line.trim();
        if attribute == "#[test]"
            || attribute.starts_with("#[cfg(test)")
            || attribute.starts_with("#[cfg(all(test")
        {
            let rest = lines.iter().skip(first);
            let end = rest
                .into_iter()
                .position(|other| !other.trim().is_empty() && indent(other) <= indent(line) && is_end(other));
            items.push(first + 1..=first + 1 + end.unwrap_or(lines.len()));
        }
    }
    items
}
