//! Escaping: no value can end its line, its quotes or its JSON string.

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Appends a value for a line of text: quotes, backslashes, control bytes and bytes beyond ASCII become `\xHH`, as in
/// nginx. An absent value becomes `-`. The rest of one that is longer than `max` bytes is cut.
pub(crate) fn text(out: &mut Vec<u8>, value: Option<&[u8]>, max: usize) {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return out.push(b'-') };
    raw(out, value, max);
}

/// Appends a value as [`text`], and nothing for an empty one.
pub(crate) fn raw(out: &mut Vec<u8>, value: &[u8], max: usize) {
    if value.len() <= max && are_plain(value) {
        return out.extend_from_slice(value);
    }
    let end = out.len() + max;
    for byte in value {
        let escaped = [b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
        let bytes = if is_plain(byte) { std::slice::from_ref(byte) } else { &escaped };
        if out.len() + bytes.len() > end {
            return;
        }
        out.extend_from_slice(bytes);
    }
}

fn is_plain(byte: &u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')
}

/// Returns true if no byte needs an escape.
fn are_plain(value: &[u8]) -> bool {
    let Some(last) = value.last_chunk() else { return value.iter().all(is_plain) };
    // The last eight overlap those before them, which is cheaper than single bytes.
    let found = value.as_chunks().0.iter().fold(0, |found, eight| found | find_unplain(*eight));
    found | find_unplain(*last) == 0
}

/// Sets the highest bit of each byte that needs an escape, and possibly those of bytes above one.
fn find_unplain(eight: [u8; 8]) -> u64 {
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    let word = u64::from_le_bytes(eight);
    // Borrows and carries reach the next byte only from one that needs an escape itself.
    let are_below = |word: u64, byte: u8| word.wrapping_sub(each(byte)) & !word;
    let are_quotes = are_below(word ^ each(b'"'), 1);
    let are_backslashes = are_below(word ^ each(b'\\'), 1);
    let are_above = word | word.wrapping_add(each(0x80 - 0x7F));
    (are_below(word, b' ') | are_quotes | are_backslashes | are_above) & each(0x80)
}

/// Appends a JSON string (RFC 8259 section 7); `null` for an absent value. Bytes that aren't UTF-8 become U+FFFD.
/// The rest of a value that is longer than `max` bytes is cut.
pub(crate) fn json(out: &mut Vec<u8>, value: Option<&[u8]>, max: usize) {
    let Some(value) = value else { return out.extend_from_slice(b"null") };
    out.push(b'"');
    let end = out.len() + max;
    'chunks: for chunk in value.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if !json_char(out, letter, end) {
                break 'chunks;
            }
        }
        if !chunk.invalid().is_empty() && !json_char(out, char::REPLACEMENT_CHARACTER, end) {
            break;
        }
    }
    out.push(b'"');
}

/// Appends a character of a JSON string, unless that would exceed `end`.
fn json_char(out: &mut Vec<u8>, letter: char, end: usize) -> bool {
    let mut plain = [0; 4];
    let code = letter as u32 as u8;
    let escaped = [b'\\', b'u', b'0', b'0', HEX[usize::from(code >> 4)], HEX[usize::from(code & 15)]];
    let bytes = match letter {
        '"' => &br#"\""#[..],
        '\\' => br"\\",
        // DEL and the C1 controls, too: terminals act on them.
        '\0'..='\x1F' | '\x7F'..='\u{9F}' => &escaped,
        // Line separators of JavaScript and of some readers of lines.
        '\u{2028}' => br"\u2028",
        '\u{2029}' => br"\u2029",
        _ => letter.encode_utf8(&mut plain).as_bytes(),
    };
    let fits = out.len() + bytes.len() <= end;
    if fits {
        out.extend_from_slice(bytes);
    }
    fits
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
    use super::{are_plain, number};

    #[test]
    fn finds_a_byte_to_escape_at_any_place() {
        for len in 0..70 {
            assert!(are_plain(&vec![b'~'; len]));
            for at in 0..len {
                for byte in [0, 31, b'"', b'\\', 127, 128, 255] {
                    let mut value = vec![b' '; len];
                    value[at] = byte;
                    assert!(!are_plain(&value), "{byte} at {at} of {len}");
                }
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
}
