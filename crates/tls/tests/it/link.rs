//! A client of rustls and a session, joined in memory.

use std::io::{IoSlice, Read, Write};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use shearwater_io::secure::{Failure, Provider, Session, SessionFacts, Step};
use shearwater_tls::{
    Configuration, NamedCertificate, Options, Pair, ServerSession, SharedConfiguration, TlsProvider,
};

use crate::authority::{Authority, Issued};

pub(crate) fn provider() -> CryptoProvider {
    #[cfg(feature = "aws-lc-rs")]
    return rustls::crypto::aws_lc_rs::default_provider();
    #[cfg(not(feature = "aws-lc-rs"))]
    return rustls::crypto::ring::default_provider();
}

/// Settings of a client.
pub(crate) struct ClientOptions<'a> {
    pub(crate) versions: &'static [&'static rustls::SupportedProtocolVersion],
    pub(crate) alpn: &'a [&'a str],
    pub(crate) certificate: Option<Issued>,
    pub(crate) has_sni: bool,
    pub(crate) fragment: Option<usize>,
    pub(crate) provider: CryptoProvider,
}

pub(crate) const TLS12: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS12];
pub(crate) const TLS13: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13];

impl Default for ClientOptions<'_> {
    fn default() -> Self {
        Self {
            versions: rustls::DEFAULT_VERSIONS,
            alpn: &["http/1.1"],
            certificate: None,
            has_sni: true,
            fragment: None,
            provider: provider(),
        }
    }
}

/// A client's configuration, which keeps the tickets that it gets.
pub(crate) fn client(authority: &Authority, options: ClientOptions<'_>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(authority.der.clone())).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(options.provider))
        .with_protocol_versions(options.versions)
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match options.certificate {
        Some(Issued { der, pkcs8 }) => {
            let key = PrivatePkcs8KeyDer::from(pkcs8).into();
            builder.with_client_auth_cert(vec![CertificateDer::from(der)], key).unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = options.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config.enable_sni = options.has_sni;
    config.max_fragment_size = options.fragment;
    Arc::new(config)
}

/// A certificate of one name, without client certificates.
pub(crate) fn named(names: &[&str], pair: Option<Pair>) -> NamedCertificate {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    NamedCertificate { names, pair, clients: None }
}

/// A worker's provider with these options.
pub(crate) fn serve(options: Options) -> TlsProvider {
    TlsProvider::new(SharedConfiguration::new(Configuration::new(options).unwrap()))
}

/// Options for one certificate, for `a.example`.
pub(crate) fn one(authority: &Authority) -> Options {
    let pair = authority.pair(&["a.example"]);
    Options { certificates: vec![named(&["a.example"], Some(pair))], ..Options::default() }
}

pub(crate) fn accept(provider: &mut TlsProvider) -> ServerSession {
    provider.accept(0)
}

/// A client's connection and the session of its server.
pub(crate) struct Link {
    pub(crate) client: ClientConnection,
    pub(crate) session: ServerSession,
    /// Bytes that the server has received and not opened.
    pub(crate) wire: Vec<u8>,
    /// Steps without a result for the peer: each `Handled` and `Costly`.
    pub(crate) steps: Vec<Step>,
    /// Content that the server has received.
    pub(crate) received: Vec<u8>,
    pub(crate) outcome: Option<Step>,
}

impl Link {
    pub(crate) fn new(config: &Arc<ClientConfig>, name: &str, provider: &mut TlsProvider) -> Self {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let client = ClientConnection::new(Arc::clone(config), name).unwrap();
        let session = accept(provider);
        Self { client, session, wire: Vec::new(), steps: Vec::new(), received: Vec::new(), outcome: None }
    }

    /// Joins both and completes the handshake.
    pub(crate) fn secured(config: &Arc<ClientConfig>, name: &str, provider: &mut TlsProvider) -> Self {
        let mut link = Self::new(config, name, provider);
        link.run(usize::MAX).unwrap();
        link
    }

    /// Moves bytes both ways until none are left, to the server in pieces of this length. Returns the client's error.
    pub(crate) fn run(&mut self, piece: usize) -> Result<(), rustls::Error> {
        loop {
            let mut sent = Vec::new();
            while self.client.wants_write() {
                self.client.write_tls(&mut sent).unwrap();
            }
            if sent.is_empty() {
                return Ok(());
            }
            let mut reply = Vec::new();
            for part in sent.chunks(piece) {
                self.wire.extend_from_slice(part);
                self.open(&mut reply);
            }
            self.answer(&reply)?;
        }
    }

    /// Opens what has been received.
    pub(crate) fn open(&mut self, reply: &mut Vec<u8>) {
        loop {
            let opened = self.session.open(&mut self.wire, reply);
            if let Step::Plain(range) = &opened.step {
                assert!(!range.is_empty() && range.end <= opened.consumed, "{opened:?}");
                self.received.extend_from_slice(&self.wire[range.clone()]);
            }
            self.wire.drain(..opened.consumed);
            match opened.step {
                Step::NeedMore => return,
                step @ (Step::Closed | Step::Failed(_)) => {
                    self.outcome = Some(step);
                    return;
                }
                step => self.steps.push(step),
            }
        }
    }

    /// Passes bytes to the client.
    pub(crate) fn answer(&mut self, mut wire: &[u8]) -> Result<(), rustls::Error> {
        while !wire.is_empty() {
            self.client.read_tls(&mut wire).unwrap();
            self.client.process_new_packets()?;
        }
        Ok(())
    }

    /// Sends content from the client.
    pub(crate) fn send(&mut self, content: &[u8]) {
        self.client.writer().write_all(content).unwrap();
        self.run(usize::MAX).unwrap();
    }

    /// Sends content from the server, and returns it as the client has read it.
    pub(crate) fn respond(&mut self, content: &[&[u8]]) -> Vec<u8> {
        let slices: Vec<IoSlice<'_>> = content.iter().map(|part| IoSlice::new(part)).collect();
        let mut wire = Vec::new();
        self.session.seal(&slices, &mut wire).unwrap();
        let mut read = Vec::new();
        for part in wire.chunks(1 << 12) {
            self.answer(part).unwrap();
            let state = self.client.process_new_packets().unwrap();
            let start = read.len();
            read.resize(start + state.plaintext_bytes_to_read(), 0);
            self.client.reader().read_exact(&mut read[start..]).unwrap();
        }
        read
    }

    pub(crate) fn facts(&self) -> &SessionFacts {
        self.session.facts().expect("the handshake is complete")
    }

    /// Returns whether the session is resumed, and has a client certificate.
    pub(crate) fn session_facts(&self) -> Option<(bool, bool)> {
        self.session.facts().map(|facts| (facts.is_resumed, !facts.client_certificates.is_empty()))
    }

    /// The reason for which the session has failed.
    pub(crate) fn failure(&self) -> Option<Failure> {
        if let Some(Step::Failed(failure)) = self.outcome { Some(failure) } else { None }
    }

    pub(crate) fn costly(&self) -> usize {
        self.steps.iter().filter(|step| **step == Step::Costly).count()
    }

    /// The certificate that the client was presented.
    pub(crate) fn presented(&self) -> &[u8] {
        &self.client.peer_certificates().unwrap()[0]
    }
}
