//! One connection of the client: unsent requests, and how much of the next response has arrived.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

use rustix::io::Errno;
use rustls::HandshakeKind;
use socket2::{Domain, Protocol, Socket, Type};

use super::generated::UnsentBody;
use super::load::{Load, LoadCounts};
use super::response::ResponseProgress;
use super::wire::Wire;

/// Source addresses 127.0.1.1 to 127.0.1.200: five million ports, so that closed connections, which the kernel keeps for a
/// minute, don't use them up.
pub(crate) const SOURCE_ADDRESSES: u64 = 200;

/// Returns the source address of a connection over loopback.
pub(super) fn source_address(to: SocketAddr, serial: u64) -> Option<SocketAddr> {
    let is_loopback = matches!(to.ip(), IpAddr::V4(address) if address.is_loopback());
    let source = Ipv4Addr::new(127, 0, 1, 1 + (serial % SOURCE_ADDRESSES) as u8);
    is_loopback.then(|| SocketAddr::from((source, 0)))
}

/// Connects with receive buffers of so many bytes, as far as the kernel grants them. On loopback this is immediate, unless the
/// server's queue is full; without `may_block` a failure shows in the first event.
pub(super) fn connect_from(
    source: Option<SocketAddr>,
    to: SocketAddr,
    receive_buffer_bytes: Option<u32>,
    may_block: bool,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(source) = source {
        // On a port of its own, an earlier run's connection may still wait for the end of TIME_WAIT.
        socket.set_reuse_address(source.port() > 0)?;
        socket.bind(&source.into())?;
    }
    if let Some(bytes) = receive_buffer_bytes {
        // Before connecting, which agrees on the window's scale. A requested buffer is not resized later.
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    socket.set_nonblocking(!may_block)?;
    match socket.connect(&to.into()) {
        Err(error) if may_block || error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => {
            return Err(error);
        }
        _ => socket.set_nonblocking(true)?,
    }
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

/// Largest buffer that a connection keeps between requests.
const UNSENT_BYTES_KEPT: usize = 16 * 1024;

/// The order in which a connection sends requests, and expects their responses.
#[derive(Debug, Clone)]
struct RequestOrder {
    /// Index of the next one.
    at: usize,
    random: Option<fastrand::Rng>,
}

impl RequestOrder {
    /// Returns the order of a connection, which begins elsewhere than those of others.
    fn new(load: &Load, connection: u32) -> Self {
        let seed = (load.seed << u32::BITS) + u64::from(connection);
        let random = load.files.as_ref().map(|_| fastrand::Rng::with_seed(seed));
        let mut order = Self { at: connection as usize % load.requests.len(), random };
        if order.random.is_some() {
            order.advance(load);
        }
        order
    }

    fn advance(&mut self, load: &Load) {
        let count = load.requests.len();
        self.at = match &mut self.random {
            None => (self.at + 1) % count,
            Some(random) => {
                let is_hot = random.u32(..100) < load.hot_percent;
                if is_hot { 0 } else { random.usize(..count) }
            }
        };
    }
}

pub(super) struct LoadConnection {
    /// Nothing once a held connection has ended.
    wire: Option<Wire>,
    /// Headers of this connection's own, which replace those of the requests.
    own_headers: Option<String>,
    /// The next request to send.
    next: RequestOrder,
    /// The request whose response is next.
    expected: RequestOrder,
    /// Bytes that the socket did not take yet, and the body after them.
    unsent: Vec<u8>,
    unsent_body: UnsentBody,
    /// Lengths of generated requests.
    random: fastrand::Rng,
    /// Bytes that may be read and written before the next tick.
    allowed_read: usize,
    allowed_write: usize,
    /// Responses that are still missing.
    pub(super) outstanding: u32,
    /// The next response.
    response: ResponseProgress,
    /// Whole responses on this socket.
    pub(super) responses: u32,
    /// Start of the latency of the outstanding request.
    pub(super) since: Option<Instant>,
}

/// Outcome of one receive.
pub(super) enum ReceiveResult {
    /// The socket may have more.
    Bytes,
    /// The socket is empty now.
    Last,
    Nothing,
    /// The connection is closed, or has failed.
    End(Option<Errno>),
    /// The last response of the connection.
    Closing,
    /// More bytes than the outstanding responses have.
    Unexpected,
    Malformed,
}

impl LoadConnection {
    pub(super) fn new(wire: Option<Wire>, load: &Load, number: u32) -> Self {
        let first = RequestOrder::new(load, number);
        let at_most = |rate: Option<u64>| if rate.is_some() { 0 } else { usize::MAX };
        Self {
            wire,
            own_headers: load.own_headers.then(|| browser_headers(number)),
            next: first.clone(),
            expected: first,
            unsent: Vec::new(),
            unsent_body: UnsentBody::default(),
            random: fastrand::Rng::with_seed((load.seed << u32::BITS) + u64::from(number)),
            allowed_read: at_most(load.options.read_bytes_per_s),
            allowed_write: at_most(load.options.write_bytes_per_s),
            outstanding: 0,
            response: ResponseProgress::default(),
            responses: 0,
            since: None,
        }
    }

    /// Restarts on another socket; the old one closes.
    pub(super) fn renew(&mut self, wire: Wire) {
        self.close();
        self.wire = Some(wire);
    }

    pub(super) fn close(&mut self) {
        self.wire = None;
        self.unsent.clear();
        (self.unsent_body, self.response) = Default::default();
        (self.outstanding, self.responses) = (0, 0);
        self.expected = self.next.clone();
    }

    pub(super) fn is_open(&self) -> bool {
        self.wire.is_some()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.outstanding == 0 && self.unsent_body.bytes == 0
    }

    /// Sets how many bytes may be read and written until the next tick.
    pub(super) fn allow(&mut self, read: Option<u64>, write: Option<u64>) {
        let bytes = |allowed: Option<u64>| allowed.map_or(usize::MAX, |bytes| bytes as usize);
        (self.allowed_read, self.allowed_write) = (bytes(read), bytes(write));
    }

    /// Sends the next requests.
    pub(super) fn send(&mut self, load: &Load, since: Option<Instant>) -> Result<(), Errno> {
        self.since = since.filter(|_| load.hot_percent == 0 || self.next.at == 0);
        for _ in 0..load.depth {
            if let Some(generated) = &load.options.generated {
                self.unsent_body = generated.append(&mut self.random, &mut self.unsent);
                continue;
            }
            let request = &load.requests[self.next.at].request;
            self.next.advance(load);
            match (&self.own_headers, request.split_once("\r\n")) {
                (Some(headers), Some((line, _))) => {
                    self.unsent.extend_from_slice(line.as_bytes());
                    self.unsent.extend_from_slice(b"\r\n");
                    self.unsent.extend_from_slice(headers.as_bytes());
                }
                _ => self.unsent.extend_from_slice(request.as_bytes()),
            }
        }
        self.outstanding += load.depth;
        self.flush(load)
    }

    /// Sends what did not fit the socket's buffer earlier.
    pub(super) fn flush(&mut self, load: &Load) -> Result<(), Errno> {
        let Some(wire) = &mut self.wire else { return Ok(()) };
        wire.flush()?;
        loop {
            let bytes = match (&load.options.generated, self.unsent.is_empty()) {
                (_, false) => &self.unsent,
                (Some(generated), true) => generated.piece(self.unsent_body),
                (None, true) => return Ok(()),
            };
            let bytes = &bytes[..bytes.len().min(self.allowed_write)];
            if bytes.is_empty() {
                return Ok(());
            }
            let length = match wire.send(bytes) {
                Ok(length) => length,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error),
            };
            if load.options.write_bytes_per_s.is_some() {
                self.allowed_write -= length;
            }
            match &load.options.generated {
                Some(generated) if self.unsent.is_empty() => generated.advance(&mut self.unsent_body, length),
                _ => drop(self.unsent.drain(..length)),
            }
            if self.unsent.is_empty() && self.unsent.capacity() > UNSENT_BYTES_KEPT {
                self.unsent = Vec::new();
            }
        }
    }

    pub(super) fn receive(
        &mut self,
        load: &Load,
        buffer: &mut [u8],
        counts: &mut LoadCounts,
    ) -> ReceiveResult {
        let most = buffer.len().min(self.allowed_read);
        let Some(mut wire) = self.wire.take_if(|_| most > 0) else { return ReceiveResult::Nothing };
        let received = wire.receive(&mut buffer[..most], |bytes| self.take(bytes, load, counts));
        match wire.finished_handshake() {
            None => {}
            Some(HandshakeKind::Resumed) => counts.resumed_handshakes += 1,
            Some(_) => counts.full_handshakes += 1,
        }
        self.wire = Some(wire);
        let (length, outcome) = match received {
            Ok((length @ 1.., outcome)) => (length, outcome),
            Err(Errno::AGAIN) => return ReceiveResult::Nothing,
            Ok((0, _)) if self.response.ends_with_connection() => {
                self.end_response(load, counts);
                return ReceiveResult::Closing;
            }
            received => return ReceiveResult::End(received.err()),
        };
        if load.options.read_bytes_per_s.is_some() {
            self.allowed_read -= length;
        }
        outcome.unwrap_or(if length < most { ReceiveResult::Last } else { ReceiveResult::Bytes })
    }

    /// Takes received content. Returns a result if the connection ends with it.
    fn take(&mut self, mut bytes: &[u8], load: &Load, counts: &mut LoadCounts) -> Option<ReceiveResult> {
        counts.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.outstanding == 0 {
                return Some(ReceiveResult::Unexpected);
            }
            match self.response.take(bytes, &load.requests[self.expected.at].expected) {
                Err(_) => return Some(ReceiveResult::Malformed),
                Ok(None) => break,
                Ok(Some(later)) => bytes = later,
            }
            if self.end_response(load, counts) {
                return Some(ReceiveResult::Closing);
            }
        }
        None
    }

    /// Counts a whole response and returns true if the connection ends after it.
    fn end_response(&mut self, load: &Load, counts: &mut LoadCounts) -> bool {
        let response = std::mem::take(&mut self.response);
        response.count(&load.requests[self.expected.at].expected, counts);
        self.expected.advance(load);
        self.responses += 1;
        self.outstanding -= 1;
        response.closes
    }
}

/// Returns a browser's headers and the blank line, in an order and with a cookie of the connection's own.
fn browser_headers(connection: u32) -> String {
    let session = u64::from(connection).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut headers = [
        "Host: lab".to_owned(),
        "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8".to_owned(),
        "Accept-Encoding: gzip, deflate, br".to_owned(),
        "Accept-Language: en-GB,en;q=0.7".to_owned(),
        format!("User-Agent: lab/{connection}"),
        format!("Cookie: session={session:016x}; seen={connection}"),
    ];
    fastrand::Rng::with_seed(connection.into()).shuffle(&mut headers);
    headers.join("\r\n") + "\r\n\r\n"
}
