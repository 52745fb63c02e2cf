//! The configuration that all workers share, and a worker's provider of sessions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shearwater_io::ListenerId;
use shearwater_io::secure::Provider;

use crate::configuration::Configuration;
use crate::session::ServerSession;

/// The current configuration of a server, which a reload replaces.
#[derive(Debug)]
pub struct SharedConfiguration {
    current: Mutex<Arc<Configuration>>,
    /// Counts the replacements, so that workers need the lock only after one.
    generation: AtomicU64,
}

impl SharedConfiguration {
    /// Begins with a configuration.
    #[must_use]
    pub fn new(configuration: Configuration) -> Arc<Self> {
        Arc::new(Self { current: Mutex::new(Arc::new(configuration)), generation: AtomicU64::new(0) })
    }

    /// Replaces the configuration. Workers take it over at the beginning of their next turn; sessions that exist keep
    /// the one that they began with.
    pub fn replace(&self, configuration: Configuration) {
        *self.lock() = Arc::new(configuration);
        self.generation.fetch_add(1, Relaxed);
    }

    /// Returns the current configuration.
    #[must_use]
    pub fn current(&self) -> Arc<Configuration> {
        Arc::clone(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Configuration>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Configuration> for Arc<SharedConfiguration> {
    fn from(configuration: Configuration) -> Self {
        SharedConfiguration::new(configuration)
    }
}

/// Makes the sessions of one worker.
#[derive(Debug)]
pub struct TlsProvider {
    shared: Arc<SharedConfiguration>,
    current: Arc<Configuration>,
    generation: u64,
}

impl TlsProvider {
    /// Makes a worker's provider.
    #[must_use]
    pub fn new(shared: Arc<SharedConfiguration>) -> Self {
        // Read before the configuration: one that is replaced in between is taken over again.
        let generation = shared.generation.load(Relaxed);
        let current = shared.current();
        Self { shared, current, generation }
    }

    /// Returns the configuration of this turn.
    #[must_use]
    pub fn configuration(&self) -> &Arc<Configuration> {
        &self.current
    }
}

impl Provider for TlsProvider {
    type Session = ServerSession;

    fn begin_turn(&mut self, unix_seconds: u64) {
        let generation = self.shared.generation.load(Relaxed);
        if generation != self.generation {
            self.current = self.shared.current();
            self.generation = generation;
        }
        if let Some(tickets) = &self.current.tickets {
            tickets.rotate(unix_seconds);
        }
    }

    fn accept(&mut self, _listener: ListenerId) -> ServerSession {
        ServerSession::new(Arc::clone(&self.current))
    }

    fn has_client_policies(&self) -> bool {
        self.current.has_client_policies
    }

    fn client_policy(&self, host: &str) -> u32 {
        self.current.client_policy(host)
    }
}
