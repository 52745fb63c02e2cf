//! Parts of a response's head: its preamble, its `Content-Type`, and field lines that are encoded once.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use httpdate::HttpDate;
use shearwater_http1::encode;

use crate::response::fields::{CONTENT_TYPE, append_field, encode_field, have_name};

/// Most common status: its preamble is copied whole.
const USUAL_STATUS: u16 = 200;

const SERVER_LINE: &[u8] = b"Server: shearwater\r\n";

const USUAL_STATUS_LINE: &[u8] = b"HTTP/1.1 200 OK\r\n";

/// All `Date` lines have the length of this one.
const DATE_LINE: &[u8] = b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

const USUAL_BYTES: usize = USUAL_STATUS_LINE.len() + SERVER_LINE.len() + DATE_LINE.len();

/// Preamble of the current second.
pub(crate) struct Preamble {
    unix_seconds: u64,
    /// Preamble of a response with [`USUAL_STATUS`].
    usual: [u8; USUAL_BYTES],
}

impl Preamble {
    pub(crate) fn new(unix_seconds: u64) -> Self {
        let mut preamble = Self { unix_seconds, usual: [0; USUAL_BYTES] };
        preamble.format();
        preamble
    }

    /// Updates it, once a turn.
    pub(crate) fn refresh(&mut self, unix_seconds: u64) {
        if unix_seconds != self.unix_seconds {
            self.unix_seconds = unix_seconds;
            self.format();
        }
    }

    /// Appends the preamble for a status, optionally with another line in place of `Server`.
    #[inline]
    pub(crate) fn append(&self, out: &mut Vec<u8>, status: u16, server_line: Option<&[u8]>) {
        if status == USUAL_STATUS && server_line.is_none() {
            return out.extend_from_slice(&self.usual);
        }
        encode::status_line(out, status);
        out.extend_from_slice(server_line.unwrap_or(SERVER_LINE));
        out.extend_from_slice(&self.usual[USUAL_BYTES - DATE_LINE.len()..]);
    }

    /// Splits the fields of a response into those of the usual preamble, if they begin with them, and the others.
    #[inline]
    pub(crate) fn split_fields<'a>(&self, fields: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        match fields.starts_with(&self.usual[USUAL_STATUS_LINE.len()..]) {
            true => fields.split_at(USUAL_BYTES - USUAL_STATUS_LINE.len()),
            false => (&[], fields),
        }
    }

    fn format(&mut self) {
        let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(self.unix_seconds));
        let (status_line, fields) = self.usual.split_at_mut(USUAL_STATUS_LINE.len());
        let (server_line, mut date_line) = fields.split_at_mut(SERVER_LINE.len());
        status_line.copy_from_slice(USUAL_STATUS_LINE);
        server_line.copy_from_slice(SERVER_LINE);
        write!(date_line, "Date: {date}\r\n").expect("all dates have the same length");
    }
}

/// Line of a plain text in UTF-8.
pub(crate) const TEXT_LINE: &[u8] = b"Content-Type: text/plain; charset=utf-8\r\n";

/// A predefined line, or one built from the handler's value.
#[derive(Default)]
pub(crate) struct ContentType {
    usual: Option<&'static [u8]>,
    /// Line built last; most responses repeat it.
    built: Vec<u8>,
    /// The current response uses `built`.
    is_built: bool,
}

impl ContentType {
    /// Returns the line including its end, or an empty slice.
    #[inline]
    pub(crate) fn line(&self) -> &[u8] {
        match self.usual {
            Some(usual) => usual,
            None if self.is_built => &self.built,
            None => &[],
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.usual = None;
        self.is_built = false;
    }

    /// Sets a predefined, valid line.
    #[inline]
    pub(crate) fn set_line(&mut self, line: &'static [u8]) {
        self.usual = Some(line);
    }

    /// Sets the value.
    ///
    /// # Errors
    /// The reason why the value is invalid. There is no line then.
    pub(crate) fn set(&mut self, value: &[u8]) -> Result<(), String> {
        self.clear();
        if self.built_value() != Some(value) {
            self.built.clear();
            encode_field(&mut self.built, CONTENT_TYPE, value)?;
        }
        self.is_built = true;
        Ok(())
    }

    /// Returns the value of the line that was built last.
    fn built_value(&self) -> Option<&[u8]> {
        const BEFORE: usize = CONTENT_TYPE.len() + b": ".len();
        self.built.get(BEFORE..)?.strip_suffix(b"\r\n")
    }

    /// Frees the built line if it is larger than `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if self.built.capacity() > bytes {
            self.clear();
            self.built = Vec::new();
        }
    }
}

