//! Verb 4, respond: a handler's answer, or a refusal, becomes bytes of the turn's output.

use shearwater_http1::{Method, Version, content_length_allowed, encode, response_has_body};
use shearwater_io::{Item, Output};

use crate::call::{Around, Calls, Later};
use crate::instead::Instead;
use crate::lasting::Lasting;
use crate::limits::{COPIED_BYTES_MAX, SPARE_RESPONSE_BYTES_MAX};
use crate::overlay::{Layer, Names, Overlay};
use crate::panics;
use crate::preamble::Preamble;
use crate::prebuilt::Others;
use crate::response::{Body, Framing, Parts, Response};

/// How the connection goes on after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// It stays open.
    Keep,
    /// It is closed; the client asked for it, so nothing more comes.
    Close,
    /// It is closed; the client doesn't know yet and may be sending.
    Linger,
}

/// What the request says of its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) version: Version,
    pub(crate) keep_alive: bool,
    /// It had a body. Some clients send a line end behind one, unasked.
    pub(crate) has_body: bool,
    /// More input has come behind it: while draining that is answered too.
    pub(crate) is_followed: bool,
    /// The connection has sent as many as it may.
    pub(crate) is_last: bool,
}

/// What came of a handler's call.
pub(crate) struct Answered {
    pub(crate) after: After,
    pub(crate) status: u16,
    /// What the handler did wrong; the client got a `500` then. In a box, so that all of this fits registers.
    pub(crate) fault: Option<Box<Fault>>,
}

/// What a handler's call has led to.
pub(crate) enum Outcome {
    /// An answer, appended.
    Answered(Answered),
    /// Something else, and nothing is appended.
    Instead(Instead),
}

/// A handler's fault, with what the operator is told of it.
#[derive(Debug)]
pub(crate) enum Fault {
    Panic(String),
    /// A field, or the length of a stream.
    Built(String),
}

/// Turns answers into bytes. Holds the output of the connection whose turn it is.
pub(crate) struct Responder {
    pub(crate) out: Output,
    pub(crate) preamble: Preamble,
    pub(crate) lasting: Lasting,
    parts: Parts,
    pub(crate) draining: bool,
}

impl Responder {
    pub(crate) fn new(unix_seconds: u64) -> Self {
        Self {
            out: Output::new(),
            preamble: Preamble::new(unix_seconds),
            lasting: Lasting::default(),
            parts: Parts::default(),
            draining: false,
        }
    }

    /// Ends a turn: closes files in time, and frees the memory of a large response.
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

