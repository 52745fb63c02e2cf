//! The parts of TLS that this crate leaves to others: sessions, and what makes them.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use crate::ListenerId;

/// Makes the TLS sessions of one worker.
pub trait Provider {
    /// A session of this provider.
    type Session: Session;

    /// Takes over configurations that have changed. Called once at the beginning of a turn.
    fn begin_turn(&mut self, unix_seconds: u64);

    /// Starts the server's side of a session on a connection of this listener.
    fn accept(&mut self, listener: ListenerId) -> Self::Session;

    /// Returns whether hosts differ in their policies on client certificates.
    fn has_client_policies(&self) -> bool {
        false
    }

    /// Returns the number of the policy for the host of a request, with or without a port (see
    /// [`SessionFacts::client_policy`]).
    fn client_policy(&self, host: &str) -> u32 {
        let _ = host;
        0
    }
}

/// A TLS connection: bytes in, bytes out; without sockets and without a clock.
pub trait Session {
    /// Opens records at the beginning of `wire`, in place, and appends what must be sent to the peer to `reply`.
    ///
    /// A call takes at most one step: one costly part of the handshake, or one record of content. Call it again
    /// with the bytes after `consumed` until it returns [`Step::NeedMore`], [`Step::Closed`] or [`Step::Failed`].
    fn open(&mut self, wire: &mut [u8], reply: &mut Vec<u8>) -> Opened;

    /// Seals `plain` into records of at most [`RECORD_BYTES_MAX`] bytes of content, and appends them to `wire`.
    /// Only after [`Step::Secured`].
    ///
    /// # Errors
    /// Fails if the keys are used up or the session has ended.
    fn seal(&mut self, plain: &[IoSlice<'_>], wire: &mut Vec<u8>) -> Result<(), Failure>;

    /// Appends the alert that ends this side. Before [`Step::Secured`] it may append nothing.
    fn close_notify(&mut self, wire: &mut Vec<u8>);

    /// Returns the result of the handshake, from [`Step::Secured`] on.
    fn facts(&self) -> Option<&Arc<SessionFacts>>;

    /// Returns the memory of received messages that aren't complete, in bytes.
    fn pending_bytes(&self) -> usize {
        0
    }

    /// Frees that memory. Nothing is opened or sealed after it.
    fn abandon(&mut self) {}

    /// Returns the memory that it holds, in bytes, as an estimate.
    fn held_bytes(&self) -> usize;
}

/// Largest content of a record, in bytes (RFC 8446, section 5.1).
pub const RECORD_BYTES_MAX: usize = 1 << 14;

/// Largest record on the wire, in bytes: header, content, and the expansion that RFC 8446 allows (section 5.2).
pub const RECORD_WIRE_BYTES_MAX: usize = 5 + RECORD_BYTES_MAX + 256;

/// Result of [`Session::open`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Bytes of `wire` that are used up. The range of [`Step::Plain`] is within them.
    pub consumed: usize,
    /// State of the session after it.
    pub step: Step,
}

/// State of a session after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing happens without more bytes than those after `consumed`.
    NeedMore,
    /// A record without content was handled. There may be more.
    Handled,
    /// The next call takes a costly step: a key exchange and a signature.
    Costly,
    /// The handshake is complete: content may be sealed.
    Secured,
    /// Content, where it was opened in `wire`. Never empty.
    Plain(Range<usize>),
    /// The peer has ended its side (close_notify). This side may still send.
    Closed,
    /// The session is broken. Send `reply` and close.
    Failed(Failure),
}

/// Result of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// Version of the protocol.
    pub version: Version,
    /// The session continues an earlier one, by a ticket.
    pub is_resumed: bool,
    /// Protocol chosen by ALPN (RFC 7301), for example `http/1.1`.
    pub alpn: Option<&'static str>,
    /// Server name that the client asked for (SNI, RFC 6066), in lower case.
    pub server_name: Option<Arc<str>>,
    /// The client's verified certificate as DER, then those that it has sent with it. Empty if none was requested.
    pub client_certificates: Box<[Box<[u8]>]>,
    /// Number of the policy on client certificates that was applied; 0 requests none.
    pub client_policy: u32,
    /// Name of the cipher suite, as registered with IANA.
    pub cipher_suite: &'static str,
}

/// Versions of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl Version {
    /// Returns its usual name: `TLSv1.2`, `TLSv1.3`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tls12 => "TLSv1.2",
            Self::Tls13 => "TLSv1.3",
        }
    }
}

/// Reasons for which a session fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The first bytes aren't TLS: plain HTTP, for example.
    NotTls,
    /// No common version.
    Version,
    /// No common cipher suite, group or signature scheme.
    NothingInCommon,
    /// No certificate for the server name.
    UnknownName,
    /// No common application protocol (ALPN).
    Protocol,
    /// The client's certificate is missing or wasn't accepted.
    ClientCertificate,
    /// The peer sent an alert.
    Alert,
    /// A record or message is malformed, too large, or couldn't be decrypted.
    BadRecord,
    /// Renegotiation or early data, which aren't supported.
    Unsupported,
    /// The connection ended within the handshake.
    Truncated,
    /// The handshake took too long.
    TimedOut,
    /// Memory for incomplete records ran out.
    Memory,
    /// Anything else.
    Other,
}

impl Failure {
    /// All reasons, in the order of their declaration.
    pub const ALL: [Self; 13] = [
        Self::NotTls,
        Self::Version,
        Self::NothingInCommon,
        Self::UnknownName,
        Self::Protocol,
        Self::ClientCertificate,
        Self::Alert,
        Self::BadRecord,
        Self::Unsupported,
        Self::Truncated,
        Self::TimedOut,
        Self::Memory,
        Self::Other,
    ];

    /// Returns a short label, for metrics: `not_tls`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotTls => "not_tls",
            Self::Version => "version",
            Self::NothingInCommon => "nothing_in_common",
            Self::UnknownName => "unknown_name",
            Self::Protocol => "protocol",
            Self::ClientCertificate => "client_certificate",
            Self::Alert => "alert",
            Self::BadRecord => "bad_record",
            Self::Unsupported => "unsupported",
            Self::Truncated => "truncated",
            Self::TimedOut => "timed_out",
            Self::Memory => "memory",
            Self::Other => "other",
        }
    }
}
