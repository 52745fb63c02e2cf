//! Response encoding: functions that append to an output buffer, always HTTP/1.1 (RFC 9112 2.3).

mod chunk;
mod field;
mod number;
mod reason;

pub use chunk::{chunk, chunk_end, chunk_head, last_chunk};
pub use field::{
    BadField, chunked, connection_close, connection_keep_alive, connection_upgrade, content_length,
    content_length_and_end, end_of_head, field,
};
pub use number::{decimal, hexadecimal};
pub use reason::reason;

/// The complete interim response that requests the body (RFC 9110 15.2.1).
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Replacement for an invalid status.
const STATUS_FALLBACK: u16 = 500;

/// Appends a status line. A status outside 100 to 599 is no HTTP status (RFC 9110 15) and is sent as 500; one without a
/// registered meaning is sent without a reason phrase.
pub fn status_line(out: &mut Vec<u8>, status: u16) {
    let line = reason::registered_line(status);
    match line.is_empty() {
        true => unregistered_line(out, status),
        false => out.extend_from_slice(line.as_bytes()),
    }
}

#[cold]
fn unregistered_line(out: &mut Vec<u8>, status: u16) {
    if !matches!(status, 100..=599) {
        return status_line(out, STATUS_FALLBACK);
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    decimal(out, u64::from(status));
    out.extend_from_slice(b" \r\n");
}

/// Appends a complete `100 Continue`.
pub fn continue_100(out: &mut Vec<u8>) {
    out.extend_from_slice(CONTINUE);
}
