//! The list of certificates: the state of each between attempts, and the notices to the program.

use std::collections::BTreeMap;

use shearwater_tls::{CertificateFacts, Pair};
use tokio::task::AbortHandle;

use crate::attempt::Outcome;
use crate::context::{Context, State, Status};
use crate::failure::Failure;
use crate::limits::STORAGE_POLL_SECONDS;
use crate::record::{Record, read_pair};
use crate::storage::Version;

/// A certificate that is to be used from now on.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// Names that it was ordered for, the main name first.
    pub names: Vec<String>,
    /// The chain with its key.
    pub pair: Pair,
}

/// A notice of a manager.
#[derive(Debug, Clone)]
pub enum Notice {
    /// There is a certificate: from the storage, or a new one.
    Certificate(Certificate),
    /// Something failed. The same failure is reported once until something else happens.
    Failed(Failure),
}

/// A certificate of the list.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) names: Vec<String>,
    pair: Option<Pair>,
    version: Option<Version>,
    record: Record,
    /// Unix time of the next attempt.
    pub(crate) due: u64,
    pub(crate) running: Option<AbortHandle>,
    /// The operator wants an order, which hasn't begun.
    pub(crate) is_forced: bool,
    /// The attempt in progress is the operator's.
    pub(crate) is_renewing: bool,
    attempts: u64,
    renewals: u64,
    reported: Option<Failure>,
}

pub(crate) type OnNotice = dyn FnMut(Notice);

/// All certificates, by their main names.
#[derive(Default)]
pub(crate) struct Slots {
    pub(crate) slots: BTreeMap<String, Slot>,
    storage_failure: Option<Failure>,
}

impl Slots {
    /// Replaces the list. Certificates with the same names stay as they are.
    pub(crate) fn set(
        &mut self,
        context: &Context,
        certificates: Vec<Vec<String>>,
        on_notice: &mut OnNotice,
    ) {
        let mut old = std::mem::take(&mut self.slots);
        for names in certificates {
            let id = names[0].clone();
            let is_kept = old.get(&id).is_some_and(|slot| slot.names == names);
            if let Some(kept) = old.remove(&id).filter(|_| is_kept) {
                self.slots.insert(id, kept);
                continue;
            }
            let slot = self.slots.entry(id.clone()).or_insert(Slot { names, ..Slot::default() });
            slot.record = Record::read(&context.storage.certificates, &id).unwrap_or_default();
            slot.plan(context);
            self.read(context, &id, on_notice);
        }
        for running in old.into_values().filter_map(|slot| slot.running) {
            running.abort();
        }
        let mut board = context.board.lock();
        board.retain(|id, _| self.slots.contains_key(id));
    }

