//! Upgrades of connections to another protocol, such as WebSocket.
//!
//! Services get an upgraded connection by [`hyper::upgrade::on`], as axum's extractors do. It takes an [`OnUpgrade`] out
//! of the request, and only hyper can make one. So for each request that may be upgraded, hyper serves a connection in
//! memory: it reads a short request, and the service gets the `OnUpgrade` that hyper made for that. The engine reads the
//! client's request and sends the response. If that is a `101`, the client's connection becomes the one that hyper
//! serves. hyper writes a `101` of its own, which is discarded, and completes the `OnUpgrade`.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::ready;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::{self, OnUpgrade};
use hyper_util::rt::TokioIo;
use shearwater::HandedOver;
use shearwater::engine::{Call, ConnectionGuard, Head, is_same_protocol};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;

use crate::body::Body;
use crate::response;
use crate::service::HttpService;
use crate::worker_pool::WorkerPool;

/// The request that hyper reads in place of the client's.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: any\r\n\r\n";

/// Logged if a service responds with a `101` that can't be sent.
pub(crate) const NOT_OFFERED: &str = "the service responded with 101 where it can't upgrade: the protocol is not offered, or not registered by `Serve::upgrades`, or `upgrades_max` is reached";

type Serving = Pin<Box<dyn Future<Output = hyper::Result<()>>>>;

/// The upgrade of a request whose response isn't known yet. Dropped, the service's [`OnUpgrade`] ends with an error.
pub(crate) struct Handshake {
    serving: Serving,
    connected: oneshot::Sender<Connection>,
    permit: Permit,
}

impl Handshake {
    /// Returns a handshake and the extension that its request needs.
    pub(crate) fn begin(permit: Permit) -> Option<(Self, OnUpgrade)> {
        let (connected, arriving) = oneshot::channel();
        let io = UpgradeIo { request: REQUEST, arriving, connection: None, is_upgraded: false };
        let on_upgrade = Rc::new(Cell::new(None));
        let made = Rc::clone(&on_upgrade);
        let accept = service_fn(move |mut request: Request<Incoming>| {
            made.set(Some(upgrade::on(&mut request)));
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            ready(Ok::<_, Infallible>(response))
        });
        let serving = http1::Builder::new().serve_connection(TokioIo::new(io), accept).with_upgrades();
        let mut serving: Serving = Box::pin(serving);
        serve(&mut serving);
        Some((Self { serving, connected, permit }, on_upgrade.take()?))
    }

    /// Passes the client's connection to the service. To be called within a runtime.
    fn complete(self, handed: HandedOver) {
        let HandedOver { descriptor, unread, guard, .. } = handed;
        // On failure the service gets an error and the connection is closed.
        let Ok(socket) = socket(descriptor) else { return };
        let Self { mut serving, connected, permit } = self;
        // `serving` has the receiver.
        let _ = connected.send(Connection { socket, unread: unread.into(), _permit: permit, _guard: guard });
        serve(&mut serving);
    }
}

/// Polls hyper, which waits only for the client's connection, so no waker is needed.
fn serve(serving: &mut Serving) {
    let _ = serving.as_mut().poll(&mut Context::from_waker(Waker::noop()));
}

/// Sends a service's `101`, or its `2xx` to an extended CONNECT, after which the service gets the connection or stream.
///
/// # Errors
/// The message to log, if the response must be a `500`.
pub(crate) fn accept<S: HttpService>(
    handshake: Option<Box<Handshake>>,
    call: &mut Call,
    response: Response<S::ResponseBody>,
    pool: &WorkerPool<S>,
) -> Result<(), String> {
    let handshake = handshake.ok_or(NOT_OFFERED)?;
    let (mut head, _) = response.into_parts();
    let upgrade = head.headers.remove(header::UPGRADE);
    let named = upgrade.as_ref().and_then(|protocol| protocol.to_str().ok());
    let protocol = call.head().protocol().or(named).map(str::to_owned);
    let protocol = protocol.ok_or("the service responded with 101 and no `Upgrade` field")?;
    if !handshake.permit.allows(&protocol) {
        return Err(NOT_OFFERED.to_owned());
    }
    response::send_head(head, &mut call.response(), pool);
    call.upgrade(&protocol, move |handed| handshake.complete(handed));
    Ok(())
}

/// A connected socket of TCP or of the Unix domain.
trait Socket: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Socket for S {}

/// Wraps a non-blocking descriptor. To be called within a runtime.
fn socket(descriptor: OwnedFd) -> io::Result<Pin<Box<dyn Socket>>> {
    let unix = net::UnixStream::from(descriptor);
    // Fails for a socket of another family.
    Ok(match unix.local_addr() {
        Ok(_) => Box::pin(UnixStream::from_std(unix)?),
        Err(_) => Box::pin(TcpStream::from_std(OwnedFd::from(unix).into())?),
    })
}

