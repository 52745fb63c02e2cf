//! The server of a suite on a free local port: in clear, or by TLS if [`testkit::tls::is_on`]; HTTP/2 by prior knowledge if
//! [`testkit::http2::is_on`].

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use shearwater::tls::{Configuration, NamedCertificate, Options, Pair, SharedConfiguration, self_signed};
use shearwater::{Http2Options, ListenAddress, Server};

/// Returns a server on a free port.
pub(crate) fn local_server() -> Server {
    let server = if testkit::tls::is_on() { server_by_tls() } else { Server::bind("127.0.0.1:0") };
    server.http2(http2())
}

/// Returns the suite's options of HTTP/2.
pub(crate) fn http2() -> Http2Options {
    Http2Options { prior_knowledge: testkit::http2::is_on(), ..Http2Options::default() }
}

/// Returns a server on a free port, by TLS.
pub(crate) fn server_by_tls() -> Server {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    Server::at(ListenAddress::Tls(address)).tls(certificates())
}

/// Returns a certificate for any name, without a check of clients.
pub(crate) fn certificates() -> Arc<SharedConfiguration> {
    static PAIR: OnceLock<Pair> = OnceLock::new();
    let pair = PAIR.get_or_init(|| {
        let now = SystemTime::UNIX_EPOCH.elapsed().expect("a time after 1970").as_secs();
        self_signed(&["localhost", "127.0.0.1"], now).expect("a certificate")
    });
    let certificate = NamedCertificate { names: Vec::new(), pair: Some(pair.clone()), clients: None };
    let options = Options { certificates: vec![certificate], ..Options::default() };
    SharedConfiguration::new(Configuration::new(options).expect("a certificate"))
}
