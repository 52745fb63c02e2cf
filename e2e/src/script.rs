//! The behaviour of one connection: what it sends, how it reads, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use crate::expected::ExactResponse;

/// A connection's behaviour.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// Kind of connection in reports.
    pub(crate) name: &'static str,
    /// Sent one after the other, each once the responses to those before have arrived.
    pub(crate) rounds: Vec<Round>,
    /// Shuts down the sending side when everything is sent.
    pub(crate) half_close: bool,
    pub(crate) reading: Reading,
    pub(crate) ending: Ending,
    /// Whole responses with 2xx or 3xx to wait for, where they aren't compared.
    pub(crate) responses: u64,
    /// One more response, which the server's end of the connection follows. It has one of two forms.
    pub(crate) last: Option<[Arc<ExactResponse>; 2]>,
    /// Continues to send when the server has shut down its side.
    pub(crate) sends_on: bool,
    /// Leaves with a reset after so many received bytes.
    pub(crate) leaves_after_bytes: Option<u64>,
    /// Leaves with a reset after this time.
    pub(crate) leaves_after: Option<Duration>,
}

/// Bytes to send, and the responses to them.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    bytes: Arc<[u8]>,
    /// Number of bytes to send: `bytes` over and over.
    total: u64,
    /// Bytes sent at a time, and the pause after each part.
    part: usize,
    every: Duration,
    pub(crate) responses: Vec<Arc<ExactResponse>>,
}

/// How a connection reads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reading {
    AtOnce,
    /// So many bytes at a time, with a pause after each.
    Slowly {
        bytes: usize,
        every: Duration,
    },
    /// Sends for this time, and reads only then.
    After(Duration),
    /// Not until the server closes.
    Never,
    /// At once, whatever it is: records of TLS.
    Ignoring,
}

/// How a connection ends once everything is sent and all responses have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    ServerCloses,
    Closes,
    Resets,
}

impl Script {
    /// Sends `opening`, reads what arrives, and waits to be disconnected.
    pub(crate) fn new(opening: impl Into<Vec<u8>>) -> Self {
        Self {
            name: "",
            rounds: vec![Round::new(opening, Vec::new())],
            half_close: false,
            reading: Reading::AtOnce,
            ending: Ending::ServerCloses,
            responses: 0,
            last: None,
            sends_on: false,
            leaves_after_bytes: None,
            leaves_after: None,
        }
    }

    /// Adds a piece that is sent over and over, with a pause after each.
    pub(crate) fn then(mut self, piece: &[u8], every: Duration, total: u64) -> Self {
        self.rounds.push(Round { total, every, ..Round::new(piece, Vec::new()) });
        self
    }
}

impl Script {
    /// Number of responses that must arrive, where they are compared.
    pub(crate) fn expected(&self) -> u64 {
        let responses: usize = self.rounds.iter().map(|round| round.responses.len()).sum();
        responses as u64 + u64::from(self.last.is_some())
    }

    /// Returns how the connection ends if all goes well, as a crowd records it.
    pub(crate) fn planned_end(&self) -> &'static str {
        match self.ending {
            Ending::ServerCloses => "closed",
            Ending::Closes => "served",
            Ending::Resets => "left",
        }
    }
}

impl Round {
    pub(crate) fn new(bytes: impl Into<Vec<u8>>, responses: Vec<Arc<ExactResponse>>) -> Self {
        let bytes: Arc<[u8]> = bytes.into().into();
        Self { total: bytes.len() as u64, part: bytes.len(), bytes, every: Duration::ZERO, responses }
    }

    /// Sends the bytes in parts of this length.
    pub(crate) fn in_parts(self, part: usize, every: Duration) -> Self {
        Self { part, every, ..self }
    }

    /// Bytes to send at once when `sent` bytes are sent; `None` at the end.
    pub(crate) fn bytes_at(&self, sent: u64) -> Option<&[u8]> {
        let left = self.total.checked_sub(sent).filter(|left| *left > 0)?;
        let at = (sent % self.bytes.len() as u64) as usize;
        let end = self.bytes.len().min(at - at % self.part + self.part);
        Some(&self.bytes[at..end.min(at.saturating_add(usize::try_from(left).unwrap_or(usize::MAX)))])
    }

    /// The pause when `sent` bytes are sent: at the end of each part.
    pub(crate) fn pause_at(&self, sent: u64) -> Option<Duration> {
        let at = (sent % self.bytes.len().max(1) as u64) as usize;
        at.is_multiple_of(self.part.max(1)).then_some(self.every)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Round, Script};

    #[test]
    fn rounds_are_sent_in_parts_up_to_their_bound() {
        let endless = &Script::new("GET").then(b"abc", Duration::from_secs(1), 5).rounds[1];
        let parts = Round::new("abcdefg", Vec::new()).in_parts(3, Duration::ZERO);
        for (round, expected, pauses) in
            [(endless, ["abc", "ab", ""], [0, 3]), (&parts, ["abc", "def", "g"], [3, 6])]
        {
            let mut sent = 0;
            for part in expected {
                assert_eq!(round.bytes_at(sent).unwrap_or_default(), part.as_bytes());
                sent += part.len() as u64;
            }
            assert!(round.bytes_at(sent).is_none());
            assert!(pauses.iter().all(|sent| round.pause_at(*sent).is_some()) && round.pause_at(1).is_none());
        }
    }
}
