//! Challenges that the CA may ask for now: those of this instance, and those of others that share the storage.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use shearwater_tls::{Pair, challenge_certificate};

use crate::failure::Failure;
use crate::limits::{SHARED_CHALLENGES_MAX, TOKEN_BYTES_MAX};
use crate::options::{ChallengeKind, Clock};
use crate::storage::Storage;

/// The challenges that a CA may ask for now.
///
/// Any thread may read them: it takes a lock for a moment. The control thread copies those of other instances from the storage.
#[derive(Debug)]
pub struct Challenges {
    storage: Arc<Storage>,
    clock: Clock,
    known: RwLock<Known>,
}

/// Key authorizations by file name: `TOKEN.http`, `NAME.alpn`.
#[derive(Debug, Default)]
struct Known {
    own: HashMap<String, String>,
    shared: HashMap<String, String>,
}

impl Challenges {
    pub(crate) fn new(storage: Arc<Storage>, clock: Clock) -> Self {
        Self { storage, clock, known: RwLock::default() }
    }

    /// Returns the content of `/.well-known/acme-challenge/TOKEN` (HTTP-01), of type `application/octet-stream`.
    #[must_use]
    pub fn http(&self, token: &str) -> Option<String> {
        self.find(&format!("{token}.http"))
    }

    /// Returns the certificate for a handshake with the protocol `acme-tls/1` (TLS-ALPN-01). The name is in lower case.
    #[must_use]
    pub fn alpn(&self, name: &str) -> Option<Pair> {
        let authorization = self.find(&format!("{name}.alpn"))?;
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, authorization.as_bytes());
        challenge_certificate(name, digest.as_ref().try_into().ok()?, self.clock.now()).ok()
    }

    fn find(&self, file: &str) -> Option<String> {
        let known = self.read();
        known.own.get(file).or_else(|| known.shared.get(file)).cloned()
    }

    /// Copies the challenges of other instances from the storage. Contents of a name don't change while it exists.
    pub(crate) fn refresh(&self) -> Result<(), Failure> {
        let folder = &self.storage.challenges;
        let mut shared = HashMap::new();
        for name in folder.names()?.into_iter().filter(|name| is_challenge(name)) {
            if shared.len() == SHARED_CHALLENGES_MAX {
                break;
            }
            if self.read().own.contains_key(&name) {
                continue;
            }
            // A file that can't be read must not withhold the others.
            let content = folder.read(&name).ok().flatten();
            let content = content.and_then(|content| String::from_utf8(content.to_vec()).ok());
            // Longer than a token with a thumbprint: nothing that an instance has written.
            let content = content.filter(|content| content.len() <= 2 * TOKEN_BYTES_MAX);
            shared.extend(content.map(|content| (name, content)));
        }
        self.write().shared = shared;
        Ok(())
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
        self.storage.challenges.write(&file, authorization.as_bytes())?;
        self.write().own.insert(file.clone(), authorization.to_owned());
        Ok(Served { challenges: Arc::clone(self), file })
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_token(token: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=TOKEN_BYTES_MAX).contains(&token.len()) && token.bytes().all(is_allowed)
}

/// Returns whether it is the name of a challenge's file, and not of one that isn't complete yet.
fn is_challenge(file: &str) -> bool {
    !file.starts_with('.') && matches!(file.rsplit_once('.'), Some((_, "http" | "alpn")))
}

/// A challenge that is being served. Withdrawn when dropped.
#[derive(Debug)]
pub(crate) struct Served {
    challenges: Arc<Challenges>,
    file: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.challenges.write().own.remove(&self.file);
        drop(self.challenges.storage.challenges.remove(&self.file));
    }
}

#[cfg(test)]
mod tests;
