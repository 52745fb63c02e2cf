//! The addresses of a running server, and their changes.
//!
//! The operator's thread binds new addresses, then stores each worker's changes beside their number, and wakes the
//! workers and the acceptor. Each compares the number with that of its last change when it was woken, as with
//! [reloads](crate::server::reload). A thread that has closed a removed listener notes it here.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shearwater_io::{Listener, ListenerId, listen};

use crate::leaving::ListenerChange;
use crate::limits::ADDRESSES_WAIT_MS;
use crate::server::addresses::{BoundAddress, ListenAddress};
use crate::server::binding::{Binding, Entry, Holder};
use crate::server::start_error::StartError;

/// Addresses of a server: which it has, and what its threads have still to change.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// Number of the latest change; 0 if there was none.
    pub(crate) number: AtomicU64,
    state: Mutex<ListeningState>,
    /// A thread has taken its changes or closed a removed listener, or the server ends.
    progressed: Condvar,
    /// Held while a change is prepared and applied.
    pub(crate) changing: Mutex<()>,
}

#[derive(Debug, Default)]
pub(crate) struct ListeningState {
    /// `None` for workers that were started one by one: they have no addresses to change.
    pub(crate) binding: Option<Binding>,
    pub(crate) entries: Vec<Entry>,
    /// Changes to be taken by each worker.
    pub(crate) of_workers: Vec<Vec<ListenerChange>>,
    /// Changes to be taken by the acceptor.
    pub(crate) of_acceptor: Vec<ListenerChange>,
    /// Removed listeners and the threads that have yet to close theirs.
    pub(crate) closing: Vec<(ListenerId, Vec<Holder>)>,
    /// Listeners that another process of this server still accepts from.
    pub(crate) held: Vec<(Holder, Listener)>,
    pub(crate) last_id: ListenerId,
    pub(crate) is_ending: bool,
    /// Another process has the sockets, and serves.
    pub(crate) is_passed: bool,
    /// That process, unless it has ended.
    pub(crate) successor: Option<u32>,
}

impl Listening {
    pub(crate) fn lock(&self) -> MutexGuard<'_, ListeningState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the addresses of a server that is about to start.
    pub(crate) fn begin(&self, binding: Binding, entries: Vec<Entry>, held: Vec<(Holder, Listener)>) {
        let mut state = self.lock();
        state.held = held;
        state.of_workers = (0..binding.workers).map(|_| Vec::new()).collect();
        state.last_id = entries.iter().map(|entry| entry.id).max().unwrap_or(0);
        (state.binding, state.entries) = (Some(binding), entries);
    }

    /// Returns the number of the latest change.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Takes the changes of a thread, and notes their number.
    pub(crate) fn take(&self, holder: Holder, number: &mut u64) -> Vec<ListenerChange> {
        let mut state = self.lock();
        *number = self.number.load(Ordering::Relaxed);
        let changes = match holder {
            None => std::mem::take(&mut state.of_acceptor),
            Some(worker) => state.of_workers.get_mut(worker).map(std::mem::take).unwrap_or_default(),
        };
        drop(state);
        self.progressed.notify_all();
        changes
    }

    /// Notes that a thread has closed its listener of this number.
    pub(crate) fn closed(&self, listener: ListenerId, holder: Holder) {
        let mut state = self.lock();
        for (_, holders) in state.closing.iter_mut().filter(|(id, _)| *id == listener) {
            // A thread may have several sockets of one address.
            if let Some(index) = holders.iter().position(|other| *other == holder) {
                holders.swap_remove(index);
            }
        }
        state.closing.retain(|(_, holders)| !holders.is_empty());
        drop(state);
        self.progressed.notify_all();
    }

    /// Notes that a drain or stop has been ordered: nobody needs to wait for a change.
    pub(crate) fn end(&self) {
        self.lock().is_ending = true;
        self.progressed.notify_all();
    }

