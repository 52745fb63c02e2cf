//! The interface of encoders of streamed bodies.

use std::task::{Context, Poll};

/// Encodes the content of a stream, piece by piece, perhaps on another thread.
pub trait StreamCoder {
    /// Queues content. Never waits.
    fn push(&mut self, content: &[u8]);

    /// Marks the end of the content.
    fn end(&mut self);

    /// Returns true if there is room for more content. Else there is once [`poll_take`](Self::poll_take) has taken some.
    fn has_room(&self) -> bool;

    /// Appends what is encoded to `out`. Ready once that was all. Else the waker is woken when there is more to take.
    ///
    /// # Errors
    /// A message for the operator: the response is cut off.
    fn poll_take(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<Result<(), String>>;

    /// Returns the memory that it holds, in bytes, without that of content taken from it.
    fn held_bytes(&self) -> usize;
}
