//! The control thread: decides which certificates are worked on, and publishes them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use shearwater_tls::Pair;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet, LocalSet};

use crate::attempt::{Attempt, Outcome};
use crate::challenges::Challenges;
use crate::client::Client;
use crate::context::{Board, Context, State, Status};
use crate::failure::{Failure, Scope};
use crate::lease::Owner;
use crate::limits::{CA_PAUSE_SECONDS, COMMANDS_MAX, ORDERS_AT_ONCE_MAX, STORAGE_POLL_SECONDS};
use crate::options::{Options, check_names};
use crate::record::{Record, read_pair};
use crate::storage::{Storage, Version};

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

/// Obtains certificates and renews them, on a thread of its own.
#[derive(Debug)]
pub struct Manager;

impl Manager {
    /// Starts the thread. Before it returns, `on_notice` has been called for each stored certificate; later the thread calls it.
    ///
    /// # Errors
    /// Fails if the options are invalid, if the storage can't be opened, or if the file of `ca` can't be read.
    pub fn start(
        options: Options,
        mut on_notice: impl FnMut(Notice) + Send + 'static,
    ) -> Result<Handle, Failure> {
        options.check()?;
        let storage = Arc::new(Storage::open(&options.storage)?);
        storage.remove_leftovers(options.clock.now());
        let client = Client::new(options.ca.as_deref())?;
        let challenges = Arc::new(Challenges::new(Arc::clone(&storage), options.clock.clone()));
        let board = Arc::new(Board::default());
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let random = options.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let handle_parts = (Arc::clone(&challenges), Arc::clone(&board));
        let (certificates, owner) = (options.certificates.clone(), Owner::current());
        let start =
            move |options, random| Context { options, storage, challenges, client, owner, board, random };
        // The first pass over the storage is made here, so that a server begins with its certificates.
        let mut slots = Slots::default();
        let context = start(options, RefCell::new(random));
        slots.set(&context, certificates, &mut on_notice);
        let thread = thread::Builder::new().name("acme".to_owned()).spawn(move || {
            let control =
                Control { context: Rc::new(context), slots, received, on_notice: Box::new(on_notice) };
            control.run();
        });
        let thread = thread.map_err(|error| {
            Failure::new(
                format!("cannot start a thread: {error}"),
                "raise the limit of processes and threads",
            )
        })?;
        let (challenges, board) = handle_parts;
        Ok(Handle { commands, challenges, board, thread: Some(thread) })
    }
}

/// Controls a running manager. Dropping it stops the manager.
pub struct Handle {
    commands: mpsc::Sender<Command>,
    challenges: Arc<Challenges>,
    board: Arc<Board>,
    thread: Option<JoinHandle<()>>,
}

enum Command {
    Renew(String),
    SetCertificates(Vec<Vec<String>>),
    Stop,
}

impl Handle {
    /// Returns the status of each certificate.
    #[must_use]
    pub fn status(&self) -> Vec<Status> {
        self.board.lock().values().cloned().collect()
    }

    /// Orders the certificate of a name now. Only a CA's `Retry-After` still delays it. The result is in [`Status`], whose
    /// `attempts` grows then.
    ///
    /// # Errors
    /// Fails if no certificate has the name, or if too many commands wait.
    pub fn renew(&self, name: &str) -> Result<(), Failure> {
        let id = self
            .board
            .lock()
            .iter()
            .find(|(_, status)| status.names.iter().any(|known| known == name))
            .map(|(id, _)| id.clone());
        let id = id.ok_or_else(|| {
            Failure::new(
                format!("no certificate for {name} is managed here"),
                "list the names with their certificates",
            )
        })?;
        self.send(Command::Renew(id))
    }

    /// Replaces the list of certificates, for a reload. Those whose names stay are kept.
    ///
    /// # Errors
    /// Fails if a name is invalid or listed twice, or if too many commands wait; then nothing changes.
    pub fn set_certificates(&self, certificates: Vec<Vec<String>>) -> Result<(), Failure> {
        check_names(&certificates)?;
        self.send(Command::SetCertificates(certificates))
    }