/// Encoded field lines, for [`Response::lines`](crate::Response::lines).
#[derive(Debug, Clone, Default)]
pub struct FieldLines {
    bytes: Vec<u8>,
}

impl FieldLines {
    /// Returns an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a field (RFC 9110 section 5).
    ///
    /// # Errors
    /// The reason why it is invalid: see [`Response::field`](crate::Response::field). Nothing is appended
    /// then.
    pub fn push(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<&mut Self, String> {
        append_field(&mut self.bytes, name, value.as_ref())?;
        Ok(self)
    }

    /// Returns true if one of them has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        have_name(&self.bytes, name.as_bytes())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod preamble_tests {
    use super::Preamble;

    fn text(preamble: &Preamble, status: u16) -> String {
        let mut out = Vec::new();
        preamble.append(&mut out, status, None);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn preamble_follows_clock_and_status() {
        let mut preamble = Preamble::new(784_111_777);
        let fields = "\r\nServer: shearwater\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        assert_eq!(text(&preamble, 200), format!("HTTP/1.1 200 OK{fields}"));
        assert_eq!(text(&preamble, 404), format!("HTTP/1.1 404 Not Found{fields}"));
        preamble.refresh(784_111_778);
        assert_eq!(text(&preamble, 200), format!("HTTP/1.1 200 OK{}", fields.replace(":37", ":38")));
    }
}

#[cfg(test)]
mod content_type_tests {
    use super::ContentType;
    use crate::response::fields::is_content_type;

    #[test]
    fn the_last_content_type_wins() {
        let mut place = ContentType::default();
        for value in ["a/b", "a/b", "", "a/b; c=d", "a/b", "text/plain"] {
            assert_eq!(place.line(), b"");
            place.set(value.as_bytes()).expect("a value");
            assert_eq!(place.line(), format!("Content-Type: {value}\r\n").as_bytes());
            place.set_line(b"Content-Type: x/y\r\n");
            assert_eq!(place.line(), b"Content-Type: x/y\r\n");
            place.clear();
        }
    }

    #[test]
    fn an_invalid_content_type_leaves_none() {
        let mut place = ContentType::default();
        for bad in ["a\r\nb: c", "a\0", "\r\n"] {
            place.set(b"a/b").expect("a value");
            for _ in 0..2 {
                assert!(place.set(bad.as_bytes()).is_err());
                assert_eq!(place.line(), b"");
            }
        }
    }

    #[test]
    fn frees_a_long_content_type() {
        let mut place = ContentType::default();
        place.set(&[b'a'; 100]).expect("a value");
        place.shrink_to(64);
        assert!(place.line().is_empty() && place.built.capacity() <= 64);
        place.set(b"a/b").expect("a value");
        place.shrink_to(64);
        assert_eq!(place.line(), b"Content-Type: a/b\r\n");
    }

    #[test]
    fn knows_content_type_in_every_spelling() {
        for (name, expected) in [
            ("content-type", true),
            ("Content-Type", true),
            ("CONTENT-type", true),
            ("content-typo", false),
            ("", false),
        ] {
            assert_eq!(is_content_type(name), expected, "{name:?}");
        }
    }
}

#[cfg(test)]
mod field_lines_tests {
    use super::FieldLines;

    #[test]
    fn rejects_invalid_field_lines() {
        let mut lines = FieldLines::new();
        lines.push("ETag", "\"1\"").expect("a field");
        assert!(lines.push("ETag", "\"1\"\r\nX: y").is_err());
        assert!(lines.push("Content-Length", "1").is_err());
        lines.push("Age", "0").expect("a field");
        assert_eq!(lines.as_bytes(), b"ETag: \"1\"\r\nAge: 0\r\n");
    }
}
