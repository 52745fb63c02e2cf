//! The addresses of a running server, and their changes.
//!
//! The operator's thread binds new addresses, then stores each worker's changes beside their number, and wakes the
//! workers and the acceptor. Each compares the number with that of its last change when it was woken, as with
//! [reloads](crate::server::reload). A thread that has closed a removed listener notes it here.

use std::fmt;
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
use crate::server::binding::{Binding, Bound, Entry, Holder, is_only_v6};
use crate::server::control::Control;
use crate::server::start::StartError;

/// Addresses of a server: which it has, and what its threads have still to change.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// Number of the latest change; 0 if there was none.
    number: AtomicU64,
    state: Mutex<ListeningState>,
    /// A thread has taken its changes or closed a removed listener, or the server ends.
    progressed: Condvar,
    /// Held while a change is prepared and applied.
    pub(crate) changing: Mutex<()>,
}

#[derive(Debug, Default)]
struct ListeningState {
    /// `None` for workers that were started one by one: they have no addresses to change.
    binding: Option<Binding>,
    entries: Vec<Entry>,
    /// Changes to be taken by each worker.
    of_workers: Vec<Vec<ListenerChange>>,
    /// Changes to be taken by the acceptor.
    of_acceptor: Vec<ListenerChange>,
    /// Removed listeners and the threads that have yet to close theirs.
    closing: Vec<(ListenerId, Vec<Holder>)>,
    /// Listeners that another process of this server still accepts from.
    held: Vec<(Holder, Listener)>,
    last_id: ListenerId,
    is_ending: bool,
    /// Another process has the sockets, and serves.
    is_passed: bool,
    /// That process, unless it has ended.
    successor: Option<u32>,
}

impl Listening {
    fn lock(&self) -> MutexGuard<'_, ListeningState> {
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
    fn wait_until(&self, patience: Duration, is_finished: impl Fn(&ListeningState) -> bool) -> bool {
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

/// Returns the first number after `last` that no listener has. A number comes again as late as possible, because
/// connections of a removed listener may still have it.
fn free_id<'a>(
    last: ListenerId,
    taken: &(impl Iterator<Item = &'a Entry> + Clone),
) -> Result<ListenerId, StartError> {
    let after =
        (1..=u32::from(ListenerId::MAX)).map(|step| (u32::from(last) + step) % u32::from(ListenerId::MAX));
    let after = after.map(|id| id as ListenerId);
    let mut free = after.filter(|id| !taken.clone().any(|entry| entry.id == *id));
    free.next().ok_or(StartError::TooManyAddresses)
}

/// Names a listener of the server's own, about to be removed, that keeps `wanted` from being bound.
fn refine(error: StartError, wanted: &ListenAddress, removed: &[Entry]) -> StartError {
    let is_taken = matches!(&error, StartError::Bind { error, .. } if error.kind() == ErrorKind::AddrInUse);
    let ListenAddress::Tcp(address) = wanted else { return error };
    let overlaps = |bound: &SocketAddr| {
        bound.port() == address.port() && (bound.ip().is_unspecified() || address.ip().is_unspecified())
    };
    let found = removed.iter().find(|entry| matches!(&entry.bound, BoundAddress::Tcp(it) if overlaps(it)));
    let Some(own) = found.filter(|_| is_taken) else { return error };
    let message = format!("this server's {} overlaps with it; help: restart the server", own.bound);
    StartError::Bind { address: wanted.clone(), error: io::Error::other(message) }
}

/// A change of a running server's addresses that is ready: see [`Control::prepare_addresses`].
///
/// Dropping it changes nothing, and closes the new listeners. Another change waits meanwhile.
#[must_use = "dropping it changes nothing"]
pub struct AddressChange<'a> {
    control: &'a Control,
    bound: Bound,
    removed: Vec<Entry>,
    /// Unix-domain sockets that get another mode.
    modes: Vec<(ListenerId, ListenAddress)>,
    _changing: MutexGuard<'a, ()>,
}

impl fmt::Debug for AddressChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (added, removed) = (self.added(), self.removed());
        f.debug_struct("AddressChange").field("added", &added).field("removed", &removed).finish()
    }
}

impl<'a> AddressChange<'a> {
    /// Returns the new addresses, with the ports that were assigned.
    #[must_use]
    pub fn added(&self) -> Vec<String> {
        self.bound.entries.iter().map(|entry| entry.bound.to_string()).collect()
    }

    /// Returns the addresses on which the server will no longer listen.
    #[must_use]
    pub fn removed(&self) -> Vec<String> {
        self.removed.iter().map(|entry| entry.bound.to_string()).collect()
    }