    /// Returns a copy of the addresses.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.lock().entries.clone()
    }

    /// Returns the listeners whose connections begin with TLS.
    pub(crate) fn secure_listeners(&self) -> Vec<ListenerId> {
        self.lock().entries.iter().filter(|entry| entry.is_secure).map(|entry| entry.id).collect()
    }

    /// Notes that another process serves at the addresses.
    pub(crate) fn set_passed(&self, successor: u32) {
        let mut state = self.lock();
        (state.is_passed, state.successor) = (true, Some(successor));
    }

    /// Notes the end of that process.
    pub(crate) fn forget_successor(&self) {
        self.lock().successor = None;
    }

    pub(crate) fn successor(&self) -> Option<u32> {
        self.lock().successor
    }

    pub(crate) fn has_passed(&self) -> bool {
        self.lock().is_passed
    }

    /// Orders the threads to accept from listeners of another process. Returns the first error of setting their
    /// options.
    pub(crate) fn release_held(&self) -> io::Result<()> {
        let mut state = self.lock();
        let Some(options) = state.binding.map(|binding| binding.listen_options()) else { return Ok(()) };
        let mut result = Ok(());
        for (holder, listener) in std::mem::take(&mut state.held) {
            result = result.and(listen::reconfigure(&listener, options));
            let changes = match holder {
                Some(worker) => &mut state.of_workers[worker],
                None => &mut state.of_acceptor,
            };
            changes.push(ListenerChange::Add(listener.id(), Some(listener)));
        }
        self.number.fetch_add(1, Ordering::Release);
        result
    }

    /// Waits until earlier changes are settled. Fails if they don't in time, or the addresses may not change any more.
    pub(crate) fn await_settled(&self) -> Result<(), StartError> {
        let patience = Duration::from_millis(ADDRESSES_WAIT_MS);
        if !self.wait_until(patience, ListeningState::is_settled) {
            return Err(StartError::Unfinished);
        }
        let state = self.lock();
        if state.is_ending || state.is_passed { Err(StartError::Ending) } else { Ok(()) }
    }

    /// Returns the address of a listener, or its number where the address is unknown.
    pub(crate) fn address_of(&self, listener: ListenerId) -> String {
        let state = self.lock();
        let known = state.entries.iter().find(|entry| entry.id == listener);
        known.map_or_else(|| format!("listener {listener}"), |entry| entry.bound.to_string())
    }

    /// Waits until `is_finished` or the server ends. Returns false after `patience`.
    pub(crate) fn wait_until(
        &self,
        patience: Duration,
        is_finished: impl Fn(&ListeningState) -> bool,
    ) -> bool {
        let is_unfinished = |state: &mut ListeningState| !state.is_ending && !is_finished(state);
        let waited = self.progressed.wait_timeout_while(self.lock(), patience, is_unfinished);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !is_unfinished(&mut state)
    }
}

impl ListeningState {
    /// Returns whether every thread has taken its changes and closed the listeners that were removed.
    fn is_settled(&self) -> bool {
        let is_taken = self.of_acceptor.is_empty() && self.of_workers.iter().all(Vec::is_empty);
        is_taken && self.closing.is_empty() && self.held.is_empty()
    }
}

impl Listening {
    /// Sets another mode of a Unix-domain socket.
    pub(crate) fn change_mode(
        &self,
        id: ListenerId,
        wanted: &ListenAddress,
    ) -> Result<(), (PathBuf, io::Error)> {
        let file = self.lock().entries.iter().find(|entry| entry.id == id).and_then(Entry::file);
        if let ListenAddress::Unix { path, mode } = wanted {
            let file = file.ok_or_else(|| ErrorKind::NotFound.into());
            let set = file.and_then(|file| listen::set_mode(path, file, *mode));
            set.map_err(|error| (path.clone(), error))?;
        }
        for entry in self.lock().entries.iter_mut().filter(|entry| entry.id == id) {
            entry.wanted = Some(wanted.clone());
        }
        Ok(())
    }
}

/// The TCP addresses and Unix-domain sockets of a start.
pub(crate) fn by_kind<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> (Vec<SocketAddr>, Vec<PathBuf>) {
    let mut kinds = (Vec::new(), Vec::new());
    for entry in entries {
        match &entry.bound {
            BoundAddress::Tcp(address) => kinds.0.push(*address),
            BoundAddress::Unix(path) => kinds.1.extend(path.clone()),
        }
    }
    kinds
}

/// Returns the TCP addresses whose connections begin with TLS.
pub(crate) fn secure_addresses(entries: &[Entry]) -> Vec<SocketAddr> {
    by_kind(entries.iter().filter(|entry| entry.is_secure)).0
}
