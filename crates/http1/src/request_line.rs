//! The request line: method SP target SP version (RFC 9112 3).

use crate::limits::{HeadLimits, METHOD_BYTES_MAX};
use crate::span::Span;
use crate::target::TargetSpans;
use crate::{Method, Reject, class, scan};

/// The version that a request is to be read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1, and any later minor version (RFC 9110 2.5).
    Http11,
}

/// The parts of a request line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLine {
    pub(crate) method: Method,
    pub(crate) method_name: Span,
    pub(crate) target: TargetSpans,
    pub(crate) version: Version,
}

impl RequestLine {
    /// What stands in a parser that has not seen a request line yet.
    pub(crate) const NONE: Self = Self {
        method: Method::Other,
        method_name: Span::EMPTY,
        target: TargetSpans::NONE,
        version: Version::Http10,
    };

    /// Parses the line at `line`, which has no control bytes other than HTAB and not its CRLF.
    #[inline]
    pub(crate) fn parse(bytes: &[u8], line: Span, limits: &HeadLimits) -> Result<Self, Reject> {
        let text = line.bytes(bytes);
        let method_len = scan::space(text).ok_or(Reject::MalformedRequestLine)?;
        let method_name = Span::new(line.start(), line.start() + method_len);
        let method = parse_method(method_name.bytes(bytes))?;
        let rest = &text[method_len + 1..];
        let target_len = scan::space(rest).ok_or(Reject::MalformedRequestLine)?;
        let target_start = method_name.end() + 1;
        let target = Span::new(target_start, target_start + target_len);
        check_target_bytes(target.bytes(bytes), limits)?;
        let version = parse_version(&rest[target_len + 1..])?;
        Ok(Self { method, method_name, target: TargetSpans::parse(bytes, target, method)?, version })
    }
}

/// Why a request line of more than `request_line_bytes_max` bytes is refused: whichever part can't be within its own bound.
pub(crate) fn refuse_long_line(line: &[u8]) -> Reject {
    let method = &line[..line.len().min(METHOD_BYTES_MAX + 1)];
    match scan::space(method) {
        Some(_) => Reject::TargetTooLong,
        None => Reject::MethodTooLong,
    }
}

fn parse_method(name: &[u8]) -> Result<Method, Reject> {
    match Method::from_name(name) {
        Method::Other if !class::is_token(name) => Err(Reject::NotAMethod),
        Method::Other if name.len() > METHOD_BYTES_MAX => Err(Reject::MethodTooLong),
        method => Ok(method),
    }
}

fn check_target_bytes(target: &[u8], limits: &HeadLimits) -> Result<(), Reject> {
    if target.is_empty() {
        return Err(Reject::MalformedRequestLine);
    }
    if target.len() > limits.target_bytes_max {
        return Err(Reject::TargetTooLong);
    }
    match class::is_target(target) {
        true => Ok(()),
        false => Err(Reject::InvalidTargetByte),
    }
}

/// `HTTP-version` is case-sensitive and has one digit on each side of the dot (RFC 9112 2.3).
fn parse_version(version: &[u8]) -> Result<Version, Reject> {
    match version {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => Ok(Version::Http11),
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => Err(Reject::UnsupportedVersion),
        _ => Err(Reject::InvalidVersion),
    }
}
