//! The control thread: decides which certificates are worked on, and publishes them.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::MissedTickBehavior;

use crate::attempt::{Attempt, Outcome};
use crate::challenges::Challenges;
use crate::client::Client;
use crate::context::{Board, Context, Status};
use crate::failure::{Failure, Scope};
use crate::lease::Owner;
use crate::limits::{
    CA_PAUSE_SECONDS, CHALLENGE_POLL_SECONDS, COMMANDS_MAX, ORDERS_AT_ONCE_MAX, STORAGE_POLL_SECONDS,
};
use crate::names;
use crate::options::Options;
use crate::slots::{Notice, OnNotice, Slots};
use crate::storage::Storage;

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
        let client = Client::new(options.ca.as_deref(), options.clock.clone())?;
        let challenges = Arc::new(Challenges::new(Arc::clone(&storage), options.clock.clone()));
        let board = Arc::new(Board::default());
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let random = options.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let mut handle = Handle {
            commands,
            challenges: Arc::clone(&challenges),
            board: Arc::clone(&board),
            changed: Arc::default(),
            stop: Arc::default(),
            thread: Mutex::default(),
        };
        let (certificates, owner) = (options.certificates.clone(), Owner::current());
        let random = RefCell::new(random);
        let context = Context { options, storage, challenges, client, owner, board, random };
        // The first pass over the storage is made here, so that a server begins with its certificates.
        let mut slots = Slots::default();
        slots.set(&context, certificates, &mut on_notice);
        let (changed, stop) = (Arc::clone(&handle.changed), Arc::clone(&handle.stop));
        let thread = thread::Builder::new().name("acme".to_owned()).spawn(move || {
            let (context, on_notice) = (Rc::new(context), Box::new(on_notice));
            Control { context, slots, received, changed, stop, on_notice }.run();
        });
        let thread = thread.map_err(|error| {
            Failure::new(
                format!("cannot start a thread: {error}"),
                "raise the limit of processes and threads",
            )
        })?;
        handle.thread = Mutex::new(Some(thread));
        Ok(handle)
    }
}

/// Controls a running manager. Dropping it stops the manager.
pub struct Handle {
    commands: mpsc::Sender<Command>,
    challenges: Arc<Challenges>,
    board: Arc<Board>,
    /// Notified after changes of the board that [`Self::wait_for`] waits for.
    changed: Arc<Condvar>,
    stop: Arc<Notify>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Command {
    Renew(String),
    SetCertificates(Vec<Vec<String>>),
}

impl Handle {
    /// Returns the status of each certificate.
    #[must_use]
    pub fn status(&self) -> Vec<Status> {
        self.board.lock().values().cloned().collect()
    }

    /// Waits until `look` finds something in the status of a name's certificate; its argument is `None` if there is no
    /// certificate with the name. Returns `None` after the timeout.
    ///
    /// It looks again when an attempt has ended and when the list of certificates has changed.
    pub fn wait_for<T>(
        &self,
        name: &str,
        timeout: Duration,
        mut look: impl FnMut(Option<&Status>) -> Option<T>,
    ) -> Option<T> {
        let mut found = None;
        let waited = self.changed.wait_timeout_while(self.board.lock(), timeout, |board| {
            let has_name = |status: &&Status| status.names.iter().any(|known| known == name);
            found = look(board.values().find(has_name));
            found.is_none()
        });
        drop(waited);
        found
    }

    /// Orders the certificate of a name now. Only a CA's `Retry-After` still delays it. The result is in [`Status`], whose
    /// `renewals` grows then: see [`Self::wait_for`].
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
        names::check(&certificates)?;
        self.send(Command::SetCertificates(certificates))
    }

    /// Returns the challenges that the server must serve. They may outlive this handle.
    #[must_use]
    pub fn challenges(&self) -> Arc<Challenges> {
        Arc::clone(&self.challenges)
    }

    /// Stops the thread, and releases its leases. Orders in progress are interrupted; the next start resumes them.
    pub fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The thread itself may drop its handle last: then it ends when it finds the channel closed.
        let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) else {
            return;
        };
        self.stop.notify_one();
        drop(thread.join());
    }

    fn send(&self, command: Command) -> Result<(), Failure> {
        self.commands.try_send(command).map_err(|_| {
            Failure::new(
                format!("more than {COMMANDS_MAX} commands wait for the control thread"),
                "try again later",
            )
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Handle").field("status", &self.status()).finish_non_exhaustive()
    }
}

/// The state of the control thread.
struct Control {
    context: Rc<Context>,
    slots: Slots,
    received: mpsc::Receiver<Command>,
    changed: Arc<Condvar>,
    stop: Arc<Notify>,
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
        let mut challenges = tokio::time::interval(Duration::from_secs(CHALLENGE_POLL_SECONDS));
        challenges.set_missed_tick_behavior(MissedTickBehavior::Delay);
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
                    Some(Command::Renew(id)) => if let Some(slot) = self.slots.slots.get_mut(&id) { (slot.is_forced, slot.due) = (true, 0) },
                    Some(Command::SetCertificates(certificates)) => {
                        self.slots.set(&self.context, certificates, &mut *self.on_notice);
                        self.changed.notify_all();
                    }
                    None => return attempts.shutdown().await,
                },
                // Leases and challenges are released as the attempts are dropped.
                () = self.stop.notified() => return attempts.shutdown().await,
                Some(ended) = attempts.join_next() => match ended {
                    Ok((names, outcome)) => {
                        if outcome.failure.as_ref().is_some_and(|failure| failure.scope == Scope::Authority) {
                            paused_until = self.context.now() + CA_PAUSE_SECONDS;
                        }
                        self.slots.complete(&self.context, &names, outcome, &mut *self.on_notice);
                        self.changed.notify_all();
                    }
                    Err(_) => self.slots.recover(self.context.now()),
                },
                // A storage that fails is reported by the attempts.
                _ = challenges.tick() => drop(self.context.challenges.refresh()),
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
            let due = if slot.is_forced { slot.due } else { slot.due.max(paused_until) };
            if slot.running.is_some() {
                continue;
            }
            if due > now || attempts.len() >= ORDERS_AT_ONCE_MAX {
                next = next.min(due);
                continue;
            }
            let (context, names) = (Rc::clone(&self.context), slot.names.clone());
            let is_forced = std::mem::take(&mut slot.is_forced);
            slot.is_renewing = is_forced;
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
pub(crate) mod tests;
