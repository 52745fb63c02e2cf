//! HPACK (RFC 7541): decodes everything; encodes without tables and without the Huffman code.
//!
//! It shares nothing with the server's, so that a mistake of one of them shows.

use std::collections::{HashMap, VecDeque};
use std::sync::OnceLock;

use crate::error::{Error, malformed};

/// Names and values in order.
pub type Fields = Vec<(String, String)>;

/// Size of a dynamic table without a setting, bytes.
pub const TABLE_BYTES: usize = 4096;
/// Size of an entry without its name and value, bytes (section 4.1).
const ENTRY_BYTES: usize = 32;
/// Longest code in bits.
const CODE_BITS_MAX: u8 = 30;

/// The static table (appendix A), numbered from 1.
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""),
    ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""),
    ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""),
    ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""),
    ("proxy-authorization", ""), ("range", ""), ("referer", ""), ("refresh", ""), ("retry-after", ""),
    ("server", ""), ("set-cookie", ""), ("strict-transport-security", ""), ("transfer-encoding", ""),
    ("user-agent", ""), ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

/// Length of each byte's Huffman code in bits, and of the end of a string (appendix B). They determine the codes.
#[rustfmt::skip]
const CODE_BITS: [u8; 257] = [
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

/// The decoder of a connection's header blocks, with its dynamic table.
#[derive(Debug)]
pub struct Decoder {
    /// The newest entry first.
    table: VecDeque<(String, String)>,
    table_bytes: usize,
    /// Size that the encoder uses.
    bytes_max: usize,
    /// Size that the encoder may use.
    allowed_bytes: usize,
}

impl Decoder {
    /// Returns a decoder that allows a dynamic table of this size in bytes.
    pub fn new(allowed_bytes: usize) -> Self {
        let bytes_max = allowed_bytes.min(TABLE_BYTES);
        Self { table: VecDeque::new(), table_bytes: 0, bytes_max, allowed_bytes }
    }

    /// Decodes a whole block.
    pub fn decode(&mut self, block: &[u8]) -> Result<Fields, Error> {
        let (mut rest, mut fields) = (block, Fields::new());
        while let Some(&first) = rest.first() {
            if first & 0xE0 == 0x20 {
                self.bytes_max = integer(&mut rest, 5)?;
                if self.bytes_max > self.allowed_bytes || !fields.is_empty() {
                    return malformed("HPACK: a table size that isn't allowed");
                }
                self.evict();
                continue;
            }
            let field = if first & 0x80 != 0 {
                self.entry(integer(&mut rest, 7)?)?
            } else {
                let is_added = first & 0x40 != 0;
                let name = match integer(&mut rest, if is_added { 6 } else { 4 })? {
                    0 => string(&mut rest)?,
                    number => self.entry(number)?.0,
                };
                let field = (name, string(&mut rest)?);
                if is_added {
                    self.table_bytes += entry_bytes(&field);
                    self.table.push_front(field.clone());
                    self.evict();
                }
                field
            };
            fields.push(field);
        }
        Ok(fields)
    }

    fn entry(&self, number: usize) -> Result<(String, String), Error> {
        let Some(place) = number.checked_sub(1) else { return malformed("HPACK: entry 0") };
        if let Some((name, value)) = STATIC.get(place) {
            return Ok(((*name).to_owned(), (*value).to_owned()));
        }
        match self.table.get(place - STATIC.len()) {
            Some(field) => Ok(field.clone()),
            None => malformed(format!("HPACK: no entry {number}")),
        }
    }

    fn evict(&mut self) {
        while self.table_bytes > self.bytes_max {
            let Some(field) = self.table.pop_back() else { return };
            self.table_bytes -= entry_bytes(&field);
        }
    }
}

fn entry_bytes((name, value): &(String, String)) -> usize {
    name.len() + value.len() + ENTRY_BYTES
}

/// Takes an integer whose prefix has so many bits (section 5.1).
fn integer(input: &mut &[u8], prefix_bits: u32) -> Result<usize, Error> {
    let mask = (1_usize << prefix_bits) - 1;
    let mut number = usize::from(byte(input)?) & mask;
    if number < mask {
        return Ok(number);
    }
    for shift in [0, 7, 14, 21] {
        let next = byte(input)?;
        number += usize::from(next & 0x7F) << shift;
        if next & 0x80 == 0 {
            return Ok(number);
        }
    }
    malformed("HPACK: a large integer")
}

fn byte(input: &mut &[u8]) -> Result<u8, Error> {
    let Some((first, rest)) = input.split_first() else { return malformed("HPACK: the block ends early") };
    *input = rest;
    Ok(*first)
}

fn string(input: &mut &[u8]) -> Result<String, Error> {
    let is_coded = input.first().is_some_and(|first| first & 0x80 != 0);
    let len = integer(input, 7)?;
    let Some((text, rest)) = input.split_at_checked(len) else {
        return malformed("HPACK: the block ends early");
    };
    *input = rest;
    let text = if is_coded { huffman(text)? } else { text.to_vec() };
    String::from_utf8(text).or_else(|_| malformed("HPACK: a string is not UTF-8"))
}

/// Decodes a string in the Huffman code (section 5.2).
fn huffman(coded: &[u8]) -> Result<Vec<u8>, Error> {
    let (mut text, mut code, mut len) = (Vec::new(), 0_u32, 0_u8);
    for bit in coded.iter().flat_map(|byte| (0..8).rev().map(move |place| u32::from(byte >> place & 1))) {
        (code, len) = (code << 1 | bit, len + 1);
        if let Some(&symbol) = codes().get(&(len, code)) {
            let Ok(byte) = u8::try_from(symbol) else { return malformed("HPACK: the code of an end") };
            text.push(byte);
            (code, len) = (0, 0);
        } else if len > CODE_BITS_MAX {
            return malformed("HPACK: no such code");
        }
    }
    let is_padding = len < 8 && code == (1 << len) - 1;
    if is_padding { Ok(text) } else { malformed("HPACK: wrong padding") }
}

/// Returns the symbol of each code, which is given by its length and number.
fn codes() -> &'static HashMap<(u8, u32), usize> {
    static CODES: OnceLock<HashMap<(u8, u32), usize>> = OnceLock::new();
    CODES.get_or_init(|| {
        let (mut codes, mut code) = (HashMap::new(), 0);
        for len in 1..=CODE_BITS_MAX {
            code <<= 1;
            for symbol in (0..CODE_BITS.len()).filter(|&symbol| CODE_BITS[symbol] == len) {
                codes.insert((len, code), symbol);
                code += 1;
            }
        }
        codes
    })
}

/// Encodes fields as literals.
pub fn encode(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            encode_length(text.len(), &mut block);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

fn encode_length(len: usize, block: &mut Vec<u8>) {
    let Some(mut rest) = len.checked_sub(0x7F) else { return block.push(len as u8) };
    block.push(0x7F);
    while rest > 0x7F {
        block.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}
