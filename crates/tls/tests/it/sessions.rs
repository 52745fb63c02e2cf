//! Handshakes and content, against rustls's client.

use std::sync::Arc;

use rustls::{AlertDescription, Error};
use shearwater_io::secure::{Failure, Provider, RECORD_BYTES_MAX, Session, Step, Version};
use shearwater_tls::AlpnProtocol::{Http2, Http11};
use shearwater_tls::{Configuration, ConfigurationError, Options, SharedConfiguration, Tickets, TlsProvider};
use testkit::random;

use crate::authority::Authority;
use crate::link::{ClientOptions, Link, TLS12, TLS13, client, named, one, serve};

#[test]
fn completes_handshakes_of_both_versions() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    for (versions, version, suite, costly) in [
        (TLS13, Version::Tls13, "TLS_AES_256_GCM_SHA384", 1),
        (TLS12, Version::Tls12, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", 2),
    ] {
        let config = client(&authority, ClientOptions { versions, ..ClientOptions::default() });
        let mut link = Link::secured(&config, "a.example", &mut provider);
        assert_eq!(link.steps.last(), Some(&Step::Secured));
        assert_eq!(link.costly(), costly);
        let facts = link.facts();
        assert_eq!((facts.version, facts.cipher_suite), (version, suite));
        assert_eq!(facts.alpn, Some("http/1.1"));
        assert_eq!(facts.server_name.as_deref(), Some("a.example"));
        assert_eq!((facts.is_resumed, facts.client_policy, facts.client_certificates.len()), (false, 0, 0));
        link.send(b"GET / HTTP/1.1\r\n\r\n");
        assert_eq!(link.received, b"GET / HTTP/1.1\r\n\r\n");
        assert_eq!(
            link.respond(&[b"HTTP/1.1 200 OK\r\n", b"\r\n", b"", b"body"]),
            b"HTTP/1.1 200 OK\r\n\r\nbody"
        );
    }
}

#[cfg(feature = "aws-lc-rs")] // ring makes no RSA keys
#[test]
fn serves_every_kind_of_key() {
    let authority = Authority::new("Test");
    for algorithm in [
        &rcgen::PKCS_RSA_SHA256,
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
        &rcgen::PKCS_ED25519,
    ] {
        let pair = authority.chain(authority.issue_with(algorithm, &["a.example"]));
        let certificates = vec![named(&["a.example"], Some(pair))];
        let mut provider = serve(Options { certificates, ..Options::default() });
        for versions in [TLS12, TLS13] {
            let config = client(&authority, ClientOptions { versions, ..ClientOptions::default() });
            Link::secured(&config, "a.example", &mut provider).facts();
        }
    }
}

/// The same results however the input is split.
#[test]
fn takes_input_in_pieces_of_any_length() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    for versions in [TLS12, TLS13] {
        let config = client(&authority, ClientOptions { versions, ..ClientOptions::default() });
        for piece in (1..40).chain([100, 500, 1000]) {
            let mut link = Link::new(&config, "a.example", &mut provider);
            link.run(piece).unwrap();
            assert_eq!(link.steps.last(), Some(&Step::Secured), "pieces of {piece}");
        }
    }
}

/// Messages that span many records, in the handshake and after it.
#[test]
fn takes_small_records() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    for versions in [TLS12, TLS13] {
        for fragment in [32, 33, 100] {
            let options = ClientOptions { versions, fragment: Some(fragment), ..ClientOptions::default() };
            let mut link = Link::new(&client(&authority, options), "a.example", &mut provider);
            link.run(7).unwrap();
            link.send(&[b'x'; 1000]);
            assert_eq!(link.received, [b'x'; 1000]);
            let records = link.steps.iter().filter(|step| matches!(step, Step::Plain(_))).count();
            assert!(records > 8, "{records}");
        }
    }
}

#[test]
fn seals_slices_of_any_length() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    let mut random = random::part(1, 0);
    let content = random::bytes(&mut random, 200_000);
    for versions in [TLS12, TLS13] {
        let config = client(&authority, ClientOptions { versions, ..ClientOptions::default() });
        let mut link = Link::secured(&config, "a.example", &mut provider);
        for _ in 0..30 {
            let (mut slices, mut rest) = (Vec::new(), &content[..]);
            for _ in 0..random.usize(..8) {
                let most = [1, 100, RECORD_BYTES_MAX, RECORD_BYTES_MAX + 1, 40_000][random.usize(..5)];
                let (slice, after) = rest.split_at(rest.len().min(random.usize(..=most)));
                slices.push(slice);
                rest = after;
            }
            assert!(link.respond(&slices) == content[..content.len() - rest.len()]);
        }
    }
}

