//! The head parser: splits lines into a table of offsets, and resumes where it stopped.
//!
//! A result is tied to the byte that causes it, never to how much was received with it:
//! - a control byte other than HTAB and CRLF is rejected at its position, a CR with the byte that follows it;
//! - a byte that can't begin a method is rejected at its position;
//! - a line is parsed once its LF is received, the whole head once the LF of its empty line is;
//! - a limit is exceeded with the first byte beyond it.
//!
//! So the first result other than `Partial` is the same for every way of splitting the same bytes.

mod body;
mod builder;
pub(crate) mod fields;
mod head;
mod path;
mod request_line;
mod target;
mod trailers;

pub use body::{BodyDecoder, BodyEvent, BodyStep};
pub use builder::{HeadBuilder, RequestParts};
pub use fields::Field;
pub use head::{Expectation, Head, is_protocol, is_same_protocol};
pub use target::Target;
pub use trailers::{Trailers, may_be_trailer};

use crate::scan::{self, Cutter, HeadSpan, LineProgress, ScanStop};
use crate::{Framing, HeadLimits, KnownField, ParseError, Version};
use head::ParsedHead;
use target::TargetForm;

/// Bytes that the buffer of a resolved path keeps for the next request.
const PATH_BYTES_KEPT_MAX: usize = 256;

/// Progress of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// More bytes are needed.
    Partial,
    /// The head is complete.
    Complete {
        /// Length of the head, including the empty line (and one skipped before it): the body begins here.
        head_len: usize,
    },
}

/// Parses one request head at a time; use [`HeadParser::reset`] before the next one.
///
/// The field table is allocated by [`HeadParser::new`] and reused for each head. The parser holds offsets
/// only, so it may be moved or swapped, and the bytes may be copied elsewhere before [`HeadParser::head`].
#[derive(Debug)]
pub struct HeadParser {
    limits: HeadLimits,
    stage: HeadStage,
    cutter: Cutter,
    progress: LineProgress,
    head: ParsedHead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadStage {
    Start,
    RequestLine,
    Fields,
    Complete,
}

impl HeadParser {
    /// Creates a parser for heads within `limits`, clamped to their usable ranges (see [`HeadLimits`]).
    /// Allocates 20 bytes per line.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        let mut parser = Self::without_room(limits);
        parser.make_room();
        parser
    }

    /// Creates a parser without buffers, which can only [adopt](HeadParser::adopt) heads until it gets
    /// [room](HeadParser::make_room): for keeping many of them. Allocates nothing.
    #[must_use]
    pub fn without_room(limits: HeadLimits) -> Self {
        Self {
            limits: limits.usable(),
            stage: HeadStage::Start,
            cutter: Cutter::detect(),
            progress: LineProgress::START,
            head: ParsedHead::empty(),
        }
    }

    /// Allocates the buffers if they are missing; a head in the parser is lost then.
    #[inline]
    pub fn make_room(&mut self) {
        self.head.fields.make_room(self.limits.fields_max);
    }

