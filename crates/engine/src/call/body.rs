//! Reading a body as its handler wants it.

use std::task::{Context, Poll};

use crate::call::Call;

impl Call {
    /// The next piece of the body, never empty; `None` at its end. Only where the policy is [`BodyPolicy::Call`](crate::BodyPolicy::Call):
    /// any other body has been kept or thrown away. No more of it is received than the handler has taken, and
    /// [`CALL_INPUT_BYTES_MAX`](crate::limits::CALL_INPUT_BYTES_MAX).
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

    /// As [`read`](Self::read), the piece given away.
    pub fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        self.poll_piece(cx).map(|is_some| is_some.then(|| std::mem::take(&mut self.piece)))
    }

    /// The whole body, if it has at most `bytes_max` bytes.
    ///
    /// # Errors
    /// What was read where it has more: the rest is for who goes on reading.
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
                    panic!("the body of this request does not come while its handler runs; help: {help}");
                }
                Poll::Ready(false)
            }
            None => Poll::Pending,
        }
    }
}
