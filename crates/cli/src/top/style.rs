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

/// A line that is never longer than its width.
#[derive(Debug)]
pub(crate) struct Line {
    style: Style,
    text: String,
    room: usize,
}

impl Line {
    pub(crate) fn new(width: usize, style: Style) -> Self {
        Self { style, text: String::new(), room: width }
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
