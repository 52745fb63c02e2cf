//! What a handler that may wait shares with its worker. One thread: cells, no locks.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Waker;

use shearwater_http1::{Head, HeadLimits, HeadParser, ResponseContent, StreamFraming};
use shearwater_io::Token;

use crate::call::stream::Stream;
use crate::context::Context;
use crate::limits::{CALL_INPUT_BYTES_MAX, SPARE_BUFFER_BYTES_MAX};
use crate::request::{ConnectionId, Request};
use crate::response::Parts;

/// One request that is answered later. Used again for another when both sides have let go of it.
pub(crate) struct Exchange {
    parser: HeadParser,
    head: Vec<u8>,
    body: Vec<u8>,
    /// There was a body that isn't in `body`.
    is_unkept: bool,
    token: Token,
    peer: Option<SocketAddr>,
    /// A client that has ended its side is gone.
    ends_with_client: Cell<bool>,
    context: Option<Rc<dyn Context>>,
    /// Bytes that exchanges of this worker hold for their clients, and which of them this one does.
    held: Rc<Cell<usize>>,
    own: Cell<usize>,
    /// The connection is: whoever still has the call is told.
    is_gone: Cell<bool>,
    input: RefCell<Input>,
    output: RefCell<Output>,
}

/// The body on its way to the handler.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    is_over: bool,
    /// The body is handed to the handler as it arrives.
    comes: bool,
    /// The handler has looked for more than there was.
    is_wanted: bool,
    /// Capacity of the piece that the handler has taken, in bytes.
    taken_bytes: usize,
    reader: Option<Waker>,
}

/// The answer on its way to the worker.
#[derive(Default)]
struct Output {
    /// The head of a stream, or an answer as a whole.
    parts: Option<Box<Parts>>,
    stream: Stream,
    is_over: bool,
    /// Why the handler has given up: what it has begun can't be ended well.
    cut: Option<String>,
    writer: Option<Waker>,
}

impl Output {
    fn clear(&mut self) {
        self.stream.reset();
        (self.parts, self.is_over, self.cut, self.writer) = (None, false, None, None);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.changed(self.own.get(), 0);
    }
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The handler is at work and has said nothing yet.
    Nothing,
    /// It has begun a stream, the head of which waits to be sent.
    Begun,
    /// The head is sent, the stream goes on.
    Streams,
    /// The answer is there as a whole, and nothing of it is sent.
    Whole,
    /// The stream has ended; its rest waits to be sent.
    Ended,
    /// The stream can't be ended as its head has promised.
    Cut,
}

impl Exchange {
    pub(crate) fn new(limits: HeadLimits, held: Rc<Cell<usize>>) -> Self {
        Self {
            parser: HeadParser::without_room(limits),
            head: Vec::new(),
            body: Vec::new(),
            is_unkept: false,
            token: Token::new(0, 0),
            peer: None,
            ends_with_client: Cell::new(false),
            context: None,
            held,
            own: Cell::new(0),
            is_gone: Cell::new(false),
            input: RefCell::default(),
            output: RefCell::default(),
        }
    }

    /// Takes over a request: copies what the worker only lends. `future_bytes` is the size of its handler's future.
    pub(crate) fn open(
        &mut self,
        request: &Request<'_>,
        token: Token,
        peer: Option<SocketAddr>,
        future_bytes: usize,
    ) {
        let head = request.head();
        self.parser.adopt(&head);
        self.head.extend_from_slice(head.raw());
        self.body.extend_from_slice(request.kept_body().unwrap_or_default());
        self.is_unkept = request.kept_body().is_none();
        (self.token, self.peer) = (token, peer);
        self.context = request.context().and_then(Context::kept);
        self.input.get_mut().is_over = true;
        let buffers = self.head.capacity() + self.body.capacity() + self.input.get_mut().bytes.capacity();
        let answer = size_of::<Parts>() + self.output.get_mut().stream.capacity();
        self.changed(0, size_of::<Self>() + self.parser.held_bytes() + buffers + answer + future_bytes);
    }

