//! Requests with headers and bodies of random lengths, which follow from a seed.

use std::ops::RangeInclusive;

use fastrand::Rng;

/// Least length of the random text that headers and bodies are cut from, so that a long body is never copied.
const TEXT_BYTES_MIN: u64 = 1 << 20;
/// Digits at the start of a header, which no other request has.
const SERIAL_DIGITS: usize = 16;

#[derive(Debug, Clone)]
pub(crate) struct GeneratedRequests {
    /// Request line and headers, without the blank line.
    head: String,
    /// Lengths of the value of `X-Large-Header`, and the percentage of requests that have it.
    header_bytes: Option<RangeInclusive<u64>>,
    header_percent: u32,
    body_bytes: Option<RangeInclusive<u64>>,
    text: Vec<u8>,
}

/// The unsent part of a body: a cyclic range of the random text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UnsentBody {
    start: usize,
    pub(super) bytes: u64,
}

impl GeneratedRequests {
    pub(crate) fn new(
        head: String,
        header_bytes: Option<RangeInclusive<u64>>,
        header_percent: u32,
        body_bytes: Option<RangeInclusive<u64>>,
    ) -> Self {
        let longest = header_bytes.as_ref().map_or(0, |lengths| *lengths.end());
        let mut random = Rng::with_seed(longest);
        let text = (0..TEXT_BYTES_MIN.max(longest * 2)).map(|_| random.alphanumeric() as u8).collect();
        Self { head, header_bytes, header_percent, body_bytes, text }
    }

    /// Appends the head of the next request and returns its body.
    pub(super) fn append(&self, random: &mut Rng, unsent: &mut Vec<u8>) -> UnsentBody {
        unsent.extend_from_slice(self.head.as_bytes());
        if let Some(lengths) = &self.header_bytes
            && random.u32(..100) < self.header_percent
        {
            let length = random.u64(lengths.clone()) as usize;
            let serial = format!("{:016x}", random.u64(..));
            let start = random.usize(..self.text.len() / 2);
            unsent.extend_from_slice(b"X-Large-Header: ");
            unsent.extend_from_slice(&serial.as_bytes()[..length.min(SERIAL_DIGITS)]);
            unsent.extend_from_slice(&self.text[start..start + length.saturating_sub(SERIAL_DIGITS)]);
            unsent.extend_from_slice(b"\r\n");
        }
        let bytes = self.body_bytes.clone().map(|lengths| random.u64(lengths));
        let framing = bytes.map_or("\r\n".to_owned(), |bytes| format!("Content-Length: {bytes}\r\n\r\n"));
        unsent.extend_from_slice(framing.as_bytes());
        UnsentBody { start: random.usize(..self.text.len()), bytes: bytes.unwrap_or(0) }
    }

    /// Returns the first request of a seed.
    pub(crate) fn first(&self, seed: u64) -> Vec<u8> {
        let mut request = Vec::new();
        let mut body = self.append(&mut Rng::with_seed(seed), &mut request);
        while body.bytes > 0 {
            let piece = self.piece(body);
            request.extend_from_slice(piece);
            self.advance(&mut body, piece.len());
        }
        request
    }

    /// Returns the first bytes of a body; none if it is sent.
    pub(super) fn piece(&self, body: UnsentBody) -> &[u8] {
        let rest = &self.text[body.start..];
        &rest[..usize::try_from(body.bytes).map_or(rest.len(), |bytes| bytes.min(rest.len()))]
    }

    pub(super) fn advance(&self, body: &mut UnsentBody, bytes: usize) {
        body.start = (body.start + bytes) % self.text.len();
        body.bytes -= bytes as u64;
    }
}
