//! Allocations of a session: none that grow with its age, few per record, little while it is idle.

use std::io::{IoSlice, Read, Write};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use shearwater_io::secure::{Provider, Session, Step};
use shearwater_tls::{
    Configuration, NamedCertificate, Options, ServerSession, SharedConfiguration, Tickets, TlsProvider,
    self_signed,
};
use testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Largest memory of an idle session, in bytes, beside what the driver holds for its connection.
const IDLE_BYTES_MAX: u64 = 4096;
/// Of that, the state of two ciphers in AWS-LC: 3,950 bytes of resident memory a session, less what Rust allocates.
const LIBRARY_BYTES: u64 = 1500;

fn clients(certificate: &[u8]) -> Arc<ClientConfig> {
    #[cfg(feature = "aws-lc-rs")]
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    #[cfg(not(feature = "aws-lc-rs"))]
    let provider = rustls::crypto::ring::default_provider();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate.to_vec())).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// Moves bytes until both wait, with buffers that are used again.
fn run(
    client: &mut ClientConnection,
    session: &mut ServerSession,
    wire: &mut Vec<u8>,
    reply: &mut Vec<u8>,
) -> usize {
    let mut received = 0;
    while client.wants_write() {
        wire.clear();
        client.write_tls(wire).unwrap();
        let mut at = 0;
        loop {
            let opened = session.open(&mut wire[at..], reply);
            at += opened.consumed;
            match opened.step {
                Step::NeedMore => break,
                Step::Plain(range) => received += range.len(),
                Step::Failed(failure) => panic!("{failure:?}"),
                _ => {}
            }
        }
        let mut answer = &reply[..];
        while !answer.is_empty() {
            client.read_tls(&mut answer).unwrap();
            client.process_new_packets().unwrap();
        }
        reply.clear();
    }
    received
}

#[test]
fn counts_allocations_per_record_and_bytes_while_idle() {
    let pair = self_signed(&["a.example"], 1_795_694_400).unwrap();
    let config = clients(pair.chain().next().unwrap());
    let named = NamedCertificate { names: vec!["a.example".to_owned()], pair: Some(pair), clients: None };
    let tickets = Some(Arc::new(Tickets::random(0).unwrap()));
    let options = Options { certificates: vec![named], tickets, ..Options::default() };
    let mut provider = TlsProvider::new(SharedConfiguration::new(Configuration::new(options).unwrap()));
    let (mut wire, mut reply) = (Vec::with_capacity(1 << 17), Vec::with_capacity(1 << 17));
    // Also what is allocated once.
    let mut connect = || {
        let name = ServerName::try_from("a.example").unwrap();
        let mut client = ClientConnection::new(Arc::clone(&config), name).unwrap();
        let before = ALLOCATOR.on_this_thread();
        let mut session = provider.accept(0);
        let accepted = ALLOCATOR.on_this_thread() - before;
        assert_eq!(accepted.calls(), 0, "a connection that sends nothing");
        run(&mut client, &mut session, &mut wire, &mut reply);
        (client, session)
    };
    drop(connect());

    // The memory of a session is what is freed with it.
    let (mut client, mut session) = connect();
    client.writer().write_all(&[b'x'; 500]).unwrap();
    let (mut wire, mut reply) = (Vec::with_capacity(1 << 17), Vec::with_capacity(1 << 17));
    assert_eq!(run(&mut client, &mut session, &mut wire, &mut reply), 500);

    let content = vec![b'y'; 1 << 16];
    let (head, body) = content.split_at(300);
    let mut seal = |slices: &[IoSlice<'_>], session: &mut ServerSession| {
        reply.clear();
        let before = ALLOCATOR.on_this_thread();
        session.seal(slices, &mut reply).unwrap();
        ALLOCATOR.on_this_thread() - before
    };
    let small = seal(&[IoSlice::new(head), IoSlice::new(&body[..1024])], &mut session);
    let large = seal(&[IoSlice::new(body)], &mut session);
    println!("seal: 1 record {} allocations, 4 records {}", small.allocations, large.allocations);
    assert_eq!((small.allocations, small.reallocations), (1, 0), "rustls's own record");
    assert_eq!((large.allocations, large.reallocations), (4, 0));

    let mut opened = 0;
    for _ in 0..2 {
        client.writer().write_all(&[b'x'; 500]).unwrap();
        wire.clear();
        client.write_tls(&mut wire).unwrap();
        let before = ALLOCATOR.on_this_thread();
        let step = session.open(&mut wire, &mut reply).step;
        opened = (ALLOCATOR.on_this_thread() - before).allocations;
        assert_eq!(step, Step::Plain(0..500));
    }
    println!("open: {opened} allocations a record");
    assert!(opened <= 2, "{opened}");

    let estimate = session.held_bytes() as u64;
    let before = ALLOCATOR.on_this_thread();
    drop(session);
    let freed = ALLOCATOR.on_this_thread() - before;
    let held = freed.bytes_freed + size_of::<ServerSession>() as u64;
    println!("idle: {held} bytes in {} blocks, estimated {estimate}", freed.frees);
    // Keys of AWS-LC aren't allocated by Rust's allocator.
    let library = if cfg!(feature = "aws-lc-rs") { LIBRARY_BYTES } else { 0 };
    assert!(held + library <= IDLE_BYTES_MAX, "{held}");
    assert!(estimate.abs_diff(held + library) < 512, "{held}, estimated {estimate}");
    let mut rest = Vec::new();
    let _ = client.reader().read_to_end(&mut rest);
}
