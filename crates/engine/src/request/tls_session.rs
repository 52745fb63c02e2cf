//! The TLS session of a connection, for handlers.

use std::fmt;
use std::sync::Arc;

use shearwater_io::secure::{SessionFacts, Version};

/// The TLS session of a connection. Clones share it.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsSession(Arc<SessionFacts>);

impl TlsSession {
    pub(crate) fn of(facts: &Arc<SessionFacts>) -> Self {
        Self(Arc::clone(facts))
    }

    /// Returns the version of the protocol.
    #[must_use]
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// Returns the cipher suite's name as registered with IANA, for example `TLS_AES_128_GCM_SHA256`.
    #[must_use]
    pub fn cipher_suite(&self) -> &'static str {
        self.0.cipher_suite
    }

    /// Returns the protocol chosen by ALPN (RFC 7301), for example `http/1.1`.
    #[must_use]
    pub fn alpn(&self) -> Option<&'static str> {
        self.0.alpn
    }

    /// Returns the server name that the client has asked for (SNI, RFC 6066), in lower case.
    ///
    /// It chose the certificate. The host that the request is for is in its `Host` field, and may be another one.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.0.server_name.as_deref()
    }

    /// Returns true if the session continues an earlier one, by a ticket.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.0.is_resumed
    }

    /// Returns the client's certificate as DER, verified by the authorities of its site.
    #[must_use]
    pub fn client_certificate(&self) -> Option<&[u8]> {
        self.client_chain().next()
    }

    /// Returns the client's certificate as DER, then the others that it has sent, which needn't be in order.
    pub fn client_chain(&self) -> impl Iterator<Item = &[u8]> {
        self.0.client_certificates.iter().map(|certificate| &**certificate)
    }
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TlsSession")
            .field("version", &self.version())
            .field("cipher_suite", &self.cipher_suite())
            .field("alpn", &self.alpn())
            .field("server_name", &self.server_name())
            .field("is_resumed", &self.is_resumed())
            .finish_non_exhaustive()
    }
}
