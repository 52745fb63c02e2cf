//! A connection without a network: bytes are fed in pieces, and the results recorded as a list of events.

use shearwater_http1::{
    BodyDecoder, BodyEvent, BodyLimits, Framing, Head, HeadLimits, HeadParser, ParseError, Parsed, Target,
    Version,
};
use std::fmt::Write;

/// Events of a connection, in order. Adjacent content or trailers are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionEvent {
    Head(String),
    Data(Vec<u8>),
    Trailer(Vec<u8>),
    End,
    Partial,
    ParseError(ParseError),
}

/// Parses pipelined requests until the first error.
pub(crate) struct Session {
    parser: HeadParser,
    body_limits: BodyLimits,
    body: Option<BodyDecoder>,
    /// Bytes of the incomplete head.
    pending: Vec<u8>,
    show_fields: bool,
    pub(crate) events: Vec<SessionEvent>,
}

impl Session {
    pub(crate) fn new(head_limits: HeadLimits, body_limits: BodyLimits, show_fields: bool) -> Self {
        let parser = HeadParser::new(head_limits);
        Self { parser, body_limits, body: None, pending: Vec::new(), show_fields, events: Vec::new() }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let is_refused = matches!(self.events.last(), Some(SessionEvent::ParseError(_)));
        if !is_refused && let Err(reject) = self.advance() {
            self.events.push(SessionEvent::ParseError(reject));
        }
    }

    /// Returns the events of everything that was fed.
    pub(crate) fn finish(mut self) -> Vec<SessionEvent> {
        let is_refused = matches!(self.events.last(), Some(SessionEvent::ParseError(_)));
        if !is_refused && (self.body.is_some() || !self.pending.is_empty()) {
            self.events.push(SessionEvent::Partial);
        }
        self.events
    }

    fn advance(&mut self) -> Result<(), ParseError> {
        while !self.pending.is_empty() {
            let is_waiting = match self.body {
                Some(_) => self.advance_body()?,
                None => self.advance_head()?,
            };
            if is_waiting {
                break;
            }
        }
        Ok(())
    }

    fn advance_head(&mut self) -> Result<bool, ParseError> {
        let Parsed::Complete { head_len } = self.parser.parse(&self.pending)? else { return Ok(true) };
        let head = self.parser.head(&self.pending);
        assert_eq!((head.len(), head.raw()), (head_len, &self.pending[..head_len]));
        self.events.push(SessionEvent::Head(describe(&head)));
        if self.show_fields {
            self.events.extend(head.fields().map(|field| {
                SessionEvent::Head(format!("field {}={}", field.name, field.value.escape_ascii()))
            }));
        }
        self.body = match head.framing() {
            Framing::None => None,
            framing => Some(BodyDecoder::new(framing, self.body_limits)),
        };
        self.parser.reset();
        self.pending.drain(..head_len);
        if self.body.is_some_and(|body| body.is_done()) {
            self.end_body();
        }
        Ok(false)
    }

    fn advance_body(&mut self) -> Result<bool, ParseError> {
        let body = self.body.as_mut().expect("a body is being read");
        let step = body.decode(&self.pending)?;
        match step.event {
            BodyEvent::Data(data) => match self.events.last_mut() {
                Some(SessionEvent::Data(joined)) => joined.extend_from_slice(data),
                _ => self.events.push(SessionEvent::Data(data.to_vec())),
            },
            BodyEvent::Trailer(bytes) => match self.events.last_mut() {
                Some(SessionEvent::Trailer(joined)) => joined.extend_from_slice(bytes),
                _ => self.events.push(SessionEvent::Trailer(bytes.to_vec())),
            },
            BodyEvent::More => assert_eq!(step.consumed, self.pending.len()),
            BodyEvent::Done => assert!(body.is_done()),
        }
        let is_waiting = step.event == BodyEvent::More;
        let (is_done, consumed) = (body.is_done(), step.consumed);
        self.pending.drain(..consumed);
        if is_done {
            self.end_body();
        }
        Ok(is_waiting)
    }

    fn end_body(&mut self) {
        self.body = None;
        self.events.push(SessionEvent::End);
    }
}

/// A head in one line: method, target, version and host, then what differs from the plainest request.
fn describe(head: &Head<'_>) -> String {
    let version = if head.version() == Version::Http11 { "1.1" } else { "1.0" };
    assert_eq!((head.path_bytes(), head.host_bytes()), (head.path().as_bytes(), head.host().as_bytes()));
    let mut text = format!("{} {} {version} host={}", head.method_name(), head.target_str(), head.host());
    match head.target() {
        Target::Origin { .. } => {}
        Target::Absolute { scheme, authority, .. } => {
            assert_eq!(head.authority(), Some(authority));
            write!(text, " absolute={scheme},{authority}").unwrap();
        }
        Target::Authority { host, port } => write!(text, " authority={host},{port}").unwrap(),
        Target::Asterisk => text.push_str(" asterisk"),
    }
    if head.path() != head.target_str().split('?').next().unwrap() {
        write!(text, " path={}", head.path()).unwrap();
    }
    if let Some(query) = head.query() {
        write!(text, " query={query}").unwrap();
    }
    match head.framing() {
        Framing::None => {}
        Framing::Length(length) => write!(text, " length={length}").unwrap(),
        Framing::Chunked | Framing::Open => text.push_str(" chunked"),
    }
    if !head.keep_alive() {
        text.push_str(" close");
    }
    match head.expectation() {
        shearwater_http1::Expectation::None => {}
        shearwater_http1::Expectation::Continue => text.push_str(" expect=continue"),
        shearwater_http1::Expectation::Unknown => text.push_str(" expect=unknown"),
    }
    text
}

/// Formats the events as lines of text, as in the corpus.
pub(crate) fn render(events: &[SessionEvent]) -> Vec<String> {
    let line = |event: &SessionEvent| match event {
        SessionEvent::Head(text) => text.clone(),
        SessionEvent::Data(bytes) => format!("data {}", bytes.escape_ascii()),
        SessionEvent::Trailer(bytes) => format!("trailer {}", bytes.escape_ascii()),
        SessionEvent::End => "end".to_owned(),
        SessionEvent::Partial => "partial".to_owned(),
        SessionEvent::ParseError(reject) => format!("reject {}", reject.name()),
    };
    events.iter().map(line).collect()
}
