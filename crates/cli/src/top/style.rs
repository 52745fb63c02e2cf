//! Lines of text for a terminal: cut to its width, with colours if it has them, and free of control characters.

use std::env;
use std::io::{self, IsTerminal};

use shearwater::engine::visible::is_visible;

/// Kinds of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Bold,
    Soft,
    Good,
    Warn,
    Bad,
    Accent,
}

/// Abilities of a terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) has_colours: bool,
    /// Shows more than ASCII.
    pub(crate) has_unicode: bool,
}

impl Style {
    /// Returns the abilities of standard output, by `NO_COLOR`, `TERM` and the locale.
    pub(crate) fn of_stdout() -> Self {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find(|&name| is_set(name));
        let locale = locale.and_then(|name| env::var(name).ok()).unwrap_or_default().to_ascii_lowercase();
        let is_terminal = io::stdout().is_terminal();
        Self {
            has_colours: is_terminal && !is_set("NO_COLOR") && !is_dumb(),
            // A pipe gets UTF-8, as from the program's other commands.
            has_unicode: !is_terminal || locale.contains("utf-8") || locale.contains("utf8"),
        }
    }
}

/// Returns whether the terminal understands no escape sequences.
pub(crate) fn is_dumb() -> bool {
    env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Columns between two cells, at least.
const CELL_GAP: usize = 3;

/// Breaks a text between words into lines of at most `width` columns. The last one of `lines_max` ends in an ellipsis if it
/// has no room for the rest.
pub(crate) fn wrap(text: &str, width: usize, lines_max: usize) -> Vec<String> {
    let mut rest: Vec<char> = text.trim_end().chars().collect();
    let mut lines = Vec::new();
    while width > 0 && rest.len() > width && lines.len() + 1 < lines_max {
        let space = rest[..=width].iter().rposition(|character| *character == ' ').filter(|at| *at > 0);
        let end = space.unwrap_or(width);
        lines.push(rest.drain(..end).collect());
        rest.drain(..rest.iter().take_while(|character| **character == ' ').count());
    }
    if rest.len() > width {
        rest.truncate(width.saturating_sub(1));
        rest.push('…');
    }
    lines.push(rest.into_iter().collect());
    lines
}

/// A line that is never longer than its width.
#[derive(Debug)]
pub(crate) struct Line {
    style: Style,
    text: String,
    room: usize,
    /// A cell had no room: further ones are left out, too.
    is_full: bool,
    /// Columns to fill up before the next cell.
    gap: usize,
}

impl Line {
    pub(crate) fn new(width: usize, style: Style) -> Self {
        Self { style, text: String::new(), room: width, is_full: false, gap: 0 }
    }

    /// Columns that are left.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Appends text as far as there is room. Characters that aren't visible become `?`.
    pub(crate) fn add(&mut self, paint: Paint, text: &str) -> &mut Self {
        let code = match paint {
            Paint::Plain => "",
            Paint::Bold => "1",
            Paint::Soft => "2",
            Paint::Good => "32",
            Paint::Warn => "33",
            Paint::Bad => "1;31",
            Paint::Accent => "36",
        };
        let is_painted = self.style.has_colours && !code.is_empty() && self.room > 0 && !text.is_empty();
        if is_painted {
            self.text.push_str(&format!("\x1b[{code}m"));
        }
        for character in text.chars().take(self.room) {
            self.room -= 1;
            self.text.push(shown(character, self.style.has_unicode));
        }
        if is_painted {
            self.text.push_str("\x1b[0m");
        }
        self
    }

    /// Appends a cell of so many columns, or of its length; nothing if there is no room for all of it.
    pub(crate) fn cell(&mut self, parts: &[(Paint, &str)], columns: usize) -> &mut Self {
        let length: usize = parts.iter().map(|(_, text)| text.chars().count()).sum();
        self.is_full |= self.gap + length > self.room;
        if !self.is_full {
            self.add(Paint::Plain, &" ".repeat(self.gap));
            for (paint, text) in parts {
                self.add(*paint, text);
            }
            self.gap = columns.saturating_sub(length).max(CELL_GAP);
        }
        self
    }

    /// Appends text and fills up with spaces to `columns`, with at least one.
    pub(crate) fn column(&mut self, paint: Paint, text: &str, columns: usize) -> &mut Self {
        let spaces = columns.saturating_sub(text.chars().count()).max(1);
        self.add(paint, text).add(Paint::Plain, &" ".repeat(spaces))
    }

    /// Appends text that ends `columns` further.
    pub(crate) fn right(&mut self, paint: Paint, text: &str, columns: usize) -> &mut Self {
        let spaces = columns.saturating_sub(text.chars().count());
        self.add(Paint::Plain, &" ".repeat(spaces)).add(paint, text)
    }

    pub(crate) fn end(&self) -> String {
        self.text.trim_end_matches(' ').to_owned()
    }
}

/// Returns a character that a terminal can show.
fn shown(character: char, has_unicode: bool) -> char {
    match character {
        _ if !is_visible(character) => '?',
        _ if has_unicode || character.is_ascii() => character,
        '…' => '~',
        'µ' => 'u',
        '–' => '-',
        '·' => ',',
        '●' => '*',
        '▁' => '_',
        '▂' | '▃' => '.',
        '▄' | '▅' => '-',
        '▆' | '▇' => '=',
        '█' => '#',
        _ => '?',
    }
}
