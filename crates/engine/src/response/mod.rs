//! A response as a handler builds it.

pub(crate) mod head;
pub(crate) mod header_rules;
pub(crate) mod pieces;
pub(crate) mod prebuilt;
pub(crate) mod responder;

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

use shearwater_http1::{Method, ResponseFraming, encode};
use shearwater_io::{FileSlice, Item, Shared};

use crate::deferred::calls::Calls;
use crate::deferred::deferral::Deferral;
use crate::request::Request;
use crate::response::head::{CONTENT_TYPE, ContentType, FieldLines, is_content_type};
use crate::response::header_rules::{HeaderRules, first_line, have_name, name_of};
use crate::response::pieces::Pieces;
use crate::response::prebuilt::Prebuilt;
use crate::response::responder::Fault;

/// A response under construction; the worker reuses it.
pub(crate) struct ResponseDraft {
    /// Encoded field lines.
    pub(crate) fields: Vec<u8>,
    /// `Content-Type` line, at most one.
    pub(crate) content_type: ContentType,
    /// Body, if it is built from bytes.
    pub(crate) bytes: Vec<u8>,
    /// Body, if it is built from anything else.
    pub(crate) body: Option<Body>,
    /// Body and fields of a prebuilt response.
    pub(crate) prebuilt: Option<Rc<Prebuilt>>,
    /// Header changes applied at encoding.
    pub(crate) header_rules: Option<Rc<HeaderRules>>,
    /// Action in place of an immediate response.
    pub(crate) deferral: Option<Deferral>,
    pub(crate) status: u16,
    /// Number for listeners of finished exchanges.
    pub(crate) tag: u16,
    pub(crate) close: bool,
    /// Fault of the handler, if any.
    pub(crate) fault: Option<Box<Fault>>,
}

impl Default for ResponseDraft {
    fn default() -> Self {
        Self {
            fields: Vec::new(),
            content_type: ContentType::default(),
            bytes: Vec::new(),
            body: None,
            prebuilt: None,
            header_rules: None,
            deferral: None,
            status: 200,
            tag: 0,
            close: false,
            fault: None,
        }
    }
}

/// A body other than bytes.
pub(crate) enum Body {
    Item(Item),
    Pieces(Box<Pieces>),
    /// Sent by its handler piece by piece.
    Stream(ResponseFraming),
}

impl Body {
    /// Returns how it is framed.
    pub(crate) fn framing(&self) -> ResponseFraming {
        match self {
            Self::Item(item) => ResponseFraming::Length(item.len()),
            Self::Pieces(pieces) => ResponseFraming::Length(pieces.len()),
            Self::Stream(framing) => *framing,
        }
    }
}

