//! Certificates that prove control of a name to an ACME authority, by TLS-ALPN-01 (RFC 8737).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::ServerConfig;

use crate::certificate::Pair;
use crate::configuration::server_config;
use crate::limits::CHALLENGES_MAX;

/// Protocol by which an authority asks for a challenge's certificate.
pub(crate) const PROTOCOL: &str = "acme-tls/1";

/// Open challenges by name. The thread that orders certificates fills it; the workers read it only for clients that
/// offer `acme-tls/1`.
#[derive(Default)]
pub struct Challenges {
    by_name: Mutex<HashMap<Box<str>, Arc<ServerConfig>>>,
    source: Option<Box<Source>>,
}

/// Returns the certificate of a name that has no entry.
type Source = dyn Fn(&str) -> Option<Pair> + Send + Sync;

impl Challenges {
    /// Makes a table that asks `source` for the names that it lacks: those of other instances, for example.
    ///
    /// Workers call it, for each client that offers `acme-tls/1` and such a name: it must be quick.
    #[must_use]
    pub fn with_source(source: impl Fn(&str) -> Option<Pair> + Send + Sync + 'static) -> Self {
        Self { source: Some(Box::new(source)), ..Self::default() }
    }

    /// Adds or replaces the certificate of a name, made by [`challenge_certificate`](crate::challenge_certificate).
    ///
    /// Returns whether there was room: at most [`CHALLENGES_MAX`] names have one.
    #[must_use]
    pub fn insert(&self, name: &str, pair: &Pair) -> bool {
        let mut table = self.table();
        if table.len() >= CHALLENGES_MAX && !table.contains_key(name) {
            return false;
        }
        table.insert(name.to_ascii_lowercase().into(), config(pair));
        true
    }

    /// Removes the certificate of a name.
    pub fn remove(&self, name: &str) {
        self.table().remove(name.to_ascii_lowercase().as_str());
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<ServerConfig>> {
        let known = self.table().get(name).cloned();
        known.or_else(|| self.source.as_ref()?(name).as_ref().map(config))
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<ServerConfig>>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn config(pair: &Pair) -> Arc<ServerConfig> {
    Arc::new(server_config(pair.certified_key(), None, &[PROTOCOL], rustls::DEFAULT_VERSIONS, None))
}

impl fmt::Debug for Challenges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.table().keys()).finish()
    }
}