#[test]
fn chooses_by_name() {
    let authority = Authority::new("Test");
    let (a, wild, c) =
        (authority.pair(&["a.example"]), authority.pair(&["*.b.example"]), authority.pair(&["x.b.example"]));
    let first = |pair: &shearwater_tls::Pair| pair.chain().next().unwrap().to_vec();
    let certificates = vec![
        named(&["a.example"], Some(a.clone())),
        named(&["*.B.example"], Some(wild.clone())),
        named(&["X.b.example"], Some(c.clone())),
        named(&["pending.example"], None),
    ];
    let mut provider = serve(Options { certificates: certificates.clone(), ..Options::default() });
    let config = client(&authority, ClientOptions::default());
    for (name, pair) in [("A.EXAMPLE", &a), ("y.b.example", &wild), ("x.b.example", &c)] {
        let link = Link::secured(&config, name, &mut provider);
        assert!(link.presented() == first(pair), "{name}");
        assert_eq!(link.facts().server_name.as_deref(), Some(name.to_ascii_lowercase().as_str()));
    }
    // Other names get the default's certificate, which this client rejects.
    let refused = |name: &str, provider: &mut TlsProvider| {
        let mut link = Link::new(&config, name, provider);
        (link.run(usize::MAX).unwrap_err(), link.failure())
    };
    for name in ["b.example", "x.y.b.example", "other.example"] {
        let (error, _) = refused(name, &mut provider);
        assert!(matches!(error, Error::InvalidCertificate(_)), "{name}: {error}");
    }
    let unrecognized = (Error::AlertReceived(AlertDescription::UnrecognisedName), Some(Failure::UnknownName));
    assert_eq!(refused("pending.example", &mut provider), unrecognized);

    let mut strict = serve(Options { certificates, strict_sni: true, ..Options::default() });
    for name in ["b.example", "other.example", "pending.example"] {
        assert_eq!(refused(name, &mut strict), unrecognized, "{name}");
    }
    // A site's wildcard is for more labels than a certificate's.
    assert!(matches!(refused("x.y.b.example", &mut strict).0, Error::InvalidCertificate(_)));
    assert!(Link::secured(&config, "y.b.example", &mut strict).presented() == first(&wild));
}

#[test]
fn serves_clients_without_sni_unless_strict() {
    let authority = Authority::new("Test");
    let config = client(&authority, ClientOptions { has_sni: false, ..ClientOptions::default() });
    let link = Link::secured(&config, "a.example", &mut serve(one(&authority)));
    assert_eq!(link.facts().server_name, None);
    let mut strict = serve(Options { strict_sni: true, ..one(&authority) });
    let mut link = Link::new(&config, "a.example", &mut strict);
    assert_eq!(link.run(usize::MAX), Err(Error::AlertReceived(AlertDescription::UnrecognisedName)));
}

#[test]
fn prefers_protocols_in_the_configured_order() {
    const H1: Option<&str> = Some("http/1.1");
    const H2: Option<&str> = Some("h2");
    let authority = Authority::new("Test");
    // Chosen for clients that offer HTTP/2 alone, HTTP/1.1 alone, and both in either order; `None` is refused.
    for (protocols, chosen) in [
        (&[Http2, Http11][..], [H2, H1, H2, H2]),
        (&[Http11, Http2], [H2, H1, H1, H1]),
        (&[Http2], [H2, None, H2, H2]),
        (&[Http11], [None, H1, H1, H1]),
    ] {
        let mut provider = serve(Options { protocols: protocols.to_vec(), ..one(&authority) });
        let offers = [&["h2"][..], &["http/1.1"], &["h2", "http/1.1"], &["http/1.1", "h2"]];
        for (offer, chosen) in offers.into_iter().zip(chosen) {
            let (alpn, failure) = agreed(&authority, offer, &mut provider);
            assert_eq!(alpn, chosen, "{protocols:?}: {offer:?}");
            assert_eq!(failure, chosen.is_none().then_some(Failure::Protocol), "{protocols:?}: {offer:?}");
        }
        assert_eq!(agreed(&authority, &[], &mut provider), (None, None), "without ALPN: {protocols:?}");
        for offer in [&["acme-tls/1"][..], &["acme-tls/1", "h2", "http/1.1"], &["h2c"]] {
            assert_eq!(
                agreed(&authority, offer, &mut provider),
                (None, Some(Failure::Protocol)),
                "{offer:?}"
            );
        }
    }
    let mut default = serve(one(&authority));
    assert_eq!(agreed(&authority, &["http/1.1", "h2"], &mut default), (H2, None));
}