    /// Returns the challenges that the server must serve. They may outlive this handle.
    #[must_use]
    pub fn challenges(&self) -> Arc<Challenges> {
        Arc::clone(&self.challenges)
    }

    /// Stops the thread. Orders in progress are interrupted; the next start resumes them.
    pub fn stop(mut self) {
        self.end();
    }

    fn send(&self, command: Command) -> Result<(), Failure> {
        self.commands.try_send(command).map_err(|_| {
            Failure::new(
                format!("more than {COMMANDS_MAX} commands wait for the control thread"),
                "try again later",
            )
        })
    }

    fn end(&mut self) {
        // With a full queue, the thread still ends when it finds the channel closed.
        drop(self.commands.try_send(Command::Stop));
        let (closed, _) = mpsc::channel(1);
        self.commands = closed;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Handle").field("status", &self.status()).finish_non_exhaustive()
    }
}

/// A certificate of the list.
#[derive(Default)]
struct Slot {
    names: Vec<String>,
    pair: Option<Pair>,
    version: Option<Version>,
    record: Record,
    /// Unix time of the next attempt.
    due: u64,
    running: Option<AbortHandle>,
    is_forced: bool,
    attempts: u64,
    reported: Option<Failure>,
    /// Content of the certificate's file, which the storage hasn't accepted yet.
    unsaved: Option<Vec<u8>>,
}

type OnNotice = dyn FnMut(Notice);

/// All certificates, by their main names.
#[derive(Default)]
struct Slots {
    slots: BTreeMap<String, Slot>,
    storage_failure: Option<Failure>,
}

