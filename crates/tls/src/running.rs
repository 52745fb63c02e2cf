//! A session from its ServerHello on: records, each passed to rustls by itself.

use std::io::IoSlice;
use std::sync::Arc;

use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, WriteTraffic};
use rustls::{CipherSuite, HandshakeKind, ProtocolVersion};
use shearwater_io::secure::{Failure, Opened, RECORD_WIRE_BYTES_MAX, SessionFacts, Step, Version};

use crate::challenges;
use crate::configuration::{AlpnProtocol, Chosen};
use crate::failure::{Alert, reason};
use crate::hello::RECORD_HEADER_BYTES;
use crate::limits::{HANDSHAKE_BYTES_MAX, MESSAGE_BYTES_MAX};
use crate::seal::{self, append};

/// A session with its configuration, from its ServerHello on.
pub(crate) struct Running {
    connection: UnbufferedServerConnection,
    chosen: Chosen,
    /// Records of a message that isn't whole, as rustls has left them.
    pending: Vec<u8>,
    pub(crate) facts: Option<Arc<SessionFacts>>,
    /// The costly step that is next was reported.
    is_announced: bool,
    /// The peer has ended its side.
    is_closed: bool,
    /// This side has ended.
    is_ended: bool,
}

/// Memory of a session that runs, in bytes: [`Running`], what rustls allocates for it, and the state of two ciphers. The
/// test `allocations` compares it.
const RUNNING_BYTES: usize = 3900;

/// Result of [`Running::process`].
struct Processed {
    /// Bytes at the beginning of the buffer that rustls needs no more.
    discarded: usize,
    stop: Stop,
}

/// Reasons for which rustls takes no more of a buffer.
#[derive(Clone, Copy)]
enum Stop {
    /// More records are needed.
    Idle,
    /// Content can be taken.
    Content,
    /// The peer has sent close_notify.
    Closed,
}

impl Running {
    /// Begins the handshake with a ClientHello that is whole.
    pub(crate) fn new(chosen: Chosen, hello: &mut [u8], reply: &mut Vec<u8>) -> Result<Self, Failure> {
        let Ok(connection) = UnbufferedServerConnection::new(Arc::clone(&chosen.config)) else {
            Alert::InternalError.append(reply);
            return Err(Failure::Other);
        };
        let mut running = Self {
            connection,
            chosen,
            pending: Vec::new(),
            facts: None,
            is_announced: false,
            is_closed: false,
            is_ended: false,
        };
        let processed = running.process(hello, 0, reply)?;
        if processed.discarded == hello.len() { Ok(running) } else { Err(Failure::BadRecord) }
    }

    /// Opens the record at the beginning of `wire`.
    pub(crate) fn open(&mut self, wire: &mut [u8], reply: &mut Vec<u8>) -> Result<Opened, Failure> {
        let done = |consumed, step| Ok(Opened { consumed, step });
        if self.is_closed {
            return done(wire.len(), Step::Closed);
        }
        if self.facts.is_some() && self.chosen.is_challenge {
            self.close_notify(reply);
            self.is_closed = true;
            return done(wire.len(), Step::Closed);
        }
        let Some(end) = record_end(wire) else { return done(0, Step::NeedMore) };
        if !self.is_announced && self.is_costly(wire) {
            self.is_announced = true;
            return done(0, Step::Costly);
        }
        self.is_announced = false;
        let (record, _) = wire.split_at_mut(end);
        let content = if self.pending.is_empty() {
            self.open_record(record, reply)?
        } else {
            self.open_pending(record, reply)?
        };
        match content {
            _ if self.is_closed => done(wire.len(), Step::Closed),
            0 if self.facts.is_none() && !self.connection.is_handshaking() => {
                self.facts = Some(Arc::new(self.session_facts()));
                self.pending.shrink_to_fit();
                done(end, Step::Secured)
            }
            0 => done(end, Step::Handled),
            length => done(end, Step::Plain(0..length)),
        }
    }

