//! The client's side of a connection without I/O: received bytes in, responses and bytes to send out.

use std::collections::BTreeMap;
use std::mem;

use super::frame::{self, Frame};
use super::hpack::{Decoder, Fields, TABLE_BYTES};
use super::stream::{End, Stream};
use crate::error::{Error, malformed};
use crate::test_client::ClientResponse;

/// The first bytes of each connection (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Windows and payloads without a setting, bytes.
const WINDOW_BYTES: i64 = 65_535;
const PAYLOAD_BYTES_MAX: usize = 16_384;

/// The client's side of a connection. It checks what the server sends against RFC 9113.
///
/// Send [`take_output`](Self::take_output), pass what arrives to [`receive`](Self::receive), then ask for responses.
#[derive(Debug)]
pub struct Session {
    scheme: &'static str,
    decoder: Decoder,
    input: Vec<u8>,
    output: Vec<u8>,
    streams: BTreeMap<u32, Stream>,
    next_stream: u32,
    /// Bytes of content that the server permits.
    window: i64,
    /// Bytes with which the windows of streams begin: those of the server, and of the client.
    stream_windows: (i64, i64),
    /// Longest payloads: those that the server and the client permit.
    payload_max: (usize, usize),
    /// Bytes of content that the client permits.
    credit: i64,
    updates_windows: bool,
    /// Stream, end and beginning of a header block that continues.
    block: Option<(u32, bool, Vec<u8>)>,
    /// Last stream and code of the latest GOAWAY.
    go_away: Option<(u32, u32)>,
    is_over: bool,
    pings: Vec<Vec<u8>>,
}

impl Session {
    /// Begins a connection with these settings.
    pub fn new(settings: &[(u16, u32)]) -> Self {
        let of = |name, default| {
            settings.iter().find(|(given, _)| *given == name).map_or(default, |(_, value)| *value)
        };
        let payload_max = of(frame::MAX_FRAME_SIZE, PAYLOAD_BYTES_MAX as u32) as usize;
        Self {
            scheme: "https",
            decoder: Decoder::new(of(frame::HEADER_TABLE_SIZE, TABLE_BYTES as u32) as usize),
            input: Vec::new(),
            output: [PREFACE, &Frame::settings(settings).encode()].concat(),
            streams: BTreeMap::new(),
            next_stream: 1,
            window: WINDOW_BYTES,
            stream_windows: (WINDOW_BYTES, of(frame::INITIAL_WINDOW_SIZE, WINDOW_BYTES as u32).into()),
            payload_max: (PAYLOAD_BYTES_MAX, payload_max),
            credit: WINDOW_BYTES,
            updates_windows: true,
            block: None,
            go_away: None,
            is_over: false,
            pings: Vec::new(),
        }
    }

    /// Sends requests for `http`, as on a connection in clear.
    pub fn in_clear(self) -> Self {
        Self { scheme: "http", ..self }
    }

    /// Leaves WINDOW_UPDATE to [`grant`](Self::grant).
    pub fn stop_window_updates(&mut self) {
        self.updates_windows = false;
    }

    /// Permits more content of a stream, or of the connection for 0.
    pub fn grant(&mut self, stream: u32, bytes: u32) {
        match self.streams.get_mut(&stream) {
            Some(stream) => stream.credit += i64::from(bytes),
            None if stream == 0 => self.credit += i64::from(bytes),
            None => {}
        }
        self.push(&Frame::window_update(stream, bytes));
    }

    /// Queues any frame.
    pub fn push(&mut self, frame: &Frame) {
        self.output.extend(frame.encode());
    }

    /// Queues any bytes.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    /// Queues a request whose content follows; returns its stream. `fields` has all pseudo-headers.
    pub fn begin(&mut self, fields: &[(&str, &str)]) -> u32 {
        self.open(fields, false)
    }

    /// Returns the number of the next request's stream.
    pub fn next_stream(&self) -> u32 {
        self.next_stream
    }

    /// Queues a request without content; returns its stream.
    pub fn begin_whole(&mut self, fields: &[(&str, &str)]) -> u32 {
        self.open(fields, true)
    }

