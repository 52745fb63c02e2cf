//! Records of exchanges that haven't ended, and the texts of their requests.

use std::net::{IpAddr, SocketAddr};

use shearwater_http1::{Head, KnownField, Version};
use shearwater_io::Token;

use crate::limits::EXCHANGE_TEXT_BYTES_MAX;
use crate::proxies::Proxies;

/// The end of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExchangeEnd {
    /// The kernel has taken the whole response.
    Complete,
    /// The response was cut off: its handler failed, its file changed, or its request was rejected meanwhile.
    Truncated,
    /// The client reset or closed the connection before.
    Disconnected,
    /// The client read too slowly, or waited too long after its FIN: the connection was reset or closed.
    TimedOut,
    /// The worker's buffers were full and the connection made room.
    Evicted,
    /// The server ended: the deadline of a drain, or a stop.
    Aborted,
    /// Unknown: [`EXCHANGE_BYTES_MAX`](crate::limits::EXCHANGE_BYTES_MAX) was reached when the response began to be sent.
    Unknown,
}

impl ExchangeEnd {
    /// Returns its name, such as `complete` or `timed_out`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Truncated => "truncated",
            Self::Disconnected => "disconnected",
            Self::TimedOut => "timed_out",
            Self::Evicted => "evicted",
            Self::Aborted => "aborted",
            Self::Unknown => "unknown",
        }
    }
}

/// "Not yet", for times.
pub(crate) const NEVER: u64 = u64::MAX;

/// Length of a field that the request doesn't have.
const ABSENT: u16 = u16::MAX;

/// Length of a port in a client's address.
const PORT_BYTES: usize = size_of::<u16>();

const _: () = assert!(EXCHANGE_TEXT_BYTES_MAX < ABSENT as usize);

/// State of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More of it follows.
    Open,
    /// All of it is in an output, or was sent; it then ends like this.
    Whole(ExchangeEnd),
}

/// A request, as far as it was received.
pub(crate) enum Received<'a> {
    Head(Head<'a>),
    /// The beginning of a head that is malformed or incomplete.
    Line(&'a [u8]),
    /// Pseudo-fields of a rejected head of HTTP/2.
    Fields {
        method: &'a [u8],
        path: &'a [u8],
    },
}

/// A request field that listeners asked for, in lower case.
pub(crate) type WantedField = (Box<str>, Option<KnownField>);

/// An exchange.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) token: Token,
    pub(crate) begun_us: u64,
    pub(crate) first_byte_us: u64,
    /// End of the send that counts as the last one.
    pub(crate) ended_us: u64,
    pub(crate) body_received: u64,
    /// Bytes that the kernel has taken in earlier sends.
    pub(crate) sent: u64,
    /// Bytes in the turn's output, or in the send in flight.
    pub(crate) queued: u64,
    pub(crate) head_bytes: u32,
    /// Offset of its texts in the group.
    pub(crate) text: u32,
    pub(crate) method_len: u16,
    pub(crate) target_len: u16,
    /// 0 without a response.
    pub(crate) status: u16,
    pub(crate) tag: u16,
    pub(crate) version: Option<Version>,
    pub(crate) progress: Progress,
}

impl Record {
    /// Returns true if more of the response follows.
    pub(crate) fn is_open(&self) -> bool {
        self.progress == Progress::Open
    }

    /// Moves all bytes of a send that has succeeded at `now_us`, or before.
    #[inline]
    pub(crate) fn settle(&mut self, now_us: u64) {
        self.sent += std::mem::take(&mut self.queued);
        if !self.is_open() {
            self.ended_us = self.ended_us.min(now_us);
        }
    }

    /// Moves the bytes of a send that has failed after `left` bytes, and takes them off. Unless all of the response was
    /// sent nevertheless, it ends like this.
    pub(crate) fn settle_part(&mut self, left: &mut u64, end: ExchangeEnd) {
        let taken = self.queued.min(*left);
        *left -= taken;
        self.sent += taken;
        if self.is_open() || taken < self.queued {
            self.progress = Progress::Whole(end);
        }
        self.queued = 0;
    }

    /// Stores the time of the send that begins the response.
    #[inline]
    pub(crate) fn begin_send(&mut self, now_us: u64) {
        if self.first_byte_us == NEVER && self.queued > 0 {
            self.first_byte_us = now_us;
        }
    }
}

