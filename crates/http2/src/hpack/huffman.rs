//! The Huffman code (RFC 7541 5.2, appendix B). It is canonical: the lengths of the codes determine them.

use super::decoder::HpackError;

/// Length of each byte's code in bits, and of the end of a string.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// All bytes and the end of a string, which must not occur.
const SYMBOLS: usize = 257;
const END: usize = SYMBOLS - 1;
/// Longest code in bits.
const LENGTH_MAX: usize = 30;
/// Codes up to this length are found by one look-up: all that are usual in headers.
const SHORT_BITS: usize = 10;

/// Codes of one length: consecutive numbers, and consecutive places in the order of all codes.
#[derive(Clone, Copy)]
struct CodesOfLength {
    first: u32,
    /// Place of the first code.
    place: u16,
    /// First number that is no code of this length, at the upper end of 32 bits.
    end: u64,
}

struct Tables {
    codes: [u32; SYMBOLS],
    /// Symbols in the order of their codes.
    symbols: [u16; SYMBOLS],
    lengths: [CodesOfLength; LENGTH_MAX + 1],
    /// For each beginning: the byte, and its code's length; 0 for a longer one.
    short: [(u8, u8); 1 << SHORT_BITS],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut tables = Tables {
        codes: [0; SYMBOLS],
        symbols: [0; SYMBOLS],
        lengths: [CodesOfLength { first: 0, place: 0, end: 0 }; LENGTH_MAX + 1],
        short: [(0, 0); 1 << SHORT_BITS],
    };
    let (mut length, mut code, mut place) = (1, 0, 0);
    while length <= LENGTH_MAX {
        code <<= 1;
        let first = code;
        tables.lengths[length] = CodesOfLength { first, place: place as u16, end: 0 };
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                tables.codes[symbol] = code;
                tables.symbols[place] = symbol as u16;
                if length <= SHORT_BITS {
                    fill(&mut tables.short, code as usize, length, symbol as u8);
                }
                code += 1;
                place += 1;
            }
            symbol += 1;
        }
        tables.lengths[length].end = (code as u64) << (u32::BITS as usize - length);
        length += 1;
    }
    tables
}

/// Fills all beginnings that a short code is the start of.
const fn fill(short: &mut [(u8, u8)], code: usize, length: usize, symbol: u8) {
    let mut place = code << (SHORT_BITS - length);
    while place < (code + 1) << (SHORT_BITS - length) {
        short[place] = (symbol, length as u8);
        place += 1;
    }
}

/// Appends the text of a code.
///
/// # Errors
/// If the code contains the end of a string, or its padding isn't less than a byte of ones.
pub(super) fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    out.reserve(input.len() * u8::BITS as usize / 5 + 1);
    let mut rest = input;
    // The next bits, from the upper end; those after `count` are zeros or bits to come.
    let (mut bits, mut count) = (0u64, 0usize);
    loop {
        if count < LENGTH_MAX {
            (bits, count) = refill(bits, count, &mut rest);
        }
        let (byte, length) = TABLES.short[(bits >> (u64::BITS as usize - SHORT_BITS)) as usize];
        let (symbol, length) = match length {
            0 => long((bits >> u32::BITS) as u32),
            _ => (byte.into(), length.into()),
        };
        if length > count {
            return check_padding(bits, count);
        }
        out.push(u8::try_from(symbol).map_err(|_| HpackError::HuffmanEnd)?);
        bits <<= length;
        count -= length;
    }
}

/// Adds whole bytes of the input until there are more than 56 bits, or no input is left.
#[inline]
fn refill(mut bits: u64, mut count: usize, rest: &mut &[u8]) -> (u64, usize) {
    if let Some(word) = rest.first_chunk() {
        let taken = (63 - count) / 8;
        *rest = &rest[taken..];
        return (bits | u64::from_be_bytes(*word) >> count, count + 8 * taken);
    }
    // A whole word may have left bits beyond `count`, which come again.
    while let (Some((&byte, after)), true) = (rest.split_first(), count <= 56) {
        bits |= u64::from(byte) << (56 - count);
        count += 8;
        *rest = after;
    }
    (bits, count)
}

