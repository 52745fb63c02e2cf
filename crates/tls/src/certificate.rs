//! Certificates with their private keys: reads them, checks that they fit, and extracts facts.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use zeroize::Zeroizing;

use crate::crypto;
use crate::facts::{self, CertificateFacts};
use crate::limits::{CHAIN_CERTIFICATES_MAX, PEM_BYTES_MAX};

/// A certificate, those of its issuers, and the private key. Its `Debug` output contains no key.
#[derive(Clone)]
pub struct Pair {
    key: Arc<CertifiedKey>,
    facts: Arc<CertificateFacts>,
}

impl Pair {
    /// Reads a pair from two files in PEM format, which may be the same file.
    ///
    /// # Errors
    /// Fails if a file can't be read, and as [`Self::from_pem`] does. The error names both files.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, PairError> {
        let named = |reason| PairError { reason, files: Some((certificate.to_owned(), key.to_owned())) };
        let chain_pem =
            read_pem(certificate).map_err(|error| named(PairProblem::CertificateUnreadable(error)))?;
        let key_pem = read_pem(key).map_err(|error| named(PairProblem::KeyUnreadable(error)))?;
        Self::from_pem(&chain_pem, &key_pem).map_err(|error| named(error.reason))
    }

    /// Reads a pair from PEM text: the server's certificate first, then its issuers; the key as PKCS#8, PKCS#1 or SEC1.
    ///
    /// # Errors
    /// Fails if one of the two is missing or malformed, if the key's kind isn't supported, and if the key doesn't fit
    /// the first certificate.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, PairError> {
        let chain = chain_from_pem(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            _ if contains(key, b"ENCRYPTED") => PairProblem::KeyEncrypted,
            pem::Error::NoItemsFound => PairProblem::KeyMissing,
            error => PairProblem::KeyMalformed(error.to_string()),
        })?;
        Self::new(chain, key)
    }

    /// Takes a pair of a DER-encoded chain, the server's certificate first, and a PKCS#8 key.
    ///
    /// # Errors
    /// As [`Self::from_pem`].
    pub fn from_der(chain: Vec<Vec<u8>>, pkcs8: Vec<u8>) -> Result<Self, PairError> {
        let chain = chain.into_iter().map(CertificateDer::from).collect();
        Self::new(chain, PrivatePkcs8KeyDer::from(pkcs8).into())
    }

    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, PairError> {
        let facts = CertificateFacts::from_chain(&chain)?;
        let key = crypto::provider()
            .key_provider
            .load_private_key(key)
            .map_err(|error| PairProblem::KeyUnsupported(error.to_string()))?;
        let public = key.public_key();
        let fits = |certificate: &CertificateDer<'_>| {
            let certified = facts::public_key(certificate).ok();
            certified.is_some() && certified.as_deref() == public.as_deref()
        };
        match chain.iter().position(fits) {
            Some(0) => {}
            later => return Err(PairProblem::Mismatch { fits: later }.into()),
        }
        let key = CertifiedKey::new(chain, key);
        Ok(Self { key: Arc::new(key), facts: Arc::new(facts) })
    }

    /// Returns facts about the server's certificate.
    #[must_use]
    pub fn facts(&self) -> &CertificateFacts {
        &self.facts
    }

    /// Returns the server's certificate, then its issuers, DER-encoded.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.key.cert.iter().map(AsRef::as_ref)
    }

    pub(crate) fn certified_key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pair").field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl CertificateFacts {
    /// Reads the facts of the first certificate of PEM text.
    ///
    /// # Errors
    /// Fails if there is no certificate, or if it is malformed.
    pub fn from_pem(chain: &[u8]) -> Result<Self, PairError> {
        Self::from_chain(&chain_from_pem(chain)?)
    }

    fn from_chain(chain: &[CertificateDer<'_>]) -> Result<Self, PairError> {
        if chain.len() > CHAIN_CERTIFICATES_MAX {
            return Err(PairProblem::TooManyCertificates.into());
        }
        let leaf = chain.first().ok_or(PairProblem::CertificateMissing)?;
        Self::from_der(leaf).map_err(|error| PairProblem::CertificateMalformed(error.to_string()).into())
    }
}

/// Reads the certificates of PEM text; those of a client CA file, for example.
pub(crate) fn chain_from_pem(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PairProblem> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| PairProblem::CertificateMalformed(error.to_string()))?;
    if chain.is_empty() { Err(PairProblem::CertificateMissing) } else { Ok(chain) }
}

