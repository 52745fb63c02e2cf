//! A connection's bytes: as they are, by TLS 1.3, and in streams of HTTP/2.
//!
//! The client's TLS is the same for all servers, so that they do equal work: X25519, AES-256-GCM, and certificates with P-256 keys,
//! whose signatures are verified; the names and issuers of certificates are not.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{self, Error, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustls::client::{ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, NamedGroup, SignatureScheme, StreamOwned, version,
};
use serde::{Deserialize, Serialize};
use socket2::Socket;
use testkit::tls::AnyCertificate;
use testkit::{Client, TIMEOUT};

use super::http2::Streams;

/// The name that the client asks for.
const SERVER_NAME: &str = "lab";
/// Tickets that a client keeps; further ones are dropped.
const TICKETS_MAX: usize = 1_024;
const LOCK: &str = "no panic while it is held";

/// A blocking stream by TLS.
pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// The TLS of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Handshakes {
    Full,
    /// Each connection resumes the session of an earlier one.
    Resumed,
}

/// Makes the sessions of a client.
#[derive(Debug, Clone)]
pub(crate) struct ClientTls {
    config: Arc<ClientConfig>,
    tickets: Arc<Tickets>,
}

impl ClientTls {
    pub(crate) fn new(handshakes: Handshakes, is_http2: bool) -> io::Result<Self> {
        let provider = Arc::new(CryptoProvider {
            cipher_suites: vec![cipher_suite::TLS13_AES_256_GCM_SHA384],
            kx_groups: vec![kx_group::X25519],
            ..default_provider()
        });
        let verifier =
            AnyCertificate::new(&provider).with_schemes(vec![SignatureScheme::ECDSA_NISTP256_SHA256]);
        let builder =
            ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&version::TLS13]);
        let builder =
            builder.map_err(Error::other)?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let tickets = Arc::new(Tickets::default());
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![if is_http2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
        config.resumption = match handshakes {
            Handshakes::Full => Resumption::disabled(),
            Handshakes::Resumed => Resumption::store(Arc::clone(&tickets) as Arc<dyn ClientSessionStore>),
        };
        Ok(Self { config: Arc::new(config), tickets })
    }

    fn session(&self) -> io::Result<ClientConnection> {
        let name = ServerName::try_from(SERVER_NAME).map_err(Error::other)?;
        ClientConnection::new(Arc::clone(&self.config), name).map_err(Error::other)
    }

    /// Connects blocking.
    pub(crate) fn connect(&self, address: SocketAddr) -> io::Result<TlsStream> {
        let socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        Ok(StreamOwned::new(self.session()?, socket))
    }

    /// Gets a ticket for each of so many connections, by requests on connections of their own.
    pub(super) fn get_tickets(&self, count: usize, address: SocketAddr, request: &str) -> io::Result<()> {
        for _ in 0..count {
            let mut client = Client::new(self.connect(address)?);
            client.send(request).and_then(|()| client.response()).map_err(Error::other)?;
            if self.tickets.all.lock().expect(LOCK).len() >= count {
                break;
            }
        }
        self.tickets.are_used.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// Keeps tickets, each for one connection.
#[derive(Debug, Default)]
struct Tickets {
    all: Mutex<VecDeque<Tls13ClientSessionValue>>,
    /// False while they are collected.
    are_used: AtomicBool,
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut all = self.all.lock().expect(LOCK);
        all.push_back(ticket);
        all.truncate(TICKETS_MAX);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut all = self.all.lock().expect(LOCK);
        if self.are_used.load(Ordering::Relaxed) { all.pop_front() } else { None }
    }
}

/// A socket, the TLS session on it, and the streams in that.
pub(super) struct Wire {
    socket: Socket,
    session: Option<Box<WireSession>>,
    streams: Option<Box<Streams>>,
    /// Frames that were not taken yet.
    frames: Vec<u8>,
}

