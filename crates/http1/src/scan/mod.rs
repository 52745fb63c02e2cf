//! The byte scanner: every search over more than a few bytes of a head goes through this door, so that a faster
//! implementation replaces one folder.

mod blocks;
mod swar;

/// The offset of the first control byte other than HTAB (`< 0x20` or `0x7F`): the end of a line, or a fault.
#[inline]
pub(crate) fn control(bytes: &[u8]) -> Option<usize> {
    let clean = blocks::clean_len(bytes);
    swar::position(&bytes[clean..], swar::controls).map(|offset| clean + offset)
}

/// The offset of the first `:`.
#[inline]
pub(crate) fn colon(bytes: &[u8]) -> Option<usize> {
    swar::position(bytes, |word| swar::equal(word, b':'))
}

/// The offset of the first SP.
#[inline]
pub(crate) fn space(bytes: &[u8]) -> Option<usize> {
    swar::position(bytes, |word| swar::equal(word, b' '))
}

/// The offset of the first `?`.
#[inline]
pub(crate) fn question_mark(bytes: &[u8]) -> Option<usize> {
    swar::position(bytes, |word| swar::equal(word, b'?'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_search_agrees_with_a_plain_loop_at_every_length_and_place() {
        for length in 0..100 {
            for place in 0..=length {
                for byte in *b"\r\n\t\0\x7f: ?\xff\x1f\x80" {
                    let mut bytes = vec![b'x'; length];
                    bytes[place..].fill(byte);
                    let first = |matches: fn(&u8) -> bool| bytes.iter().position(matches);
                    assert_eq!(control(&bytes), first(|byte| byte.is_ascii_control() && *byte != b'\t'));
                    assert_eq!(colon(&bytes), first(|byte| *byte == b':'));
                    assert_eq!(space(&bytes), first(|byte| *byte == b' '));
                    assert_eq!(question_mark(&bytes), first(|byte| *byte == b'?'));
                }
            }
        }
    }
}
