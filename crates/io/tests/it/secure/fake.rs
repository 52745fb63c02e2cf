//! A provider without cryptography: records are masked by their number and have a checksum.
//!
//! The protocol looks like TLS from below: the same headers, a handshake with one costly step, a ticket, alerts and
//! key updates. Each side numbers its records, so that a lost, repeated or reordered one is noticed.

use std::io::IoSlice;
use std::sync::Arc;

use shearwater_io::ListenerId;
use shearwater_io::secure::{
    Failure, Opened, Provider, RECORD_BYTES_MAX, RECORD_WIRE_BYTES_MAX, Session, SessionFacts, Step, Version,
};

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const CONTENT: u8 = 23;

/// First byte of a handshake message.
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const TICKET: u8 = 4;
const FINISHED: u8 = 20;
const KEY_UPDATE: u8 = 24;

/// Second byte of an alert.
const CLOSE_NOTIFY: u8 = 0;
const BAD_RECORD: u8 = 20;

/// Third byte of a header after which a session always waits for more.
pub(crate) const ENDLESS: u8 = 9;
/// Third byte of a header whose record a session keeps: a part of a message.
pub(crate) const KEPT: u8 = 8;

const HEADER: usize = 5;
const CHECKSUM: usize = 4;

/// Returns the checksum of a record's content. Eight bytes at a time: unoptimised builds move megabytes here.
fn checksum(number: u64, kind: u8, plain: &[u8]) -> [u8; CHECKSUM] {
    let start = 0xCBF2_9CE4_8422_2325 ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(kind);
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(29);
    let (words, rest) = plain.as_chunks::<8>();
    let hash = words.iter().fold(start, |hash, word| step(hash, u64::from_le_bytes(*word)));
    let hash = rest.iter().fold(hash, |hash, byte| step(hash, u64::from(*byte)));
    ((hash >> 32) as u32).to_be_bytes()
}

fn mask(number: u64, bytes: &mut [u8]) {
    let key = (number as u8).wrapping_mul(31) ^ 0xA5;
    let (words, rest) = bytes.as_chunks_mut::<8>();
    let long = u64::from_ne_bytes([key; 8]);
    words.iter_mut().for_each(|word| *word = (u64::from_ne_bytes(*word) ^ long).to_ne_bytes());
    rest.iter_mut().for_each(|byte| *byte ^= key);
}

/// Appends one record.
fn seal_record(number: &mut u64, kind: u8, plain: &[u8], wire: &mut Vec<u8>) {
    let len = u16::try_from(plain.len() + CHECKSUM).expect("a short record");
    wire.extend_from_slice(&[kind, 3, 3]);
    wire.extend_from_slice(&len.to_be_bytes());
    let start = wire.len();
    wire.extend_from_slice(plain);
    mask(*number, &mut wire[start..]);
    wire.extend_from_slice(&checksum(*number, kind, plain));
    *number += 1;
}

/// Returns the length of the first record; `None` if its header is incomplete.
fn record_len(wire: &[u8]) -> Option<usize> {
    let header = wire.get(..HEADER)?;
    Some(HEADER + usize::from(u16::from_be_bytes([header[3], header[4]])))
}

/// Opens one whole record in place. Returns its kind and content; `None` if it is damaged.
fn open_record<'a>(number: &mut u64, record: &'a mut [u8]) -> Option<(u8, &'a mut [u8])> {
    let kind = record[0];
    let end = record.len().checked_sub(CHECKSUM).filter(|end| *end >= HEADER)?;
    let (plain, sum) = record[HEADER..].split_at_mut(end - HEADER);
    mask(*number, plain);
    let is_whole = checksum(*number, kind, plain) == *sum;
    *number += 1;
    is_whole.then_some((kind, plain))
}

/// Makes sessions without cryptography.
#[derive(Debug, Default)]
pub(crate) struct Fake {
    /// Turns that have begun.
    pub turns: u64,
}

impl Provider for Fake {
    type Session = FakeSession;

    fn begin_turn(&mut self, _: u64) {
        self.turns += 1;
    }

