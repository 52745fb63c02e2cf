//! Contents of a certificate and its key, as far as `check` needs them.

use std::path::Path;

/// Contents of a certificate that fits its key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PairFacts {
    /// Names and addresses that it is for, possibly with a star.
    pub(crate) names: Vec<String>,
    /// Beginning and end of its life, in seconds since 1970.
    pub(crate) not_before: u64,
    pub(crate) not_after: u64,
}

/// The reason why a pair can't be used, and a way to fix that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadPair {
    pub(crate) message: String,
    pub(crate) help: String,
}

/// Reads a certificate and its key.
///
/// # Errors
/// The reason why they can't be used: they don't fit, or are no certificate and no key. It names both files.
pub(crate) type ReadPair = fn(cert: &Path, key: &Path) -> Result<PairFacts, BadPair>;

/// The function that reads pairs. Without it files are only looked for.
pub(crate) const READ_PAIR: Option<ReadPair> = Some(super::serve::read_pair);

const DAY: u64 = 86_400;

/// Days before the end of a certificate from which on `check` warns.
const ENDS_SOON_DAYS: u64 = 14;

impl PairFacts {
    /// Returns warnings about the time, and about hosts that the certificate isn't for, each with the index of its host.
    pub(crate) fn doubts(&self, hosts: &[String], now: u64) -> Vec<(Option<usize>, String)> {
        let day = |seconds| date(seconds);
        let of_time = if now >= self.not_after {
            Some(format!("certificate has expired on {}", day(self.not_after)))
        } else if now < self.not_before {
            Some(format!("certificate is valid from {} on, and today is {}", day(self.not_before), day(now)))
        } else if self.not_after - now < ENDS_SOON_DAYS * DAY {
            Some(format!("certificate ends on {}", day(self.not_after)))
        } else {
            None
        };
        let others = hosts.iter().enumerate().filter(|(_, host)| !self.is_for(host));
        let others = others.map(|(index, _)| {
            (Some(index), format!("certificate isn't for this name: it is for {}", self.names.join(", ")))
        });
        of_time.map(|message| (None, message)).into_iter().chain(others).collect()
    }

    /// Returns whether the certificate is for a host of a site. A star is one label (RFC 9525 section 6.3).
    fn is_for(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).trim_matches(['[', ']']);
        self.names.iter().any(|name| {
            let by_star = || {
                let (label, rest) = host.split_once('.')?;
                Some(!label.is_empty() && name.strip_prefix("*.")?.eq_ignore_ascii_case(rest))
            };
            name.eq_ignore_ascii_case(host) || by_star() == Some(true)
        })
    }
}

/// Formats the day of a time in seconds since 1970, in UTC: `2026-11-27`.
pub(crate) fn date(seconds: u64) -> String {
    // Years begin in March here, so that a leap day ends one.
    let days = seconds / DAY + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + u64::from(month <= 2))
}

#[cfg(test)]
mod tests {
    use super::{DAY, ENDS_SOON_DAYS, PairFacts, date};

    #[test]
    fn formats_days() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_798_761_599, "2026-12-31"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(seconds), day);
        }
    }

    #[test]
    fn doubts_certificates_out_of_their_time() {
        let facts = PairFacts { names: Vec::new(), not_before: 100 * DAY, not_after: 200 * DAY };
        let soon = ENDS_SOON_DAYS * DAY;
        for (now, message) in [
            (100 * DAY - 1, Some("certificate is valid from 1970-04-11 on, and today is 1970-04-10")),
            (100 * DAY, None),
            (200 * DAY - soon, None),
            (200 * DAY - soon + 1, Some("certificate ends on 1970-07-20")),
            (200 * DAY, Some("certificate has expired on 1970-07-20")),
        ] {
            let doubts = facts.doubts(&[], now);
            assert_eq!(doubts.first().map(|(_, message)| message.as_str()), message, "{now}");
        }
    }

    #[test]
    fn doubts_certificates_for_other_names() {
        let names = ["Example.org", "*.example.org", "192.0.2.1", "::1"].map(str::to_owned).into();
        let facts = PairFacts { names, not_before: 0, not_after: u64::MAX };
        for (host, is_for) in [
            ("example.org", true),
            ("EXAMPLE.org.", true),
            ("www.example.org", true),
            ("*.example.org", true),
            ("192.0.2.1", true),
            ("[::1]", true),
            ("a.www.example.org", false),
            ("*.www.example.org", false),
            ("example.com", false),
            (".example.org", false),
            ("org", false),
        ] {
            let doubts = facts.doubts(&["example.org".to_owned(), host.to_owned()], DAY);
            assert_eq!(doubts.is_empty(), is_for, "{host}");
            assert!(doubts.iter().all(|(index, _)| *index == Some(1)), "{host}");
        }
    }
}
