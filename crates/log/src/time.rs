//! Dates of log lines, in UTC, formatted once a second.

use std::io::Write;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// A second in the two forms of log lines.
#[derive(Debug, Clone, Default)]
pub struct TimeCache {
    unix_seconds: Option<u64>,
    local: Vec<u8>,
    iso: Vec<u8>,
}

impl TimeCache {
    /// Returns the form of the common format: `23/Nov/2026:21:25:00 +0000`.
    pub(crate) fn local(&mut self, unix_seconds: u64) -> &[u8] {
        self.set(unix_seconds);
        &self.local
    }

    /// Returns a second in the form of RFC 3339, in UTC: `2026-11-23T21:25:00Z`.
    pub fn iso(&mut self, unix_seconds: u64) -> &[u8] {
        self.set(unix_seconds);
        &self.iso
    }

    fn set(&mut self, unix_seconds: u64) {
        if self.unix_seconds == Some(unix_seconds) {
            return;
        }
        self.unix_seconds = Some(unix_seconds);
        let (year, month, day) = date(unix_seconds / DAY_SECONDS);
        let second = unix_seconds % DAY_SECONDS;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let name = MONTHS[month - 1];
        self.local.clear();
        self.iso.clear();
        // Writing to a vector can't fail.
        let _ = write!(self.local, "{day:02}/{name}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000");
        let _ = write!(self.iso, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
    }
}

/// Returns year, month (from 1) and day of so many days after 1970-01-01, in the Gregorian calendar.
///
/// Counts years from March, so that the leap day is a year's last one, in eras of 400 years.
fn date(days: u64) -> (u64, usize, u64) {
    let days = days + 719_468; // from 0000-03-01
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month as usize, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::TimeCache;

    #[test]
    fn formats_seconds_in_both_forms() {
        let mut cache = TimeCache::default();
        for (unix_seconds, local, iso) in [
            (0, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00Z"),
            (784_111_777, "06/Nov/1994:08:49:37 +0000", "1994-11-06T08:49:37Z"),
            (951_782_400, "29/Feb/2000:00:00:00 +0000", "2000-02-29T00:00:00Z"),
            (1_709_251_199, "29/Feb/2024:23:59:59 +0000", "2024-02-29T23:59:59Z"),
            (1_709_251_200, "01/Mar/2024:00:00:00 +0000", "2024-03-01T00:00:00Z"),
            (4_102_444_799, "31/Dec/2099:23:59:59 +0000", "2099-12-31T23:59:59Z"),
            (4_107_542_400, "01/Mar/2100:00:00:00 +0000", "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(String::from_utf8_lossy(cache.local(unix_seconds)), local);
            assert_eq!(String::from_utf8_lossy(cache.iso(unix_seconds)), iso);
        }
    }
}
