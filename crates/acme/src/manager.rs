//! The control thread: one task for each certificate, and one that copies challenges.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use tokio::time::{MissedTickBehavior, interval};

use crate::challenges::Challenges;
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::keeper::Keeper;
use crate::limits::{CHALLENGE_POLL_SECONDS, ORDERS_AT_ONCE_MAX};
use crate::names;
use crate::options::Options;
use crate::status::{Board, Notice, Status};
use crate::storage::Storage;

/// Interval at which certificates whose task has panicked are taken up again.
const RESTART: Duration = Duration::from_secs(3600);

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
        on_notice: impl FnMut(Notice) + Send + 'static,
    ) -> Result<Handle, Failure> {
        options.check()?;
        let storage = Arc::new(Storage::open(&options.storage)?);
        storage.remove_leftovers(options.clock.now());
        let client = Client::new(options.ca.as_deref(), options.clock.clone())?;
        let challenges = Arc::new(Challenges::new(Arc::clone(&storage), options.clock.clone()));
        let board = Arc::new(Board::default());
        let certificates = options.certificates.clone();
        let context = Context {
            random: RefCell::new(options.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed)),
            options,
            storage,
            challenges: Arc::clone(&challenges),
            client,
            board: Arc::clone(&board),
            on_notice: RefCell::new(Box::new(on_notice)),
            attempts: Semaphore::new(ORDERS_AT_ONCE_MAX),
            paused_until: Cell::default(),
            machine_help: RefCell::default(),
        };
        // The first pass over the storage is made here, so that a server begins with its certificates.
        let keepers = certificates.iter().map(|names| Keeper::open(&context, names.clone())).collect();
        let (commands, received) = watch::channel(Command::Keep(certificates));
        let thread = thread::Builder::new()
            .name("acme".to_owned())
            .spawn(move || run(context, keepers, received))
            .map_err(|error| {
                let message = format!("cannot start a thread: {error}");
                Failure::new(message, "raise the limit of processes and threads")
            })?;
        Ok(Handle { commands, challenges, board, thread: Mutex::new(Some(thread)) })
    }
}

/// A command to the thread. Only the latest one is kept. Each one also wakes every task.
#[derive(Debug)]
pub(crate) enum Command {
    /// Keep these certificates.
    Keep(Vec<Vec<String>>),
    Stop,
}

/// Controls a running manager. Dropping it stops the manager.
pub struct Handle {
    commands: watch::Sender<Command>,
    challenges: Arc<Challenges>,
    board: Arc<Board>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Handle {
    /// Returns the status of each certificate.
    #[must_use]
    pub fn status(&self) -> Vec<Status> {
        self.board.lock().values().map(|entry| entry.status.clone()).collect()
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
        let waited = self.board.changed.wait_timeout_while(self.board.lock(), timeout, |entries| {
            let mut all = entries.values().map(|entry| &entry.status);
            found = look(all.find(|status| status.names.iter().any(|known| known == name)));
            found.is_none()
        });
        drop(waited);
        found
    }

    /// Orders the certificate of a name now. Only a CA's `Retry-After` still delays it. Returns the order's number: it has
    /// ended once [`Status::renewals`] has reached that. See [`Self::wait_for`].
    ///
    /// # Errors
    /// Fails if no certificate has the name.
    pub fn renew(&self, name: &str) -> Result<u64, Failure> {
        let mut entries = self.board.lock();
        let entry = entries.values_mut().find(|entry| entry.status.names.iter().any(|known| known == name));
        let Some(entry) = entry else {
            return Err(Failure::new(
                format!("no certificate for {name} is managed here"),
                "list the names with their certificates",
            ));
        };
        entry.renewals_asked += 1;
        let number = entry.renewals_asked;
        drop(entries);
        self.commands.send_modify(|_| {});
        Ok(number)
    }

    /// Replaces the list of certificates, for a reload. Those whose names stay are kept.
    ///
    /// # Errors
    /// Fails if a name is invalid or listed twice; then nothing changes.
    pub fn set_certificates(&self, certificates: Vec<Vec<String>>) -> Result<(), Failure> {
        names::check(&certificates)?;
        self.commands.send_if_modified(|command| {
            let is_running = !matches!(command, Command::Stop);
            if is_running {
                *command = Command::Keep(certificates);
            }
            is_running
        });
        Ok(())
    }

    /// Returns the challenges that the server must serve. They may outlive this handle.
    #[must_use]
    pub fn challenges(&self) -> Arc<Challenges> {
        Arc::clone(&self.challenges)
    }

    /// Stops the thread, and releases its locks. Orders in progress are interrupted; the next start resumes them.
    pub fn stop(&self) {
        self.commands.send_replace(Command::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The thread itself may drop its handle last.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            drop(thread.join());
        }
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

/// Runs the thread until the command to stop.
fn run(context: Context, keepers: Vec<Keeper>, received: watch::Receiver<Command>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(2).build();
    match runtime {
        Ok(runtime) => {
            let tasks = LocalSet::new();
            tasks.block_on(&runtime, control(Rc::new(context), keepers, received));
            // The tasks release their locks and challenges.
            drop(tasks);
            // A lookup of a name that hangs must not delay a stop.
            runtime.shutdown_background();
        }
        Err(error) => context.notify(Notice::Failed(Failure::new(
            format!("cannot obtain certificates: {error}"),
            "raise the limits of open files and threads, and restart",
        ))),
    }
}

/// Keeps a task for each certificate of the list, and copies challenges.
async fn control(context: Rc<Context>, keepers: Vec<Keeper>, mut received: watch::Receiver<Command>) {
    let commands = received.clone();
    let start = |keeper: Keeper| {
        let names = keeper.names().to_owned();
        let task = spawn_local(keeper.run(Rc::clone(&context), commands.clone()));
        (names, task.abort_handle())
    };
    let mut tasks: HashMap<Vec<String>, AbortHandle> = keepers.into_iter().map(start).collect();
    let mut challenges = interval(Duration::from_secs(CHALLENGE_POLL_SECONDS));
    challenges.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut check = interval(RESTART);
    loop {
        tokio::select! {
            changed = received.changed() => {
                let certificates = match &*received.borrow_and_update() {
                    Command::Keep(certificates) if changed.is_ok() => certificates.clone(),
                    _ => return,
                };
                for (_, task) in tasks.extract_if(|names, _| !certificates.contains(names)) {
                    task.abort();
                }
                context.board.lock().retain(|_, entry| tasks.contains_key(&entry.status.names));
                for names in certificates {
                    if !tasks.contains_key(&names) {
                        tasks.extend([start(Keeper::open(&context, names))]);
                    }
                }
                context.board.changed.notify_all();
            }
            // A storage that fails is reported by the attempts.
            _ = challenges.tick() => drop(context.challenges.refresh()),
            // A task ends only by a panic.
            _ = check.tick() => for (names, task) in &mut tasks {
                if task.is_finished() {
                    *task = start(Keeper::open(&context, names.clone())).1;
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