    /// Returns its allocated memory in bytes, used or not.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.head.fields.held_bytes() + self.head.path.capacity()
    }

    /// Prepares the parser for another head.
    pub fn reset(&mut self) {
        self.stage = HeadStage::Start;
        self.progress = LineProgress::START;
        if !self.head.path.is_empty() {
            self.head.path.clear();
            self.head.path.shrink_to(PATH_BYTES_KEPT_MAX);
        }
        self.head.fields.clear();
    }

    /// Continues parsing. `bytes` is everything received since the head's first byte: the same bytes as in
    /// the last call, and more. Bytes after the head are ignored.
    ///
    /// # Errors
    /// The reason why the head is invalid. Without [`HeadParser::reset`] the next call returns the same
    /// reason.
    // Inlined into a request loop, it costs more by spilled registers than the call does.
    #[inline(never)]
    pub fn parse(&mut self, bytes: &[u8]) -> Result<Parsed, ParseError> {
        // Bytes beyond the limit are never read: their presence is enough.
        let seen = &bytes[..bytes.len().min(self.limits.head_bytes_max)];
        if self.stage == HeadStage::Start && !self.find_start(seen)? {
            return Ok(Parsed::Partial);
        }
        if self.stage == HeadStage::Complete {
            return Ok(Parsed::Complete { head_len: self.progress.line_start });
        }
        let stop = self.cutter.lines(seen, &mut self.progress, self.head.fields.lines_mut());
        // Lines already split come first.
        self.parse_lines(seen)?;
        match stop {
            ScanStop::EmptyLine => self.complete(seen),
            ScanStop::Starved => self.check_incomplete(bytes),
            ScanStop::Control(at) => self.check_control(bytes, at),
            ScanStop::Full => Err(ParseError::TooManyFields),
        }
    }

    /// Returns the head that was parsed last. `bytes` is the input of [`HeadParser::parse`], or a copy of it.
    ///
    /// # Panics
    /// If the last result of [`HeadParser::parse`] was not [`Parsed::Complete`], or `bytes` is shorter than the head. Accessors of
    /// the head may panic, or return other text, if `bytes` has other content.
    #[inline(always)]
    #[must_use]
    pub fn head<'a>(&'a self, bytes: &'a [u8]) -> Head<'a> {
        assert!(self.stage == HeadStage::Complete, "no complete head has been parsed");
        Head::new(&self.head, &bytes[..self.progress.line_start])
    }

    /// Copies the parsed state of `head`, for keeping a copy of the head's bytes ([`Head::raw`]) and passing
    /// that to [`HeadParser::head`] later.
    ///
    /// Allocates 20 bytes for each line that exceeds the present buffers.
    pub fn adopt(&mut self, head: &Head<'_>) {
        self.stage = HeadStage::Complete;
        self.progress = LineProgress { line_start: head.len(), ..LineProgress::START };
        self.head.copy_from(head.parsed());
    }

    /// Finds the request line's first byte.
    #[inline]
    fn find_start(&mut self, bytes: &[u8]) -> Result<bool, ParseError> {
        let start = match bytes.first() {
            Some(&byte) if scan::is_token_byte(byte) => 0,
            _ if !is_empty_line_skipped(bytes)? => return Ok(false),
            _ => b"\r\n".len(),
        };
        self.progress.line_start = start;
        self.progress.scanned = start;
        self.stage = HeadStage::RequestLine;
        Ok(true)
    }

    /// Checks an incomplete line after all input has been scanned.
    #[cold]
    fn check_incomplete(&mut self, bytes: &[u8]) -> Result<Parsed, ParseError> {
        let head_end_max = self.limits.head_bytes_max;
        self.progress.scanned = self.progress.scanned.max(bytes.len().min(head_end_max));
        if self.progress.scanned > self.line_end_max() {
            return Err(self.refuse_long_line(bytes, self.progress.line_start));
        }
        match bytes.len() > head_end_max {
            true => Err(ParseError::HeadTooLarge),
            false => Ok(Parsed::Partial),
        }
    }

    /// Handles the control byte at `at`, which is not known to be the CR of a CRLF.
    #[cold]
    fn check_control(&mut self, bytes: &[u8], at: usize) -> Result<Parsed, ParseError> {
        if at > self.line_end_max() {
            return Err(self.refuse_long_line(bytes, self.progress.line_start));
        }
        let next = at + 1;
        match (bytes[at], bytes.get(next)) {
            (b'\r', None) => {
                self.progress.scanned = at;
                Ok(Parsed::Partial)
            }
            (b'\r', Some(_)) if next >= self.limits.head_bytes_max => Err(ParseError::HeadTooLarge),
            (b'\r', Some(_)) => Err(ParseError::BareCr),
            (b'\n', _) => Err(ParseError::BareLf),
            _ if self.stage == HeadStage::RequestLine => Err(ParseError::ControlInRequestLine),
            _ => Err(ParseError::ControlInField),
        }
    }

    /// Returns the offset by which the incomplete line must end.
    fn line_end_max(&self) -> usize {
        match self.stage {
            HeadStage::RequestLine => self.progress.line_start + self.limits.request_line_bytes_max(),
            _ => usize::MAX,
        }
    }

    #[cold]
    fn refuse_long_line(&self, bytes: &[u8], start: usize) -> ParseError {
        request_line::refuse_long_line(&bytes[start..=start + self.limits.request_line_bytes_max()])
    }

    /// Parses the lines that have been split since the last time.
    #[inline(always)]
    fn parse_lines(&mut self, bytes: &[u8]) -> Result<(), ParseError> {
        if self.stage == HeadStage::RequestLine && self.progress.lines > 0 {
            let line = self.head.fields.request_line();
            if line.end() - line.start() > self.limits.request_line_bytes_max() {
                return Err(self.refuse_long_line(bytes, line.start()));
            }
            self.head.request.read(bytes, line, &self.limits, &mut self.head.path)?;
            self.stage = HeadStage::Fields;
        }
        self.head.fields.parse(bytes, self.progress.lines)
    }

    /// Checks the head as a whole after its empty line.
    #[inline(always)] // as `RequestLine::read`
    fn complete(&mut self, bytes: &[u8]) -> Result<Parsed, ParseError> {
        let version = self.head.request.version;
        self.head.summary.host = self.find_host(bytes)?;
        self.head.summary.framing = Framing::of_request(bytes, &self.head.fields, version)?;
        self.head.summary.keep_alive = head::keep_alive(bytes, &self.head.fields, version);
        self.head.summary.expectation = head::expectation(bytes, &self.head.fields, version);
        self.progress.line_start += b"\r\n".len();
        self.stage = HeadStage::Complete;
        Ok(Parsed::Complete { head_len: self.progress.line_start })
    }

    /// Returns the requested host: the target's, if it has one, else the Host field's. An absolute target
    /// replaces that field's value (RFC 9112 3.2.2), which is checked in any case (RFC 9112 3.2).
    fn find_host(&mut self, bytes: &[u8]) -> Result<HeadSpan, ParseError> {
        let field = match self.head.fields.first(KnownField::Host) {
            None if self.head.request.version == Version::Http11 => return Err(ParseError::MissingHost),
            None => HeadSpan::EMPTY,
            Some(_) if self.head.fields.is_repeated(KnownField::Host) => {
                return Err(ParseError::DuplicateHost);
            }
            Some(field) => field.value,
        };
        if field.start() != field.end() && !target::is_host_field(bytes, field) {
            return Err(ParseError::InvalidHost);
        }
        Ok(match self.head.request.target.form {
            TargetForm::Absolute => {
                let authority = self.head.request.target.authority;
                self.head.fields.replace_first(KnownField::Host, authority);
                authority
            }
            TargetForm::Authority => self.head.request.target.authority,
            TargetForm::Origin | TargetForm::Asterisk => field,
        })
    }
}

/// Returns true if `bytes` are one empty line, which is skipped (RFC 9112 2.2), and the beginning of a
/// request line.
#[cold]
fn is_empty_line_skipped(bytes: &[u8]) -> Result<bool, ParseError> {
    let first = match bytes {
        [] | [b'\r'] | [b'\r', b'\n'] => return Ok(false),
        [b'\r', b'\n', first, ..] => first,
        [b'\r', ..] => return Err(ParseError::BareCr),
        [first, ..] => first,
    };
    match first {
        b'\n' => Err(ParseError::BareLf),
        b'\r' => Err(ParseError::ExtraEmptyLine),
        byte if scan::is_token_byte(*byte) => Ok(true),
        _ => Err(ParseError::NotAMethod),
    }
}
