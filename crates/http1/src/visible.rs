//! Untrusted text in lines for people and programs: the one rule for which characters are shown, and their escapes.

use std::fmt::{self, Write};

/// Returns true for a character that is shown as itself.
///
/// Others end a line, reorder or hide a part of it, or control a terminal: those of Unicode's categories C (controls, format
/// characters such as those for text direction, unassigned) and Z but the space, and marks that combine with another one.
#[must_use]
pub fn is_visible(letter: char) -> bool {
    matches!(letter, ' '..='~') || !letter.is_ascii() && letter.escape_debug().len() == 1
}

/// Text in one line of a message. Backslashes stay as they are: the message may have escapes.
#[derive(Debug, Clone, Copy)]
pub struct OneLine<'a>(pub &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match is_visible(letter) {
            true => f.write_char(letter),
            false => write!(f, "{}", letter.escape_debug()),
        })
    }
}

/// Valid JSON, which stays the same value: its strings may have any character as an escape.
#[derive(Debug, Clone, Copy)]
pub struct Json<'a>(pub &'a str);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            // Strings have no such character, so it is space between values.
            '\r' => Ok(()),
            '\t' | '\n' => f.write_char(letter),
            _ if is_visible(letter) => f.write_char(letter),
            _ => JsonEscape(letter).fmt(f),
        })
    }
}

/// A character as an escape of JSON: `\u` and a UTF-16 unit, or two.
#[derive(Debug, Clone, Copy)]
pub struct JsonEscape(pub char);

impl fmt::Display for JsonEscape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(f, "\\u{unit:04x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Json, OneLine, is_visible};

    #[test]
    fn shows_no_character_that_reorders_hides_or_controls() {
        let hidden = "\0\t\n\r\u{1b}\u{7f}\u{85}\u{9b}\u{ad}\u{61c}\u{200b}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\
                      \u{2066}\u{2069}\u{feff}\u{fff9}\u{e0001}\u{301}\u{a0}\u{e000}";
        assert_eq!(hidden.chars().find(|letter| is_visible(*letter)), None);
        assert_eq!(
            " a~\"'\\\u{e9}\u{20ac}\u{6f22}\u{1f600}".chars().find(|letter| !is_visible(*letter)),
            None
        );
        assert_eq!(OneLine("a\n\u{202e}\\\"\u{e9}").to_string(), "a\\n\\u{202e}\\\"\u{e9}");
        assert_eq!(Json("\"a\u{202e}\u{e0001}\\n\"\r\n").to_string(), "\"a\\u202e\\udb40\\udc01\\n\"\n");
    }
}
