//! Facts about a certificate, for messages, metrics, the choice by name, and renewal.

use std::fmt;
use std::net::IpAddr;

use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{self, Decode, Encode};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{AuthorityKeyIdentifier, SubjectAltName};
use x509_cert::spki::SubjectPublicKeyInfoOwned;

/// Facts about a certificate. Nothing here is verified: not its signature, nor its dates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// DNS names of the subject, in lower case; a wildcard begins with `*.`.
    pub dns_names: Vec<String>,
    /// IP addresses of the subject.
    pub addresses: Vec<IpAddr>,
    /// Begin of its validity, in seconds since 1970.
    pub not_before: u64,
    /// End of its validity, in seconds since 1970.
    pub not_after: u64,
    /// Name of the issuer, as RFC 4514 writes it: `CN=R10,O=Let's Encrypt,C=US`.
    pub issuer: String,
    /// Its issuer is itself.
    pub is_self_signed: bool,
    /// Kind of the public key.
    pub key: KeyKind,
    /// Serial number as DER encodes it: big-endian, with a zero byte in front if the highest bit is set.
    pub serial: Vec<u8>,
    /// Identifier of the issuer's key, if the certificate has one. With the serial number it identifies the certificate
    /// in requests for renewal information (RFC 9773).
    pub authority_key_id: Option<Vec<u8>>,
}

/// Kinds of public keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// RSA.
    Rsa,
    /// ECDSA on the curve P-256.
    P256,
    /// ECDSA on the curve P-384.
    P384,
    /// ECDSA on the curve P-521.
    P521,
    /// Ed25519 (RFC 8410).
    Ed25519,
    /// Any other.
    Other,
}

impl KeyKind {
    /// Returns its usual name: `RSA`, `P-256`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rsa => "RSA",
            Self::P256 => "P-256",
            Self::P384 => "P-384",
            Self::P521 => "P-521",
            Self::Ed25519 => "Ed25519",
            Self::Other => "other",
        }
    }

    fn of(key: &SubjectPublicKeyInfoOwned) -> Self {
        const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
        const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
        const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
        const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
        const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");
        const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
        let curve = || key.algorithm.parameters.as_ref().and_then(|curve| curve.decode_as().ok());
        match key.algorithm.oid {
            RSA => Self::Rsa,
            ED25519 => Self::Ed25519,
            EC => match curve() {
                Some(P256) => Self::P256,
                Some(P384) => Self::P384,
                Some(P521) => Self::P521,
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

impl CertificateFacts {
    /// Reads the facts of a DER-encoded certificate.
    ///
    /// # Errors
    /// Fails if it isn't a certificate (RFC 5280).
    pub fn from_der(certificate: &[u8]) -> Result<Self, MalformedCertificate> {
        Self::parse(certificate).map_err(MalformedCertificate)
    }

    fn parse(certificate: &[u8]) -> der::Result<Self> {
        let certificate = CertificateInner::<Raw>::from_der(certificate)?;
        let content = certificate.tbs_certificate();
        let names = content.get_extension::<SubjectAltName>()?.map(|(_, names)| names.0).unwrap_or_default();
        let authority =
            content.get_extension::<AuthorityKeyIdentifier>()?.and_then(|(_, key)| key.key_identifier);
        let seconds = |time: x509_cert::time::Time| time.to_unix_duration().as_secs();
        Ok(Self {
            dns_names: names.iter().filter_map(dns_name).collect(),
            addresses: names.iter().filter_map(address).collect(),
            not_before: seconds(content.validity().not_before),
            not_after: seconds(content.validity().not_after),
            issuer: content.issuer().to_string(),
            is_self_signed: content.issuer() == content.subject(),
            key: KeyKind::of(content.subject_public_key_info()),
            serial: content.serial_number().as_bytes().to_vec(),
            authority_key_id: authority.map(|id| id.as_bytes().to_vec()),
        })
    }

    /// Returns whether the certificate is for a host: one of its names, a wildcard for one label, or an address.
    #[must_use]
    pub fn covers(&self, host: &str) -> bool {
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return self.addresses.contains(&address);
        }
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let parent = host.split_once('.').filter(|(label, _)| !label.is_empty()).map(|(_, parent)| parent);
        self.dns_names.iter().any(|name| match name.strip_prefix("*.") {
            Some(suffix) => parent == Some(suffix),
            None => *name == host,
        })
    }
}

fn dns_name(name: &GeneralName) -> Option<String> {
    if let GeneralName::DnsName(name) = name { Some(name.as_str().to_ascii_lowercase()) } else { None }
}

fn address(name: &GeneralName) -> Option<IpAddr> {
    let GeneralName::IpAddress(bytes) = name else { return None };
    let bytes = bytes.as_bytes();
    let four = || <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four().or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// Returns the public key of a DER-encoded certificate, with its algorithm: a `SubjectPublicKeyInfo`.
pub(crate) fn public_key(certificate: &[u8]) -> der::Result<Vec<u8>> {
    let certificate = CertificateInner::<Raw>::from_der(certificate)?;
    certificate.tbs_certificate().subject_public_key_info().to_der()
}

/// A certificate that can't be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedCertificate(der::Error);

impl fmt::Display for MalformedCertificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl std::error::Error for MalformedCertificate {}
