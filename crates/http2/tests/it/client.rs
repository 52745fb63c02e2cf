//! A client that sends any bytes, and reads frames.

use shearwater_http1::ParseError;
use shearwater_http2::{
    Connection, ConnectionError, ErrorCode, HeadBuffer, PREFACE, ResponseHead, StreamError, StreamEvent,
    StreamId, limits::Limits,
};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RESET: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GO_AWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const PRIORITY_UPDATE: u8 = 16;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
/// A whole header block that ends its stream.
pub(crate) const WHOLE: u8 = END_HEADERS | END_STREAM;

/// A received event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Number, head as text, end.
    Request(u32, String, bool),
    Rejected(u32, ParseError),
    Data(u32, Vec<u8>, bool),
    /// Number, lines.
    Trailers(u32, String),
    Reset(u32, ErrorCode),
    Failed(u32, StreamError),
}

/// A frame that the server has sent.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, flags, stream, payload } = self;
        write!(f, "({kind}, {flags:#x}, {stream}, \"{}\")", payload.escape_ascii())
    }
}

/// Encodes a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Encodes fields without any table.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    let string = |text: &str, block: &mut Vec<u8>| {
        match text.len() {
            len @ ..127 => block.push(len as u8),
            len => {
                let rest = len - 127;
                assert!(rest < 1 << 21, "a longer string than tests need");
                block.extend([127, rest as u8 | 0x80, (rest >> 7) as u8 | 0x80, (rest >> 14) as u8]);
            }
        }
        block.extend_from_slice(text.as_bytes());
    };
    for (name, value) in fields {
        block.push(0);
        string(name, &mut block);
        string(value, &mut block);
    }
    block
}

pub(crate) const GET: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/")];
pub(crate) const POST: &[(&str, &str)] =
    &[(":method", "POST"), (":scheme", "https"), (":authority", "a.test"), (":path", "/up")];

/// Encodes a request without content.
pub(crate) fn get(stream: u32) -> Vec<u8> {
    frame(HEADERS, WHOLE, stream, &block(GET))
}

/// Encodes a request with further fields; its content follows.
pub(crate) fn post(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &block(&[POST, fields].concat()))
}

pub(crate) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

pub(crate) fn reset(stream: u32, code: ErrorCode) -> Vec<u8> {
    frame(RESET, 0, stream, &(code as u32).to_be_bytes())
}

/// Encodes SETTINGS of the client.
pub(crate) fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let bytes = |&(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &settings.iter().flat_map(bytes).collect::<Vec<u8>>())
}

/// Splits what the server has sent.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some(([l0, l1, l2, kind, flags, s0, s1, s2, s3], rest)) = bytes.split_first_chunk() {
        let len = u32::from_be_bytes([0, *l0, *l1, *l2]) as usize;
        let (payload, after) = rest.split_at(len);
        let stream = u32::from_be_bytes([*s0, *s1, *s2, *s3]);
        frames.push(Frame { kind: *kind, flags: *flags, stream, payload: payload.to_vec() });
        bytes = after;
    }
    assert!(bytes.is_empty(), "a part of a frame is left");
    frames
}

/// A connection with its client's side.
pub(crate) struct Client {
    pub(crate) server: Connection,
    pub(crate) head: HeadBuffer,
    /// Bytes that the server wrote, and that weren't read.
    pub(crate) out: Vec<u8>,
    /// Input that wasn't consumed.
    rest: Vec<u8>,
}

impl Client {
    /// Connects; reads neither the server's SETTINGS nor its acknowledgement.
    pub(crate) fn raw(limits: Limits) -> Self {
        let mut out = Vec::new();
        let server = Connection::new(limits, 0, &mut out);
        Self { server, head: HeadBuffer::new(limits.head), out, rest: Vec::new() }
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let mut client = Self::raw(limits);
        client.send(&[&PREFACE[..], &settings(&[]), &frame(SETTINGS, ACK, 0, b"")].concat());
        client.frames();
        client.server.output_sent();
        client
    }

    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    /// Sends bytes; returns the events up to the connection's end.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> (Vec<Seen>, Result<(), ConnectionError>) {
        self.rest.extend_from_slice(bytes);
        let (mut seen, mut at) = (Vec::new(), 0);
        let result = loop {
            match self.server.receive(&self.rest[at..], &mut self.head, &mut self.out) {
                Err(error) => break Err(error),
                Ok(step) => {
                    at += step.consumed;
                    seen.push(match step.event {
                        StreamEvent::More => break Ok(()),
                        StreamEvent::Request { stream, ends } => {
                            let text = self.head.head().raw().escape_ascii().to_string();
                            Seen::Request(stream.number(), text.replace("\\r\\n", "\n"), ends)
                        }
                        StreamEvent::Rejected { stream, error } => Seen::Rejected(stream.number(), error),
                        StreamEvent::Data { stream, content, ends } => {
                            Seen::Data(stream.number(), content.to_vec(), ends)
                        }
                        StreamEvent::Trailers { stream } => {
                            let lines = self.head.trailer_section().escape_ascii().to_string();
                            Seen::Trailers(stream.number(), lines.replace("\\r\\n", "\n"))
                        }
                        StreamEvent::Reset { stream, code } => Seen::Reset(stream.number(), code),
                        StreamEvent::Failed { stream, error } => Seen::Failed(stream.number(), error),
                    });
                }
            }
        };
        self.rest.drain(..at);
        (seen, result)
    }

    /// Sends bytes that the connection survives; returns the events.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Vec<Seen> {
        let (seen, result) = self.try_send(bytes);
        assert_eq!(result, Ok(()), "after {seen:?}");
        seen
    }

    /// Sends bytes that end the connection; checks its GOAWAY, and returns the reason.
    pub(crate) fn fail(&mut self, bytes: &[u8]) -> ConnectionError {
        let error = self.try_send(bytes).1.expect_err("the connection fails");
        let frames = self.frames();
        let last = frames.last().expect("a GOAWAY");
        assert_eq!((last.kind, last.stream), (GO_AWAY, 0));
        assert_eq!(last.payload[4..8], (error.code() as u32).to_be_bytes());
        assert_eq!(last.payload[8..], *error.name().as_bytes());
        assert_eq!((self.try_send(b"").1, self.server.failure()), (Err(error), Some(error)));
        assert!(self.server.is_finished() && self.frames().is_empty());
        error
    }

    /// Returns the server's frames since the last call.
    pub(crate) fn frames(&mut self) -> Vec<Frame> {
        frames(&std::mem::take(&mut self.out))
    }

    /// Begins a response with content.
    pub(crate) fn respond(&mut self, stream: u32) {
        let head = ResponseHead { status: 200, ..ResponseHead::default() };
        assert!(self.server.respond(StreamId::new(stream), &head, false, &mut self.out));
    }

    /// Responds without content.
    pub(crate) fn respond_whole(&mut self, stream: u32) {
        let head = ResponseHead { status: 204, ..ResponseHead::default() };
        assert!(self.server.respond(StreamId::new(stream), &head, true, &mut self.out));
    }

    /// Consumes content of a request.
    pub(crate) fn consume(&mut self, stream: u32, bytes: usize) {
        self.server.consumed(StreamId::new(stream), bytes, &mut self.out);
    }
}