    /// Opens a record that begins a message, in place. Returns the length of its content, at its beginning.
    fn open_record(&mut self, record: &mut [u8], reply: &mut Vec<u8>) -> Result<usize, Failure> {
        let Processed { discarded, stop } = self.process(record, 0, reply)?;
        let (front, rest) = record.split_at_mut(discarded);
        let length = self.stopped(stop, rest, front)?;
        self.pending.extend_from_slice(rest);
        self.check_pending().map(|()| length)
    }

    /// Opens a record together with the ones before, which rustls still needs.
    fn open_pending(&mut self, record: &mut [u8], reply: &mut Vec<u8>) -> Result<usize, Failure> {
        let mut pending = std::mem::take(&mut self.pending);
        let record_at = pending.len();
        pending.extend_from_slice(record);
        let Processed { discarded, stop } = self.process(&mut pending, record_at, reply)?;
        let length = self.stopped(stop, &mut pending[discarded..], record)?;
        pending.drain(..discarded);
        if !pending.is_empty() {
            self.pending = pending;
        }
        self.check_pending().map(|()| length)
    }

    fn check_pending(&self) -> Result<(), Failure> {
        let most = if self.facts.is_some() { MESSAGE_BYTES_MAX } else { HANDSHAKE_BYTES_MAX };
        if self.pending.len() > most { Err(Failure::BadRecord) } else { Ok(()) }
    }

    /// Takes over content that rustls has decrypted; `rest` are the bytes that it still needs.
    fn stopped(&mut self, stop: Stop, rest: &mut [u8], out: &mut [u8]) -> Result<usize, Failure> {
        match stop {
            Stop::Idle => Ok(0),
            Stop::Closed => {
                self.is_closed = true;
                Ok(0)
            }
            Stop::Content => {
                let Ok(ConnectionState::ReadTraffic(mut traffic)) =
                    self.connection.process_tls_records(rest).state
                else {
                    return Err(Failure::Other);
                };
                let Some(Ok(content)) = traffic.next_record() else { return Err(Failure::Other) };
                let length = content.payload.len();
                out.get_mut(..length).ok_or(Failure::Other)?.copy_from_slice(content.payload);
                Ok(length)
            }
        }
    }

