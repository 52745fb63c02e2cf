//! Input that isn't TLS, is malformed, too large, or ends early.

use rustls::{AlertDescription, Error};
use shearwater_io::secure::{Failure, Provider, Session, Step};
use shearwater_tls::limits::{HANDSHAKE_BYTES_MAX, HELLO_BYTES_MAX, MESSAGE_BYTES_MAX};
use shearwater_tls::{Options, TlsProvider};
use testkit::random;

use crate::authority::Authority;
use crate::link::{ClientOptions, Link, TLS12, TLS13, accept, client, one, serve};

const RESPONSE: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\r\n";

/// Opens bytes until nothing more happens. Returns the failure, and what the peer is sent.
fn open(provider: &mut TlsProvider, wire: &[u8]) -> (Option<Failure>, Vec<u8>) {
    let (mut session, mut wire, mut reply) = (accept(provider), wire.to_vec(), Vec::new());
    loop {
        let opened = session.open(&mut wire, &mut reply);
        wire.drain(..opened.consumed);
        match opened.step {
            Step::NeedMore => return (None, reply),
            Step::Failed(failure) => return (Some(failure), reply),
            _ => {}
        }
    }
}

fn alert(description: u8) -> Vec<u8> {
    vec![21, 3, 3, 0, 2, 2, description]
}

/// A record of the handshake.
fn record(content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[22, 3, 1, high, low][..], content].concat()
}

/// A client's first bytes.
fn hello(authority: &Authority) -> Vec<u8> {
    let mut provider = serve(one(authority));
    let mut link = Link::new(&client(authority, ClientOptions::default()), "a.example", &mut provider);
    let mut wire = Vec::new();
    link.client.write_tls(&mut wire).unwrap();
    wire
}

#[test]
fn responds_to_plain_http() {
    let mut provider =
        serve(Options { plain_http_response: RESPONSE.to_vec(), ..one(&Authority::new("Test")) });
    let failed = Some(Failure::NotTls);
    for wire in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        assert_eq!(open(&mut provider, wire), (failed, RESPONSE.to_vec()));
    }
    for wire in [&[0][..], &[0x80, 46, 1, 3, 1], &[23, 3, 3, 0, 1, 0], &[22, 2, 0], b"\r\n"] {
        assert_eq!(open(&mut provider, wire), (failed, Vec::new()), "{wire:?}");
    }
    assert_eq!(open(&mut provider, &[21, 3, 3, 0, 2, 2, 0]), (Some(Failure::Alert), Vec::new()));
    assert_eq!(open(&mut provider, &[]), (None, Vec::new()));
    assert_eq!(open(&mut provider, &[22]), (None, Vec::new()));
}

#[test]
fn rejects_malformed_hellos() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    let bad = Some(Failure::BadRecord);
    let hello = hello(&authority);
    for (wire, description) in [
        (vec![22, 3, 1, 0, 0], 10),                                    // an empty record
        (vec![22, 3, 1, 0x40, 1], 22),                                 // a record that is too large
        (vec![22, 3, 1, 0, 5, 2, 0, 0, 1, 0], 10),                     // a ServerHello
        (vec![22, 3, 1, 0, 5, 20], 10), // a Finished, of which one byte has arrived
        (vec![22, 3, 1, 0, 5, 1, 0xFF, 0xFF, 0xFF, 0], 50), // a hello of 16 MiB
        ([&record(&hello[5..9])[..], &[23, 3, 3, 0, 1]].concat(), 10), // another record in between
        (record(&[&hello[5..], b"x"].concat()), 10), // bytes after the hello
        (record(&[1, 0, 0, 0]), 50),    // a hello without content
        (record(&[1, 0, 0, 2, 3, 3]), 50), // a hello that ends early
    ] {
        assert_eq!(open(&mut provider, &wire), (bad, alert(description)), "{}", wire.escape_ascii());
    }
}

/// A ClientHello with an extension of padding.
fn padded(hello: &[u8], length: usize) -> Vec<u8> {
    let mut message = hello[5..].to_vec();
    let extensions_at = {
        let session = 4 + 2 + 32;
        let suites = session + 1 + usize::from(message[session]);
        let compression =
            suites + 2 + usize::from(u16::from_be_bytes([message[suites], message[suites + 1]]));
        compression + 1 + usize::from(message[compression])
    };
    let padding = length - message.len() - 4;
    let old = usize::from(u16::from_be_bytes([message[extensions_at], message[extensions_at + 1]]));
    message[extensions_at..extensions_at + 2].copy_from_slice(&((old + 4 + padding) as u16).to_be_bytes());
    // Behind the extensions' length, since the last one may have to be the last.
    let extension = [&[0, 21][..], &(padding as u16).to_be_bytes(), &vec![0; padding]].concat();
    message.splice(extensions_at + 2..extensions_at + 2, extension);
    let size = (message.len() - 4) as u32;
    message[1..4].copy_from_slice(&size.to_be_bytes()[1..]);
    message
}

#[test]
fn limits_the_hello_however_it_is_fragmented() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    let hello = hello(&authority);
    for fragment in [1, 2, 1000, 1 << 14] {
        let records = |message: &[u8]| message.chunks(fragment).flat_map(record).collect::<Vec<u8>>();
        let (failure, reply) = open(&mut provider, &records(&padded(&hello, 60_000)));
        assert_eq!((failure, reply[0]), (None, 22), "a ServerHello, to fragments of {fragment}");
        let mut large = padded(&hello, 60_000);
        let size = (HELLO_BYTES_MAX + 1 - 4) as u32;
        large[1..4].copy_from_slice(&size.to_be_bytes()[1..]);
        assert_eq!(open(&mut provider, &records(&large)), (Some(Failure::BadRecord), alert(50)));
    }
}

