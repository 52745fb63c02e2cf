//! The request target and its four forms (RFC 9112 3.2).

use crate::span::Span;
use crate::{Method, Reject, authority, scan};

/// What a request asks for. All text is ASCII and still percent-encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// `/path?query`: the usual form.
    Origin {
        /// Begins with `/`.
        path: &'a str,
        /// What follows the first `?`, possibly empty.
        query: Option<&'a str>,
    },
    /// `scheme://authority/path?query`: what a proxy is sent, and every server must accept.
    Absolute {
        /// Any valid scheme, in the sender's case.
        scheme: &'a str,
        /// A host, with an optional port.
        authority: &'a str,
        /// Begins with `/`, or is empty.
        path: &'a str,
        /// What follows the first `?`, possibly empty.
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

/// A target's form and where its parts are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetSpans {
    pub(crate) form: Form,
    pub(crate) whole: Span,
    pub(crate) path: Span,
    pub(crate) query: Option<Span>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Origin,
    Absolute { authority: Span },
    Authority,
    Asterisk,
}

impl TargetSpans {
    pub(crate) const NONE: Self =
        Self { form: Form::Asterisk, whole: Span::EMPTY, path: Span::EMPTY, query: None };

    /// Finds form and parts of a target whose bytes have been checked.
    pub(crate) fn parse(bytes: &[u8], whole: Span, method: Method) -> Result<Self, Reject> {
        let target = whole.bytes(bytes);
        if method == Method::Connect {
            return match authority::is_host_and_port(target) {
                true => Ok(Self { form: Form::Authority, whole, path: Span::EMPTY, query: None }),
                false => Err(Reject::InvalidConnectTarget),
            };
        }
        match target {
            [b'/', ..] => Ok(Self::with_path(Form::Origin, bytes, whole, whole.start())),
            b"*" if method == Method::Options => {
                Ok(Self { form: Form::Asterisk, whole, path: whole, query: None })
            }
            b"*" => Err(Reject::AsteriskWithoutOptions),
            _ => Self::absolute(bytes, whole),
        }
    }

    fn absolute(bytes: &[u8], whole: Span) -> Result<Self, Reject> {
        let target = whole.bytes(bytes);
        let scheme_len = scan::colon(target).ok_or(Reject::InvalidTarget)?;
        let rest = target[scheme_len..].strip_prefix(b"://").ok_or(Reject::InvalidTarget)?;
        if !is_scheme(&target[..scheme_len]) {
            return Err(Reject::InvalidTarget);
        }
        let authority_len = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        if !authority::is_host_and_optional_port(&rest[..authority_len]) {
            return Err(Reject::InvalidTargetAuthority);
        }
        let authority_start = whole.end() - rest.len();
        let authority = Span::new(authority_start, authority_start + authority_len);
        Ok(Self::with_path(Form::Absolute { authority }, bytes, whole, authority.end()))
    }

    /// Splits what begins at `path_start` into path and query.
    fn with_path(form: Form, bytes: &[u8], whole: Span, path_start: usize) -> Self {
        let end = whole.end();
        match scan::question_mark(&bytes[path_start..end]) {
            None => Self { form, whole, path: Span::new(path_start, end), query: None },
            Some(offset) => {
                let mark = path_start + offset;
                Self { form, whole, path: Span::new(path_start, mark), query: Some(Span::new(mark + 1, end)) }
            }
        }
    }

    /// The public view.
    pub(crate) fn view<'a>(&self, bytes: &'a [u8]) -> Target<'a> {
        let path = self.path.text(bytes);
        let query = self.query.map(|query| query.text(bytes));
        match self.form {
            Form::Origin => Target::Origin { path, query },
            Form::Absolute { authority } => {
                let scheme = Span::new(self.whole.start(), authority.start() - b"://".len()).text(bytes);
                Target::Absolute { scheme, authority: authority.text(bytes), path, query }
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

/// `scheme` (RFC 3986 3.1).
fn is_scheme(scheme: &[u8]) -> bool {
    let is_later = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_later)
}
