//! State shared by a deferred handler and its worker. One thread: cells, no locks.

use std::cell::{Cell, OnceCell, RefCell};
use std::mem;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Waker;

use shearwater_http1::{Head, HeadLimits, HeadParser, ResponseContent, ResponseFraming, Trailers, Version};
use shearwater_io::Token;
use shearwater_tasks::{TaskId, Timers};

use crate::deferred::clock::Clock;
use crate::deferred::deferral::Around;
use crate::deferred::inbound::{Inbound, TrailerSection};
use crate::deferred::outbound::{Coder, Outbound, Progress};
use crate::limits::{CALL_INPUT_BYTES_MAX, SPARE_BUFFER_BYTES_MAX};
use crate::proxies::Proxies;
use crate::request::guards::WaitingGuard;
use crate::request::tls_session::TlsSession;
use crate::request::{ConnectionId, DriverView, Request};
use crate::response::draft::ResponseDraft;
use crate::service::Context;

/// A deferred request. Recycled when both sides have dropped it.
pub(crate) struct Shared {
    parser: HeadParser,
    head: Vec<u8>,
    body: Vec<u8>,
    /// The body was not stored in `body`.
    is_unkept: bool,
    token: Token,
    peer: Option<SocketAddr>,
    client: Option<SocketAddr>,
    pub(crate) is_secure: bool,
    pub(crate) tls: Option<TlsSession>,
    /// A client that has sent a FIN counts as disconnected.
    ends_with_client: Cell<bool>,
    context: Option<Rc<dyn Context>>,
    /// Bytes that all exchanges of this worker hold for clients, and this one's part.
    held: Rc<Cell<usize>>,
    own: Cell<usize>,
    /// The connection is closed; the call remains with the program.
    is_gone: Cell<bool>,
    clock: Rc<Clock>,
    input: RefCell<Inbound>,
    trailers: OnceCell<Box<TrailerSection>>,
    pub(crate) output: RefCell<Outbound>,
    /// Task that moves what a coder has encoded.
    pub(crate) coder_task: Cell<Option<TaskId>>,
    pub(crate) guard: Cell<Option<WaitingGuard>>,
    /// Steps around the response with their keys, in the order in which they run.
    steps: RefCell<Vec<(Rc<dyn Around>, u64)>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.changed(self.own.get(), 0);
    }
}

impl Shared {
    pub(crate) fn new(limits: HeadLimits, held: Rc<Cell<usize>>, clock: Rc<Clock>) -> Self {
        Self {
            parser: HeadParser::without_room(limits),
            head: Vec::new(),
            body: Vec::new(),
            is_unkept: false,
            token: Token::new(0, 0),
            peer: None,
            client: None,
            is_secure: false,
            tls: None,
            ends_with_client: Cell::new(false),
            context: None,
            held,
            own: Cell::new(0),
            is_gone: Cell::new(false),
            clock,
            input: RefCell::default(),
            trailers: OnceCell::new(),
            output: RefCell::default(),
            coder_task: Cell::default(),
            guard: Cell::default(),
            steps: RefCell::default(),
        }
    }

    /// Copies the request, which the worker only lends. `handler_bytes` is the memory of its handler's future and response.
    pub(crate) fn open(&mut self, request: &Request<'_>, peer: Option<SocketAddr>, handler_bytes: usize) {
        let head = request.head();
        self.parser.adopt(&head);
        self.head.extend_from_slice(head.raw());
        self.body.extend_from_slice(request.kept_body().unwrap_or_default());
        self.is_unkept = request.kept_body().is_none();
        self.client = match request.proxies() {
            None => peer,
            Some(_) => request.client(),
        };
        (self.is_secure, self.tls) = (request.is_secure(), request.tls());
        (self.token, self.peer) = (request.token(), peer);
        self.context = request.context().and_then(Context::kept);
        self.input.get_mut().is_over = true;
        let buffers = self.head.capacity() + self.body.capacity() + self.input.get_mut().bytes.capacity();
        let response = size_of::<ResponseDraft>() + self.output.get_mut().stream.capacity();
        self.changed(0, size_of::<Self>() + self.parser.held_bytes() + buffers + response + handler_bytes);
    }

