//! What one hostile connection does: what it sends and how fast, how it reads, and when it leaves.

use std::sync::Arc;
use std::time::Duration;

/// The part of one connection. Every connection of an attack may have another.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// Sent as soon as the connection is there.
    pub(super) opening: Arc<[u8]>,
    /// Sent after it.
    pub(super) filler: Option<Filler>,
    /// Says that nothing more will be sent, when all is sent.
    pub(super) half_close: bool,
    /// How it reads.
    pub(super) reading: Reading,
    /// Whole answers of a kind that it came for; with them it goes. 0: it waits until it is put out.
    pub(super) answers: u64,
    /// Goes on sending although the server has ended its side.
    pub(super) sends_on: bool,
    /// Leaves with a reset after so many bytes were received.
    pub(super) leaves_after_bytes: Option<u64>,
    /// Leaves with a reset after this time.
    pub(super) leaves_after: Option<Duration>,
}

/// Bytes that are sent over and over.
#[derive(Debug, Clone)]
pub(super) struct Filler {
    /// What is sent at a time.
    pub(super) piece: Arc<[u8]>,
    /// The pause after each piece; none: as fast as the socket takes it.
    pub(super) every: Duration,
    /// How many bytes in all.
    pub(super) bytes: u64,
}

/// How a connection reads what it is sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reading {
    /// Whatever is there.
    AtOnce,
    /// So many bytes at a time, with a pause after each.
    Slowly { bytes: usize, every: Duration },
    /// Nothing, until the server ends the connection.
    Never,
}

impl Script {
    /// Sends `opening`, reads what comes and waits until it is put out.
    pub(super) fn new(opening: impl Into<Vec<u8>>) -> Self {
        Self {
            opening: opening.into().into(),
            filler: None,
            half_close: false,
            reading: Reading::AtOnce,
            answers: 0,
            sends_on: false,
            leaves_after_bytes: None,
            leaves_after: None,
        }
    }

    /// What is to be sent when `sent` bytes are; `None` at the end.
    pub(super) fn bytes_at(&self, sent: u64) -> Option<&[u8]> {
        let opening = self.opening.len() as u64;
        if sent < opening {
            return self.opening.get(usize::try_from(sent).ok()?..);
        }
        let filler = self.filler.as_ref()?;
        let done = sent - opening;
        let left = filler.bytes.checked_sub(done).filter(|left| *left > 0)?;
        let from = usize::try_from(done % filler.piece.len().max(1) as u64).ok()?;
        let piece = filler.piece.get(from..)?;
        Some(&piece[..piece.len().min(usize::try_from(left).unwrap_or(usize::MAX))])
    }

    /// The pause that is due when `sent` bytes are sent: at the end of each piece of filler.
    pub(super) fn pause_at(&self, sent: u64) -> Option<Duration> {
        let filler = self.filler.as_ref()?;
        let done = sent.checked_sub(self.opening.len() as u64)?;
        done.is_multiple_of(filler.piece.len().max(1) as u64).then_some(filler.every)
    }
}

#[cfg(test)]
mod tests {
    use super::{Filler, Script};
    use std::time::Duration;

    #[test]
    fn the_opening_comes_first_then_the_filler_up_to_its_bound() {
        let filler = Filler { piece: (*b"abc").into(), every: Duration::from_secs(1), bytes: 5 };
        let script = Script { filler: Some(filler), ..Script::new("GET") };
        let mut sent = Vec::new();
        while let Some(bytes) = script.bytes_at(sent.len() as u64) {
            sent.push(bytes[0]);
        }
        assert_eq!(sent, b"GETabcab");
        assert_eq!(script.pause_at(2), None);
        assert_eq!(script.pause_at(4), None);
        assert_eq!(script.pause_at(6), Some(Duration::from_secs(1)));
    }
}