/// A client's connection in its new protocol. The socket is closed before it is no longer counted.
struct Connection {
    socket: Pin<Box<dyn Socket>>,
    /// Bytes received before the upgrade.
    unread: Bytes,
    _permit: Permit,
    _guard: ConnectionGuard,
}

/// The in-memory connection that hyper serves.
struct UpgradeIo {
    /// The rest of hyper's request.
    request: &'static [u8],
    arriving: oneshot::Receiver<Connection>,
    /// The client's, once it has arrived. hyper can't write its response before.
    connection: Option<Connection>,
    /// hyper has written its response: bytes from now on are those of the new protocol.
    is_upgraded: bool,
}

impl UpgradeIo {
    fn upgraded(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().filter(|_| self.is_upgraded)
    }

    /// The socket to write to, or `None` while hyper writes its response, which is thrown away.
    fn poll_socket(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Pin<&mut dyn Socket>>>> {
        if self.connection.is_none() {
            let arrived = ready!(Pin::new(&mut self.arriving).poll(cx));
            self.connection = Some(arrived.map_err(|_| ErrorKind::BrokenPipe)?);
        }
        Poll::Ready(Ok(self.upgraded().map(|connection| connection.socket.as_mut() as Pin<&mut dyn Socket>)))
    }
}

impl AsyncRead for UpgradeIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.remaining();
        if let Some(Connection { socket, unread, .. }) = self.upgraded() {
            if unread.is_empty() {
                return socket.as_mut().poll_read(cx, buffer);
            }
            buffer.put_slice(&unread.split_to(unread.len().min(room)));
        } else {
            if self.request.is_empty() {
                // Nothing else arrives before the upgrade.
                return Poll::Pending;
            }
            let (read, rest) = self.request.split_at(self.request.len().min(room));
            buffer.put_slice(read);
            self.request = rest;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for UpgradeIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match ready!(self.poll_socket(cx))? {
            Some(socket) => socket.poll_write(cx, bytes),
            None => Poll::Ready(Ok(bytes.len())),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match ready!(self.poll_socket(cx))? {
            Some(socket) => socket.poll_write_vectored(cx, pieces),
            None => Poll::Ready(Ok(pieces.iter().map(|piece| piece.len()).sum())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Handles hyper's first flush after its response, which ends the handshake.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(connection) = self.upgraded() {
            return connection.socket.as_mut().poll_flush(cx);
        }
        self.is_upgraded = self.connection.is_some();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.upgraded() {
            Some(connection) => connection.socket.as_mut().poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// The protocols and upgraded connections of a server.
#[derive(Debug)]
pub(crate) struct Upgrades {
    /// Protocols as registered, possibly with versions.
    protocols: Vec<String>,
    /// Streams of HTTP/2 are upgraded, too.
    has_streams: bool,
    /// Number of connections that are upgraded or may still be.
    open: AtomicUsize,
    open_max: usize,
}

impl Upgrades {
    /// Registers protocols, for `open_max` connections at once.
    pub(crate) fn new(protocols: Vec<String>, has_streams: bool, open_max: usize) -> Arc<Self> {
        Arc::new(Self { protocols, has_streams, open: AtomicUsize::new(0), open_max })
    }

    /// Returns the protocols that streams of HTTP/2 are upgraded to.
    pub(crate) fn protocols_of_streams(&self) -> Vec<String> {
        if self.has_streams { self.protocols.clone() } else { Vec::new() }
    }

    /// Returns true if a request offers one of the protocols.
    pub(crate) fn are_offered(&self, head: &Head<'_>) -> bool {
        head.upgrades().any(|protocol| self.has(protocol))
    }

    /// Returns true if a protocol is registered, ignoring versions.
    fn has(&self, protocol: &[u8]) -> bool {
        self.protocols.iter().any(|own| is_same_protocol(own.as_bytes(), protocol))
    }

    /// Counts a connection. Returns `None` if the limit is reached.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Permit> {
        let one_more = |open: usize| (open < self.open_max).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Permit { upgrades: Arc::clone(self) })
    }
}

/// Counts one connection, from a request that may be upgraded until the socket is closed.
#[derive(Debug)]
pub(crate) struct Permit {
    upgrades: Arc<Upgrades>,
}

impl Permit {
    /// Returns true if the connection may be upgraded to a protocol.
    pub(crate) fn allows(&self, protocol: &str) -> bool {
        self.upgrades.has(protocol.as_bytes())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.upgrades.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::Upgrades;

    #[test]
    fn limits_upgraded_connections() {
        let upgrades = Upgrades::new(Vec::new(), false, 2);
        let (first, second) = (upgrades.enter(), upgrades.enter());
        assert!(first.is_some() && second.is_some());
        assert!(upgrades.enter().is_none());
        drop(first);
        assert!(upgrades.enter().is_some());
    }
}
