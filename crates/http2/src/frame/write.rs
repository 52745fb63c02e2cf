//! Encoding of frames: functions that append to an output buffer.

use super::{HEADER_BYTES, flag};
use crate::error::ErrorCode;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RESET: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
const PING: u8 = 0x6;
const GO_AWAY: u8 = 0x7;
const WINDOW_UPDATE: u8 = 0x8;
const CONTINUATION: u8 = 0x9;

/// Returns the header of a frame whose payload has `len` bytes, at most 2^24 - 1.
pub(super) fn header(len: usize, kind: u8, flags: u8, stream: u32) -> [u8; HEADER_BYTES] {
    let [_, l0, l1, l2] = (len as u32).to_be_bytes();
    let [s0, s1, s2, s3] = stream.to_be_bytes();
    [l0, l1, l2, kind, flags, s0, s1, s2, s3]
}

/// Appends the header of a DATA frame; its content must follow.
pub(crate) fn append_data_header(out: &mut Vec<u8>, stream: u32, len: usize, ends: bool) {
    let flags = if ends { flag::END_STREAM } else { 0 };
    out.extend_from_slice(&header(len, DATA, flags, stream));
}

pub(crate) fn append_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    out.extend_from_slice(&header(4, RESET, 0, stream));
    out.extend_from_slice(&(code as u32).to_be_bytes());
}

pub(crate) fn append_settings_ack(out: &mut Vec<u8>) {
    out.extend_from_slice(&header(0, SETTINGS, flag::ACK, 0));
}

pub(crate) fn append_ping(out: &mut Vec<u8>, payload: [u8; 8], is_ack: bool) {
    out.extend_from_slice(&header(payload.len(), PING, if is_ack { flag::ACK } else { 0 }, 0));
    out.extend_from_slice(&payload);
}

/// Appends a GOAWAY; `text` is for the peer's log.
pub(crate) fn append_go_away(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode, text: &str) {
    out.extend_from_slice(&header(8 + text.len(), GO_AWAY, 0, 0));
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&(code as u32).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

pub(crate) fn append_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    out.extend_from_slice(&header(4, WINDOW_UPDATE, 0, stream));
    out.extend_from_slice(&increment.to_be_bytes());
}

/// Appends a header block that `encode` appends, as one HEADERS frame and as many CONTINUATION frames as the
/// peer's largest frame requires.
pub(crate) fn append_header_block(
    out: &mut Vec<u8>,
    stream: u32,
    ends: bool,
    frame_bytes_max: usize,
    encode: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    encode(out);
    let block_len = out.len() - start - HEADER_BYTES;
    let end_stream = if ends { flag::END_STREAM } else { 0 };
    let is_whole = block_len <= frame_bytes_max;
    let flags = end_stream | if is_whole { flag::END_HEADERS } else { 0 };
    let first = header(block_len.min(frame_bytes_max), HEADERS, flags, stream);
    out[start..start + HEADER_BYTES].copy_from_slice(&first);
    if !is_whole {
        insert_continuations(out, start + HEADER_BYTES + frame_bytes_max, stream, frame_bytes_max);
    }
}

/// Inserts a CONTINUATION header at `start` and after each `frame_bytes_max` bytes that follow.
#[cold]
fn insert_continuations(out: &mut Vec<u8>, start: usize, stream: u32, frame_bytes_max: usize) {
    let rest = out.split_off(start);
    let mut left = rest.len();
    for piece in rest.chunks(frame_bytes_max) {
        left -= piece.len();
        let flags = if left == 0 { flag::END_HEADERS } else { 0 };
        out.extend_from_slice(&header(piece.len(), CONTINUATION, flags, stream));
        out.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_block_is_continued() {
        for (block, expected) in [
            (&b"abcd"[..], &b"\0\0\x04\x01\x05\0\0\0\x03abcd"[..]),
            (b"", b"\0\0\0\x01\x05\0\0\0\x03"),
            (b"abcde", b"\0\0\x04\x01\x01\0\0\0\x03abcd\0\0\x01\x09\x04\0\0\0\x03e"),
            (
                b"abcdefghi",
                b"\0\0\x04\x01\x01\0\0\0\x03abcd\0\0\x04\x09\0\0\0\0\x03efgh\0\0\x01\x09\x04\0\0\0\x03i",
            ),
        ] {
            let mut out = b"before".to_vec();
            append_header_block(&mut out, 3, true, 4, |out| out.extend_from_slice(block));
            assert_eq!(out.strip_prefix(b"before"), Some(expected), "{}", block.escape_ascii());
        }
    }
}
