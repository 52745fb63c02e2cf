//! The request target and its four forms (RFC 9112 3.2).

use crate::span::Span;
use crate::{Method, ParseError, authority, scan};

/// A parsed request target. All text is ASCII and still percent-encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// `/path?query`: the origin form.
    Origin {
        /// Begins with `/`.
        path: &'a str,
        /// Text after the first `?`, possibly empty.
        query: Option<&'a str>,
    },
    /// `scheme://authority/path?query`: the absolute form, which is sent to proxies and must be accepted by
    /// every server.
    Absolute {
        /// Any valid scheme, in the sender's case.
        scheme: &'a str,
        /// A host, with an optional port.
        authority: &'a str,
        /// Begins with `/`, or is empty.
        path: &'a str,
        /// Text after the first `?`, possibly empty.
        query: Option<&'a str>,
    },
    /// `host:port`: with CONNECT only.
    Authority {
        /// A name, an IPv4 address, or an IP literal in brackets.
        host: &'a str,
        /// Decimal digits, 1 to 65,535.
        port: &'a str,
    },
    /// `*`: with OPTIONS only, the server as a whole.
    Asterisk,
}

/// A target's form and the spans of its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetSpans {
    pub(crate) form: Form,
    pub(crate) whole: Span,
    /// Empty if the form has none.
    pub(crate) authority: Span,
    /// Ends with the target, or before its first `?`.
    pub(crate) path: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Origin,
    Absolute,
    Authority,
    Asterisk,
}

impl TargetSpans {
    pub(crate) const NONE: Self =
        Self { form: Form::Asterisk, whole: Span::EMPTY, authority: Span::EMPTY, path: Span::EMPTY };

    /// Parses a target whose bytes have been checked.
    pub(crate) fn parse(bytes: &[u8], whole: Span, method: Method) -> Result<Self, ParseError> {
        let target = whole.bytes(bytes);
        if method == Method::Connect {
            return match authority::is_host_and_port(target) {
                true => {
                    let path = Span::new(whole.end(), whole.end());
                    Ok(Self { form: Form::Authority, whole, authority: whole, path })
                }
                false => Err(ParseError::InvalidConnectTarget),
            };
        }
        match target {
            [b'/', ..] => {
                let path = path(bytes, whole.start(), whole.end());
                Ok(Self { form: Form::Origin, whole, authority: Span::EMPTY, path })
            }
            b"*" if method == Method::Options => {
                Ok(Self { form: Form::Asterisk, whole, authority: Span::EMPTY, path: whole })
            }
            b"*" => Err(ParseError::AsteriskWithoutOptions),
            _ => Self::absolute(bytes, whole),
        }
    }

    fn absolute(bytes: &[u8], whole: Span) -> Result<Self, ParseError> {
        let target = whole.bytes(bytes);
        let scheme_len = scan::colon(target).ok_or(ParseError::InvalidTarget)?;
        let rest = target[scheme_len..].strip_prefix(b"://").ok_or(ParseError::InvalidTarget)?;
        if !is_scheme(&target[..scheme_len]) {
            return Err(ParseError::InvalidTarget);
        }
        let authority_len = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        if !authority::is_host_and_optional_port(&rest[..authority_len]) {
            return Err(ParseError::InvalidTargetAuthority);
        }
        let authority_start = whole.end() - rest.len();
        let authority = Span::new(authority_start, authority_start + authority_len);
        let path = path(bytes, authority.end(), whole.end());
        Ok(Self { form: Form::Absolute, whole, authority, path })
    }

    /// Returns the span after the path and its `?`.
    pub(crate) fn query(&self) -> Option<Span> {
        let (mark, end) = (self.path.end(), self.whole.end());
        (mark < end).then(|| Span::new(mark + 1, end))
    }

    /// Returns the public view.
    pub(crate) fn view<'a>(&self, bytes: &'a [u8]) -> Target<'a> {
        let path = self.path.text(bytes);
        let query = self.query().map(|query| query.text(bytes));
        match self.form {
            Form::Origin => Target::Origin { path, query },
            Form::Absolute => {
                let scheme = Span::new(self.whole.start(), self.authority.start() - b"://".len());
                let authority = self.authority.text(bytes);
                Target::Absolute { scheme: scheme.text(bytes), authority, path, query }
            }
            Form::Authority => {
                let (host, port) =
                    self.whole.text(bytes).rsplit_once(':').expect("checked by is_host_and_port");
                Target::Authority { host, port }
            }
            Form::Asterisk => Target::Asterisk,
        }
    }
}

/// Returns the span from `start` to the first `?` or the target's end.
fn path(bytes: &[u8], start: usize, end: usize) -> Span {
    let mark = scan::question_mark(&bytes[start..end]).map(|offset| start + offset);
    Span::new(start, mark.unwrap_or(end))
}

/// Returns true for a `scheme` (RFC 3986 3.1).
fn is_scheme(scheme: &[u8]) -> bool {
    let is_later = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_later)
}
