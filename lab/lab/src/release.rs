//! When versions were released, so that a result says how old what it compares is.

use std::time::SystemTime;

/// Seconds of a day.
const DAY_S: u64 = 24 * 60 * 60;

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Day {
    /// After Christ.
    pub year: u16,
    /// From 1.
    pub month: u8,
    /// From 1.
    pub day: u8,
}

/// Releases by what a program says about its version. What is not here has an unknown date, which is said.
const RELEASES: &[(&str, Day)] = &[
    ("nginx/1.22.1", Day { year: 2022, month: 10, day: 19 }),
    ("lighttpd/1.4.69", Day { year: 2023, month: 2, day: 10 }),
    ("h2o version 2.2.5", Day { year: 2018, month: 6, day: 1 }),
];

/// The day on which the version was released that a program says it is.
pub fn day_of(version: &str) -> Option<Day> {
    let says = |marker: &str| {
        let rest = version.split_once(marker)?.1;
        // 1.22.1 is not 1.22.10.
        (!rest.starts_with(|next: char| next.is_ascii_digit())).then_some(())
    };
    RELEASES.iter().find(|(marker, _)| says(marker).is_some()).map(|(_, day)| *day)
}

impl Day {
    /// As in 2026-11-21.
    pub fn text(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// Days since 1970-01-01, 0 for all before.
    pub fn days_since_epoch(self) -> u64 {
        // Years begin in March here, so that the odd day is the last of its year.
        let (year, month) = (u64::from(self.year), u64::from(self.month));
        let (year, month) = if month > 2 { (year, month - 3) } else { (year.saturating_sub(1), month + 9) };
        let leap_days = year / 4 - year / 100 + year / 400;
        let day_of_year = (153 * month + 2) / 5 + u64::from(self.day);
        (365 * year + leap_days + day_of_year).saturating_sub(719_469)
    }

    /// Days from this one until now, 0 if it is yet to come.
    pub fn age_days(self) -> u64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        (now.as_secs() / DAY_S).saturating_sub(self.days_since_epoch())
    }
}
