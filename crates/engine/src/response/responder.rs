//! Encodes a handler's response, or a refusal, into the turn's output.

use shearwater_http1::{Method, ResponseContent, ResponseFraming};
use shearwater_io::Output;

use crate::deferred::calls::{Calls, Deferral};
use crate::deferred::shared::Shared;
use crate::http2::Multiplexed;
use crate::limits::SPARE_RESPONSE_BYTES_MAX;
use crate::request::Request;
use crate::request::guards::GuardsPassed;
use crate::response::Response;
use crate::response::draft::ResponseDraft;
use crate::response::facts::{Disposition, RequestFacts};
use crate::response::fault::Fault;
use crate::response::head::Preamble;
use crate::response::prebuilt::OpenFiles;
use crate::server::panics::{self, Panic};
use crate::server::reports::named;
use crate::service::Service;
use crate::upgrade::Taker;
use crate::wire::http1::{self, Form};
use crate::wire::http2;

const SWITCHING_PROTOCOLS: u16 = 101;

/// Result of a response that was encoded.
pub(crate) struct Responded {
    pub(crate) disposition: Disposition,
    pub(crate) status: u16,
    /// Fault of the handler, to be reported. Boxed, so that the struct fits registers.
    pub(crate) fault: Option<Box<Fault>>,
}

/// Result of calling a handler.
pub(crate) enum Outcome {
    /// A response was encoded.
    Responded(Responded),
    /// The response is deferred; nothing was encoded.
    Deferred(Deferral),
}

impl Outcome {
    /// Returns the status of an encoded response.
    #[inline(always)]
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Responded(responded) => Some(responded.status),
            Self::Deferred(_) => None,
        }
    }
}

/// Encodes responses into the output of the current connection.
pub(crate) struct Responder {
    pub(crate) out: Output,
    /// The HTTP/2 connection that `out` is sent on; `None` for HTTP/1.
    pub(crate) http2: Option<Box<Multiplexed>>,
    /// Memory for a response in the form of HTTP/1, before it is translated.
    scratch: Output,
    pub(crate) preamble: Preamble,
    pub(crate) open_files: OpenFiles,
    draft: ResponseDraft,
    /// Closure of the `101`, or of the tunnel's `200`, that was encoded last.
    pub(crate) taker: Option<Taker>,
    /// True during a drain, and while connections wait for room.
    pub(crate) ends_connections: bool,
    /// Length of `out` before the response that was encoded last, and of that response's head.
    pub(crate) begun_at: u64,
    pub(crate) head_bytes: usize,
}

impl Responder {
    pub(crate) fn new(unix_seconds: u64) -> Self {
        Self {
            out: Output::new(),
            http2: None,
            scratch: Output::new(),
            preamble: Preamble::new(unix_seconds),
            open_files: OpenFiles::default(),
            draft: ResponseDraft::default(),
            taker: None,
            ends_connections: false,
            begun_at: 0,
            head_bytes: 0,
        }
    }

    /// Returns the tag of the response that was encoded last.
    pub(crate) fn tag(&self) -> u16 {
        self.draft.tag
    }

    /// Ends a turn: drops cached files in time, and frees the memory of a large response.
    #[inline]
    pub(crate) fn end_turn(&mut self, now_ms: u64) {
        self.open_files.end_turn(now_ms);
        if self.draft.capacity() > SPARE_RESPONSE_BYTES_MAX {
            self.trim(SPARE_RESPONSE_BYTES_MAX);
        }
    }

