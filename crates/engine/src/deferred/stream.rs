//! A streamed body: content and trailers as the handler has set them, bounded.

use shearwater_http1::{ResponseFraming, may_be_trailer};

use crate::limits::{CALL_OUTPUT_BYTES_MAX, SPARE_BUFFER_BYTES_MAX};
use crate::response::fields::encode_field;
use crate::wire::http1;

/// Bytes of a stream that are to be sent.
#[derive(Default)]
pub(crate) struct Stream {
    framing: Option<ResponseFraming>,
    /// Framing of the encoded content, if there is a coder.
    coded: Option<ResponseFraming>,
    /// Announced bytes still missing.
    left: u64,
    has_surplus: bool,
    /// Only the head is sent.
    is_unsent: bool,
    /// Trailers may follow content of any framing (RFC 9113 section 8.1).
    is_http2: bool,
    /// Content that is queued.
    bytes: Vec<u8>,
    /// Encoded trailer fields.
    trailers: Vec<u8>,
}

impl Stream {
    /// Starts a stream. If the body isn't sent (`HEAD`, `304`) no bytes are required, whatever the head
    /// announces.
    pub(crate) fn begin(&mut self, framing: ResponseFraming, is_sent: bool, is_http2: bool) {
        (self.framing, self.is_http2) = (Some(framing), is_http2);
        self.left = match framing {
            ResponseFraming::Length(length) if is_sent => length,
            _ => 0,
        };
        self.is_unsent = !is_sent;
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.framing.is_some()
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.is_begun() && !self.is_unsent
    }

    /// Counts a piece of the content. Returns the part that belongs to the body.
    pub(crate) fn count<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        match self.framing {
            Some(ResponseFraming::Length(_)) if !self.is_unsent => {
                let most = usize::try_from(self.left).unwrap_or(usize::MAX);
                let taken = bytes.len().min(most);
                self.has_surplus |= taken < bytes.len();
                self.left -= taken as u64;
                &bytes[..taken]
            }
            Some(_) if !self.is_unsent => bytes,
            _ => &[],
        }
    }

    /// Returns the queue of bytes to be sent.
    pub(crate) fn queue(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Sends encoded content from now on. Returns the content that is queued.
    pub(crate) fn code(&mut self, framing: ResponseFraming) -> Vec<u8> {
        self.coded = Some(framing);
        std::mem::take(&mut self.bytes)
    }

    /// Adds a trailer field. It is only checked if the stream has no place for trailers.
    pub(crate) fn push_trailer(&mut self, name: &str, value: &[u8]) -> Result<(), String> {
        if !may_be_trailer(name) {
            return Err(format!("a handler set the trailer {name}, which is needed before the content"));
        }
        let before = self.trailers.len();
        encode_field(&mut self.trailers, name, value)?;
        let framing = self.coded.or(self.framing);
        let has_place = self.is_http2 || matches!(framing, None | Some(ResponseFraming::Chunked));
        if self.is_unsent || !has_place {
            self.trailers.truncate(before);
        }
        Ok(())
    }

    /// Returns the encoded trailer fields.
    pub(crate) fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Drops the trailers of a client that is gone.
    pub(crate) fn drop_trailers(&mut self) {
        self.trailers = Vec::new();
    }

    /// Appends the queued content as one piece, and the end of the body with its trailers if it is reached.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>, is_end: bool) {
        let Some(framing) = self.coded.or(self.framing) else { return };
        if !self.bytes.is_empty() {
            http1::piece(out, framing, &self.bytes);
        }
        if is_end {
            http1::end(out, framing, &self.trailers);
        }
    }

    /// Returns true if there is room. A handler whose body isn't sent waits, and is dropped.
    pub(crate) fn has_room(&self) -> bool {
        !self.is_unsent && self.bytes.len() < CALL_OUTPUT_BYTES_MAX
    }

    /// Returns true if it has ended with less than its head has announced.
    pub(crate) fn falls_short(&self, is_over: bool) -> bool {
        is_over && self.left > 0
    }

    pub(crate) fn has_surplus(&self) -> bool {
        self.has_surplus
    }

    /// Resets it for another response.
    pub(crate) fn reset(&mut self) {
        self.clear();
        self.trailers.clear();
        self.trailers.shrink_to(SPARE_BUFFER_BYTES_MAX);
        (self.framing, self.coded, self.left) = (None, None, 0);
        (self.has_surplus, self.is_unsent) = (false, false);
    }

    /// Discards the queued bytes.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(SPARE_BUFFER_BYTES_MAX);
    }

    /// Returns the memory of its buffers, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.trailers.capacity()
    }
}
