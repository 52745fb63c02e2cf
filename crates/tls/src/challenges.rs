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
pub struct Challenges(Mutex<HashMap<Box<str>, Arc<ServerConfig>>>);

impl Challenges {
    /// Adds or replaces the certificate of a name, made by [`challenge_certificate`](crate::challenge_certificate).
    ///
    /// Returns whether there was room: at most [`CHALLENGES_MAX`] names have one.
    #[must_use]
    pub fn insert(&self, name: &str, pair: &Pair) -> bool {
        let mut table = self.table();
        if table.len() >= CHALLENGES_MAX && !table.contains_key(name) {
            return false;
        }
        let config = server_config(pair.certified_key(), None, &[PROTOCOL], &rustls::DEFAULT_VERSIONS, None);
        table.insert(name.to_ascii_lowercase().into(), Arc::new(config));
        true
    }

    /// Removes the certificate of a name.
    pub fn remove(&self, name: &str) {
        self.table().remove(name.to_ascii_lowercase().as_str());
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<ServerConfig>> {
        self.table().get(name).cloned()
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<ServerConfig>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Challenges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.table().keys()).finish()
    }
}
