//! Decoding of header blocks (RFC 7541 3 and 6).

use super::dynamic_table::DynamicTable;
use super::{integer, static_table};
use crate::limits::{DECODED_BYTES_MAX, HEADER_TABLE_BYTES_MAX};

/// Size of a field beside its name and value (RFC 9113 6.5.2).
const FIELD_OVERHEAD_BYTES: usize = 32;
/// Bytes that each buffer of [`Strings`] keeps for the next block.
const STRING_BYTES_KEPT_MAX: usize = 4096;

/// Reason why a block can't be decoded. The table is unusable afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HpackError {
    /// The block ends within a field.
    Truncated,
    /// An integer is larger than any length or index.
    IntegerTooLarge,
    /// A string isn't padded with less than a byte of ones.
    HuffmanPadding,
    /// A string contains the code of its end.
    HuffmanEnd,
    /// No entry has this index.
    Index,
    /// The table's size is updated after a field.
    LateSizeUpdate,
    /// The table's size is larger than allowed.
    SizeUpdate,
    /// The list is larger than `DECODED_BYTES_MAX`.
    ListTooLarge,
}

/// Buffers for strings in Huffman code, shared by all connections of a worker.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Strings {
    /// Returns its allocated memory in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.name.capacity() + self.value.capacity()
    }

    fn trim(&mut self) {
        for buffer in [&mut self.name, &mut self.value] {
            buffer.clear();
            buffer.shrink_to(STRING_BYTES_KEPT_MAX);
        }
    }
}

