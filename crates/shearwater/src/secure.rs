//! HTTPS: addresses with TLS, and their certificates.

use std::sync::Arc;

use shearwater_tls::SharedConfiguration;

use crate::address::TLS_PREFIX;
use crate::server::Server;

impl Server {
    /// Creates a server for one TCP address with TLS and these [certificates](Self::tls). The address has the format
    /// of [`bind`](Self::bind).
    ///
    /// ```no_run
    /// use shearwater::tls::{Configuration, Options, Pair};
    /// use shearwater::{App, Request, Server, get};
    ///
    /// fn version(request: &Request) -> &'static str {
    ///     request.tls().map_or("no TLS", |session| session.version().as_str())
    /// }
    ///
    /// let pair = Pair::read("cert.pem".as_ref(), "key.pem".as_ref())?;
    /// let certificates = Configuration::new(Options::of_pair(pair)?)?;
    /// Server::with_tls("[::]:8443", certificates).run(App::new().route("/", get(version)))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If it is a Unix-domain socket: these have no TLS.
    #[must_use]
    pub fn with_tls(address: impl Into<String>, certificates: impl Into<Arc<SharedConfiguration>>) -> Self {
        Self::without_addresses().listen_tls(address).tls(certificates)
    }

    /// Adds a TCP address whose connections begin with TLS, in the format of [`bind`](Self::bind). It needs
    /// [`tls`](Self::tls).
    ///
    /// # Panics
    /// If it is a Unix-domain socket: these have no TLS.
    #[must_use]
    pub fn listen_tls(mut self, address: impl Into<String>) -> Self {
        let address = address.into();
        assert!(!address.starts_with("unix:"), "{address} can't have TLS");
        self.addresses.push(format!("{TLS_PREFIX}{address}"));
        self
    }

    /// Sets the certificates of addresses with TLS ([`listen_tls`](Self::listen_tls), [`ListenAddress::Tls`](crate::ListenAddress::Tls)).
    ///
    /// [`SharedConfiguration::replace`](shearwater_tls::SharedConfiguration::replace) replaces them while the server runs.
    /// Only a server that was started with certificates can get addresses with TLS by a reload.
    ///
    /// ```no_run
    /// use shearwater::tls::{Configuration, Options, Pair};
    /// use shearwater::{App, Request, Server, get};
    ///
    /// let pair = Pair::read("cert.pem".as_ref(), "key.pem".as_ref())?;
    /// let server = Server::bind("[::]:8080").listen_tls("[::]:8443").tls(Configuration::new(Options::of_pair(pair)?)?);
    /// server.run(App::new().route("/", get(|request: &Request| request.scheme())))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tls(mut self, certificates: impl Into<Arc<SharedConfiguration>>) -> Self {
        self.tls = Some(certificates.into());
        self
    }
}
