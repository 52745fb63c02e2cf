//! Records that only a client with its keys can send, and that no client sends.

use aws_lc_rs::aead;
use rustls::{ClientConfig, ConnectionTrafficSecrets, ProtocolVersion};
use shearwater_io::secure::{Failure, Session, Step};
use shearwater_tls::TlsProvider;
use shearwater_tls::limits::MESSAGE_BYTES_MAX;
use testkit::random;

use crate::authority::Authority;
use crate::link::{ClientOptions, Link, TLS12, TLS13, client, one, serve};

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const CONTENT: u8 = 23;

/// A client after its handshake, with the keys taken out of it.
struct Forger {
    session: shearwater_tls::ServerSession,
    key: aead::LessSafeKey,
    iv: Vec<u8>,
    sequence: u64,
    is_tls13: bool,
    reply: Vec<u8>,
}

impl Forger {
    fn new(authority: &Authority, versions: &'static [&'static rustls::SupportedProtocolVersion]) -> Self {
        let mut provider: TlsProvider = serve(one(authority));
        let config = client(authority, ClientOptions { versions, ..ClientOptions::default() });
        let mut config = ClientConfig::clone(&config);
        config.enable_secret_extraction = true;
        let Link { client, session, .. } = Link::secured(&config.into(), "a.example", &mut provider);
        let is_tls13 = client.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        let (sequence, secrets) = client.dangerous_extract_secrets().unwrap().tx;
        let ConnectionTrafficSecrets::Aes256Gcm { key, iv } = secrets else { panic!("another suite") };
        let key = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::AES_256_GCM, key.as_ref()).unwrap());
        Self { session, key, iv: iv.as_ref().to_vec(), sequence, is_tls13, reply: Vec::new() }
    }

    /// Encrypts a record of this kind.
    fn record(&mut self, kind: u8, content: &[u8]) -> Vec<u8> {
        let sequence = self.sequence.to_be_bytes();
        self.sequence += 1;
        let mut nonce: [u8; 12] = self.iv[..].try_into().unwrap();
        nonce.iter_mut().skip(4).zip(sequence).for_each(|(byte, of_sequence)| *byte ^= of_sequence);
        let mut sealed = content.to_vec();
        let (outer, explicit) = if self.is_tls13 { (CONTENT, &[][..]) } else { (kind, &nonce[4..]) };
        if self.is_tls13 {
            sealed.push(kind);
        }
        let [high, low] = ((explicit.len() + sealed.len() + 16) as u16).to_be_bytes();
        let header = [outer, 3, 3, high, low];
        let aad = if self.is_tls13 {
            header.to_vec()
        } else {
            [&sequence[..], &[kind, 3, 3], &(content.len() as u16).to_be_bytes()].concat()
        };
        let tag = self
            .key
            .seal_in_place_separate_tag(
                aead::Nonce::assume_unique_for_key(nonce),
                aead::Aad::from(aad),
                &mut sealed,
            )
            .unwrap();
        [&header[..], explicit, &sealed, tag.as_ref()].concat()
    }

    /// Sends a record, and returns the step that ends its handling.
    fn send(&mut self, kind: u8, content: &[u8]) -> Step {
        let mut wire = self.record(kind, content);
        let opened = self.session.open(&mut wire, &mut self.reply);
        assert!(opened.consumed == wire.len() || matches!(opened.step, Step::Failed(_)));
        opened.step
    }
}

#[test]
fn refuses_renegotiation() {
    let mut forger = Forger::new(&Authority::new("Test"), TLS12);
    let hello = [&[1, 0, 0, 43, 3, 3][..], &[0; 32], &[0, 0, 2, 0xC0, 0x2B, 1, 0, 0, 0]].concat();
    assert_eq!(forger.send(HANDSHAKE, &hello), Step::Handled);
    assert_eq!(forger.reply[..3], [ALERT, 3, 3], "a warning, encrypted");
    assert_eq!(forger.send(CONTENT, b"x"), Step::Plain(0..1), "the session continues");
    let asked = (0..10).map(|_| forger.send(HANDSHAKE, &hello)).find(|step| *step != Step::Handled);
    assert_eq!(asked, Some(Step::Failed(Failure::Unsupported)), "not for ever");
}

