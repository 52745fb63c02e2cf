//! Chunks of a body whose length is not known in advance (RFC 9112 7.1).

use super::number::hexadecimal;

/// Appends the line before a chunk's data. `length` is in bytes; 0 would end the body, so nothing is written for it: pass over
/// empty data.
pub fn chunk_head(out: &mut Vec<u8>, length: u64) {
    if length > 0 {
        hexadecimal(out, length);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends what follows a chunk's data.
pub fn chunk_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Appends the end of a chunked body, without trailers.
pub fn last_chunk(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}
