//! The head parser: lines in, a table of offsets out, resumed where it stopped.
//!
//! A result is tied to the byte that causes it, never to how much was received with it:
//! - a control byte other than HTAB and CRLF is refused where it stands, a CR with the byte that follows it;
//! - a byte that can't begin a method is refused where it stands;
//! - a line is judged when its LF is there, the whole head when the LF of its empty line is there;
//! - a bound is passed with the first byte beyond it.
//!
//! So the first result other than `Partial` is the same for every way of splitting the same bytes.

use crate::connection::{self, Expectation};
use crate::fields::{FieldSpans, FieldTable};
use crate::request_line::{self, RequestLine};
use crate::span::Span;
use crate::target::Form;
use crate::{Framing, Head, HeadLimits, Known, Reject, Version, authority, class, scan};

/// How far a head has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// More bytes are needed.
    Partial,
    /// The head is there.
    Complete {
        /// Its bytes, the empty line included (and the one skipped before it): the body begins here.
        head_len: usize,
    },
}

/// Reads one request head at a time; use [`HeadParser::reset`] before the next one.
///
/// The field table is allocated by [`HeadParser::new`] and used again for each head. The parser holds offsets only, so it may be
/// moved or swapped, and the bytes may be copied elsewhere before [`HeadParser::head`].
#[derive(Debug)]
pub struct HeadParser {
    limits: HeadLimits,
    stage: Stage,
    /// Where the unfinished line begins.
    line_start: usize,
    /// Up to here no line end was found in the unfinished line.
    scanned: usize,
    pub(crate) request: RequestLine,
    pub(crate) fields: FieldTable,
    pub(crate) summary: Summary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    RequestLine,
    Fields,
    Complete,
}

/// What is decided once all fields are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    pub(crate) host: Span,
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
    pub(crate) expectation: Expectation,
}

impl Summary {
    const NONE: Self =
        Self { host: Span::EMPTY, framing: Framing::None, keep_alive: false, expectation: Expectation::None };
}

impl HeadParser {
    /// A parser for heads within `limits` (moved into their usable ranges, see [`HeadLimits`]). Allocates 20 bytes per field.
    pub fn new(limits: HeadLimits) -> Self {
        let limits = limits.usable();
        Self {
            limits,
            stage: Stage::Start,
            line_start: 0,
            scanned: 0,
            request: RequestLine::NONE,
            fields: FieldTable::new(limits.fields_max),
            summary: Summary::NONE,
        }
    }

    /// Makes the parser ready for another head.
    pub fn reset(&mut self) {
        self.stage = Stage::Start;
        self.line_start = 0;
        self.scanned = 0;
        self.fields.clear();
    }

    /// Reads on. `bytes` is everything received since the head's first byte: the same bytes as in the last call, and more.
    /// Bytes behind the head are not looked at.
    ///
    /// # Errors
    /// The reason why this is no acceptable head. Asking again without [`HeadParser::reset`] gives the same reason.
    pub fn parse(&mut self, bytes: &[u8]) -> Result<Parsed, Reject> {
        if self.stage == Stage::Start && !self.find_start(bytes)? {
            return Ok(Parsed::Partial);
        }
        while self.stage != Stage::Complete {
            let Some(line_end) = self.find_line_end(bytes)? else { return Ok(Parsed::Partial) };
            self.take_line(bytes, Span::new(self.line_start, line_end))?;
            self.line_start = line_end + b"\r\n".len();
            self.scanned = self.line_start;
        }
        Ok(Parsed::Complete { head_len: self.line_start })
    }

    /// The head that was parsed last. `bytes` is what [`HeadParser::parse`] was given, or a copy of it.
    ///
    /// # Panics
    /// If the last result of [`HeadParser::parse`] was not [`Parsed::Complete`], or `bytes` is shorter than the head. Accessors of
    /// the head may panic, or return other text, if `bytes` has other content.
    pub fn head<'a>(&'a self, bytes: &'a [u8]) -> Head<'a> {
        assert!(self.stage == Stage::Complete, "no complete head has been parsed");
        Head::new(self, &bytes[..self.line_start])
    }

