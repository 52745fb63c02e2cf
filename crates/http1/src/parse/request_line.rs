//! The request line: method SP target SP version (RFC 9112 3).

use super::path;
use super::target::{TargetForm, TargetSpans};
use crate::limits::{HeadLimits, METHOD_BYTES_MAX};
use crate::scan::{self, HeadSpan};
use crate::{Method, ParseError, Version};

/// The parts of a request line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLine {
    pub(crate) method: Method,
    /// Offset of the method, which ends one byte before the target.
    pub(crate) start: u32,
    pub(crate) target: TargetSpans,
    pub(crate) version: Version,
}

impl RequestLine {
    /// Value before a request line has been parsed.
    pub(crate) const NONE: Self =
        Self { method: Method::Other, start: 0, target: TargetSpans::NONE, version: Version::Http10 };

    /// Parses the request line at `line`, without its CRLF and without control bytes other than HTAB. Changes
    /// nothing if it is rejected. Sets `path` if the path isn't that of the target.
    #[inline(always)] // of one caller; the compiler's choice depends on the size of that
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        line: HeadSpan,
        limits: &HeadLimits,
        path: &mut String,
    ) -> Result<(), ParseError> {
        if self.parse_common(bytes, line, limits).is_none() {
            let parsed = Self::parse(bytes, line, limits)?;
            path::find(path, &parsed.target, bytes, parsed.method)?;
            *self = parsed;
        }
        Ok(())
    }

    /// Parses a line of a common method, a path without dot segments, an optional query, and a common version.
    /// `None` for any other line, which may be valid as well.
    #[inline(always)]
    fn parse_common(&mut self, bytes: &[u8], line: HeadSpan, limits: &HeadLimits) -> Option<()> {
        let text = line.bytes(bytes);
        let (method, method_len) = Method::leading(text.first_chunk()?)?;
        let version = common_version(text.last_chunk()?)?;
        let start = line.start() + method_len;
        let end = line.end() - b" HTTP/1.1".len();
        if start >= end || end - start > limits.target_bytes_max || bytes[start] != b'/' {
            return None;
        }
        let path = HeadSpan::new(start, scan::target(bytes, start, end)?);
        self.method = method;
        self.version = version;
        self.start = line.start() as u32;
        self.target = TargetSpans {
            form: TargetForm::Origin,
            whole: HeadSpan::new(start, end),
            authority: HeadSpan::EMPTY,
            path,
        };
        Some(())
    }

    /// Returns the span of the method.
    pub(crate) fn method_name(&self) -> HeadSpan {
        HeadSpan::new(self.start as usize, self.target.whole.start() - 1)
    }

    /// Parses any line.
    #[cold]
    fn parse(bytes: &[u8], line: HeadSpan, limits: &HeadLimits) -> Result<Self, ParseError> {
        let text = line.bytes(bytes);
        let method_len = scan::space(text).ok_or(ParseError::MalformedRequestLine)?;
        let method_name = HeadSpan::new(line.start(), line.start() + method_len);
        let method = parse_method(method_name.bytes(bytes))?;
        let rest = &text[method_len + 1..];
        let target_len = scan::space(rest).ok_or(ParseError::MalformedRequestLine)?;
        let target_start = method_name.end() + 1;
        let target = HeadSpan::new(target_start, target_start + target_len);
        check_target_bytes(target.bytes(bytes), limits)?;
        let version = parse_version(&rest[target_len + 1..])?;
        let target = TargetSpans::parse(bytes, target, method)?;
        Ok(Self { method, start: line.start() as u32, target, version })
    }
}

/// Returns the version after the last space of a line, if it is HTTP/1.0 or HTTP/1.1.
#[inline(always)]
fn common_version(end: &[u8; 9]) -> Option<Version> {
    if end == b" HTTP/1.1" {
        Some(Version::Http11)
    } else if end == b" HTTP/1.0" {
        Some(Version::Http10)
    } else {
        None
    }
}

/// Returns the reason to reject a request line of more than `request_line_bytes_max` bytes: one of its parts
/// exceeds its own limit.
pub(crate) fn refuse_long_line(line: &[u8]) -> ParseError {
    let method = &line[..line.len().min(METHOD_BYTES_MAX + 1)];
    match scan::space(method) {
        Some(_) => ParseError::TargetTooLong,
        None => ParseError::MethodTooLong,
    }
}

pub(super) fn parse_method(name: &[u8]) -> Result<Method, ParseError> {
    match Method::from_name(name) {
        Method::Other if !scan::is_token(name) => Err(ParseError::NotAMethod),
        Method::Other if name.len() > METHOD_BYTES_MAX => Err(ParseError::MethodTooLong),
        method => Ok(method),
    }
}

pub(super) fn check_target_bytes(target: &[u8], limits: &HeadLimits) -> Result<(), ParseError> {
    if target.is_empty() {
        return Err(ParseError::MalformedRequestLine);
    }
    if target.len() > limits.target_bytes_max {
        return Err(ParseError::TargetTooLong);
    }
    match scan::is_target(target) {
        true => Ok(()),
        false => Err(ParseError::InvalidTargetByte),
    }
}

/// Parses `HTTP-version`, which is case-sensitive and has one digit on each side of the dot (RFC 9112 2.3).
fn parse_version(version: &[u8]) -> Result<Version, ParseError> {
    match version {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => Ok(Version::Http11),
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => Err(ParseError::UnsupportedVersion),
        _ => Err(ParseError::InvalidVersion),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of generated lines.
    #[rustfmt::skip]
    const METHODS: &[&str] = &[
        "GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "X", "get",
    ];
    #[rustfmt::skip]
    const TARGETS: &[&str] = &[
        "/", "/a", "*", "", "/a?b", "/?", "/a b", "/#", "/a\tb", "/\u{e9}", "//", "a", "http://b/c", "b:1",
        "/a?b?c", "/0123456789abcde", "/0123456789abcdef", "/0123456789abcdef?g", "/0123456789abcdef\u{7f}",
        "/too-long-for-the-limit-of-this-test",
    ];
    #[rustfmt::skip]
    const VERSIONS: &[&str] = &[
        "HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", "", "HTTP/1.11",
    ];

    #[test]
    fn the_usual_line_is_read_as_any_line_is() {
        let limits = HeadLimits { target_bytes_max: 20, ..HeadLimits::default() };
        let (mut usual, mut others) = (0, 0);
        for method in METHODS {
            for target in TARGETS {
                for version in VERSIONS {
                    for space in [" ", "  ", ""] {
                        let text = format!("..{method} {target}{space}{version}\r\nHost: somewhere\r\n\r\n");
                        let line = HeadSpan::new(2, text.find('\r').expect("a line end"));
                        let mut read = RequestLine::NONE;
                        match read.parse_common(text.as_bytes(), line, &limits) {
                            None => others += 1,
                            Some(()) => {
                                let judged = RequestLine::parse(text.as_bytes(), line, &limits);
                                assert_eq!(
                                    format!("{:?}", Ok::<_, ParseError>(read)),
                                    format!("{judged:?}"),
                                    "{text:?}"
                                );
                                usual += 1;
                            }
                        }
                    }
                }
            }
        }
        assert!(usual > 100 && others > 1000, "{usual} {others}");
    }
}
