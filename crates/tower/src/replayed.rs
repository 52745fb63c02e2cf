//! A connection whose first bytes were read by somebody else: they are read once more, then the connection itself.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection, with bytes in front of what it will bring, and a guard that goes with it.
#[derive(Debug)]
pub(crate) struct Replayed<C, G> {
    /// What was read before.
    front: Vec<u8>,
    /// How much of it has been read again.
    read: usize,
    connection: C,
    _guard: G,
}

impl<C, G> Replayed<C, G> {
    pub(crate) fn new(front: Vec<u8>, connection: C, guard: G) -> Self {
        Self { front, read: 0, connection, _guard: guard }
    }
}

impl<C: AsyncRead + Unpin, G: Unpin> AsyncRead for Replayed<C, G> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let rest = &this.front[this.read..];
        if rest.is_empty() {
            return Pin::new(&mut this.connection).poll_read(cx, buffer);
        }
        let len = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..len]);
        this.read += len;
        if this.read == this.front.len() {
            this.front = Vec::new();
            this.read = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncWrite + Unpin, G: Unpin> AsyncWrite for Replayed<C, G> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::Replayed;

    #[tokio::test]
    async fn the_front_comes_first_however_little_is_asked_for() {
        for step in 1..=12 {
            let (ours, mut theirs) = tokio::io::duplex(64);
            theirs.write_all(b" and the rest").await.expect("room");
            drop(theirs);
            let mut replayed = Replayed::new(b"the front".to_vec(), ours, ());
            let mut all = Vec::new();
            let mut piece = vec![0; step];
            loop {
                match replayed.read(&mut piece).await.expect("reads") {
                    0 => break,
                    len => all.extend_from_slice(&piece[..len]),
                }
            }
            assert_eq!(all, b"the front and the rest");
        }
    }
}