    /// Drops the request; keeps a little memory.
    pub(crate) fn close(&mut self) {
        self.changed(self.own.get(), 0);
        self.is_gone.set(false);
        for buffer in [&mut self.head, &mut self.body] {
            buffer.clear();
            buffer.shrink_to(SPARE_BUFFER_BYTES_MAX);
        }
        self.ends_with_client.set(false);
        self.coder_task.set(None);
        (self.context, self.tls, self.guard) = (None, None, Cell::default());
        self.input.get_mut().clear();
        self.trailers.take();
        self.output.get_mut().clear();
        self.steps.get_mut().clear();
    }

    /// Returns the memory held for its client, in bytes, including itself.
    pub(crate) fn held_bytes(&self) -> usize {
        self.own.get()
    }

    /// Detaches it from its closed connection while the program still holds the call.
    pub(crate) fn leave(&self) {
        self.is_gone.set(true);
        let mut input = self.input.borrow_mut();
        let trailers = self.trailers.get().map_or(0, |section| section.forget());
        self.changed(input.bytes.capacity() + trailers, 0);
        (input.bytes, input.is_over) = (Vec::new(), true);
        let reader = input.reader.take();
        drop(input);
        let mut output = self.output.borrow_mut();
        self.clear_stream(&mut output);
        let before = output.stream.capacity();
        output.stream.drop_trailers();
        self.changed(before, output.stream.capacity());
        self.coder_task.set(None);
        let coder = output.coder.take();
        self.changed(coder.as_ref().map_or(0, |coder| coder.counted), 0);
        drop(output);
        self.steps.borrow_mut().clear();
        reader.into_iter().for_each(Waker::wake);
        self.wake_writer();
    }

    /// Accounts for a part that grew or shrank from `before` to `after` bytes.
    pub(crate) fn changed(&self, before: usize, after: usize) {
        self.held.set(self.held.get() + after - before);
        self.own.set(self.own.get() + after - before);
    }

    fn clear_stream(&self, output: &mut Outbound) {
        let before = output.stream.capacity();
        output.stream.clear();
        self.changed(before, output.stream.capacity());
    }

    pub(crate) fn head(&self) -> Head<'_> {
        self.parser.head(&self.head)
    }

    pub(crate) fn kept_body(&self) -> Option<&[u8]> {
        (!self.is_unkept).then_some(&*self.body)
    }

    /// Returns the help for a handler that reads to the end but misses the body; `None` if it misses nothing.
    pub(crate) fn why_unread(&self) -> Option<&'static str> {
        match self.input.borrow().comes {
            true => None,
            false if self.is_unkept => Some("its service chooses `BodyPolicy::Call`"),
            false if !self.body.is_empty() => Some("`kept_body()` has all of it"),
            false => None,
        }
    }

    /// Returns the request, without a router's context.
    pub(crate) fn request<'a>(&'a self, proxies: Option<&'a Proxies>) -> Request<'a> {
        Request::new(self.head(), self.kept_body(), self, proxies, self.token)
    }

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    pub(crate) fn client(&self) -> Option<SocketAddr> {
        self.client
    }

    pub(crate) fn context(&self) -> Option<&dyn Context> {
        self.context.as_deref()
    }

    pub(crate) fn timers(&self) -> &Rc<Timers> {
        &self.clock.timers
    }

    pub(crate) fn connection(&self) -> ConnectionId {
        ConnectionId::of(self.token)
    }

    /// Handler: see [`Call::end_with_client`](crate::Call::end_with_client).
    pub(crate) fn end_with_client(&self) {
        self.ends_with_client.set(true);
    }

    /// Worker: returns true if the handler ends with its client.
    pub(crate) fn ends_with_client(&self) -> bool {
        self.ends_with_client.get()
    }
}

/// Request body.
impl Shared {
    /// Marks the body as still to be received.
    pub(crate) fn expect_body(&self) {
        let mut input = self.input.borrow_mut();
        (input.is_over, input.comes) = (false, true);
    }

    /// Worker: queues the next piece of the body.
    pub(crate) fn put(&self, bytes: &[u8]) {
        let mut input = self.input.borrow_mut();
        let before = input.bytes.capacity();
        input.bytes.extend_from_slice(bytes);
        self.changed(before, input.bytes.capacity());
        drop(input);
        self.wake_reader();
    }

