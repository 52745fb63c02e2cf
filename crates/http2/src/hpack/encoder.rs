//! Encoding of response fields (RFC 7541 6): the static table, and a dynamic one for fields that repeat.

use super::dynamic_table::DynamicTable;
use super::{integer, static_table};

/// Names in lower case whose values repeat in many responses, and aren't secret.
const REPEATED: [&[u8]; 16] = [
    b"access-control-allow-origin",
    b"alt-svc",
    b"cache-control",
    b"content-encoding",
    b"content-language",
    b"content-security-policy",
    b"content-type",
    b"cross-origin-opener-policy",
    b"date",
    b"permissions-policy",
    b"referrer-policy",
    b"server",
    b"strict-transport-security",
    b"vary",
    b"x-content-type-options",
    b"x-frame-options",
];

/// Names whose values no table may hold, on the way either: secrets (RFC 7541 7.1.3).
const SECRET: [&[u8]; 5] = [
    b"set-cookie",
    b"authorization",
    b"proxy-authorization",
    b"authentication-info",
    b"proxy-authentication-info",
];

const INDEXED: u8 = 0x80;
const WITH_INDEXING: u8 = 0x40;
const SIZE_UPDATE: u8 = 0x20;
const NEVER_INDEXED: u8 = 0x10;
const WITHOUT_INDEXING: u8 = 0x00;

/// A value longer than this is never inserted, in bytes: it would evict too many.
const INSERTED_BYTES_MAX: usize = 512;

/// The sending side of HPACK.
#[derive(Debug)]
pub(crate) struct Encoder {
    table: DynamicTable,
    /// Bound by the peer's settings, in bytes.
    peer_bytes_max: usize,
    /// Smallest bound since the last block, if it has changed (RFC 7541 4.2).
    least_since_block: Option<usize>,
    /// Fields that the table has had whole, and what encodes them while it doesn't change.
    repeated: Repeated,
}

/// Lines of fields, and their encoding by references into the table. Empty if there are none.
#[derive(Debug, Default)]
struct Repeated {
    lines: Vec<u8>,
    block: Vec<u8>,
}

impl Encoder {
    /// Creates an encoder for a peer that has sent no SETTINGS yet.
    pub(crate) fn new() -> Self {
        let table = DynamicTable::new();
        Self {
            peer_bytes_max: table.size_max(),
            table,
            least_since_block: None,
            repeated: Repeated::default(),
        }
    }

    /// Returns its allocated memory in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.table.held_bytes() + self.repeated.lines.capacity() + self.repeated.block.capacity()
    }

    /// Follows the peer's setting, in bytes. The next block reports it.
    pub(crate) fn set_peer_bytes_max(&mut self, bytes_max: usize) {
        if bytes_max != self.peer_bytes_max || self.least_since_block.is_some() {
            self.least_since_block =
                Some(self.least_since_block.map_or(bytes_max, |least| least.min(bytes_max)));
            self.peer_bytes_max = bytes_max;
            self.repeated.lines.clear();
            self.table.set_size_max(bytes_max);
        }
    }

    /// Empties the table and frees its memory; the next block reports it.
    pub(crate) fn trim(&mut self) {
        if self.table.held_bytes() > 0 {
            self.table.set_size_max(0);
            self.table.trim();
            self.table.set_size_max(self.peer_bytes_max);
            self.least_since_block = Some(0);
            self.repeated = Repeated::default();
        }
    }

    /// Begins a block: reports a change of the table's size.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some(least) = self.least_since_block.take() {
            if least < self.peer_bytes_max {
                integer::append(out, SIZE_UPDATE, 5, least);
            }
            integer::append(out, SIZE_UPDATE, 5, self.peer_bytes_max);
        }
    }

    /// Appends a field whose name is in lower case.
    pub(crate) fn append(&mut self, out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        if value.len() > INSERTED_BYTES_MAX || !REPEATED.contains(&name) {
            return append_static(out, name, value);
        }
        match self.table.find(name, value) {
            Some(index) => integer::append(out, INDEXED, 7, static_table::LEN + 1 + index),
            None => {
                append_literal(out, WITH_INDEXING, 6, name, value);
                self.table.insert(name, value);
                // Each reference counts from the newest entry.
                self.repeated.lines.clear();
            }
        }
    }

    /// Appends lines that most responses of a second begin with, by `append_each`, which is spared if the table still has them.
    pub(crate) fn append_repeated(
        &mut self,
        out: &mut Vec<u8>,
        lines: &[u8],
        append_each: impl FnOnce(&mut Self, &mut Vec<u8>),
    ) {
        if lines.is_empty() {
            return;
        }
        if self.repeated.lines == lines {
            return out.extend_from_slice(&self.repeated.block);
        }
        // An insertion meanwhile empties it again.
        self.repeated.lines.clear();
        self.repeated.lines.extend_from_slice(lines);
        let start = out.len();
        append_each(self, out);
        self.repeated.block.clear();
        self.repeated.block.extend_from_slice(&out[start..]);
    }

    /// Appends `:status`.
    pub(crate) fn append_status(out: &mut Vec<u8>, status: u16) {
        match static_table::of_status(status) {
            Some(index) => integer::append(out, INDEXED, 7, index),
            None => {
                let digit = |power: u16| b'0' + (status / power % 10) as u8;
                integer::append(out, WITHOUT_INDEXING, 4, static_table::STATUS);
                integer::append_string(out, &[digit(100), digit(10), digit(1)]);
            }
        }
    }

    /// Appends the length of the content.
    pub(crate) fn append_length(out: &mut Vec<u8>, length: u64) {
        let mut digits = [0; u64::MAX.ilog10() as usize + 1];
        let (mut start, mut rest) = (digits.len(), length);
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        integer::append(out, WITHOUT_INDEXING, 4, static_table::LENGTH);
        integer::append_string(out, &digits[start..]);
    }
}

