//! A response as a handler builds it.

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

use shearwater_http1::{Method, StreamFraming, encode};
use shearwater_io::{FileSlice, Item, Shared};

use crate::call::Calls;
use crate::content_type::{self, ContentType};
use crate::field_lines::FieldLines;
use crate::instead::Instead;
use crate::overlay::{Overlay, first_line, have_name, name_of};
use crate::pieces::Pieces;
use crate::prebuilt::Prebuilt;
use crate::request::Request;
use crate::respond::Fault;

/// Where a response's parts are gathered: kept by the worker and used again.
pub(crate) struct Parts {
    /// Encoded field lines.
    pub(crate) fields: Vec<u8>,
    /// The line of `Content-Type`, of which there is one.
    pub(crate) content_type: ContentType,
    /// The body, where it is built from bytes.
    pub(crate) bytes: Vec<u8>,
    /// The body, where it is built from something else.
    pub(crate) body: Option<Body>,
    /// The body and its fields, where they were encoded before.
    pub(crate) prebuilt: Option<Rc<Prebuilt>>,
    /// What is laid over the fields, whoever gives them.
    pub(crate) overlay: Option<Rc<Overlay>>,
    /// What takes the place of an answer.
    pub(crate) instead: Option<Instead>,
    /// The answer that a call would give, all of it there.
    pub(crate) told: Option<Box<Parts>>,
    pub(crate) status: u16,
    pub(crate) close: bool,
    /// What is wrong with a field that the handler gave, if anything.
    pub(crate) fault: Option<Box<Fault>>,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            fields: Vec::new(),
            content_type: ContentType::default(),
            bytes: Vec::new(),
            body: None,
            prebuilt: None,
            overlay: None,
            instead: None,
            told: None,
            status: 200,
            close: false,
            fault: None,
        }
    }
}

/// A body that is more than bytes.
pub(crate) enum Body {
    Item(Item),
    Pieces(Box<Pieces>),
    /// It follows, as its handler makes it.
    Stream(StreamFraming),
}

impl Body {
    /// Length in bytes, if known.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Self::Item(item) => Some(item.len()),
            Self::Pieces(pieces) => Some(pieces.len()),
            Self::Stream(StreamFraming::Length(length)) => Some(*length),
            Self::Stream(StreamFraming::Chunked | StreamFraming::Close) => None,
        }
    }
}

impl Parts {
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.fields.clear();
        self.content_type.clear();
        self.bytes.clear();
        self.status = 200;
        self.close = false;
        if self.has_more() {
            self.forget_more();
        }
    }

    /// Whether there is something to let go of. An answer that was appended has left nothing.
    #[inline]
    fn has_more(&self) -> bool {
        self.body.is_some()
            || self.prebuilt.is_some()
            || self.overlay.is_some()
            || self.is_other()
            || self.fault.is_some()
    }

    #[cold]
    fn forget_more(&mut self) {
        self.body = None;
        self.prebuilt = None;
        self.overlay = None;
        self.instead = None;
        self.told = None;
        self.fault = None;
    }

    /// Capacity of its buffers, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.fields.capacity()
    }

    /// Keeps little memory.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.fields.shrink_to(bytes);
        self.bytes.shrink_to(bytes);
        self.content_type.shrink_to(bytes);
    }

    /// Whether something takes the place of what is said here.
    #[inline]
    pub(crate) fn is_other(&self) -> bool {
        self.instead.is_some() || self.told.is_some()
    }

    /// Clears the body and its type.
    pub(crate) fn forget_content(&mut self) {
        self.forget_body();
        self.bytes.clear();
        self.content_type.clear();
    }

    /// Forgets a body that is more than bytes. Most answers have none: to let go of one is no part of their way.
    #[inline]
    fn forget_body(&mut self) {
        if self.body.is_some() || self.prebuilt.is_some() {
            self.forget_a_body();
        }
    }

    #[cold]
    fn forget_a_body(&mut self) {
        self.body = None;
        self.prebuilt = None;
    }

    /// How the body is told to end, where it follows.
    #[inline]
    pub(crate) fn framing(&self) -> Option<StreamFraming> {
        match self.body {
            Some(Body::Stream(framing)) => Some(framing),
            _ => None,
        }
    }

    /// Length in bytes; 0 if unknown.
    fn body_len(&self) -> u64 {
        self.body.as_ref().map_or(self.bytes.len() as u64, |body| body.len().unwrap_or(0))
    }
}

