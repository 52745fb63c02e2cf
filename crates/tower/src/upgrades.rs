//! Upgraded connections: the registered protocols, and a bound on their number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shearwater::Head;

/// The upgraded connections of a server.
#[derive(Debug)]
pub(crate) struct Upgrades {
    /// Names of protocols, without their versions.
    protocols: Vec<String>,
    /// Connections that are upgraded, or may still be.
    open: AtomicUsize,
    open_max: usize,
}

impl Upgrades {
    /// Registers protocols, for `open_max` connections at once.
    pub(crate) fn new(protocols: &[String], open_max: usize) -> Arc<Self> {
        let names =
            protocols.iter().map(|protocol| protocol.split('/').next().unwrap_or(protocol).to_owned());
        Arc::new(Self { protocols: names.collect(), open: AtomicUsize::new(0), open_max })
    }

    /// Returns true if a request offers one of the protocols.
    pub(crate) fn are_offered(&self, head: &Head<'_>) -> bool {
        let is_known =
            |name: &[u8]| self.protocols.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(name));
        head.upgrades().any(is_known)
    }

    /// Counts one more.
    ///
    /// # Errors
    /// The bound is reached.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Permit, Full> {
        let one_more = |open: usize| (open < self.open_max).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).map_err(|_| Full)?;
        Ok(Permit { upgrades: Arc::clone(self) })
    }
}

/// The bound on upgraded connections is reached.
#[derive(Debug)]
pub(crate) struct Full;

/// Counts one connection, from a request that may be upgraded until the socket is closed.
#[derive(Debug)]
pub(crate) struct Permit {
    upgrades: Arc<Upgrades>,
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
        let upgrades = Upgrades::new(&[], 2);
        let (first, second) = (upgrades.enter(), upgrades.enter());
        assert!(first.is_ok() && second.is_ok());
        assert!(upgrades.enter().is_err());
        drop(first);
        assert!(upgrades.enter().is_ok());
    }
}