/// Records in order, with their texts: of one connection, where only the last may be open, or unsettled ones of all.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) records: Vec<Record>,
    text: Vec<u8>,
    /// Memory that was counted for it.
    pub(crate) counted: usize,
}

impl Group {
    /// Appends a request without a response.
    #[inline]
    pub(crate) fn describe(
        &mut self,
        token: Token,
        received: &Received<'_>,
        wanted: &[WantedField],
        proxies: Option<&Proxies>,
    ) -> &mut Record {
        let (method, target, version) = match received {
            Received::Head(head) => {
                (head.method_name().as_bytes(), head.target_str().as_bytes(), Some(head.version()))
            }
            Received::Line(input) => split_line(input),
            Received::Fields { method, path } => (*method, *path, Some(Version::Http2)),
        };
        let (method, target) = (bounded(method), bounded(target));
        let text = self.text.len() as u32;
        self.text.extend_from_slice(method);
        self.text.extend_from_slice(target);
        for (name, known) in wanted {
            match (received, known) {
                (Received::Head(head), Some(known)) if !head.is_repeated(*known) => {
                    self.describe_field(head.field(*known));
                }
                (Received::Head(head), _) => self.describe_values(head.all_named(name)),
                _ => self.describe_field(None),
            }
        }
        if let Some(proxies) = proxies {
            self.describe_client(match received {
                Received::Head(head) => proxies.client(token, head),
                Received::Line(_) | Received::Fields { .. } => proxies.address(token),
            });
        }
        self.records.push(Record {
            token,
            begun_us: NEVER,
            first_byte_us: NEVER,
            ended_us: NEVER,
            body_received: 0,
            sent: 0,
            queued: 0,
            head_bytes: 0,
            text,
            method_len: method.len() as u16,
            target_len: target.len() as u16,
            status: 0,
            tag: 0,
            version,
            progress: Progress::Open,
        });
        self.records.last_mut().expect("one was just pushed")
    }

    /// Appends the value of the next field of the request that was described last.
    fn describe_field(&mut self, value: Option<&[u8]>) {
        let value = value.map(bounded);
        let len = value.map_or(ABSENT, |value| value.len() as u16);
        self.text.extend_from_slice(&len.to_ne_bytes());
        self.text.extend_from_slice(value.unwrap_or_default());
    }

