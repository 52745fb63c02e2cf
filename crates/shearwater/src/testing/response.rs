//! Responses as tests see them.

use shearwater_engine::http1::{BodyDecoder, BodyEvent, BodyLimits, Framing, Trailers};

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TestResponse {
    /// The status code.
    pub status: u16,
    /// Name and value of each header field, in order.
    pub fields: Vec<(String, String)>,
    /// The body, decoded if it was chunked.
    pub body: Vec<u8>,
    /// Name and value of each trailer field, in order.
    pub trailers: Vec<(String, String)>,
}

impl TestResponse {
    /// Returns the value of the first header field with this name, in any case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the body as text.
    ///
    /// # Panics
    /// If the body isn't UTF-8.
    #[must_use]
    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("the body is UTF-8")
    }

    /// Parses the first final response. Returns it with its length in bytes, or `None` if it isn't complete.
    pub(super) fn parse(received: &[u8], is_closed: bool) -> Option<(Self, usize)> {
        let head_len = received.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let head = String::from_utf8_lossy(&received[..head_len]);
        let mut lines = head.lines();
        let status: u16 = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        if status < 200 {
            let (response, len) = Self::parse(&received[head_len..], is_closed)?;
            return Some((response, head_len + len));
        }
        let split =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        let fields = lines.filter_map(split).collect();
        let mut response = Self { status, fields, body: Vec::new(), trailers: Vec::new() };
        let body_len = response.decode_body(&received[head_len..], is_closed)?;
        Some((response, head_len + body_len))
    }

    /// Decodes the body. Returns its length on the wire in bytes.
    fn decode_body(&mut self, rest: &[u8], is_closed: bool) -> Option<usize> {
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
        let (mut at, mut trailers) = (0, Vec::new());
        loop {
            let step = decoder.decode(&rest[at..]).ok()?;
            at += step.consumed;
            match step.event {
                BodyEvent::Data(bytes) => self.body.extend_from_slice(bytes),
                BodyEvent::Trailer(bytes) => trailers.extend_from_slice(bytes),
                BodyEvent::More => return None,
                BodyEvent::Done => break,
            }
        }
        let fields = Trailers::new(&trailers);
        self.trailers = fields
            .map(|field| (field.name.to_owned(), String::from_utf8_lossy(field.value).into_owned()))
            .collect();
        Some(at)
    }
}
