//! Session tickets (RFC 5077, RFC 8446 section 4.6.1): the server's memory of a session, encrypted and kept by the client.
//!
//! A ticket is a key's name, a salt, and the sealed session. Each ticket has a key of its own, derived from the salt, so
//! that any number of servers can share a key without a bound on their tickets. What a ticket is bound to, a set of
//! client authorities, is authenticated with it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use crate::clients::ClientAuthorities;
use crate::crypto::library::rand::{SecureRandom, SystemRandom};
use crate::crypto::library::{aead, hkdf};
use crate::limits::{TICKET_BYTES_MAX, TICKET_KEYS_KEPT, TICKET_KEYS_MAX, TICKET_ROTATION_SECONDS};

const NAME_BYTES: usize = 16;
const SALT_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
/// Lengths of a key with its name, the ones of other servers' files.
const KEY_BYTES: [usize; 2] = [80, 48];
/// Begin of an export: its format.
const EXPORT_FORMAT: u8 = 1;

/// The keys of a server's tickets: the first one seals, all of them open.
///
/// Handshakes take its lock to read, for a few nanoseconds; requests don't.
pub struct Tickets {
    keys: RwLock<Arc<[Key]>>,
    /// Time of the next new key, in seconds since 1970; 0 for keys of a file, which are only replaced.
    rotation: AtomicU64,
}

struct Key {
    name: [u8; NAME_BYTES],
    /// For HKDF, and for [`Tickets::export`].
    secret: Zeroizing<Vec<u8>>,
}

impl Tickets {
    /// Makes a random key, and a new one every [`TICKET_ROTATION_SECONDS`]: see [`Self::rotate`].
    ///
    /// # Errors
    /// Fails if the system has no random numbers.
    pub fn random(unix_seconds: u64) -> Result<Self, TicketKeysError> {
        let keys = RwLock::new(Arc::from([Key::random()?]));
        Ok(Self { keys, rotation: AtomicU64::new(unix_seconds + TICKET_ROTATION_SECONDS) })
    }

    /// Takes the keys of a file: keys of 80 bytes each, or of 48 bytes, one after another, the newest first.
    ///
    /// They aren't rotated: write a new key in front, reload every server, and remove old ones at the end. For a
    /// smooth change, add a new key at the end of every server's file first.
    ///
    /// # Errors
    /// Fails if the length isn't a multiple of 80 or 48, or if there are more than [`TICKET_KEYS_MAX`] keys.
    pub fn from_file_bytes(bytes: &[u8]) -> Result<Self, TicketKeysError> {
        Ok(Self { keys: RwLock::new(parse_keys(bytes)?), rotation: AtomicU64::new(0) })
    }

    /// Takes the keys that another process has exported, and its rotation.
    ///
    /// # Errors
    /// Fails if this isn't an export.
    pub fn import(export: &[u8]) -> Result<Self, TicketKeysError> {
        let (header, bytes) = export.split_at_checked(9).ok_or(TicketKeysError::NotAnExport)?;
        let Some((&EXPORT_FORMAT, rotation)) = header.split_first() else {
            return Err(TicketKeysError::NotAnExport);
        };
        let rotation = rotation.try_into().map_or(0, u64::from_be_bytes);
        Ok(Self { keys: RwLock::new(parse_keys(bytes)?), rotation: AtomicU64::new(rotation) })
    }

    /// Returns the keys for another process of the same server.
    #[must_use]
    pub fn export(&self) -> ExportedKeys {
        let keys = self.keys();
        let bytes = keys.iter().map(|key| NAME_BYTES + key.secret.len()).sum::<usize>();
        let mut export = Zeroizing::new(Vec::with_capacity(9 + bytes));
        export.push(EXPORT_FORMAT);
        export.extend_from_slice(&self.rotation.load(Relaxed).to_be_bytes());
        for key in &*keys {
            export.extend_from_slice(&key.name);
            export.extend_from_slice(&key.secret);
        }
        ExportedKeys(export)
    }

    /// Replaces the keys with those of `other`; those of a changed file, for example.
    pub fn replace(&self, other: &Self) {
        let keys = other.keys();
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        self.rotation.store(other.rotation.load(Relaxed), Relaxed);
    }

