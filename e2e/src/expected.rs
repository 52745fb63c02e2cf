//! Responses as they must arrive on a connection.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use testkit::{Event, Response, ResponseReader};

/// A date of RFC 9110 section 5.6.7: `A` is a capital letter, `a` a small one, `0` a digit.
const DATE_SHAPE: &[u8; 29] = b"Aaa, 00 Aaa 0000 00:00:00 GMT";

/// A response as it must arrive, byte for byte apart from its date.
#[derive(Debug, Clone)]
pub(crate) struct ExactResponse {
    bytes: Vec<u8>,
    date: Range<usize>,
    may_close: bool,
}

/// Field of a response after which the connection ends.
const CLOSING: &str = "Connection: close\r\n";

impl ExactResponse {
    /// Takes a response as the expected one.
    pub(crate) fn new(response: &Response) -> Result<Self, String> {
        let head = response.head.text();
        let name = head.to_ascii_lowercase().find("\r\ndate: ").ok_or("a response without Date")?;
        let start = name + "\r\ndate: ".len();
        let date = start..start + DATE_SHAPE.len();
        let bytes = [head.as_bytes(), &response.body].concat();
        let has_date = bytes.get(date.clone()).is_some_and(|date| (0..).zip(date).all(is_in_date));
        if has_date {
            Ok(Self { bytes, date, may_close: false })
        } else {
            Err(format!("a malformed Date in {head:?}"))
        }
    }

    /// Also expects the response with which the server ends a connection.
    pub(crate) fn or_closing(self) -> Self {
        Self { may_close: true, ..self }
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
        let head = response.head.text();
        let head = if self.may_close { head.replacen(CLOSING, "", 1) } else { head.to_owned() };
        self.is(&[head.as_bytes(), &response.body].concat())
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

/// The responses on a connection: compared with the expected ones, or only read.
#[derive(Debug, Default)]
pub(crate) struct ResponseCheck {
    is_compared: bool,
    /// Expected responses, and how many bytes of the first have arrived.
    pub(crate) awaited: VecDeque<Arc<ExactResponse>>,
    arrived: usize,
    /// See the script; bytes of it.
    last: Option<[Arc<ExactResponse>; 2]>,
    rest: Vec<u8>,
    /// Received bytes that were wrong.
    pub(crate) wrong: String,
    /// Reads responses that aren't compared.
    reader: ResponseReader,
    /// Status of the first response, where it isn't compared.
    pub(crate) status: Option<u16>,
    /// Number of whole responses.
    pub(crate) whole: u64,
}

impl ResponseCheck {
    /// Awaits these responses, and in the end one that has two forms. Without `is_compared`, responses are only read.
    pub(crate) fn new(
        is_compared: bool,
        awaited: VecDeque<Arc<ExactResponse>>,
        last: Option<[Arc<ExactResponse>; 2]>,
    ) -> Self {
        Self { is_compared, awaited, last, ..Self::default() }
    }

    /// Returns true if no response is awaited, and so many have arrived.
    pub(crate) fn has(&self, count: u64) -> bool {
        self.awaited.is_empty() && self.whole >= count && self.status.is_none_or(|status| status < 400)
    }

    /// Takes received bytes.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Result<(), &'static str> {
        if !self.is_compared {
            // One that breaks the rules has no status, and nobody expects an end without one.
            while let Ok(step) = self.reader.step(bytes) {
                bytes = &bytes[step.consumed..];
                match step.event {
                    Event::NeedsInput => break,
                    Event::Head(head) => self.status = self.status.or(Some(head.status)),
                    Event::Data(_) => {}
                    Event::End => self.whole += 1,
                }
            }
            return Ok(());
        }
        while let Some(first) = self.awaited.front().filter(|_| !bytes.is_empty()) {
            let (now, later) = bytes.split_at(bytes.len().min(first.len() - self.arrived));
            if !first.matches(self.arrived, now) {
                return self.reject(bytes);
            }
            self.arrived += now.len();
            bytes = later;
            if self.arrived == first.len() {
                self.awaited.pop_front();
                self.arrived = 0;
                self.whole += 1;
            }
        }
        self.rest.extend_from_slice(bytes);
        let longest = self.last.iter().flatten().map(|last| last.len()).max().unwrap_or(0);
        if self.rest.len() > longest { self.reject(bytes) } else { Ok(()) }
    }

    /// Takes the server's end of the connection. Returns how it ended.
    pub(crate) fn finish(&mut self) -> &'static str {
        match &self.last {
            _ if !self.awaited.is_empty() || !self.reader.is_between_responses() => "truncated",
            Some(last) if !last.iter().any(|last| last.is(&self.rest)) => "truncated",
            last => {
                self.whole += u64::from(last.is_some());
                "closed"
            }
        }
    }

    fn reject(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        self.wrong = String::from_utf8_lossy(&bytes[..bytes.len().min(120)]).into_owned();
        Err("wrong")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use testkit::{Head, Response};

    use super::{ExactResponse, ResponseCheck};

    const HEAD: &str = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 4\r\n\r\n";

    fn expected(body: &str) -> ExactResponse {
        let head = Head::parse(HEAD.as_bytes()).unwrap();
        ExactResponse::new(&Response { head, body: body.as_bytes().to_vec() }).unwrap()
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

    #[test]
    fn compares_responses_in_any_pieces_and_in_order() {
        let (first, second) = (Arc::new(expected("body")), Arc::new(expected("size")));
        let wire = format!("{HEAD}body{HEAD}size").into_bytes();
        let of = |responses: [&Arc<_>; 2]| ResponseCheck {
            is_compared: true,
            awaited: responses.map(Arc::clone).into(),
            ..ResponseCheck::default()
        };
        for piece in 1..wire.len() {
            let mut responses = of([&first, &second]);
            assert!(wire.chunks(piece).all(|part| responses.take(part).is_ok()), "pieces of {piece}");
            assert_eq!((responses.whole, responses.finish()), (2, "closed"));
            assert_eq!(responses.take(b"H"), Err("wrong"), "one byte too many");
            let mut swapped = of([&second, &first]);
            assert!(wire.chunks(piece).any(|part| swapped.take(part).is_err()), "another order");
        }
        let mut half = of([&first, &second]);
        assert_eq!((half.take(&wire[..90]), half.finish()), (Ok(()), "truncated"));
    }
}
