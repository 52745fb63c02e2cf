//! Client certificates by server name.

use rustls::{AlertDescription, Error};
use shearwater_io::secure::{Failure, Step};
use shearwater_tls::{ClientAuthorities, Configuration, NamedCertificate, Options};

use crate::authority::{Authority, pem};
use crate::link::{ClientOptions, Link, TLS12, TLS13, client, named, serve};

fn authorities(of: &[&Authority]) -> ClientAuthorities {
    let pem: String = of.iter().map(|authority| pem("CERTIFICATE", &authority.der)).collect();
    ClientAuthorities::from_pem(pem.as_bytes()).unwrap()
}

/// `open.example` requests no certificate, `closed.example` one of `clients`.
fn options(server: &Authority, clients: &Authority) -> Options {
    let closed = NamedCertificate {
        clients: Some(authorities(&[clients])),
        ..named(&["closed.example"], Some(server.pair(&["closed.example"])))
    };
    let open = named(&["open.example"], Some(server.pair(&["open.example"])));
    Options { certificates: vec![open, closed], ..Options::default() }
}

#[test]
fn requires_a_certificate_of_the_name_s_authorities() {
    let (server, clients, strangers) =
        (Authority::new("Server"), Authority::new("Clients"), Authority::new("Others"));
    let mut provider = serve(options(&server, &clients));
    for versions in [TLS12, TLS13] {
        let issued = clients.issue(&["client"]);
        let der = issued.der.clone();
        let config = client(
            &server,
            ClientOptions { versions, certificate: Some(issued), ..ClientOptions::default() },
        );
        let mut link = Link::new(&config, "closed.example", &mut provider);
        link.run(1).unwrap();
        let facts = link.facts();
        assert_eq!(facts.client_certificates[..], [der.into_boxed_slice()]);
        assert_eq!(facts.client_policy, authorities(&[&clients]).policy());
        assert!(link.costly() >= 2, "verifying a certificate is costly, too");
        let facts = Link::secured(&config, "open.example", &mut provider).facts().clone();
        assert_eq!((facts.client_certificates.len(), facts.client_policy), (0, 0));

        let mut refused = |certificate, alert| {
            let config = client(&server, ClientOptions { versions, certificate, ..ClientOptions::default() });
            let mut link = Link::new(&config, "closed.example", &mut provider);
            let error = link.run(usize::MAX).unwrap_err();
            assert_eq!(link.failure(), Some(Failure::ClientCertificate));
            assert!(!link.steps.contains(&Step::Secured));
            assert_eq!(error, Error::AlertReceived(alert));
        };
        refused(Some(strangers.issue(&["client"])), AlertDescription::UnknownCA);
        let expired = clients.issue_until(&rcgen::PKCS_ECDSA_P256_SHA256, &["client"], 2024);
        refused(Some(expired), AlertDescription::CertificateExpired);
        refused(None, AlertDescription::CertificateRequired);
    }
}

#[test]
fn numbers_policies_by_their_authorities() {
    let (server, a, b) = (Authority::new("Server"), Authority::new("A"), Authority::new("B"));
    let configuration = Configuration::new(options(&server, &a)).unwrap();
    for host in
        ["closed.example", "Closed.Example", "closed.example.", "closed.example:443", "closed.example.:"]
    {
        assert_eq!(configuration.client_policy(host), authorities(&[&a]).policy());
    }
    assert_eq!(configuration.client_policy("open.example"), 0);
    assert_eq!(configuration.client_policy("other.example"), 0, "the default's");
    assert_eq!(authorities(&[&a, &b]).policy(), authorities(&[&b, &a]).policy());
    assert_ne!(authorities(&[&a]).policy(), authorities(&[&b]).policy());
}

/// A host must not have the content of one site and the policy of another.
#[test]
fn finds_policies_as_sites_are_found() {
    let (server, clients) = (Authority::new("Server"), Authority::new("Clients"));
    let closed = |names: &[&str]| NamedCertificate {
        clients: Some(authorities(&[&clients])),
        ..named(names, Some(server.pair(&["closed.example"])))
    };
    let open = |names: &[&str]| named(names, Some(server.pair(&["open.example"])));
    let policy = authorities(&[&clients]).policy();
    let of = |certificates: Vec<NamedCertificate>, host: &str| {
        Configuration::new(Options { certificates, ..Options::default() }).unwrap().client_policy(host)
    };
    let beneath = || vec![open(&["open.example"]), closed(&["*.closed.example."])];
    for host in ["a.closed.example", "b.a.closed.example", "c.b.a.Closed.Example:8443"] {
        assert_eq!(of(beneath(), host), policy, "{host}");
    }
    assert_eq!(of(beneath(), "closed.example"), 0);
    assert_eq!(of(beneath(), ".closed.example"), 0);
    let nested = vec![open(&["*.closed.example"]), closed(&["*.b.closed.example"])];
    assert_eq!(of(nested, "a.b.closed.example"), policy, "the longest wildcard");
    let by_default = || vec![closed(&[]), open(&["*.open.example"])];
    let overlong = format!("{}.open.example", "a".repeat(241));
    assert_eq!((of(by_default(), &overlong), of(by_default(), &overlong[1..])), (policy, 0));
}

#[test]
fn rejects_files_without_authorities() {
    let error = ClientAuthorities::from_pem(b"").unwrap_err();
    assert_eq!(error.to_string(), "found no certificate");
    let error = ClientAuthorities::read(std::path::Path::new("missing.pem")).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read the client authorities: ") && error.ends_with(" (missing.pem)"),
        "{error}"
    );
    assert!(ClientAuthorities::from_pem(pem("CERTIFICATE", b"x").as_bytes()).is_err());
}