    /// Makes a new key if it is time. Tickets of the last [`TICKET_KEYS_KEPT`] keys are accepted.
    ///
    /// Any thread may call it, as often as it likes: it reads one number. Without random numbers the old key stays.
    pub fn rotate(&self, unix_seconds: u64) {
        let due = self.rotation.load(Relaxed);
        let next = unix_seconds.saturating_add(TICKET_ROTATION_SECONDS);
        // A clock that was set back must not delay it by more than one interval.
        if due == 0 || (unix_seconds < due && due <= next) {
            return;
        }
        if self.rotation.compare_exchange(due, next, Relaxed, Relaxed).is_err() {
            return;
        }
        let Ok(new) = Key::random() else { return };
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let old = keys.iter().take(TICKET_KEYS_KEPT - 1).map(Key::copy);
        *keys = std::iter::once(new).chain(old).collect();
    }

    /// Returns the ticketer of one client policy.
    pub(crate) fn ticketer(
        self: &Arc<Self>,
        clients: Option<&ClientAuthorities>,
    ) -> Arc<dyn ProducesTickets> {
        let policy = clients.map_or([0; 32], |clients| *clients.fingerprint());
        Arc::new(Ticketer { tickets: Arc::clone(self), policy })
    }

    fn keys(&self) -> Arc<[Key]> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tickets")
            .field("keys", &self.keys().len())
            .field("rotation", &self.rotation)
            .finish_non_exhaustive()
    }
}

fn parse_keys(bytes: &[u8]) -> Result<Arc<[Key]>, TicketKeysError> {
    let length =
        KEY_BYTES.into_iter().find(|length| !bytes.is_empty() && bytes.len().is_multiple_of(*length));
    let keys = bytes.chunks_exact(length.ok_or(TicketKeysError::Length(bytes.len()))?);
    if keys.len() > TICKET_KEYS_MAX {
        return Err(TicketKeysError::TooMany);
    }
    Ok(keys.map(Key::from_bytes).collect())
}

impl Key {
    fn random() -> Result<Self, TicketKeysError> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES[0]]);
        SystemRandom::new().fill(&mut *bytes).map_err(|_| TicketKeysError::NoRandomNumbers)?;
        Ok(Self::from_bytes(&*bytes))
    }

    /// Takes a name and a secret, of one of the lengths of [`KEY_BYTES`].
    fn from_bytes(bytes: &[u8]) -> Self {
        let mut name = [0; NAME_BYTES];
        name.copy_from_slice(&bytes[..NAME_BYTES]);
        Self { name, secret: Zeroizing::new(bytes[NAME_BYTES..].to_vec()) }
    }

    fn copy(&self) -> Self {
        Self { name: self.name, secret: self.secret.clone() }
    }

    /// Derives the key of one ticket.
    fn derive(&self, salt: &[u8]) -> Option<aead::LessSafeKey> {
        const USE: &[&[u8]] = &[b"shearwater session ticket"];
        let master = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(&self.secret);
        let key = master.expand(USE, &aead::AES_256_GCM).ok()?;
        Some(aead::LessSafeKey::new(aead::UnboundKey::from(key)))
    }
}

/// Ticket keys for another process. Keep them secret: they open every session of TLS 1.2 that has a ticket.
///
/// Their memory is overwritten when they are dropped.
pub struct ExportedKeys(Zeroizing<Vec<u8>>);

impl ExportedKeys {
    /// Returns the bytes for [`Tickets::import`].
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ExportedKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ExportedKeys").finish_non_exhaustive()
    }
}

/// Seals and opens the tickets of one client policy.
#[derive(Debug)]
struct Ticketer {
    tickets: Arc<Tickets>,
    policy: [u8; 32],
}

