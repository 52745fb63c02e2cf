//! The behaviour of one hostile connection.

use std::sync::Arc;
use std::time::Duration;

/// The bytes that a connection sends, and how it reads.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// Sent as soon as the connection is established.
    pub(super) opening: Arc<[u8]>,
    /// Sent after it.
    pub(super) filler: Option<Filler>,
    /// Shuts down the sending side when everything is sent.
    pub(super) half_close: bool,
    pub(super) reading: Reading,
    /// Leaves after so many whole responses with 2xx or 3xx; 0: never.
    pub(super) responses: u64,
    /// Continues to send when the server has shut down its side.
    pub(super) sends_on: bool,
    /// Leaves with a reset after so many received bytes.
    pub(super) leaves_after_bytes: Option<u64>,
    /// Leaves with a reset after this time.
    pub(super) leaves_after: Option<Duration>,
}

/// Bytes that are sent over and over.
#[derive(Debug, Clone)]
pub(super) struct Filler {
    /// Sent at a time.
    pub(super) piece: Arc<[u8]>,
    /// Pause after each piece.
    pub(super) every: Duration,
    /// Bytes in all.
    pub(super) bytes: u64,
}

/// How a connection reads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reading {
    AtOnce,
    /// So many bytes at a time, with a pause after each.
    Slowly {
        bytes: usize,
        every: Duration,
    },
    /// Not until the server closes.
    Never,
}

impl Script {
    /// Sends `opening`, reads what arrives, and waits to be disconnected.
    pub(super) fn new(opening: impl Into<Vec<u8>>) -> Self {
        Self {
            opening: opening.into().into(),
            filler: None,
            half_close: false,
            reading: Reading::AtOnce,
            responses: 0,
            sends_on: false,
            leaves_after_bytes: None,
            leaves_after: None,
        }
    }

    /// Adds a filler.
    pub(super) fn then(self, piece: &[u8], every: Duration, bytes: u64) -> Self {
        Self { filler: Some(Filler { piece: piece.into(), every, bytes }), ..self }
    }

    /// Bytes to send once `sent` bytes are sent; `None` at the end.
    pub(super) fn bytes_at(&self, sent: u64) -> Option<&[u8]> {
        let opening = self.opening.len() as u64;
        if sent < opening {
            return self.opening.get(usize::try_from(sent).ok()?..);
        }
        let filler = self.filler.as_ref()?;
        let done = sent - opening;
        let left = filler.bytes.checked_sub(done).filter(|left| *left > 0)?;
        let piece = &filler.piece[(done % filler.piece.len() as u64) as usize..];
        Some(&piece[..piece.len().min(usize::try_from(left).unwrap_or(usize::MAX))])
    }

    /// The pause after `sent` bytes: at the end of each piece of filler.
    pub(super) fn pause_at(&self, sent: u64) -> Option<Duration> {
        let filler = self.filler.as_ref()?;
        let done = sent.checked_sub(self.opening.len() as u64)?;
        done.is_multiple_of(filler.piece.len() as u64).then_some(filler.every)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Script;

    #[test]
    fn sends_the_opening_then_the_filler_up_to_its_bound() {
        let script = Script::new("GET").then(b"abc", Duration::from_secs(1), 5);
        let mut sent = Vec::new();
        while let Some(bytes) = script.bytes_at(sent.len() as u64) {
            sent.push(bytes[0]);
        }
        assert_eq!(sent, b"GETabcab");
        let pauses: Vec<u64> = (0..9).filter(|sent| script.pause_at(*sent).is_some()).collect();
        assert_eq!(pauses, [3, 6]);
    }
}