    /// Forgets the request; keeps a little memory.
    pub(crate) fn close(&mut self) {
        self.changed(self.own.get(), 0);
        self.is_gone.set(false);
        for buffer in [&mut self.head, &mut self.body] {
            buffer.clear();
            buffer.shrink_to(SPARE_BUFFER_BYTES_MAX);
        }
        self.ends_with_client.set(false);
        self.context = None;
        let input = self.input.get_mut();
        input.bytes.clear();
        input.bytes.shrink_to(SPARE_BUFFER_BYTES_MAX);
        (input.is_over, input.comes, input.is_wanted, input.reader) = (false, false, false, None);
        input.taken_bytes = 0;
        self.output.get_mut().clear();
    }

    /// Memory held for its client, in bytes, including itself.
    pub(crate) fn held_bytes(&self) -> usize {
        self.own.get()
    }

    /// The connection is done with it, and somebody still has the call: nothing more comes, and nothing more is taken.
    pub(crate) fn leave(&self) {
        self.is_gone.set(true);
        let mut input = self.input.borrow_mut();
        self.changed(input.bytes.capacity(), 0);
        (input.bytes, input.is_over) = (Vec::new(), true);
        let reader = input.reader.take();
        drop(input);
        self.clear_stream(&mut self.output.borrow_mut());
        reader.into_iter().for_each(Waker::wake);
        self.wake_writer();
    }

    /// Counts a part that grew or shrank from `before` to `after` bytes.
    fn changed(&self, before: usize, after: usize) {
        self.held.set(self.held.get() + after - before);
        self.own.set(self.own.get() + after - before);
    }

    fn clear_stream(&self, output: &mut Output) {
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

    /// Returns the help for a handler that has read to the end and missed the body; `None` if it missed nothing.
    pub(crate) fn why_unread(&self) -> Option<&'static str> {
        match self.input.borrow().comes {
            true => None,
            false if self.is_unkept => Some("put `.read()` on its route (in a service: `BodyPolicy::Call`)"),
            false if !self.body.is_empty() => Some("`body()` has all of it"),
            false => None,
        }
    }

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    pub(crate) fn context(&self) -> Option<&dyn Context> {
        self.context.as_deref()
    }

    pub(crate) fn connection(&self) -> ConnectionId {
        ConnectionId::of(self.token)
    }

    /// Handler: what is said of it at [`Call::end_with_client`](crate::Call::end_with_client).
    pub(crate) fn end_with_client(&self) {
        self.ends_with_client.set(true);
    }

    /// Worker: whether that was said.
    pub(crate) fn ends_with_client(&self) -> bool {
        self.ends_with_client.get()
    }
}

/// The body.
impl Exchange {
    /// The body of the request is still to come.
    pub(crate) fn expect_body(&self) {
        let mut input = self.input.borrow_mut();
        (input.is_over, input.comes) = (false, true);
    }

    /// Worker: the next piece of the body.
    pub(crate) fn put(&self, bytes: &[u8]) {
        let mut input = self.input.borrow_mut();
        let before = input.bytes.capacity();
        input.bytes.extend_from_slice(bytes);
        self.changed(before, input.bytes.capacity());
        drop(input);
        self.wake_reader();
    }

    /// Worker: the body is complete.
    pub(crate) fn end_body(&self) {
        self.input.borrow_mut().is_over = true;
        self.wake_reader();
    }

    fn wake_reader(&self) {
        // Outside of the borrow: whoever is woken may look at once.
        let reader = self.input.borrow_mut().reader.take();
        reader.into_iter().for_each(Waker::wake);
    }

    /// Worker: whether more of the body may be put in.
    pub(crate) fn has_room(&self) -> bool {
        self.input.borrow().bytes.len() < CALL_INPUT_BYTES_MAX
    }

    /// Worker: whether the handler waits for a body of which nothing is there.
    pub(crate) fn is_wanted(&self) -> bool {
        self.input.borrow().is_wanted
    }