    /// Passes `buffer` to rustls until it wants other bytes; its last record begins at `record_at`.
    fn process(
        &mut self,
        buffer: &mut [u8],
        record_at: usize,
        reply: &mut Vec<u8>,
    ) -> Result<Processed, Failure> {
        let mut discarded = 0;
        loop {
            let status = self.connection.process_tls_records(&mut buffer[discarded..]);
            let stop = match status.state {
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    append(reply, 0, |out| data.encode(out))?;
                    None
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    None
                }
                Ok(ConnectionState::ReadTraffic(_)) => Some(Stop::Content),
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Some(Stop::Closed),
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => Some(Stop::Idle),
                // Early data, which the configuration refuses.
                Ok(_) => return Err(Failure::Unsupported),
                Err(error) => {
                    let failure = reason(&error);
                    discarded += status.discard;
                    self.append_alerts(&mut buffer[discarded..], record_at.saturating_sub(discarded), reply);
                    return Err(failure);
                }
            };
            discarded += status.discard;
            if let Some(stop) = stop {
                return Ok(Processed { discarded, stop });
            }
        }
    }

    /// Appends the alerts of an error. rustls reads the buffer once more after them: the record that has failed is made
    /// incomplete, so that it can't fail twice.
    fn append_alerts(&mut self, buffer: &mut [u8], record_at: usize, reply: &mut Vec<u8>) {
        const INCOMPLETE: [u8; RECORD_HEADER_BYTES] = [22, 3, 3, 0x47, 0xFF];
        if let Some(header) = buffer.get_mut(record_at..record_at + RECORD_HEADER_BYTES) {
            header.copy_from_slice(&INCOMPLETE);
        }
        loop {
            match self.connection.process_tls_records(buffer).state {
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    if append(reply, 0, |out| data.encode(out)).is_err() {
                        return;
                    }
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                _ => return,
            }
        }
    }

    /// Returns whether the next record brings a key exchange, or the client's certificate.
    fn is_costly(&self, record: &[u8]) -> bool {
        const HANDSHAKE: u8 = 22;
        const CONTENT: u8 = 23;
        const CLIENT_HELLO: u8 = 1;
        const CLIENT_KEY_EXCHANGE: u8 = 16;
        let is_encrypted = self.connection.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        self.connection.is_handshaking()
            && match (record[0], record.get(RECORD_HEADER_BYTES)) {
                (HANDSHAKE, Some(&(CLIENT_HELLO | CLIENT_KEY_EXCHANGE))) => true,
                (CONTENT, _) => is_encrypted && self.chosen.client_policy != 0,
                _ => false,
            }
    }

    fn session_facts(&self) -> SessionFacts {
        let connection = &self.connection;
        let is_tls13 = connection.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        let certificates = connection.peer_certificates().unwrap_or_default();
        SessionFacts {
            version: if is_tls13 { Version::Tls13 } else { Version::Tls12 },
            is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            alpn: connection.alpn_protocol().and_then(protocol_name),
            server_name: self.chosen.server_name.clone(),
            client_certificates: certificates.iter().map(|certificate| Box::from(&certificate[..])).collect(),
            client_policy: self.chosen.client_policy,
            cipher_suite: connection.negotiated_cipher_suite().map_or("", |suite| suite_name(suite.suite())),
        }
    }

    /// Seals content, after messages that are queued.
    pub(crate) fn seal(&mut self, plain: &[IoSlice<'_>], wire: &mut Vec<u8>) -> Result<(), Failure> {
        if self.is_ended {
            return Err(Failure::Other);
        }
        self.write(wire, |writer, wire| seal::seal(writer, plain, wire))
    }

    /// Ends this side, once.
    pub(crate) fn close_notify(&mut self, wire: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        let start = wire.len();
        let written =
            self.write(wire, |writer, wire| append(wire, ALERT_BYTES, |out| writer.queue_close_notify(out)));
        if written.is_err() {
            // The keys are used up: the FIN alone ends this side.
            wire.truncate(start);
        }
    }

    /// Returns the memory of messages that aren't complete, in bytes.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.capacity()
    }

    /// Returns the memory that it holds, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        RUNNING_BYTES + self.pending.capacity()
    }

    /// Appends messages that are queued, then what `write` seals.
    fn write(
        &mut self,
        wire: &mut Vec<u8>,
        write: impl FnOnce(&mut WriteTraffic<'_, ServerConnectionData>, &mut Vec<u8>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            match self.connection.process_tls_records(&mut self.pending).state {
                Ok(ConnectionState::EncodeTlsData(mut data)) => append(wire, 0, |out| data.encode(out))?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => {}
                Ok(ConnectionState::WriteTraffic(mut writer)) => return write(&mut writer, wire),
                Ok(_) => return Err(Failure::Other),
                Err(error) => return Err(reason(&error)),
            }
        }
    }
}

/// Length of an encrypted alert, at most.
const ALERT_BYTES: usize = 64;

/// Returns the end of the record at the beginning of `wire`, if it is whole.
///
/// One that is too large ends with its header. Its length is raised to one that rustls rejects, too.
fn record_end(wire: &mut [u8]) -> Option<usize> {
    let [_, _, _, high, low, ..] = wire else { return None };
    let end = RECORD_HEADER_BYTES + usize::from(u16::from_be_bytes([*high, *low]));
    if end > RECORD_WIRE_BYTES_MAX {
        (*high, *low) = (0xFF, 0xFF);
        return Some(RECORD_HEADER_BYTES);
    }
    (end <= wire.len()).then_some(end)
}

fn protocol_name(name: &[u8]) -> Option<&'static str> {
    let mut known = AlpnProtocol::ALL.map(AlpnProtocol::as_str).into_iter().chain([challenges::PROTOCOL]);
    known.find(|known| known.as_bytes() == name)
}

/// Returns a suite's registered name, which differs from rustls's for TLS 1.3.
fn suite_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        other => other.as_str().unwrap_or(""),
    }
}