    /// Has the server accept on the new addresses, and close those that are gone. Sets the modes of Unix-domain sockets
    /// that stay: see [`AddressesChanging::failed_modes`].
    ///
    /// Returns before the workers have done so: see [`AddressesChanging::wait`].
    #[expect(clippy::must_use_candidate, reason = "the change happens without a wait for it")]
    pub fn apply(self) -> AddressesChanging<'a> {
        let Self { control, bound, removed, modes, _changing } = self;
        let listening = &control.listening;
        let failed_modes =
            modes.iter().filter_map(|(id, wanted)| listening.change_mode(*id, wanted).err()).collect();
        let which: Vec<_> = removed.iter().map(|entry| entry.id).collect();
        let mut state = listening.lock();
        let Bound { entries, of_workers, of_acceptor, .. } = bound;
        for (changes, mut listeners) in state.of_workers.iter_mut().zip(of_workers) {
            for entry in &entries {
                let index = listeners.iter().position(|listener| listener.id() == entry.id);
                let listener = index.map(|index| listeners.swap_remove(index));
                changes.push(ListenerChange::Add(entry.id, listener));
            }
            changes.extend(which.iter().map(|id| ListenerChange::Remove(*id)));
        }
        let add = |listener: Listener| ListenerChange::Add(listener.id(), Some(listener));
        if state.binding.is_some_and(|binding| binding.has_acceptor) {
            state.of_acceptor.extend(of_acceptor.into_iter().map(add));
            state.of_acceptor.extend(which.iter().map(|id| ListenerChange::Remove(*id)));
        }
        state.entries.retain(|entry| !which.contains(&entry.id));
        state.entries.extend(entries);
        state.closing.extend(removed.into_iter().map(|entry| (entry.id, entry.holders)));
        listening.number.fetch_add(1, Ordering::Release);
        drop(state);
        control.wake();
        AddressesChanging { control, which, failed_modes }
    }
}

/// A change of addresses in progress. Dropping it changes nothing.
#[derive(Debug)]
pub struct AddressesChanging<'a> {
    control: &'a Control,
    which: Vec<ListenerId>,
    failed_modes: Vec<(PathBuf, io::Error)>,
}

impl AddressesChanging<'_> {
    /// Returns the Unix-domain sockets that keep their mode, with the reasons: a file is gone, for example.
    #[must_use]
    pub fn failed_modes(&self) -> &[(PathBuf, io::Error)] {
        &self.failed_modes
    }

    /// Waits until all workers accept on the new addresses, and the removed ones are closed: their queues are empty,
    /// and no connection is accepted there any more. Open connections may still be there.
    ///
    /// Returns false after `patience`, for example while a handler blocks a worker.
    #[must_use]
    pub fn wait(&self, patience: Duration) -> bool {
        let is_closed = |state: &ListeningState| {
            let is_taken = state.of_acceptor.is_empty() && state.of_workers.iter().all(Vec::is_empty);
            is_taken && !state.closing.iter().any(|(id, _)| self.which.contains(id))
        };
        self.control.listening.wait_until(patience, is_closed)
    }
}