    /// Appends the next field with all its values, as in one line with all of them (RFC 9110 section 5.3).
    #[cold]
    fn describe_values<'a>(&mut self, mut values: impl Iterator<Item = &'a [u8]>) {
        let start = self.text.len() + size_of::<u16>();
        self.describe_field(values.next());
        for value in values {
            self.text.extend_from_slice(b", ");
            self.text.extend_from_slice(value);
            self.text.truncate(start + EXCHANGE_TEXT_BYTES_MAX);
            let len = (self.text.len() - start) as u16;
            self.text[start - size_of::<u16>()..start].copy_from_slice(&len.to_ne_bytes());
        }
    }

    /// Appends the address of the client of the request that was described last, after its fields.
    fn describe_client(&mut self, client: Option<SocketAddr>) {
        let mut bytes = [0; PORT_BYTES + 16];
        let Some(client) = client else { return self.describe_field(None) };
        bytes[..PORT_BYTES].copy_from_slice(&client.port().to_be_bytes());
        let len = match client.ip() {
            IpAddr::V4(address) => {
                bytes[PORT_BYTES..][..4].copy_from_slice(&address.octets());
                4
            }
            IpAddr::V6(address) => {
                bytes[PORT_BYTES..].copy_from_slice(&address.octets());
                16
            }
        };
        self.describe_field(Some(&bytes[..PORT_BYTES + len]));
    }

    /// Returns the address of a request's client, which follows so many fields.
    pub(crate) fn client(&self, record: &Record, fields: usize) -> Option<SocketAddr> {
        let (port, address) = self.field(record, fields)?.split_first_chunk::<PORT_BYTES>()?;
        let address = match <[u8; 4]>::try_from(address) {
            Ok(octets) => IpAddr::from(octets),
            Err(_) => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
        };
        Some(SocketAddr::new(address, u16::from_be_bytes(*port)))
    }

    pub(crate) fn method(&self, record: &Record) -> &[u8] {
        self.piece(record.text as usize, record.method_len.into())
    }

    pub(crate) fn target(&self, record: &Record) -> &[u8] {
        self.piece(record.text as usize + usize::from(record.method_len), record.target_len.into())
    }

    pub(crate) fn field(&self, record: &Record, index: usize) -> Option<&[u8]> {
        let mut at = record.text as usize + usize::from(record.method_len) + usize::from(record.target_len);
        for _ in 0..index {
            at += size_of::<u16>() + self.len_at(at).map_or(0, usize::from);
        }
        Some(self.piece(at + size_of::<u16>(), self.len_at(at)?.into()))
    }

    fn len_at(&self, at: usize) -> Option<u16> {
        let bytes = self.text.get(at..at + size_of::<u16>())?;
        Some(u16::from_ne_bytes(bytes.try_into().ok()?)).filter(|len| *len != ABSENT)
    }

    fn piece(&self, at: usize, len: usize) -> &[u8] {
        self.text.get(at..at + len).unwrap_or_default()
    }

    /// Moves all records and texts of another group behind its own.
    pub(crate) fn append(&mut self, other: &mut Self) {
        let before = self.text.len() as u32;
        self.text.append(&mut other.text);
        let moved = other.records.drain(..);
        self.records.extend(moved.map(|record| Record { text: record.text + before, ..record }));
    }

    /// Returns a record with its texts, in a group of its own.
    pub(crate) fn copy_of(&self, at: usize) -> Self {
        let start = self.records[at].text as usize;
        let end = self.records.get(at + 1).map_or(self.text.len(), |next| next.text as usize);
        let records = vec![Record { text: 0, ..self.records[at] }];
        Self { records, text: self.text[start..end].to_vec(), counted: 0 }
    }

    /// Returns true if more of the last response follows.
    pub(crate) fn is_open(&self) -> bool {
        self.records.last().is_some_and(Record::is_open)
    }

    /// Drops all records but an open one, and their texts.
    pub(crate) fn drop_ended(&mut self) {
        self.records.retain(Record::is_open);
        if let Some(open) = self.records.last_mut() {
            self.text.drain(..std::mem::take(&mut open.text) as usize);
        }
    }

    /// Returns the bytes in use.
    pub(crate) fn len_bytes(&self) -> usize {
        self.records.len() * size_of::<Record>() + self.text.len()
    }

    /// Empties it, and keeps at most so many bytes of memory in each list.
    pub(crate) fn clear(&mut self, keep_bytes: usize) {
        self.records.clear();
        self.text.clear();
        self.records.shrink_to(keep_bytes / size_of::<Record>());
        self.text.shrink_to(keep_bytes);
    }

    /// Returns its memory, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.records.capacity() * size_of::<Record>() + self.text.capacity()
    }
}

/// Splits the first line of a malformed or incomplete head. An unknown version stays a part of the target.
#[cold]
fn split_line(input: &[u8]) -> (&[u8], &[u8], Option<Version>) {
    let line = input.strip_prefix(b"\r\n").unwrap_or(input);
    let line = line.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let mut words = line.splitn(2, |byte| *byte == b' ');
    let (method, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match (rest.strip_suffix(b" HTTP/1.1"), rest.strip_suffix(b" HTTP/1.0")) {
        (Some(target), _) => (method, target, Some(Version::Http11)),
        (_, Some(target)) => (method, target, Some(Version::Http10)),
        _ => (method, rest, None),
    }
}

fn bounded(text: &[u8]) -> &[u8] {
    &text[..text.len().min(EXCHANGE_TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use shearwater_io::Token;

    use super::{Group, Progress, Received};
    use crate::observe::record::ExchangeEnd;

    #[test]
    fn frees_the_texts_of_exchanges_that_ended_before_an_open_one() {
        let mut group = Group::default();
        // Each send has the end of one response and the beginning of the next one.
        for number in 0..1000 {
            if let Some(before) = group.records.last_mut() {
                before.progress = Progress::Whole(ExchangeEnd::Complete);
            }
            let line = format!("GET /{number} HTTP/1.1");
            group.describe(Token::new(0, 0), &Received::Line(line.as_bytes()), &[], None);
            group.describe_field(Some(b"value"));
            group.drop_ended();
            let open = group.records[0];
            assert_eq!((group.records.len(), group.target(&open)), (1, format!("/{number}").as_bytes()));
            assert_eq!(group.field(&open, 0), Some(&b"value"[..]));
        }
        assert!(group.capacity() < 4096, "{}", group.capacity());
    }
}