/// The receiving side of HPACK.
#[derive(Debug)]
pub(crate) struct Decoder {
    table: DynamicTable,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self { table: DynamicTable::new() }
    }

    /// Returns its allocated memory in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.table.held_bytes()
    }

    /// Frees the memory that no entry uses.
    pub(crate) fn trim(&mut self) {
        self.table.trim();
    }

    /// Decodes a whole block and calls `each` with the name and value of each field, in order. Returns the size of the list
    /// in bytes (RFC 9113 6.5.2).
    ///
    /// # Errors
    /// The reason why the block is invalid: a connection error (RFC 9113 4.3).
    pub(crate) fn decode(
        &mut self,
        block: &[u8],
        strings: &mut Strings,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, HpackError> {
        let mut input = block;
        let mut decoded_bytes = 0;
        let mut counted = |name: &[u8], value: &[u8]| {
            decoded_bytes += name.len() + value.len() + FIELD_OVERHEAD_BYTES;
            each(name, value);
            if decoded_bytes > DECODED_BYTES_MAX { Err(HpackError::ListTooLarge) } else { Ok(()) }
        };
        let mut has_field = false;
        while let Some(&first) = input.first() {
            match first {
                0x80.. => {
                    let (name, value) = self.indexed(integer::take(&mut input, 7)?)?;
                    counted(name, value)?;
                }
                0x40.. => self.literal(&mut input, 6, true, strings, &mut counted)?,
                0x20.. if has_field => return Err(HpackError::LateSizeUpdate),
                0x20.. => {
                    self.update_size(integer::take(&mut input, 5)?)?;
                    continue;
                }
                _ => self.literal(&mut input, 4, false, strings, &mut counted)?,
            }
            has_field = true;
        }
        strings.trim();
        Ok(decoded_bytes)
    }

    fn update_size(&mut self, size: usize) -> Result<(), HpackError> {
        if size > HEADER_TABLE_BYTES_MAX {
            return Err(HpackError::SizeUpdate);
        }
        self.table.set_size_max(size);
        Ok(())
    }

    /// Returns the field with this index, over both tables (RFC 7541 2.3.3).
    #[inline]
    fn indexed(&self, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
        match index.checked_sub(static_table::LEN + 1) {
            Some(index) => self.table.get(index),
            None => static_table::get(index),
        }
        .ok_or(HpackError::Index)
    }

    /// Decodes a literal, whose name's index has `bits` (RFC 7541 6.2).
    #[inline]
    fn literal(
        &mut self,
        input: &mut &[u8],
        bits: u32,
        is_inserted: bool,
        strings: &mut Strings,
        each: &mut impl FnMut(&[u8], &[u8]) -> Result<(), HpackError>,
    ) -> Result<(), HpackError> {
        let Strings { name: name_buffer, value: value_buffer } = strings;
        let index = integer::take(input, bits)?;
        let name = match index {
            0 => integer::take_string(input, name_buffer)?,
            1..=static_table::LEN => static_table::get(index).ok_or(HpackError::Index)?.0,
            _ => {
                // The insertion may evict the entry that has the name (RFC 7541 4.4).
                name_buffer.clear();
                name_buffer.extend_from_slice(self.indexed(index)?.0);
                name_buffer
            }
        };
        let value = integer::take_string(input, value_buffer)?;
        each(name, value)?;
        if is_inserted {
            self.table.insert(name, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type List = Vec<(Vec<u8>, Vec<u8>)>;

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<List, HpackError> {
        let mut list = Vec::new();
        let each = |name: &[u8], value: &[u8]| list.push((name.to_vec(), value.to_vec()));
        decoder.decode(block, &mut Strings::default(), each).map(|_| list)
    }

    #[test]
    fn rejects_what_the_rfc_forbids() {
        for (block, expected) in [
            (&b"\x80"[..], HpackError::Index),
            (b"\xBE", HpackError::Index),
            (b"\x7E\x01a", HpackError::Index),
            (b"\x82\x20", HpackError::LateSizeUpdate),
            (b"\x3F\xE2\x1F", HpackError::SizeUpdate),
            (b"\x40\x05ab", HpackError::Truncated),
            (b"\x40\x01a", HpackError::Truncated),
            (b"\x04", HpackError::Truncated),
            (b"\xFF\x80\x80\x80\x80\x01", HpackError::IntegerTooLarge),
            (b"\x40\x81\xFF\x01a", HpackError::HuffmanPadding),
        ] {
            assert_eq!(decode(&mut Decoder::new(), block), Err(expected), "{}", block.escape_ascii());
        }
        assert_eq!(decode(&mut Decoder::new(), b"\x3F\xE1\x1F\x20\x82").map(|list| list.len()), Ok(1));
    }

    #[test]
    fn a_name_outlives_its_entry() {
        let mut decoder = Decoder::new();
        // A table of 80 bytes, a field of 40, then one of 76 that has its name.
        let block = [&b"\x3F\x31\x40\x04name\x04abcd\x7E\x28"[..], &[b'v'; 40]].concat();
        let name = b"name".to_vec();
        let expected = vec![(name.clone(), b"abcd".to_vec()), (name.clone(), vec![b'v'; 40])];
        assert_eq!(decode(&mut decoder, &block), Ok(expected));
        assert_eq!(decode(&mut decoder, b"\xBE"), Ok(vec![(name, vec![b'v'; 40])]));
        assert_eq!(decode(&mut decoder, b"\xBF"), Err(HpackError::Index));
    }

    /// An entry of 4,096 bytes is repeated by one byte (CVE-2016-6581).
    #[test]
    fn limits_what_a_block_decodes_to() {
        let mut decoder = Decoder::new();
        let name = vec![b'n'; 4060];
        let mut block = b"\x40\x7F\xDD\x1E".to_vec();
        block.extend_from_slice(&name);
        block.extend_from_slice(b"\x04abcd");
        assert_eq!(decode(&mut decoder, &block).map(|list| list.len()), Ok(1));
        let repeated = DECODED_BYTES_MAX / 4096;
        assert_eq!(decode(&mut decoder, &vec![0xBE; repeated]).map(|list| list.len()), Ok(repeated));
        assert_eq!(decode(&mut decoder, &vec![0xBE; repeated + 1]), Err(HpackError::ListTooLarge));
    }
}
