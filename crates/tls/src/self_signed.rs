//! Certificates that are made here: self-signed ones, and those of ACME's TLS challenge.

use std::fmt;
use std::time::Duration;

use rcgen::{CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};

use crate::certificate::Pair;

/// Validity of a certificate that is made here. Some clients accept no more than 398 days.
const VALID: Duration = Duration::from_secs(90 * 86_400);
/// Begin of the validity before now, for clients whose clock is behind.
const SLACK: Duration = Duration::from_secs(86_400);
/// Validity of a challenge's certificate.
const CHALLENGE_VALID: Duration = Duration::from_secs(7 * 86_400);

/// Makes a self-signed P-256 certificate for host names and IP addresses, valid for 90 days.
///
/// # Errors
/// Fails if there is no name, if one is invalid, or if the system has no random numbers.
pub fn self_signed(names: &[&str], unix_seconds: u64) -> Result<Pair, SelfSignedError> {
    let mut params = params(names, unix_seconds, VALID)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    sign(&params)
}

/// Makes the certificate that proves control of `name` by TLS-ALPN-01 (RFC 8737): `digest` is the SHA-256 of the key
/// authorization.
///
/// # Errors
/// Fails if the name is invalid, or if the system has no random numbers.
pub fn challenge_certificate(
    name: &str,
    digest: &[u8; 32],
    unix_seconds: u64,
) -> Result<Pair, SelfSignedError> {
    let mut params = params(&[name], unix_seconds, CHALLENGE_VALID)?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    sign(&params)
}

fn params(names: &[&str], unix_seconds: u64, valid: Duration) -> Result<CertificateParams, SelfSignedError> {
    let first =
        names.first().ok_or_else(|| SelfSignedError::new("expected at least one name, found none"))?;
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).map_err(SelfSignedError::new)?;
    // A common name has at most 64 characters (RFC 5280); clients read the alternative names.
    let common_name: String = first.chars().take(64).collect();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    let now = Duration::from_secs(unix_seconds.min(TIME_MAX));
    params.not_before = rcgen::date_time_ymd(1970, 1, 1) + now.saturating_sub(SLACK);
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + now + valid;
    Ok(params)
}

/// The last time that a certificate may begin at: the year 9000. Later ones have no DER encoding.
const TIME_MAX: u64 = 221_845_392_000;

fn sign(params: &CertificateParams) -> Result<Pair, SelfSignedError> {
    let key = KeyPair::generate().map_err(SelfSignedError::new)?;
    let certificate = params.self_signed(&key).map_err(SelfSignedError::new)?;
    Pair::from_der(vec![certificate.der().to_vec()], key.serialize_der()).map_err(SelfSignedError::new)
}

/// A certificate that couldn't be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfSignedError(String);

impl SelfSignedError {
    fn new(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for SelfSignedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "cannot make a certificate: {}", self.0)
    }
}

impl std::error::Error for SelfSignedError {}
