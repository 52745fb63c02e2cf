//! Tests of challenges that instances share.

use std::sync::Arc;

use super::Challenges;
use crate::limits::{SHARED_CHALLENGES_MAX, TOKEN_BYTES_MAX};
use crate::options::{ChallengeKind, Clock};
use crate::storage::Storage;

struct Fixture {
    root: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    /// An instance that shares the folder.
    fn instance(&self) -> Arc<Challenges> {
        let storage = Arc::new(Storage::open(self.root.path()).unwrap());
        Arc::new(Challenges::new(storage, Clock::new(|| 1_800_000_000)))
    }
}

#[test]
fn every_instance_serves_a_challenge_until_it_ends() {
    let fixture = Fixture::new();
    let (first, second) = (fixture.instance(), fixture.instance());
    let served = first.serve(ChallengeKind::Http01, "example.org", "token", "token.thumbprint").unwrap();
    second.refresh().unwrap();
    for instance in [&first, &second] {
        assert_eq!(instance.http("token").as_deref(), Some("token.thumbprint"));
        assert_eq!(instance.http("other"), None);
        assert!(instance.alpn("example.org").is_none());
    }
    drop(served);
    second.refresh().unwrap();
    for instance in [&first, &second] {
        assert_eq!(instance.http("token"), None);
    }
}

#[test]
fn every_instance_has_the_certificate_of_a_tls_challenge() {
    let fixture = Fixture::new();
    let (first, second) = (fixture.instance(), fixture.instance());
    let _served = first.serve(ChallengeKind::TlsAlpn01, "example.org", "token", "token.thumbprint").unwrap();
    second.refresh().unwrap();
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

/// Workers look challenges up: a storage that hangs or fails must not delay them.
#[test]
fn look_ups_do_not_read_the_storage() {
    let fixture = Fixture::new();
    let (first, second) = (fixture.instance(), fixture.instance());
    let _served = first.serve(ChallengeKind::Http01, "example.org", "token", "proof").unwrap();
    assert_eq!(second.http("token"), None, "not copied yet");
    second.refresh().unwrap();
    std::fs::remove_dir_all(fixture.root.path().join("acme")).unwrap();
    assert_eq!(second.http("token").as_deref(), Some("proof"));
}

#[test]
fn rejects_tokens_and_names_that_are_paths() {
    let fixture = Fixture::new();
    let instance = fixture.instance();
    std::fs::write(fixture.root.path().join("acme/secret.http"), "secret").unwrap();
    std::fs::write(fixture.root.path().join("acme/secret.alpn"), "secret").unwrap();
    instance.refresh().unwrap();
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
fn copies_a_bounded_number_of_small_challenges() {
    let fixture = Fixture::new();
    let instance = fixture.instance();
    let folder = fixture.root.path().join("acme/challenges");
    std::fs::write(folder.join("large.http"), "x".repeat(2 * TOKEN_BYTES_MAX + 1)).unwrap();
    std::fs::write(folder.join(".new-1.http"), "half").unwrap();
    instance.refresh().unwrap();
    assert_eq!((instance.http("large"), instance.http(".new-1")), (None, None));
    for number in 0..=SHARED_CHALLENGES_MAX {
        std::fs::write(folder.join(format!("{number}.http")), "proof").unwrap();
    }
    instance.refresh().unwrap();
    let found = (0..=SHARED_CHALLENGES_MAX).filter(|number| instance.http(&number.to_string()).is_some());
    assert_eq!(found.count(), SHARED_CHALLENGES_MAX);
}
