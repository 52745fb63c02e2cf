//! Options of a manager.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use instant_acme::LetsEncrypt;

use crate::failure::Failure;
use crate::names;

/// Directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = LetsEncrypt::Production.url();
/// Its directory for tests: generous limits, but no browser trusts the certificates.
pub const LETS_ENCRYPT_STAGING: &str = LetsEncrypt::Staging.url();

/// Options of a [`Manager`](crate::Manager). [`Options::new`] has the defaults.
#[derive(Debug, Clone)]
pub struct Options {
    /// URL of the directory of the CA that issues the certificates.
    pub directory: String,
    /// PEM file with the roots that the CA's own server is verified by, instead of the system's.
    pub ca: Option<PathBuf>,
    /// E-mail addresses for the CA's messages. They are sent when the account is created.
    pub emails: Vec<String>,
    /// Binding to an account of the CA's customers, which some CAs require.
    pub external_account: Option<ExternalAccount>,
    /// Agreement to the CA's terms of service. Without it no account is created.
    pub terms_agreed: bool,
    /// Folder in which the folder `acme` is created. Instances may share it.
    pub storage: PathBuf,
    /// Names of each certificate, the main name first. A name is in one certificate only.
    pub certificates: Vec<Vec<String>>,
    /// Challenges that this server can serve, the preferred one first. After a failure the next one is tried.
    pub challenges: Vec<ChallengeKind>,
    /// Source of the time.
    pub clock: Clock,
    /// Seed of random delays; `None` for the system's.
    pub seed: Option<u64>,
}

impl Options {
    /// Returns options for certificates of Let's Encrypt, by both challenges.
    #[must_use]
    pub fn new(storage: PathBuf, certificates: Vec<Vec<String>>) -> Self {
        Self {
            directory: LETS_ENCRYPT.to_owned(),
            ca: None,
            emails: Vec::new(),
            external_account: None,
            terms_agreed: false,
            storage,
            certificates,
            challenges: vec![ChallengeKind::TlsAlpn01, ChallengeKind::Http01],
            clock: Clock::default(),
            seed: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Failure> {
        if !self.terms_agreed {
            return Err(Failure::new(
                format!("the terms of service of {} aren't agreed to", self.directory),
                "read them at the CA's site, and agree in the configuration",
            ));
        }
        if !self.directory.starts_with("https://") {
            return Err(Failure::new(
                format!("expected an https URL as the CA's directory, found {:?}", self.directory),
                "use `letsencrypt`, `letsencrypt-staging`, or the URL that the CA documents",
            ));
        }
        if self.challenges.is_empty() {
            return Err(Failure::new(
                "no challenge can be served".to_owned(),
                "listen on port 443 or on port 80",
            ));
        }
        if let Some(account) = &self.external_account {
            account.decode()?;
        }
        names::check(&self.certificates)
    }
}

/// A binding to an account of the CA's customers (RFC 8555, section 7.3.4). Its `Debug` output contains no key.
#[derive(Clone)]
pub struct ExternalAccount {
    /// Key identifier that the CA gave out.
    pub kid: String,
    /// MAC key that the CA gave out, as base64url.
    pub hmac: String,
}

impl ExternalAccount {
    pub(crate) fn decode(&self) -> Result<Vec<u8>, Failure> {
        let text = self.hmac.trim();
        let key = URL_SAFE_NO_PAD.decode(text).or_else(|_| URL_SAFE.decode(text)).unwrap_or_default();
        if key.is_empty() {
            return Err(Failure::new(
                "the key of the external account isn't base64url".to_owned(),
                "copy the HMAC key as the CA shows it: letters, digits, `-` and `_`",
            ));
        }
        Ok(key)
    }
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ExternalAccount").field("kid", &self.kid).finish_non_exhaustive()
    }
}

/// Kinds of challenges by which a CA verifies that a name belongs to this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChallengeKind {
    /// A response on port 80 (RFC 8555, section 8.3).
    Http01,
    /// A certificate in a handshake on port 443 (RFC 8737).
    TlsAlpn01,
}

/// A source of the time, in seconds since 1970.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// Takes the time from a function; for tests.
    pub fn new(now: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> u64 {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Clock")
    }
}

#[cfg(test)]
mod tests;
