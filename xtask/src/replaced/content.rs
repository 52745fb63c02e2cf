//! What the files hold: every 8 bytes say of which generation they are and where they stand, so that no mixture can hide.

/// Bytes of one word; lengths and offsets are multiples of it.
pub(crate) const WORD: usize = 8;
/// The generation in the first word of a file that is being rewritten in place: what follows is half written.
const HALF_WRITTEN: u32 = 0;

/// What a whole body, or a part of one, turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// Of one generation, every byte in its place.
    Of(u32),
    /// The file says itself that it is half written.
    HalfWritten,
    /// Anything else.
    Mixture(String),
}

/// Content of `len` bytes. `form` tells one file from another that stands in its place, as a packed sibling does.
pub(crate) fn content(generation: u32, form: u32, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    for index in 0..len / WORD {
        bytes.extend_from_slice(&word(generation, form, index));
    }
    bytes
}

/// The first word of a file that is being rewritten.
pub(crate) fn half_written(form: u32) -> [u8; WORD] {
    word(HALF_WRITTEN, form, 0)
}

fn word(generation: u32, form: u32, index: usize) -> [u8; WORD] {
    // Files have fewer than 2^31 words.
    let word = u64::from(generation) | (u64::from(form) << 63) | ((index as u64) << 32);
    word.to_le_bytes()
}

/// Reads what came of a file from `offset` on.
pub(crate) fn read(bytes: &[u8], form: u32, offset: usize) -> Body {
    let mut found = None;
    let (words, rest) = bytes.as_chunks::<WORD>();
    if !rest.is_empty() {
        return Body::Mixture(format!("a piece of a word after {} words", words.len()));
    }
    for (index, bytes) in words.iter().enumerate() {
        let at = offset + index * WORD;
        // The lower half is the generation.
        let generation = u64::from_le_bytes(*bytes) as u32;
        if *bytes != word(generation, form, at / WORD) {
            return Body::Mixture(format!("{bytes:?} at {at}"));
        }
        if at == 0 && generation == HALF_WRITTEN {
            return Body::HalfWritten;
        }
        let first = *found.get_or_insert(generation);
        if generation != first {
            return Body::Mixture(format!("generation {generation} at {at}, {first} before"));
        }
    }
    found.map_or(Body::Mixture("nothing".to_owned()), Body::Of)
}

#[cfg(test)]
mod tests {
    use super::{Body, WORD, content, half_written, read};

    #[test]
    fn a_generation_is_read_whole_and_in_part() {
        let bytes = content(7, 1, 80);
        assert_eq!(bytes.len(), 80);
        assert_eq!(read(&bytes, 1, 0), Body::Of(7));
        assert_eq!(read(&bytes[16..40], 1, 16), Body::Of(7));
    }

    #[test]
    fn nothing_else_passes() {
        let (one, other) = (content(7, 0, 80), content(8, 0, 80));
        let cases = [
            [&one[..40], &other[40..]].concat(),
            [&other[..8], &one[8..]].concat(),
            [&one[..40], &[0; 40]].concat(),
            [&one[8..16], &one[8..]].concat(),
            one[..79].to_vec(),
            content(7, 1, 80),
            Vec::new(),
        ];
        for bytes in cases {
            assert!(matches!(read(&bytes, 0, 0), Body::Mixture(_)), "{bytes:?}");
        }
        let mut rewritten = one;
        rewritten[..WORD].copy_from_slice(&half_written(0));
        assert_eq!(read(&rewritten, 0, 0), Body::HalfWritten);
    }
}