/// Each key seals one ticket, so the nonce needn't vary.
fn nonce() -> aead::Nonce {
    aead::Nonce::assume_unique_for_key([0; aead::NONCE_LEN])
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        TICKET_ROTATION_SECONDS as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        const CONTENT: usize = NAME_BYTES + SALT_BYTES;
        if plain.len() > TICKET_BYTES_MAX - CONTENT - TAG_BYTES {
            return None;
        }
        let keys = self.tickets.keys();
        let key = keys.first()?;
        let mut ticket = Vec::with_capacity(CONTENT + plain.len() + TAG_BYTES);
        ticket.extend_from_slice(&key.name);
        ticket.extend_from_slice(&[0; SALT_BYTES]);
        SystemRandom::new().fill(&mut ticket[NAME_BYTES..]).ok()?;
        let sealing = key.derive(&ticket[NAME_BYTES..])?;
        ticket.extend_from_slice(plain);
        let tag = sealing
            .seal_in_place_separate_tag(nonce(), aead::Aad::from(self.policy), &mut ticket[CONTENT..])
            .ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > TICKET_BYTES_MAX {
            return None;
        }
        let (name, rest) = ticket.split_at_checked(NAME_BYTES)?;
        let (salt, sealed) = rest.split_at_checked(SALT_BYTES)?;
        let keys = self.tickets.keys();
        let key = keys.iter().find(|key| key.name == *name)?.derive(salt)?;
        let mut content = sealed.to_vec();
        let length = key.open_in_place(nonce(), aead::Aad::from(self.policy), &mut content).ok()?.len();
        content.truncate(length);
        Some(content)
    }
}

/// Ticket keys that can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketKeysError {
    /// The length, in bytes, isn't one of whole keys.
    Length(usize),
    /// There are more than [`TICKET_KEYS_MAX`] keys.
    TooMany,
    /// These aren't the keys of another process.
    NotAnExport,
    /// The system has no random numbers.
    NoRandomNumbers,
}

impl TicketKeysError {
    /// Returns a remedy, for a `help:` line.
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            Self::Length(_) => "make a key by `openssl rand 80 > FILE`",
            Self::TooMany => "remove old keys from the end of the file",
            Self::NotAnExport => "start the server anew",
            Self::NoRandomNumbers => "check that the process may call getrandom",
        }
    }
}

impl fmt::Display for TicketKeysError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => {
                write!(out, "expected session ticket keys of 80 or 48 bytes each, found {length} bytes")
            }
            Self::TooMany => write!(out, "found more than {TICKET_KEYS_MAX} session ticket keys"),
            Self::NotAnExport => out.write_str("the session ticket keys of the old process can't be read"),
            Self::NoRandomNumbers => out.write_str("the system has no random numbers"),
        }
    }
}

impl std::error::Error for TicketKeysError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticketer(key: u8, policy: u8) -> Ticketer {
        let tickets = Tickets::from_file_bytes(&[key; 80]).unwrap();
        Ticketer { tickets: Arc::new(tickets), policy: [policy; 32] }
    }

    #[test]
    fn opens_its_own_tickets_alone() {
        let ticket = ticketer(1, 1).encrypt(b"session").unwrap();
        assert_eq!(ticketer(1, 1).decrypt(&ticket).unwrap(), b"session");
        assert_ne!(ticketer(1, 1).encrypt(b"session").unwrap(), ticket, "each has its salt");
        for other in [ticketer(1, 2), ticketer(2, 1)] {
            assert_eq!(other.decrypt(&ticket), None);
        }
        for length in 0..ticket.len() {
            assert_eq!(ticketer(1, 1).decrypt(&ticket[..length]), None);
            let mut damaged = ticket.clone();
            damaged[length] ^= 1;
            assert_eq!(ticketer(1, 1).decrypt(&damaged), None, "byte {length}");
        }
    }

    #[test]
    fn limits_tickets() {
        let most = TICKET_BYTES_MAX - NAME_BYTES - SALT_BYTES - TAG_BYTES;
        let mut ticket = ticketer(1, 1).encrypt(&vec![0; most]).unwrap();
        assert_eq!(ticket.len(), TICKET_BYTES_MAX);
        assert!(ticketer(1, 1).decrypt(&ticket).is_some());
        ticket.push(0);
        assert_eq!(ticketer(1, 1).decrypt(&ticket), None);
        assert_eq!(ticketer(1, 1).encrypt(&vec![0; most + 1]), None);
    }
}
