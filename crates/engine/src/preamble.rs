//! The start of every response: status line, `Server` and `Date` (RFC 9110 section 6.6.1), formatted once a
//! second.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use httpdate::HttpDate;
use shearwater_http1::encode;

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

    fn format(&mut self) {
        let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(self.unix_seconds));
        let (status_line, fields) = self.usual.split_at_mut(USUAL_STATUS_LINE.len());
        let (server_line, mut date_line) = fields.split_at_mut(SERVER_LINE.len());
        status_line.copy_from_slice(USUAL_STATUS_LINE);
        server_line.copy_from_slice(SERVER_LINE);
        write!(date_line, "Date: {date}\r\n").expect("all dates have the same length");
    }
}

#[cfg(test)]
mod tests {
    use super::Preamble;

    fn text(preamble: &Preamble, status: u16) -> String {
        let mut out = Vec::new();
        preamble.append(&mut out, status, None);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn follows_the_clock_and_the_status() {
        let mut preamble = Preamble::new(784_111_777);
        let fields = "\r\nServer: shearwater\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        assert_eq!(text(&preamble, 200), format!("HTTP/1.1 200 OK{fields}"));
        assert_eq!(text(&preamble, 404), format!("HTTP/1.1 404 Not Found{fields}"));
        preamble.refresh(784_111_778);
        assert_eq!(text(&preamble, 200), format!("HTTP/1.1 200 OK{}", fields.replace(":37", ":38")));
    }
}
