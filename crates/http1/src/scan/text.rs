//! Conversion of ASCII bytes to text.

use super::swar;

/// Returns `bytes` as text; `None` if one of them is above 0x7F.
#[inline]
pub(crate) fn ascii(bytes: &[u8]) -> Option<&str> {
    if !swar::all(bytes, swar::is_ascii) && !bytes.is_ascii() {
        return None;
    }
    // SAFETY: all bytes are ASCII, and ASCII is UTF-8.
    Some(unsafe { std::str::from_utf8_unchecked(bytes) })
}
