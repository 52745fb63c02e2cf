//! Detects paths that need no decoding, eight bytes at a time in safe Rust. Most paths are such, and each request
//! checks.
//!
//! Each byte is compared together with the one before it, by reading words at two offsets.

use std::iter::zip;

const WORD: usize = size_of::<u64>();
const HALF: usize = size_of::<u32>();
const LOW_BITS: u64 = splat(0x7F);
const HIGH_BITS: u64 = splat(0x80);

/// Returns whether a path after its first slash is a plain name: no `%` or NUL, and no segment that is empty or begins
/// with a dot.
pub(crate) fn is_plain(path: &[u8]) -> bool {
    let Some(shifted) = path.get(1..) else { return false };
    let before = &path[..shifted.len()];
    if let (Some(left), Some(right)) = (before.last_chunk(), shifted.last_chunk()) {
        // The last word overlaps the one before it.
        let words = zip(before.as_chunks().0, shifted.as_chunks().0);
        return words.fold(are_plain(word(left), word(right)), |all, (left, right)| {
            all & are_plain(word(left), word(right))
        });
    }
    match (halves(before), halves(shifted)) {
        (Some(left), Some(right)) => are_plain(left, right),
        _ => zip(before, shifted).all(|(&left, &right)| are_plain(splat(left), splat(right))),
    }
}

/// Compares two words, of which `right` is one byte further on in the path.
///
/// Returns true if no byte of `right` is a `%` or NUL, and no dot or slash in it follows a slash in `left`.
fn are_plain(left: u64, right: u64) -> bool {
    // A dot and a slash differ only in the lowest bit.
    let begins_none = differs(left, b'/') | differs(right | splat(1), b'/');
    let is_literal = differs(right, b'%') & differs(right, 0);
    begins_none & is_literal & HIGH_BITS == HIGH_BITS
}

/// Sets the top bit of each byte that differs from `byte`; lower bits are undefined. No carry crosses bytes.
fn differs(word: u64, byte: u8) -> u64 {
    let difference = word ^ splat(byte);
    ((difference & LOW_BITS) + LOW_BITS) | difference
}

fn word(bytes: &[u8; WORD]) -> u64 {
    u64::from_le_bytes(*bytes)
}

/// Loads four to seven bytes as the first and the last four.
fn halves(bytes: &[u8]) -> Option<u64> {
    let [first, last]: [&[u8; HALF]; 2] = [bytes.first_chunk()?, bytes.last_chunk()?];
    let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
    Some(first | last << u32::BITS)
}

const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; WORD])
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    /// Reference implementation that checks pairs of bytes.
    fn is_plain_by_pairs(path: &[u8]) -> bool {
        let is_special = |pair: &[u8]| matches!(pair, [_, b'%' | 0] | [b'/', b'.' | b'/']);
        !path.is_empty() && !path.windows(2).any(is_special)
    }

    #[test]
    fn every_pair_counts_wherever_it_is() {
        const BYTES: &[u8] = b"/.%\0a-\x01\x2d\x25\xae\xaf\xa5\x80\xff";
        for len in 2..=40 {
            for at in 1..len {
                for &left in BYTES {
                    for &right in BYTES {
                        let mut path = vec![b'x'; len];
                        path[0] = b'/';
                        path[at - 1] = if at == 1 { b'/' } else { left };
                        path[at] = right;
                        assert_eq!(is_plain(&path), is_plain_by_pairs(&path), "{path:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_short_path_is_told_right() {
        const BYTES: &[u8] = b"/.%a\0";
        let (mut plain, mut other) = (0, 0);
        for len in 0..=8_u32 {
            for number in 0..BYTES.len().pow(len) {
                let path: Vec<u8> =
                    (0..len).map(|at| BYTES[number / BYTES.len().pow(at) % BYTES.len()]).collect();
                let is_plain_path = is_plain(&path);
                assert_eq!(is_plain_path, is_plain_by_pairs(&path), "{path:?}");
                *(if is_plain_path { &mut plain } else { &mut other }) += 1;
            }
        }
        assert!(plain > 1_000 && other > 100_000, "{plain} and {other}");
    }
}