    /// Frees the memory for building responses beyond so many bytes.
    #[cold]
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.draft.clear();
        self.draft.shrink_to(bytes);
        self.scratch.clear(bytes);
    }

    /// Calls the service, and responds unless that is deferred.
    ///
    /// Always inlined, as is each function on the common path: otherwise arguments and results would go
    /// through memory.
    #[inline(always)]
    pub(crate) fn call(
        &mut self,
        service: &impl Service,
        request: &Request<'_>,
        facts: RequestFacts,
        calls: &mut Calls,
    ) -> Outcome {
        let draft = &mut self.draft;
        let caught = panics::catch(|| service.respond(request, &mut Response::or_later(draft, &mut *calls)));
        self.called(caught, request, facts, calls)
    }

    /// Calls a service that a reload has replaced.
    #[cold]
    pub(crate) fn call_replaced(
        &mut self,
        service: &dyn Service,
        request: &Request<'_>,
        facts: RequestFacts,
        calls: &mut Calls,
    ) -> Outcome {
        let draft = &mut self.draft;
        let caught = panics::catch(|| service.respond(request, &mut Response::or_later(draft, &mut *calls)));
        self.called(caught, request, facts, calls)
    }

    /// Runs the guards of a service. Unless they let the request pass, [`called`](Self::called) follows.
    pub(crate) fn guard(
        &mut self,
        service: &impl Service,
        request: &Request<'_>,
        calls: &mut Calls,
    ) -> Result<Option<GuardsPassed>, Box<Panic>> {
        let mut response = Response::or_later(&mut self.draft, calls);
        panics::catch(|| service.guard(request, &mut response))
    }

    /// Responds after a call of the service, unless that is deferred.
    #[inline(always)]
    pub(crate) fn called(
        &mut self,
        caught: Result<(), Box<Panic>>,
        request: &Request<'_>,
        facts: RequestFacts,
        calls: &mut Calls,
    ) -> Outcome {
        let fault = match caught {
            Err(panic) => Some(self.panicked(panic, named(&request.head()), calls)),
            Ok(()) if calls.deferral.is_some() || self.draft.upgrade.is_some() => {
                return self.handle_deferral(facts, calls);
            }
            Ok(()) => self.draft.fault.take(),
        };
        Outcome::Responded(self.respond(facts, fault))
    }

    /// Handles a call without an immediate response.
    #[cold]
    fn handle_deferral(&mut self, facts: RequestFacts, calls: &mut Calls) -> Outcome {
        if let Some(taker) = self.draft.upgrade.take() {
            let fault = self.draft.fault.take();
            let fault = self.upgrade(taker, fault);
            return Outcome::Responded(self.respond(facts, fault));
        }
        match calls.deferral.take() {
            Some(Deferral::Deferred(mut deferred)) => {
                deferred.added = calls.take_additions(&mut self.draft);
                Outcome::Deferred(Deferral::Deferred(deferred))
            }
            Some(Deferral::Full) | None => Outcome::Deferred(Deferral::Full),
        }
    }

    #[cold]
    fn panicked(&mut self, mut panic: Box<Panic>, request: String, calls: &mut Calls) -> Box<Fault> {
        if let Some(Deferral::Deferred(deferred)) = calls.deferral.take() {
            calls.withdraw(deferred);
        }
        panic.request = Some(request);
        Box::new(Fault::Panic(panic))
    }

    /// Responds with a draft that was built elsewhere. Swaps drafts, so that
    /// `draft` holds a used one for recycling: moving them would be the largest cost here.
    pub(crate) fn respond_with(
        &mut self,
        draft: &mut ResponseDraft,
        facts: RequestFacts,
        fault: Option<Box<Fault>>,
    ) -> Responded {
        std::mem::swap(&mut self.draft, draft);
        let mut fault = Fault::graver(fault, self.draft.fault.take());
        if let Some(taker) = self.draft.upgrade.take() {
            fault = self.upgrade(taker, fault);
        }
        self.respond(facts, fault)
    }

    /// Turns the response into a `101`, or a `200` of HTTP/2, unless it has failed. The connection is handed over once
    /// that is sent, the stream at the end of the turn.
    #[cold]
    fn upgrade(&mut self, taker: Taker, mut fault: Option<Box<Fault>>) -> Option<Box<Fault>> {
        if self.draft.framing().is_some() {
            let why = "a handler upgraded with a response that it streams".to_owned();
            fault = Fault::graver(fault, Some(Box::new(Fault::Built(why))));
        }
        if !fault.as_ref().is_some_and(|fault| fault.fails()) {
            self.draft.clear_content();
            if self.http2.as_ref().is_some_and(|many| many.has_all_tunnels()) {
                Response::new(&mut self.draft).status(503).text("Too many tunnels on this connection.\n");
                return fault;
            }
            match &mut self.http2 {
                None => (self.draft.status, self.draft.close) = (SWITCHING_PROTOCOLS, true),
                Some(many) => (self.draft.status, many.opens_tunnel) = (200, true),
            }
            if taker.expects_continue {
                self.append_continue();
            }
            self.taker = Some(taker);
        }
        fault
    }

    /// Encodes the draft, or its head if its body is streamed: at once for an immediate response, when its handler is
    /// done or begins a stream for a deferred one.
    #[inline(always)]
    fn respond(&mut self, facts: RequestFacts, fault: Option<Box<Fault>>) -> Responded {
        let fault = match fault {
            None => None,
            fault => self.settle(fault),
        };
        if facts.method == Method::Connect {
            self.refuse_connect();
        }
        let status = self.draft.status;
        let content = ResponseContent::of(facts.method, status);
        let disposition = self.disposition(facts, content);
        self.append(facts, content, disposition);
        Responded { disposition, status, fault }
    }

    /// Replaces a successful response of a handler that has ignored an extended CONNECT: a `2xx` opens a tunnel, which has
    /// no content (RFC 9110 section 9.3.6).
    #[cold]
    fn refuse_connect(&mut self) {
        if self.taker.is_none() && matches!(self.draft.status, 200..300) {
            let tag = self.draft.tag;
            self.draft.clear();
            self.draft.tag = tag;
            Response::new(&mut self.draft).status(501).text("This resource is no tunnel.\n");
        }
    }

    /// Encodes a refusal with a sentence of plain text (without a body for `HEAD`, RFC 9110 section 9.3.2);
    /// the connection is closed afterwards.
    pub(crate) fn refuse(&mut self, status: u16, why: &str, is_head: bool) {
        let mut response = Response::new(&mut self.draft);
        response.status(status).text(why);
        self.draft.bytes.push(b'\n');
        let method = if is_head { Method::Head } else { Method::Get };
        let facts = RequestFacts { method, is_last: true, ..RequestFacts::default() };
        self.append(facts, ResponseContent::of(method, status), Disposition::Last);
    }

    /// Returns the bytes of a response that a handler sets.
    #[cfg(test)]
    pub(crate) fn encoded(&mut self, method: Method, handler: impl FnOnce(&mut Response<'_>)) -> Vec<u8> {
        let version = shearwater_http1::Version::Http11;
        let facts = RequestFacts { method, version, keep_alive: true, is_followed: false, is_last: false };
        self.out = Output::new();
        let fault = match panics::catch(|| handler(&mut Response::new(&mut self.draft))) {
            Err(panic) => Some(self.panicked(panic, String::new(), &mut Calls::for_tests())),
            Ok(()) => self.draft.fault.take(),
        };
        self.respond(facts, fault);
        self.out.bytes().to_vec()
    }

    /// Appends `100 Continue` (RFC 9110 section 10.1.1).
    pub(crate) fn append_continue(&mut self) {
        match &mut self.http2 {
            None => http1::interim(self.out.bytes_mut()),
            Some(many) => http2::interim(many, &mut self.out),
        }
    }

    /// Appends what a handler has queued of a streamed body, and the end of that if it is reached.
    pub(crate) fn append_stream(&mut self, shared: &Shared, has_body: bool, is_end: bool) {
        match &mut self.http2 {
            None => shared.take_stream(self.out.bytes_mut(), has_body, is_end),
            Some(many) => many.take_stream(shared, has_body, is_end),
        }
    }

    /// Replaces a failed response by a plain `500`.
    #[cold]
    fn settle(&mut self, fault: Option<Box<Fault>>) -> Option<Box<Fault>> {
        self.draft.fault = fault;
        self.draft.settle();
        self.draft.fault.take()
    }

    #[inline(always)]
    fn disposition(&self, facts: RequestFacts, content: ResponseContent) -> Disposition {
        if !facts.keep_alive
            || facts.is_last
            || self.draft.close
            || self.draft.framing() == Some(ResponseFraming::Close) && content.is_whole()
            || self.ends_connections && !facts.is_followed
        {
            if self.draft.status == SWITCHING_PROTOCOLS { Disposition::HandOver } else { Disposition::Last }
        } else {
            Disposition::Keep
        }
    }

    /// Encodes the draft.
    #[inline(always)]
    fn append(&mut self, facts: RequestFacts, content: ResponseContent, disposition: Disposition) {
        self.begun_at = self.out.len();
        let encoded = match &mut self.http2 {
            None => {
                let form = Form { version: facts.version, content, disposition };
                http1::response(&mut self.out, &self.preamble, &mut self.draft, form)
            }
            Some(many) => {
                let outputs = (&mut self.out, &mut self.scratch);
                http2::response(many, outputs, &self.preamble, &mut self.draft, content)
            }
        };
        self.head_bytes = encoded.head_bytes;
        if let Some(file) = encoded.sent {
            self.open_files.keep(file);
        }
    }
}