#[test]
fn limits_unfinished_messages_after_the_handshake() {
    // A key update that says that it is 60,000 bytes long.
    let mut forger = Forger::new(&Authority::new("Test"), TLS13);
    assert_eq!(forger.send(HANDSHAKE, &[24, 0, 0xEA, 0x60]), Step::Handled);
    let idle = forger.session.held_bytes();
    let (mut most, mut count) = (0, 0);
    let step = loop {
        let step = forger.send(HANDSHAKE, &[0; 100]);
        if step != Step::Handled {
            break step;
        }
        (most, count) = (most.max(forger.session.held_bytes() - idle), count + 1);
    };
    assert_eq!(step, Step::Failed(Failure::BadRecord));
    assert!(most <= 2 * MESSAGE_BYTES_MAX && count > 20, "{most} bytes in {count} records");
}

/// A response is sealed while a message of the client isn't whole.
#[test]
fn seals_between_the_parts_of_a_message() {
    let mut forger = Forger::new(&Authority::new("Test"), TLS13);
    assert_eq!(forger.send(HANDSHAKE, &[24, 0, 0]), Step::Handled);
    let mut wire = Vec::new();
    forger.session.seal(&[std::io::IoSlice::new(b"response")], &mut wire).unwrap();
    assert!(!wire.is_empty());
    forger.session.close_notify(&mut wire);
    assert_eq!(forger.send(HANDSHAKE, &[1, 0]), Step::Handled, "the key update is whole");
}

#[test]
fn ignores_records_without_content_and_rejects_content_within_a_message() {
    for versions in [TLS12, TLS13] {
        let mut forger = Forger::new(&Authority::new("Test"), versions);
        for _ in 0..3 {
            assert_eq!(forger.send(CONTENT, b""), Step::Handled);
        }
        assert_eq!(forger.send(CONTENT, b"x"), Step::Plain(0..1));
        assert_eq!(forger.send(HANDSHAKE, &[24, 0]), Step::Handled);
        assert!(matches!(forger.send(CONTENT, b"x"), Step::Failed(_)));
        assert!(forger.session.seal(&[], &mut Vec::new()).is_err());
    }
}

#[test]
fn ends_with_the_client_s_alerts() {
    let mut forger = Forger::new(&Authority::new("Test"), TLS13);
    assert_eq!(forger.send(ALERT, &[2, 80]), Step::Failed(Failure::Alert));
    assert!(forger.session.facts().is_some(), "the result of the handshake stays, for logs");
    let mut forger = Forger::new(&Authority::new("Test"), TLS13);
    assert_eq!(forger.send(ALERT, &[1, 0]), Step::Closed);
    let mut more = forger.record(CONTENT, b"x");
    let opened = forger.session.open(&mut more, &mut forger.reply);
    assert_eq!((opened.step, opened.consumed), (Step::Closed, more.len()), "nothing follows close_notify");
}

/// Authentic records of any kind and content, in any order: no panic, and what is sealed in between is well-formed.
#[test]
fn survives_any_records() {
    let authority = Authority::new("Test");
    let mut random = random::part(1, 2);
    for round in 0..300 {
        let mut forger = Forger::new(&authority, if round % 2 == 0 { TLS12 } else { TLS13 });
        for _ in 0..random.usize(..30) {
            let kind = [20, ALERT, HANDSHAKE, HANDSHAKE, HANDSHAKE, CONTENT, 24, 99][random.usize(..8)];
            let length = [0, 1, 2, 4, 5, 100][random.usize(..6)];
            let mut content = random::bytes(&mut random, length);
            if let [first, length @ .., _] = &mut content[..]
                && random.bool()
            {
                *first = [0, 1, 4, 11, 16, 20, 24][random.usize(..7)];
                length.fill(0);
            }
            let step = forger.send(kind, &content);
            let mut wire = Vec::new();
            let sealed = forger.session.seal(&[std::io::IoSlice::new(b"x")], &mut wire);
            if let Step::Failed(failure) = step {
                assert_eq!(sealed, Err(failure));
                break;
            }
            assert!(sealed.is_err() || wire.len() >= 5 + 1 + 16);
        }
        forger.session.close_notify(&mut Vec::new());
    }
}
