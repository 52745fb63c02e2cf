//! Two of a certificate's files: the chain with its key, and the record of attempts.

use serde::{Deserialize, Serialize};
use shearwater_tls::{CertificateFacts, Pair};

use crate::failure::Failure;
use crate::limits::{REISSUE_SECONDS_MIN, RETRY_AFTER_SECONDS_MAX, RETRY_SECONDS_MAX};
use crate::schedule::Plan;
use crate::storage::Folder;

/// The state of a certificate that restarts and other instances continue from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    /// Directory of the CA that issued the certificate; empty if unknown.
    pub(crate) directory: String,
    /// Unix time of the last success.
    pub(crate) issued_at: u64,
    /// Failures since then.
    pub(crate) failures: u32,
    /// Unix time before which there is no attempt.
    pub(crate) next_attempt: u64,
    /// Unix time before which the CA accepts no attempt.
    pub(crate) held_until: u64,
    pub(crate) failure: Option<Failure>,
    pub(crate) plan: Plan,
    /// Serial number of the certificate that the plan is for.
    pub(crate) serial: String,
}

impl Record {
    /// Reads the record of a certificate. A missing or damaged one is empty: nothing in it is needed.
    ///
    /// Times that are too late were written by a clock that was ahead: they are dropped, so that they delay nothing.
    pub(crate) fn read(folder: &Folder, id: &str, now: u64) -> Result<Self, Failure> {
        let content = folder.read(&format!("{id}.json"))?.unwrap_or_default();
        let mut record: Self = serde_json::from_slice(&content).unwrap_or_default();
        let valid = |time: u64, seconds: u64| if time > now + seconds { 0 } else { time };
        record.issued_at = valid(record.issued_at, 0);
        record.next_attempt = valid(record.next_attempt, RETRY_AFTER_SECONDS_MAX);
        record.held_until = valid(record.held_until, RETRY_AFTER_SECONDS_MAX);
        record.plan.ask_at = valid(record.plan.ask_at, RETRY_SECONDS_MAX);
        Ok(record)
    }

    pub(crate) fn write(&self, folder: &Folder, id: &str) -> Result<(), Failure> {
        folder.write(&format!("{id}.json"), &serde_json::to_vec_pretty(self).unwrap_or_default())
    }

    /// Makes the plan one for this certificate.
    pub(crate) fn plan_for(&mut self, facts: &CertificateFacts, random: &mut fastrand::Rng) {
        let serial = facts.serial.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        if self.serial != serial {
            // Failures are those of orders before it.
            (self.failures, self.failure, self.next_attempt, self.held_until) = (0, None, 0, 0);
        }
        if self.serial != serial || self.plan.renew_at == 0 {
            self.plan = Plan::by_life(facts, random);
            self.serial = serial;
        }
    }

    /// Returns the Unix time of the next order. Without a usable certificate it isn't waited for.
    pub(crate) fn order_at(&self, usable: Option<&CertificateFacts>) -> u64 {
        let renew_at = usable.map_or(0, |facts| {
            let life = facts.not_after.saturating_sub(facts.not_before);
            let planned = self.plan.renew_at.min(facts.not_after.saturating_sub(life / 12));
            planned.max(self.issued_at + REISSUE_SECONDS_MIN.min(life / 3))
        });
        renew_at.max(self.next_attempt)
    }

    /// Returns the certificate if it is for these names and by this CA.
    pub(crate) fn usable<'a>(
        &self,
        facts: Option<&'a CertificateFacts>,
        names: &[String],
        directory: &str,
    ) -> Option<&'a CertificateFacts> {
        let is_of_directory = self.directory.is_empty() || self.directory == directory;
        facts.filter(|facts| is_of_directory && names.iter().all(|name| facts.covers(name)))
    }
}

/// Reads the certificate with its key; `None` if there is none yet.
pub(crate) fn read_pair(folder: &Folder, id: &str) -> Result<Option<Pair>, Failure> {
    let Some(pem) = folder.read(&format!("{id}.pem"))? else { return Ok(None) };
    Pair::from_pem(&pem, &pem).map(Some).map_err(|error| {
        let message = format!("cannot use the stored certificate of {id}: {error}");
        Failure::new(message, "it is ordered again; something else has changed the file in the storage")
    })
}

#[cfg(test)]
mod tests;
