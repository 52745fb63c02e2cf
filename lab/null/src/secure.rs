//! The floor of TLS: constant bytes through rustls, per request one receive, one record opened, one sealed, and one send.

use std::convert::Infallible;
use std::io::{self, Error};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{ServerConfig, version};

use crate::epoll::{EpollPeer, RECEIVE_BYTES, serve_peers};
use crate::response::ConstantResponse;

/// Content that is sealed before a send: four full records.
const SEAL_BYTES: usize = 64 * 1024;
/// Room for these records, and for any message of a handshake.
const SEALED_BYTES: usize = SEAL_BYTES + 4 * 1024;
/// Longest record with its header, which is the most that a connection keeps of unfinished input.
const RECORD_BYTES_MAX: usize = 16 * 1024 + 256 + 5;

/// The response and the configuration, and buffers that no connection keeps.
struct SecureShared {
    response: &'static ConstantResponse,
    config: Arc<ServerConfig>,
    wire: Box<[u8]>,
    sealed: Box<[u8]>,
}

struct SecureConnection {
    socket: OwnedFd,
    session: UnbufferedServerConnection,
    owed_bytes: usize,
    /// The begin of a record.
    unread: Vec<u8>,
    /// Sealed bytes that the socket did not take.
    unsent: Vec<u8>,
}

/// Serves by TLS 1.3 with a certificate and its key, until the kernel fails.
pub(crate) fn serve(
    listener: &OwnedFd,
    response: &'static ConstantResponse,
    (certificate, key): (&Path, &Path),
) -> io::Result<Infallible> {
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| Error::other(format!("{}: {error}", certificate.display())))?;
    let secret = PrivateKeyDer::from_pem_file(key);
    let secret = secret.map_err(|error| Error::other(format!("{}: {error}", key.display())))?;
    let config = server_config(chain, secret).map_err(Error::other)?;
    serve_peers::<SecureConnection>(listener, shared(response, config))
}

fn shared(response: &'static ConstantResponse, config: ServerConfig) -> SecureShared {
    let [wire, sealed] = [RECORD_BYTES_MAX + RECEIVE_BYTES, SEALED_BYTES].map(|bytes| vec![0; bytes].into());
    SecureShared { response, config: Arc::new(config), wire, sealed }
}

/// Returns a configuration with tickets and without a session cache, as our server has it.
fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_protocol_versions(&[&version::TLS13])?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = Ticketer::new()?;
    Ok(config)
}

impl EpollPeer for SecureConnection {
    type Shared = SecureShared;

    fn accepted(socket: OwnedFd, shared: &mut SecureShared) -> Option<Self> {
        let session = UnbufferedServerConnection::new(Arc::clone(&shared.config)).ok()?;
        Some(Self { socket, session, owed_bytes: 0, unread: Vec::new(), unsent: Vec::new() })
    }

    fn receive(&mut self, shared: &mut SecureShared, to_the_end: bool) -> bool {
        loop {
            let kept = self.unread.len();
            shared.wire[..kept].copy_from_slice(&self.unread);
            let length = match recv(&self.socket, &mut shared.wire[kept..], RecvFlags::empty()) {
                Ok((0, _)) => return false,
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            };
            let is_short = length < shared.wire.len() - kept;
            let Some(used) = self.open(kept + length, shared) else { return false };
            self.unread.clear();
            self.unread.extend_from_slice(&shared.wire[used..kept + length]);
            if self.unread.len() > RECORD_BYTES_MAX {
                return false;
            }
            if is_short && !to_the_end {
                return true;
            }
        }
    }

    fn send(&mut self, shared: &mut SecureShared) -> bool {
        let unsent = std::mem::take(&mut self.unsent);
        let mut is_open = self.transmit(&unsent);
        while is_open && self.unsent.is_empty() && self.owed_bytes > 0 && !self.session.is_handshaking() {
            let piece = shared.response.piece(self.owed_bytes);
            let piece = &piece[..piece.len().min(SEAL_BYTES)];
            let UnbufferedStatus { state: Ok(ConnectionState::WriteTraffic(mut writer)), .. } =
                self.session.process_tls_records(&mut [])
            else {
                return false;
            };
            let Ok(sealed) = writer.encrypt(piece, &mut shared.sealed) else { return false };
            self.owed_bytes -= piece.len();
            is_open = self.transmit(&shared.sealed[..sealed]);
        }
        is_open
    }
}

