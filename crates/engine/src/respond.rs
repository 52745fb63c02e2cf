//! Verb 4, respond: encodes a handler's response, or a refusal, into the turn's output.

use std::path::PathBuf;

use shearwater_http1::{Method, ResponseContent, StreamFraming, Version, encode};
use shearwater_io::{Item, Output};

use crate::call::{Around, Calls, Later};
use crate::instead::Instead;
use crate::lasting::Lasting;
use crate::limits::{COPIED_BYTES_MAX, SPARE_RESPONSE_BYTES_MAX};
use crate::overlay::{Layer, Names, Overlay, have_name};
use crate::panics::{self, Panic};
use crate::preamble::Preamble;
use crate::prebuilt::Others;
use crate::response::{Body, Parts, Response};
use crate::upgrade::Taker;

const SWITCHING_PROTOCOLS: u16 = 101;

/// The fate of a connection after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// It stays open.
    Keep,
    /// It is closed at once: the response was truncated.
    Close,
    /// It is closed in stages: the client may be sending, even if it has requested the close (RFC 9112
    /// section 9.6).
    Linger,
    /// It is handed over to the program.
    HandOver,
}

/// Facts of a request that decide the form of its response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) version: Version,
    pub(crate) keep_alive: bool,
    /// More input has arrived after it, which is processed even while draining.
    pub(crate) is_followed: bool,
    /// The connection has reached its number of requests.
    pub(crate) is_last: bool,
}

/// Result of a response that was encoded.
pub(crate) struct Answered {
    pub(crate) after: After,
    pub(crate) status: u16,
    /// Fault of the handler; the client got a `500`. Boxed, so that the struct fits registers.
    pub(crate) fault: Option<Box<Fault>>,
}

/// Result of calling a handler.
pub(crate) enum Outcome {
    /// A response was encoded.
    Answered(Answered),
    /// The response is deferred; nothing was encoded.
    Instead(Instead),
}

/// A handler's fault, with the details of its report.
#[derive(Debug)]
pub(crate) enum Fault {
    Panic(Box<Panic>),
    /// An invalid field, or a wrong length of a stream.
    Built(String),
    /// A file that can't be sent. The response already reflects that and is sent as it is.
    File {
        path: PathBuf,
        error: String,
        status: u16,
    },
}

impl Fault {
    /// Returns true if the response can't be sent.
    pub(crate) fn fails(&self) -> bool {
        !matches!(self, Self::File { .. })
    }

    /// Returns the more severe of two faults, or the first one.
    pub(crate) fn graver(first: Option<Box<Self>>, second: Option<Box<Self>>) -> Option<Box<Self>> {
        match (&first, &second) {
            (Some(one), Some(other)) if other.fails() && !one.fails() => second,
            _ => first.or(second),
        }
    }
}

/// Encodes responses into the output of the current connection.
pub(crate) struct Responder {
    pub(crate) out: Output,
    pub(crate) preamble: Preamble,
    pub(crate) lasting: Lasting,
    parts: Parts,
    /// Closure of the `101` that was encoded last.
    pub(crate) taker: Option<Taker>,
    pub(crate) draining: bool,
}

impl Responder {
    pub(crate) fn new(unix_seconds: u64) -> Self {
        Self {
            out: Output::new(),
            preamble: Preamble::new(unix_seconds),
            lasting: Lasting::default(),
            parts: Parts::default(),
            taker: None,
            draining: false,
        }
    }

    /// Ends a turn: drops cached files in time, and frees the memory of a large response.
    #[inline]
    pub(crate) fn end_turn(&mut self, now_ms: u64) {
        self.lasting.end_turn(now_ms);
        if self.parts.capacity() > SPARE_RESPONSE_BYTES_MAX {
            self.trim(SPARE_RESPONSE_BYTES_MAX);
        }
    }

