//! A response under construction, without the means of handlers to build it.

use std::rc::Rc;

use shearwater_http1::{ResponseContent, ResponseFraming};
use shearwater_io::Item;

use crate::response::coder::StreamCoder;
use crate::response::fault::Fault;
use crate::response::head::{ContentType, TEXT_LINE};
use crate::response::header_rules::HeaderRules;
use crate::response::pieces::Pieces;
use crate::response::prebuilt::Prebuilt;
use crate::upgrade::Taker;

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
    /// Closure of a response that upgrades the connection.
    pub(crate) upgrade: Option<Taker>,
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
            upgrade: None,
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
    /// As `Stream`, with a coder that a step has chosen.
    Coded(ResponseFraming, Box<dyn StreamCoder>),
}

impl Body {
    /// Returns how it is framed.
    pub(crate) fn framing(&self) -> ResponseFraming {
        match self {
            Self::Item(item) => ResponseFraming::Length(item.len()),
            Self::Pieces(pieces) => ResponseFraming::Length(pieces.len()),
            Self::Stream(framing) | Self::Coded(framing, _) => *framing,
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
            || self.upgrade.is_some()
            || self.fault.is_some()
    }

    #[cold]
    fn drop_contents(&mut self) {
        self.body = None;
        self.prebuilt = None;
        self.header_rules = None;
        self.upgrade = None;
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
            self.clear();
            (self.status, self.tag, self.close) = (500, tag, true);
            self.content_type.set_line(TEXT_LINE);
            self.bytes.extend_from_slice(b"Internal Server Error\n");
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
    pub(crate) fn drop_body(&mut self) {
        if self.body.is_some() || self.prebuilt.is_some() {
            self.drop_body_cold();
        }
    }

    #[cold]
    fn drop_body_cold(&mut self) {
        self.body = None;
        self.prebuilt = None;
    }

    /// Takes a prebuilt response all of whose fields are sent as they are, and no others of the handler.
    pub(crate) fn take_prebuilt_alone(&mut self, content: ResponseContent) -> Option<Rc<Prebuilt>> {
        let has_length = matches!(content, ResponseContent::Whole | ResponseContent::LengthOnly);
        let is_alone =
            self.header_rules.is_none() && self.fields.is_empty() && self.content_type.line().is_empty();
        self.prebuilt.take_if(|_| is_alone && has_length)
    }

    /// Returns the framing of a streamed body.
    #[inline]
    pub(crate) fn framing(&self) -> Option<ResponseFraming> {
        match self.body {
            Some(Body::Stream(framing) | Body::Coded(framing, _)) => Some(framing),
            _ => None,
        }
    }

    /// Takes the coder that a step has chosen for a stream.
    pub(crate) fn take_coder(&mut self) -> Option<Box<dyn StreamCoder>> {
        let framing = self.body.as_ref().filter(|body| matches!(body, Body::Coded(..)))?.framing();
        match self.body.replace(Body::Stream(framing)) {
            Some(Body::Coded(_, coder)) => Some(coder),
            _ => None,
        }
    }

    /// Returns the length in bytes; 0 if unknown.
    pub(crate) fn body_len(&self) -> u64 {
        match self.body.as_ref().map(Body::framing) {
            None => self.bytes.len() as u64,
            Some(ResponseFraming::Length(length)) => length,
            Some(ResponseFraming::Chunked | ResponseFraming::Close) => 0,
        }
    }
}
