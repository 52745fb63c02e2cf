//! Tests of challenges that instances share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Challenges;
use crate::limits::{LOOKUPS_PER_SECOND_MAX, TOKEN_BYTES_MAX};
use crate::options::{ChallengeKind, Clock};
use crate::storage::Storage;

struct Fixture {
    root: tempfile::TempDir,
    now: Arc<AtomicU64>,
}

impl Fixture {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), now: Arc::new(AtomicU64::new(1_800_000_000)) }
    }

    /// An instance that shares the folder.
    fn instance(&self) -> Arc<Challenges> {
        let now = Arc::clone(&self.now);
        let storage = Arc::new(Storage::open(self.root.path()).unwrap());
        Arc::new(Challenges::new(storage, Clock::new(move || now.load(Ordering::Relaxed))))
    }
}

#[test]
fn every_instance_serves_a_challenge_until_it_ends() {
    let fixture = Fixture::new();
    let (first, second) = (fixture.instance(), fixture.instance());
    let served = first.serve(ChallengeKind::Http01, "example.org", "token", "token.thumbprint").unwrap();
    for instance in [&first, &second] {
        assert_eq!(instance.http("token").as_deref(), Some("token.thumbprint"));
        assert_eq!(instance.http("other"), None);
        assert!(instance.alpn("example.org").is_none());
    }
    drop(served);
    for instance in [&first, &second] {
        assert_eq!(instance.http("token"), None);
    }
}

#[test]
fn every_instance_has_the_certificate_of_a_tls_challenge() {
    let fixture = Fixture::new();
    let (first, second) = (fixture.instance(), fixture.instance());
    let _served = first.serve(ChallengeKind::TlsAlpn01, "example.org", "token", "token.thumbprint").unwrap();
    for instance in [&first, &second] {
        let pair = instance.alpn("example.org").unwrap();
        assert_eq!(pair.facts().dns_names, ["example.org"]);
        // The acmeIdentifier extension holds the digest of the key authorization.
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, b"token.thumbprint");
        let certificate = pair.chain().next().unwrap();
        assert!(certificate.windows(32).any(|bytes| bytes == digest.as_ref()));
        assert!(instance.alpn("www.example.org").is_none());
        assert_eq!(instance.http("token"), None);
    }
}

#[test]
fn rejects_tokens_and_names_that_are_paths() {
    let fixture = Fixture::new();
    let instance = fixture.instance();
    std::fs::write(fixture.root.path().join("acme/secret.http"), "secret").unwrap();
    std::fs::write(fixture.root.path().join("acme/secret.alpn"), "secret").unwrap();
    for path in ["../secret", "..", "", "a/b", "secret\0", "/etc/passwd"] {
        assert_eq!(instance.http(path), None);
        assert!(instance.alpn(path).is_none());
        assert!(instance.serve(ChallengeKind::Http01, "example.org", path, "").is_err());
    }
    let longest = "a".repeat(TOKEN_BYTES_MAX);
    let _served = instance.serve(ChallengeKind::Http01, "example.org", &longest, "x").unwrap();
    assert!(
        instance.serve(ChallengeKind::Http01, "example.org", &"a".repeat(TOKEN_BYTES_MAX + 1), "x").is_err()
    );
}

#[test]
fn searches_the_storage_a_bounded_number_of_times() {
    let fixture = Fixture::new();
    let (first, second) = (fixture.instance(), fixture.instance());
    let _served = first.serve(ChallengeKind::Http01, "example.org", "token", "proof").unwrap();
    for _ in 0..LOOKUPS_PER_SECOND_MAX {
        assert_eq!(second.http("token").as_deref(), Some("proof"));
    }
    assert_eq!(second.http("token"), None);
    // Its own challenges aren't searched.
    assert_eq!(first.http("token").as_deref(), Some("proof"));
    fixture.now.fetch_add(1, Ordering::Relaxed);
    assert_eq!(second.http("token").as_deref(), Some("proof"));
}
