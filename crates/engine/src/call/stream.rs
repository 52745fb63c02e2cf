//! A body that is sent as its handler makes it: encoded as its head has announced, within a bound.

use std::fmt;
use std::task::{Context, Poll};

use shearwater_http1::{StreamFraming, encode};

use crate::call::Call;
use crate::limits::{CALL_OUTPUT_BYTES_MAX, SPARE_BUFFER_BYTES_MAX};
use crate::response::{Body, Response};

/// The client takes nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client is gone")
    }
}

impl std::error::Error for Gone {}

impl Call {
    /// Sends the head now; the body follows by [`send`](Self::send), of exactly `length` bytes or, with `None`, of as many as it becomes
    /// (chunked, RFC 9112 section 7.1; to an HTTP/1.0 client until the connection closes).
    ///
    /// A body set before by [`response`](Self::response) is left out. A stream that ends short of its length is cut off: its connection is
    /// closed. What goes beyond it is thrown away. Either is told to the operator.
    ///
    /// Behind a head that no body follows (of an answer to `HEAD`, or with `204`, `205` or `304`) the handler's future is dropped where it waits next.
    pub fn begin(&mut self, length: Option<u64>) {
        if let Some(mut parts) = self.parts.take() {
            let framing = StreamFraming::of(length, self.head().version());
            Response::go_on(&mut parts).set_body(Body::Stream(framing));
            self.exchange.begin(parts, framing);
        }
    }

    /// Whether bytes may be [pushed](Self::push): less than [`CALL_OUTPUT_BYTES_MAX`](crate::limits::CALL_OUTPUT_BYTES_MAX) of them wait for
    /// the client.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        match self.exchange.has_output_room(cx.waker()) {
            _ if self.exchange.is_gone() => Poll::Ready(Err(Gone)),
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    /// Puts bytes behind those that wait to be sent, whatever there is room for. Begins a stream of unknown length if none was begun.
    pub fn push(&mut self, bytes: &[u8]) {
        self.begin(None);
        self.exchange.push(bytes);
    }

    /// Sends a piece of the body: waits until there is room for it.
    ///
    /// # Errors
    /// [`Gone`], where the client takes nothing more. A worker that knows drops the handler's future instead.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        std::future::poll_fn(|cx| self.poll_room(cx)).await?;
        self.push(bytes);
        Ok(())
    }

    /// Gives up an answer that can't be completed: one that was begun is cut off (the connection is closed, so that the client knows), any
    /// other becomes a `500`.
    ///
    /// The operator is told `why`, the client isn't.
    pub fn cut(self, why: impl Into<String>) {
        self.exchange.cut(why.into());
    }
}

/// The bytes of a stream that wait to be sent.
#[derive(Default)]
pub(crate) struct Stream {
    framing: Option<StreamFraming>,
    /// What its head has announced and is still to come.
    left: u64,
    has_surplus: bool,
    /// Nothing of it is sent but its head.
    is_unsent: bool,
    bytes: Vec<u8>,
}

impl Stream {
    /// Of something that is not sent (an answer to `HEAD`, a `304`) nothing need be pushed, whatever its head announces.
    pub(crate) fn begin(&mut self, framing: StreamFraming, is_sent: bool) {
        self.framing = Some(framing);
        self.left = match framing {
            StreamFraming::Length(length) if is_sent => length,
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
            Some(StreamFraming::Length(_)) => {
                let most = usize::try_from(self.left).unwrap_or(usize::MAX);
                let taken = bytes.len().min(most);
                self.has_surplus |= taken < bytes.len();
                self.left -= taken as u64;
                self.bytes.extend_from_slice(&bytes[..taken]);
            }
            Some(StreamFraming::Chunked) => encode::chunk(&mut self.bytes, bytes),
            Some(StreamFraming::Close) => self.bytes.extend_from_slice(bytes),
            None => {}
        }
    }

    /// Appends what tells of the end, if anything.
    pub(crate) fn append_end(&self, out: &mut Vec<u8>) {
        if self.framing == Some(StreamFraming::Chunked) {
            encode::last_chunk(out);
        }
    }

    /// Of what is never sent there is none: who makes it waits, and is dropped.
    pub(crate) fn has_room(&self) -> bool {
        !self.is_unsent && self.bytes.len() < CALL_OUTPUT_BYTES_MAX
    }

    /// Whether it has ended with less than its head has announced.
    pub(crate) fn falls_short(&self, is_over: bool) -> bool {
        is_over && self.left > 0
    }

    pub(crate) fn has_surplus(&self) -> bool {
        self.has_surplus
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// For another answer.
    pub(crate) fn reset(&mut self) {
        self.clear();
        (self.framing, self.left, self.has_surplus, self.is_unsent) = (None, 0, false, false);
    }

    /// Discards the bytes that waited.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(SPARE_BUFFER_BYTES_MAX);
    }

    /// Memory of its buffer, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}
