//! TLS-ALPN-01: the challenge's certificate, for clients that offer `acme-tls/1` alone.

use std::sync::Arc;

use rustls::{AlertDescription, Error};
use shearwater_io::secure::{Session, Step};
use shearwater_tls::limits::CHALLENGES_MAX;
use shearwater_tls::{Challenges, Options, challenge_certificate};

use crate::authority::Authority;
use crate::link::{ClientOptions, Link, client, named, one, serve};

#[test]
fn presents_the_challenge_and_ends() {
    let authority = Authority::new("Test");
    let challenges = Arc::new(Challenges::default());
    // A name that has no certificate yet.
    let certificates = vec![named(&["new.example"], None)];
    let mut provider = serve(Options {
        certificates,
        challenges: Some(challenges.clone()),
        strict_sni: true,
        ..Options::default()
    });
    // Issued by the authority instead of by itself, so that the client accepts it.
    assert!(challenges.insert("New.example", &authority.pair(&["new.example"])));
    let config = client(&authority, ClientOptions { alpn: &["acme-tls/1"], ..ClientOptions::default() });
    let mut link = Link::secured(&config, "new.example", &mut provider);
    assert_eq!(link.outcome, Some(Step::Closed), "the session ends as soon as it is secured");
    assert_eq!(link.facts().alpn, Some("acme-tls/1"));
    assert!(link.client.process_new_packets().unwrap().peer_has_closed());
    assert!(link.session.seal(&[std::io::IoSlice::new(b"x")], &mut Vec::new()).is_err());

    challenges.remove("new.example");
    let mut link = Link::new(&config, "new.example", &mut provider);
    assert_eq!(link.run(usize::MAX), Err(Error::AlertReceived(AlertDescription::NoApplicationProtocol)));
}

#[test]
fn limits_the_challenges() {
    let pair = challenge_certificate("a.example", &[0; 32], 0).unwrap();
    let challenges = Challenges::default();
    for number in 0..CHALLENGES_MAX {
        assert!(challenges.insert(&format!("{number}.example"), &pair));
    }
    assert!(!challenges.insert("new.example", &pair));
    assert!(challenges.insert("0.example", &pair), "a name's certificate is replaced");
    challenges.remove("1.example");
    assert!(challenges.insert("new.example", &pair));
}

#[test]
fn asks_its_source_for_other_names() {
    let authority = Authority::new("Test");
    let pair = authority.pair(&["new.example"]);
    let challenges = Challenges::with_source(move |name| (name == "new.example").then(|| pair.clone()));
    let mut provider = serve(Options { challenges: Some(Arc::new(challenges)), ..one(&authority) });
    let config = client(&authority, ClientOptions { alpn: &["acme-tls/1"], ..ClientOptions::default() });
    assert_eq!(Link::secured(&config, "new.example", &mut provider).facts().alpn, Some("acme-tls/1"));
    let mut link = Link::new(&config, "a.example", &mut provider);
    assert_eq!(link.run(usize::MAX), Err(Error::AlertReceived(AlertDescription::NoApplicationProtocol)));
}

/// Browsers never see it.
#[test]
fn other_clients_get_the_name_s_certificate() {
    let authority = Authority::new("Test");
    let challenges = Arc::new(Challenges::default());
    assert!(challenges.insert("a.example", &challenge_certificate("a.example", &[0; 32], 0).unwrap()));
    let mut provider = serve(Options { challenges: Some(challenges), ..one(&authority) });
    let config = client(&authority, ClientOptions::default());
    assert_eq!(Link::secured(&config, "a.example", &mut provider).facts().alpn, Some("http/1.1"));
}