impl ResponseDraft {
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.fields.clear();
        self.content_type.clear();
        self.bytes.clear();
        self.status = 200;
        self.tag = 0;
        self.close = false;
        if self.has_more() {
            self.drop_contents();
        }
    }

    /// Returns true if there is something to drop. Encoding a response leaves nothing.
    #[inline]
    fn has_more(&self) -> bool {
        self.body.is_some()
            || self.prebuilt.is_some()
            || self.header_rules.is_some()
            || self.deferral.is_some()
            || self.fault.is_some()
    }

    #[cold]
    fn drop_contents(&mut self) {
        self.body = None;
        self.prebuilt = None;
        self.header_rules = None;
        self.deferral = None;
        self.fault = None;
    }

    /// Returns the capacity of its buffers, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.fields.capacity()
    }

    /// Frees memory beyond so many bytes in each buffer.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.fields.shrink_to(bytes);
        self.bytes.shrink_to(bytes);
        self.content_type.shrink_to(bytes);
    }

    /// Returns true if nothing was set.
    pub(crate) fn is_new(&self) -> bool {
        let has_head = self.status != 200 || self.close || self.tag != 0 || !self.fields.is_empty();
        !has_head && !self.has_more() && self.bytes.is_empty() && self.content_type.line().is_empty()
    }

    /// Adds what a later draft sets beside status, body and content type.
    pub(crate) fn add(&mut self, later: &mut Self) {
        self.fields.extend_from_slice(&later.fields);
        self.header_rules = later.header_rules.take().or(self.header_rules.take());
        self.close |= later.close;
        if later.tag != 0 {
            self.tag = later.tag;
        }
        self.fault = Fault::graver(self.fault.take(), later.fault.take());
    }

    /// Replaces a failed response by a plain `500`, which steps around the handler may still change.
    pub(crate) fn settle(&mut self) {
        if let Some(fault) = self.fault.take_if(|fault| fault.fails()) {
            let tag = self.tag;
            let mut response = Response::new(self);
            response.status(500).text("Internal Server Error\n").close().exchange_tag(tag);
            self.fault = Some(Box::new(Fault::Settled(fault)));
        }
    }

    /// Drops a streamed body that isn't sent.
    pub(crate) fn end_stream(&mut self) {
        if self.framing().is_some() {
            self.clear_content();
        }
    }

    /// Clears the body and its type.
    pub(crate) fn clear_content(&mut self) {
        self.drop_body();
        self.bytes.clear();
        self.content_type.clear();
    }

    /// Drops a body other than bytes; most responses have none.
    #[inline]
    fn drop_body(&mut self) {
        if self.body.is_some() || self.prebuilt.is_some() {
            self.drop_body_cold();
        }
    }

    #[cold]
    fn drop_body_cold(&mut self) {
        self.body = None;
        self.prebuilt = None;
    }

    /// Returns the framing of a streamed body.
    #[inline]
    pub(crate) fn framing(&self) -> Option<ResponseFraming> {
        match self.body {
            Some(Body::Stream(framing)) => Some(framing),
            _ => None,
        }
    }

    /// Returns the length in bytes; 0 if unknown.
    fn body_len(&self) -> u64 {
        match self.body.as_ref().map(Body::framing) {
            None => self.bytes.len() as u64,
            Some(ResponseFraming::Length(length)) => length,
            Some(ResponseFraming::Chunked | ResponseFraming::Close) => 0,
        }
    }
}

/// The response to one request. It begins as an empty `200`.
///
/// The server adds `Server`, `Date`, `Content-Length` and `Connection` itself, and omits the body where HTTP
/// has none (`HEAD`, `204`, `205`, `304`): a handler for `GET` also serves `HEAD`.
pub struct Response<'a> {
    pub(crate) draft: &'a mut ResponseDraft,
    /// Means to defer the response; `None` if it is deferred already.
    pub(crate) calls: Option<&'a mut Calls>,
    /// The future that is deferred next was polled and is pending.
    pub(crate) is_polled: bool,
}

impl fmt::Debug for Response<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.draft.status)
            .field("body_len", &self.draft.body_len())
            .finish_non_exhaustive()
    }
}

impl<'a> Response<'a> {
    pub(crate) fn new(draft: &'a mut ResponseDraft) -> Self {
        draft.clear();
        Self::resume(draft)
    }

    /// Returns a response that can be deferred.
    pub(crate) fn or_later(draft: &'a mut ResponseDraft, calls: &'a mut Calls) -> Self {
        Self { calls: Some(calls), ..Self::new(draft) }
    }

    /// Continues a response that is under construction.
    pub(crate) fn resume(draft: &'a mut ResponseDraft) -> Self {
        Self { draft, calls: None, is_polled: false }
    }

    /// Sets the status (RFC 9110 section 15).
    ///
    /// # Panics
    /// If it isn't a final status, 200 to 599.
    pub fn status(&mut self, status: u16) -> &mut Self {
        assert!((200..=599).contains(&status), "{status} is no final HTTP status");
        self.draft.status = status;
        self
    }

    /// Returns the current status.
    #[must_use]
    pub fn status_code(&self) -> u16 {
        self.draft.status
    }

