//! Escaping: no value can end its line, its quotes or its JSON string.

use crate::limits::LOG_VALUE_BYTES_MAX;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Appends a value for a line of text: quotes, backslashes, control bytes and bytes beyond ASCII become `\xHH`, as in
/// nginx. An absent value becomes `-`.
pub(crate) fn text(out: &mut Vec<u8>, value: Option<&[u8]>) {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return out.push(b'-') };
    raw(out, value);
}

/// Appends a value as [`text`], and nothing for an empty one.
pub(crate) fn raw(out: &mut Vec<u8>, value: &[u8]) {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    // Without an early end the compiler compares many bytes at once.
    let are_plain = value.iter().fold(true, |all, byte| all & is_plain(byte));
    if value.len() <= LOG_VALUE_BYTES_MAX && are_plain {
        return out.extend_from_slice(value);
    }
    let end = out.len() + LOG_VALUE_BYTES_MAX;
    for byte in value {
        let escaped = [b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
        let bytes = if is_plain(byte) { std::slice::from_ref(byte) } else { &escaped };
        if out.len() + bytes.len() > end {
            return;
        }
        out.extend_from_slice(bytes);
    }
}

/// Appends a JSON string (RFC 8259 section 7); `null` for an absent value. Bytes that aren't UTF-8 become U+FFFD.
pub(crate) fn json(out: &mut Vec<u8>, value: Option<&[u8]>) {
    let Some(value) = value else { return out.extend_from_slice(b"null") };
    out.push(b'"');
    let end = out.len() + LOG_VALUE_BYTES_MAX;
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

/// Appends a number.
pub(crate) fn number(out: &mut Vec<u8>, number: u64) {
    match number {
        0..1000 => small_number(out, number as u16),
        _ => long_number(out, number),
    }
}

/// Appends a number below 1,000: most are parts of addresses and statuses.
fn small_number(out: &mut Vec<u8>, number: u16) {
    let [hundreds, tens, ones] =
        [number / 100, number / 10 % 10, number % 10].map(|digit| b'0' + digit as u8);
    if number >= 100 {
        out.push(hundreds);
    }
    if number >= 10 {
        out.push(tens);
    }
    out.push(ones);
}

fn long_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return out.extend_from_slice(&digits[at..]);
        }
    }
}

/// Appends a fraction of three digits: 1,234 thousandths as `1.234`.
pub(crate) fn thousandths(out: &mut Vec<u8>, thousandths: u64) {
    number(out, thousandths / 1000);
    let rest = (thousandths % 1000) as u16;
    out.push(b'.');
    out.extend([rest / 100, rest / 10 % 10, rest % 10].map(|digit| b'0' + digit as u8));
}

#[cfg(test)]
mod tests {
    use super::number;

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