    /// Finds the request line's first byte: one empty line before it is skipped (RFC 9112 2.2).
    fn find_start(&mut self, bytes: &[u8]) -> Result<bool, Reject> {
        let start = match bytes {
            [] | [b'\r'] => return Ok(false),
            [b'\r', b'\n', ..] => 2,
            [b'\r', ..] => return Err(Reject::BareCr),
            _ => 0,
        };
        match bytes.get(start) {
            None => Ok(false),
            Some(&byte) if class::is_token_byte(byte) => {
                self.line_start = start;
                self.scanned = start;
                self.stage = Stage::RequestLine;
                Ok(true)
            }
            Some(b'\n') => Err(Reject::BareLf),
            Some(b'\r') => Err(Reject::ExtraEmptyLine),
            Some(_) => Err(Reject::NotAMethod),
        }
    }

    /// Looks for the CR of the unfinished line's CRLF, from where the last look ended.
    fn find_line_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Reject> {
        let head_end_max = self.limits.head_bytes_max;
        let line_end_max = match self.stage {
            Stage::RequestLine => self.line_start + self.limits.request_line_bytes_max(),
            _ => usize::MAX - 1,
        };
        let window_end = bytes.len().min(head_end_max).min(line_end_max + 1);
        let window = bytes.get(self.scanned..window_end).unwrap_or_default();
        if let Some(offset) = scan::control(window) {
            self.scanned += offset;
            return self.judge_control(bytes, self.scanned);
        }
        self.scanned += window.len();
        if self.scanned > line_end_max {
            return Err(request_line::refuse_long_line(&bytes[self.line_start..self.scanned]));
        }
        match bytes.len() > head_end_max {
            true => Err(Reject::HeadTooLarge),
            false => Ok(None),
        }
    }

    /// Whether the control byte at `at` is the CR of a CRLF. `None` if that can't be said yet.
    fn judge_control(&self, bytes: &[u8], at: usize) -> Result<Option<usize>, Reject> {
        let next = at + 1;
        match (bytes[at], bytes.get(next)) {
            (b'\r', None) => Ok(None),
            (b'\r', Some(_)) if next >= self.limits.head_bytes_max => Err(Reject::HeadTooLarge),
            (b'\r', Some(b'\n')) => Ok(Some(at)),
            (b'\r', Some(_)) => Err(Reject::BareCr),
            (b'\n', _) => Err(Reject::BareLf),
            _ if self.stage == Stage::RequestLine => Err(Reject::ControlInRequestLine),
            _ => Err(Reject::ControlInField),
        }
    }

    /// Judges a complete line. Changes nothing if the line is refused.
    fn take_line(&mut self, bytes: &[u8], line: Span) -> Result<(), Reject> {
        if self.stage == Stage::RequestLine {
            self.request = RequestLine::parse(bytes, line, &self.limits)?;
            self.stage = Stage::Fields;
        } else if line.start() == line.end() {
            self.summary = self.summarize(bytes)?;
            self.stage = Stage::Complete;
        } else if self.fields.is_full() {
            return Err(Reject::TooManyFields);
        } else {
            self.fields.push(FieldSpans::parse(bytes, line)?);
        }
        Ok(())
    }

    fn summarize(&self, bytes: &[u8]) -> Result<Summary, Reject> {
        let version = self.request.version;
        Ok(Summary {
            host: self.find_host(bytes)?,
            framing: Framing::of_request(bytes, &self.fields, version)?,
            keep_alive: connection::keep_alive(bytes, &self.fields, version),
            expectation: connection::expectation(bytes, &self.fields, version),
        })
    }

    /// The host that is asked for: the target's, if it names one (RFC 9112 3.2.2), else the Host field's. That field is checked in
    /// any case (RFC 9112 3.2).
    fn find_host(&self, bytes: &[u8]) -> Result<Span, Reject> {
        let field = match self.fields.first(Known::Host) {
            None if self.request.version == Version::Http11 => return Err(Reject::MissingHost),
            None => Span::EMPTY,
            Some(_) if self.fields.is_repeated(Known::Host) => return Err(Reject::DuplicateHost),
            Some(field) => field.value,
        };
        let value = field.bytes(bytes);
        if !value.is_empty() && !authority::is_host_and_optional_port(value) {
            return Err(Reject::InvalidHost);
        }
        Ok(match self.request.target.form {
            Form::Absolute { authority } => authority,
            Form::Authority => self.request.target.whole,
            Form::Origin | Form::Asterisk => field,
        })
    }
}
