//! Reading a body on demand.

use std::task::{Context, Poll};

use crate::call::Call;

impl Call {
    /// Returns the next piece of the body, never empty; `None` at its end. Requires
    /// [`BodyPolicy::Call`](crate::BodyPolicy::Call): any other body is buffered or discarded. At most
    /// [`CALL_INPUT_BYTES_MAX`](crate::limits::CALL_INPUT_BYTES_MAX) are received ahead of the handler.
    ///
    /// # Panics
    /// If there was a body and the policy is another: the client gets a `500`.
    pub async fn read(&mut self) -> Option<&[u8]> {
        let is_some = std::future::poll_fn(|cx| self.poll_piece(cx)).await;
        is_some.then_some(&*self.piece)
    }

    /// As [`read`](Self::read).
    pub fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<&[u8]>> {
        self.poll_piece(cx).map(|is_some| is_some.then_some(&*self.piece))
    }

    /// As [`read`](Self::read), but returns the piece by value.
    pub fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        self.poll_piece(cx).map(|is_some| is_some.then(|| std::mem::take(&mut self.piece)))
    }

    /// Returns the whole body, if it has at most `bytes_max` bytes.
    ///
    /// # Errors
    /// The part that was read if it is longer; reading may continue.
    pub async fn read_to_end(&mut self, bytes_max: usize) -> Result<Vec<u8>, Vec<u8>> {
        let mut whole = Vec::new();
        while let Some(piece) = self.read().await {
            whole.extend_from_slice(piece);
            if whole.len() > bytes_max {
                return Err(whole);
            }
        }
        Ok(whole)
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        match self.exchange.take(&mut self.piece, cx.waker()) {
            Some(true) => Poll::Ready(true),
            Some(false) => {
                if let Some(help) = self.exchange.why_unread() {
                    panic!("the body of this request can't be read by its handler; help: {help}");
                }
                Poll::Ready(false)
            }
            None => Poll::Pending,
        }
    }
}
