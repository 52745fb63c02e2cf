//! The text of a configuration file: offsets to lines and columns, and lines to be quoted.

use std::ops::Range;

use crate::limits::QUOTED_CHARS_MAX;

/// Where a stretch of the text begins, and its line as it can be printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// From 1.
    pub(crate) line: usize,
    /// From 1, in characters.
    pub(crate) column: usize,
    /// The line, a long one cut to what is around the place, without control characters.
    pub(crate) quote: String,
    /// Characters of the quote before the place.
    pub(crate) indent: usize,
    /// Characters of the quote that it covers; at least 1.
    pub(crate) width: usize,
}

/// The place of a stretch. Offsets beyond the text or inside of a character are moved back into it.
pub(crate) fn place(text: &str, span: &Range<usize>) -> Place {
    let start = floor(text, span.start);
    let end = floor(text, span.end).max(start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let before = text[line_start..start].chars().count();
    // The quote begins so that the place is in its first half.
    let skipped = before.saturating_sub(QUOTED_CHARS_MAX / 2);
    let line = text[line_start..line_end].trim_end_matches('\r');
    let quote: String = line.chars().skip(skipped).take(QUOTED_CHARS_MAX).map(printable).collect();
    let indent = before - skipped;
    let covered = text[start..end.min(line_end)].trim_end().chars().count();
    let room = quote.chars().count().saturating_sub(indent);
    Place {
        line: text[..line_start].matches('\n').count() + 1,
        column: before + 1,
        indent,
        width: covered.min(room).max(1),
        quote,
    }
}

/// The character's own width at most, and nothing that a terminal acts on.
pub(crate) fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::place;
    use crate::limits::QUOTED_CHARS_MAX;

    #[test]
    fn lines_and_columns_begin_with_one_and_count_characters() {
        let text = "a = 1\né\tb = 2\r\nlast";
        for (span, line, column, quote, indent, width) in [
            (0..1, 1, 1, "a = 1", 0, 1),
            (4..5, 1, 5, "a = 1", 4, 1),
            (9..10, 2, 3, "é b = 2", 2, 1),
            (9..15, 2, 3, "é b = 2", 2, 5),
            (0..text.len(), 1, 1, "a = 1", 0, 5),
            (text.len()..text.len(), 3, 5, "last", 4, 1),
            (900..1000, 3, 5, "last", 4, 1),
            // Inside of a character.
            (7..7, 2, 1, "é b = 2", 0, 1),
        ] {
            let found = place(text, &span);
            assert_eq!((found.line, found.column), (line, column), "{span:?}");
            assert_eq!((found.quote.as_str(), found.indent, found.width), (quote, indent, width), "{span:?}");
        }
        assert_eq!(place("", &(0..0)).line, 1);
    }

    #[test]
    fn a_long_line_is_cut_to_what_is_around_the_place() {
        let text = format!("{}HERE{}", "x".repeat(5000), "y".repeat(5000));
        let found = place(&text, &(5000..5004));
        assert_eq!((found.column, found.width), (5001, 4));
        assert_eq!(found.quote.chars().count(), QUOTED_CHARS_MAX);
        assert!(found.quote.chars().skip(found.indent).collect::<String>().starts_with("HERE"));
        let all = place(&text, &(0..10_000));
        assert_eq!((all.width, all.quote.chars().count()), (QUOTED_CHARS_MAX, QUOTED_CHARS_MAX));
    }

    #[test]
    fn nothing_that_a_terminal_acts_on_is_quoted() {
        assert!(!place("a = \"\u{1b}[31m\"", &(0..1)).quote.contains('\u{1b}'));
    }
}