/// Appends a field whose name is in lower case, without any table that changes: the bytes are valid in each
/// block of each connection.
pub(crate) fn append_static(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let pattern = if SECRET.contains(&name) { NEVER_INDEXED } else { WITHOUT_INDEXING };
    append_literal(out, pattern, 4, name, value);
}

fn append_literal(out: &mut Vec<u8>, pattern: u8, bits: u32, name: &[u8], value: &[u8]) {
    match static_table::of_name(name) {
        Some(index) => integer::append(out, pattern, bits, index),
        None => {
            out.push(pattern);
            integer::append_string(out, name);
        }
    }
    integer::append_string(out, value);
}

#[cfg(test)]
mod tests {
    use super::super::{Decoder, Strings};
    use super::*;

    fn block(encoder: &mut Encoder, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for (name, value) in fields {
            encoder.append(&mut out, name.as_bytes(), value.as_bytes());
        }
        out
    }

    fn read(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, String)> {
        let mut list = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let each = |name: &[u8], value: &[u8]| list.push((text(name), text(value)));
        decoder.decode(block, &mut Strings::default(), each).expect("a valid block");
        list
    }

    #[test]
    fn a_repeated_field_is_one_byte() {
        let mut encoder = Encoder::new();
        let fields = [("server", "shearwater"), ("content-type", "text/html"), ("etag", "\"1\"")];
        let first = block(&mut encoder, &fields);
        let second = block(&mut encoder, &fields);
        assert_eq!(second[..2], [0xBF, 0xBE]);
        let mut decoder = Decoder::new();
        assert_eq!(read(&mut decoder, &first), read(&mut decoder, &second));
    }

    #[test]
    fn secrets_are_never_indexed() {
        let block = block(&mut Encoder::new(), &[("set-cookie", "id=1"), ("authorization", "x")]);
        assert_eq!((block[0], block[1]), (0x1F, 55 - 15));
        assert_eq!(Encoder::new().held_bytes(), 0);
    }

    #[test]
    fn reports_the_smallest_and_the_last_size_of_the_table() {
        let mut encoder = Encoder::new();
        let mut decoder = Decoder::new();
        let field = [("server", "shearwater")];
        read(&mut decoder, &block(&mut encoder, &field));
        encoder.set_peer_bytes_max(4096);
        assert_eq!(block(&mut encoder, &field), [0xBE]);
        for (sizes, expected) in [
            (&[0, 100][..], &[0x20, 0x3F, 0x45][..]),
            (&[4096], &[0x3F, 0xE1, 0x1F]),
            (&[100], &[0x3F, 0x45]),
            (&[4096, 4096], &[0x3F, 0xE1, 0x1F]),
        ] {
            sizes.iter().for_each(|&size| encoder.set_peer_bytes_max(size));
            let block = block(&mut encoder, &field);
            assert!(block.starts_with(expected), "{sizes:?}: {block:x?}");
            assert_eq!(read(&mut decoder, &block), [("server".to_owned(), "shearwater".to_owned())]);
        }
    }

    #[test]
    fn repeated_lines_are_encoded_anew_only_after_a_change_of_the_table() {
        let (mut encoder, mut decoder, mut count) = (Encoder::new(), Decoder::new(), 0);
        let mut respond = |lines: &str, other: &str| {
            let mut out = Vec::new();
            encoder.begin(&mut out);
            encoder.append_repeated(&mut out, lines.as_bytes(), |encoder, out| {
                count += 1;
                encoder.append(out, b"date", lines.as_bytes());
            });
            encoder.append(&mut out, b"vary", other.as_bytes());
            let values = read(&mut decoder, &out).into_iter().map(|(_, value)| value);
            (count, values.collect::<Vec<_>>().join(" "))
        };
        // At first both are inserted, so that the date is the second newest from then on.
        for (lines, other, times) in [
            ("1", "a", 1),
            ("1", "a", 2),
            ("1", "a", 2),
            ("1", "b", 2),
            ("1", "b", 3),
            ("", "b", 3),
            ("2", "b", 4),
        ] {
            assert_eq!(respond(lines, other), (times, format!("{lines} {other}").trim_start().to_owned()));
        }
        assert_eq!(respond("2", "b").0, 5);
        assert_eq!(respond("2", "b"), (5, "2 b".to_owned()));
    }

    #[test]
    fn a_trimmed_table_begins_again() {
        let mut encoder = Encoder::new();
        let mut decoder = Decoder::new();
        let field = [("vary", "accept-encoding")];
        read(&mut decoder, &block(&mut encoder, &field));
        encoder.trim();
        assert_eq!(encoder.held_bytes(), 0);
        for _ in 0..2 {
            assert_eq!(read(&mut decoder, &block(&mut encoder, &field)).len(), 1);
        }
    }

    #[test]
    fn statuses_and_lengths() {
        let mut out = Vec::new();
        for status in [200, 431, 100] {
            Encoder::append_status(&mut out, status);
        }
        for length in [0, 7, 1234, u64::MAX] {
            Encoder::append_length(&mut out, length);
        }
        let values: Vec<String> =
            read(&mut Decoder::new(), &out).into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, ["200", "431", "100", "0", "7", "1234", "18446744073709551615"]);
    }
}