    fn accept(&mut self, _: ListenerId) -> FakeSession {
        FakeSession { phase: Phase::Hello, is_due: false, facts: None, kept: 0, opened: 0, sealed: 0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Hello,
    Finished,
    Secured,
    Closed,
    Failed(Failure),
}

/// The server's side.
#[derive(Debug)]
pub(crate) struct FakeSession {
    phase: Phase,
    /// The costly step was announced.
    is_due: bool,
    facts: Option<Arc<SessionFacts>>,
    /// Bytes of messages in part.
    kept: usize,
    opened: u64,
    sealed: u64,
}

impl FakeSession {
    fn fail(&mut self, failure: Failure, reply: &mut Vec<u8>) -> Opened {
        if !matches!(failure, Failure::NotTls | Failure::Alert) {
            seal_record(&mut self.sealed, ALERT, &[2, BAD_RECORD], reply);
        }
        self.phase = Phase::Failed(failure);
        Opened { consumed: 0, step: Step::Failed(failure) }
    }

    fn take_message(&mut self, message: &[u8], reply: &mut Vec<u8>) -> Result<Step, Failure> {
        match (self.phase, message) {
            (Phase::Hello, [CLIENT_HELLO, 0, ..]) => Err(Failure::Version),
            (Phase::Hello, [CLIENT_HELLO, version, ..]) => {
                self.phase = Phase::Finished;
                let is_resumed = message.get(2).is_some_and(|byte| *byte == TICKET);
                let version = if *version == 2 { Version::Tls12 } else { Version::Tls13 };
                self.facts = Some(Arc::new(SessionFacts {
                    version,
                    is_resumed,
                    alpn: Some("http/1.1"),
                    server_name: Some(Arc::from("fake.example")),
                    client_certificates: Box::default(),
                    client_policy: 0,
                    cipher_suite: "FAKE_XOR",
                }));
                seal_record(&mut self.sealed, HANDSHAKE, &[SERVER_HELLO; 90], reply);
                Ok(Step::Handled)
            }
            (Phase::Finished, [FINISHED, ..]) => {
                self.phase = Phase::Secured;
                seal_record(&mut self.sealed, HANDSHAKE, &[TICKET; 200], reply);
                Ok(Step::Secured)
            }
            (Phase::Secured, [KEY_UPDATE, ..]) => {
                seal_record(&mut self.sealed, HANDSHAKE, &[KEY_UPDATE], reply);
                Ok(Step::Handled)
            }
            (Phase::Secured, [CLIENT_HELLO, ..]) => Err(Failure::Unsupported),
            _ => Err(Failure::BadRecord),
        }
    }
}

impl Session for FakeSession {
    fn open(&mut self, wire: &mut [u8], reply: &mut Vec<u8>) -> Opened {
        let more = Opened { consumed: 0, step: Step::NeedMore };
        match self.phase {
            Phase::Failed(failure) => return Opened { consumed: 0, step: Step::Failed(failure) },
            Phase::Closed => return Opened { consumed: wire.len(), step: Step::Closed },
            _ => {}
        }
        match wire.first() {
            None => return more,
            Some(kind) if !(ALERT..=CONTENT).contains(kind) => {
                let failure = if self.opened == 0 { Failure::NotTls } else { Failure::BadRecord };
                return self.fail(failure, reply);
            }
            Some(_) => {}
        }
        let Some(len) = record_len(wire) else { return more };
        if len > RECORD_WIRE_BYTES_MAX {
            return self.fail(Failure::BadRecord, reply);
        }
        if wire[2] == ENDLESS {
            return more;
        }
        let Some(record) = wire.get_mut(..len) else { return more };
        if record[2] == KEPT {
            self.kept += len;
            return Opened { consumed: len, step: Step::Handled };
        }
        if self.phase == Phase::Hello && !self.is_due {
            self.is_due = true;
            return Opened { consumed: 0, step: Step::Costly };
        }
        let Some((kind, plain)) = open_record(&mut self.opened, record) else {
            return self.fail(Failure::BadRecord, reply);
        };
        let step = match (kind, &*plain) {
            (CONTENT, []) => Ok(Step::Handled),
            (CONTENT, plain) if self.phase == Phase::Secured => Ok(Step::Plain(HEADER..HEADER + plain.len())),
            (ALERT, [_, CLOSE_NOTIFY]) if self.phase == Phase::Secured => {
                self.phase = Phase::Closed;
                Ok(Step::Closed)
            }
            (ALERT, _) => Err(Failure::Alert),
            (HANDSHAKE, message) => {
                let message = message.to_vec();
                self.take_message(&message, reply)
            }
            _ => Err(Failure::BadRecord),
        };
        match step {
            Ok(step) => Opened { consumed: len, step },
            Err(failure) => self.fail(failure, reply),
        }
    }

    fn seal(&mut self, plain: &[IoSlice<'_>], wire: &mut Vec<u8>) -> Result<(), Failure> {
        assert!(matches!(self.phase, Phase::Secured | Phase::Closed), "content in {:?}", self.phase);
        let plain = plain.iter().map(|slice| &**slice).collect::<Vec<_>>().concat();
        for record in plain.chunks(RECORD_BYTES_MAX) {
            seal_record(&mut self.sealed, CONTENT, record, wire);
        }
        Ok(())
    }

    fn close_notify(&mut self, wire: &mut Vec<u8>) {
        if self.facts.is_some() {
            seal_record(&mut self.sealed, ALERT, &[1, CLOSE_NOTIFY], wire);
        }
    }

    fn facts(&self) -> Option<&Arc<SessionFacts>> {
        self.facts.as_ref()
    }

    fn pending_bytes(&self) -> usize {
        self.kept
    }

    fn abandon(&mut self) {
        self.kept = 0;
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// The client's side. Its handshake is two records, which wait for nothing.
#[derive(Debug, Default)]
pub(crate) struct FakeClient {
    opened: u64,
    sealed: u64,
    partial: Vec<u8>,
    /// Content received and not yet taken.
    pub content: Vec<u8>,
    /// Messages of the server's handshake, by first byte.
    pub messages: Vec<u8>,
    /// Alerts received.
    pub alerts: Vec<u8>,
    /// Number of content records, and of those since the last message of the handshake.
    pub records: usize,
}

impl FakeClient {
    pub(crate) fn hello(&mut self) -> Vec<u8> {
        self.message(&[CLIENT_HELLO, 3, 0, 0, 0, 0, 0, 0])
    }

    pub(crate) fn hello_with_ticket(&mut self) -> Vec<u8> {
        self.message(&[CLIENT_HELLO, 2, TICKET])
    }

    pub(crate) fn hello_of_old(&mut self) -> Vec<u8> {
        self.message(&[CLIENT_HELLO, 0])
    }

    /// A hello of as many bytes.
    pub(crate) fn hello_of(&mut self, len: usize) -> Vec<u8> {
        let mut message = vec![0; len];
        message[..2].copy_from_slice(&[CLIENT_HELLO, 3]);
        self.message(&message)
    }

    pub(crate) fn finished(&mut self) -> Vec<u8> {
        self.message(&[FINISHED; 36])
    }

    pub(crate) fn key_update(&mut self) -> Vec<u8> {
        self.message(&[KEY_UPDATE])
    }

    fn message(&mut self, message: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        seal_record(&mut self.sealed, HANDSHAKE, message, &mut wire);
        wire
    }

    /// The whole handshake of this side.
    pub(crate) fn handshake(&mut self) -> Vec<u8> {
        [self.hello(), self.finished()].concat()
    }

    pub(crate) fn close_notify(&mut self) -> Vec<u8> {
        self.alert(CLOSE_NOTIFY)
    }

    pub(crate) fn alert(&mut self, alert: u8) -> Vec<u8> {
        let mut wire = Vec::new();
        seal_record(&mut self.sealed, ALERT, &[1, alert], &mut wire);
        wire
    }

    /// Seals content into records of at most `record` bytes; an empty one for none.
    pub(crate) fn seal_in(&mut self, plain: &[u8], record: usize) -> Vec<u8> {
        let mut wire = Vec::new();
        if plain.is_empty() {
            seal_record(&mut self.sealed, CONTENT, plain, &mut wire);
        }
        for part in plain.chunks(record) {
            seal_record(&mut self.sealed, CONTENT, part, &mut wire);
        }
        wire
    }

    pub(crate) fn seal(&mut self, plain: &[u8]) -> Vec<u8> {
        if plain.is_empty() { Vec::new() } else { self.seal_in(plain, RECORD_BYTES_MAX) }
    }

    /// Opens what has arrived. Panics if a record is damaged or not the next one.
    pub(crate) fn receive(&mut self, wire: &[u8]) {
        self.partial.extend_from_slice(wire);
        let mut at = 0;
        while let Some(len) = record_len(&self.partial[at..]).filter(|len| at + len <= self.partial.len()) {
            let mut record = self.partial[at..at + len].to_vec();
            at += len;
            let (kind, plain) = open_record(&mut self.opened, &mut record).expect("the server's next record");
            match kind {
                CONTENT => {
                    self.records += 1;
                    self.content.extend_from_slice(plain);
                }
                HANDSHAKE => self.messages.push(plain[0]),
                _ => self.alerts.push(plain[1]),
            }
        }
        self.partial.drain(..at);
    }

    /// Returns whether the last byte received ended a record.
    pub(crate) fn is_between_records(&self) -> bool {
        self.partial.is_empty()
    }

    pub(crate) fn saw_close_notify(&self) -> bool {
        self.alerts.last() == Some(&CLOSE_NOTIFY)
    }
}