struct WireSession {
    connection: ClientConnection,
    /// True once its handshake has been counted.
    is_counted: bool,
}

impl Wire {
    pub(super) fn new(socket: Socket, tls: Option<&ClientTls>, streams: Option<Streams>) -> io::Result<Self> {
        let session = tls.map(ClientTls::session).transpose()?;
        let session = session.map(|connection| Box::new(WireSession { connection, is_counted: false }));
        Ok(Self { socket, session, streams: streams.map(Box::new), frames: Vec::new() })
    }

    /// Sends bytes, of HTTP/2 whole requests; returns how many were taken.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let Some(streams) = &mut self.streams else { return self.send_bytes(bytes) };
        streams.request(bytes).map_err(|error| errno(&error))?;
        self.flush()?;
        Ok(bytes.len())
    }

    fn send_bytes(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let Some(session) = &mut self.session else {
            return rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL);
        };
        let taken = session.connection.writer().write(bytes).map_err(|error| errno(&error))?;
        self.flush_sealed()?;
        // The session's own buffer is full.
        if taken == 0 { Err(Errno::AGAIN) } else { Ok(taken) }
    }

    /// Sends bytes that did not fit the socket's buffer earlier.
    pub(super) fn flush(&mut self) -> Result<(), Errno> {
        self.flush_sealed()?;
        if let Some(streams) = &mut self.streams {
            self.frames.append(&mut streams.take_output());
        }
        while !self.frames.is_empty() {
            let frames = std::mem::take(&mut self.frames);
            let sent = self.send_bytes(&frames);
            self.frames.extend_from_slice(&frames[*sent.as_ref().unwrap_or(&0)..]);
            match sent {
                Err(Errno::AGAIN) => break,
                sent => drop(sent?),
            }
        }
        Ok(())
    }

    /// Sends sealed bytes.
    fn flush_sealed(&mut self) -> Result<(), Errno> {
        let Some(session) = &mut self.session else { return Ok(()) };
        while session.connection.wants_write() {
            match session.connection.write_tls(&mut &self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(errno(&error)),
            }
        }
        Ok(())
    }

    /// Receives once and passes on the content, until something comes of it. Returns the number of bytes received, 0 at the end.
    pub(super) fn receive<T>(
        &mut self,
        buffer: &mut [u8],
        take: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<(usize, Option<T>), Errno> {
        let (streams, mut take) = (&mut self.streams, take);
        let mut take = |bytes: &[u8]| match streams {
            None => Ok(take(bytes)),
            Some(streams) => streams.receive(bytes).map(&mut take).map_err(|error| errno(&error)),
        };
        let (length, _) = rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty())?;
        let Some(session) = &mut self.session else {
            let outcome = take(&buffer[..length])?;
            self.flush()?;
            return Ok((length, outcome));
        };
        let mut sealed = &buffer[..length];
        while !sealed.is_empty() {
            session.connection.read_tls(&mut sealed).map_err(|error| errno(&error))?;
            if session.connection.process_new_packets().is_err() {
                return Err(Errno::PROTO);
            }
            let mut reader = session.connection.reader();
            while let Ok(content @ [_, ..]) = io::BufRead::fill_buf(&mut reader) {
                let (bytes, outcome) = (content.len(), take(content)?);
                io::BufRead::consume(&mut reader, bytes);
                if outcome.is_some() {
                    return Ok((length, outcome));
                }
            }
        }
        // The end of a handshake, and what waited for it; updates of windows.
        self.flush()?;
        Ok((length, None))
    }

    /// Returns the kind of the handshake, once.
    pub(super) fn finished_handshake(&mut self) -> Option<HandshakeKind> {
        let session = self.session.as_mut().filter(|session| !session.is_counted)?;
        let kind = session.connection.handshake_kind().filter(|_| !session.connection.is_handshaking())?;
        session.is_counted = true;
        Some(kind)
    }
}

/// Returns the system's error, or `PROTO` for what is none of the system's.
fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::PROTO)
}
