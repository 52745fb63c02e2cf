//! A client by TLS that trusts any certificate and keeps its sessions.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, HandshakeKind, ProtocolVersion, SignatureScheme,
    StreamOwned, SupportedProtocolVersion,
};
use testkit::TIMEOUT;

use crate::process::Server;

/// A client with its sessions.
pub(crate) struct TlsClient(Arc<ClientConfig>);

/// A response, and how the session of its connection began.
pub(crate) struct Exchanged {
    pub(crate) text: String,
    pub(crate) version: ProtocolVersion,
    pub(crate) is_resumed: bool,
}

impl TlsClient {
    pub(crate) fn new(version: &'static SupportedProtocolVersion) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(&[version]).expect("a version that is built in");
        let verifier = Arc::new(AnyCertificate(provider));
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        Self(Arc::new(builder.with_no_client_auth()))
    }

    /// Gets a path on a connection of its own, and reads to its end.
    pub(crate) fn get(&self, address: SocketAddr, path: &str) -> Exchanged {
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(Arc::clone(&self.0), name).expect("a client");
        let socket = TcpStream::connect(address).expect("it listens");
        socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        let mut stream = StreamOwned::new(connection, socket);
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a handshake, and it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("a whole response, and close_notify");
        let is_resumed = stream.conn.handshake_kind() == Some(HandshakeKind::Resumed);
        let version = stream.conn.protocol_version().expect("the handshake is complete");
        Exchanged { text, version, is_resumed }
    }
}

/// Returns the address of a server by TLS.
pub(crate) fn address(server: &Server) -> SocketAddr {
    let url = server.line("URL").expect("a URL");
    let authority = url.strip_prefix("https://").and_then(|url| url.strip_suffix('/')).expect(url);
    authority.parse().expect("an address and a port")
}

#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