/// The answer to one request. Begins as an empty `200`.
///
/// The server adds `Server`, `Date`, `Content-Length` and `Connection` itself, and leaves the body out where HTTP has
/// none (`HEAD`, `204`, `205`, `304`): a handler for `GET` is one for `HEAD` too.
pub struct Response<'a> {
    pub(crate) parts: &'a mut Parts,
    /// For an answer that is to come later; `None` where it does already.
    pub(crate) calls: Option<&'a mut Calls>,
}

impl fmt::Debug for Response<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.parts.status)
            .field("body_len", &self.parts.body_len())
            .finish_non_exhaustive()
    }
}

impl<'a> Response<'a> {
    pub(crate) fn new(parts: &'a mut Parts) -> Self {
        parts.clear();
        Self { parts, calls: None }
    }

    /// One that may say that it comes later.
    pub(crate) fn or_later(parts: &'a mut Parts, calls: &'a mut Calls) -> Self {
        Self { calls: Some(calls), ..Self::new(parts) }
    }

    /// Goes on with what was set before.
    pub(crate) fn go_on(parts: &'a mut Parts) -> Self {
        Self { parts, calls: None }
    }

    /// Sets the status (RFC 9110 section 15).
    ///
    /// # Panics
    /// If it isn't a final status, 200 to 599.
    pub fn status(&mut self, status: u16) -> &mut Self {
        assert!((200..=599).contains(&status), "{status} is no final HTTP status");
        self.parts.status = status;
        self
    }

    /// The status as it is set now.
    #[must_use]
    pub fn status_code(&self) -> u16 {
        self.parts.status
    }

    /// Appends a field (RFC 9110 section 5).
    ///
    /// A name that isn't a token, a value with a control character, or a field that is the server's own
    /// (`Connection`, `Content-Length`, `Date`, `Server`, `Transfer-Encoding`) makes the answer a `500`: what it would have
    /// changed is where the message ends. `Upgrade` adds the line `Connection: upgrade` (RFC 9110 section 7.8).
    pub fn field(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        let appended = match content_type::is_name(name) {
            true => self.parts.content_type.set(value.as_ref()),
            false => append_field(&mut self.parts.fields, name, value.as_ref()),
        };
        if let Err(why) = appended {
            let built = Some(Box::new(Fault::Built(why)));
            self.parts.fault = Fault::graver(self.parts.fault.take(), built);
        }
        self
    }

    /// Reports to the operator that a file can't be sent, and why: each reason at most once a second, with the number of files that were left
    /// out. The response goes out as it is set; the report names the status that it has now.
    pub fn report_file(&mut self, path: impl Into<PathBuf>, error: impl fmt::Display) -> &mut Self {
        let status = self.parts.status;
        let file = Fault::File { path: path.into(), error: error.to_string(), status };
        self.parts.fault = Fault::graver(self.parts.fault.take(), Some(Box::new(file)));
        self
    }

    /// Appends a field unless this very line was appended before.
    pub fn field_once(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        let before = self.parts.fields.len();
        self.field(name, value);
        let (known, new) = self.parts.fields.split_at(before.min(self.parts.fields.len()));
        let is_known = known.split_inclusive(|&byte| byte == b'\n').any(|line| line == new);
        if is_known {
            self.parts.fields.truncate(before);
        }
        self
    }

    /// Appends fields that were encoded before. They stand beside what [`field`](Self::field) and
    /// [`content_type`](Self::content_type) say, and replace nothing.
    pub fn lines(&mut self, lines: &FieldLines) -> &mut Self {
        self.parts.fields.extend_from_slice(lines.as_bytes());
        self
    }

