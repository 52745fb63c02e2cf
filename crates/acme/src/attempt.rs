//! One attempt for one certificate: take the lease, see what the storage has, ask the CA, order if it is time.

use std::time::Duration;

use instant_acme::Account;
use shearwater_tls::{CertificateFacts, Pair};

use crate::account;
use crate::client::Client;
use crate::context::Context;
use crate::failure::{Failure, Scope};
use crate::lease::Lease;
use crate::limits::{LEASE_POLL_SECONDS, LEASE_SECONDS, ORDER_SECONDS_MAX, STORAGE_POLL_SECONDS};
use crate::order::{Issued, Ordering, identifier, with_nonces};
use crate::record::{Record, read_pair};
use crate::schedule::{back_off, is_clock_unset};

/// Work on one certificate.
pub(crate) struct Attempt<'a> {
    pub(crate) context: &'a Context,
    pub(crate) names: &'a [String],
    /// Orders without waiting for the planned time or the back-off.
    pub(crate) is_forced: bool,
}

/// Result of an attempt.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Record after it; `None` if the storage couldn't be read.
    pub(crate) record: Option<Record>,
    /// A certificate that was issued, or read from the storage.
    pub(crate) pair: Option<Pair>,
    /// Failures of the order, of the certificate's file, or of the machine.
    pub(crate) failure: Option<Failure>,
    /// Failure of the storage.
    pub(crate) storage_failure: Option<Failure>,
    /// Unix time of the next attempt, if the record doesn't say it.
    pub(crate) again_at: Option<u64>,
    /// Another instance works on it.
    pub(crate) is_elsewhere: bool,
}

