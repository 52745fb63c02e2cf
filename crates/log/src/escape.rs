//! Escaping: no value can end its line, its quotes or its JSON string.

use std::io::Write;

use shearwater_http1::visible::{JsonEscape, is_visible};

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// End of a value whose rest was cut. No value has it: its backslashes are escaped.
pub(crate) const CUT: &[u8] = br"\cut";

/// Least byte that isn't escaped: a space in texts that may have some.
pub(crate) const SPACED: u8 = b' ';

/// Least byte that isn't escaped in a method or target: a malformed one has spaces, which separate columns.
pub(crate) const UNSPACED: u8 = b'!';

/// Appends a value for a line of text: quotes, backslashes, control bytes, bytes below `LEAST` and bytes beyond ASCII
/// become `\xHH`, as in nginx. An absent value becomes `-`. A value of more than `max` bytes is cut and marked.
pub(crate) fn text<const LEAST: u8>(out: &mut Vec<u8>, value: Option<&[u8]>, max: usize) {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return out.push(b'-') };
    raw::<LEAST>(out, value, max);
}

/// Appends a value as [`text`], and nothing for an empty one.
pub(crate) fn raw<const LEAST: u8>(out: &mut Vec<u8>, value: &[u8], max: usize) {
    if value.len() <= max && are_plain::<LEAST>(value) {
        return out.extend_from_slice(value);
    }
    escaped::<LEAST>(out, value, max);
}

