//! Pairs: formats of keys, mistakes, facts.

use std::net::IpAddr;

#[cfg(feature = "aws-lc-rs")]
use shearwater_tls::KeyKind;
use shearwater_tls::limits::{CHAIN_CERTIFICATES_MAX, PEM_BYTES_MAX};
use shearwater_tls::{CertificateFacts, Pair, challenge_certificate, self_signed};

use crate::authority::{Authority, pem};

/// 2026-11-26, noon.
const NOW: u64 = 1_795_694_400;

fn error(chain: &str, key: &str) -> String {
    Pair::from_pem(chain.as_bytes(), key.as_bytes()).unwrap_err().to_string()
}

#[cfg(feature = "aws-lc-rs")] // ring makes no RSA keys
#[test]
fn reads_every_kind_of_key() {
    let authority = Authority::new("Test");
    for (algorithm, kind) in [
        (&rcgen::PKCS_RSA_SHA256, KeyKind::Rsa),
        (&rcgen::PKCS_ECDSA_P256_SHA256, KeyKind::P256),
        (&rcgen::PKCS_ECDSA_P384_SHA384, KeyKind::P384),
        (&rcgen::PKCS_ED25519, KeyKind::Ed25519),
    ] {
        let issued = authority.issue_with(algorithm, &["a.example"]);
        let chain = pem("CERTIFICATE", &issued.der) + &pem("CERTIFICATE", &authority.der);
        let pair = Pair::from_pem(chain.as_bytes(), pem("PRIVATE KEY", &issued.pkcs8).as_bytes()).unwrap();
        assert_eq!(pair.facts().key, kind);
        assert_eq!(pair.chain().count(), 2);
    }
}

/// Cuts the older formats out of PKCS#8, where they are an octet string.
#[cfg(feature = "aws-lc-rs")] // ring makes no RSA keys
#[test]
fn reads_pkcs1_and_sec1_keys() {
    let authority = Authority::new("Test");
    let (rsa, ec) =
        (authority.issue_with(&rcgen::PKCS_RSA_SHA256, &["a.example"]), authority.issue(&["a.example"]));
    let pkcs1 = rsa.pkcs8[26..].to_vec();
    // SEC1 files name the curve, P-256 here, between the private and the public key.
    let (private, public) = ec.pkcs8[29..].split_at(39);
    let sec1 = [private, &[0xA0, 10, 6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7], public].concat();
    let sec1 = [&[0x30, sec1[1] + 12], &sec1[2..]].concat();
    for (issued, label, key) in [(&rsa, "RSA PRIVATE KEY", pkcs1), (&ec, "EC PRIVATE KEY", sec1)] {
        let file = pem("CERTIFICATE", &issued.der) + &pem(label, &key);
        let pair = Pair::from_pem(file.as_bytes(), file.as_bytes());
        assert!(pair.is_ok(), "{label}: {pair:?}");
    }
}

#[test]
fn extracts_facts() {
    let issued = Authority::new("Test").issue(&["A.example", "*.b.example", "192.0.2.1", "2001:db8::1"]);
    let facts = CertificateFacts::from_der(&issued.der).unwrap();
    assert_eq!(facts.dns_names, ["a.example", "*.b.example"]);
    let addresses: [IpAddr; 2] = ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
    assert_eq!(facts.addresses, addresses);
    assert_eq!((facts.not_before, facts.not_after), (1_577_836_800, 3_786_912_000));
    assert_eq!(facts.issuer, "CN=Test");
    assert!(!facts.is_self_signed);
    assert_eq!(facts.serial, [0, 0x87, 0x65, 0x43, 0x21], "as in the example of RFC 9773");
    assert_eq!(facts.authority_key_id.map(|id| id.len()), Some(20));
}

#[test]
fn covers_names_wildcards_and_addresses() {
    let issued = Authority::new("Test").issue(&["a.example", "*.b.example", "192.0.2.1"]);
    let facts = CertificateFacts::from_der(&issued.der).unwrap();
    for host in ["a.example", "A.EXAMPLE", "a.example.", "x.b.example", "192.0.2.1"] {
        assert!(facts.covers(host), "{host}");
    }
    for host in ["b.example", "x.y.b.example", ".b.example", "xb.example", "192.0.2.2", "", "x.a.example"] {
        assert!(!facts.covers(host), "{host}");
    }
}

