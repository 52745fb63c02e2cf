//! Resumption by tickets, and their keys.

use std::sync::Arc;

use rustls::{ClientConfig, HandshakeKind};
use shearwater_io::secure::{Provider, Version};
use shearwater_tls::limits::{TICKET_KEYS_KEPT, TICKET_KEYS_MAX, TICKET_ROTATION_SECONDS};
use shearwater_tls::{
    ClientAuthorities, Configuration, NamedCertificate, Options, SharedConfiguration, TicketKeysError,
    Tickets, TlsProvider,
};

use crate::authority::{Authority, pem};
use crate::link::{ClientOptions, Link, TLS12, TLS13, client, one, serve};

const NOW: u64 = 1_795_694_400;

/// A server with these keys.
fn with_keys(authority: &Authority, tickets: Tickets) -> TlsProvider {
    serve(Options { tickets: Some(Arc::new(tickets)), ..one(authority) })
}

/// Connects, and returns whether the session was resumed, as both sides report it.
fn resumes(config: &Arc<ClientConfig>, provider: &mut TlsProvider) -> bool {
    let mut link = Link::secured(config, "a.example", provider);
    link.send(b"x");
    assert_eq!(link.respond(&[b"y"]), b"y");
    let is_resumed = link.facts().is_resumed;
    assert_eq!(link.client.handshake_kind() == Some(HandshakeKind::Resumed), is_resumed);
    is_resumed
}

#[test]
fn resumes_sessions_of_both_versions() {
    let authority = Authority::new("Test");
    let mut provider = with_keys(&authority, Tickets::random(NOW).unwrap());
    for (versions, version) in [(TLS12, Version::Tls12), (TLS13, Version::Tls13)] {
        let config = client(&authority, ClientOptions { versions, ..ClientOptions::default() });
        assert!(!resumes(&config, &mut provider));
        assert!(resumes(&config, &mut provider));
        let link = Link::secured(&config, "a.example", &mut provider);
        let facts = link.facts();
        assert_eq!((facts.version, facts.is_resumed, facts.alpn), (version, true, Some("http/1.1")));
    }
}

#[test]
fn resumes_nothing_without_keys() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    for versions in [TLS12, TLS13] {
        let config = client(&authority, ClientOptions { versions, ..ClientOptions::default() });
        assert!(!resumes(&config, &mut provider) && !resumes(&config, &mut provider));
    }
}

/// As an upgrade does, and a reload.
#[test]
fn resumes_in_another_process_with_the_exported_keys() {
    let authority = Authority::new("Test");
    for versions in [TLS12, TLS13] {
        let tickets = Arc::new(Tickets::random(NOW).unwrap());
        let mut old = serve(Options { tickets: Some(tickets.clone()), ..one(&authority) });
        let config = client(&authority, ClientOptions { versions, ..ClientOptions::default() });
        assert!(!resumes(&config, &mut old));
        let mut new = with_keys(&authority, Tickets::import(tickets.export().as_bytes()).unwrap());
        assert!(resumes(&config, &mut new));
        let mut stranger = with_keys(&authority, Tickets::random(NOW).unwrap());
        assert!(!resumes(&config, &mut stranger), "a ticket of another server is ignored");
    }
}

#[test]
fn resumes_on_every_server_with_the_key_file() {
    let authority = Authority::new("Test");
    let (one, two, three) = ([1_u8; 80], [2; 80], [3; 80]);
    let keys = |keys: &[[u8; 80]]| with_keys(&authority, Tickets::from_file_bytes(&keys.concat()).unwrap());
    let config = client(&authority, ClientOptions { versions: TLS12, ..ClientOptions::default() });
    assert!(!resumes(&config, &mut keys(&[one])));
    assert!(resumes(&config, &mut keys(&[one])));
    assert!(
        resumes(&config, &mut keys(&[two, one])),
        "an older key opens; the client gets a ticket of the first"
    );
    assert!(!resumes(&config, &mut keys(&[three, one])));
    assert!(resumes(&config, &mut keys(&[one, three])));
}

#[test]
fn rotates_keys() {
    let authority = Authority::new("Test");
    for versions in [TLS12, TLS13] {
        // A client that never gets a newer ticket: the server issues none on resumption by TLS 1.2, so each has its own.
        let kept = |ages: u64| {
            let mut provider = with_keys(&authority, Tickets::random(NOW).unwrap());
            let config = client(&authority, ClientOptions { versions, ..ClientOptions::default() });
            assert!(!resumes(&config, &mut provider));
            for age in 1..=ages {
                provider.begin_turn(NOW + age * TICKET_ROTATION_SECONDS);
                provider.begin_turn(NOW + age * TICKET_ROTATION_SECONDS + 1);
            }
            resumes(&config, &mut provider)
        };
        assert!(kept(0) && kept(TICKET_KEYS_KEPT as u64 - 1));
        assert!(!kept(TICKET_KEYS_KEPT as u64));
    }
}