    /// Forgets the fields that were appended, but those with these names. For who puts one answer in the place of another.
    pub fn keep_fields(&mut self, names: &[&str]) -> &mut Self {
        let is_named = |name: &[u8]| names.iter().any(|kept| kept.as_bytes().eq_ignore_ascii_case(name));
        let fields = &mut self.parts.fields;
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

    /// Lays field changes over this answer, whatever else is set before or afterwards. The last overlay holds.
    pub fn overlay(&mut self, overlay: &Rc<Overlay>) -> &mut Self {
        self.parts.overlay = Some(Rc::clone(overlay));
        self
    }

    /// Sets `Content-Type` (RFC 9110 section 8.3): the last one holds.
    pub fn content_type(&mut self, media_type: &str) -> &mut Self {
        self.field(content_type::NAME, media_type)
    }

    /// Sets `Content-Type` by its line, known to be one.
    fn content_type_line(&mut self, line: &'static [u8]) -> &mut Self {
        self.parts.content_type.set_line(line);
        self
    }

    /// Sets a body of plain text in UTF-8, with its `Content-Type`.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.content_type_line(b"Content-Type: text/plain; charset=utf-8\r\n").body(text)
    }

    /// Sets a body of HTML in UTF-8, with its `Content-Type`.
    pub fn html(&mut self, html: &str) -> &mut Self {
        self.content_type_line(b"Content-Type: text/html; charset=utf-8\r\n").body(html)
    }

    /// Sets the body to a copy of `bytes`.
    pub fn body(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.parts.forget_body();
        self.parts.bytes.clear();
        self.parts.bytes.extend_from_slice(bytes.as_ref());
        self
    }

    /// Sets the body to what `write` appends to a buffer that the worker keeps: nothing is allocated for a body of a usual size.
    pub fn body_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        self.body(b"");
        write(&mut self.parts.bytes);
        self
    }

    /// Sets the body to bytes of the program, sent without a copy.
    pub fn body_static(&mut self, bytes: &'static [u8]) -> &mut Self {
        self.set_body(Body::Item(Item::Shared(Shared::Static(bytes))))
    }

    /// Sets the body to a block that a worker holds. A small one is copied behind the head, a larger one sent as it is.
    pub fn body_shared(&mut self, block: Shared) -> &mut Self {
        self.set_body(Body::Item(Item::Shared(block)))
    }

    /// Sets the body to a piece of a file, sent without a copy where the system can.
    pub fn body_file(&mut self, slice: FileSlice) -> &mut Self {
        self.set_body(Body::Item(Item::File(slice)))
    }

    /// Sets the body to several pieces, one behind the other.
    pub fn body_pieces(&mut self, pieces: Pieces) -> &mut Self {
        self.set_body(Body::Pieces(Box::new(pieces)))
    }

    /// Sets body, `Content-Type` and further fields to those of an answer that was encoded before. A `Content-Type` that is set
    /// later takes the place of its own; a body that is set later takes the place of all of it.
    pub fn prebuilt(&mut self, answer: &Rc<Prebuilt>) -> &mut Self {
        self.parts.forget_body();
        self.parts.content_type.clear();
        self.parts.prebuilt = Some(Rc::clone(answer));
        self
    }

    /// The last body that is set holds.
    pub(crate) fn set_body(&mut self, body: Body) -> &mut Self {
        self.parts.prebuilt = None;
        self.parts.body = Some(body);
        self
    }

    /// Responds to a method for which the resource has no handler; `allow` lists those that it has. `OPTIONS` gets `204` and any other known
    /// method `405`, both with `Allow` (RFC 9110 sections 9.3.7 and 15.5.6). A method that [isn't known](Request::is_method_known) gets `501`
    /// (RFC 9110 section 9.1).
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

    /// Closes the connection after this answer.
    pub fn close(&mut self) -> &mut Self {
        self.parts.close = true;
        self
    }
}

/// Fields that decide where a message ends, or that the server alone knows.
const OWNED: [&str; 5] = ["Connection", "Content-Length", "Date", "Server", "Transfer-Encoding"];

pub(crate) fn append_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), String> {
    if OWNED.iter().any(|owned| owned.eq_ignore_ascii_case(name)) {
        return Err(format!("a handler set {name}, which is the server's own"));
    }
    encode_field(out, name, value)?;
    // A sender of `Upgrade` has to send the option too (RFC 9110 section 7.8).
    if name.eq_ignore_ascii_case("Upgrade") && !have_name(out, b"Connection") {
        encode::connection_upgrade(out);
    }
    Ok(())
}

/// Any field, the server's own among them.
pub(crate) fn encode_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), String> {
    encode::field(out, name, value).map_err(|bad| format!("a handler set the field {name:?}: {bad}"))
}