#[test]
fn rejects_broken_pairs_with_a_reason() {
    let authority = Authority::new("Test");
    let (one, other) = (authority.issue(&["a.example"]), authority.issue(&["a.example"]));
    let certificate = pem("CERTIFICATE", &one.der);
    let key = pem("PRIVATE KEY", &one.pkcs8);
    assert_eq!(error("", &key), "found no certificate");
    assert_eq!(error(&certificate, ""), "found no private key");
    assert_eq!(error(&certificate, &certificate), "found no private key");
    let of_openssl =
        key.replace("KEY-----\nM", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,01\n\nM");
    for encrypted in [pem("ENCRYPTED PRIVATE KEY", &one.pkcs8), of_openssl] {
        assert_eq!(error(&certificate, &encrypted), "the private key is encrypted by a passphrase");
    }
    assert_eq!(
        error(&certificate, &pem("PRIVATE KEY", &other.pkcs8)),
        "the private key doesn't fit the certificate"
    );
    assert_eq!(
        error(&(pem("CERTIFICATE", &authority.der) + &certificate), &key),
        "the private key fits certificate 2 of the chain, expected the first"
    );
    let malformed = error(&pem("CERTIFICATE", b"abc"), &key);
    assert!(malformed.starts_with("cannot parse the certificate: "), "{malformed}");
    let malformed = error(&certificate, &pem("PRIVATE KEY", b"abc"));
    assert!(malformed.starts_with("cannot use the private key: "), "{malformed}");
    let cut = error(&certificate[..100], &key);
    assert!(cut.starts_with("cannot parse the certificate: "), "{cut}");
}

#[test]
fn limits_the_chain() {
    let authority = Authority::new("Test");
    let issued = authority.issue(&["a.example"]);
    let chain = |count: usize| pem("CERTIFICATE", &issued.der).repeat(count);
    let key = pem("PRIVATE KEY", &issued.pkcs8);
    assert!(Pair::from_pem(chain(CHAIN_CERTIFICATES_MAX).as_bytes(), key.as_bytes()).is_ok());
    assert_eq!(error(&chain(CHAIN_CERTIFICATES_MAX + 1), &key), "found more than 16 certificates");
}

#[test]
fn names_both_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let read = || Pair::read(&at("c.pem"), &at("k.pem"));
    let authority = Authority::new("Test");
    let (one, other) = (authority.issue(&["a.example"]), authority.issue(&["a.example"]));
    let error = read().unwrap_err().to_string();
    assert!(error.starts_with("cannot read the certificate: ") && error.contains("c.pem, key "), "{error}");

    std::fs::write(at("c.pem"), pem("CERTIFICATE", &one.der)).unwrap();
    std::fs::write(at("k.pem"), pem("PRIVATE KEY", &other.pkcs8)).unwrap();
    let error = read().unwrap_err();
    let (c, k) = (at("c.pem"), at("k.pem"));
    assert_eq!(
        error.to_string(),
        format!(
            "the private key doesn't fit the certificate (certificate {}, key {})",
            c.display(),
            k.display()
        )
    );
    assert_eq!(error.help(), "give the key that the certificate was requested with");

    std::fs::write(at("k.pem"), pem("PRIVATE KEY", &one.pkcs8)).unwrap();
    assert!(read().is_ok());
    std::fs::write(at("k.pem"), vec![b'\n'; PEM_BYTES_MAX + 1]).unwrap();
    let error = read().unwrap_err().to_string();
    assert!(error.starts_with("cannot read the private key: the file is larger than 1 MiB"), "{error}");
}

#[test]
fn debug_output_contains_no_key() {
    let authority = Authority::new("Test");
    let debug = format!("{:?}", authority.pair(&["a.example"]));
    assert!(debug.starts_with("Pair { facts: CertificateFacts {") && debug.ends_with(", .. }"), "{debug}");
}

#[test]
fn makes_self_signed_certificates() {
    let facts = self_signed(&["localhost", "127.0.0.1"], NOW).unwrap().facts().clone();
    assert!(facts.is_self_signed && facts.covers("localhost") && facts.covers("127.0.0.1"));
    assert_eq!((facts.not_before, facts.not_after), (NOW - 86_400, NOW + 90 * 86_400));
    assert_eq!(facts.issuer, "CN=localhost");
    assert_eq!(
        self_signed(&[], NOW).unwrap_err().to_string(),
        "cannot make a certificate: expected at least one name, found none"
    );
    assert!(self_signed(&["é"], NOW).is_err());
    assert!(self_signed(&["a"], u64::MAX).is_ok());
}

/// The extension is critical, and an octet string of the digest.
#[test]
fn makes_challenge_certificates() {
    let pair = challenge_certificate("a.example", &[7; 32], NOW).unwrap();
    let extension = [&[6, 8, 0x2B, 6, 1, 5, 5, 7, 1, 31, 1, 1, 0xFF, 4, 34, 4, 32][..], &[7; 32]].concat();
    let der = pair.chain().next().unwrap();
    assert!(der.windows(extension.len()).any(|part| part == extension));
    assert_eq!(pair.facts().dns_names, ["a.example"]);
}
