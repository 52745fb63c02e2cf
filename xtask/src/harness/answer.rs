//! The head of an answer, checked line by line: status line, field lines, and how long the body is (RFC 9112 sections 4, 5, 6.3).

use std::fmt;

/// The most bytes a head may have here.
pub(crate) const HEAD_MAX: usize = 64 * 1024;

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyLength {
    /// No body at all: an answer to HEAD, a 204 or a 304.
    None,
    /// `Content-Length` bytes.
    Exactly(u64),
    /// Chunked.
    Chunked,
    /// Everything until the connection ends.
    UntilClose,
}

/// A well-formed head.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// The status code.
    pub(crate) status: u16,
    /// The head as it came, with its last empty line.
    pub(crate) text: String,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection ended in order before the first byte of an answer.
    Closed,
    /// The connection ended in order in the middle of an answer.
    Truncated,
    /// The connection was reset.
    Reset,
    /// Nothing came for too long.
    TimedOut,
    /// The answer breaks the rules.
    Malformed(String),
    /// Any other error of the socket.
    Socket(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => out.write_str("closed without an answer"),
            Self::Truncated => out.write_str("closed in the middle of the answer"),
            Self::Reset => out.write_str("connection reset"),
            Self::TimedOut => out.write_str("no answer in time"),
            Self::Malformed(why) => write!(out, "malformed answer: {why}"),
            Self::Socket(why) => write!(out, "socket error: {why}"),
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Self::Reset,
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Socket(error.to_string()),
        }
    }
}

fn malformed<T>(why: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Malformed(why.into()))
}

impl Head {
    /// Checks a head that ends with an empty line.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return malformed("the head is not text");
        };
        let Some(block) = text.strip_suffix("\r\n\r\n") else {
            return malformed("the head does not end with an empty line");
        };
        let mut lines = block.split("\r\n");
        let status = parse_status_line(lines.next().unwrap_or_default())?;
        for line in lines {
            check_field_line(line)?;
        }
        let head = Self { status, text: text.to_owned() };
        head.check_length_fields()?;
        Ok(head)
    }

    /// The value of the first field of this name, in any case.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let pairs = self.text.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
        pairs.filter(move |(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// True if the answer announces that the connection ends after it.
    pub(crate) fn announces_close(&self) -> bool {
        let options = self.values("connection").flat_map(|value| value.split(','));
        options.map(str::trim).any(|option| option.eq_ignore_ascii_case("close"))
    }

    /// How the end of the body is found, for an answer to a request whose method was HEAD or not.
    pub(crate) fn body_length(&self, to_head: bool) -> BodyLength {
        if to_head || matches!(self.status, 204 | 304) {
            return BodyLength::None;
        }
        if self.field("transfer-encoding").is_some() {
            return BodyLength::Chunked;
        }
        let declared = self.field("content-length").and_then(|value| value.parse().ok());
        declared.map_or(BodyLength::UntilClose, BodyLength::Exactly)
    }

    fn check_length_fields(&self) -> Result<(), Fault> {
        let lengths: Vec<&str> = self.values("content-length").collect();
        let encodings: Vec<&str> = self.values("transfer-encoding").collect();
        if lengths.len() + encodings.len() > 1 {
            return malformed("more than one field says how long the body is");
        }
        if lengths.iter().any(|value| value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit())) {
            return malformed("Content-Length is not a number");
        }
        if encodings.iter().any(|value| !value.eq_ignore_ascii_case("chunked")) {
            return malformed("Transfer-Encoding is not chunked");
        }
        Ok(())
    }
}

fn parse_status_line(line: &str) -> Result<u16, Fault> {
    let Some(rest) = line.strip_prefix("HTTP/1.1 ") else {
        return malformed(format!("status line {line:?}"));
    };
    let digits = rest.get(..3).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let status = digits.and_then(|digits| digits.parse().ok());
    match status {
        Some(status) if (200..600).contains(&status) && rest[3..].starts_with(' ') => Ok(status),
        _ => malformed(format!("status line {line:?}")),
    }
}

fn check_field_line(line: &str) -> Result<(), Fault> {
    let Some((name, value)) = line.split_once(':') else {
        return malformed(format!("field line {line:?} without a colon"));
    };
    let name_ok = !name.is_empty() && name.bytes().all(is_token_byte);
    let value_ok = value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f));
    if name_ok && value_ok { Ok(()) } else { malformed(format!("field line {line:?}")) }
}

/// `tchar` of RFC 9110 section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns what an entity tag has in its quotes: a weak one becomes strong when its file is left alone.
pub(crate) fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::{BodyLength, Head};

    fn head(text: &str) -> Result<Head, super::Fault> {
        Head::parse(text.as_bytes())
    }

    #[test]
    fn a_good_head_gives_its_fields() {
        let head = head("HTTP/1.1 200 OK\r\nContent-Length: 12\r\nCONNECTION: keep-alive, Close\r\n\r\n");
        let head = head.expect("well-formed");
        assert_eq!(head.status, 200);
        assert!(head.announces_close());
        assert_eq!(head.body_length(false), BodyLength::Exactly(12));
        assert_eq!(head.body_length(true), BodyLength::None);
    }

    #[test]
    fn broken_heads_are_refused() {
        for text in [
            "HTTP/1.0 200 OK\r\n\r\n",
            "HTTP/1.1 99 OK\r\n\r\n",
            "HTTP/1.1 200OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nBad Name: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\nc\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
        ] {
            assert!(head(text).is_err(), "{text:?}");
        }
    }
}
