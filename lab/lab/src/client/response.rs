//! The comparison of responses. A head that equals the first one but for its date is not parsed.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use testkit::{Error, Event, Framing, Response, ResponseReader};

use super::load::LoadCounts;
use crate::file_set::FileContent;

/// Length of a date, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
const DATE_BYTES: usize = 29;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ExpectedResponse {
    pub(crate) method: String,
    pub(crate) status: u16,
    /// Length of the body; any if there is none.
    pub(crate) body_bytes: Option<u64>,
    /// Compared byte by byte.
    pub(crate) body: Option<FileContent>,
    usual_head: Option<UsualHead>,
}

/// A head that most responses have.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct UsualHead {
    bytes: Vec<u8>,
    /// Place of the date, which is not compared.
    date: Range<usize>,
    body_bytes: u64,
}

/// The progress of a connection's next response.
#[derive(Debug, Default)]
pub(super) struct ResponseProgress {
    /// Body bytes to come after the usual head.
    left: Option<u64>,
    /// Parses a response with another head.
    reader: Option<Box<ResponseReader>>,
    /// Status of a parsed response, interim ones (`1xx`) excepted.
    status: Option<u16>,
    /// Body bytes so far.
    received: u64,
    differs: bool,
    /// True if the connection ends after it.
    pub(super) closes: bool,
}

impl ExpectedResponse {
    /// Expects a status and the length of the body of the first response.
    pub(crate) fn like(first: &Response, method: &str) -> Self {
        let (status, body_bytes) = (first.status(), Some(first.body.len() as u64));
        Self {
            method: method.to_owned(),
            status,
            body_bytes,
            body: None,
            usual_head: UsualHead::of(first, method),
        }
    }

    /// Expects a 200 with this content.
    pub(crate) fn with_body(body: FileContent) -> Self {
        let (method, body_bytes) = ("GET".to_owned(), Some(body.bytes));
        Self { method, status: 200, body_bytes, body: Some(body), usual_head: None }
    }
}

impl UsualHead {
    /// Returns the head of a response whose body has a length.
    fn of(response: &Response, method: &str) -> Option<Self> {
        let head = &response.head;
        let body_bytes = match head.framing(method) {
            Framing::Length(length) => length,
            Framing::None => 0,
            Framing::Chunked | Framing::UntilClose => return None,
        };
        if head.closes() || !head.text().starts_with("HTTP/1.1 ") {
            return None;
        }
        let bytes = head.text().as_bytes().to_vec();
        let date = head.header("date").filter(|date| date.len() == DATE_BYTES);
        let start = date.and_then(|date| head.text().find(date)).unwrap_or(bytes.len());
        let date = start..bytes.len().min(start + DATE_BYTES);
        Some(Self { bytes, date, body_bytes })
    }

    fn starts(&self, bytes: &[u8]) -> bool {
        let Some(head) = bytes.get(..self.bytes.len()) else { return false };
        head[..self.date.start] == self.bytes[..self.date.start]
            && head[self.date.end..] == self.bytes[self.date.end..]
    }
}

impl ResponseProgress {
    /// Takes bytes of one response. Returns those after it, or nothing if it is not whole yet.
    pub(super) fn take<'a>(
        &mut self,
        bytes: &'a [u8],
        expected: &ExpectedResponse,
    ) -> Result<Option<&'a [u8]>, Error> {
        if let Some(left) = self.left {
            return Ok(self.take_body(bytes, left, expected));
        }
        if let (None, Some(usual)) = (&self.reader, &expected.usual_head)
            && usual.starts(bytes)
        {
            self.status = Some(expected.status);
            return Ok(self.take_body(&bytes[usual.bytes.len()..], usual.body_bytes, expected));
        }
        self.parse(bytes, expected)
    }

    /// Takes the body after the usual head, of which so many bytes are missing.
    fn take_body<'a>(&mut self, bytes: &'a [u8], left: u64, expected: &ExpectedResponse) -> Option<&'a [u8]> {
        let length = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let (now, later) = bytes.split_at(length);
        self.compare(now, expected);
        let left = left - length as u64;
        self.left = Some(left);
        (left == 0).then_some(later)
    }

    fn parse<'a>(
        &mut self,
        mut bytes: &'a [u8],
        expected: &ExpectedResponse,
    ) -> Result<Option<&'a [u8]>, Error> {
        let mut reader = self.reader.take().unwrap_or_else(|| {
            let mut reader = Box::new(ResponseReader::default());
            reader.expect(&expected.method);
            reader.accept_http10();
            reader
        });
        loop {
            let step = reader.step(bytes)?;
            bytes = &bytes[step.consumed..];
            match step.event {
                Event::Head(head) if head.status >= 200 => {
                    let is_old = head.text().starts_with("HTTP/1.0")
                        && !head.header("connection").is_some_and(|it| it.eq_ignore_ascii_case("keep-alive"));
                    (self.status, self.closes) = (Some(head.status), is_old || head.closes());
                }
                Event::Data(data) => self.compare(data, expected),
                Event::End if self.status.is_some() => return Ok(Some(bytes)),
                Event::Head(_) | Event::End => {}
                Event::NeedsInput => {
                    self.reader = Some(reader);
                    return Ok(None);
                }
            }
        }
    }

    fn compare(&mut self, data: &[u8], expected: &ExpectedResponse) {
        self.differs |= expected.body.as_ref().is_some_and(|body| !body.has_at(self.received, data));
        self.received += data.len() as u64;
    }

    /// Returns true if the end of the connection makes the response whole.
    pub(super) fn ends_with_connection(&mut self) -> bool {
        self.status.is_some() && self.reader.take().is_some_and(|mut reader| reader.finish().is_ok())
    }

    /// Counts the response, under one error at most.
    pub(super) fn count(&self, expected: &ExpectedResponse, counts: &mut LoadCounts) {
        counts.responses += 1;
        if self.status != Some(expected.status) {
            counts.status_errors += 1;
        } else if expected.body_bytes.is_some_and(|bytes| bytes != self.received) {
            counts.length_errors += 1;
        } else if self.differs {
            counts.content_errors += 1;
        }
    }
}
