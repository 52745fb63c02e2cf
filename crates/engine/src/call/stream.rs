//! A streamed body: encoded as its head has announced, and bounded.

use std::fmt;
use std::task::{Context, Poll};

use shearwater_http1::ResponseFraming;

use crate::call::Call;
use crate::limits::{CALL_OUTPUT_BYTES_MAX, SPARE_BUFFER_BYTES_MAX};
use crate::response::{Body, Response};

/// Error of sending to a disconnected client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client is disconnected")
    }
}

impl std::error::Error for Gone {}

impl Call {
    /// Sends the head now. The body follows by [`send`](Self::send), with exactly `length` bytes or, with
    /// `None`, of unknown length (chunked, RFC 9112 section 7.1; for an HTTP/1.0 client until the connection
    /// closes).
    ///
    /// A body set before by [`response`](Self::response) is discarded. A stream that ends before its length
    /// is truncated, and its connection closed; bytes beyond it are discarded. Both are reported to the
    /// operator.
    ///
    /// After a head without a body (for `HEAD`, or with `204`, `205` or `304`) the handler's future is
    /// dropped at its next await.
    pub fn begin(&mut self, length: Option<u64>) {
        if let Some(mut draft) = self.draft.take() {
            let framing = ResponseFraming::of(length, self.head().version());
            Response::resume(&mut draft).set_body(Body::Stream(framing));
            self.exchange.begin(draft, framing);
        }
    }

    /// Waits until bytes may be [pushed](Self::push): until less than
    /// [`CALL_OUTPUT_BYTES_MAX`](crate::limits::CALL_OUTPUT_BYTES_MAX) are queued.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        match self.exchange.has_output_room(cx.waker()) {
            _ if self.exchange.is_gone() => Poll::Ready(Err(Gone)),
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    /// Queues bytes, whether or not there is room. Begins a stream of unknown length if none was begun.
    pub fn push(&mut self, bytes: &[u8]) {
        self.begin(None);
        self.exchange.push(bytes);
    }

    /// Sends a piece of the body; waits until there is room for it.
    ///
    /// # Errors
    /// [`Gone`], if the client is disconnected. Usually the worker drops the handler's future instead.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        std::future::poll_fn(|cx| self.poll_room(cx)).await?;
        self.push(bytes);
        Ok(())
    }

    /// Aborts the response: a stream is truncated and its connection closed; any other response becomes a
    /// `500`.
    ///
    /// `why` is reported to the operator and not sent to the client.
    pub fn cut(self, why: impl Into<String>) {
        self.exchange.cut(why.into());
    }
}

/// Bytes of a stream that are to be sent.
#[derive(Default)]
pub(crate) struct Stream {
    framing: Option<ResponseFraming>,
    /// Announced bytes still missing.
    left: u64,
    has_surplus: bool,
    /// Only the head is sent.
    is_unsent: bool,
    bytes: Vec<u8>,
}

impl Stream {
    /// Starts a stream. If the body isn't sent (`HEAD`, `304`) no bytes are required, whatever the head
    /// announces.
    pub(crate) fn begin(&mut self, framing: ResponseFraming, is_sent: bool) {
        self.framing = Some(framing);
        self.left = match framing {
            ResponseFraming::Length(length) if is_sent => length,
            _ => 0,
        };
        self.is_unsent = !is_sent;
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.framing.is_some()
    }

    /// Encodes a piece.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match self.framing {
            _ if self.is_unsent => {}
            Some(ResponseFraming::Length(_)) => {
                let most = usize::try_from(self.left).unwrap_or(usize::MAX);
                let taken = bytes.len().min(most);
                self.has_surplus |= taken < bytes.len();
                self.left -= taken as u64;
                self.bytes.extend_from_slice(&bytes[..taken]);
            }
            Some(framing) => framing.append_piece(&mut self.bytes, bytes),
            None => {}
        }
    }

    /// Appends the last chunk of a chunked body.
    pub(crate) fn append_end(&self, out: &mut Vec<u8>) {
        if let Some(framing) = self.framing {
            framing.append_end(out);
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

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Resets it for another response.
    pub(crate) fn reset(&mut self) {
        self.clear();
        (self.framing, self.left, self.has_surplus, self.is_unsent) = (None, 0, false, false);
    }

    /// Discards the queued bytes.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(SPARE_BUFFER_BYTES_MAX);
    }

    /// Returns the memory of its buffer, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}
