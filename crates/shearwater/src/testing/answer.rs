//! An answer as a test looks at it.

use shearwater_engine::http1::{BodyDecoder, BodyEvent, BodyLimits, Framing};

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Name and value of each field, in order.
    pub fields: Vec<(String, String)>,
    /// The body, whatever the way it was sent.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of the first field with this name, in any case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("the body is text")
    }

    /// The first final answer in what has come, and where it ends; `None` as long as it isn't whole.
    pub(super) fn parse(got: &[u8], is_closed: bool) -> Option<(Self, usize)> {
        let head_len = got.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let head = String::from_utf8_lossy(&got[..head_len]);
        let mut lines = head.lines();
        let status: u16 = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        if status < 200 {
            let (answer, len) = Self::parse(&got[head_len..], is_closed)?;
            return Some((answer, head_len + len));
        }
        let split =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut answer = Self { status, fields: lines.filter_map(split).collect(), body: Vec::new() };
        let body_len = answer.take_body(&got[head_len..], is_closed)?;
        Some((answer, head_len + body_len))
    }

    /// Takes the body; gives how long it was on the wire.
    fn take_body(&mut self, rest: &[u8], is_closed: bool) -> Option<usize> {
        if matches!(self.status, 204 | 304) {
            return Some(0);
        }
        if let Some(len) = self.field("Content-Length") {
            let len: usize = len.parse().ok()?;
            self.body.extend_from_slice(rest.get(..len)?);
            return Some(len);
        }
        if self.field("Transfer-Encoding").is_none() {
            self.body.extend_from_slice(rest);
            return is_closed.then_some(rest.len());
        }
        let mut decoder = BodyDecoder::new(Framing::Chunked, BodyLimits::default());
        let mut at = 0;
        loop {
            let step = decoder.decode(&rest[at..]).ok()?;
            at += step.consumed;
            match step.event {
                BodyEvent::Data(bytes) => self.body.extend_from_slice(bytes),
                BodyEvent::Trailer(_) => {}
                BodyEvent::More => return None,
                BodyEvent::Done => return Some(at),
            }
        }
    }
}
