//! Certificates of the tests, as PEM.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use testkit::TestFolder;

/// An authority that signs certificates of servers and clients.
pub(crate) struct Authority {
    /// Its own certificate.
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Issues a certificate for names, of a server or a client.
    pub(crate) fn issue(&self, names: &[&str]) -> Issued {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        Issued { certificate, key: key.serialize_pem() }
    }
}

impl Issued {
    /// Writes `NAME.pem` and `NAME.key`, which only the user may read.
    pub(crate) fn write(&self, folder: &TestFolder, name: &str) {
        folder.file(format!("{name}.pem"), &self.certificate).file(format!("{name}.key"), &self.key);
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(folder.at(format!("{name}.key")), private).expect("our own file");
    }

    /// Returns the certificate, DER.
    pub(crate) fn der(&self) -> Vec<u8> {
        use base64::Engine as _;
        let lines = self.certificate.lines().filter(|line| !line.starts_with('-'));
        base64::prelude::BASE64_STANDARD.decode(lines.collect::<String>()).expect("PEM")
    }
}
