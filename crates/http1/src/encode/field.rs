//! Field lines of a response.

use super::number::{DECIMAL_DIGITS_MAX, FEW_DIGITS_END, digits, few_digits, write_decimal};
use crate::{class, scan};
use std::fmt;

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
    if !class::is_token(name.as_bytes()) {
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
