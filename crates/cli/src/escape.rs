//! Text of others on a terminal: characters that end a line, hide a part of it or control the terminal are escaped.

use std::fmt::{self, Write};

/// A text on one line.
pub(crate) struct OneLine<'a>(pub(crate) &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            // Escapes of the message stay as they are.
            '"' | '\'' | '\\' => f.write_char(letter),
            _ => write!(f, "{}", letter.escape_debug()),
        })
    }
}

/// Valid JSON, which stays the same value: its strings may have any character as `\u` and its UTF-16 units.
pub(crate) struct Json<'a>(pub(crate) &'a str);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            // Strings have no such character, so it is space between values.
            '\r' => Ok(()),
            '"' | '\'' | '\\' | '\t' | '\n' => f.write_char(letter),
            _ if letter.escape_debug().len() == 1 => f.write_char(letter),
            _ => letter.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(f, "\\u{unit:04x}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::Json;

    #[test]
    fn json_stays_the_same_value_and_controls_no_terminal() {
        let hostile =
            "a\u{1b}[2J\u{7f}\u{9b}2J\u{85}\u{2028}\u{2029}\u{202e}\u{2066}\u{e0001} \u{e9}\u{1f600} \"'\\";
        let value = Value::from(vec![hostile]);
        let text = Json(&format!("{value:#}\r\n")).to_string();
        let is_harmless =
            |letter: char| letter == '\n' || letter == '\u{1f600}' || ('\u{20}'..'\u{7f}').contains(&letter);
        assert!(text.chars().all(|letter| is_harmless(letter) || letter == '\u{e9}'), "{text:?}");
        assert!(
            text.contains("\\u009b2J\\u0085\\u2028\\u2029\\u202e\\u2066\\udb40\\udc01 \u{e9}"),
            "{text:?}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }
}