    /// Worker: keeps a part of the trailer section, whose size the decoder limits.
    #[cold]
    pub(crate) fn put_trailers(&self, bytes: &[u8]) {
        let (before, after) = self.trailers.get_or_init(Box::default).put(bytes);
        self.changed(before, after);
    }

    /// Worker: returns the trailer section so far, which the handler hasn't asked for.
    pub(crate) fn received_trailers(&self) -> Vec<u8> {
        self.trailers.get().map_or_else(Vec::new, |section| section.received())
    }

    /// Worker: marks the body as complete.
    pub(crate) fn end_body(&self) {
        self.input.borrow_mut().is_over = true;
        self.wake_reader();
    }

    fn wake_reader(&self) {
        // Not within the borrow: a waker may poll at once.
        let reader = self.input.borrow_mut().reader.take();
        reader.into_iter().for_each(Waker::wake);
    }

    /// Worker: returns true if more of the body may be queued.
    pub(crate) fn has_room(&self) -> bool {
        self.input.borrow().bytes.len() < CALL_INPUT_BYTES_MAX
    }

    /// Worker: returns the length of the queued body, in bytes.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.input.borrow().bytes.len()
    }

    /// Worker: returns true if the handler waits for the body and none is queued.
    pub(crate) fn is_wanted(&self) -> bool {
        self.input.borrow().is_wanted
    }

    /// Handler: swaps `piece` for the queued body, which stays accounted until the next call. Returns false
    /// at the body's end; `None` if nothing is queued, and wakes `waker` later.
    pub(crate) fn take(&self, piece: &mut Vec<u8>, waker: &Waker) -> Option<bool> {
        piece.clear();
        let mut input = self.input.borrow_mut();
        self.changed(input.taken_bytes, piece.capacity());
        input.take(piece, waker)
    }

    /// Handler: returns the trailers once the body is complete and was taken.
    pub(crate) fn trailers(&self) -> Trailers<'_> {
        let input = self.input.borrow();
        let is_read = input.is_over && input.bytes.is_empty();
        Trailers::new(self.trailers.get().filter(|_| is_read).map_or(&[], |section| section.lines()))
    }
}

/// Response.
impl Shared {
    /// Handler: starts a stream with its head.
    pub(crate) fn begin(&self, draft: Box<ResponseDraft>, framing: ResponseFraming) {
        let mut output = self.output.borrow_mut();
        if output.draft.is_none() && !output.stream.is_begun() {
            let head = self.head();
            let is_sent = ResponseContent::of(head.method(), draft.status).is_whole();
            output.stream.begin(framing, is_sent, head.version() == Version::Http2);
            output.draft = Some(draft);
        }
    }

    /// Handler: queues the next bytes of the stream.
    pub(crate) fn push(&self, bytes: &[u8]) {
        if self.is_gone.get() {
            return;
        }
        let Outbound { stream, coder, .. } = &mut *self.output.borrow_mut();
        let bytes = stream.count(bytes);
        match coder {
            Some(coder) => {
                coder.inner.push(bytes);
                self.account(coder);
            }
            None => {
                let before = stream.capacity();
                stream.queue().extend_from_slice(bytes);
                self.changed(before, stream.capacity());
            }
        }
    }

    pub(crate) fn account(&self, coder: &mut Coder) {
        let before = mem::replace(&mut coder.counted, coder.inner.held_bytes());
        self.changed(before, coder.counted);
    }

    /// Handler: adds a trailer field. An invalid one aborts the response.
    pub(crate) fn push_trailer(&self, name: &str, value: &[u8]) {
        if self.is_gone.get() {
            return;
        }
        let output = &mut *self.output.borrow_mut();
        let before = output.stream.capacity();
        let pushed = output.stream.push_trailer(name, value);
        self.changed(before, output.stream.capacity());
        if let Err(why) = pushed {
            output.cut.get_or_insert(why);
        }
    }

    /// Handler: returns true if the connection is closed.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// Handler: returns true if there is room for more; if not, `waker` is woken when there is.
    pub(crate) fn has_output_room(&self, waker: &Waker) -> bool {
        let mut output = self.output.borrow_mut();
        let has_room = output.has_room();
        if !has_room {
            output.writer = Some(waker.clone());
        }
        has_room
    }