#[cold]
fn escaped<const LEAST: u8>(out: &mut Vec<u8>, value: &[u8], max: usize) {
    for byte in &value[..value.len().min(max)] {
        let escape = [b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
        let is_plain = is_plain::<LEAST>(byte);
        out.extend_from_slice(if is_plain { std::slice::from_ref(byte) } else { &escape });
    }
    if value.len() > max {
        out.extend_from_slice(CUT);
    }
}

fn is_plain<const LEAST: u8>(byte: &u8) -> bool {
    (LEAST..=b'~').contains(byte) && !matches!(byte, b'"' | b'\\')
}

/// Returns true if no byte needs an escape.
fn are_plain<const LEAST: u8>(value: &[u8]) -> bool {
    let of_eight = |eight: &[u8; 8]| find_unplain::<LEAST>(u64::from_le_bytes(*eight));
    let of_four = |four: &[u8; 4]| u64::from(u32::from_le_bytes(*four));
    // The last ones overlap those before them, which is cheaper than single bytes.
    match (value.last_chunk(), value.first_chunk(), value.last_chunk()) {
        (Some(last), ..) => {
            let found = value.as_chunks().0.iter().fold(0, |found, eight| found | of_eight(eight));
            found | of_eight(last) == 0
        }
        (None, Some(first), Some(last)) => find_unplain::<LEAST>(of_four(first) << 32 | of_four(last)) == 0,
        _ => value.iter().all(is_plain::<LEAST>),
    }
}

/// Sets the highest bit of each of eight bytes that needs an escape, and possibly those of bytes above one.
fn find_unplain<const LEAST: u8>(word: u64) -> u64 {
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    // Borrows and carries reach the next byte only from one that needs an escape itself.
    let are_below = |word: u64, byte: u8| word.wrapping_sub(each(byte)) & !word;
    let are_quotes = are_below(word ^ each(b'"'), 1);
    let are_backslashes = are_below(word ^ each(b'\\'), 1);
    let are_above = word | word.wrapping_add(each(0x80 - 0x7F));
    (are_below(word, LEAST) | are_quotes | are_backslashes | are_above) & each(0x80)
}

/// Appends a JSON string (RFC 8259 section 7); `null` for an absent value. Bytes that aren't UTF-8 become U+FFFD.
/// Returns true for a value of more than `max` bytes, whose rest is cut.
pub(crate) fn json(out: &mut Vec<u8>, value: Option<&[u8]>, max: usize) -> bool {
    let Some(value) = value else {
        out.extend_from_slice(b"null");
        return false;
    };
    let is_cut = value.len() > max;
    let value = if is_cut { &value[..char_start(value, max)] } else { value };
    out.push(b'"');
    match are_plain::<SPACED>(value) {
        true => out.extend_from_slice(value),
        false => json_text(out, value),
    }
    out.push(b'"');
    is_cut
}

/// Returns the start of the character at an offset, if it is UTF-8.
fn char_start(value: &[u8], at: usize) -> usize {
    let is_start = |at: &usize| !matches!(value[*at], 0x80..=0xBF);
    (at.saturating_sub(3)..=at).rev().find(is_start).unwrap_or(at)
}

fn json_text(out: &mut Vec<u8>, value: &[u8]) {
    for chunk in value.utf8_chunks() {
        chunk.valid().chars().for_each(|letter| json_char(out, letter));
        if !chunk.invalid().is_empty() {
            json_char(out, char::REPLACEMENT_CHARACTER);
        }
    }
}

fn json_char(out: &mut Vec<u8>, letter: char) {
    match letter {
        '"' => out.extend_from_slice(br#"\""#),
        '\\' => out.extend_from_slice(br"\\"),
        _ if is_visible(letter) => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        // Writing to a vector can't fail.
        _ => drop(write!(out, "{}", JsonEscape(letter))),
    }
}

/// Digits of each number below 1,000, from the left, and how many there are.
static SMALL_NUMBERS: [[u8; 4]; 1000] = small_numbers();

const fn small_numbers() -> [[u8; 4]; 1000] {
    let mut numbers = [[0; 4]; 1000];
    let mut number = 0;
    while number < numbers.len() {
        let [hundreds, tens, ones] = three_digits(number as u16);
        numbers[number] = match number {
            0..10 => [ones, 0, 0, 1],
            10..100 => [tens, ones, 0, 2],
            _ => [hundreds, tens, ones, 3],
        };
        number += 1;
    }
    numbers
}

/// Returns the digits of a number below 1,000.
const fn three_digits(number: u16) -> [u8; 3] {
    [b'0' + (number / 100) as u8, b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]
}

/// Appends a number. Most are parts of addresses and statuses.
#[inline]
pub(crate) fn number(out: &mut Vec<u8>, number: u64) {
    match number {
        0..1000 => small_number(out, number as usize),
        _ => long_number(out, number),
    }
}

fn long_number(out: &mut Vec<u8>, number: u64) {
    self::number(out, number / 1000);
    out.extend_from_slice(&three_digits((number % 1000) as u16));
}

/// Appends a number below 1,000.
#[inline]
fn small_number(out: &mut Vec<u8>, number: usize) {
    let [digits @ .., count] = SMALL_NUMBERS[number];
    // A length that is constant costs no call of a copying function.
    out.extend_from_slice(&digits);
    out.truncate(out.len() - digits.len() + usize::from(count));
}

/// Appends a fraction of three digits: 1,234 thousandths as `1.234`.
pub(crate) fn thousandths(out: &mut Vec<u8>, thousandths: u64) {
    number(out, thousandths / 1000);
    out.push(b'.');
    out.extend_from_slice(&three_digits((thousandths % 1000) as u16));
}

#[cfg(test)]
mod tests {
    use super::{SPACED, UNSPACED, are_plain, json, number};

    #[test]
    fn finds_a_byte_to_escape_at_any_place() {
        for len in 0..70 {
            assert!(are_plain::<UNSPACED>(&vec![b'~'; len]));
            for at in 0..len {
                for byte in [0, 31, b'"', b'\\', 127, 128, 255] {
                    let mut value = vec![b' '; len];
                    value[at] = byte;
                    assert!(!are_plain::<SPACED>(&value), "{byte} at {at} of {len}");
                }
                let mut value = vec![b'!'; len];
                value[at] = b' ';
                assert!(are_plain::<SPACED>(&value) && !are_plain::<UNSPACED>(&value), "{at} of {len}");
            }
        }
    }

    #[test]
    fn writes_numbers_of_any_length() {
        let lengths = (0..20).map(|digits| 10u64.pow(digits));
        let around = lengths.flat_map(|power| [power - 1, power, power + 1]);
        for value in around.chain(0..1100).chain([u64::MAX]) {
            let mut out = b"before ".to_vec();
            number(&mut out, value);
            assert_eq!(out, format!("before {value}").as_bytes());
        }
    }

    #[test]
    fn cuts_json_between_characters() {
        for (value, max, cut) in [
            ("a\u{20ac}b", 1, "a"),
            ("a\u{20ac}b", 2, "a"),
            ("a\u{20ac}b", 3, "a"),
            ("a\u{20ac}b", 4, "a\u{20ac}"),
            ("\u{1f600}", 3, ""),
            ("ab", 0, ""),
        ] {
            let mut out = Vec::new();
            assert!(json(&mut out, Some(value.as_bytes()), max));
            assert_eq!(String::from_utf8(out), Ok(format!("\"{cut}\"")), "{value} {max}");
        }
    }
}
