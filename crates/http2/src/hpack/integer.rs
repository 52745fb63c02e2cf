//! Integers with a prefix (RFC 7541 5.1), and string literals (5.2).

use super::decoder::HpackError;
use super::huffman;

/// Bytes of an integer after its prefix: enough for 2^28, far beyond any length or index.
const CONTINUATIONS_MAX: usize = 4;

/// Bit of a string's first byte: its text is in Huffman code.
const HUFFMAN: u8 = 0x80;
const LENGTH_BITS: u32 = 7;

/// Takes an integer off the front of `input`; its prefix is the low `bits` of the first byte.
#[inline]
pub(super) fn take(input: &mut &[u8], bits: u32) -> Result<usize, HpackError> {
    let (&first, rest) = input.split_first().ok_or(HpackError::Truncated)?;
    let mask = (1 << bits) - 1;
    let prefix = usize::from(first) & mask;
    *input = rest;
    match prefix < mask {
        true => Ok(prefix),
        false => take_rest(input, prefix),
    }
}

#[cold]
fn take_rest(input: &mut &[u8], prefix: usize) -> Result<usize, HpackError> {
    let mut value = prefix;
    for (place, &byte) in input.iter().take(CONTINUATIONS_MAX).enumerate() {
        value += usize::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            *input = &input[place + 1..];
            return Ok(value);
        }
    }
    Err(if input.len() < CONTINUATIONS_MAX { HpackError::Truncated } else { HpackError::IntegerTooLarge })
}

/// Takes a string off the front of `input`. One in Huffman code is decoded into `decoded`.
#[inline]
pub(super) fn take_string<'o, 'i: 'o, 'd: 'o>(
    input: &mut &'i [u8],
    decoded: &'d mut Vec<u8>,
) -> Result<&'o [u8], HpackError> {
    let is_huffman = input.first().is_some_and(|first| first & HUFFMAN != 0);
    let len = take(input, LENGTH_BITS)?;
    let (text, rest) = input.split_at_checked(len).ok_or(HpackError::Truncated)?;
    *input = rest;
    if !is_huffman {
        return Ok(text);
    }
    decoded.clear();
    huffman::decode(text, decoded)?;
    Ok(decoded)
}

/// Appends an integer whose prefix has `bits`; `pattern` are the bits above it.
#[inline]
pub(super) fn append(out: &mut Vec<u8>, pattern: u8, bits: u32, value: usize) {
    let mask = (1usize << bits) - 1;
    if value < mask {
        return out.push(pattern | value as u8);
    }
    out.push(pattern | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a string in the shorter of its two forms.
pub(super) fn append_string(out: &mut Vec<u8>, text: &[u8]) {
    let coded_len = huffman::encoded_len(text);
    if coded_len < text.len() {
        append(out, HUFFMAN, LENGTH_BITS, coded_len);
        huffman::encode(text, out);
    } else {
        append(out, 0, LENGTH_BITS, text.len());
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        for (bits, value, bytes) in
            [(5, 10, &b"\x0A"[..]), (5, 1337, b"\x1F\x9A\x0A"), (8, 42, b"\x2A"), (5, 31, b"\x1F\0")]
        {
            let mut out = Vec::new();
            append(&mut out, 0, bits, value);
            assert_eq!(out, bytes, "C.1");
            assert_eq!(take(&mut &*out, bits), Ok(value));
        }
    }

    #[test]
    fn reads_all_that_it_writes() {
        for bits in 4..=7 {
            for value in (0..400).chain([16_383, 16_384, (1 << 20), (1 << 28) - 1]) {
                let mut out = Vec::new();
                append(&mut out, 0, bits, value);
                out.push(9);
                let mut input = &out[..];
                assert_eq!((take(&mut input, bits), input), (Ok(value), &[9][..]));
                for end in 0..out.len() - 1 {
                    assert_eq!(take(&mut &out[..end], bits), Err(HpackError::Truncated));
                }
            }
        }
    }

    #[test]
    fn rejects_large_integers_however_they_are_padded() {
        for bytes in [b"\x7F\xFF\xFF\xFF\xFF\x00", b"\x7F\x80\x80\x80\x80\x00"] {
            assert_eq!(take(&mut &bytes[..], 7), Err(HpackError::IntegerTooLarge));
        }
    }

    #[test]
    fn strings_are_coded_only_if_that_is_shorter() {
        for (text, bytes) in [
            (&b"www.example.com"[..], &b"\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..]),
            (b"\\\\", b"\x02\\\\"),
            (b"", b"\0"),
        ] {
            let (mut out, mut decoded) = (Vec::new(), Vec::new());
            append_string(&mut out, text);
            assert_eq!(out, bytes);
            assert_eq!(take_string(&mut &*out, &mut decoded), Ok(text));
        }
    }
}