    fn open(&mut self, fields: &[(&str, &str)], is_end: bool) -> u32 {
        let number = self.next_stream;
        self.next_stream += 2;
        let method = fields.iter().find(|(name, _)| *name == ":method").map_or("", |(_, method)| *method);
        let mut stream = Stream::new(method, self.stream_windows.0, self.stream_windows.1);
        stream.end = if is_end { End::Sent } else { End::Open };
        self.streams.insert(number, stream);
        self.push_fields(number, fields, is_end);
        number
    }

    /// Queues a header block, in CONTINUATION frames if it is long.
    fn push_fields(&mut self, stream: u32, fields: &[(&str, &str)], is_end: bool) {
        let mut frame = Frame::headers(stream, fields, is_end);
        while frame.payload.len() > self.payload_max.0 {
            let rest = frame.payload.split_off(self.payload_max.0);
            frame.flags &= !frame::END_HEADERS;
            self.push(&frame);
            frame = Frame::new(frame::CONTINUATION, frame::END_HEADERS, stream, rest);
        }
        self.push(&frame);
    }

    /// Queues a whole request to `localhost`, for `https` unless in clear; returns its stream. Lower-case `fields`, whose `host` is the authority.
    pub fn send(&mut self, method: &str, target: &str, fields: &[(&str, &str)], body: &[u8]) -> u32 {
        let head = super::request_fields(self.scheme, method, target, fields);
        if body.is_empty() {
            return self.begin_whole(&head);
        }
        let stream = self.begin(&head);
        self.send_data(stream, body, true);
        stream
    }

