//! Colours on terminals.

use std::io::{self, IsTerminal};

use tracing::Level;

/// Escape sequences, empty unless the stream is a terminal and NO_COLOR is unset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) bold: &'static str,
    pub(crate) link: &'static str,
    error: &'static str,
    warning: &'static str,
    help: &'static str,
    location: &'static str,
    pub(crate) plain: &'static str,
}

impl Style {
    pub(crate) const NONE: Self =
        Self { bold: "", link: "", error: "", warning: "", help: "", location: "", plain: "" };

    /// As cargo's and rustc's.
    const COLOURS: Self = Self {
        bold: "\x1b[1m",
        link: "\x1b[4;36m",
        error: "\x1b[1;31m",
        warning: "\x1b[1;33m",
        help: "\x1b[1;36m",
        location: "\x1b[1;34m",
        plain: "\x1b[0m",
    };

    pub(crate) fn of_stdout() -> Self {
        Self::of(&io::stdout())
    }

    pub(crate) fn of_stderr() -> Self {
        Self::of(&io::stderr())
    }

    fn of(stream: &impl IsTerminal) -> Self {
        let is_wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        if is_wanted && stream.is_terminal() { Self::COLOURS } else { Self::NONE }
    }

    /// Colours the name of the program before a message, if it is severe.
    pub(crate) fn severity(self, name: &str, level: Level) -> String {
        match level {
            Level::ERROR => format!("{}{name}{}", self.error, self.plain),
            Level::WARN => format!("{}{name}{}", self.warning, self.plain),
            _ => name.to_owned(),
        }
    }

    /// Colours the labels and locations of errors and warnings.
    pub(crate) fn diagnostics(self, text: &str) -> String {
        text.split_inclusive('\n').map(|line| self.diagnostic_line(line)).collect()
    }

    fn diagnostic_line(self, line: &str) -> String {
        let labels = [("error:", self.error), ("warning:", self.warning), ("help:", self.help)];
        let content = line.trim_start_matches([' ', '|', '=']);
        let indent = &line[..line.len() - content.len()];
        if let Some((label, colour)) = labels.into_iter().find(|(label, _)| content.starts_with(label)) {
            return format!("{indent}{colour}{label}{}{}", self.plain, &content[label.len()..]);
        }
        match line.find("--> ") {
            Some(start) if line[..start].trim().is_empty() => {
                let (arrow, location) = line.split_at(start + "-->".len());
                format!("{}{arrow}{}{location}", self.location, self.plain)
            }
            _ => line.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Style;

    const TEXT: &str = "error: expected a size\n --> site.toml:3:8\n  |\n3 | x = \"error: 1\"\n  = help: 1KiB\nhelp: see help:\nwarning: w\n";

    #[test]
    fn colours_labels_and_locations_only() {
        let expected = "\x1b[1;31merror:\x1b[0m expected a size\n\x1b[1;34m -->\x1b[0m site.toml:3:8\n  |\n\
            3 | x = \"error: 1\"\n  = \x1b[1;36mhelp:\x1b[0m 1KiB\n\x1b[1;36mhelp:\x1b[0m see help:\n\
            \x1b[1;33mwarning:\x1b[0m w\n";
        assert_eq!(Style::COLOURS.diagnostics(TEXT), expected);
        assert_eq!(Style::NONE.diagnostics(TEXT), TEXT);
    }
}
