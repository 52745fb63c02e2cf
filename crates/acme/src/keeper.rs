//! One certificate: a task that takes newer ones from the storage, and orders when it is time.

use std::rc::Rc;
use std::time::Duration;

use shearwater_tls::{CertificateFacts, Pair};
use tokio::sync::watch;
use zeroize::Zeroizing;

use crate::account;
use crate::client::Client;
use crate::context::Context;
use crate::failure::{Failure, Scope};
use crate::limits::{
    LOCK_POLL_SECONDS, LOCKED_SECONDS_MAX, ORDER_SECONDS_MAX, REISSUE_SECONDS_MIN, RETRY_AFTER_SECONDS_MAX,
    STORAGE_POLL_SECONDS,
};
use crate::manager::Command;
use crate::order::{self, Issued};
use crate::record::{Record, read_pair};
use crate::schedule::{back_off, check_clock, clock_failure};
use crate::status::{Certificate, Notice, State, Status};
use crate::storage::Version;

/// Keeps one certificate: its state between attempts, and the attempts.
#[derive(Default)]
pub(crate) struct Keeper {
    names: Vec<String>,
    /// The certificate in use.
    pair: Option<Pair>,
    /// Content of its file, if it couldn't be written yet.
    unstored: Option<Zeroizing<Vec<u8>>>,
    /// The file that was read last.
    version: Option<Version>,
    /// True if that file had a certificate.
    is_stored: bool,
    record: Record,
    /// Failure of the machine in the last attempt.
    machine_failure: Option<Failure>,
    /// Unix time of the next attempt, if the machine or another instance prevented the last one.
    repeat_at: Option<u64>,
    /// Unix time since which another instance has had the lock at each attempt.
    locked_since: Option<u64>,
    /// Unix time of the last certificate that this instance obtained.
    obtained_at: Option<u64>,
    attempts: u64,
    /// Orders that the operator has asked for, and the last of them that has ended.
    renewals_asked: u64,
    renewals: u64,
    reported: Option<String>,
}

impl Keeper {
    /// Reads what the storage has, and publishes the certificate.
    pub(crate) fn open(context: &Context, names: Vec<String>) -> Self {
        // Orders that were asked for before, of a task that panicked, have ended.
        let asked = context.board.renewals_asked(&names[0]);
        let mut keeper = Self { names, renewals_asked: asked, renewals: asked, ..Self::default() };
        // A storage that can't be read is reported by the first attempt.
        drop(keeper.read(context));
        keeper.show(context, false);
        keeper
    }