impl Slots {
    /// Replaces the list. Certificates with the same names stay as they are.
    fn set(&mut self, context: &Context, certificates: Vec<Vec<String>>, on_notice: &mut OnNotice) {
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

    /// Looks into the storage for certificates of other instances, and stores those that it hasn't accepted.
    fn poll(&mut self, context: &Context, on_notice: &mut OnNotice) {
        let ids: Vec<String> =
            self.slots.iter().filter(|(_, slot)| slot.running.is_none()).map(|(id, _)| id.clone()).collect();
        for id in ids {
            let folder = &context.storage.certificates;
            if let Some(slot) = self.slots.get_mut(&id)
                && let Some(pem) = slot.unsaved.take_if(|pem| folder.write(&format!("{id}.pem"), pem).is_ok())
            {
                drop(pem);
                drop(folder.remove(&format!("{id}.key")));
                drop(slot.record.write(folder, &id));
                slot.version = folder.version(&format!("{id}.pem")).unwrap_or_default();
            }
            if self.slots.get(&id).is_some_and(|slot| slot.unsaved.is_none()) {
                self.read(context, &id, on_notice);
            }
        }
    }

    /// Takes over the result of an attempt.
    fn complete(&mut self, context: &Context, names: &[String], outcome: Outcome, on_notice: &mut OnNotice) {
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
        slot.unsaved = outcome.unsaved;
        if let Some(record) = outcome.record {
            slot.record = record;
        }
        if let Some(pair) = outcome.pair {
            slot.version = context.storage.certificates.version(&format!("{id}.pem")).unwrap_or(slot.version);
            let is_known = |known: &Pair| known.facts() == pair.facts();
            if !slot.pair.as_ref().is_some_and(is_known) {
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
        slot.due = outcome.again_at.unwrap_or(slot.due);
        slot.show(context);
    }

    /// Repeats attempts later that ended without a result: by a panic.
    fn recover(&mut self, now: u64) {
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
        let facts = self.pair.as_ref().map(Pair::facts);
        let directory = context.options.directory.url();
        self.due = self.record.check_at(facts, &self.names, directory);
    }

    /// Publishes the status.
    fn show(&self, context: &Context) {
        let facts = self.pair.as_ref().map(Pair::facts);
        let directory = context.options.directory.url();
        let state = match facts {
            _ if self.running.is_some() => State::Ordering,
            None => State::Missing,
            Some(facts) if facts.not_after <= context.now() => State::Expired,
            Some(_) => State::Valid,
        };
        let status = Status {
            names: self.names.clone(),
            state,
            not_before: facts.map(|facts| facts.not_before),
            not_after: facts.map(|facts| facts.not_after),
            next_attempt: self.record.order_at(facts, &self.names, directory),
            failure: self.record.failure.clone(),
            order: self.record.order.as_ref().map(|order| order.url.clone()),
            attempts: self.attempts,
        };
        context.board.lock().insert(self.names[0].clone(), status);
    }
}

/// The state of the control thread.
struct Control {
    context: Rc<Context>,
    slots: Slots,
    received: mpsc::Receiver<Command>,
    on_notice: Box<OnNotice>,
}

impl Control {
    fn run(mut self) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(2).build();
        match runtime {
            Ok(runtime) => {
                LocalSet::new().block_on(&runtime, self.work());
                // A lookup of a name that hangs must not delay a stop.
                runtime.shutdown_background();
            }
            Err(error) => (self.on_notice)(Notice::Failed(Failure::new(
                format!("cannot obtain certificates: {error}"),
                "raise the limits of open files and threads, and restart",
            ))),
        }
    }

    async fn work(&mut self) {
        let mut attempts: JoinSet<(Vec<String>, Outcome)> = JoinSet::new();
        let mut paused_until = 0;
        let mut polled_at = self.context.now();
        loop {
            let now = self.context.now();
            // A clock that was set back must not stop the polls.
            if now >= polled_at + STORAGE_POLL_SECONDS || now < polled_at {
                self.slots.poll(&self.context, &mut *self.on_notice);
                polled_at = now;
            }
            let next = self.begin_attempts(&mut attempts, now, paused_until);
            let wait = next.min(polled_at + STORAGE_POLL_SECONDS).saturating_sub(now).max(1);
            tokio::select! {
                command = self.received.recv() => match command {
                    Some(Command::Renew(id)) => if let Some(slot) = self.slots.slots.get_mut(&id) { slot.is_forced = true },
                    Some(Command::SetCertificates(certificates)) => {
                        self.slots.set(&self.context, certificates, &mut *self.on_notice);
                    }
                    // Leases and challenges are released as the attempts are dropped.
                    Some(Command::Stop) | None => return attempts.shutdown().await,
                },
                Some(ended) = attempts.join_next() => match ended {
                    Ok((names, outcome)) => {
                        if outcome.failure.as_ref().is_some_and(|failure| failure.scope == Scope::Authority) {
                            paused_until = self.context.now() + CA_PAUSE_SECONDS;
                        }
                        self.slots.complete(&self.context, &names, outcome, &mut *self.on_notice);
                    }
                    Err(_) => self.slots.recover(self.context.now()),
                },
                () = tokio::time::sleep(Duration::from_secs(wait)) => {}
            }
        }
    }

    /// Begins the attempts that are due, as many as may run at once. Returns the Unix time of the next one.
    fn begin_attempts(
        &mut self,
        attempts: &mut JoinSet<(Vec<String>, Outcome)>,
        now: u64,
        paused_until: u64,
    ) -> u64 {
        let mut next = u64::MAX;
        for slot in self.slots.slots.values_mut() {
            let due = if slot.is_forced { 0 } else { slot.due.max(paused_until) };
            if slot.running.is_some() || slot.unsaved.is_some() {
                continue;
            }
            if due > now || attempts.len() >= ORDERS_AT_ONCE_MAX {
                next = next.min(due);
                continue;
            }
            let (context, names) = (Rc::clone(&self.context), slot.names.clone());
            let is_forced = std::mem::take(&mut slot.is_forced);
            slot.running = Some(attempts.spawn_local(async move {
                let outcome = Attempt { context: &context, names: &names, is_forced }.run().await;
                (names, outcome)
            }));
            slot.show(&self.context);
        }
        next
    }
}

#[cfg(test)]
mod tests;
