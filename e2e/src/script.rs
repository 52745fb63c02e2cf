//! The behaviour of one connection: what it sends, how it reads, and the responses that it must get.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use testkit::Response;

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

    /// Returns how the connection ends if all goes well, see [`Departure`](crate::crowd::Departure).
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

/// A date of RFC 9110 section 5.6.7: `A` is a capital letter, `a` a small one, `0` a digit.
const DATE_SHAPE: &[u8; 29] = b"Aaa, 00 Aaa 0000 00:00:00 GMT";

/// A response as it must arrive, byte for byte apart from its date.
#[derive(Debug, Clone)]
pub(crate) struct ExactResponse {
    bytes: Vec<u8>,
    date: Range<usize>,
}

impl ExactResponse {
    /// Takes a response as the expected one.
    pub(crate) fn new(response: &Response) -> Result<Self, String> {
        let head = response.head.text();
        let name = head.to_ascii_lowercase().find("\r\ndate: ").ok_or("a response without Date")?;
        let start = name + "\r\ndate: ".len();
        let date = start..start + DATE_SHAPE.len();
        let bytes = [head.as_bytes(), &response.body].concat();
        let has_date = bytes.get(date.clone()).is_some_and(|date| (0..).zip(date).all(is_in_date));
        if has_date { Ok(Self { bytes, date }) } else { Err(format!("a malformed Date in {head:?}")) }
    }

    /// Length of head and body.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if the response may have these bytes at `at`.
    pub(crate) fn matches(&self, at: usize, found: &[u8]) -> bool {
        let end = at + found.len();
        let same = |from: usize, to: usize| {
            let (from, to) = (from.max(at), to.min(end));
            from >= to || found[from - at..to - at] == self.bytes[from..to]
        };
        let mut date = at.max(self.date.start)..end.min(self.date.end);
        end <= self.len()
            && same(0, self.date.start)
            && date.all(|place| is_in_date((place - self.date.start, &found[place - at])))
            && same(self.date.end, self.len())
    }

    /// Returns true if these bytes are the whole response.
    pub(crate) fn is(&self, found: &[u8]) -> bool {
        found.len() == self.len() && self.matches(0, found)
    }

    /// Returns true if this is the response.
    pub(crate) fn equals(&self, response: &Response) -> bool {
        self.is(&[response.head.text().as_bytes(), &response.body].concat())
    }
}

fn is_in_date((place, byte): (usize, &u8)) -> bool {
    match DATE_SHAPE[place] {
        b'A' => byte.is_ascii_uppercase(),
        b'a' => byte.is_ascii_lowercase(),
        b'0' => byte.is_ascii_digit(),
        other => *byte == other,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use testkit::{Head, Response};

    use super::{ExactResponse, Round, Script};

    pub(crate) const HEAD: &str =
        "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 4\r\n\r\n";

    pub(crate) fn expected(body: &str) -> ExactResponse {
        let head = Head::parse(HEAD.as_bytes()).unwrap();
        ExactResponse::new(&Response { head, body: body.as_bytes().to_vec() }).unwrap()
    }

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

    #[test]
    fn any_date_matches_and_any_other_byte_does_not() {
        let good = format!("{HEAD}body")
            .replace("Thu, 01 Jan 1970 00:00:00", "Sat, 21 Nov 2026 23:59:58")
            .into_bytes();
        let expected = expected("body");
        assert!(expected.is(&good));
        for (piece, at) in (1..good.len()).flat_map(|piece| [(piece, 0), (piece, good.len() - piece)]) {
            assert!(expected.matches(at, &good[at..at + piece]), "{piece} bytes at {at}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] = b'#';
            assert!(!expected.is(&bad), "byte {at}");
        }
        assert!(!expected.is(&good[..good.len() - 1]));
        assert!(!expected.is(&[good.as_slice(), b"x"].concat()));
    }
}