    /// Appends a field (RFC 9110 section 5).
    ///
    /// The response becomes a `500` if the name isn't a token, the value has a control character, or the
    /// field is the server's own (`Connection`, `Content-Length`, `Date`, `Server`, `Transfer-Encoding`),
    /// because these decide where the message ends. `Upgrade` adds the line `Connection: upgrade` (RFC 9110
    /// section 7.8).
    pub fn field(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        let appended = match is_content_type(name) {
            true => self.draft.content_type.set(value.as_ref()),
            false => append_field(&mut self.draft.fields, name, value.as_ref()),
        };
        if let Err(why) = appended {
            let built = Some(Box::new(Fault::Built(why)));
            self.draft.fault = Fault::graver(self.draft.fault.take(), built);
        }
        self
    }

    /// Reports to the operator that a file can't be sent: each reason at most once a second, with the number
    /// of suppressed reports. The response is sent as it is set; the report names its current status.
    pub fn report_file(&mut self, path: impl Into<PathBuf>, error: impl fmt::Display) -> &mut Self {
        let status = self.draft.status;
        let file = Fault::File { path: path.into(), error: error.to_string(), status };
        self.draft.fault = Fault::graver(self.draft.fault.take(), Some(Box::new(file)));
        self
    }

    /// Appends a field unless an identical line exists.
    pub fn field_once(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        let before = self.draft.fields.len();
        self.field(name, value);
        let (known, new) = self.draft.fields.split_at(before.min(self.draft.fields.len()));
        let is_known = known.split_inclusive(|&byte| byte == b'\n').any(|line| line == new);
        if is_known {
            self.draft.fields.truncate(before);
        }
        self
    }

    /// Appends pre-encoded fields. They are added to those of [`field`](Self::field) and
    /// [`content_type`](Self::content_type) and replace nothing.
    pub fn lines(&mut self, lines: &FieldLines) -> &mut Self {
        self.draft.fields.extend_from_slice(lines.as_bytes());
        self
    }

    /// Removes all appended fields except those with these names, for a response that replaces another.
    pub fn keep_fields(&mut self, names: &[&str]) -> &mut Self {
        let is_named = |name: &[u8]| names.iter().any(|kept| kept.as_bytes().eq_ignore_ascii_case(name));
        let fields = &mut self.draft.fields;
        let (mut at, mut kept) = (0, 0);
        while at < fields.len() {
            let line = first_line(&fields[at..]);
            let (len, is_kept) = (line.len(), is_named(name_of(line)));
            if is_kept {
                fields.copy_within(at..at + len, kept);
                kept += len;
            }
            at += len;
        }
        fields.truncate(kept);
        self
    }

    /// Applies header changes to this response, also to fields set later. The last header_rules wins.
    pub fn header_rules(&mut self, header_rules: &Rc<HeaderRules>) -> &mut Self {
        self.draft.header_rules = Some(Rc::clone(header_rules));
        self
    }

    /// Sets `Content-Type` (RFC 9110 section 8.3); the last one wins.
    pub fn content_type(&mut self, media_type: &str) -> &mut Self {
        self.field(CONTENT_TYPE, media_type)
    }

    /// Sets a predefined `Content-Type` line.
    fn content_type_line(&mut self, line: &'static [u8]) -> &mut Self {
        self.draft.content_type.set_line(line);
        self
    }