    /// Frees the memory for building responses beyond so many bytes.
    #[cold]
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.parts.clear();
        self.parts.shrink_to(bytes);
    }

    /// Calls a handler and encodes its response. `name` returns the request's name for reports.
    ///
    /// Always inlined, as is each function on the common path: otherwise arguments and results would go
    /// through memory.
    #[inline(always)]
    pub(crate) fn answer(
        &mut self,
        asked: Asked,
        name: impl FnOnce() -> String,
        calls: &mut Calls,
        handler: impl FnOnce(&mut Response<'_>),
    ) -> Outcome {
        let parts = &mut self.parts;
        let caught = panics::catch(|| handler(&mut Response::or_later(parts, &mut *calls)));
        let fault = match caught {
            Err(panic) => Some(self.panicked(panic, name(), calls)),
            Ok(()) if self.parts.is_other() => return self.instead(asked, calls),
            Ok(()) => self.parts.fault.take(),
        };
        Outcome::Answered(self.finish(asked, fault))
    }

    /// Handles a call without an immediate response; fields that were set are inherited.
    #[cold]
    fn instead(&mut self, asked: Asked, calls: &mut Calls) -> Outcome {
        let (instead, told) = (self.parts.instead.take(), self.parts.told.take());
        let mut around = Around {
            fields: Vec::new(),
            overlay: self.parts.overlay.take(),
            fault: self.parts.fault.take(),
            close: self.parts.close,
        };
        around.fields.extend_from_slice(&self.parts.fields);
        match (told, instead) {
            (Some(mut told), _) => {
                let answered = self.answer_with(&mut told, around, asked, None);
                calls.recycle_parts(told);
                Outcome::Answered(answered)
            }
            (None, Some(Instead::Upgrade(taker))) => {
                let mut own = std::mem::take(&mut self.parts);
                own.instead = Some(Instead::Upgrade(taker));
                // Its fields are still in the draft.
                around.fields.clear();
                Outcome::Answered(self.answer_with(&mut own, around, asked, None))
            }
            (None, Some(Instead::Later(later))) => {
                Outcome::Instead(Instead::Later(Later { around, ..later }))
            }
            (None, instead) => Outcome::Instead(instead.unwrap_or(Instead::Full)),
        }
    }

    #[cold]
    fn panicked(&mut self, mut panic: Box<Panic>, request: String, calls: &mut Calls) -> Box<Fault> {
        self.forget_later(calls);
        panic.request = Some(request);
        Box::new(Fault::Panic(panic))
    }

    /// Drops a deferred handler that is no longer needed.
    fn forget_later(&mut self, calls: &mut Calls) {
        self.parts.told = None;
        if let Some(Instead::Later(later)) = self.parts.instead.take() {
            calls.abandon(later.exchange, later.task);
        }
    }

    /// Encodes a response that was built elsewhere, or its head if its body follows. Swaps drafts, so that
    /// `parts` holds a used one for recycling: moving them would be the largest cost here.
    pub(crate) fn answer_with(
        &mut self,
        parts: &mut Parts,
        around: Around,
        asked: Asked,
        fault: Option<Box<Fault>>,
    ) -> Answered {
        std::mem::swap(&mut self.parts, parts);
        self.parts.fields.extend_from_slice(&around.fields);
        self.parts.overlay = around.overlay.or(self.parts.overlay.take());
        self.parts.close |= around.close;
        let own = Fault::graver(around.fault, self.parts.fault.take());
        let fault = Fault::graver(fault, own);
        let fault = if self.parts.instead.is_some() { self.upgrade(fault) } else { fault };
        self.finish(asked, fault)
    }

    /// Turns the response into a `101` unless it has failed. The connection is handed over once that is sent.
    #[cold]
    fn upgrade(&mut self, mut fault: Option<Box<Fault>>) -> Option<Box<Fault>> {
        // A response that is built elsewhere can't be deferred.
        let Some(Instead::Upgrade(taker)) = self.parts.instead.take() else { return fault };
        if self.parts.framing().is_some() {
            let why = "a handler upgraded with a response that it streams".to_owned();
            fault = Fault::graver(fault, Some(Box::new(Fault::Built(why))));
        }
        if !fault.as_ref().is_some_and(|fault| fault.fails()) {
            self.parts.forget_content();
            (self.parts.status, self.parts.close) = (SWITCHING_PROTOCOLS, true);
            if taker.expects_continue {
                self.go_on();
            }
            self.taker = Some(taker);
        }
        fault
    }

    #[inline(always)]
    fn finish(&mut self, asked: Asked, fault: Option<Box<Fault>>) -> Answered {
        if fault.as_ref().is_some_and(|fault| fault.fails()) {
            self.fail();
        }
        let status = self.parts.status;
        let content = ResponseContent::of(asked.method, status);
        let after = self.after(asked, content);
        self.append(asked, content, after);
        Answered { after, status, fault }
    }

    /// Encodes a refusal with a sentence of plain text (without a body for `HEAD`, RFC 9110 section 9.3.2);
    /// the connection is closed afterwards.
    pub(crate) fn refuse(&mut self, status: u16, why: &str, is_head: bool) {
        let mut response = Response::new(&mut self.parts);
        response.status(status).text(why);
        self.parts.bytes.push(b'\n');
        let method = if is_head { Method::Head } else { Method::Get };
        let asked =
            Asked { method, version: Version::Http11, keep_alive: false, is_followed: false, is_last: true };
        self.append(asked, ResponseContent::of(method, status), After::Linger);
    }

    /// Appends `100 Continue` (RFC 9110 section 10.1.1).
    pub(crate) fn go_on(&mut self) {
        encode::continue_100(self.out.bytes_mut());
    }

    /// Replaces a failed response by a plain `500`.
    fn fail(&mut self) {
        Response::new(&mut self.parts).status(500).text("Internal Server Error\n").close();
    }

    #[inline(always)]
    fn after(&self, asked: Asked, content: ResponseContent) -> After {
        if !asked.keep_alive
            || asked.is_last
            || self.parts.close
            || self.parts.framing() == Some(StreamFraming::Close) && content.is_whole()
            || self.draining && !asked.is_followed
        {
            if self.parts.status == SWITCHING_PROTOCOLS { After::HandOver } else { After::Linger }
        } else {
            After::Keep
        }
    }

    /// Encodes the response; the common case without an overlay is compiled separately.
    #[inline(always)]
    fn append(&mut self, asked: Asked, content: ResponseContent, after: After) {
        match self.parts.overlay.take() {
            None => self.append_under(None, asked, content, after),
            Some(overlay) => self.append_overlaid(&overlay, asked, content, after),
        }
    }

    #[inline(never)]
    fn append_overlaid(&mut self, overlay: &Overlay, asked: Asked, content: ResponseContent, after: After) {
        self.append_under(Some(overlay), asked, content, after);
    }

    /// Encodes head and body in the form that all responses share.
    #[inline(always)]
    fn append_under(
        &mut self,
        overlay: Option<&Overlay>,
        asked: Asked,
        content: ResponseContent,
        after: After,
    ) {
        let Self { out, preamble, parts, .. } = self;
        let status = parts.status;
        let bytes = out.bytes_mut();
        preamble.append(bytes, status, overlay.and_then(Overlay::server));
        match (after, asked.version) {
            (After::Keep, Version::Http11) => {}
            (After::Keep, Version::Http10) => encode::connection_keep_alive(bytes),
            (After::Close | After::Linger, _) => encode::connection_close(bytes),
            (After::HandOver, _) => encode::connection_upgrade(bytes),
        }
        let layer = overlay.map(|overlay| overlay.layer(status));
        let without = layer.map_or(Names::NONE, Layer::without);
        if let Some(layer) = layer {
            let prebuilt = parts.prebuilt.as_deref();
            layer.append(bytes, |name| {
                have_name(&parts.fields, name) || prebuilt.is_some_and(|prebuilt| prebuilt.has(name))
            });
        }
        if let Some(prebuilt) = parts.prebuilt.take() {
            let others = Others { content_type: parts.content_type.line(), fields: &parts.fields, without };
            prebuilt.append_fields(bytes, others, content);
            if content.is_whole() {
                push(out, prebuilt.body());
            }
            return self.lasting.keep(prebuilt);
        }
        bytes.extend_from_slice(parts.content_type.line());
        if !parts.fields.is_empty() {
            without.append_others(bytes, &parts.fields);
        }
        if let Some(body) = parts.body.take() {
            return self.append_body(body, content);
        }
        append_end_of_head(bytes, content.declared_length(Some(parts.bytes.len() as u64)));
        if content.is_whole() {
            bytes.extend_from_slice(&parts.bytes);
        }
    }

    /// Encodes the end of the head and a body other than bytes, unless that is streamed.
    #[inline(never)]
    fn append_body(&mut self, body: Body, content: ResponseContent) {
        let bytes = self.out.bytes_mut();
        let is_chunked = matches!(body, Body::Stream(StreamFraming::Chunked));
        if is_chunked && content.is_whole() {
            encode::chunked(bytes);
        }
        append_end_of_head(bytes, content.declared_length(body.len()));
        match body {
            Body::Item(item) if content.is_whole() => push(&mut self.out, &item),
            Body::Pieces(pieces) if content.is_whole() => {
                if let Some(whole) = pieces.append_to(&mut self.out) {
                    self.lasting.keep(whole);
                }
            }
            Body::Item(_) | Body::Pieces(_) | Body::Stream(_) => {}
        }
    }
}

/// Appends `Content-Length`, if known, and the end of the head.
#[inline(always)]
pub(crate) fn append_end_of_head(out: &mut Vec<u8>, length: Option<u64>) {
    match length {
        Some(length) => encode::content_length_and_end(out, length),
        None => encode::end_of_head(out),
    }
}

/// Appends a body. Copying a small one costs less than another vector for the kernel to gather.
fn push(out: &mut Output, body: &Item) {
    match body {
        Item::Shared(block) if block.len() <= COPIED_BYTES_MAX => out.bytes_mut().extend_from_slice(block),
        item => out.push(item.clone()),
    }
}