    /// Returns its names, the main name first.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    fn id(&self) -> &str {
        &self.names[0]
    }

    /// Works until the task is aborted, or the manager is gone. It looks again after each command.
    pub(crate) async fn run(mut self, context: Rc<Context>, mut commands: watch::Receiver<Command>) {
        loop {
            commands.mark_unchanged();
            if self.is_due(&context) {
                let _permit = context.attempts.acquire().await;
                // While this task waited for its permit, another attempt may have paused all.
                if self.is_due(&context) {
                    self.attempt(&context).await;
                }
            }
            self.show(&context, false);
            let wait = self.due(&context).saturating_sub(context.now()).clamp(1, STORAGE_POLL_SECONDS);
            tokio::select! {
                changed = commands.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(Duration::from_secs(wait)) => {}
            }
            // A storage that fails is reported by the attempts.
            drop(self.read(&context));
        }
    }

    fn is_due(&mut self, context: &Context) -> bool {
        let asked = context.board.renewals_asked(self.id());
        if asked != self.renewals_asked {
            (self.renewals_asked, self.repeat_at) = (asked, None);
        }
        self.due(context) <= context.now()
    }

    /// Returns whether an order that the operator has requested is outstanding.
    fn is_asked(&self) -> bool {
        self.renewals != self.renewals_asked
    }

    /// Returns the Unix time of the next attempt.
    fn due(&self, context: &Context) -> u64 {
        // Later times are those of a clock that was ahead.
        let valid_until = context.now() + RETRY_AFTER_SECONDS_MAX;
        match self.repeat_at.filter(|time| *time <= valid_until) {
            Some(time) => time,
            None if self.is_asked() => self.record.held_until,
            None => {
                let ask_at = self.usable(context).map_or(u64::MAX, |_| self.record.plan.ask_at);
                let paused_until = Some(context.paused_until.get()).filter(|time| *time <= valid_until);
                self.order_at(context).min(ask_at).max(paused_until.unwrap_or(0))
            }
        }
    }

    /// Returns the Unix time of the next order. Instances with different settings must not replace each other's certificate
    /// all the time.
    fn order_at(&self, context: &Context) -> u64 {
        let usable = self.usable(context);
        let again_at = if usable.is_none() { self.reissue_at() } else { 0 };
        self.record.order_at(usable).max(again_at)
    }

    fn reissue_at(&self) -> u64 {
        self.obtained_at.map_or(0, |time| time + REISSUE_SECONDS_MIN)
    }

    async fn attempt(&mut self, context: &Context) {
        self.show(context, true);
        let ended = self.work(context).await;
        self.attempts += 1;
        let before = self.machine_failure.take();
        let now = context.now();
        match ended {
            // The operator's request stays pending.
            Ok(Turn::Other) => {
                self.repeat_at = Some(now + LOCK_POLL_SECONDS);
                let since = *self.locked_since.get_or_insert(now);
                if now.saturating_sub(since) > LOCKED_SECONDS_MAX {
                    self.machine_failure = Some(Failure::of_lock(self.id()));
                }
            }
            Ok(Turn::Own) => {
                (self.repeat_at, self.locked_since) = (None, None);
                context.machine_help.replace(None);
                self.renewals = self.renewals_asked;
                if self.record.failure.is_none() {
                    self.reported = None;
                }
            }
            Err(failure) => {
                self.renewals = self.renewals_asked;
                self.machine_failure = Some(failure);
                // The back-off counts, even if it couldn't be written; but storing a certificate needs no CA.
                let next_order = if self.unstored.is_none() { self.record.next_attempt } else { 0 };
                self.repeat_at = Some((now + STORAGE_POLL_SECONDS).max(next_order));
            }
        }
        if let Some(failure) = &self.machine_failure
            && before.is_none_or(|known| known.help != failure.help)
        {
            context.report_machine(failure);
        }
        self.show(context, false);
        context.board.changed.notify_all();
    }

    /// Makes an attempt while this instance has the lock. An error is one of the machine: of its clock or its storage.
    async fn work(&mut self, context: &Context) -> Result<Turn, Failure> {
        check_clock(context.now())?;
        let Some(_lock) = context.storage.locks.lock(self.id())? else { return Ok(Turn::Other) };
        // Another instance may just have ended its own.
        self.read(context)?;
        let before = self.record.clone();
        let client = context.client.for_order();
        let usable = self.usable(context).cloned();
        let now = context.now();
        if let Some(facts) = usable.as_ref().filter(|_| self.record.plan.ask_at <= now) {
            self.ask(context, &client, facts).await;
        }
        let is_asked = self.is_asked() && self.record.held_until <= now;
        let is_ordered = is_asked || self.unstored.is_some() || self.order_at(context) <= now;
        if is_ordered {
            self.order(context, &client, usable.as_ref()).await?;
        } else if usable.is_some() {
            // Its certificate is stored: the process was killed before it had removed the order.
            order::forget(context, self.id())?;
        }
        let is_changed = self.record != before;
        let written =
            if is_changed { self.record.write(&context.storage.certificates, self.id()) } else { Ok(()) };
        // Recorded first: the process may be stopped as soon as the message is seen.
        if let Some(failure) = self.record.failure.clone().filter(|_| is_ordered) {
            self.report(context, failure);
        }
        written.map(|()| Turn::Own)
    }

    /// Takes over the record, and the certificate if its file has changed.
    fn read(&mut self, context: &Context) -> Result<(), Failure> {
        let folder = &context.storage.certificates;
        let record = Record::read(folder, self.id(), context.now())?;
        let version = folder.version(&format!("{}.pem", self.id()))?;
        if version != self.version {
            let stored = match read_pair(folder, self.id()) {
                Err(failure) if failure.scope == Scope::Machine => return Err(failure),
                Err(failure) => {
                    self.report(context, failure);
                    None
                }
                Ok(stored) => stored,
            };
            (self.version, self.is_stored) = (version, stored.is_some());
            let directory = &context.options.directory;
            // The one in use is newer if it couldn't be stored, or better if another instance has other settings.
            let is_new = |pair: &Pair| {
                let (known, facts) = (self.pair.as_ref().map(Pair::facts), pair.facts());
                known.is_none_or(|known| known != facts && known.not_before <= facts.not_before)
                    && (known.is_none() || record.usable(Some(facts), &self.names, directory).is_some())
            };
            if let Some(pair) = stored.filter(is_new) {
                self.unstored = None;
                self.publish(context, pair);
            }
        }
        self.record = record;
        if let Some(pair) = &self.pair {
            self.record.plan_for(pair.facts(), &mut context.random.borrow_mut());
        }
        let is_recent = self.reissue_at() > context.now();
        if is_recent && self.is_stored && self.usable(context).is_none() {
            self.report(context, Failure::of_other_settings(self.id()));
        }
        Ok(())
    }

    /// Returns the certificate if it is stored, for these names and by this CA.
    fn usable(&self, context: &Context) -> Option<&CertificateFacts> {
        let facts = self.pair.as_ref().map(Pair::facts);
        let facts = facts.filter(|_| self.is_stored && self.unstored.is_none());
        self.record.usable(facts, &self.names, &context.options.directory)
    }

    /// Asks the CA when to renew (RFC 9773). Without a suggestion the plan stays.
    async fn ask(&mut self, context: &Context, client: &Client, facts: &CertificateFacts) {
        let suggested = async {
            let account = account::open(context, client).await.ok()?;
            order::suggested_renewal(&account, facts).await
        };
        let limit = Duration::from_secs(ORDER_SECONDS_MAX);
        let suggested = tokio::time::timeout(limit, suggested).await.ok().flatten();
        let now = context.now();
        match suggested {
            Some((start, end, again)) => {
                self.record.plan.suggest(start, end, again, now, &mut context.random.borrow_mut());
            }
            None => self.record.plan.ask_later(now),
        }
    }

    /// Orders, stores the result, and records it. A certificate that can't be stored is used all the same.
    async fn order(
        &mut self,
        context: &Context,
        client: &Client,
        replaced: Option<&CertificateFacts>,
    ) -> Result<(), Failure> {
        let folder = &context.storage.certificates;
        let file = format!("{}.pem", self.id());
        if let Some(pem) = &self.unstored {
            folder.write(&file, pem)?;
        } else {
            // Each failure changes the challenge, so that one that can't work isn't the only one.
            let kinds = &context.options.challenges;
            let kind = kinds[self.record.failures as usize % kinds.len()];
            // A CA may reject the certificate that is replaced: the next order doesn't name it.
            let replaced = replaced.filter(|_| self.record.plan.is_suggested && self.record.failures == 0);
            let obtained = order::obtain(context, client, &self.names, kind, replaced);
            let limit = Duration::from_secs(ORDER_SECONDS_MAX);
            let obtained = tokio::time::timeout(limit, obtained).await;
            match obtained.unwrap_or_else(|_| Err(Failure::of_order_time())) {
                Ok(Issued { pair, pem }) => {
                    let written = folder.write(&file, &pem);
                    self.publish(context, pair);
                    self.unstored = Some(pem);
                    written?;
                }
                Err(failure) if failure.scope == Scope::Machine => return Err(failure),
                Err(failure) => {
                    if failure.scope == Scope::Authority {
                        context.pause();
                    }
                    self.fail(context, failure.of_certificate(self.id()));
                    return Ok(());
                }
            }
        }
        (self.unstored, self.is_stored, self.version) = (None, true, folder.version(&file)?);
        order::forget(context, self.id())?;
        let directory = context.options.directory.clone();
        let now = context.now();
        self.obtained_at = Some(now);
        self.record = Record { directory, issued_at: now, ..Record::default() };
        if let Some(pair) = &self.pair {
            self.record.plan_for(pair.facts(), &mut context.random.borrow_mut());
            if let Some(failure) = clock_failure(pair.facts(), now) {
                self.report(context, failure);
            }
        }
        Ok(())
    }

    /// Records a failure of the order and the time of the next one.
    fn fail(&mut self, context: &Context, failure: Failure) {
        let (record, now) = (&mut self.record, context.now());
        record.failures = record.failures.saturating_add(1);
        let facts = self.pair.as_ref().map(Pair::facts);
        let life_left = facts.map(|facts| facts.not_after.saturating_sub(now));
        let random = &mut context.random.borrow_mut();
        record.next_attempt = now + back_off(record.failures, life_left, failure.retry_after, random);
        record.held_until =
            failure.retry_after.map_or(0, |seconds| now + seconds.min(RETRY_AFTER_SECONDS_MAX));
        record.failure = Some(failure);
    }

    /// Gives a certificate to the program.
    fn publish(&mut self, context: &Context, pair: Pair) {
        self.pair = Some(pair.clone());
        context.notify(Notice::Certificate(Certificate { names: self.names.clone(), pair }));
    }

    /// Reports a failure, unless it was the last one too.
    fn report(&mut self, context: &Context, failure: Failure) {
        if self.reported.as_ref() != Some(&failure.message) {
            self.reported = Some(failure.message.clone());
            context.notify(Notice::Failed(failure));
        }
    }

    fn show(&self, context: &Context, is_busy: bool) {
        let facts = self.pair.as_ref().map(Pair::facts);
        let state = match facts {
            None if is_busy => State::Ordering,
            None => State::Missing,
            Some(facts) if facts.not_after <= context.now() => State::Expired,
            Some(_) => State::Valid,
        };
        context.board.show(Status {
            names: self.names.clone(),
            state,
            not_before: facts.map(|facts| facts.not_before),
            not_after: facts.map(|facts| facts.not_after),
            next_attempt: self.repeat_at.unwrap_or_else(|| self.order_at(context)).max(context.now()),
            failure: self.machine_failure.clone().or_else(|| self.record.failure.clone()),
            attempts: self.attempts,
            renewals: self.renewals,
        });
    }
}

/// The instance that has a certificate's lock.
enum Turn {
    Own,
    Other,
}

#[cfg(test)]
mod tests;
