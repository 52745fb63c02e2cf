//! Requests rejected by the server itself: statuses, limits and texts.

use shearwater_http1::ParseError;

use crate::server::counters::{Counter, Counters};

/// The reason why a request is rejected without a handler's response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    /// Malformed request.
    Rejected(ParseError),
    /// `CONNECT`: this is an origin server (RFC 9110 section 9.3.6).
    Connect,
    /// The service upgrades no stream to the protocol of an extended CONNECT (RFC 8441 section 4).
    Protocol,
    /// The target's scheme needs another connection (RFC 9110 section 7.4).
    Misdirected,
    /// The host wants other client certificates than the session of the connection.
    OtherPolicy,
    /// An expectation other than `100-continue` (RFC 9110 section 10.1.1).
    Expectation,
    /// The body is larger than allowed (RFC 9110 section 15.5.14).
    BodyTooLarge,
    /// The worker's buffers are full.
    BuffersFull,
    /// The request took too long (RFC 9110 section 15.5.9).
    Timeout,
    /// The client sent a FIN in the middle of it (RFC 9112 section 8).
    Incomplete,
    /// Too many requests are deferred.
    CallsFull,
    /// A panic outside of the response handler.
    Panicked,
    /// Plain HTTP on a port with TLS.
    NotTls,
    /// Another protocol on a port with plain HTTP/1.
    OtherProtocol(Protocol),
}

/// A protocol that clients take a port to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tls,
    /// HTTP/2 without negotiation (RFC 9113 section 3.3).
    Http2,
}

impl Protocol {
    /// Recognizes the first bytes of a connection.
    pub(crate) fn of(input: &[u8]) -> Option<Self> {
        match input {
            // A handshake record of any version of TLS (RFC 8446 section 5.1).
            [22, 3, ..] => Some(Self::Tls),
            _ if input.starts_with(b"PRI * HTTP/2.") => Some(Self::Http2),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tls => "TLS",
            Self::Http2 => "HTTP/2",
        }
    }
}

impl Refusal {
    /// Returns the status of the response.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Rejected(reject) => reject.status(),
            Self::Connect | Self::Protocol => 501,
            Self::Misdirected | Self::OtherPolicy => 421,
            Self::Expectation => 417,
            Self::BodyTooLarge => 413,
            Self::BuffersFull | Self::CallsFull => 503,
            Self::Timeout => 408,
            Self::Incomplete | Self::NotTls | Self::OtherProtocol(_) => 400,
            Self::Panicked => 500,
        }
    }

    /// Returns the counter of the limit that caused it. Timeouts are counted where they expire.
    pub(crate) fn limit(self, counters: &Counters) -> Option<&Counter> {
        Some(match self {
            Self::Rejected(ParseError::HeadTooLarge) => &counters.hit_head_bytes,
            Self::Rejected(ParseError::TargetTooLong) => &counters.hit_target_bytes,
            Self::Rejected(ParseError::TooManyFields) => &counters.hit_fields,
            Self::Rejected(ParseError::MethodTooLong) => &counters.hit_method_bytes,
            Self::Rejected(ParseError::ChunkLineTooLong) => &counters.hit_chunk_line_bytes,
            Self::Rejected(ParseError::TrailersTooLarge) => &counters.hit_trailer_bytes,
            Self::Rejected(ParseError::TooManyTrailers) => &counters.hit_trailers,
            Self::BodyTooLarge => &counters.hit_body_bytes,
            Self::BuffersFull => &counters.hit_buffered_bytes,
            Self::CallsFull => &counters.hit_calls,
            _ => return None,
        })
    }

    /// Returns a sentence for the client.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::Rejected(reject) => reject.to_string(),
            Self::Connect => "CONNECT is not implemented: this is no proxy.".to_owned(),
            Self::Protocol => "The protocol of this CONNECT is not implemented.".to_owned(),
            Self::Misdirected => "The scheme of the target is not served on this connection.".to_owned(),
            Self::OtherPolicy => {
                "This host has other rules on client certificates: request it on a connection of its own."
                    .to_owned()
            }
            Self::Expectation => "The only expectation known here is 100-continue.".to_owned(),
            Self::BodyTooLarge => "The body is larger than allowed here.".to_owned(),
            Self::BuffersFull => "Too many large requests at once. Try again later.".to_owned(),
            Self::Timeout => "The request took too long to arrive.".to_owned(),
            Self::Incomplete => "The request ended in the middle.".to_owned(),
            Self::CallsFull => "Too many requests are in progress. Try again later.".to_owned(),
            Self::NotTls => "This port takes HTTPS only: begin the address with https://".to_owned(),
            Self::OtherProtocol(Protocol::Tls) => {
                "This port takes plain HTTP only: begin the address with http://, or use the port of https."
                    .to_owned()
            }
            Self::OtherProtocol(Protocol::Http2) => {
                "This port takes HTTP/1.1 only. HTTP/2 is negotiated by TLS where it is served: use https."
                    .to_owned()
            }
            Self::Panicked => "Internal Server Error".to_owned(),
        }
    }
}