impl Control {
    /// Has a running server listen on these addresses from now on, and no longer on others.
    ///
    /// Short for [`prepare_addresses`](Self::prepare_addresses) and [`AddressChange::apply`].
    ///
    /// # Errors
    /// Those of [`prepare_addresses`](Self::prepare_addresses). Nothing has changed then.
    pub fn change_addresses(&self, addresses: &[ListenAddress]) -> Result<AddressesChanging<'_>, StartError> {
        self.prepare_addresses(addresses).map(AddressChange::apply)
    }

    /// Binds those of these addresses on which the server doesn't listen yet. [`AddressChange::apply`] accepts on them,
    /// and closes the others.
    ///
    /// - An address on which the server listens keeps its sockets, and their queues. Port 0 is such an address if the
    ///   server listens on a port that was assigned for it. A Unix-domain socket gets the new mode.
    /// - Sockets that were listening already when the server started ([`ListeningSocket`](crate::ListeningSocket))
    ///   stay.
    /// - A removed address accepts the connections in its queue, for at least 500 ms those whose handshake has begun
    ///   (on Linux), and is closed then. The file of a Unix-domain socket is removed at once.
    /// - Open connections of a removed address end as in a drain: with the response to their present request, or after
    ///   [`drain_idle_ms`](crate::Timeouts::drain_idle_ms). Long responses end in their own time, and upgraded
    ///   connections belong to the program.
    /// - New listeners have the options of those at the start, such as the length of their queue. Without an acceptor,
    ///   several workers all wait on a new Unix-domain socket.
    ///
    /// Waits up to 5 s for the end of an earlier change: a removed address can be bound again only when it is closed.
    /// While [`PassingListeners`](crate::PassingListeners) exist, it waits for them first.
    ///
    /// # Errors
    /// [`StartError::Bind`], [`StartError::NoAddress`], [`StartError::TooManyAddresses`], [`StartError::Unfinished`]
    /// after the wait, and [`StartError::Ending`] after a drain or stop has been ordered, or another process has got
    /// the listeners. Nothing has changed then.
    pub fn prepare_addresses(&self, addresses: &[ListenAddress]) -> Result<AddressChange<'_>, StartError> {
        let changing = self.listening.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.listening.await_settled()?;
        let state = self.listening.lock();
        let Some(binding) = state.binding.filter(|_| !state.is_ending) else {
            return Err(StartError::Ending);
        };
        let (entries, mut last_id) = (state.entries.clone(), state.last_id);
        // Workers need it to go on, and binding is work of the kernel. `changing` keeps other changes away.
        drop(state);
        let mut removed = entries.clone();
        removed.retain(|entry| entry.wanted.is_some());
        if addresses.is_empty() && removed.len() == entries.len() {
            return Err(StartError::NoAddress);
        }
        let mut new = Vec::new();
        let mut modes = Vec::new();
        for wanted in addresses {
            let is_it = |entry: &Entry| entry.wanted.as_ref().is_some_and(|had| had.is_same_socket(wanted));
            let Some(index) = removed.iter().position(is_it) else {
                new.push(wanted);
                continue;
            };
            let kept = removed.swap_remove(index);
            if kept.only_v6 != is_only_v6(wanted, addresses) {
                return Err(family_is_fixed(kept.only_v6, wanted));
            }
            if kept.wanted.as_ref() != Some(wanted) {
                modes.push((kept.id, wanted.clone()));
            }
        }
        removed.sort_by_key(|entry| entries.iter().position(|other| other.id == entry.id));
        let mut bound = Bound::new(binding);
        for wanted in new {
            last_id = free_id(last_id, &entries.iter().chain(&bound.entries))?;
            let result = bound.bind(wanted, last_id, is_only_v6(wanted, addresses));
            result.map_err(|error| refine(error, wanted, &removed))?;
        }
        self.listening.lock().last_id = last_id;
        Ok(AddressChange { control: self, bound, removed, modes, _changing: changing })
    }

    /// Has a worker that was made by [`Worker::new`](crate::Worker::new) accept on further listeners, and close those
    /// with these numbers. Their connections end as those of a removed address.
    ///
    /// For programs that make their own workers and drivers; a [`Server`](crate::Server) numbers its listeners itself.
    pub fn change_listeners(&self, worker: usize, added: Vec<Listener>, removed: &[ListenerId]) {
        let mut state = self.listening.lock();
        let workers = state.of_workers.len().max(worker + 1);
        state.of_workers.resize_with(workers, Vec::new);
        let changes = &mut state.of_workers[worker];
        changes.extend(removed.iter().map(|id| ListenerChange::Remove(*id)));
        changes.extend(added.into_iter().map(|listener| ListenerChange::Add(listener.id(), Some(listener))));
        self.listening.number.fetch_add(1, Ordering::Release);
        drop(state);
        self.wake();
    }

    /// Returns the addresses on which the server listens: URLs' authorities, or `unix:` and a path.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        self.listening.lock().entries.iter().map(|entry| entry.bound.to_string()).collect()
    }
}

impl Listening {
    /// Sets another mode of a Unix-domain socket.
    fn change_mode(&self, id: ListenerId, wanted: &ListenAddress) -> Result<(), (PathBuf, io::Error)> {
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

/// `[::]` takes IPv4 or doesn't from the time when it is bound.
pub(crate) fn family_is_fixed(only_v6: bool, wanted: &ListenAddress) -> StartError {
    let how = if only_v6 { "takes no IPv4 connections" } else { "takes IPv4 connections, too" };
    let message = format!("it {how}, which can't change while it is open; help: restart the server");
    StartError::Bind { address: wanted.clone(), error: io::Error::other(message) }
}

/// The TCP addresses and Unix-domain sockets of a start.
pub(crate) fn by_kind(entries: &[Entry]) -> (Vec<SocketAddr>, Vec<PathBuf>) {
    let mut kinds = (Vec::new(), Vec::new());
    for entry in entries {
        match &entry.bound {
            BoundAddress::Tcp(address) => kinds.0.push(*address),
            BoundAddress::Unix(path) => kinds.1.extend(path.clone()),
        }
    }
    kinds
}
