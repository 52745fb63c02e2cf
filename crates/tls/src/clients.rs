//! Authorities whose client certificates are accepted.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use crate::certificate::{PairProblem, chain_from_pem, read_pem};
use crate::crypto::{self, library::digest};

/// Authorities of client certificates: a client must have a certificate that one of them has signed.
///
/// A resumed session doesn't verify the certificate again: it may end, at most two days before its tickets do. Tickets
/// don't cross from one set of authorities to another.
#[derive(Clone)]
pub struct ClientAuthorities {
    pub(crate) verifier: Arc<dyn ClientCertVerifier>,
    fingerprint: [u8; 32],
}

impl ClientAuthorities {
    /// Reads the authorities' certificates from a file in PEM format.
    ///
    /// # Errors
    /// Fails if the file can't be read, and as [`Self::from_pem`] does. The error names the file.
    pub fn read(path: &Path) -> Result<Self, ClientAuthoritiesError> {
        let named = |reason| ClientAuthoritiesError { reason, file: Some(path.to_owned()) };
        let pem =
            read_pem(path).map_err(|error| named(format!("cannot read the client authorities: {error}")))?;
        Self::from_pem(&pem).map_err(|error| named(error.reason))
    }

    /// Takes the authorities' certificates as PEM text, in any order.
    ///
    /// # Errors
    /// Fails if there is none, or if one is malformed.
    pub fn from_pem(pem: &[u8]) -> Result<Self, ClientAuthoritiesError> {
        let failed = |reason| ClientAuthoritiesError { reason, file: None };
        let mut chain = chain_from_pem(pem).map_err(|error: PairProblem| failed(error.to_string()))?;
        chain.sort_unstable_by(|one, other| one.as_ref().cmp(other.as_ref()));
        let mut hash = digest::Context::new(&digest::SHA256);
        let mut roots = RootCertStore::empty();
        for certificate in chain {
            hash.update(&certificate);
            roots
                .add(certificate)
                .map_err(|error| failed(format!("cannot use a client authority: {error}")))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto::provider())
            .build()
            .map_err(|error| failed(format!("cannot use the client authorities: {error}")))?;
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(hash.finish().as_ref());
        Ok(Self { verifier, fingerprint })
    }

    /// Returns the number of this policy, as in `SessionFacts::client_policy`.
    ///
    /// The same authorities have the same number after a reload and on other machines. No number is 0.
    #[must_use]
    pub fn policy(&self) -> u32 {
        let [a, b, c, d, ..] = self.fingerprint;
        u32::from_be_bytes([a, b, c, d]).max(1)
    }

    /// Returns the SHA-256 of all certificates, which binds tickets to them.
    pub(crate) fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }
}

impl fmt::Debug for ClientAuthorities {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientAuthorities").field("policy", &self.policy()).finish_non_exhaustive()
    }
}

/// Client authorities that can't be used, with their file if they came from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAuthoritiesError {
    reason: String,
    file: Option<PathBuf>,
}

impl ClientAuthoritiesError {
    /// Returns a remedy, for a `help:` line.
    #[must_use]
    pub fn help(&self) -> &'static str {
        "the file must be in PEM format and contain the certificates of the authorities that sign the clients'"
    }
}

impl fmt::Display for ClientAuthoritiesError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(out, "{} ({})", self.reason, file.display()),
            None => out.write_str(&self.reason),
        }
    }
}

impl std::error::Error for ClientAuthoritiesError {}