    /// Reads a certificate's files if they have changed, and publishes it.
    fn read(&mut self, context: &Context, id: &str, on_notice: &mut OnNotice) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let folder = &context.storage.certificates;
        let version = folder.version(&format!("{id}.pem")).unwrap_or(slot.version);
        if version != slot.version {
            slot.version = version;
            slot.record = Record::read(folder, id).unwrap_or_default();
            match read_pair(folder, id) {
                Ok(Some(pair)) => {
                    slot.record.plan_for(pair.facts(), &mut context.random.borrow_mut());
                    slot.publish(pair, on_notice);
                }
                Ok(None) => {}
                Err(failure) => slot.report(failure, on_notice),
            }
            slot.plan(context);
        }
        slot.show(context);
    }

    /// Looks into the storage for certificates of other instances.
    pub(crate) fn poll(&mut self, context: &Context, on_notice: &mut OnNotice) {
        let is_idle = |(id, slot): (&String, &Slot)| slot.running.is_none().then(|| id.clone());
        let ids: Vec<String> = self.slots.iter().filter_map(is_idle).collect();
        ids.iter().for_each(|id| self.read(context, id, on_notice));
    }

    /// Takes over the result of an attempt.
    pub(crate) fn complete(
        &mut self,
        context: &Context,
        names: &[String],
        outcome: Outcome,
        on_notice: &mut OnNotice,
    ) {
        let id = &names[0];
        let is_storage_fine = outcome.storage_failure.is_none();
        if is_storage_fine {
            self.storage_failure = None;
        } else if let Some(failure) = outcome.storage_failure.clone()
            && self.storage_failure.as_ref().is_none_or(|known| known.help != failure.help)
        {
            // Once for all certificates: their paths differ, the cause doesn't.
            self.storage_failure = Some(failure.clone());
            on_notice(Notice::Failed(failure));
        }
        let Some(slot) = self.slots.get_mut(id).filter(|slot| slot.names == names) else { return };
        slot.running = None;
        slot.attempts += 1;
        let was_renewing = std::mem::take(&mut slot.is_renewing);
        if was_renewing && outcome.is_elsewhere {
            slot.is_forced = true;
        } else {
            slot.renewals += u64::from(was_renewing);
        }
        if let Some(record) = outcome.record {
            slot.record = record;
        }
        if let Some(pair) = outcome.pair {
            slot.version = context.storage.certificates.version(&format!("{id}.pem")).unwrap_or(slot.version);
            // A newer one couldn't be stored yet.
            let is_old = |known: &Pair| known.facts().not_before > pair.facts().not_before;
            let is_known = |known: &Pair| known.facts() == pair.facts();
            if !slot.pair.as_ref().is_some_and(|known| is_known(known) || is_old(known)) {
                slot.publish(pair, on_notice);
            }
        }
        if let Some(failure) = outcome.failure.clone() {
            slot.report(failure, on_notice);
        } else if is_storage_fine && slot.record.failure.is_none() {
            slot.reported = None;
        }
        slot.record.failure = outcome.failure.or(outcome.storage_failure).or(slot.record.failure.take());
        slot.plan(context);
        slot.due = match outcome.again_at {
            // The operator's command came during this attempt.
            _ if slot.is_forced && !was_renewing => 0,
            Some(time) => time,
            None => slot.due,
        };
        slot.show(context);
    }

    /// Repeats attempts later that ended without a result: by a panic.
    pub(crate) fn recover(&mut self, now: u64) {
        for slot in self.slots.values_mut() {
            if slot.running.take_if(|running| running.is_finished()).is_some() {
                slot.due = now + STORAGE_POLL_SECONDS;
            }
        }
    }
}

impl Slot {
    /// Gives a certificate to the program.
    fn publish(&mut self, pair: Pair, on_notice: &mut OnNotice) {
        self.pair = Some(pair.clone());
        on_notice(Notice::Certificate(Certificate { names: self.names.clone(), pair }));
    }

    /// Reports a failure, unless it was the last one too.
    fn report(&mut self, failure: Failure, on_notice: &mut OnNotice) {
        if self.reported.as_ref().is_none_or(|known| known.message != failure.message) {
            self.reported = Some(failure.clone());
            on_notice(Notice::Failed(failure));
        }
    }

    /// Derives the time of the next attempt from the record.
    fn plan(&mut self, context: &Context) {
        self.due = self.record.check_at(self.usable(context));
    }

    fn usable(&self, context: &Context) -> Option<&CertificateFacts> {
        let facts = self.pair.as_ref().map(Pair::facts);
        self.record.usable(facts, &self.names, &context.options.directory)
    }

    /// Publishes the status.
    pub(crate) fn show(&self, context: &Context) {
        let facts = self.pair.as_ref().map(Pair::facts);
        let state = match facts {
            None if self.running.is_some() => State::Ordering,
            None => State::Missing,
            Some(facts) if facts.not_after <= context.now() => State::Expired,
            Some(_) => State::Valid,
        };
        let status = Status {
            names: self.names.clone(),
            state,
            not_before: facts.map(|facts| facts.not_before),
            not_after: facts.map(|facts| facts.not_after),
            next_attempt: self.record.order_at(self.usable(context)),
            failure: self.record.failure.clone(),
            attempts: self.attempts,
            renewals: self.renewals,
        };
        context.board.lock().insert(self.names[0].clone(), status);
    }
}
