//! The constant response, and how many bytes of it a receive is owed.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::file::FileResponse;

/// Length of the head, and of the shortest whole response: room for any `Content-Length`.
const HEAD_BYTES: usize = 64;
pub(crate) const RESPONSE_BYTES_MIN: i64 = HEAD_BYTES as i64;
/// Longest whole response.
pub(crate) const RESPONSE_BYTES_MAX: i64 = 64 * 1024 * 1024;

/// Consecutive copies in the block, so that a batch leaves in one send.
const BATCH: usize = 16;
/// Larger responses are sent one by one: a batch would not fit a socket's buffer.
const BATCHED_BYTES_MAX: usize = 16 * 1024;

/// End of a request head.
const BLANK_LINE: &[u8; 4] = b"\r\n\r\n";
/// Bytes of a blank line that an earlier receive may hold.
pub(crate) const CARRIED_BYTES: usize = BLANK_LINE.len() - 1;

/// The bytes sent for every request.
pub(crate) struct ConstantResponse {
    /// One response or a batch; never freed, so the kernel may read it at any time.
    block: &'static [u8],
    bytes: usize,
    pipeline: bool,
    /// Sent instead of the block.
    file: Option<FileResponse>,
}

impl ConstantResponse {
    /// Builds a response of exactly `bytes`, head included.
    pub(crate) fn new(bytes: usize, pipeline: bool) -> Self {
        let mut one = head(HEAD_BYTES, bytes - HEAD_BYTES).expect("it has room for the length");
        one.resize(bytes, b'x');
        let block = if bytes <= BATCHED_BYTES_MAX { one.repeat(BATCH) } else { one };
        Self { block: Box::leak(block.into_boxed_slice()), bytes, pipeline, file: None }
    }

    /// Builds one whose body is a file.
    pub(crate) fn with_file(bytes: usize, pipeline: bool, path: &Path) -> io::Result<Self> {
        Ok(Self { block: &[], bytes, pipeline, file: Some(FileResponse::open(path, bytes)?) })
    }

    /// Sends once to a client that is owed so many bytes; returns how many the socket took.
    pub(crate) fn send(&self, socket: &OwnedFd, owed_bytes: usize) -> Result<usize, Errno> {
        match &self.file {
            None => send(socket, self.piece(owed_bytes), SendFlags::NOSIGNAL),
            Some(file) => file.send(socket, self.start(owed_bytes), self.bytes),
        }
    }

    /// Returns the offset in the response of the first byte owed.
    fn start(&self, owed_bytes: usize) -> usize {
        (self.bytes - owed_bytes % self.bytes) % self.bytes
    }

    /// Returns true if one send always takes a whole response, from a client that reads.
    pub(crate) fn is_small(&self) -> bool {
        self.bytes <= BATCHED_BYTES_MAX
    }

    /// Returns the next piece for a client that is owed so many bytes: at most a batch.
    pub(crate) fn piece(&self, owed_bytes: usize) -> &'static [u8] {
        let rest = &self.block[self.start(owed_bytes)..];
        &rest[..rest.len().min(owed_bytes)]
    }

    /// Returns the bytes owed for a receive. `window` is the received bytes after the [`CARRIED_BYTES`] before them.
    pub(crate) fn due_bytes(&self, window: &[u8]) -> usize {
        if self.pipeline { blank_lines(window) * self.bytes } else { self.bytes }
    }

    /// Returns true if the carried bytes matter.
    pub(crate) fn counts_blank_lines(&self) -> bool {
        self.pipeline
    }
}

/// Returns a head of `bytes` for a body of `length`; the server's name fills it.
pub(crate) fn head(bytes: usize, length: usize) -> Option<Vec<u8>> {
    let with =
        |filler: &str| format!("HTTP/1.1 200 OK\r\nServer: null{filler}\r\nContent-Length: {length}\r\n\r\n");
    let filler = "-".repeat(bytes.checked_sub(with("").len())?);
    Some(with(&filler).into_bytes())
}

/// Counts blank lines. It has no branch per byte, so the compiler vectorises it.
fn blank_lines(bytes: &[u8]) -> usize {
    /// Largest count that fits one byte.
    const CHUNK: usize = 255;
    let [a, b, c, d] = *BLANK_LINE;
    let ends = bytes.len().saturating_sub(CARRIED_BYTES);
    let mut count = 0;
    let mut at = 0;
    while at < ends {
        let length = CHUNK.min(ends - at);
        let from = |shift: usize| &bytes[at + shift..at + shift + length];
        let quads = from(0).iter().zip(from(1)).zip(from(2).iter().zip(from(3)));
        let found: u8 =
            quads.map(|((w, x), (y, z))| u8::from((*w == a) & (*x == b) & (*y == c) & (*z == d))).sum();
        count += usize::from(found);
        at += length;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_and_heads_have_the_requested_length() {
        for bytes in [64, 65, 163, 164, 1_300, 10_060, 1_048_900, RESPONSE_BYTES_MAX as usize] {
            let response = ConstantResponse::new(bytes, false);
            let text = String::from_utf8(response.piece(bytes).to_vec()).expect("ASCII");
            let (_, body) =
                text.split_once(&format!("\r\nContent-Length: {}\r\n\r\n", bytes - 64)).expect("a head");
            assert_eq!((text.len(), body.len()), (bytes, bytes - 64));
        }
        assert_eq!(head(300, 102_400).map(|head| head.len()), Some(300));
        assert_eq!(head(50, 102_400), None);
    }

    #[test]
    fn counts_blank_lines_at_any_offset() {
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        for count in 0..40 {
            assert_eq!(blank_lines(&request.repeat(count)), count);
        }
        assert_eq!(blank_lines(b"\r\n\r"), 0);
        assert_eq!(blank_lines(b"\r\n\r\n\r\n"), 2);
    }

    #[test]
    fn pieces_resume_within_a_response_and_stop_at_the_owed_bytes() {
        let response = ConstantResponse::new(100, true);
        let whole = response.piece(100);
        assert_eq!(response.piece(250).len(), 250);
        assert_eq!(response.piece(30), &whole[70..]);
        assert_eq!(response.piece(130)[..30], whole[70..]);
        assert_eq!(response.piece(100_000).len(), 1600);
        assert_eq!(ConstantResponse::new(100_000, false).piece(100_000).len(), 100_000);
    }
}
