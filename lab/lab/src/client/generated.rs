//! Requests with headers and bodies of random lengths, which follow from a seed.

use std::ops::RangeInclusive;

use fastrand::Rng;

/// Random text that headers and bodies are cut from, so that a long body is never copied.
const TEXT_BYTES: usize = 1 << 20;
/// Maximum length of a generated header's value.
pub(crate) const HEADER_BYTES_MAX: u64 = TEXT_BYTES as u64 / 2;
/// Digits at the start of a header, which no other request has.
const SERIAL_DIGITS: usize = 16;

#[derive(Debug, Clone)]
pub(crate) struct GeneratedRequests {
    /// Request line and headers, without the blank line.
    pub(crate) head: String,
    /// Lengths of the value of `X-Large-Header`.
    pub(crate) header_bytes: Option<RangeInclusive<u64>>,
    /// Percentage of requests with that header.
    pub(crate) header_percent: u32,
    pub(crate) body_bytes: Option<RangeInclusive<u64>>,
    text: Vec<u8>,
}

/// The unsent part of a body: a cyclic range of the random text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UnsentBody {
    start: usize,
    pub(super) bytes: u64,
}

impl GeneratedRequests {
    pub(crate) fn new(head: String, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let text = (0..TEXT_BYTES).map(|_| random.alphanumeric() as u8).collect();
        Self { head, header_bytes: None, header_percent: 100, body_bytes: None, text }
    }

    /// Appends the head of the next request and returns its body.
    pub(super) fn append(&self, random: &mut Rng, unsent: &mut Vec<u8>) -> UnsentBody {
        unsent.extend_from_slice(self.head.as_bytes());
        if let Some(lengths) = &self.header_bytes
            && random.u32(..100) < self.header_percent
        {
            let length = random.u64(lengths.clone()) as usize;
            let serial = format!("{:016x}", random.u64(..));
            let start = random.usize(..TEXT_BYTES / 2);
            unsent.extend_from_slice(b"X-Large-Header: ");
            unsent.extend_from_slice(&serial.as_bytes()[..length.min(SERIAL_DIGITS)]);
            unsent.extend_from_slice(&self.text[start..start + length.saturating_sub(SERIAL_DIGITS)]);
            unsent.extend_from_slice(b"\r\n");
        }
        let Some(lengths) = &self.body_bytes else {
            unsent.extend_from_slice(b"\r\n");
            return UnsentBody::default();
        };
        let bytes = random.u64(lengths.clone());
        unsent.extend_from_slice(format!("Content-Length: {bytes}\r\n\r\n").as_bytes());
        UnsentBody { start: random.usize(..TEXT_BYTES), bytes }
    }

    /// Returns one whole request.
    pub(crate) fn first(&self, seed: u64) -> Vec<u8> {
        let mut request = Vec::new();
        let mut body = self.append(&mut Rng::with_seed(seed), &mut request);
        while body.bytes > 0 {
            let piece = self.piece(body);
            request.extend_from_slice(piece);
            body.advance(piece.len());
        }
        request
    }

    /// Returns the first bytes of a body; none if it is sent.
    pub(super) fn piece(&self, body: UnsentBody) -> &[u8] {
        let rest = &self.text[body.start..];
        &rest[..usize::try_from(body.bytes).map_or(rest.len(), |bytes| bytes.min(rest.len()))]
    }
}

impl UnsentBody {
    pub(super) fn advance(&mut self, bytes: usize) {
        self.start = (self.start + bytes) % TEXT_BYTES;
        self.bytes -= bytes as u64;
    }
}
