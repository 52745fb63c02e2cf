//! The bounds of what one request may make this crate hold or walk over.

/// The longest method that is looked at, in bytes; a longer one is refused with 501 (RFC 9112 3). The longest registered one has 17.
pub const METHOD_BYTES_MAX: usize = 32;

/// The smallest usable head limit, in bytes; lower settings are raised to it. A minimal request has 26.
const HEAD_BYTES_FLOOR: usize = 64;
/// The largest usable head limit, in bytes; higher settings are lowered to it. Offsets into a head are 32 bits wide.
const HEAD_BYTES_CEILING: usize = 1 << 30;
/// The largest usable field count; higher settings are lowered to it. Field numbers are 16 bits wide, with one value kept for "none".
const FIELDS_CEILING: usize = u16::MAX as usize - 1;

/// Bounds of a request head (request line and fields).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// The most bytes of a head, from its first byte to the end of its empty line. Beyond: 431. Default 65,536; usable 64 to 2^30.
    pub head_bytes_max: usize,
    /// The most bytes of a request target. Beyond: 414. Default 8,192.
    pub target_bytes_max: usize,
    /// The most field lines. Beyond: 431. Default 100; usable up to 65,534.
    pub fields_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { head_bytes_max: 64 * 1024, target_bytes_max: 8 * 1024, fields_max: 100 }
    }
}

impl HeadLimits {
    /// These limits, moved into the usable ranges.
    pub(crate) fn usable(self) -> Self {
        Self {
            head_bytes_max: self.head_bytes_max.clamp(HEAD_BYTES_FLOOR, HEAD_BYTES_CEILING),
            target_bytes_max: self.target_bytes_max.min(HEAD_BYTES_CEILING),
            fields_max: self.fields_max.min(FIELDS_CEILING),
        }
    }

    /// The most bytes of a request line, without its CRLF: the longest method, the longest target and `HTTP/1.1`, with two spaces.
    pub(crate) fn request_line_bytes_max(&self) -> usize {
        METHOD_BYTES_MAX + 1 + self.target_bytes_max + 1 + b"HTTP/1.1".len()
    }
}

/// Bounds of the parts of a chunked body that are not content. How large the content may be is the caller's to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// The most bytes of one chunk's size line, extensions included, without its CRLF. Beyond: 400. Default 256.
    pub chunk_line_bytes_max: u16,
    /// The most bytes of all trailer lines together, CRLFs included. Beyond: 431. Default 8,192.
    pub trailer_bytes_max: u32,
    /// The most trailer lines. Beyond: 431. Default 32.
    pub trailers_max: u16,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self { chunk_line_bytes_max: 256, trailer_bytes_max: 8 * 1024, trailers_max: 32 }
    }
}