    /// Sets a plain text body in UTF-8, with its `Content-Type`.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.content_type_line(b"Content-Type: text/plain; charset=utf-8\r\n").body(text)
    }

    /// Sets an HTML body in UTF-8, with its `Content-Type`.
    pub fn html(&mut self, html: &str) -> &mut Self {
        self.content_type_line(b"Content-Type: text/html; charset=utf-8\r\n").body(html)
    }

    /// Sets the body to a copy of `bytes`.
    pub fn body(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.draft.drop_body();
        self.draft.bytes.clear();
        self.draft.bytes.extend_from_slice(bytes.as_ref());
        self
    }

    /// Sets the body to the bytes that `write` appends to a reused buffer: typical sizes need no allocation.
    pub fn body_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        self.body(b"");
        write(&mut self.draft.bytes);
        self
    }

    /// Sets the body to static bytes, sent without a copy.
    pub fn body_static(&mut self, bytes: &'static [u8]) -> &mut Self {
        self.set_body(Body::Item(Item::Shared(Shared::Static(bytes))))
    }

    /// Sets the body to a shared block. A small one is copied, a larger one sent in place.
    pub fn body_shared(&mut self, block: Shared) -> &mut Self {
        self.set_body(Body::Item(Item::Shared(block)))
    }

    /// Sets the body to a range of a file, sent without a copy if the system supports it.
    pub fn body_file(&mut self, slice: FileSlice) -> &mut Self {
        self.set_body(Body::Item(Item::File(slice)))
    }

    /// Sets the body to several pieces in sequence.
    pub fn body_pieces(&mut self, pieces: Pieces) -> &mut Self {
        self.set_body(Body::Pieces(Box::new(pieces)))
    }

    /// Sets body, `Content-Type` and further fields to those of a prebuilt response. A `Content-Type` set
    /// later replaces its own; a body set later replaces all of them.
    pub fn prebuilt(&mut self, prebuilt: &Rc<Prebuilt>) -> &mut Self {
        self.draft.drop_body();
        self.draft.content_type.clear();
        self.draft.prebuilt = Some(Rc::clone(prebuilt));
        self
    }

    /// Sets the body; the last one wins.
    pub(crate) fn set_body(&mut self, body: Body) -> &mut Self {
        self.draft.prebuilt = None;
        self.draft.body = Some(body);
        self
    }

    /// Responds to a method for which the resource has no handler; `allow` lists its methods. `OPTIONS` gets
    /// `204` and any other known method `405`, both with `Allow` (RFC 9110 sections 9.3.7 and 15.5.6). A
    /// method that [isn't known](Request::is_method_known) gets `501` (RFC 9110 section 9.1).
    pub fn unhandled_method(&mut self, request: &Request<'_>, allow: &str) -> &mut Self {
        match request.method() {
            _ if !request.is_method_known() => self.status(501).text("Not Implemented\n"),
            Method::Options => self.status(204).field("Allow", allow),
            _ => self.status(405).field("Allow", allow).text("Method Not Allowed\n"),
        }
    }

    /// Responds to a request that no resource handles: with `404`, or `501` if its method [isn't known](Request::is_method_known).
    /// `OPTIONS` for the server as a whole, `*`, gets `204` (RFC 9110 section 9.3.7), with `allow` in `Allow` unless it is empty.
    pub fn unhandled_target(&mut self, request: &Request<'_>, allow: &str) -> &mut Self {
        match (request.method(), request.path()) {
            (Method::Options, "*") if allow.is_empty() => self.status(204),
            (Method::Options, "*") => self.unhandled_method(request, allow),
            _ if !request.is_method_known() => self.unhandled_method(request, allow),
            _ => self.status(404).text("Not Found\n"),
        }
    }

    /// Sets a number that listeners of finished exchanges see ([`FinishedExchange::tag`](crate::FinishedExchange::tag)),
    /// such as that of a site. Default 0; a deferred handler's response keeps it.
    pub fn exchange_tag(&mut self, tag: u16) -> &mut Self {
        self.draft.tag = tag;
        self
    }

    /// Closes the connection after this response.
    pub fn close(&mut self) -> &mut Self {
        self.draft.close = true;
        self
    }
}

/// Fields that decide where a message ends, or that only the server knows.
const OWNED: [&str; 5] = ["Connection", "Content-Length", "Date", "Server", "Transfer-Encoding"];

pub(crate) fn append_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), String> {
    if OWNED.iter().any(|owned| owned.eq_ignore_ascii_case(name)) {
        return Err(format!("a handler set {name}, which is the server's own"));
    }
    encode_field(out, name, value)?;
    // A sender of `Upgrade` must send the connection option too (RFC 9110 section 7.8).
    if name.eq_ignore_ascii_case("Upgrade") && !have_name(out, b"Connection") {
        encode::connection_upgrade(out);
    }
    Ok(())
}

/// Encodes any field, including the server's own.
pub(crate) fn encode_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), String> {
    encode::field(out, name, value).map_err(|bad| format!("a handler set the field {name:?}: {bad}"))
}
