//! The constant answer, and how many of it a receive is due.

/// Shortest whole answer: the head alone, with room for its padding.
pub(crate) const ANSWER_BYTES_MIN: i64 = 64;
/// Longest whole answer.
pub(crate) const ANSWER_BYTES_MAX: i64 = 64 * 1024 * 1024;

/// Answers that lie one after the other, so that a batch goes in one send.
const BATCH: usize = 16;
/// Larger answers go one by one: batches of them would not fit a socket's buffer anyway.
const BATCHED_BYTES_MAX: usize = 16 * 1024;

/// What ends a head.
const BLANK_LINE: &[u8; 4] = b"\r\n\r\n";
/// Bytes of a blank line that may lie in an earlier receive.
pub(crate) const CARRIED_BYTES: usize = BLANK_LINE.len() - 1;

/// The bytes that every request is answered with.
pub(crate) struct Answer {
    /// One answer, or a batch of them; it lives as long as the process, so the kernel may read it at any time.
    block: &'static [u8],
    bytes: usize,
    pipeline: bool,
}

impl Answer {
    /// An answer of exactly `bytes`, head included.
    pub(crate) fn of(bytes: usize, pipeline: bool) -> Self {
        let one = whole(bytes);
        let block = if bytes <= BATCHED_BYTES_MAX { one.repeat(BATCH) } else { one };
        Self { block: Box::leak(block.into_boxed_slice()), bytes, pipeline }
    }

    /// Whether one send always takes it whole, from a client that reads what it asked for.
    pub(crate) fn is_small(&self) -> bool {
        self.bytes <= BATCHED_BYTES_MAX
    }

    /// The next piece for a client that is owed so many bytes: at most a batch.
    pub(crate) fn piece(&self, owed_bytes: usize) -> &'static [u8] {
        let start = (self.bytes - owed_bytes % self.bytes) % self.bytes;
        let rest = &self.block[start..];
        &rest[..rest.len().min(owed_bytes)]
    }

    /// Bytes due for what was received. `window` is the received bytes behind the [`CARRIED_BYTES`] before them.
    pub(crate) fn due_bytes(&self, window: &[u8]) -> usize {
        if self.pipeline { blank_lines(window) * self.bytes } else { self.bytes }
    }

    /// Whether the bytes carried over matter.
    pub(crate) fn counts_blank_lines(&self) -> bool {
        self.pipeline
    }
}

/// Head and filler of together `bytes`. Where one digit more in the length would overshoot, a space before it pads.
fn whole(bytes: usize) -> Vec<u8> {
    let head = |pad: &str, body: usize| {
        format!("HTTP/1.1 200 OK\r\nServer: null\r\nContent-Length: {pad}{body}\r\n\r\n")
    };
    let shortest = head("", 0).len() - 1;
    let body = (1..=8).map(|digits| bytes.saturating_sub(shortest + digits)).find(|body| {
        let length = head("", *body).len() + body;
        length == bytes || length + 1 == bytes
    });
    let body = body.unwrap_or_default();
    let pad = " ".repeat(bytes - head("", body).len() - body);
    let mut answer = head(&pad, body).into_bytes();
    answer.resize(bytes, b'x');
    answer
}

/// How many blank lines there are. Without a branch per byte: the compiler makes vectors of it.
fn blank_lines(bytes: &[u8]) -> usize {
    /// So many fit the count of one byte.
    const CHUNK: usize = 255;
    let [a, b, c, d] = *BLANK_LINE;
    let ends = bytes.len().saturating_sub(CARRIED_BYTES);
    let mut count = 0;
    let mut at = 0;
    while at < ends {
        let length = CHUNK.min(ends - at);
        let from = |shift: usize| &bytes[at + shift..at + shift + length];
        let quads = from(0).iter().zip(from(1)).zip(from(2).iter().zip(from(3)));
        let found: u8 =
            quads.map(|((w, x), (y, z))| u8::from((*w == a) & (*x == b) & (*y == c) & (*z == d))).sum();
        count += usize::from(found);
        at += length;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_exactly_the_length_asked_for() {
        for bytes in (64..1300).chain([10_060, 10_061, 10_062, 100_300, 1_048_900]) {
            let one = whole(bytes);
            assert_eq!(one.len(), bytes);
            let text = String::from_utf8(one).expect("ASCII");
            let (head, body) = text.split_once("\r\n\r\n").expect("a head");
            let length: usize = head.rsplit(':').next().expect("a length").trim().parse().expect("a number");
            assert_eq!(length, body.len(), "at {bytes}");
        }
    }

    #[test]
    fn blank_lines_are_counted_wherever_they_lie() {
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        for count in 0..40 {
            assert_eq!(blank_lines(&request.repeat(count)), count);
        }
        assert_eq!(blank_lines(b"\r\n\r"), 0);
        assert_eq!(blank_lines(b"\r\n\r\n\r\n"), 2);
    }

    #[test]
    fn pieces_resume_within_an_answer_and_stop_at_what_is_owed() {
        let answer = Answer::of(100, true);
        assert_eq!(answer.piece(250).len(), 250);
        assert_eq!(answer.piece(30), &whole(100)[70..]);
        assert_eq!(answer.piece(130)[..30], whole(100)[70..]);
        assert_eq!(answer.piece(100_000).len(), 1600);
        assert_eq!(Answer::of(100_000, false).piece(100_000).len(), 100_000);
    }
}
