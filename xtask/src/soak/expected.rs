//! An answer as it has to come, byte for byte but for its date; and the answers that a connection still has to bring.

use std::collections::VecDeque;
use std::ops::Range;

use crate::harness::answer::Fault;

/// A date of RFC 9110 section 5.6.7: `A` is a capital, `a` a small letter, `0` a digit, the rest is as it stands.
const DATE_SHAPE: &[u8; 29] = b"Aaa, 00 Aaa 0000 00:00:00 GMT";
/// How much of a wrong answer is shown, bytes.
const SHOWN_MAX: usize = 120;

/// An answer with head and body.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    bytes: Vec<u8>,
    date: Range<usize>,
}

impl Expected {
    /// The answer of this head and body. An answer without a date can't be one of this server's.
    pub(super) fn new(head: &str, body: &[u8]) -> Result<Self, String> {
        let name = head.to_ascii_lowercase().find("\r\ndate: ").ok_or("an answer without Date")?;
        let start = name + "\r\ndate: ".len();
        let date = start..start + DATE_SHAPE.len();
        if !head.as_bytes().get(date.clone()).is_some_and(|date| is_date(date, 0)) {
            return Err(format!("a date of another shape in {head:?}"));
        }
        Ok(Self { bytes: [head.as_bytes(), body].concat(), date })
    }

    /// How long it is, bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if `found` may stand at `at`.
    fn matches(&self, at: usize, found: &[u8]) -> bool {
        let end = at + found.len();
        let before = at..end.min(self.date.start).max(at);
        let within = at.max(self.date.start).min(end)..end.min(self.date.end).max(at);
        let after = at.max(self.date.end).min(end)..end;
        let part = |range: &Range<usize>| &found[range.start - at..range.end.max(range.start) - at];
        let same = |range: &Range<usize>| range.is_empty() || part(range) == &self.bytes[range.clone()];
        let date = within.is_empty() || is_date(part(&within), within.start - self.date.start);
        date && same(&before) && same(&after)
    }

    /// True if `found` is this answer, whole.
    pub(super) fn is(&self, found: &[u8]) -> bool {
        found.len() == self.len() && self.matches(0, found)
    }
}

/// True if these are the bytes of a date from its byte `at` on.
fn is_date(found: &[u8], at: usize) -> bool {
    found.iter().zip(&DATE_SHAPE[at..]).all(|(found, shape)| match shape {
        b'A' if at == 0 => found.is_ascii_uppercase(),
        b'A' | b'a' => found.is_ascii_alphabetic(),
        b'0' => found.is_ascii_digit(),
        other => found == other,
    })
}

/// The answers that are still to come on a connection, in order.
#[derive(Debug, Default)]
pub(super) struct Awaited<'a> {
    answers: VecDeque<&'a Expected>,
    /// How much of the first one has come.
    come: usize,
}

impl<'a> Awaited<'a> {
    /// One more.
    pub(super) fn push(&mut self, answer: &'a Expected) {
        self.answers.push_back(answer);
    }

    /// True if nothing more is to come.
    pub(super) fn is_over(&self) -> bool {
        self.answers.is_empty()
    }

    /// How many are to come, with one that has come in part.
    pub(super) fn count(&self) -> usize {
        self.answers.len()
    }

    /// How many bytes are to come.
    pub(super) fn missing(&self) -> usize {
        self.answers.iter().map(|answer| answer.len()).sum::<usize>() - self.come
    }

    /// How much of the first answer has come, bytes.
    pub(super) fn come(&self) -> usize {
        self.come
    }

    /// Compares what was received, and gives how many answers became whole with it.
    pub(super) fn take(&mut self, received: &[u8]) -> Result<u64, Fault> {
        let mut rest = received;
        let mut whole = 0;
        while !rest.is_empty() {
            let Some(first) = self.answers.front() else {
                return Err(wrong("bytes after the last answer", rest));
            };
            let length = rest.len().min(first.len() - self.come);
            if !first.matches(self.come, &rest[..length]) {
                return Err(wrong("another answer than the one expected", rest));
            }
            self.come += length;
            rest = &rest[length..];
            if self.come == first.len() {
                self.answers.pop_front();
                self.come = 0;
                whole += 1;
            }
        }
        Ok(whole)
    }
}

/// What came instead.
pub(super) fn wrong(what: &str, found: &[u8]) -> Fault {
    let shown = String::from_utf8_lossy(&found[..found.len().min(SHOWN_MAX)]);
    Fault::Malformed(format!("{what}: {shown:?}"))
}

#[cfg(test)]
mod tests {
    use super::{Awaited, Expected};

    const HEAD: &str = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 4\r\n\r\n";

    fn answer() -> Expected {
        Expected::new(HEAD, b"body").expect("an answer")
    }

    #[test]
    fn any_date_is_right_and_any_other_byte_is_not() {
        let good = format!("{HEAD}body")
            .replace("Thu, 01 Jan 1970 00:00:00", "Sat, 21 Nov 2026 23:59:58")
            .into_bytes();
        assert!(answer().is(&good));
        let date = HEAD.find("Thu").expect("a date");
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] = if bad[at] == b'#' { b'%' } else { b'#' };
            assert!(!answer().is(&bad), "byte {at}, date at {date}");
        }
        assert!(!answer().is(&good[..good.len() - 1]));
        assert!(!answer().is(&[good.as_slice(), b"x"].concat()));
    }

    #[test]
    fn answers_are_compared_however_they_are_cut() {
        let (first, second) = (answer(), Expected::new(HEAD, b"size").expect("an answer"));
        let wire = format!("{HEAD}body{HEAD}size").into_bytes();
        for piece in 1..wire.len() {
            let mut awaited = Awaited::default();
            awaited.push(&first);
            awaited.push(&second);
            let whole: u64 =
                wire.chunks(piece).map(|part| awaited.take(part).expect("the right bytes")).sum();
            assert_eq!((whole, awaited.is_over()), (2, true), "pieces of {piece}");
            assert!(awaited.take(b"H").is_err(), "one byte too many");
            let mut swapped = Awaited::default();
            swapped.push(&second);
            swapped.push(&first);
            assert!(wire.chunks(piece).any(|part| swapped.take(part).is_err()), "answers in another order");
        }
    }

    #[test]
    fn an_answer_without_a_date_is_none() {
        assert!(Expected::new("HTTP/1.1 200 OK\r\n\r\n", b"").is_err());
        assert!(Expected::new("HTTP/1.1 200 OK\r\nDate: today\r\n\r\n", b"").is_err());
    }
}
