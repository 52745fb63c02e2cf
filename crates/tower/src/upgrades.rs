//! Registered upgrade protocols, and a limit on upgraded connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shearwater::{Head, is_same_protocol};

/// The protocols and upgraded connections of a server.
#[derive(Debug)]
pub(crate) struct Upgrades {
    /// Protocols as registered, possibly with versions.
    protocols: Vec<String>,
    /// Number of connections that are upgraded or may still be.
    open: AtomicUsize,
    open_max: usize,
}

impl Upgrades {
    /// Registers protocols, for `open_max` connections at once.
    pub(crate) fn new(protocols: Vec<String>, open_max: usize) -> Arc<Self> {
        Arc::new(Self { protocols, open: AtomicUsize::new(0), open_max })
    }

    /// Returns true if a request offers one of the protocols.
    pub(crate) fn are_offered(&self, head: &Head<'_>) -> bool {
        head.upgrades().any(|protocol| self.has(protocol))
    }

    /// Returns true if a protocol is registered, ignoring versions.
    fn has(&self, protocol: &[u8]) -> bool {
        self.protocols.iter().any(|own| is_same_protocol(own.as_bytes(), protocol))
    }

    /// Counts a connection. Returns `None` if the limit is reached.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Permit> {
        let one_more = |open: usize| (open < self.open_max).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Permit { upgrades: Arc::clone(self) })
    }
}

/// Counts one connection, from a request that may be upgraded until the socket is closed.
#[derive(Debug)]
pub(crate) struct Permit {
    upgrades: Arc<Upgrades>,
}

impl Permit {
    /// Returns true if the connection may be upgraded to a protocol.
    pub(crate) fn allows(&self, protocol: &str) -> bool {
        self.upgrades.has(protocol.as_bytes())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.upgrades.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::Upgrades;

    #[test]
    fn there_are_no_more_than_there_may_be() {
        let upgrades = Upgrades::new(Vec::new(), 2);
        let (first, second) = (upgrades.enter(), upgrades.enter());
        assert!(first.is_some() && second.is_some());
        assert!(upgrades.enter().is_none());
        drop(first);
        assert!(upgrades.enter().is_some());
    }
}