/// Reads a file of at most [`PEM_BYTES_MAX`] bytes.
///
/// It may contain a key: no copy is left in memory.
pub(crate) fn read_pem(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path)?;
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX).min(PEM_BYTES_MAX);
    // With room for one byte more, a file of this length is read without growing the buffer.
    let mut bytes = Zeroizing::new(Vec::with_capacity(length + 1));
    file.take(PEM_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > PEM_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is larger than 1 MiB"));
    }
    Ok(bytes)
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part == word)
}

/// A pair that can't be used, with its files if it came from files.
#[derive(Debug)]
pub struct PairError {
    reason: PairProblem,
    files: Option<(PathBuf, PathBuf)>,
}

impl PairError {
    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> &PairProblem {
        &self.reason
    }

    /// Returns a remedy, for a `help:` line.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self.reason {
            PairProblem::CertificateUnreadable(_) | PairProblem::KeyUnreadable(_) => {
                "check the path, and that the server's user may read the file"
            }
            PairProblem::CertificateMissing | PairProblem::CertificateMalformed(_) => {
                "the file must be in PEM format and begin with the server's certificate (`-----BEGIN CERTIFICATE-----`)"
            }
            PairProblem::TooManyCertificates => {
                "give the server's certificate and those of its issuers, not a list of authorities"
            }
            PairProblem::KeyMissing | PairProblem::KeyMalformed(_) => {
                "the file must be in PEM format and contain the private key (`-----BEGIN PRIVATE KEY-----`)"
            }
            PairProblem::KeyEncrypted => "decrypt it: `openssl pkey -in FILE -out NEW_FILE`",
            PairProblem::KeyUnsupported(_) => {
                "use an RSA key of at least 2048 bits, or P-256, P-384 or Ed25519"
            }
            PairProblem::Mismatch { fits: Some(_) } => "put the server's certificate first, then its issuers",
            PairProblem::Mismatch { fits: None } => "give the key that the certificate was requested with",
        }
    }
}

/// Reasons for which a pair can't be used.
#[derive(Debug)]
pub enum PairProblem {
    /// The file of the certificate can't be read.
    CertificateUnreadable(io::Error),
    /// The file of the key can't be read.
    KeyUnreadable(io::Error),
    /// There is no certificate.
    CertificateMissing,
    /// A certificate can't be parsed.
    CertificateMalformed(String),
    /// The chain has more than [`CHAIN_CERTIFICATES_MAX`] certificates.
    TooManyCertificates,
    /// There is no private key.
    KeyMissing,
    /// The key can't be decoded.
    KeyMalformed(String),
    /// The key is encrypted by a passphrase.
    KeyEncrypted,
    /// The key is of a kind or size that isn't supported, or is damaged.
    KeyUnsupported(String),
    /// The key isn't that of the first certificate.
    Mismatch {
        /// Position of a later certificate that the key fits, counting from 0.
        fits: Option<usize>,
    },
}

impl fmt::Display for PairProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CertificateUnreadable(error) => write!(out, "cannot read the certificate: {error}"),
            Self::KeyUnreadable(error) => write!(out, "cannot read the private key: {error}"),
            Self::CertificateMissing => out.write_str("found no certificate"),
            Self::CertificateMalformed(error) => write!(out, "cannot parse the certificate: {error}"),
            Self::TooManyCertificates => write!(out, "found more than {CHAIN_CERTIFICATES_MAX} certificates"),
            Self::KeyMissing => out.write_str("found no private key"),
            Self::KeyMalformed(error) => write!(out, "cannot decode the private key: {error}"),
            Self::KeyEncrypted => out.write_str("the private key is encrypted by a passphrase"),
            Self::KeyUnsupported(error) => write!(out, "cannot use the private key: {error}"),
            Self::Mismatch { fits: None } => out.write_str("the private key doesn't fit the certificate"),
            Self::Mismatch { fits: Some(at) } => {
                write!(out, "the private key fits certificate {} of the chain, expected the first", at + 1)
            }
        }
    }
}

impl From<PairProblem> for PairError {
    fn from(reason: PairProblem) -> Self {
        Self { reason, files: None }
    }
}

impl fmt::Display for PairError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(out)?;
        match &self.files {
            Some((certificate, key)) if certificate != key => {
                write!(out, " (certificate {}, key {})", certificate.display(), key.display())
            }
            Some((both, _)) => write!(out, " ({})", both.display()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PairError {}