/// Returns the symbol of a code that isn't short, and the code's length.
#[cold]
fn long(bits: u32) -> (u16, usize) {
    for (length, codes) in TABLES.lengths.iter().enumerate().skip(SHORT_BITS + 1) {
        if u64::from(bits) < codes.end {
            let place = (bits >> (u32::BITS as usize - length)) - codes.first + u32::from(codes.place);
            return (TABLES.symbols[place as usize], length);
        }
    }
    (END as u16, LENGTH_MAX)
}

fn check_padding(bits: u64, count: usize) -> Result<(), HpackError> {
    let is_ones = bits.leading_ones() as usize >= count;
    if count < u8::BITS as usize && is_ones { Ok(()) } else { Err(HpackError::HuffmanPadding) }
}

/// Returns the length of a text's code in bytes.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(u8::BITS as usize)
}

/// Appends the code of a text.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0u64, 0u32);
    for &byte in text {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        bits = bits << length | u64::from(TABLES.codes[usize::from(byte)]);
        count += length;
        if count >= u32::BITS {
            count -= u32::BITS;
            out.extend_from_slice(&((bits >> count) as u32).to_be_bytes());
        }
    }
    // Padding with ones, the beginning of the end of a string.
    let padding = count.next_multiple_of(u8::BITS) - count;
    bits = bits << padding | ((1 << padding) - 1);
    for place in (0..count.div_ceil(u8::BITS)).rev() {
        out.push((bits >> (place * u8::BITS)) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = Vec::new();
        decode(input, &mut out).map(|()| out)
    }

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(text, &mut out);
        assert_eq!(out.len(), encoded_len(text));
        out
    }

    /// Codes from the RFC's appendix B: the shortest and the longest, and both ends of lengths.
    #[test]
    fn codes_are_those_of_the_rfc() {
        for (symbol, code) in [
            (b'0'.into(), 0x0),
            (b't'.into(), 0x9),
            (b' '.into(), 0x14),
            (b'A'.into(), 0x21),
            (b'z'.into(), 0x7b),
            (b'&'.into(), 0xf8),
            (b'Z'.into(), 0xfd),
            (b'!'.into(), 0x3f8),
            (b'|'.into(), 0x7fc),
            (b'#'.into(), 0xffa),
            (b'{'.into(), 0x7ffe),
            (0xFF, 0x3ff_ffee),
            (0x0A, 0x3fff_fffc),
            (249, 0xfff_fffe),
            (END, 0x3fff_ffff),
        ] {
            assert_eq!(TABLES.codes[symbol], code, "{symbol}");
        }
    }

    #[test]
    fn reads_each_byte_at_each_offset() {
        for byte in 0..=255 {
            for before in 0..9 {
                for behind in [0, 1, 9] {
                    let text = [&vec![b'a'; before][..], &[byte], &vec![byte; behind]].concat();
                    assert_eq!(decoded(&encoded(&text)), Ok(text));
                }
            }
        }
    }

    #[test]
    fn reads_random_texts() {
        let mut random = testkit::random::part(1, 7);
        for _ in 0..2_000 {
            let len = random.usize(..200);
            let text = testkit::random::bytes(&mut random, len);
            assert_eq!(decoded(&encoded(&text)), Ok(text));
        }
    }

    /// Any input is either an error or, encoded again, itself.
    #[test]
    fn each_text_has_one_code() {
        let mut random = testkit::random::part(1, 8);
        let mut valid = 0;
        for _ in 0..20_000 {
            let len = random.usize(..6);
            let input = testkit::random::bytes(&mut random, len);
            if let Ok(text) = decoded(&input) {
                assert_eq!(encoded(&text), input);
                valid += 1;
            }
        }
        assert!(valid > 1_000, "{valid}");
    }

    #[test]
    fn rejects_padding_and_ends() {
        for (input, expected) in [
            (&b"\x07"[..], Ok(b"0".to_vec())),
            (b"\x06", Err(HpackError::HuffmanPadding)),
            (b"\xFF", Err(HpackError::HuffmanPadding)),
            (b"\x07\xFF", Err(HpackError::HuffmanPadding)),
            (b"\xFF\xFF\xFF\xFF", Err(HpackError::HuffmanEnd)),
            (b"\xFF\xFF\xFF\xFC\x07", Err(HpackError::HuffmanEnd)),
            (b"", Ok(vec![])),
        ] {
            assert_eq!(decoded(input), expected, "{}", input.escape_ascii());
        }
    }
}
