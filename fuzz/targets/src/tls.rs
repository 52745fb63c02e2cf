//! TLS sessions: any bytes are handled without a panic, in the same way however they are split, and open no content.

use std::sync::{Arc, LazyLock};

use shearwater_io::secure::{Provider, Session, Step};
use shearwater_tls::{
    Configuration, NamedCertificate, Options, ServerSession, SharedConfiguration, Tickets, TlsProvider,
    self_signed,
};

/// A server of one name, with session tickets.
static SERVER: LazyLock<Arc<SharedConfiguration>> = LazyLock::new(|| {
    let pair = self_signed(&["a.example"], 1_795_694_400).expect("the name is valid");
    let certificate =
        NamedCertificate { names: vec!["a.example".to_owned()], pair: Some(pair), clients: None };
    let tickets = Tickets::from_file_bytes(&[1; 80]).expect("it is one key");
    let options = Options {
        certificates: vec![certificate],
        plain_http_response: b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        tickets: Some(Arc::new(tickets)),
        ..Options::default()
    };
    SharedConfiguration::new(Configuration::new(options).expect("it has a certificate"))
});

/// Receives the first bytes of a connection, whole and byte by byte.
pub fn run(input: &[u8]) {
    let mut provider = TlsProvider::new(Arc::clone(&SERVER));
    let whole = receive(provider.accept(0), input, usize::MAX);
    let bytes = receive(provider.accept(0), input, 1);
    assert_eq!(whole, bytes);
}

/// Opens the input in pieces. Returns the last step that isn't of a record's middle, and whether the peer is sent bytes.
fn receive(mut session: ServerSession, input: &[u8], piece: usize) -> (Step, bool) {
    let (mut wire, mut reply) = (Vec::new(), Vec::new());
    for part in input.chunks(piece) {
        wire.extend_from_slice(part);
        loop {
            let opened = session.open(&mut wire, &mut reply);
            assert!(opened.consumed <= wire.len());
            wire.drain(..opened.consumed);
            match opened.step {
                Step::NeedMore => break,
                Step::Handled | Step::Costly => {}
                Step::Failed(failure) => {
                    assert!(session.facts().is_none());
                    assert_eq!(session.open(&mut [0], &mut reply).step, Step::Failed(failure));
                    return (opened.step, !reply.is_empty());
                }
                // Without a key exchange there is no content, and no end.
                step => panic!("{step:?}"),
            }
        }
    }
    (Step::NeedMore, !reply.is_empty())
}
