//! TLS of the client, and the switch by which suites run over it.

use std::env;
use std::fmt;
use std::io::Write as _;
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

use crate::error::{Error, malformed};

/// Environment variable that runs a suite over TLS: its servers have certificates, and [`Client::connect`](crate::Client::connect)
/// does a handshake.
pub const SWITCH: &str = "SHEARWATER_TEST_TLS";

/// Returns true if the suite runs over TLS.
pub fn is_on() -> bool {
    static IS_ON: OnceLock<bool> = OnceLock::new();
    *IS_ON.get_or_init(|| env::var_os(SWITCH).is_some_and(|value| !value.is_empty() && value != "0"))
}

/// Returns true if the suite runs over TLS, and says why this test then shows nothing: also where the output of tests that
/// pass is hidden.
pub fn skips(why: &str) -> bool {
    if is_on() {
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        // Without standard error nobody reads it.
        drop(writeln!(std::io::stderr(), "{test}: skipped over TLS: {why}"));
    }
    is_on()
}

/// Returns an `http://` target with the scheme of the suite's connections.
pub fn target(target: &str) -> String {
    let rest = target.get(..7).filter(|scheme| is_on() && scheme.eq_ignore_ascii_case("http://"));
    rest.map_or_else(|| target.to_owned(), |_| format!("https://{}", &target[7..]))
}

/// Settings of TLS clients. Connections with the same settings share their session tickets.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Optional settings of [`ClientTls`].
#[derive(Debug, Clone, Default)]
pub struct ClientTlsOptions<'a> {
    /// Certificate of the authority that must have signed the server's certificate, PEM; `None` accepts any.
    pub authority: Option<&'a [u8]>,
    /// The client's certificate and its key, PEM.
    pub certificate: Option<(&'a [u8], &'a [u8])>,
    /// The only version that is offered: `"1.2"` or `"1.3"`.
    pub version: Option<&'a str>,
    /// Protocols of ALPN; empty offers `http/1.1`.
    pub protocols: &'a [&'a str],
}

impl ClientTls {
    /// Returns settings for a server with this name, whose certificate isn't checked.
    pub fn any(name: &str) -> Self {
        // Nothing in default options can be wrong.
        Self::with(name, &ClientTlsOptions::default()).expect("a host name")
    }

    /// Returns settings for a server with this name.
    pub fn with(name: &str, options: &ClientTlsOptions<'_>) -> Result<Self, Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let versions: &[&SupportedProtocolVersion] = match options.version {
            None => rustls::DEFAULT_VERSIONS,
            Some("1.2") => &[&rustls::version::TLS12],
            Some("1.3") => &[&rustls::version::TLS13],
            Some(other) => return malformed(format!("version {other} of TLS: 1.2 and 1.3 are known")),
        };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(versions).map_err(failed)?;
        let builder = match options.authority {
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                roots.add(CertificateDer::from_pem_slice(pem).map_err(failed)?).map_err(failed)?;
                builder.with_root_certificates(roots)
            }
            None => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate::new(&provider)))
            }
        };
        let mut config = match options.certificate {
            Some((certificate, key)) => {
                let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
                let key = PrivateKeyDer::from_pem_slice(key).map_err(failed)?;
                builder.with_client_auth_cert(chain.map_err(failed)?, key).map_err(failed)?
            }
            None => builder.with_no_client_auth(),
        };
        let protocols = if options.protocols.is_empty() { &["http/1.1"] } else { options.protocols };
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from(name.to_owned()).map_err(failed)?;
        Ok(Self { config: Arc::new(config), name })
    }

    /// The settings of suites: a server with any certificate for `localhost`.
    pub(crate) fn of_suites() -> Self {
        static SHARED: OnceLock<ClientTls> = OnceLock::new();
        SHARED.get_or_init(|| Self::any("localhost")).clone()
    }

    /// The same, for HTTP/2 alone.
    pub(crate) fn of_suites_over_http2() -> Self {
        static SHARED: OnceLock<ClientTls> = OnceLock::new();
        let options = ClientTlsOptions { protocols: &["h2"], ..ClientTlsOptions::default() };
        SHARED.get_or_init(|| Self::with("localhost", &options).expect("a host name")).clone()
    }

    /// Returns the first bytes of a handshake: a ClientHello.
    pub fn hello(&self) -> Result<Vec<u8>, Error> {
        let mut hello = Vec::new();
        self.connection()?.write_tls(&mut hello)?;
        Ok(hello)
    }

    pub(crate) fn connection(&self) -> Result<ClientConnection, Error> {
        let mut connection =
            ClientConnection::new(Arc::clone(&self.config), self.name.clone()).map_err(failed)?;
        connection.set_buffer_limit(None);
        Ok(connection)
    }
}

fn failed(error: impl fmt::Display) -> Error {
    Error::Malformed(format!("TLS: {error}"))
}

/// Verifies that a server has the key of its certificate, and nothing else.
#[derive(Debug)]
pub struct AnyCertificate {
    algorithms: WebPkiSupportedAlgorithms,
    schemes: Vec<SignatureScheme>,
}

impl AnyCertificate {
    /// Accepts all signatures that the provider can verify.
    pub fn new(provider: &CryptoProvider) -> Self {
        let algorithms = provider.signature_verification_algorithms;
        Self { algorithms, schemes: algorithms.supported_schemes() }
    }

    /// Offers only these of them.
    pub fn with_schemes(self, schemes: Vec<SignatureScheme>) -> Self {
        Self { schemes, ..self }
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}
