//! Constants that all rungs share: limits, times and response texts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum length of a request's head with its final empty line, bytes; `431` beyond.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of a request's body, bytes; `413` beyond. Bodies are discarded as they arrive.
pub(crate) const BODY_BYTES_MAX: u64 = 10 * 1024 * 1024;
/// Input that is discarded after the last response, bytes; a reset beyond.
pub(crate) const LINGER_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// A connection on which nothing moves for this long is closed.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which an event loop searches for idle connections.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after a failed accept: the usual reason, no descriptor left, takes a while to pass.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(5);
/// Bytes per receive.
pub(crate) const RECEIVE_BYTES: usize = 64 * 1024;

/// The interim response that lets a client send its body.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Returns the reason phrase of a status code.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        404 => "Not Found",
        411 => "Length Required",
        413 => "Content Too Large",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        505 => "HTTP Version Not Supported",
        _ => "Bad Request",
    }
}

/// Returns the body of a response; errors repeat their reason.
pub(crate) fn body(status: u16) -> &'static str {
    if status == 200 { "Hello, World!" } else { reason(status) }
}

/// Encodes a response, with the current date.
pub(crate) fn encode(status: u16, head_only: bool, keep_alive: bool) -> String {
    let (reason, body, date) = (reason(status), body(status), http_date(SystemTime::now()));
    let length = body.len();
    let connection = if keep_alive { "" } else { "Connection: close\r\n" };
    let body = if head_only { "" } else { body };
    format!(
        "HTTP/1.1 {status} {reason}\r\nDate: {date}\r\nContent-Type: text/plain\r\n\
         Content-Length: {length}\r\n{connection}\r\n{body}"
    )
}

/// Formats a time as the `Date` header wants it: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn http_date(time: SystemTime) -> String {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, seconds) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March, so that the leap day is the last: 146,097 days are 400 of them.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(month < 2);
    let (weekday, month) = (WEEKDAYS[days as usize % 7], MONTHS[month as usize]);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let date = |seconds| http_date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(date(1_798_761_599), "Thu, 31 Dec 2026 23:59:59 GMT");
        assert_eq!(date(4_107_542_400), "Mon, 01 Mar 2100 00:00:00 GMT");
    }
}
