//! Limits of what one request may make this crate store or scan.

/// Longest accepted method, in bytes; a longer one is rejected with 501 (RFC 9112 3). The longest registered
/// one has 17.
pub const METHOD_BYTES_MAX: usize = 32;

/// Smallest usable head limit, in bytes; lower settings are raised to it. A minimal request has 26.
const HEAD_BYTES_FLOOR: usize = 64;
/// Largest usable head limit, in bytes; higher settings are lowered to it. Offsets into a head have 32 bits.
const HEAD_BYTES_CEILING: usize = 1 << 30;
/// Largest usable field count; higher settings are lowered to it. Field numbers have 16 bits, with one value
/// reserved for "none".
const FIELDS_CEILING: usize = u16::MAX as usize - 1;

/// Limits of a request head (request line and fields).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Size of a head in bytes, from its first byte to the end of its empty line. Beyond: 431. Default
    /// 65,536; usable 64 to 2^30.
    pub head_bytes_max: usize,
    /// Length of the request target, in bytes. Beyond: 414. Default 8,192.
    pub target_bytes_max: usize,
    /// Number of field lines. Beyond: 431. Default 100; usable up to 65,534.
    pub fields_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { head_bytes_max: 64 * 1024, target_bytes_max: 8 * 1024, fields_max: 100 }
    }
}

impl HeadLimits {
    /// Returns these limits, clamped to the usable ranges.
    pub(crate) fn usable(self) -> Self {
        Self {
            head_bytes_max: self.head_bytes_max.clamp(HEAD_BYTES_FLOOR, HEAD_BYTES_CEILING),
            target_bytes_max: self.target_bytes_max.min(HEAD_BYTES_CEILING),
            fields_max: self.fields_max.min(FIELDS_CEILING),
        }
    }

    /// Returns the maximum length of a request line without CRLF, in bytes: the longest method, the longest
    /// target and `HTTP/1.1`, with two spaces.
    pub(crate) fn request_line_bytes_max(&self) -> usize {
        METHOD_BYTES_MAX + 1 + self.target_bytes_max + 1 + b"HTTP/1.1".len()
    }
}

/// Limits of a chunked body's framing and trailers. The caller limits the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// Length of a chunk's size line in bytes, including extensions, without CRLF. Beyond: 400. Default 256.
    pub chunk_line_bytes_max: u16,
    /// Size of all trailer lines together in bytes, including CRLFs. Beyond: 431. Default 8,192.
    pub trailer_bytes_max: u32,
    /// Number of trailer lines. Beyond: 431. Default 32.
    pub trailers_max: u16,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self { chunk_line_bytes_max: 256, trailer_bytes_max: 8 * 1024, trailers_max: 32 }
    }
}