impl Attempt<'_> {
    pub(crate) async fn run(&self) -> Outcome {
        let now = self.context.now();
        if is_clock_unset(now) {
            let message = format!(
                "no certificate for {}: the clock of this machine is {now} s after 1970",
                self.names[0]
            );
            let failure =
                Failure::new(message, "set the clock, for example by NTP; then it is ordered by itself");
            return Outcome {
                failure: Some(failure),
                again_at: Some(now + STORAGE_POLL_SECONDS),
                ..Outcome::default()
            };
        }
        self.run_with_lease(now).await.unwrap_or_else(|failure| Outcome {
            storage_failure: Some(failure),
            again_at: Some(now + STORAGE_POLL_SECONDS),
            ..Outcome::default()
        })
    }

    /// Works while this instance holds the lease. An error is one of the storage.
    async fn run_with_lease(&self, now: u64) -> Result<Outcome, Failure> {
        let Context { storage, options, .. } = self.context;
        let (folder, id) = (&storage.certificates, &self.names[0]);
        let lease = Lease::take(&storage.locks, id, &self.context.owner, now);
        let Some(lease) = lease? else {
            let again_at = Some(now + LEASE_POLL_SECONDS);
            return Ok(Outcome { again_at, is_elsewhere: true, ..Outcome::default() });
        };
        let mut record = Record::read(folder, id)?;
        let before = record.clone();
        let mut outcome = Outcome::default();
        match read_pair(folder, id) {
            Ok(pair) => outcome.pair = pair,
            Err(failure) => outcome.failure = Some(failure),
        }
        if let Some(pair) = &outcome.pair {
            record.plan_for(pair.facts(), &mut self.context.random.borrow_mut());
        }
        let facts = outcome.pair.as_ref().map(Pair::facts);
        let usable = record.usable(facts, self.names, &options.directory).cloned();
        let client = self.context.client.for_order();
        if let Some(facts) = usable.as_ref().filter(|_| record.plan.ask_at <= now) {
            self.ask(&client, facts, &mut record).await;
        }
        let is_held = record.held_until > now;
        if (self.is_forced && !is_held) || record.order_at(usable.as_ref()) <= now {
            self.order(&client, &lease, &mut record, usable.as_ref(), &mut outcome).await;
        } else if usable.is_some() {
            // Its certificate is stored: the process ended before it had recorded that.
            record.order = None;
        }
        if record != before {
            // The certificate's file is written by then: without this record it is only planned anew.
            let written = record.write(folder, id);
            outcome.storage_failure = outcome.storage_failure.or(written.err());
        }
        outcome.record = Some(record);
        Ok(outcome)
    }

    /// Asks the CA when to renew (RFC 9773). Without a suggestion the plan stays.
    async fn ask(&self, client: &Client, facts: &CertificateFacts, record: &mut Record) {
        let suggested = async {
            let account = account::open(self.context, client).await.ok()?;
            let identifier = identifier(facts)?;
            with_nonces(async || account.renewal_info(&identifier).await).await.ok()
        };
        let suggested = suggested.await;
        let now = self.context.now();
        let Some((info, retry_after)) = suggested else {
            return record.plan.ask_later(now);
        };
        let unix = |time: i64| u64::try_from(time).unwrap_or(0);
        let (start, end) = (
            unix(info.suggested_window.start.unix_timestamp()),
            unix(info.suggested_window.end.unix_timestamp()),
        );
        let random = &mut self.context.random.borrow_mut();
        record.plan.suggest(start, end, retry_after.as_secs(), now, random);
    }

    /// Orders, and renews the lease meanwhile. Records the result.
    async fn order(
        &self,
        client: &Client,
        lease: &Lease<'_>,
        record: &mut Record,
        replaced: Option<&CertificateFacts>,
        outcome: &mut Outcome,
    ) {
        let limit = Duration::from_secs(ORDER_SECONDS_MAX);
        let obtained = tokio::select! {
            obtained = tokio::time::timeout(limit, self.obtain(client, record, replaced)) => {
                obtained.unwrap_or_else(|_| Err(Failure::new(
                    format!("the CA didn't complete the order within {ORDER_SECONDS_MAX} s"),
                    "the order is resumed by itself",
                )))
            }
            failure = self.keep(lease) => Err(failure),
        };
        let now = self.context.now();
        let folder = &self.context.storage.certificates;
        match obtained {
            Ok(issued) => {
                let written = folder.write(&format!("{}.pem", self.names[0]), &issued.pem);
                let pair = issued.pair;
                if let Err(failure) = written {
                    // It is used. The order stays in its record, from which the next attempt gets it again.
                    (outcome.pair, outcome.storage_failure) = (Some(pair), Some(failure));
                    outcome.again_at = Some(now + STORAGE_POLL_SECONDS);
                    return;
                }
                drop(folder.remove(&format!("{}.key", self.names[0])));
                *record = Record {
                    directory: self.context.options.directory.clone(),
                    issued_at: now,
                    ..Record::default()
                };
                record.plan_for(pair.facts(), &mut self.context.random.borrow_mut());
                outcome.failure = clock_failure(pair.facts(), now);
                if outcome.failure.is_some() {
                    self.fail(record, outcome.failure.clone(), Some(pair.facts()), now);
                }
                outcome.pair = Some(pair);
            }
            // Not the order's fault: it continues when the storage works again.
            Err(failure) if failure.scope == Scope::Storage => {
                outcome.storage_failure = Some(failure);
                outcome.again_at = Some(now + STORAGE_POLL_SECONDS);
            }
            Err(failure) => {
                let failure = failure.of_certificate(&self.names[0]);
                let facts = outcome.pair.as_ref().map(Pair::facts);
                self.fail(record, Some(failure.clone()), facts, now);
                outcome.failure = Some(failure);
            }
        }
    }

    async fn obtain(
        &self,
        client: &Client,
        record: &mut Record,
        replaced: Option<&CertificateFacts>,
    ) -> Result<Issued, Failure> {
        let context = self.context;
        let account: Account = account::open(context, client).await?;
        let mut ordering =
            Ordering { context, client, account: &account, names: self.names, record, replaced };
        let obtained = ordering.run().await;
        if obtained.as_ref().is_err_and(|failure| failure.scope == Scope::Account) {
            // The CA has lost its accounts, as staging CAs do.
            account::discard(context)?;
            let account = account::open(context, client).await?;
            ordering.record.order = None;
            return Ordering { account: &account, ..ordering }.run().await;
        }
        obtained
    }

    /// Renews the lease until it is lost.
    async fn keep(&self, lease: &Lease<'_>) -> Failure {
        loop {
            tokio::time::sleep(Duration::from_secs(LEASE_SECONDS / 4)).await;
            match lease.renew(self.context.now()) {
                Ok(true) => {}
                Ok(false) => {
                    return Failure::new(
                        "another instance has taken over the order".to_owned(),
                        "this one takes its certificate from the storage; compare the clocks of both machines",
                    );
                }
                Err(failure) => return failure,
            }
        }
    }

    /// Records a failure and the time of the next attempt.
    fn fail(
        &self,
        record: &mut Record,
        failure: Option<Failure>,
        facts: Option<&CertificateFacts>,
        now: u64,
    ) {
        record.failures = record.failures.saturating_add(1);
        let retry_after = failure.as_ref().and_then(|failure| failure.retry_after);
        let life_left = facts.map(|facts| facts.not_after.saturating_sub(now)).filter(|left| *left > 0);
        let random = &mut self.context.random.borrow_mut();
        record.next_attempt = now + back_off(record.failures, life_left, retry_after, random);
        record.held_until = if retry_after.is_some() { record.next_attempt } else { 0 };
        record.failure = failure;
    }
}

/// Compares the dates of a new certificate with this machine's clock.
fn clock_failure(facts: &CertificateFacts, now: u64) -> Option<Failure> {
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

#[cfg(test)]
mod tests;
