//! A request in flight, and what has arrived of its response.

use std::collections::VecDeque;

use super::hpack::Fields;
use crate::error::{Error, malformed};
use crate::test_client::ClientResponse;

/// Fields that only HTTP/1 has (RFC 9113 section 8.2.2).
pub(super) const CONNECTION_FIELDS: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// The end of a request's content.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    /// More follows.
    #[default]
    Open,
    /// After the content that is queued.
    Queued,
    /// After it, with these fields.
    Trailers(Fields),
    Sent,
}

/// A request in flight, and what has arrived of its response.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) is_head_request: bool,
    /// Bytes of content that the server permits.
    pub(super) window: i64,
    /// Content that wasn't sent yet.
    pub(super) unsent: Vec<u8>,
    pub(super) end: End,
    /// Bytes of content that the client permits.
    pub(super) credit: i64,
    interim: VecDeque<ClientResponse>,
    /// The final head. Its body and trailers follow in `data` and `trailers`.
    head: Option<ClientResponse>,
    /// The content of each frame that wasn't taken yet.
    data: VecDeque<Vec<u8>>,
    data_len: u64,
    trailers: Fields,
    is_complete: bool,
    /// Code of the server's reset.
    pub(super) reset: Option<u32>,
    /// The response was taken, and the request is still being sent.
    pub(super) is_taken: bool,
}

impl Stream {
    pub(super) fn new(method: &str, window: i64, credit: i64) -> Self {
        Self { is_head_request: method == "HEAD", window, credit, ..Self::default() }
    }

    /// Returns true if neither side needs the stream any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_taken && (self.end == End::Sent || self.reset.is_some())
    }

    /// Returns true if more of the response may arrive.
    pub(super) fn is_receiving(&self) -> bool {
        !self.is_complete && self.reset.is_none()
    }

    /// Takes over a header block: interim or final head, or trailers.
    pub(super) fn receive_fields(&mut self, fields: Fields, is_end: bool) -> Result<(), Error> {
        self.check_open()?;
        check_names(&fields)?;
        if self.head.is_some() {
            if !is_end {
                return malformed("trailers without the end of their stream");
            }
            if fields.iter().any(|(name, _)| name.starts_with(':')) {
                return malformed("a pseudo-header in trailers");
            }
            self.trailers = fields;
            return self.complete();
        }
        let response = response(fields)?;
        if response.status >= 200 {
            self.head = Some(response);
            return if is_end { self.complete() } else { Ok(()) };
        }
        self.interim.push_back(response);
        if is_end { malformed("the stream ends after an interim response") } else { Ok(()) }
    }

    /// Takes over content; `flow_bytes` is its length with padding.
    pub(super) fn receive_data(&mut self, data: &[u8], flow_bytes: i64, is_end: bool) -> Result<(), Error> {
        self.check_open()?;
        if self.head.is_none() {
            return malformed("content before a head");
        }
        self.credit -= flow_bytes;
        if self.credit < 0 {
            return malformed("content beyond the stream's window");
        }
        if !data.is_empty() {
            self.data.push_back(data.to_vec());
        }
        self.data_len += data.len() as u64;
        if is_end { self.complete() } else { Ok(()) }
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.is_receiving() { Ok(()) } else { malformed("a frame after the end of its stream") }
    }

    fn complete(&mut self) -> Result<(), Error> {
        self.is_complete = true;
        let Some(head) = &self.head else { return malformed("a stream without a head ends") };
        let is_empty = self.is_head_request || matches!(head.status, 204 | 304);
        let announced = head.all("content-length");
        if is_empty && self.data_len > 0 {
            return malformed("content after a head that has none");
        }
        match announced[..] {
            [] => Ok(()),
            [len] if is_empty && len.parse::<u64>().is_ok() => Ok(()),
            [len] if len.parse() == Ok(self.data_len) => Ok(()),
            _ => malformed(format!("content-length {announced:?} of {} bytes", self.data_len)),
        }
    }

    /// Takes an interim response, or the whole final one.
    pub(super) fn take_response(&mut self) -> Option<ClientResponse> {
        if let Some(interim) = self.interim.pop_front() {
            return Some(interim);
        }
        if !self.is_complete || self.is_taken {
            return None;
        }
        self.is_taken = true;
        let (body, trailers) = (self.data.drain(..).flatten().collect(), std::mem::take(&mut self.trailers));
        self.head.take().map(|head| ClientResponse { body, trailers, ..head })
    }

    /// Returns an interim response or the final head.
    pub(super) fn take_head(&mut self) -> Option<ClientResponse> {
        self.interim.pop_front().or_else(|| self.head.clone())
    }

    /// Takes the content of a frame; nothing once all was taken.
    pub(super) fn take_data(&mut self) -> Option<Vec<u8>> {
        let data = self.data.pop_front();
        if data.is_some() || !self.is_complete {
            return data;
        }
        self.is_taken = true;
        Some(Vec::new())
    }

    /// Returns the error of a response that won't become complete, if the stream or the connection has ended.
    pub(super) fn failure(&self, is_connection_over: bool) -> Option<Error> {
        match self.reset {
            _ if self.is_complete => None,
            Some(code) => Some(Error::StreamReset(code)),
            None if !is_connection_over => None,
            None if self.head.is_some() => Some(Error::Truncated),
            None => Some(Error::Closed),
        }
    }
}

/// Returns the response whose head these fields are.
fn response(mut fields: Fields) -> Result<ClientResponse, Error> {
    let is_status = |(name, _): &(String, String)| name == ":status";
    if !fields.first().is_some_and(is_status) || fields[1..].iter().any(|(name, _)| name.starts_with(':')) {
        return malformed(format!("pseudo-headers of a response: {fields:?}"));
    }
    let (_, status) = fields.remove(0);
    let number = status.parse().ok().filter(|number| status.len() == 3 && (100..600).contains(number));
    match number {
        Some(status) if status != 101 => {
            Ok(ClientResponse { status, fields, body: Vec::new(), trailers: Fields::new() })
        }
        _ => malformed(format!("status {status:?}")),
    }
}

/// Checks names and values (section 8.2).
fn check_names(fields: &Fields) -> Result<(), Error> {
    let is_lower =
        |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte) || byte.is_ascii_digit() || byte.is_ascii_lowercase();
    for (name, value) in fields {
        let token = name.strip_prefix(':').unwrap_or(name);
        let is_name_valid = !token.is_empty() && token.bytes().all(is_lower);
        let is_value_valid = value.trim_matches([' ', '\t']) == value
            && value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7F));
        if !is_name_valid || !is_value_valid || CONNECTION_FIELDS.contains(&name.as_str()) {
            return malformed(format!("field {name:?}: {value:?}"));
        }
    }
    Ok(())
}
