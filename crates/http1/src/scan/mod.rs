//! The byte scanner: every search over more than a few bytes of a head goes through this door, so that a faster
//! implementation replaces one folder.

mod swar;

/// The offset of the first control byte other than HTAB (`< 0x20` or `0x7F`): the end of a line, or a fault.
#[inline]
pub(crate) fn control(bytes: &[u8]) -> Option<usize> {
    swar::position(bytes, swar::controls)
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