/// Returns the protocol that a client with this offer gets, and the reason why it is refused.
fn agreed(
    authority: &Authority,
    alpn: &[&str],
    provider: &mut TlsProvider,
) -> (Option<&'static str>, Option<Failure>) {
    let config = client(authority, ClientOptions { alpn, ..ClientOptions::default() });
    let mut link = Link::new(&config, "a.example", provider);
    if let Err(error) = link.run(usize::MAX) {
        assert_eq!(error, Error::AlertReceived(AlertDescription::NoApplicationProtocol), "{alpn:?}");
        return (None, link.failure());
    }
    let alpn = link.facts().alpn;
    assert_eq!(link.client.alpn_protocol(), alpn.map(str::as_bytes));
    (alpn, link.failure())
}

/// A ticket doesn't hold a client to the protocol of its first session.
#[test]
fn agrees_anew_in_a_resumed_session() {
    let authority = Authority::new("Test");
    let tickets = Some(Arc::new(Tickets::random(1_795_694_400).unwrap()));
    for versions in [TLS12, TLS13] {
        let mut provider = serve(Options { tickets: tickets.clone(), ..one(&authority) });
        let alpn = &["http/1.1"];
        let mut config = client(&authority, ClientOptions { versions, alpn, ..ClientOptions::default() });
        let mut link = Link::secured(&config, "a.example", &mut provider);
        assert_eq!((link.facts().is_resumed, link.facts().alpn), (false, Some("http/1.1")));
        assert_eq!(link.respond(&[b"with its tickets"]), b"with its tickets");
        drop(link);
        Arc::get_mut(&mut config).unwrap().alpn_protocols = vec![b"h2".to_vec()];
        let link = Link::secured(&config, "a.example", &mut provider);
        assert_eq!((link.facts().is_resumed, link.facts().alpn), (true, Some("h2")), "{versions:?}");
    }
}

#[test]
fn refuses_old_versions_where_configured() {
    let authority = Authority::new("Test");
    let mut provider = serve(Options { min_version: Version::Tls13, ..one(&authority) });
    let config = client(&authority, ClientOptions { versions: TLS12, ..ClientOptions::default() });
    let mut link = Link::new(&config, "a.example", &mut provider);
    assert_eq!(link.run(usize::MAX), Err(Error::AlertReceived(AlertDescription::ProtocolVersion)));
    assert_eq!(link.failure(), Some(Failure::Version));
    Link::secured(&client(&authority, ClientOptions::default()), "a.example", &mut provider).facts();
}

#[test]
fn reports_that_nothing_is_in_common() {
    let authority = Authority::new("Test");
    let mut options = ClientOptions { versions: TLS12, ..ClientOptions::default() };
    // Suites of RSA keys alone.
    options.provider.cipher_suites.retain(|suite| format!("{suite:?}").contains("_RSA_"));
    let mut link = Link::new(&client(&authority, options), "a.example", &mut serve(one(&authority)));
    assert_eq!(link.run(usize::MAX), Err(Error::AlertReceived(AlertDescription::HandshakeFailure)));
    assert_eq!(link.failure(), Some(Failure::NothingInCommon));
}

