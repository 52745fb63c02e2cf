//! Response encoding: functions that append to an output buffer, always HTTP/1.1 (RFC 9112 2.3).

mod status;

use crate::scan;
use std::fmt;

pub use status::{reason, status_line};

/// Number of digits of the largest `u64`.
const DECIMAL_DIGITS_MAX: usize = u64::MAX.ilog10() as usize + 1;
const HEXADECIMAL_DIGITS_MAX: usize = usize::BITS as usize / 4;

/// Reason why a field was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadField {
    /// The name is not a token (RFC 9110 5.1).
    Name,
    /// The value has a CR, LF, NUL or another control character (RFC 9110 5.5).
    Value,
}

impl fmt::Display for BadField {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Name => "A field name is not a token.",
            Self::Value => "A field value contains a control character.",
        })
    }
}

impl std::error::Error for BadField {}

/// Appends a field line. Fields that decide where a message ends are written by [`content_length`] and [`chunked`].
///
/// # Errors
/// If name or value could not be read back as one field; then nothing is written.
pub fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), BadField> {
    if !scan::is_token(name.as_bytes()) {
        return Err(BadField::Name);
    }
    if scan::has_control(value) {
        return Err(BadField::Value);
    }
    out.reserve(name.len() + value.len() + b": \r\n".len());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Appends `Content-Length`, in bytes.
pub fn content_length(out: &mut Vec<u8>, length: u64) {
    append_length(out, length, b"\r\n".len());
}

/// Appends `Content-Length` as the last field, and the empty line after it.
#[inline]
pub fn content_length_and_end(out: &mut Vec<u8>, length: u64) {
    append_length(out, length, b"\r\n\r\n".len());
}

/// Appends the name and the number; `behind` bytes of line ends follow. Most lengths have few digits, which
/// fit one word together with the line ends.
#[inline]
fn append_length(out: &mut Vec<u8>, length: u64, behind: usize) {
    if length >= FEW_DIGITS_END {
        return append_long_length(out, length, behind);
    }
    const NAME: &[u8; 16] = b"Content-Length: ";
    const END: u64 = u32::from_le_bytes(*b"\r\n\r\n") as u64;
    let start = out.len();
    let (digits, count) = few_digits(length);
    let word = u64::from(digits) | END << (count as u32 * u8::BITS);
    let mut line = [0; NAME.len() + size_of::<u64>()];
    line[..NAME.len()].copy_from_slice(NAME);
    line[NAME.len()..].copy_from_slice(&word.to_le_bytes());
    out.extend_from_slice(&line);
    out.truncate(start + NAME.len() + count + behind);
}

/// Appends the longest possible line, then writes the number in place, which avoids a copy from a temporary
/// buffer.
#[inline(never)]
fn append_long_length(out: &mut Vec<u8>, length: u64, behind: usize) {
    const NAME_BYTES: usize = b"Content-Length: ".len();
    const LINE: &[u8; NAME_BYTES + DECIMAL_DIGITS_MAX + END.len()] =
        b"Content-Length: 00000000000000000000\r\n\r\n";
    const END: &[u8; 4] = b"\r\n\r\n";
    let start = out.len();
    out.extend_from_slice(LINE);
    let Some(line) = out.last_chunk_mut::<{ LINE.len() }>() else { return };
    let end = NAME_BYTES + digits(length);
    write_decimal(line, end, length);
    line[end..end + END.len()].copy_from_slice(END);
    out.truncate(start + end + behind);
}

/// Appends `Transfer-Encoding: chunked`. Never to an HTTP/1.0 client (RFC 9112 6.1).
pub fn chunked(out: &mut Vec<u8>) {
    out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
}

/// Appends `Connection: close`.
pub fn connection_close(out: &mut Vec<u8>) {
    out.extend_from_slice(b"Connection: close\r\n");
}

/// Appends `Connection: keep-alive`, which HTTP/1.0 clients require.
pub fn connection_keep_alive(out: &mut Vec<u8>) {
    out.extend_from_slice(b"Connection: keep-alive\r\n");
}

/// Appends `Connection: upgrade`.
pub fn connection_upgrade(out: &mut Vec<u8>) {
    out.extend_from_slice(b"Connection: upgrade\r\n");
}

/// Appends the empty line after the last field.
pub fn end_of_head(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Appends a complete `100 Continue`, the interim response that requests the body (RFC 9110 15.2.1).
pub fn continue_100(out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
}

/// Appends a whole chunk (RFC 9112 7.1). Appends nothing for empty data, because a chunk of size 0 ends the body.
pub fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    if !data.is_empty() {
        hexadecimal(out, data.len());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends the end of a chunked body, without trailers.
pub fn last_chunk(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

/// Appends the end of a chunked body with its trailers, which are lines of [`field`] (RFC 9112 7.1.2).
#[cold]
pub fn last_chunk_and_trailers(out: &mut Vec<u8>, trailers: &[u8]) {
    out.extend_from_slice(b"0\r\n");
    out.extend_from_slice(trailers);
    out.extend_from_slice(b"\r\n");
}

/// Appends `number` in lower-case hexadecimal, without leading zeros.
fn hexadecimal(out: &mut Vec<u8>, mut number: usize) {
    let mut digits = [0; HEXADECIMAL_DIGITS_MAX];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b"0123456789abcdef"[number & 0xF];
        number >>= 4;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Two digits for each number below 100.
static PAIRS: [[u8; 2]; 100] = pairs();

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
}

/// Returns the number of decimal digits of `number`.
#[inline]
fn digits(number: u64) -> usize {
    match number {
        ..100_000 => {
            [10, 100, 1_000, 10_000].iter().fold(1, |digits, power| digits + usize::from(number >= *power))
        }
        _ => number.ilog10() as usize + 1,
    }
}

/// Writes `number` in decimal so that it ends before `end`; returns where it starts.
#[inline]
fn write_decimal<const BYTES: usize>(bytes: &mut [u8; BYTES], end: usize, mut number: u64) -> usize {
    let mut start = end;
    while number >= 10 {
        start -= 2;
        bytes[start..start + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number > 0 || start == end {
        start -= 1;
        bytes[start] = b'0' + number as u8;
    }
    start
}

/// Exclusive upper bound of [`few_digits`].
const FEW_DIGITS_END: u64 = 10_000;

/// Returns the digits of a number below [`FEW_DIGITS_END`], the first one in the lowest byte, and their
/// count.
#[inline]
fn few_digits(number: u64) -> (u32, usize) {
    let count = digits(number);
    let ([thousands, hundreds], [tens, ones]) =
        (PAIRS[(number / 100 % 100) as usize], PAIRS[(number % 100) as usize]);
    let all = u32::from_le_bytes([thousands, hundreds, tens, ones]);
    (all >> ((size_of::<u32>() - count) as u32 * u8::BITS), count)
}

#[cfg(test)]
mod tests {
    use super::{PAIRS, pairs};

    #[test]
    fn pairs_are_two_digits() {
        let built = pairs();
        assert_eq!(built, PAIRS);
        for (number, pair) in built.iter().enumerate() {
            assert_eq!(pair.as_slice(), format!("{number:02}").as_bytes());
        }
    }
}
