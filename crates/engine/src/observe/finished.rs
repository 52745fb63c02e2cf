//! Finished exchanges as a program's listeners see them: a request, its response, and how both ended.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use shearwater_http1::Version;
use shearwater_io::secure;

use crate::observe::record::{ExchangeEnd, Group, NEVER, Progress, Record, WantedField};
use crate::request::ConnectionId;

/// A request with its response, once that is sent or can't be sent any more.
///
/// Each request whose head was received has exactly one, in the order of the requests of its connection, and so has
/// each rejected one, even if its head is malformed or incomplete. A connection that ends without a complete head and
/// without a response has none.
pub struct FinishedExchange<'a> {
    pub(crate) record: &'a Record,
    pub(crate) group: &'a Group,
    pub(crate) wanted: &'a [WantedField],
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) tls: Option<secure::Version>,
    /// There are trusted proxies: the address of the client follows the fields.
    pub(crate) has_clients: bool,
    pub(crate) unix_seconds: u64,
}

impl fmt::Debug for FinishedExchange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FinishedExchange")
            .field("target", &String::from_utf8_lossy(self.target()))
            .field("status", &self.status())
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}

impl<'a> FinishedExchange<'a> {
    /// Returns the status of the response; `None` if none was begun.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        (self.record.status > 0).then_some(self.record.status)
    }

    /// Returns the number that the response was given ([`Response::exchange_tag`](crate::Response::exchange_tag)); 0 without.
    #[must_use]
    pub fn tag(&self) -> u16 {
        self.record.tag
    }

    /// Returns the method as received, possibly malformed or empty in a rejected request. Like the target and each field,
    /// it is cut off at [`EXCHANGE_TEXT_BYTES_MAX`](crate::limits::EXCHANGE_TEXT_BYTES_MAX).
    #[must_use]
    pub fn method(&self) -> &'a [u8] {
        self.group.method(self.record)
    }

    /// Returns the request target as received, with its query; possibly malformed or empty in a rejected request.
    #[must_use]
    pub fn target(&self) -> &'a [u8] {
        self.group.target(self.record)
    }

    /// Returns the version of the request; `None` if its head wasn't parsed.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.record.version
    }

    /// Returns the value of a request field that the listener [asked for](ExchangeListener::new), or all values of a repeated
    /// one with `, ` between them; `None` for others, and in requests whose head wasn't parsed.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        // Listeners that name it in lower case cost one comparison.
        let is_it = |(wanted, _): &WantedField| **wanted == *name || wanted.eq_ignore_ascii_case(name);
        let index = self.wanted.iter().position(is_it)?;
        self.group.field(self.record, index)
    }

    /// Returns the bytes of the request's body that were received, without their framing.
    #[must_use]
    pub fn body_bytes_received(&self) -> u64 {
        self.record.body_received
    }

    /// Returns the bytes of the response that the kernel has taken, without its head. Includes the framing of chunks.
    #[must_use]
    pub fn body_bytes_sent(&self) -> u64 {
        self.record.sent.saturating_sub(self.record.head_bytes.into())
    }

    /// Returns the bytes of the response that the kernel has taken, without interim responses (`100`).
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.record.sent
    }

    /// Returns the time from the beginning of the exchange to the send that began the response.
    #[must_use]
    pub fn first_byte(&self) -> Option<Duration> {
        let first_us = Some(self.record.first_byte_us).filter(|at_us| *at_us != NEVER)?;
        Some(Duration::from_micros(first_us.saturating_sub(self.record.begun_us)))
    }

    /// Returns the time from the turn that received the request's first byte to the end of the exchange.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_micros(self.record.ended_us.saturating_sub(self.record.begun_us))
    }

    /// Returns the seconds since 1970 at the end.
    #[must_use]
    pub fn unix_seconds(&self) -> u64 {
        self.unix_seconds
    }

    /// Returns the client's address as [`Request::client`](crate::Request::client). Before the head is parsed, it is that of
    /// the connection.
    #[must_use]
    #[inline]
    pub fn client(&self) -> Option<SocketAddr> {
        if self.has_clients { self.group.client(self.record, self.wanted.len()) } else { self.peer }
    }

    /// Returns the address at the other end of the socket, possibly a proxy's; `None` on Unix-domain sockets.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Returns the version of TLS that the connection has; `None` for a plain one.
    #[must_use]
    pub fn tls_version(&self) -> Option<secure::Version> {
        self.tls
    }

    /// Returns the connection.
    #[must_use]
    pub fn connection(&self) -> ConnectionId {
        ConnectionId::of(self.record.token)
    }

    /// Returns how the exchange ended.
    #[must_use]
    #[inline]
    pub fn end(&self) -> ExchangeEnd {
        match self.record.progress {
            Progress::Whole(end) => end,
            Progress::Open => ExchangeEnd::Unknown,
        }
    }
}

/// A worker's own listener.
pub(crate) type Listen = Box<dyn FnMut(&FinishedExchange<'_>)>;

/// A listener for finished exchanges, one for each worker.
#[derive(Clone)]
pub struct ExchangeListener {
    pub(crate) fields: Arc<[Box<str>]>,
    pub(crate) make: Arc<dyn Fn(usize) -> Listen + Send + Sync>,
}

impl fmt::Debug for ExchangeListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExchangeListener").field("fields", &self.fields).finish_non_exhaustive()
    }
}

impl ExchangeListener {
    /// Creates a listener that sees the request fields with these names, at most
    /// [`EXCHANGE_FIELDS_MAX`](crate::limits::EXCHANGE_FIELDS_MAX) for all listeners of a server together; further ones
    /// are absent.
    ///
    /// `make` is called once on each worker's own thread, with its number. Its result is called on that thread after
    /// each exchange: it must not block. A panic of it is printed and otherwise ignored.
    #[must_use]
    pub fn new<L: FnMut(&FinishedExchange<'_>) + 'static>(
        fields: &[&str],
        make: impl Fn(usize) -> L + Send + Sync + 'static,
    ) -> Self {
        let fields = fields.iter().map(|name| Box::from(name.to_ascii_lowercase())).collect();
        Self { fields, make: Arc::new(move |worker| Box::new(make(worker))) }
    }
}
