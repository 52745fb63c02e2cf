//! Text forms of names, lengths and times, for HTML and JSON.

use std::fmt::Write;

use crate::reply::errors::{encode, encoded};

/// Writes a name as HTML: escapes markup, and shows the code points of characters that are invisible or change the
/// direction of text.
pub(super) fn html_name(name: &[u8], out: &mut String) {
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                _ if is_invisible(character) => show(out, format_args!("U+{:04X}", u32::from(character))),
                _ => out.push(character),
            }
        }
        for byte in chunk.invalid() {
            show(out, format_args!("{byte:02X}"));
        }
    }
}

fn show(out: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string doesn't fail.
    let _ = write!(out, "<i>{what}</i>");
}

/// Returns whether a character is invisible or changes the direction of text.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Writes a name as a JSON string (RFC 8259 section 7); invalid UTF-8 becomes `U+FFFD`.
pub(super) fn json_string(name: &[u8], out: &mut String) {
    out.push('"');
    for character in String::from_utf8_lossy(name).chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            _ if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}' | '<') => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// Returns a reference to an entry of the folder, exact for any bytes. It is the plain name with all marks encoded that a
/// program could take for something else: a colon for the end of a scheme, a leading `(` or `~` for no name.
pub(super) fn href(name: &[u8], is_folder: bool) -> String {
    let mut path = String::with_capacity(name.len() + 1);
    encode(&mut path, name, b"-._");
    if is_folder {
        path.push('/');
    }
    path
}

/// Encodes a name as a value of a query.
pub(super) fn query_value(name: &[u8]) -> String {
    encoded(name)[1..].replace('&', "%26").replace('+', "%2B")
}

/// Percent-decodes a value of a query. A percent sign without two digits stays as it is.
pub(super) fn decoded(value: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, following @ ..] = rest {
        let digit = |at: usize| following.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        let escaped = if *first == b'%' { digit(0).zip(digit(1)) } else { None };
        bytes.push(escaped.map_or(*first, |(high, low)| (high << 4 | low) as u8));
        rest = if escaped.is_some() { &following[2..] } else { following };
    }
    bytes
}

/// Formats a length in the largest binary unit of which there is at least one.
pub(super) fn human_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.5 would be shown as 1024.
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(value < 9.95);
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// Formats a number with commas between thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Parts of a UTC time, formatted for `datetime`.
pub(super) struct Utc {
    /// `2026-11-21`.
    pub(super) date: String,
    /// `07:44`.
    pub(super) minute: String,
    /// `06`.
    pub(super) second: String,
}

/// Converts seconds since 1970 to a Gregorian date. Clamps to the years 0 to 9999.
pub(super) fn utc(seconds: i64) -> Utc {
    let seconds = seconds.clamp(-62_167_219_200, 253_402_300_799);
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years are counted from March, so that the leap day is their last; eras have 400 of them.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    Utc {
        date: format!("{year:04}-{month:02}-{day:02}"),
        minute: format!("{:02}:{:02}", rest / 3_600, rest / 60 % 60),
        second: format!("{:02}", rest % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::{grouped, href, html_name, human_size, json_string, utc};

    fn written(write: impl Fn(&mut String)) -> String {
        let mut out = String::new();
        write(&mut out);
        out
    }

    #[test]
    fn escapes_names_and_shows_invisible_characters() {
        for (name, html) in [
            (&b"plain name.txt"[..], "plain name.txt"),
            (b"<script>&\"'", "&lt;script&gt;&amp;&quot;&#39;"),
            ("ü你".as_bytes(), "ü你"),
            ("a\u{202e}txt.exe".as_bytes(), "a<i>U+202E</i>txt.exe"),
            ("\u{200b}\u{2066}\u{feff}".as_bytes(), "<i>U+200B</i><i>U+2066</i><i>U+FEFF</i>"),
            (b"a\nb\x7f", "a<i>U+000A</i>b<i>U+007F</i>"),
            (b"\xff\xc0\xaea", "<i>FF</i><i>C0</i><i>AE</i>a"),
        ] {
            assert_eq!(written(|out| html_name(name, out)), html);
        }
        assert_eq!(written(|out| json_string(b"a\"\\\n\xff<", out)), "\"a\\\"\\\\\\u000a\u{fffd}\\u003c\"");
        assert_eq!(href(b"a:b c", false), "a%3Ab%20c");
        assert_eq!(href(b"\xff", true), "%FF/");
        assert_eq!(href(b"?a#b&c", false), "%3Fa%23b%26c");
    }

    #[test]
    fn formats_lengths_in_binary_units() {
        for (bytes, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (10_188, "9.9 KiB"),
            (10_189, "10 KiB"),
            (1_048_063, "1023 KiB"),
            (1_048_064, "1.0 MiB"),
            (1_234_567_890, "1.1 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(human_size(bytes), text);
        }
        assert_eq!(
            [grouped(0), grouped(999), grouped(1_000), grouped(1_234_567)],
            ["0", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn converts_times_to_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 00"),
            (-1, "1969-12-31 23:59 59"),
            (951_782_400, "2000-02-29 00:00 00"),
            (1_078_012_799, "2004-02-28 23:59 59"),
            (1_795_247_046, "2026-11-21 07:44 06"),
            (4_107_542_400, "2100-03-01 00:00 00"),
            (-62_167_219_200, "0000-01-01 00:00 00"),
            (i64::MIN, "0000-01-01 00:00 00"),
            (i64::MAX, "9999-12-31 23:59 59"),
        ] {
            let utc = utc(seconds);
            assert_eq!(format!("{} {} {}", utc.date, utc.minute, utc.second), text);
        }
    }
}
