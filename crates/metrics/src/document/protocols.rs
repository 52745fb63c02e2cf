//! Members of the document about TLS and HTTP/2.

use serde::{Deserialize, Serialize};
use shearwater::Totals;

use super::{Counts, named};
use crate::snapshot::{ServerFigures, Snapshot};

/// TLS of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tls {
    /// Open connections, those within their handshake included.
    pub connections: u64,
    /// Completed handshakes by version: `1.2`, `1.3`.
    pub handshakes: Counts,
    /// Completed handshakes that continued an earlier session.
    pub resumed: u64,
    /// Handshakes whose costly step waited for a later turn.
    pub queued: u64,
    /// Failed sessions by reason.
    pub failures: Counts,
    /// Memory of records that are incomplete, in bytes.
    pub partial_bytes: u64,
    /// Certificates, those that end first first.
    #[serde(default)]
    pub certificates: Vec<Certificate>,
}

/// HTTP/2 of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Http2 {
    /// Open connections.
    pub open: u64,
    /// All connections.
    pub connections: u64,
    /// Requests: streams that have begun.
    pub requests: u64,
    /// Streams that clients have reset.
    pub resets_received: u64,
    /// RST_STREAM frames sent by error code, without those that are 0.
    pub resets_sent: Counts,
    /// GOAWAY frames sent by error code, without those that are 0.
    pub goaways_sent: Counts,
}

/// A certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Certificate {
    /// Its name: the site's first host, or `(default)`.
    pub name: String,
    /// `own`, `auto` (the server gets it by itself) or `self-signed`.
    pub source: String,
    /// `valid`, `ends_soon`, `not_yet_valid`, `missing` (none yet) or `expired`.
    pub state: String,
    /// Beginning of its validity, in seconds since 1970; `null` without a certificate.
    pub not_before: Option<u64>,
    /// End of its validity.
    pub not_after: Option<u64>,
    /// Seconds until the end; negative after it.
    pub ends_in_seconds: Option<i64>,
    /// The last order of a new one has failed.
    pub failing: bool,
}

impl Certificate {
    fn of(certificate: &crate::Certificate, now: u64) -> Self {
        let end = certificate.validity.map(|(_, end)| end);
        Self {
            name: certificate.name.clone(),
            source: certificate.source.to_owned(),
            state: certificate.state(now).name().to_owned(),
            not_before: certificate.validity.map(|(begin, _)| begin),
            not_after: end,
            ends_in_seconds: end.map(|end| end.cast_signed().saturating_sub(now.cast_signed())),
            failing: certificate.is_failing,
        }
    }
}

pub(super) fn http2(totals: &Totals) -> Http2 {
    let sent = |counts: &mut dyn Iterator<Item = (&str, u64)>| {
        counts.filter(|(_, count)| *count > 0).map(|(code, count)| (code.to_owned(), count)).collect()
    };
    Http2 {
        open: totals.http2_connections_open,
        connections: totals.http2_connections,
        requests: totals.http2_streams,
        resets_received: totals.http2_resets_received,
        resets_sent: sent(&mut totals.http2_resets_sent()),
        goaways_sent: sent(&mut totals.http2_go_aways_sent()),
    }
}

pub(super) fn tls(snapshot: &Snapshot, ServerFigures { totals, .. }: &ServerFigures) -> Tls {
    Tls {
        connections: totals.tls_connections,
        handshakes: named(["1.2", "1.3"], [totals.tls12_handshakes, totals.tls13_handshakes]),
        resumed: totals.tls_resumed,
        queued: totals.tls_queued,
        failures: totals.tls_failures().map(|(reason, count)| (reason.to_owned(), count)).collect(),
        partial_bytes: totals.tls_partial_bytes,
        certificates: snapshot.certificates.iter().map(|of| Certificate::of(of, snapshot.now)).collect(),
    }
}