#[test]
fn reports_alerts_of_the_peer() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    let other = Authority::new("Other");
    for versions in [TLS12, TLS13] {
        let config = client(&other, ClientOptions { versions, ..ClientOptions::default() });
        let mut link = Link::new(&config, "a.example", &mut provider);
        assert!(matches!(link.run(usize::MAX), Err(Error::InvalidCertificate(_))));
        // The client's alert is still to be sent.
        link.run(usize::MAX).unwrap();
        assert_eq!(link.failure(), Some(Failure::Alert));
        let mut wire = vec![1, 2, 3];
        assert_eq!(
            link.session.open(&mut wire, &mut Vec::new()).step,
            Step::Failed(Failure::Alert),
            "for good"
        );
    }
}

#[test]
fn rejects_damaged_records() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    for versions in [TLS12, TLS13] {
        let config = client(&authority, ClientOptions { versions, ..ClientOptions::default() });
        for damage in ["bit", "length", "type", "plain"] {
            let mut link = Link::secured(&config, "a.example", &mut provider);
            std::io::Write::write_all(&mut link.client.writer(), b"content").unwrap();
            link.client.write_tls(&mut link.wire).unwrap();
            let expected = match damage {
                "bit" => {
                    link.wire[20] ^= 1;
                    AlertDescription::BadRecordMac
                }
                "length" => {
                    link.wire[3] = 0x50;
                    AlertDescription::DecodeError
                }
                "type" => {
                    link.wire[0] = 99;
                    AlertDescription::DecodeError
                }
                _ => {
                    link.wire = record(&[1, 0, 0, 0]);
                    AlertDescription::BadRecordMac
                }
            };
            let mut reply = Vec::new();
            link.open(&mut reply);
            assert_eq!(link.failure(), Some(Failure::BadRecord), "{damage}");
            assert_eq!(link.answer(&reply), Err(Error::AlertReceived(expected)), "{damage}");
        }
    }
}

/// An unfinished message after the handshake; before it, a client certificate could be as large as rustls allows.
#[test]
fn limits_unfinished_messages() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    let config = client(&authority, ClientOptions { versions: TLS12, ..ClientOptions::default() });
    let mut link = Link::new(&config, "a.example", &mut provider);
    // The server waits for the key exchange: a message of 60 KB in records of one byte.
    link.client.write_tls(&mut link.wire).unwrap();
    let mut reply = Vec::new();
    link.open(&mut reply);
    let message = [&[16, 0, 0xEA, 0x60][..], &[0; 60_000]].concat();
    let mut most = 0;
    for byte in message.chunks(1) {
        link.wire.extend_from_slice(&record(byte));
        link.open(&mut reply);
        most = most.max(link.session.held_bytes());
        if link.outcome.is_some() {
            break;
        }
    }
    assert_eq!(link.failure(), Some(Failure::BadRecord));
    assert!(most > HANDSHAKE_BYTES_MAX && most < 3 * HANDSHAKE_BYTES_MAX, "{most}");
    assert!(link.session.held_bytes() < 1000, "it is freed");
    const { assert!(MESSAGE_BYTES_MAX < HANDSHAKE_BYTES_MAX) };
}

/// Any prefix of a handshake is either incomplete or, in a client's second flight, the end of the session's memory.
#[test]
fn waits_for_the_rest_of_every_prefix() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    let hello = hello(&authority);
    for end in 0..hello.len() {
        let (failure, reply) = open(&mut provider, &hello[..end]);
        assert_eq!((failure, reply), (None, Vec::new()), "{end}");
    }
}

/// Changes handshakes and content at random: no panic, no endless loop, and no content that wasn't sent.
#[test]
fn survives_any_bytes() {
    let authority = Authority::new("Test");
    let mut provider = serve(one(&authority));
    let configs = [TLS12, TLS13]
        .map(|versions| client(&authority, ClientOptions { versions, ..ClientOptions::default() }));
    let mut random = random::part(1, 1);
    for round in 0..3000 {
        let mut link = Link::new(&configs[round % 2], "a.example", &mut provider);
        let (mut reply, mut flights) = (Vec::new(), random.u32(..3));
        while link.client.wants_write() && link.outcome.is_none() {
            let mut sent = Vec::new();
            link.client.write_tls(&mut sent).unwrap();
            if flights == 0 {
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(..sent.len());
                    match random.u8(..4) {
                        0 => sent[at] = random.u8(..),
                        1 => sent[at] ^= 1 << random.u8(..8),
                        2 => sent.truncate(at + 1),
                        _ => drop(sent.splice(at..at, random::bytes(&mut random, 6))),
                    }
                }
            }
            flights = flights.wrapping_sub(1);
            for part in sent.chunks(random.usize(1..2000)) {
                link.wire.extend_from_slice(part);
                link.open(&mut reply);
            }
            if link.answer(&std::mem::take(&mut reply)).is_err() {
                break;
            }
        }
        assert!(link.received.is_empty());
        let _ = link.session.seal(&[std::io::IoSlice::new(b"x")], &mut reply);
        link.session.close_notify(&mut reply);
    }
    provider.begin_turn(0);
}
