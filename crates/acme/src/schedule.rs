//! Decides when a certificate is renewed, when a failed order is repeated, and whether the clock can be right.

use serde::{Deserialize, Serialize};
use shearwater_tls::CertificateFacts;

use crate::failure::Failure;
use crate::limits::{RETRY_AFTER_SECONDS_MAX, RETRY_SECONDS_MAX, RETRY_SECONDS_MIN};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// The beginning of 2026. A clock that is before it was never set.
const CLOCK_MIN: u64 = 1_767_225_600;

/// Fails if the clock is certainly wrong.
pub(crate) fn check_clock(now: u64) -> Result<(), Failure> {
    if now >= CLOCK_MIN {
        return Ok(());
    }
    let message = format!("no certificate can be ordered: the clock of this machine is {now} s after 1970");
    let help = "set the clock, for example by NTP; then they are ordered by themselves";
    Err(Failure::new(message, help).of_machine())
}

/// Compares the dates of a new certificate with this machine's clock.
pub(crate) fn clock_failure(facts: &CertificateFacts, now: u64) -> Option<Failure> {
    let (what, by) = if facts.not_before > now {
        ("behind", facts.not_before - now)
    } else if facts.not_after <= now {
        ("ahead", now - facts.not_after)
    } else {
        return None;
    };
    let name = facts.dns_names.first().map_or("the name", String::as_str);
    let message = format!(
        "the new certificate for {name} isn't valid now: the clock of this machine is {what} by {by} s or more"
    );
    Some(Failure::new(message, "set the clock, for example by NTP"))
}

/// The plan for a certificate, kept in its record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Plan {
    /// Unix time of the renewal; 0 if it isn't chosen yet.
    pub(crate) renew_at: u64,
    /// Unix time at which the CA is asked again for its suggestion (RFC 9773).
    pub(crate) ask_at: u64,
    /// True if `renew_at` was suggested by the CA.
    pub(crate) is_suggested: bool,
}

impl Plan {
    /// Plans the renewal at two thirds of the certificate's life, less up to a twentieth of it at random.
    pub(crate) fn by_life(facts: &CertificateFacts, random: &mut fastrand::Rng) -> Self {
        let life = facts.not_after.saturating_sub(facts.not_before);
        let early = random.u64(0..=life / 20);
        let renew_at = (facts.not_before + life / 3 * 2).saturating_sub(early);
        Self { renew_at, ask_at: 0, is_suggested: false }
    }

    /// Takes over the window that a CA suggests, and asks again after `retry_after` seconds.
    pub(crate) fn suggest(
        &mut self,
        start: u64,
        end: u64,
        retry_after: u64,
        now: u64,
        random: &mut fastrand::Rng,
    ) {
        let is_chosen = self.is_suggested && (start..end.max(start + 1)).contains(&self.renew_at);
        if !is_chosen {
            self.renew_at = random.u64(start..=end.max(start));
        }
        self.is_suggested = true;
        self.ask_at = now + retry_after.clamp(HOUR, DAY);
    }

    /// Keeps the plan after the CA gave no suggestion, and asks again later.
    pub(crate) fn ask_later(&mut self, now: u64) {
        self.ask_at = now + 6 * HOUR;
    }
}

/// Returns the seconds until the next attempt, after `failures` of them.
///
/// The delay doubles from one minute to a day, or to an eighth of the certificate's remaining life. Up to a quarter is
/// added at random. A CA's `Retry-After` is the minimum.
pub(crate) fn back_off(
    failures: u32,
    life_left: Option<u64>,
    retry_after: Option<u64>,
    random: &mut fastrand::Rng,
) -> u64 {
    let longest = life_left.map_or(RETRY_SECONDS_MAX, |left| (left / 8).clamp(HOUR, RETRY_SECONDS_MAX));
    let delay =
        RETRY_SECONDS_MIN.checked_shl(failures.saturating_sub(1).min(16)).unwrap_or(RETRY_SECONDS_MAX);
    let delay = delay.min(longest);
    let delay = (delay + random.u64(0..=delay / 4)).min(RETRY_SECONDS_MAX);
    delay.max(retry_after.unwrap_or(0).min(RETRY_AFTER_SECONDS_MAX))
}

#[cfg(test)]
pub(crate) mod tests;