/// A client whose key share is for another group sends a second ClientHello.
#[cfg(feature = "aws-lc-rs")]
#[test]
fn asks_for_another_group_and_offers_a_post_quantum_one() {
    use rustls::crypto::aws_lc_rs::kx_group;
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    let mut options = ClientOptions { versions: TLS13, ..ClientOptions::default() };
    // It shares a key for X25519 alone, and prefers that.
    options.provider.kx_groups = vec![kx_group::X25519MLKEM768];
    let link = Link::secured(&client(&authority, options), "a.example", &mut provider);
    assert_eq!(
        link.client.negotiated_key_exchange_group().unwrap().name(),
        rustls::NamedGroup::X25519MLKEM768
    );

    let mut options = ClientOptions { versions: TLS13, ..ClientOptions::default() };
    options.provider.kx_groups = vec![kx_group::MLKEM1024, kx_group::SECP384R1];
    let mut link = Link::new(&client(&authority, options), "a.example", &mut provider);
    link.run(1).unwrap();
    link.facts();
    assert_eq!(link.costly(), 2);
    assert_eq!(link.client.handshake_kind(), Some(rustls::HandshakeKind::FullWithHelloRetryRequest));
}

#[test]
fn ends_each_side_by_itself() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    for versions in [TLS12, TLS13] {
        let config = client(&authority, ClientOptions { versions, ..ClientOptions::default() });
        let mut link = Link::secured(&config, "a.example", &mut provider);
        link.client.send_close_notify();
        link.run(usize::MAX).unwrap();
        assert_eq!(link.outcome, Some(Step::Closed));
        assert_eq!(link.respond(&[b"still"]), b"still", "a client that has ended its side gets responses");
        let mut wire = Vec::new();
        link.session.close_notify(&mut wire);
        assert!(!wire.is_empty());
        link.answer(&wire).unwrap();
        assert!(link.client.process_new_packets().unwrap().peer_has_closed());
        assert_eq!(link.session.seal(&[std::io::IoSlice::new(b"x")], &mut wire), Err(Failure::Other));
        let length = wire.len();
        link.session.close_notify(&mut wire);
        assert_eq!(wire.len(), length, "once");
    }
}

#[test]
fn seals_nothing_before_the_handshake_is_complete() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    let mut link = Link::new(&client(&authority, ClientOptions::default()), "a.example", &mut provider);
    let mut wire = Vec::new();
    assert_eq!(link.session.seal(&[], &mut wire), Err(Failure::Other));
    link.session.close_notify(&mut wire);
    assert!(wire.is_empty() && link.session.facts().is_none());
}

#[test]
fn responds_to_key_updates() {
    let authority = Authority::new("Test");
    let config = client(&authority, ClientOptions { versions: TLS13, ..ClientOptions::default() });
    let mut link = Link::secured(&config, "a.example", &mut serve(one(&authority)));
    link.client.refresh_traffic_keys().unwrap();
    link.send(b"one");
    assert_eq!(link.respond(&[b"two", b"three"]), b"twothree");
    link.send(b"four");
    assert_eq!(link.received, b"onefour");
}

#[test]
fn takes_over_a_new_configuration_at_a_turn() {
    let authority = Authority::new("Test");
    let shared = SharedConfiguration::new(Configuration::new(one(&authority)).unwrap());
    let mut provider = TlsProvider::new(shared.clone());
    let config = client(&authority, ClientOptions::default());
    let before = Link::new(&config, "a.example", &mut provider);
    let old = Link::secured(&config, "a.example", &mut provider).presented().to_vec();
    shared.replace(Configuration::new(one(&authority)).unwrap());
    assert!(Link::secured(&config, "a.example", &mut provider).presented() == old, "not within a turn");
    provider.begin_turn(0);
    assert!(Link::secured(&config, "a.example", &mut provider).presented() != old);
    let mut before = before;
    before.run(usize::MAX).unwrap();
    assert!(before.presented() == old, "a session keeps the configuration that it began with");
}

#[test]
fn rejects_impossible_configurations() {
    let authority = Authority::new("Test");
    let new = |certificates| Configuration::new(Options { certificates, ..Options::default() }).unwrap_err();
    assert_eq!(new(Vec::new()), ConfigurationError::Empty);
    let pair = Some(authority.pair(&["a.example"]));
    let error = new(vec![named(&["a.example"], pair.clone()), named(&["A.example"], pair)]);
    assert_eq!(error.to_string(), "the server name `A.example` has two certificates");
    let with = |protocols| Configuration::new(Options { protocols, ..one(&authority) }).unwrap_err();
    assert_eq!(with(Vec::new()).to_string(), "expected at least one protocol, found none");
    let error = with(vec![Http2, Http11, Http2]);
    assert_eq!(error, ConfigurationError::ProtocolTwice(Http2));
    assert_eq!(error.to_string(), "the protocol `h2` occurs twice");
}
