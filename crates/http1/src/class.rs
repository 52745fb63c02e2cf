//! Character classes of RFC 9110 and RFC 3986 as one table.

use crate::scan;

const TOKEN: u8 = 1;
const FIELD_VALUE: u8 = 2;
const REG_NAME: u8 = 4;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut code = 0;
    while code < table.len() {
        table[code] = classes_of(code as u8);
        code += 1;
    }
    table
}

const fn classes_of(byte: u8) -> u8 {
    let mut classes = 0;
    let alphanumeric = byte.is_ascii_alphanumeric();
    if alphanumeric || is_one_of(byte, b"!#$%&'*+-.^_`|~") {
        classes |= TOKEN;
    }
    if byte == b'\t' || (byte >= b' ' && byte != 0x7F) {
        classes |= FIELD_VALUE;
    }
    if alphanumeric || is_one_of(byte, b"-._~!$&'()*+,;=") {
        classes |= REG_NAME;
    }
    classes
}

const fn is_one_of(byte: u8, set: &[u8]) -> bool {
    let mut index = 0;
    while index < set.len() {
        if set[index] == byte {
            return true;
        }
        index += 1;
    }
    false
}

/// Returns true for a `tchar` (RFC 9110 5.6.2).
#[inline]
pub(crate) fn is_token_byte(byte: u8) -> bool {
    CLASSES[byte as usize] & TOKEN != 0
}

/// Returns true for a `token`, 1*tchar (RFC 9110 5.6.2).
#[inline(never)]
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    // Most names consist of letters, digits and hyphens.
    scan::is_plain_name(bytes) || (!bytes.is_empty() && bytes.iter().all(|&byte| is_token_byte(byte)))
}

/// Returns true for visible ASCII other than `#`: a fragment is never part of a request target (RFC 9112
/// 3.2). Reads every byte, so that the compiler can vectorize it.
#[inline]
pub(crate) fn is_target(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |all, &byte| all & (byte > b' ') & (byte < 0x7F) & (byte != b'#'))
}

/// Returns true for VCHAR, SP, HTAB or obs-text (RFC 9110 5.5).
#[inline]
pub(crate) fn is_field_value_byte(byte: u8) -> bool {
    CLASSES[byte as usize] & FIELD_VALUE != 0
}

/// Returns true for `unreserved` or `sub-delims`: `reg-name` (RFC 3986 3.2.2) except percent-encoded octets.
#[inline]
pub(crate) fn is_reg_name_byte(byte: u8) -> bool {
    CLASSES[byte as usize] & REG_NAME != 0
}

/// Returns true for SP or HTAB, the bytes of OWS and BWS (RFC 9110 5.6.3).
#[inline]
pub(crate) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Returns `bytes` without the surrounding OWS.
#[inline]
pub(crate) fn trim_blanks(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_blank(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_blank(*last)
    {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{CLASSES, FIELD_VALUE, REG_NAME, TOKEN, classes};

    /// Compares the table with the grammars of the RFCs.
    #[test]
    fn the_table_is_the_grammar() {
        let alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let token = format!("!#$%&'*+-.^_`|~{alphanumeric}");
        let reg_name = format!("-._~!$&'()*+,;={alphanumeric}");
        let built = classes();
        assert_eq!(built, CLASSES);
        for (byte, classes) in (0..=u8::MAX).zip(built) {
            let has = |class| classes & class != 0;
            assert_eq!(has(TOKEN), token.bytes().any(|one| one == byte), "{byte:#x}");
            assert_eq!(has(REG_NAME), reg_name.bytes().any(|one| one == byte), "{byte:#x}");
            assert_eq!(
                has(FIELD_VALUE),
                byte == 9 || (0x20..0x7f).contains(&byte) || byte >= 0x80,
                "{byte:#x}"
            );
        }
    }
}
