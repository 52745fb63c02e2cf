//! The `Date` field (RFC 9110 section 6.6.1), formatted once a second.

use std::time::{Duration, UNIX_EPOCH};

const NAME: &str = "Date: ";
const VALUE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const END: &str = "\r\n";

/// The whole field line of the present second.
pub(crate) struct Date {
    unix_seconds: u64,
    line: [u8; NAME.len() + VALUE.len() + END.len()],
}

impl Date {
    pub(crate) fn new(unix_seconds: u64) -> Self {
        let mut date = Self { unix_seconds, line: [b' '; NAME.len() + VALUE.len() + END.len()] };
        date.format();
        date
    }

    /// Brings it up to date: once a turn.
    pub(crate) fn refresh(&mut self, unix_seconds: u64) {
        if unix_seconds != self.unix_seconds {
            self.unix_seconds = unix_seconds;
            self.format();
        }
    }

    /// `Date: …` with its line end.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    fn format(&mut self) {
        let time = UNIX_EPOCH + Duration::from_secs(self.unix_seconds);
        let text = httpdate::fmt_http_date(time);
        debug_assert_eq!(text.len(), VALUE.len(), "an HTTP date has a fixed length");
        for (to, from) in self.line.iter_mut().zip(NAME.bytes().chain(text.bytes()).chain(END.bytes())) {
            *to = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Date;

    #[test]
    fn follows_the_clock() {
        let mut date = Date::new(784_111_777);
        assert_eq!(date.line(), b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        date.refresh(784_111_778);
        assert_eq!(date.line(), b"Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
    }
}