    /// Queues content of a request; it is sent as the windows permit.
    pub fn send_data(&mut self, stream: u32, data: &[u8], is_end: bool) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.unsent.extend_from_slice(data);
            if is_end {
                stream.end = End::Queued;
            }
        }
        self.send_queued();
    }

    /// Queues the trailers of a request.
    pub fn send_trailers(&mut self, stream: u32, fields: &[(&str, &str)]) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            let owned = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            stream.end = End::Trailers(owned.collect());
        }
        self.send_queued();
    }

    /// Resets a stream; its response is no longer expected.
    pub fn reset(&mut self, stream: u32, code: u32) {
        self.streams.remove(&stream);
        self.push(&Frame::reset(stream, code));
    }

    /// Returns the bytes of request content that the server permits now on a stream, or on the connection for 0.
    pub fn window(&self, stream: u32) -> i64 {
        self.streams.get(&stream).map_or(self.window, |stream| stream.window)
    }

    /// Returns the number of bytes of request content that the windows hold back.
    pub fn unsent(&self, stream: u32) -> usize {
        self.streams.get(&stream).map_or(0, |stream| stream.unsent.len())
    }

    /// Returns the last stream and the code of the latest GOAWAY.
    pub fn go_away(&self) -> Option<(u32, u32)> {
        self.go_away
    }

    /// Returns the payloads of PINGs that the server has acknowledged.
    pub fn pings(&self) -> &[Vec<u8>] {
        &self.pings
    }

    /// Takes the bytes to send.
    pub fn take_output(&mut self) -> Vec<u8> {
        mem::take(&mut self.output)
    }

    /// Handles received bytes.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.receive_unread(bytes);
        while let Some(frame) = self.next_frame() {
            self.handle(&frame)?;
        }
        self.send_queued();
        Ok(())
    }

    /// Keeps received bytes for [`next_frame`](Self::next_frame).
    pub fn receive_unread(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Takes a frame without handling it.
    pub fn next_frame(&mut self) -> Option<Frame> {
        Frame::take(&mut self.input)
    }

    /// Handles the end of the connection.
    pub fn receive_end(&mut self) -> Result<(), Error> {
        self.is_over = true;
        if self.input.is_empty() { Ok(()) } else { Err(Error::Truncated) }
    }

    /// Returns true once the connection has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Decodes a header block.
    pub fn decode(&mut self, block: &[u8]) -> Result<Fields, Error> {
        self.decoder.decode(block)
    }

    /// Takes an interim response or the whole final one, if it has arrived.
    pub fn response(&mut self, stream: u32) -> Result<Option<ClientResponse>, Error> {
        self.take(stream, Stream::take_response)
    }

    /// Returns an interim response or the final head, if it has arrived. The body is left to [`data`](Self::data).
    pub fn head(&mut self, stream: u32) -> Result<Option<ClientResponse>, Error> {
        self.take(stream, Stream::take_head)
    }

    /// Takes the content of a frame of a response, if it has arrived; empty at the response's end.
    pub fn data(&mut self, stream: u32) -> Result<Option<Vec<u8>>, Error> {
        self.take(stream, Stream::take_data)
    }

    fn take<T>(&mut self, number: u32, take: fn(&mut Stream) -> Option<T>) -> Result<Option<T>, Error> {
        let is_refused = self.go_away.is_some_and(|(last, _)| number > last);
        let Some(stream) = self.streams.get_mut(&number) else { return Err(Error::Closed) };
        let taken = take(stream);
        let failure = stream.failure(self.is_over || is_refused);
        if stream.is_over() {
            self.streams.remove(&number);
        }
        if taken.is_none() { failure.map_or(Ok(None), Err) } else { Ok(taken) }
    }

    fn handle(&mut self, frame: &Frame) -> Result<(), Error> {
        if frame.payload.len() > self.payload_max.1 {
            return malformed("a frame beyond SETTINGS_MAX_FRAME_SIZE");
        }
        if self.block.is_some() && frame.kind != frame::CONTINUATION {
            return malformed("a header block is interrupted");
        }
        if frame.stream != 0 && (frame.stream.is_multiple_of(2) || frame.stream >= self.next_stream) {
            return malformed(format!("a frame of an idle stream: {frame:?}"));
        }
        match frame.kind {
            frame::DATA => self.handle_data(frame),
            frame::HEADERS => {
                let block = padded(frame)?.to_vec();
                self.block = Some((frame.stream, frame.has(frame::END_STREAM), block));
                self.end_block(frame)
            }
            frame::CONTINUATION => {
                match &mut self.block {
                    Some((stream, _, block)) if *stream == frame.stream => block.extend(&frame.payload),
                    _ => return malformed("CONTINUATION without HEADERS"),
                }
                self.end_block(frame)
            }
            frame::RST_STREAM => {
                let Some(code) = frame.number(0) else { return malformed("a short RST_STREAM") };
                if let Some(stream) = self.streams.get_mut(&frame.stream) {
                    (stream.reset, stream.end) = (Some(code), End::Sent);
                    stream.unsent.clear();
                }
                self.forget(frame.stream);
                Ok(())
            }
            frame::SETTINGS => self.handle_settings(frame),
            frame::PING if frame.has(frame::ACK) => {
                self.pings.push(frame.payload.clone());
                Ok(())
            }
            frame::PING => {
                self.push(&Frame { flags: frame::ACK, ..frame.clone() });
                Ok(())
            }
            frame::GOAWAY => {
                let (Some(last), Some(code)) = (frame.number(0), frame.number(4)) else {
                    return malformed("a short GOAWAY");
                };
                if self.go_away.is_some_and(|(before, _)| last > before) {
                    return malformed("a GOAWAY with a later stream than before");
                }
                self.go_away = Some((last, code));
                Ok(())
            }
            frame::WINDOW_UPDATE => self.handle_window_update(frame),
            frame::PUSH_PROMISE => malformed("PUSH_PROMISE"),
            // Unknown types are ignored (section 4.1).
            _ => Ok(()),
        }
    }

    fn handle_data(&mut self, frame: &Frame) -> Result<(), Error> {
        let data = padded(frame)?;
        let flow_bytes = frame.payload.len() as i64;
        self.credit -= flow_bytes;
        if self.credit < 0 {
            return malformed("content beyond the connection's window");
        }
        // Windows are filled up by halves: servers count updates.
        let missing = |full: i64, credit: i64| Some(full - credit).filter(|missing| *missing > full / 2);
        let mut increments = Vec::from_iter(missing(WINDOW_BYTES, self.credit).map(|bytes| (0, bytes)));
        // A stream that the client has reset may still get content.
        if let Some(stream) = self.streams.get_mut(&frame.stream) {
            stream.receive_data(data, flow_bytes, frame.has(frame::END_STREAM))?;
            let bytes = missing(self.stream_windows.1, stream.credit).filter(|_| stream.is_receiving());
            increments.extend(bytes.map(|bytes| (frame.stream, bytes)));
        }
        increments.retain(|_| self.updates_windows);
        for (stream, bytes) in increments {
            self.grant(stream, bytes as u32);
        }
        Ok(())
    }

    /// Handles a header block if its last frame has arrived.
    fn end_block(&mut self, frame: &Frame) -> Result<(), Error> {
        let Some((number, is_end, block)) = self.block.take_if(|_| frame.has(frame::END_HEADERS)) else {
            return Ok(());
        };
        let fields = self.decoder.decode(&block)?;
        // A stream that the client has reset may still get a head.
        self.streams.get_mut(&number).map_or(Ok(()), |stream| stream.receive_fields(fields, is_end))
    }

    fn handle_settings(&mut self, frame: &Frame) -> Result<(), Error> {
        if frame.has(frame::ACK) {
            return Ok(());
        }
        for (name, value) in frame.to_settings() {
            match name {
                frame::INITIAL_WINDOW_SIZE => {
                    let change = i64::from(value) - self.stream_windows.0;
                    self.stream_windows.0 += change;
                    self.streams.values_mut().for_each(|stream| stream.window += change);
                }
                frame::MAX_FRAME_SIZE => self.payload_max.0 = value as usize,
                _ => {}
            }
        }
        self.push(&Frame::new(frame::SETTINGS, frame::ACK, 0, []));
        Ok(())
    }

    fn handle_window_update(&mut self, frame: &Frame) -> Result<(), Error> {
        let Some(increment) = frame.number(0).filter(|increment| *increment > 0) else {
            return malformed("WINDOW_UPDATE without an increment");
        };
        match self.streams.get_mut(&frame.stream) {
            Some(stream) => stream.window += i64::from(increment),
            None if frame.stream == 0 => self.window += i64::from(increment),
            None => {}
        }
        Ok(())
    }

    /// Sends as much queued content as the windows permit.
    fn send_queued(&mut self) {
        for number in self.streams.keys().copied().collect::<Vec<_>>() {
            while let Some(frame) = self.next_data(number) {
                self.push(&frame);
            }
            self.send_end(number);
            self.forget(number);
        }
    }

    fn next_data(&mut self, number: u32) -> Option<Frame> {
        let stream = self.streams.get_mut(&number)?;
        let room = self.window.min(stream.window).max(0) as usize;
        let len = stream.unsent.len().min(room).min(self.payload_max.0);
        if len == 0 {
            return None;
        }
        let data: Vec<u8> = stream.unsent.drain(..len).collect();
        self.window -= len as i64;
        stream.window -= len as i64;
        let is_end = stream.unsent.is_empty() && stream.end == End::Queued;
        if is_end {
            stream.end = End::Sent;
        }
        Some(Frame::data(number, &data, is_end))
    }

    /// Sends an end that no content precedes.
    fn send_end(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number).filter(|stream| stream.unsent.is_empty()) else {
            return;
        };
        match mem::take(&mut stream.end) {
            End::Queued => {
                stream.end = End::Sent;
                self.push(&Frame::data(number, b"", true));
            }
            End::Trailers(fields) => {
                stream.end = End::Sent;
                let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
                self.push_fields(number, &fields, true);
            }
            end => stream.end = end,
        }
    }

    fn forget(&mut self, number: u32) {
        if self.streams.get(&number).is_some_and(Stream::is_over) {
            self.streams.remove(&number);
        }
    }
}

/// Returns the payload of a DATA or HEADERS frame without padding.
fn padded(frame: &Frame) -> Result<&[u8], Error> {
    if frame.stream == 0 {
        return malformed("a frame of the connection with content");
    }
    if !frame.has(frame::PADDED) {
        return Ok(&frame.payload);
    }
    let split = frame.payload.split_first();
    let data = split.and_then(|(len, rest)| rest.get(..rest.len().checked_sub(usize::from(*len))?));
    data.map_or_else(|| malformed("more padding than payload"), Ok)
}
