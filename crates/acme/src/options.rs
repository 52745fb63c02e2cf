//! Options of a manager.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};

use crate::failure::Failure;
use crate::limits::{CERTIFICATES_MAX, NAMES_PER_CERTIFICATE_MAX};

/// Options of a [`Manager`](crate::Manager). [`Options::new`] has the defaults.
#[derive(Debug, Clone)]
pub struct Options {
    /// CA that issues the certificates.
    pub directory: Directory,
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
            directory: Directory::LetsEncrypt,
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
                format!("the terms of service of {} aren't agreed to", self.directory.url()),
                "read them at the CA's site, and agree in the configuration",
            ));
        }
        if !self.directory.url().starts_with("https://") {
            return Err(Failure::new(
                format!("expected an https URL as the CA's directory, found {:?}", self.directory.url()),
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
        check_names(&self.certificates)
    }
}

/// The directory of a CA: the URL from which all others are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Directory {
    /// Let's Encrypt.
    LetsEncrypt,
    /// Let's Encrypt for tests: generous limits, but no browser trusts the certificates.
    LetsEncryptStaging,
    /// Any other, by its URL.
    Url(String),
}

impl Directory {
    /// Parses `letsencrypt`, `letsencrypt-staging` or a URL.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "letsencrypt" => Some(Self::LetsEncrypt),
            "letsencrypt-staging" => Some(Self::LetsEncryptStaging),
            url if url.starts_with("https://") => Some(Self::Url(url.to_owned())),
            _ => None,
        }
    }

    /// Returns its URL.
    #[must_use]
    pub fn url(&self) -> &str {
        match self {
            Self::LetsEncrypt => instant_acme::LetsEncrypt::Production.url(),
            Self::LetsEncryptStaging => instant_acme::LetsEncrypt::Staging.url(),
            Self::Url(url) => url,
        }
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

/// Checks the names of all certificates: their number, their form, and that each occurs once.
pub(crate) fn check_names(certificates: &[Vec<String>]) -> Result<(), Failure> {
    if certificates.len() > CERTIFICATES_MAX {
        return Err(Failure::new(
            format!("found {} certificates, expected at most {CERTIFICATES_MAX}", certificates.len()),
            "put several names into one certificate",
        ));
    }
    let mut seen = std::collections::HashSet::new();
    for names in certificates {
        if names.is_empty() || names.len() > NAMES_PER_CERTIFICATE_MAX {
            return Err(Failure::new(
                format!(
                    "found {} names for a certificate, expected 1 to {NAMES_PER_CERTIFICATE_MAX}",
                    names.len()
                ),
                "divide the site's hosts among several sites",
            ));
        }
        for name in names {
            check_name(name)?;
            if !seen.insert(name) {
                return Err(Failure::new(
                    format!("found {name} in two certificates"),
                    "each name needs one certificate: remove it from one of the sites",
                ));
            }
        }
    }
    Ok(())
}

/// Checks that a name is a host name in lower case, so that a CA issues for it and a file can be named for it.
fn check_name(name: &str) -> Result<(), Failure> {
    let wrong =
        |what: &str, help: &str| Err(Failure::new(format!("no certificate for {name:?}: {what}"), help));
    let is_label = |label: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.starts_with("*.") {
        return wrong(
            "wildcards need the challenge DNS-01, which isn't supported",
            "list the names one by one",
        );
    }
    if !name.is_ascii() {
        return wrong("it isn't ASCII", "write it in Punycode: `xn--…`");
    }
    if name.len() > 253 || !name.split('.').all(is_label) {
        return wrong("it isn't a host name", "use lower-case letters, digits, `-` and `.`");
    }
    match name.rsplit_once('.') {
        None => wrong("it has no domain", "CAs issue only for public names such as `www.example.org`"),
        Some((_, last)) if last.bytes().all(|byte| byte.is_ascii_digit()) => {
            wrong("it is an address", "CAs issue for names: use one that points to this address")
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