impl SecureConnection {
    /// Opens the records among so many bytes; each gets a response. Returns how many bytes are used up, or nothing at the end.
    fn open(&mut self, length: usize, shared: &mut SecureShared) -> Option<usize> {
        let (mut used, mut sealed) = (0, 0);
        loop {
            let input = &mut shared.wire[used..length];
            let UnbufferedStatus { discard, state } = self.session.process_tls_records(input);
            used += discard;
            match state.ok()? {
                ConnectionState::ReadTraffic(mut reader) => {
                    while let Some(record) = reader.next_record() {
                        used += record.ok()?.discard;
                        self.owed_bytes += shared.response.due_bytes(&[]);
                    }
                }
                ConnectionState::EncodeTlsData(mut encoder) => {
                    sealed += encoder.encode(&mut shared.sealed[sealed..]).ok()?;
                }
                ConnectionState::TransmitTlsData(transmission) => {
                    transmission.done();
                    self.transmit(&shared.sealed[..std::mem::take(&mut sealed)]).then_some(())?;
                }
                ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_) => return Some(used),
                _ => return None,
            }
        }
    }

    /// Sends sealed bytes, after those that wait, and keeps what the socket does not take. Returns false at the connection's end.
    fn transmit(&mut self, mut sealed: &[u8]) -> bool {
        while self.unsent.is_empty() && !sealed.is_empty() {
            match send(&self.socket, sealed, SendFlags::NOSIGNAL) {
                Ok(length) => sealed = &sealed[length..],
                Err(Errno::AGAIN) => break,
                Err(_) => return false,
            }
        }
        self.unsent.extend_from_slice(sealed);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::thread;

    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

    use super::*;

    /// Serves responses of so many bytes for as long as the test's process lives; returns a client.
    fn client(bytes: usize) -> StreamOwned<ClientConnection, TcpStream> {
        let made = rcgen::generate_simple_self_signed(["lab".to_owned()]).expect("a certificate");
        let config = server_config(vec![made.cert.der().clone()], made.signing_key.into());
        let listener = crate::listen(([127, 0, 0, 1], 0).into()).expect("a free port");
        let address = rustix::net::getsockname(&listener).expect("it is bound");
        let address: std::net::SocketAddr = address.try_into().expect("an internet address");
        let response: &'static _ = Box::leak(Box::new(ConstantResponse::new(bytes, false)));
        let shared = shared(response, config.expect("a pair"));
        thread::spawn(move || serve_peers::<SecureConnection>(&listener, shared));
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a certificate");
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("TLS 1.3");
        let config = Arc::new(builder.with_root_certificates(roots).with_no_client_auth());
        let session = ClientConnection::new(config, "lab".try_into().expect("a name")).expect("a session");
        StreamOwned::new(session, TcpStream::connect(address).expect("it listens"))
    }

    #[test]
    fn sends_a_whole_response_for_each_record_however_long_it_is() {
        for bytes in [64, 1_300, 3_000_000] {
            let mut client = client(bytes);
            let mut received = vec![0; bytes];
            for _ in 0..3 {
                client.write_all(b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n").expect("it is sent");
                client.read_exact(&mut received).expect("a response");
                let head = format!("\r\nContent-Length: {}\r\n\r\n", bytes - 64);
                assert!(received[..64].ends_with(head.as_bytes()));
                assert!(received[64..].iter().all(|byte| *byte == b'x'));
            }
        }
    }

    #[test]
    fn opens_records_that_come_byte_by_byte() {
        let mut client = client(64);
        client.conn.writer().write_all(b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n").expect("room");
        let (mut received, mut length) = ([0; 64], 0);
        while length < received.len() {
            let mut wire = Vec::new();
            while client.conn.wants_write() {
                client.conn.write_tls(&mut wire).expect("a Vec");
            }
            wire.chunks(1).for_each(|byte| client.sock.write_all(byte).expect("it is sent"));
            client.conn.read_tls(&mut client.sock).expect("an open connection");
            client.conn.process_new_packets().expect("right records");
            length += client.conn.reader().read(&mut received[length..]).unwrap_or(0);
        }
        assert!(received.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }
}
