//! What a hostile connection has received: the first answer's status and length, and how many answers of that length there are.

use crate::harness::answer::{BodyLength, HEAD_MAX, Head};

/// The bytes of a connection, counted; only the first head is kept.
#[derive(Debug, Default)]
pub(super) struct Received {
    total: u64,
    head: Vec<u8>,
    first: Option<First>,
}

/// What the first head tells.
#[derive(Debug, Clone, Copy)]
struct First {
    status: u16,
    /// Head and body; `None` where only the connection's end tells it.
    length: Option<u64>,
}

impl Received {
    /// Takes what came.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.first.is_some() || self.head.len() > HEAD_MAX {
            return;
        }
        self.head.extend_from_slice(bytes);
        let end = self.head.windows(4).position(|window| window == b"\r\n\r\n");
        let Some(length) = end.map(|end| end + 4) else { return };
        // An answer that breaks the rules has no status: the row shows an end without one, which no attack expects.
        let Ok(head) = Head::parse(&self.head[..length]) else { return };
        let body = match head.body_length(false) {
            BodyLength::None => Some(0),
            BodyLength::Exactly(body) => Some(body),
            BodyLength::Chunked | BodyLength::UntilClose => None,
        };
        self.first = Some(First { status: head.status, length: body.map(|body| body + length as u64) });
        self.head = Vec::new();
    }

    /// The first answer's status.
    pub(super) fn status(&self) -> Option<u16> {
        self.first.map(|first| first.status)
    }

    /// All bytes so far.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Whole answers, where all are as long as the first.
    pub(super) fn answers(&self) -> u64 {
        let length = self.first.and_then(|first| first.length);
        length.map_or(0, |length| self.total / length)
    }
}

#[cfg(test)]
mod tests {
    use super::Received;

    #[test]
    fn answers_are_counted_by_the_length_of_the_first() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        let stream = answer.repeat(3);
        let mut received = Received::default();
        for piece in stream[..stream.len() - 1].chunks(7) {
            received.take(piece);
        }
        assert_eq!((received.status(), received.answers()), (Some(200), 2));
        received.take(b"c");
        assert_eq!(received.answers(), 3);
        assert_eq!(received.total(), stream.len() as u64);
    }
}
