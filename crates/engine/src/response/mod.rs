//! A response as a handler builds it.

pub(crate) mod coder;
pub(crate) mod draft;
pub(crate) mod facts;
pub(crate) mod fault;
pub(crate) mod fields;
pub(crate) mod head;
pub(crate) mod header_rules;
pub(crate) mod inspect;
pub(crate) mod pieces;
pub(crate) mod prebuilt;
pub(crate) mod responder;

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

use shearwater_http1::Method;
use shearwater_io::{FileSlice, Item, Shared};

use crate::deferred::calls::Calls;
use crate::request::Request;
use crate::response::draft::{Body, ResponseDraft};
use crate::response::fault::Fault;
use crate::response::fields::{CONTENT_TYPE, append_field, first_line, is_content_type, name_of};
use crate::response::head::{FieldLines, TEXT_LINE};
use crate::response::header_rules::HeaderRules;
use crate::response::pieces::Pieces;
use crate::response::prebuilt::Prebuilt;

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
            self.fail(why);
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

    /// Makes the response a `500`. `why` is reported to the operator and not sent to the client.
    pub fn fail(&mut self, why: impl Into<String>) -> &mut Self {
        let built = Some(Box::new(Fault::Built(why.into())));
        self.draft.fault = Fault::graver(self.draft.fault.take(), built);
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
        self.retain_fields(|name| names.iter().any(|kept| kept.as_bytes().eq_ignore_ascii_case(name)))
    }

    /// Removes the appended fields with this name.
    pub fn remove_field(&mut self, name: &str) -> &mut Self {
        self.retain_fields(|other| !other.eq_ignore_ascii_case(name.as_bytes()))
    }

    fn retain_fields(&mut self, is_named: impl Fn(&[u8]) -> bool) -> &mut Self {
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

    /// Applies header changes to this response, also to fields set later. The last call wins.
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
        self.content_type_line(TEXT_LINE).body(text)
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