    /// Calls a handler and appends its answer. Inlined with all that lies on a usual answer's way, whatever a profile says: it is short, and
    /// what it hands over would go through memory.
    #[inline(always)]
    pub(crate) fn answer(
        &mut self,
        asked: Asked,
        calls: &mut Calls,
        handler: impl FnOnce(&mut Response<'_>),
    ) -> Outcome {
        let parts = &mut self.parts;
        let caught = panics::catch(|| handler(&mut Response::or_later(parts, &mut *calls)));
        let fault = match caught {
            Err(message) => {
                self.forget_later(calls);
                Some(Box::new(Fault::Panic(message)))
            }
            Ok(()) if self.parts.is_other() => return self.instead(asked, calls),
            Ok(()) => self.parts.fault.take(),
        };
        Outcome::Answered(self.finish(asked, fault))
    }

    /// The handler has done something else. What it has set itself lies around that.
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
            (None, Some(Instead::Later(later))) => {
                Outcome::Instead(Instead::Later(Later { around, ..later }))
            }
            (None, instead) => Outcome::Instead(instead.unwrap_or(Instead::Full)),
        }
    }

    /// A handler that was to answer later won't.
    #[cold]
    fn forget_later(&mut self, calls: &mut Calls) {
        self.parts.told = None;
        if let Some(Instead::Later(later)) = self.parts.instead.take() {
            calls.abandon(later.exchange, later.task);
        }
    }

    /// Appends an answer that was built elsewhere, or its head if its body follows. What comes back in `parts` are those of an earlier answer, to be
    /// used again: to move them costs more than all else here.
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
        let own = around.fault.or(self.parts.fault.take());
        self.finish(asked, fault.or(own))
    }

    #[inline(always)]
    fn finish(&mut self, asked: Asked, fault: Option<Box<Fault>>) -> Answered {
        if fault.is_some() {
            self.fail();
        }
        let (after, status) = (self.after(asked), self.parts.status);
        self.append(asked, after);
        Answered { after, status, fault }
    }

    /// Appends a refusal: a few words of plain text (not behind a `HEAD`, RFC 9110 section 9.3.2); the connection is
    /// closed behind it.
    pub(crate) fn refuse(&mut self, status: u16, why: &str, is_head: bool) {
        let mut response = Response::new(&mut self.parts);
        response.status(status).text(why);
        self.parts.bytes.push(b'\n');
        let method = if is_head { Method::Head } else { Method::Get };
        let asked = Asked {
            method,
            version: Version::Http11,
            keep_alive: false,
            has_body: true,
            is_followed: false,
            is_last: true,
        };
        self.append(asked, After::Linger);
    }

    /// Appends `100 Continue` (RFC 9110 section 10.1.1).
    pub(crate) fn go_on(&mut self) {
        encode::continue_100(self.out.bytes_mut());
    }

    /// The handler's answer can't be sent: a plain `500` takes its place.
    fn fail(&mut self) {
        Response::new(&mut self.parts).status(500).text("Internal Server Error\n").close();
    }

    #[inline(always)]
    fn after(&self, asked: Asked) -> After {
        if !asked.keep_alive && !asked.has_body {
            After::Close
        } else if !asked.keep_alive
            || asked.is_last
            || self.parts.close
            || self.parts.framing() == Some(Framing::Close)
            || self.draining && !asked.is_followed
        {
            After::Linger
        } else {
            After::Keep
        }
    }

    /// Appends the answer. Most have nothing laid over them, so the form is compiled for that once more.
    #[inline(always)]
    fn append(&mut self, asked: Asked, after: After) {
        match self.parts.overlay.take() {
            None => self.append_under(None, asked, after),
            Some(overlay) => self.append_overlaid(&overlay, asked, after),
        }
    }

    #[inline(never)]
    fn append_overlaid(&mut self, overlay: &Overlay, asked: Asked, after: After) {
        self.append_under(Some(overlay), asked, after);
    }

    /// Head, then body, in the one form that every answer has.
    #[inline(always)]
    fn append_under(&mut self, overlay: Option<&Overlay>, asked: Asked, after: After) {
        let Self { out, preamble, parts, .. } = self;
        let status = parts.status;
        let has_length = content_length_allowed(asked.method, status) && status != 304;
        let has_body = has_length && asked.method != Method::Head;
        debug_assert_eq!(has_body, response_has_body(asked.method, status));
        let bytes = out.bytes_mut();
        preamble.append(bytes, status, overlay.and_then(Overlay::server));
        match (after, asked.version) {
            (After::Keep, Version::Http11) => {}
            (After::Keep, Version::Http10) => encode::connection_keep_alive(bytes),
            (After::Close | After::Linger, _) => encode::connection_close(bytes),
        }
        let layer = overlay.map(|overlay| overlay.layer(status));
        let without = layer.map_or(Names::NONE, Layer::without);
        if let Some(layer) = layer {
            bytes.extend_from_slice(layer.lines());
        }
        if let Some(prebuilt) = parts.prebuilt.take() {
            let others = Others { content_type: parts.content_type.line(), fields: &parts.fields, without };
            prebuilt.append_fields(bytes, others, has_length);
            if has_body {
                push(out, prebuilt.body());
            }
            return self.lasting.keep(prebuilt);
        }
        bytes.extend_from_slice(parts.content_type.line());
        if !parts.fields.is_empty() {
            without.append_others(bytes, &parts.fields);
        }
        if let Some(body) = parts.body.take() {
            return self.append_body(body, has_length, has_body);
        }
        if !has_length {
            return encode::end_of_head(bytes);
        }
        encode::content_length_and_end(bytes, parts.bytes.len() as u64);
        if has_body {
            bytes.extend_from_slice(&parts.bytes);
        }
    }

    /// Appends the end of the head before a body that is more than bytes, and the body where it belongs there.
    #[inline(never)]
    fn append_body(&mut self, body: Body, has_length: bool, has_body: bool) {
        let bytes = self.out.bytes_mut();
        match &body {
            _ if !has_length => encode::end_of_head(bytes),
            Body::Stream(framing) => framing.append(bytes),
            Body::Item(_) | Body::Pieces(_) => encode::content_length_and_end(bytes, body.len()),
        }
        match body {
            Body::Item(item) if has_body => push(&mut self.out, &item),
            Body::Pieces(pieces) if has_body => {
                if let Some(whole) = pieces.append_to(&mut self.out) {
                    self.lasting.keep(whole);
                }
            }
            Body::Item(_) | Body::Pieces(_) | Body::Stream(_) => {}
        }
    }
}

/// Appends a body. To copy a little costs less than another piece for the kernel to gather.
fn push(out: &mut Output, body: &Item) {
    match body {
        Item::Shared(block) if block.len() <= COPIED_BYTES_MAX => out.bytes_mut().extend_from_slice(block),
        item => out.push(item.clone()),
    }
}