    /// Handler: completes the response and frees the last piece of the body.
    pub(crate) fn end(&self, draft: Option<Box<ResponseDraft>>) {
        self.changed(mem::take(&mut self.input.borrow_mut().taken_bytes), 0);
        let mut output = self.output.borrow_mut();
        if !output.stream.is_begun() {
            output.draft = draft;
        }
        output.is_over = true;
        output.coder.iter_mut().for_each(|coder| coder.inner.end());
    }

    /// Handler: aborts the response.
    pub(crate) fn cut(&self, why: String) {
        self.output.borrow_mut().cut = Some(why);
    }

    /// Worker: returns the reason for an aborted response.
    pub(crate) fn why_cut(&self) -> String {
        let why = self.output.borrow_mut().cut.take();
        why.unwrap_or_else(|| "a handler has sent less than it had announced".to_owned())
    }

    /// Worker: returns true if the handler has dropped its call.
    pub(crate) fn is_over(&self) -> bool {
        self.output.borrow().is_over
    }

    /// Worker: returns true if the bytes of a stream are sent: not for a method or status without a body.
    pub(crate) fn sends_stream(&self) -> bool {
        self.output.borrow().stream.is_sent()
    }

    /// Worker: returns the progress of the response.
    pub(crate) fn progress(&self) -> Progress {
        self.output.borrow().progress()
    }

    /// Worker: takes the head that is to be sent.
    pub(crate) fn take_draft(&self) -> Option<Box<ResponseDraft>> {
        self.output.borrow_mut().draft.take()
    }

    /// Worker: moves the queued bytes to `out`, and the stream's end if it is reached. Without a body on the
    /// wire (`HEAD`, `204`) they are discarded.
    pub(crate) fn take_stream(&self, out: &mut Vec<u8>, has_body: bool, is_end: bool) {
        let mut output = self.output.borrow_mut();
        if has_body {
            output.stream.append_to(out, is_end);
        }
        self.clear_stream(&mut output);
    }

    /// Worker: moves the queued content to `queue`. Returns the trailers if the end is reached.
    pub(crate) fn take_content(&self, queue: &mut Vec<u8>, has_body: bool, is_end: bool) -> Vec<u8> {
        let mut output = self.output.borrow_mut();
        if has_body {
            queue.extend_from_slice(output.stream.queue());
        }
        let trailers = if is_end { output.stream.trailers().to_vec() } else { Vec::new() };
        self.clear_stream(&mut output);
        trailers
    }

    /// Worker: wakes the handler after its bytes were sent.
    pub(crate) fn wake_writer(&self) {
        let writer = self.output.borrow_mut().writer.take();
        writer.into_iter().for_each(Waker::wake);
    }

    /// Worker: returns true if the handler has pushed more than it had announced.
    pub(crate) fn has_surplus(&self) -> bool {
        self.output.borrow().stream.has_surplus()
    }
}

/// Steps around the response.
impl Shared {
    pub(crate) fn add_step(&self, step: Rc<dyn Around>, key: u64) {
        self.steps.borrow_mut().push((step, key));
    }

    pub(crate) fn has_steps(&self) -> bool {
        !self.steps.borrow().is_empty()
    }

    /// Returns the step with this number.
    pub(crate) fn step(&self, number: usize) -> Option<(Rc<dyn Around>, u64)> {
        self.steps.borrow().get(number).cloned()
    }

    /// Moves the steps from this number on behind those of an exchange that continues this one.
    pub(crate) fn pass_steps(&self, from: usize, next: &Self) {
        next.steps.borrow_mut().extend(self.steps.borrow_mut().drain(from..));
    }
}

impl DriverView for Shared {
    fn peer_of(&self, _: Token) -> Option<SocketAddr> {
        self.peer
    }

    fn client_of(&self, _: Token, _: &Head<'_>, _: Option<&Proxies>) -> Option<SocketAddr> {
        self.client
    }

    fn tls_of(&self, _: Token) -> Option<TlsSession> {
        self.tls.clone()
    }

    fn is_secured(&self, _: Token) -> bool {
        self.is_secure
    }

    fn unix_now(&self) -> u64 {
        self.clock.unix_seconds()
    }

    fn ms_now(&self) -> u64 {
        self.clock.timers.now_ms()
    }
}
