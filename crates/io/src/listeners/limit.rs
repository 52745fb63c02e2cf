//! A limit on connections that several drivers share.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// A limit on the connections of several drivers together. Clones share it. The default is unlimited.
///
/// A driver counts a connection when it accepts it and when it reports its `Closed`, never in between. Dropping a driver
/// returns the places of its connections.
#[derive(Debug, Clone)]
pub struct SharedLimit(Arc<State>);

#[derive(Debug, Default)]
struct State {
    connections_max: usize,
    held: AtomicUsize,
    /// Another worker should close an idle connection.
    is_wanted: AtomicBool,
    /// A worker waits for a place.
    is_awaited: AtomicBool,
}

impl Default for SharedLimit {
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl SharedLimit {
    /// Returns a limit that nothing counts for yet.
    #[must_use]
    pub fn new(connections_max: usize) -> Self {
        Self(Arc::new(State { connections_max, ..State::default() }))
    }

    /// Returns the number of connections that count for it.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.held.load(Relaxed)
    }

    /// Returns whether no place is left.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.held() >= self.0.connections_max
    }

    /// Returns whether the places that are left could be taken by one attempt of each driver.
    pub(crate) fn is_scarce(&self) -> bool {
        // The engine has clones too.
        self.held().saturating_add(Arc::strong_count(&self.0)) >= self.0.connections_max
    }

    /// Takes a place. Returns false if none is left.
    pub(crate) fn enter(&self) -> bool {
        let max = self.0.connections_max;
        self.0.held.fetch_update(Relaxed, Relaxed, |held| (held < max).then_some(held + 1)).is_ok()
    }

    /// Takes a place even if none is left, as a kernel that had accepted the connection before.
    pub(crate) fn enter_anyway(&self) {
        self.0.held.fetch_add(1, Relaxed);
    }

    /// Returns places.
    pub(crate) fn leave(&self, count: usize) {
        self.0.held.fetch_sub(count, Relaxed);
    }

    /// Asks one other worker to close an idle connection, or says that none needs to any more.
    pub fn ask(&self, is_wanted: bool) {
        self.0.is_wanted.store(is_wanted, Relaxed);
        self.0.is_awaited.store(is_wanted, Relaxed);
    }

    /// Returns whether a worker should close an idle connection for another one.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.is_wanted.load(Relaxed)
    }

    /// Takes the request for a place. Returns true for the first worker that does.
    #[must_use]
    pub fn take_request(&self) -> bool {
        self.0.is_wanted.swap(false, Relaxed)
    }

    /// Returns whether a worker is to be woken when a place is returned.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.0.is_awaited.load(Relaxed)
    }
}