    /// Handler: changes `piece` for what has arrived. It counts until the next one is taken. `None`: nothing, and `waker` is woken when that
    /// changes. False at the body's end.
    pub(crate) fn take(&self, piece: &mut Vec<u8>, waker: &Waker) -> Option<bool> {
        piece.clear();
        let mut input = self.input.borrow_mut();
        self.changed(input.taken_bytes, piece.capacity());
        input.taken_bytes = piece.capacity();
        input.is_wanted = input.bytes.is_empty() && !input.is_over;
        if input.is_wanted {
            input.reader = Some(waker.clone());
            return None;
        }
        std::mem::swap(piece, &mut input.bytes);
        input.taken_bytes = piece.capacity();
        Some(!piece.is_empty())
    }
}

/// The answer.
impl Exchange {
    /// Handler: the head of a stream.
    pub(crate) fn begin(&self, parts: Box<Parts>, framing: StreamFraming) {
        let mut output = self.output.borrow_mut();
        if output.parts.is_none() && !output.stream.is_begun() {
            let head = self.head();
            let is_sent = ResponseContent::of(head.method(), parts.status).is_whole();
            output.stream.begin(framing, is_sent);
            output.parts = Some(parts);
        }
    }

    /// Handler: the next bytes of the stream.
    pub(crate) fn push(&self, bytes: &[u8]) {
        if self.is_gone.get() {
            return;
        }
        let stream = &mut self.output.borrow_mut().stream;
        let before = stream.capacity();
        stream.push(bytes);
        self.changed(before, stream.capacity());
    }

    /// Handler: whether nobody takes anything any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// Handler: whether there is room for more; if not, `waker` is woken when there is.
    pub(crate) fn has_output_room(&self, waker: &Waker) -> bool {
        let mut output = self.output.borrow_mut();
        let has_room = output.stream.has_room();
        if !has_room {
            output.writer = Some(waker.clone());
        }
        has_room
    }

    /// Handler: the answer is complete, and the last piece of the body is freed.
    pub(crate) fn end(&self, parts: Option<Box<Parts>>) {
        self.changed(std::mem::take(&mut self.input.borrow_mut().taken_bytes), 0);
        let mut output = self.output.borrow_mut();
        if !output.stream.is_begun() {
            output.parts = parts;
        }
        output.is_over = true;
    }

    /// Handler: the answer can't be completed.
    pub(crate) fn cut(&self, why: String) {
        self.output.borrow_mut().cut = Some(why);
    }

    /// Worker: why it can't.
    pub(crate) fn why_cut(&self) -> String {
        let why = self.output.borrow_mut().cut.take();
        why.unwrap_or_else(|| "a handler has sent less than it had announced".to_owned())
    }

    /// Worker: whether the handler has said all that it will.
    pub(crate) fn is_over(&self) -> bool {
        self.output.borrow().is_over
    }

    /// Worker: how far the answer is.
    pub(crate) fn progress(&self) -> Progress {
        let output = self.output.borrow();
        match (output.stream.is_begun(), output.is_over) {
            (false, false) => Progress::Nothing,
            (false, true) if output.cut.is_some() => Progress::Cut,
            (false, true) => Progress::Whole,
            (true, _) if output.cut.is_some() || output.stream.falls_short(output.is_over) => Progress::Cut,
            (true, true) => Progress::Ended,
            (true, false) if output.parts.is_some() => Progress::Begun,
            (true, false) => Progress::Streams,
        }
    }

    /// Worker: the head that is to be sent.
    pub(crate) fn take_parts(&self) -> Option<Box<Parts>> {
        self.output.borrow_mut().parts.take()
    }

    /// Worker: moves what is to be sent behind `out`, and the stream's end if that is reached. Without a body (`HEAD`, `204`) it is thrown
    /// away.
    pub(crate) fn take_stream(&self, out: &mut Vec<u8>, has_body: bool, is_end: bool) {
        let mut output = self.output.borrow_mut();
        if has_body {
            out.extend_from_slice(output.stream.bytes());
        }
        if has_body && is_end {
            output.stream.append_end(out);
        }
        self.clear_stream(&mut output);
    }

    /// Worker: what was to be sent has gone.
    pub(crate) fn wake_writer(&self) {
        let writer = self.output.borrow_mut().writer.take();
        writer.into_iter().for_each(Waker::wake);
    }

    /// Worker: whether the handler has pushed more than it had announced.
    pub(crate) fn has_surplus(&self) -> bool {
        self.output.borrow().stream.has_surplus()
    }
}
