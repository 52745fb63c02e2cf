//! A TCP connection, in clear or by TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};

use crate::error::Error;
use crate::tls::ClientTls;

/// Bytes of a read of the socket, and of content that is encrypted at once.
const PIECE_BYTES: usize = 64 * 1024;

/// A TCP connection, in clear or by TLS. It derefs to the socket, whose settings hold for both.
///
/// One thread may read while another one writes.
#[derive(Debug)]
pub struct Stream {
    socket: TcpStream,
    tls: OnceLock<Tls>,
}

#[derive(Debug)]
struct Tls {
    connection: Mutex<ClientConnection>,
    /// Decrypted content that wasn't read yet.
    content: Mutex<Vec<u8>>,
    /// Held from the encryption of records until they are sent, so that they are sent in order.
    sending: Mutex<()>,
    /// A handshake that the server has refused: the first use returns it.
    failure: Mutex<Option<io::Error>>,
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Self {
        Self { socket, tls: OnceLock::new() }
    }
}

impl Stream {
    /// Does a handshake. The first read or write returns its failure, as it returns a reset in clear.
    pub fn secured(self, tls: &ClientTls) -> Result<Self, Error> {
        self.secure(tls)?;
        Ok(self)
    }

    /// Does a handshake on a stream in clear, as [`secured`](Self::secured).
    pub(crate) fn secure(&self, tls: &ClientTls) -> Result<(), Error> {
        let connection = Mutex::new(tls.connection()?);
        let content = Mutex::new(Vec::new());
        let tls = Tls { connection, content, sending: Mutex::new(()), failure: Mutex::new(None) };
        let tls = self.tls.get_or_init(|| tls);
        *lock(&tls.failure) = self.handshake(tls).err();
        Ok(())
    }

    fn handshake(&self, tls: &Tls) -> io::Result<()> {
        self.flush_records(tls)?;
        while lock(&tls.connection).is_handshaking() {
            self.receive(tls)?;
        }
        self.flush_records(tls)
    }

    /// Returns true if the connection is by TLS.
    pub fn is_secure(&self) -> bool {
        self.tls.get().is_some()
    }

    /// Returns true if the handshake has resumed a session.
    pub fn is_resumed(&self) -> bool {
        let kind = self.tls.get().and_then(|tls| lock(&tls.connection).handshake_kind());
        kind == Some(HandshakeKind::Resumed)
    }

    /// Returns the version of TLS: `"1.2"` or `"1.3"`.
    pub fn version(&self) -> Option<&'static str> {
        match lock(&self.tls.get()?.connection).protocol_version()? {
            ProtocolVersion::TLSv1_2 => Some("1.2"),
            ProtocolVersion::TLSv1_3 => Some("1.3"),
            _ => None,
        }
    }

    /// Returns the protocol that ALPN has chosen.
    pub fn protocol(&self) -> Option<String> {
        let connection = lock(&self.tls.get()?.connection);
        connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// Returns the server's certificate, DER.
    pub fn certificate(&self) -> Option<Vec<u8>> {
        let connection = lock(&self.tls.get()?.connection);
        connection.peer_certificates()?.first().map(|certificate| certificate.to_vec())
    }

    /// Shuts down the socket; by TLS, sends the `close_notify` alert before.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if let Some(tls) = self.tls.get().filter(|_| how != Shutdown::Read) {
            lock(&tls.connection).send_close_notify();
            // A server that has gone reads no alert.
            drop(self.flush_records(tls));
        }
        self.socket.shutdown(how)
    }

    fn take_failure(tls: &Tls) -> io::Result<()> {
        lock(&tls.failure).take().map_or(Ok(()), Err)
    }

    /// Sends the records that are there.
    fn flush_records(&self, tls: &Tls) -> io::Result<()> {
        let _in_order = lock(&tls.sending);
        let mut records = Vec::new();
        {
            let mut connection = lock(&tls.connection);
            while connection.wants_write() {
                connection.write_tls(&mut records)?;
            }
        }
        (&self.socket).write_all(&records)
    }

    /// Receives once and decrypts it. The end of the connection is known to `connection` afterwards.
    fn receive(&self, tls: &Tls) -> io::Result<()> {
        let mut room = vec![0; PIECE_BYTES];
        let count = loop {
            match (&self.socket).read(&mut room) {
                // A signal interrupts a read with a timeout.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let mut received = &room[..count];
        let is_handshaking = {
            let mut connection = lock(&tls.connection);
            loop {
                connection.read_tls(&mut received)?;
                let state = match connection.process_new_packets() {
                    Ok(state) => state,
                    Err(error) => {
                        drop(connection);
                        // The alert that says why; the error matters more than whether it arrives.
                        drop(self.flush_records(tls));
                        return Err(io::Error::new(ErrorKind::InvalidData, error));
                    }
                };
                // It buffers some records only.
                let length = state.plaintext_bytes_to_read();
                if length > 0 {
                    let mut content = lock(&tls.content);
                    let begin = content.len();
                    content.resize(begin + length, 0);
                    connection.reader().read_exact(&mut content[begin..])?;
                }
                if received.is_empty() {
                    break connection.is_handshaking();
                }
            }
        };
        if count == 0 && is_handshaking {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server has ended the handshake"));
        }
        if is_handshaking || lock(&tls.connection).wants_write() {
            self.flush_records(tls)?;
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Deref for Stream {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.socket
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Read for &Stream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = self.tls.get() else { return (&self.socket).read(room) };
        Stream::take_failure(tls)?;
        loop {
            {
                let mut content = lock(&tls.content);
                if !content.is_empty() {
                    let count = content.len().min(room.len());
                    room[..count].copy_from_slice(&content[..count]);
                    content.drain(..count);
                    return Ok(count);
                }
            }
            match lock(&tls.connection).reader().read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            self.receive(tls)?;
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = self.tls.get() else { return (&self.socket).write(bytes) };
        Stream::take_failure(tls)?;
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        let count = lock(&tls.connection).writer().write(piece)?;
        self.flush_records(tls)?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        (&*self).read(room)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
