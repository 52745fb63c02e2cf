//! Challenges that the CA may ask for now: those of this instance in memory, those of others in the storage.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use shearwater_tls::{Pair, challenge_certificate};

use crate::failure::Failure;
use crate::limits::{LOOKUPS_PER_SECOND_MAX, TOKEN_BYTES_MAX};
use crate::options::{ChallengeKind, Clock};
use crate::storage::{Folder, Storage};

/// The challenges that a CA may ask for now. Any thread may read them: it takes a lock for a moment, and searches the storage for those of
/// other instances.
#[derive(Debug)]
pub struct Challenges {
    storage: Arc<Storage>,
    clock: Clock,
    /// Key authorizations by file name: `TOKEN.http`, `NAME.alpn`.
    stored: RwLock<HashMap<String, String>>,
    /// The second of the last look-up in the storage, and the look-ups in it.
    lookups: Mutex<(u64, u32)>,
}

impl Challenges {
    pub(crate) fn new(storage: Arc<Storage>, clock: Clock) -> Self {
        Self { storage, clock, stored: RwLock::default(), lookups: Mutex::default() }
    }

    fn folder(&self) -> &Folder {
        &self.storage.challenges
    }

    /// Returns the content of `/.well-known/acme-challenge/TOKEN` (HTTP-01), of type `application/octet-stream`.
    #[must_use]
    pub fn http(&self, token: &str) -> Option<String> {
        let is_valid = is_token(token);
        if is_valid { self.find(&format!("{token}.http")) } else { None }
    }

    /// Returns the certificate for a handshake with the protocol `acme-tls/1` (TLS-ALPN-01). The name is in lower case.
    #[must_use]
    pub fn alpn(&self, name: &str) -> Option<Pair> {
        // The caller has it from a client.
        let is_name =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        if name.is_empty() || name.len() > 253 || name.starts_with('.') || !name.bytes().all(is_name) {
            return None;
        }
        let authorization = self.find(&format!("{name}.alpn"))?;
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, authorization.as_bytes());
        challenge_certificate(name, digest.as_ref().try_into().ok()?, self.clock.now()).ok()
    }

    fn find(&self, file: &str) -> Option<String> {
        let stored = self.stored.read().unwrap_or_else(PoisonError::into_inner).get(file).cloned();
        if stored.is_some() || !self.may_look_up() {
            return stored;
        }
        String::from_utf8(self.folder().read(file).ok()??).ok()
    }

    /// Counts a look-up in the storage; returns `false` beyond those of this second.
    fn may_look_up(&self) -> bool {
        let now = self.clock.now();
        let mut lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        *lookups = if lookups.0 == now { (now, lookups.1.saturating_add(1)) } else { (now, 1) };
        lookups.1 <= LOOKUPS_PER_SECOND_MAX
    }

    /// Serves a challenge until the result is dropped.
    pub(crate) fn serve(
        self: &Arc<Self>,
        kind: ChallengeKind,
        name: &str,
        token: &str,
        authorization: &str,
    ) -> Result<Served, Failure> {
        if !is_token(token) {
            return Err(Failure::new(
                format!("the CA's token {token:?} isn't base64url"),
                "check the URL of the CA's directory",
            ));
        }
        let file = match kind {
            ChallengeKind::Http01 => format!("{token}.http"),
            ChallengeKind::TlsAlpn01 => format!("{name}.alpn"),
        };
        self.folder().write(&file, authorization.as_bytes())?;
        let mut stored = self.stored.write().unwrap_or_else(PoisonError::into_inner);
        stored.insert(file.clone(), authorization.to_owned());
        Ok(Served { challenges: Arc::clone(self), file })
    }
}

fn is_token(token: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=TOKEN_BYTES_MAX).contains(&token.len()) && token.bytes().all(is_allowed)
}

/// A challenge that is being served. Withdrawn when dropped.
#[derive(Debug)]
pub(crate) struct Served {
    challenges: Arc<Challenges>,
    file: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.challenges.stored.write().unwrap_or_else(PoisonError::into_inner).remove(&self.file);
        drop(self.challenges.folder().remove(&self.file));
    }
}

#[cfg(test)]
mod tests;
