//! Requests of a test client over HTTP/2, whose responses are read in their order.

use std::collections::VecDeque;
use std::io::{Read, Write};

use super::client::until;
use super::session::Session;
use super::stream::CONNECTION_FIELDS;
use crate::error::Error;
use crate::test_client::ClientResponse;

/// Requests of a test client, whose responses are read in their order.
#[derive(Debug)]
pub(crate) struct Exchanges {
    session: Session,
    scheme: &'static str,
    /// Streams whose responses weren't read yet.
    pending: VecDeque<u32>,
    /// The stream whose body is being read.
    reading: Option<u32>,
    /// The stream whose content follows, and how many bytes are missing.
    sending: Option<(u32, usize)>,
}

/// Returns true if a request has fields or a method that HTTP/2 doesn't have.
pub(crate) fn is_for_http1(method: &str, lines: &[&str]) -> bool {
    let names =
        lines.iter().filter_map(|line| line.split_once(':')).map(|(name, _)| name.to_ascii_lowercase());
    method == "CONNECT" || names.into_iter().any(|name| CONNECTION_FIELDS.contains(&name.as_str()))
}

/// The content of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// These bytes, or the first ones if `Content-Length` announces more.
    Whole(&'a [u8]),
    /// All that is sent until its end.
    Streamed,
}

/// Returns fields of HTTP/1 with names in lower case.
fn lower_case<'a>(lines: &[&'a str]) -> Vec<(String, &'a str)> {
    let fields = lines.iter().filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim())).collect()
}

impl Exchanges {
    pub(crate) fn new(scheme: &'static str) -> Self {
        let (pending, session) = (VecDeque::new(), Session::new(&[]));
        Self { session, scheme, pending, reading: None, sending: None }
    }

    /// Sends a request; `lines` are fields of HTTP/1 without their ends. `content` follows, and more of it by
    /// [`send`](Self::send) if there is more than that.
    pub(crate) fn ask<S: Write>(
        &mut self,
        stream: &mut S,
        (method, target): (&str, &str),
        lines: &[&str],
        content: &Content<'_>,
    ) -> Result<(), Error> {
        assert!(!is_for_http1(method, lines), "{method} {target} {lines:?} is for HTTP/1: call http2::skips");
        let fields = lower_case(lines);
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (&**name, *value)).collect();
        let length = fields.iter().find(|(name, _)| *name == "content-length");
        let length = length.map_or(0, |(_, length)| length.parse().expect("tests send valid lengths"));
        let fields = super::request_fields(self.scheme, method, target, &fields);
        let is_whole = length == 0 && *content != Content::Streamed;
        let number = if is_whole { self.session.begin_whole(&fields) } else { self.session.begin(&fields) };
        self.pending.push_back(number);
        self.sending = match content {
            _ if is_whole => None,
            Content::Streamed => Some((number, usize::MAX)),
            Content::Whole(content) => {
                self.session.send_data(number, content, content.len() == length);
                Some((number, length - content.len())).filter(|(_, missing)| *missing > 0)
            }
        };
        self.flush(stream)
    }

    /// Sends content of the last request.
    pub(crate) fn send<S: Write>(&mut self, stream: &mut S, data: &[u8]) -> Result<(), Error> {
        let Some((number, missing)) = self.sending.filter(|(_, missing)| data.len() <= *missing) else {
            let data = data.escape_ascii();
            panic!("bytes of HTTP/1 on a connection of HTTP/2, call http2::skips: \"{data}\"");
        };
        let missing = missing - data.len();
        self.session.send_data(number, data, missing == 0);
        self.sending = Some((number, missing)).filter(|(_, missing)| *missing > 0);
        self.flush(stream)
    }

    /// Ends streamed content, with trailers.
    pub(crate) fn end_content<S: Write>(&mut self, stream: &mut S, trailers: &[&str]) -> Result<(), Error> {
        let (number, _) = self.sending.take().expect("a request whose content is streamed");
        let trailers = lower_case(trailers);
        let trailers: Vec<(&str, &str)> = trailers.iter().map(|(name, value)| (&**name, *value)).collect();
        match trailers.is_empty() {
            true => self.session.send_data(number, b"", true),
            false => self.session.send_trailers(number, &trailers),
        }
        self.flush(stream)
    }

    /// Reads the whole next response.
    pub(crate) fn response<S: Read + Write>(&mut self, stream: &mut S) -> Result<ClientResponse, Error> {
        let number = *self.pending.front().expect("a request without a response");
        let response = until(stream, &mut self.session, |session| session.response(number))?;
        if response.status >= 200 {
            self.pending.pop_front();
        }
        Ok(response)
    }

    /// Reads the head of the next response.
    pub(crate) fn head<S: Read + Write>(&mut self, stream: &mut S) -> Result<ClientResponse, Error> {
        let number = *self.pending.front().expect("a request without a response");
        let head = until(stream, &mut self.session, |session| session.head(number))?;
        if head.status >= 200 {
            self.reading = self.pending.pop_front();
        }
        Ok(head)
    }

    /// Reads the next content of the response whose head was read; empty at its end.
    pub(crate) fn data<S: Read + Write>(&mut self, stream: &mut S) -> Result<Vec<u8>, Error> {
        let number = self.reading.expect("a response whose head was read");
        until(stream, &mut self.session, |session| session.data(number))
    }

    /// Reads up to the orderly end of the connection.
    pub(crate) fn end<S: Read + Write>(&mut self, stream: &mut S) -> Result<(), Error> {
        until(stream, &mut self.session, |session| Ok(session.is_over().then_some(())))
    }

    fn flush<S: Write>(&mut self, stream: &mut S) -> Result<(), Error> {
        Ok(stream.write_all(&self.session.take_output())?)
    }
}
