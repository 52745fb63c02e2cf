//! Connections that should begin with a PROXY header and don't.

use std::fmt;

use crate::proxies::header::ProxyHeaderError;

/// The reason why a connection is reset that should begin with a PROXY header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyFault {
    /// Its peer isn't a trusted proxy.
    Untrusted,
    Header(ProxyHeaderError),
}

impl ProxyFault {
    /// Returns a way to end it, as far as the operator can.
    pub(crate) fn help(self) -> &'static str {
        match self {
            Self::Untrusted => {
                "clients must connect to the proxy; if this is one, add it to the trusted proxies"
            }
            Self::Header(ProxyHeaderError::Missing) => {
                "have the proxy send one (HAProxy: `send-proxy-v2`), or don't require it"
            }
            Self::Header(_) => "check the proxy's version of the PROXY protocol",
        }
    }
}

impl fmt::Display for ProxyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untrusted => f.write_str("it isn't a trusted proxy"),
            Self::Header(error) => error.fmt(f),
        }
    }
}
