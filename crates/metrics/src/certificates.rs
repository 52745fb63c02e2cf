//! Certificates of a server, and how soon each ends.

use crate::limits::CERTIFICATES_SHOWN_MAX;

/// Part of a certificate's life, from its end, in which it should have been replaced: one fifth. Renewal by a service
/// begins at the last third.
const ENDS_SOON_PART: u64 = 5;

/// Seconds before the end from which on any certificate ends soon: 14 days.
const ENDS_SOON_SECONDS_MAX: u64 = 14 * 86_400;

/// A certificate that a server serves, or wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificate {
    /// Name by which it is listed, such as the site's first host.
    pub name: String,
    /// Source: `own`, `auto` or `self-signed`.
    pub source: &'static str,
    /// Beginning and end of its validity, in seconds since 1970; `None` if there is no certificate yet.
    pub validity: Option<(u64, u64)>,
    /// The last order of a new one has failed.
    pub is_failing: bool,
}

/// State of a certificate. The worst is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CertificateState {
    /// Its validity has ended.
    Expired,
    /// There is none yet: handshakes for its names fail.
    Missing,
    /// Its validity begins later.
    NotYetValid,
    /// It should have been replaced by now.
    EndsSoon,
    /// Valid now, and not for a short time only.
    Valid,
}

impl CertificateState {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Missing => "missing",
            Self::NotYetValid => "not_yet_valid",
            Self::EndsSoon => "ends_soon",
            Self::Valid => "valid",
        }
    }
}

impl Certificate {
    /// Returns the state at a time in seconds since 1970.
    #[must_use]
    pub fn state(&self, now: u64) -> CertificateState {
        let Some((begin, end)) = self.validity else { return CertificateState::Missing };
        let soon = (end.saturating_sub(begin) / ENDS_SOON_PART).min(ENDS_SOON_SECONDS_MAX);
        match now {
            _ if now >= end => CertificateState::Expired,
            _ if now < begin => CertificateState::NotYetValid,
            _ if end - now < soon => CertificateState::EndsSoon,
            _ => CertificateState::Valid,
        }
    }
}

/// Returns the certificates in the order in which they end, those without one first, one of each name, up to the limit.
pub(crate) fn listed(mut certificates: Vec<Certificate>) -> Vec<Certificate> {
    certificates.sort_by(|one, other| {
        let end = |certificate: &Certificate| certificate.validity.map_or(0, |(_, end)| end);
        (end(one), &one.name).cmp(&(end(other), &other.name))
    });
    // Two series with the same labels would make a scrape invalid.
    let mut names = std::collections::HashSet::new();
    certificates.retain(|certificate| names.insert(certificate.name.clone()));
    certificates.truncate(CERTIFICATES_SHOWN_MAX);
    certificates
}

#[cfg(test)]
mod tests {
    use super::{CERTIFICATES_SHOWN_MAX, Certificate, CertificateState as State, listed};

    const DAY: u64 = 86_400;

    fn of(name: &str, validity: Option<(u64, u64)>) -> Certificate {
        Certificate { name: name.to_owned(), validity, ..Certificate::default() }
    }

    #[test]
    fn certificates_end_soon_by_their_life() {
        for (days, soon) in [(365, 14), (90, 14), (45, 9), (6, 1)] {
            let certificate = of("a", Some((10 * DAY, (10 + days) * DAY)));
            let end = (10 + days) * DAY;
            for (now, state) in [
                (10 * DAY - 1, State::NotYetValid),
                (10 * DAY, State::Valid),
                (end - (soon + 1) * DAY, State::Valid),
                (end - soon * DAY + 1, State::EndsSoon),
                (end - 1, State::EndsSoon),
                (end, State::Expired),
                (u64::MAX, State::Expired),
            ] {
                assert_eq!(certificate.state(now), state, "{days} days, at {now}");
            }
        }
        assert_eq!(of("a", None).state(DAY), State::Missing);
    }

    #[test]
    fn lists_the_urgent_ones_up_to_a_limit() {
        let many =
            (0..=CERTIFICATES_SHOWN_MAX as u64).rev().map(|end| of(&format!("{end}"), Some((0, 1 + end))));
        let listed = listed(many.chain([of("none", None), of("3", Some((0, 9)))]).collect());
        assert_eq!(listed.len(), CERTIFICATES_SHOWN_MAX);
        let first: Vec<_> = listed.iter().take(5).map(|certificate| certificate.name.as_str()).collect();
        assert_eq!(first, ["none", "0", "1", "2", "3"]);
        assert_eq!(listed.iter().filter(|certificate| certificate.name == "3").count(), 1);
    }
}
