//! A certificate authority of the tests.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SerialNumber, SignatureAlgorithm,
};
use shearwater_tls::Pair;

/// An authority that issues certificates for servers and clients.
pub(crate) struct Authority {
    pub(crate) der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

/// An issued certificate and its key, DER-encoded.
pub(crate) struct Issued {
    pub(crate) der: Vec<u8>,
    pub(crate) pkcs8: Vec<u8>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let der = params.self_signed(&key).unwrap().der().to_vec();
        Self { der, issuer: Issuer::new(params, key) }
    }

    /// Issues a certificate with a key of this algorithm.
    pub(crate) fn issue_with(&self, algorithm: &'static SignatureAlgorithm, names: &[&str]) -> Issued {
        self.issue_until(algorithm, names, 2090)
    }

    /// Issues a certificate that ends at the beginning of a year.
    pub(crate) fn issue_until(
        &self,
        algorithm: &'static SignatureAlgorithm,
        names: &[&str],
        year: i32,
    ) -> Issued {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.serial_number = Some(SerialNumber::from(0x8765_4321));
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        (params.not_before, params.not_after) =
            (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(year, 1, 1));
        let key = KeyPair::generate_for(algorithm).unwrap();
        let der = params.signed_by(&key, &self.issuer).unwrap().der().to_vec();
        Issued { der, pkcs8: key.serialize_der() }
    }

    /// Issues a P-256 certificate.
    pub(crate) fn issue(&self, names: &[&str]) -> Issued {
        self.issue_with(&rcgen::PKCS_ECDSA_P256_SHA256, names)
    }

    /// Issues a P-256 certificate, with its chain.
    pub(crate) fn pair(&self, names: &[&str]) -> Pair {
        self.chain(self.issue(names))
    }

    pub(crate) fn chain(&self, issued: Issued) -> Pair {
        Pair::from_der(vec![issued.der, self.der.clone()], issued.pkcs8).unwrap()
    }
}

/// Encodes as PEM (RFC 7468).
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
