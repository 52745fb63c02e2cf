//! Changes of a running server's addresses.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use shearwater_io::{Listener, ListenerId};

use crate::leaving::ListenerChange;
use crate::server::addresses::{BoundAddress, ListenAddress};
use crate::server::binding::{Bound, Entry, family_is_fixed, is_only_v6};
use crate::server::control::Control;
use crate::server::listening::ListeningState;
use crate::server::start_error::StartError;

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
    /// [`StartError::Bind`], [`StartError::NoAddress`], [`StartError::NoTls`], [`StartError::TooManyAddresses`], [`StartError::Unfinished`]
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
        if let Some(wanted) = addresses.iter().find(|wanted| wanted.is_secure() && !binding.secures) {
            return Err(StartError::NoTls(wanted.to_string()));
        }
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
    let Some(address) = wanted.tcp() else { return error };
    let overlaps = |bound: &SocketAddr| {
        bound.port() == address.port() && (bound.ip().is_unspecified() || address.ip().is_unspecified())
    };
    let found = removed.iter().find(|entry| matches!(&entry.bound, BoundAddress::Tcp(it) if overlaps(it)));
    let Some(own) = found.filter(|_| is_taken) else { return error };
    let message = format!("this server's {} overlaps with it; help: restart the server", own.bound);
    StartError::Bind { address: wanted.clone(), error: io::Error::other(message) }
}
