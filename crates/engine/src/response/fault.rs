//! Faults of handlers, which are reported to the operator.

use std::path::PathBuf;

use crate::proxies::fault::ProxyFault;
use crate::request::refusal::Protocol;
use crate::server::panics::Panic;

/// A handler's fault, with the details of its report.
#[derive(Debug)]
pub(crate) enum Fault {
    Panic(Box<Panic>),
    /// An invalid field, or a wrong length of a stream.
    Built(String),
    /// A file that can't be sent. The response already reflects that and is sent as it is.
    File {
        path: PathBuf,
        error: String,
        status: u16,
    },
    /// A file whose rest can't be sent.
    CutShort(String),
    /// A connection without a valid PROXY header.
    Proxy {
        peer: String,
        fault: ProxyFault,
    },
    /// A connection with another protocol.
    OtherProtocol(Protocol),
    /// A fault whose response is already a `500`.
    Settled(Box<Fault>),
    /// A connection was evicted or rejected: unfinished requests hold as much memory as they may.
    BuffersFull {
        bytes_max: usize,
    },
}

impl Fault {
    /// Returns true if the response can't be sent.
    pub(crate) fn fails(&self) -> bool {
        !matches!(self, Self::File { .. } | Self::CutShort(_) | Self::Proxy { .. } | Self::Settled(_))
    }

    /// Returns the more severe of two faults, or the first one. A response that is a `500` already isn't replaced again.
    pub(crate) fn graver(first: Option<Box<Self>>, second: Option<Box<Self>>) -> Option<Box<Self>> {
        match (&first, &second) {
            (Some(one), Some(other))
                if other.fails() && !one.fails() && !matches!(**one, Self::Settled(_)) =>
            {
                second
            }
            _ => first.or(second),
        }
    }
}
