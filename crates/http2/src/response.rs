//! Heads of responses: lines of `http1` as HPACK fields (RFC 9113 8.2 and 8.3.2).

use shearwater_http1::KnownField;

use crate::hpack::{Encoder, append_static};

/// Longest name that is put into lower case without allocating, in bytes.
const NAME_BYTES_USUAL: usize = 64;

/// Head of a response.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseHead<'a> {
    /// Status, 100 to 599 (RFC 9110 15).
    pub status: u16,
    /// Lines that most responses of a connection begin with. Fields of connections are dropped (RFC 9113 8.2.2).
    pub repeated: &'a [u8],
    /// Further fields as lines of [`encode::field`](shearwater_http1::encode::field), likewise.
    pub lines: &'a [u8],
    /// Further fields, encoded before.
    pub encoded: &'a [u8],
    /// Length of the content in bytes, if it is announced.
    pub length: Option<u64>,
}

impl ResponseHead<'_> {
    /// Appends the header block.
    pub(crate) fn append(&self, out: &mut Vec<u8>, encoder: &mut Encoder) {
        encoder.begin(out);
        Encoder::append_status(out, self.status);
        encoder.append_repeated(out, self.repeated, |encoder, out| {
            each_field(self.repeated, |name, value| encoder.append(out, name, value));
        });
        each_field(self.lines, |name, value| encoder.append(out, name, value));
        out.extend_from_slice(self.encoded);
        if let Some(length) = self.length {
            Encoder::append_length(out, length);
        }
    }
}

/// Appends a trailer section.
pub(crate) fn append_trailers(out: &mut Vec<u8>, encoder: &mut Encoder, lines: &[u8]) {
    encoder.begin(out);
    each_field(lines, |name, value| append_static(out, name, value));
}

/// Encodes lines once, for [`ResponseHead::encoded`] of any response on any connection.
#[must_use]
pub fn encode_lines(lines: &[u8]) -> Box<[u8]> {
    let mut block = Vec::new();
    each_field(lines, |name, value| append_static(&mut block, name, value));
    block.into_boxed_slice()
}

/// Calls `each` with the name in lower case and the value of each line, except fields of connections.
fn each_field(lines: &[u8], mut each: impl FnMut(&[u8], &[u8])) {
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if KnownField::from_name(name).is_some_and(KnownField::is_connection_specific) {
            continue;
        }
        let mut usual = [0; NAME_BYTES_USUAL];
        match usual.get_mut(..name.len()) {
            Some(lower) => {
                lower.copy_from_slice(name);
                lower.make_ascii_lowercase();
                each(lower, value);
            }
            None => each(&name.to_ascii_lowercase(), value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpack::{Decoder, Strings};

    fn fields(block: &[u8]) -> Vec<String> {
        let mut list = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let each = |name: &[u8], value: &[u8]| list.push(format!("{}={}", text(name), text(value)));
        Decoder::new().decode(block, &mut Strings::default(), each).expect("a valid block");
        list
    }

    #[test]
    fn lines_become_fields() {
        let long = "X-".repeat(50);
        let line = format!("{long}: 1\r\n");
        let head = ResponseHead {
            status: 206,
            repeated: b"Server: a b\r\nConnection: close\r\nVary:\r\n",
            lines: line.as_bytes(),
            encoded: &encode_lines(b"ETag: \"x\"\r\nUpgrade: h2c\r\nSet-Cookie: a=b\r\n"),
            length: Some(12),
        };
        let mut out = Vec::new();
        head.append(&mut out, &mut Encoder::new());
        let long = format!("{}=1", long.to_lowercase());
        let expected = [
            ":status=206",
            "server=a b",
            "vary=",
            &long,
            "etag=\"x\"",
            "set-cookie=a=b",
            "content-length=12",
        ];
        assert_eq!(fields(&out), expected);
    }
}
