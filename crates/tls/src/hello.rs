//! Gathers a ClientHello from its records, so that the configuration can be chosen before rustls sees it.

use rustls::server::{Accepted, Acceptor};
use shearwater_io::secure::{Failure, RECORD_BYTES_MAX};

use crate::failure::{Alert, reason};
use crate::limits::HELLO_BYTES_MAX;

/// Length of a record's header.
pub(crate) const RECORD_HEADER_BYTES: usize = 5;
/// Length of a handshake message's header.
const MESSAGE_HEADER_BYTES: usize = 4;

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;

/// The part of a ClientHello that has arrived, without the headers of its records.
#[derive(Debug, Default)]
pub(crate) struct PartialHello {
    message: Vec<u8>,
    /// Version in the header of the first record.
    version: [u8; 2],
}

/// Result of [`PartialHello::take`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Gathered {
    /// The next record isn't whole yet.
    Nothing,
    /// This many bytes of a record are taken. The message isn't whole.
    Part(usize),
    /// This many bytes of a record are taken, and the message is whole.
    Whole(usize),
    /// This isn't a ClientHello. An alert, if one makes sense, was appended to the reply.
    Failed(Failure),
}

impl PartialHello {
    /// Takes one record from the beginning of `wire`.
    pub(crate) fn take(&mut self, wire: &[u8], plain_http_response: &[u8], reply: &mut Vec<u8>) -> Gathered {
        match self.take_record(wire) {
            Ok(gathered) => gathered,
            Err((Failure::NotTls, _)) => {
                if wire[0].is_ascii_alphabetic() {
                    reply.extend_from_slice(plain_http_response);
                }
                Gathered::Failed(Failure::NotTls)
            }
            Err((failure, alert)) => {
                if let Some(alert) = alert {
                    alert.append(reply);
                }
                Gathered::Failed(failure)
            }
        }
    }

    fn take_record(&mut self, wire: &[u8]) -> Result<Gathered, (Failure, Option<Alert>)> {
        let is_first = self.message.is_empty();
        let malformed = |alert| Err((Failure::BadRecord, Some(alert)));
        match *wire {
            [] => return Ok(Gathered::Nothing),
            [ALERT, ..] => return Err((Failure::Alert, None)),
            [HANDSHAKE] => return Ok(Gathered::Nothing),
            [HANDSHAKE, 3, ..] => {}
            [_, ..] if is_first => return Err((Failure::NotTls, None)),
            [_, ..] => return malformed(Alert::UnexpectedMessage),
        }
        let [_, major, minor, high, low, ref content @ ..] = *wire else { return Ok(Gathered::Nothing) };
        let length = usize::from(u16::from_be_bytes([high, low]));
        match length {
            0 => return malformed(Alert::UnexpectedMessage),
            1..=RECORD_BYTES_MAX => {}
            _ => return malformed(Alert::RecordOverflow),
        }
        // A message of another kind, or one that is too large, fails before its end arrives.
        let arrived = &content[..content.len().min(length)];
        let mut head = [0; MESSAGE_HEADER_BYTES];
        let known =
            head.iter_mut().zip(self.message.iter().chain(arrived)).map(|(to, from)| *to = *from).count();
        let whole = match head[..known] {
            [CLIENT_HELLO, a, b, c] => MESSAGE_HEADER_BYTES + u32::from_be_bytes([0, a, b, c]) as usize,
            [CLIENT_HELLO, ..] | [] => usize::MAX,
            [..] => return malformed(Alert::UnexpectedMessage),
        };
        if whole > HELLO_BYTES_MAX && whole != usize::MAX {
            return malformed(Alert::DecodeError);
        }
        if arrived.len() < length {
            return Ok(Gathered::Nothing);
        }
        if is_first {
            self.version = [major, minor];
        }
        self.message.extend_from_slice(arrived);
        let taken = RECORD_HEADER_BYTES + length;
        match self.message.len() {
            len if len < whole => Ok(Gathered::Part(taken)),
            len if len == whole => Ok(Gathered::Whole(taken)),
            // Nothing can follow it before the server's reply.
            _ => malformed(Alert::UnexpectedMessage),
        }
    }

    /// Returns the whole message in as few records as possible.
    pub(crate) fn into_records(self) -> Vec<u8> {
        let mut records = Vec::with_capacity(self.message.len() + 5 * RECORD_HEADER_BYTES);
        for part in self.message.chunks(RECORD_BYTES_MAX) {
            let [high, low] = (part.len() as u16).to_be_bytes();
            records.extend_from_slice(&[HANDSHAKE, self.version[0], self.version[1], high, low]);
            records.extend_from_slice(part);
        }
        records
    }

    /// Returns the memory that it holds, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.message.capacity()
    }
}

/// Parses a ClientHello that is whole. An alert is appended to the reply if it is malformed.
pub(crate) fn parse(mut records: &[u8], reply: &mut Vec<u8>) -> Result<Accepted, Failure> {
    let mut acceptor = Acceptor::default();
    loop {
        let read = acceptor.read_tls(&mut records).map_err(|_| Failure::BadRecord)?;
        match acceptor.accept() {
            Ok(Some(accepted)) => return Ok(accepted),
            Ok(None) if read == 0 => return Err(Failure::BadRecord),
            Ok(None) => {}
            Err((error, mut alert)) => {
                alert.write_all(reply).map_err(|_| Failure::Other)?;
                return Err(reason(&error));
            }
        }
    }
}
