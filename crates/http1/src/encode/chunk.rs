//! Chunks of a body whose length is not known in advance (RFC 9112 7.1).

use super::number::hexadecimal;
use std::num::NonZeroU64;

/// Appends a whole chunk. Appends nothing for empty data, because a chunk of size 0 ends the body.
pub fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    if let Some(length) = NonZeroU64::new(data.len() as u64) {
        chunk_head(out, length);
        out.extend_from_slice(data);
        chunk_end(out);
    }
}

/// Appends the line before a chunk's data, for data that is sent separately. `length` is in bytes.
pub fn chunk_head(out: &mut Vec<u8>, length: NonZeroU64) {
    hexadecimal(out, length.get());
    out.extend_from_slice(b"\r\n");
}

/// Appends the line end after a chunk's data.
pub fn chunk_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Appends the end of a chunked body, without trailers.
pub fn last_chunk(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}