#[test]
fn rotates_once_per_interval_whatever_the_clock_does() {
    let count = |tickets: &Tickets| (tickets.export().as_bytes().len() - 9) / 80;
    let tickets = Tickets::random(NOW).unwrap();
    tickets.rotate(NOW + TICKET_ROTATION_SECONDS - 1);
    assert_eq!(count(&tickets), 1);
    tickets.rotate(NOW + 10 * TICKET_ROTATION_SECONDS);
    assert_eq!(count(&tickets), 2, "once, however late");
    tickets.rotate(NOW);
    assert_eq!(count(&tickets), 3, "a clock that was set back delays it by no more than an interval");
    tickets.rotate(NOW + TICKET_ROTATION_SECONDS - 1);
    tickets.rotate(u64::MAX);
    assert_eq!(count(&tickets), TICKET_KEYS_KEPT);

    let imported = Tickets::import(tickets.export().as_bytes()).unwrap();
    assert_eq!(imported.export().as_bytes(), tickets.export().as_bytes(), "the rotation continues");
    let of_file = Tickets::from_file_bytes(&[7; 160]).unwrap();
    of_file.rotate(u64::MAX);
    assert_eq!(count(&of_file), 2, "a file's keys are only replaced");
    tickets.replace(&of_file);
    assert_eq!(tickets.export().as_bytes(), of_file.export().as_bytes());
}

#[test]
fn rejects_malformed_keys() {
    let parse = |length: usize| Tickets::from_file_bytes(&vec![0; length]).err();
    for length in [48, 96, 80, 160, 240, 16 * 80, 16 * 48] {
        assert_eq!(parse(length), None, "{length}");
    }
    for length in [0, 1, 47, 81, 128] {
        assert_eq!(parse(length), Some(TicketKeysError::Length(length)));
    }
    assert_eq!(parse((TICKET_KEYS_MAX + 1) * 80), Some(TicketKeysError::TooMany));
    assert_eq!(Tickets::import(&[0; 89]).err(), Some(TicketKeysError::NotAnExport));
    assert_eq!(Tickets::import(&[1; 8]).err(), Some(TicketKeysError::NotAnExport));
    assert_eq!(Tickets::import(&[1; 9]).err(), Some(TicketKeysError::Length(0)));
    assert_eq!(
        TicketKeysError::Length(7).to_string(),
        "expected session ticket keys of 80 or 48 bytes each, found 7 bytes"
    );
}

#[test]
fn debug_output_contains_no_ticket_key() {
    let debug = format!("{:?}", Tickets::from_file_bytes(&[123; 80]).unwrap());
    assert_eq!(debug, "Tickets { keys: 1, rotation: 0, .. }");
    let debug = format!("{:?}", Tickets::from_file_bytes(&[123; 80]).unwrap().export());
    assert_eq!(debug, "ExportedKeys { .. }");
}

/// A ticket of a name without client certificates, or of other authorities, never replaces a certificate.
#[test]
fn tickets_do_not_cross_client_policies() {
    let (authority, other) = (Authority::new("Test"), Authority::new("Other"));
    let pair = authority.pair(&["a.example"]);
    let tickets = Arc::new(Tickets::random(NOW).unwrap());
    let configuration = |clients: Option<&Authority>| {
        let clients = clients
            .map(|clients| ClientAuthorities::from_pem(pem("CERTIFICATE", &clients.der).as_bytes()).unwrap());
        let named =
            NamedCertificate { names: vec!["a.example".to_owned()], pair: Some(pair.clone()), clients };
        let options =
            Options { certificates: vec![named], tickets: Some(tickets.clone()), ..Options::default() };
        Configuration::new(options).unwrap()
    };
    for versions in [TLS12, TLS13] {
        let certificate = Some(authority.issue(&["client"]));
        let config = client(&authority, ClientOptions { versions, certificate, ..ClientOptions::default() });
        let shared = SharedConfiguration::new(configuration(None));
        let mut provider = TlsProvider::new(shared.clone());
        let mut reload = |clients| {
            shared.replace(configuration(clients));
            provider.begin_turn(NOW);
            let mut link = Link::new(&config, "a.example", &mut provider);
            let result = link.run(usize::MAX);
            (result.is_ok(), link.session_facts())
        };
        let resumed = |facts: Option<(bool, bool)>| facts.map(|(is_resumed, _)| is_resumed);
        let (_, facts) = reload(None);
        assert_eq!(facts, Some((false, false)));
        let (_, facts) = reload(None);
        assert_eq!(resumed(facts), Some(true));
        let (_, facts) = reload(Some(&authority));
        assert_eq!(facts, Some((false, true)), "a full handshake, with the certificate");
        let (_, facts) = reload(Some(&authority));
        assert_eq!(facts, Some((true, true)), "a resumed session has the certificate of its ticket");
        let (_, facts) = reload(Some(&other));
        assert_eq!(facts, None, "other authorities don't accept the certificate of the ticket");
        let (_, facts) = reload(None);
        assert_eq!(facts, Some((false, false)));
    }
}
