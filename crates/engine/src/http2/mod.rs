//! An HTTP/2 connection: frames and windows, which are the crate's `http2`, and the streams that have an exchange or content.
//!
//! Most streams have neither: a response that is ready at once and fits the windows is encoded when its request is complete.

pub(crate) mod outgoing;
pub(crate) mod tunnel;

use std::mem;

use shearwater_http2::{Connection, StreamId, limits::Limits as Http2Limits};
use shearwater_io::Output;

use crate::deferred::shared::Shared;
use crate::exchange::id::ExchangeId;
use crate::http2::outgoing::{End, Outgoing};
use crate::http2::tunnel::StreamTunnel;
use crate::limits::{MULTIPLEXED_ITEMS_MAX, MULTIPLEXED_OUTPUT_BYTES_MAX, TUNNELS_PER_CONNECTION_MAX};
use crate::observe::record::Group;

/// An open stream with an exchange, or with content that is to be sent.
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    pub(crate) exchange: ExchangeId,
    /// Memory of the exchange, as of the last time that it was stored.
    pub(crate) exchange_bytes: usize,
    pub(crate) outgoing: Outgoing,
    /// Time of its request, by the ledger.
    pub(crate) begun_us: u64,
    /// Record of the exchange, from the head of its response on; only with a listener.
    pub(crate) record: Option<Box<Group>>,
    /// Bytes received of the request's content.
    pub(crate) received: u64,
    /// Those of them for which no window was given back; without meaning for a tunnel.
    pub(crate) uncredited: usize,
    /// Content that arrived while a guard waits, or that the program of a tunnel hasn't taken; and whether it is all of it.
    pub(crate) early: Vec<u8>,
    pub(crate) is_early_whole: bool,
    /// Tunnel of an upgraded stream.
    pub(crate) tunnel: Option<Box<StreamTunnel>>,
}

impl Stream {
    fn new(id: StreamId, begun_us: u64) -> Self {
        Self {
            id,
            begun_us,
            exchange: ExchangeId::NONE,
            exchange_bytes: 0,
            outgoing: Outgoing::default(),
            record: None,
            received: 0,
            uncredited: 0,
            early: Vec::new(),
            is_early_whole: false,
            tunnel: None,
        }
    }

    /// Returns true if it has neither an exchange nor content, nor a tunnel.
    fn is_spent(&self) -> bool {
        let has_content = !self.outgoing.is_empty() || self.outgoing.end.is_some();
        self.exchange == ExchangeId::NONE && !has_content && self.tunnel.is_none()
    }
}

/// A stream whose content was appended to the output.
pub(crate) enum Filled {
    /// More of it is available.
    Partly,
    /// All that was available.
    Drained(ExchangeId),
    /// All that the program of a tunnel has sent so far.
    Tunnel(StreamId),
    /// All of a response that is cut off, or of a program that has broken off its tunnel.
    Cut(StreamId),
    /// The response is complete: its record, if there is one.
    Ended(Option<Box<Group>>),
}

/// State of an HTTP/2 connection.
pub(crate) struct Multiplexed {
    pub(crate) connection: Connection,
    /// Streams by number.
    streams: Vec<Stream>,
    /// Output that waits for the end of a send, or of the turn.
    pub(crate) pending: Output,
    /// Stream whose response is being encoded.
    pub(crate) current: StreamId,
    /// Time of this turn, by the ledger.
    pub(crate) now_us: u64,
    /// The response that was encoded last is complete.
    pub(crate) is_whole: bool,
    /// It opens a tunnel.
    pub(crate) opens_tunnel: bool,
    /// Input waits for the next turn, or for a send in flight.
    pub(crate) has_input: bool,
    /// Records of responses that end in `pending`.
    pub(crate) ended: Group,
    /// The output of handlers waits for the end of the turn.
    pub(crate) is_unflushed: bool,
    /// Time since which a frame, or a header block, has been incomplete.
    pub(crate) partial_since_ms: Option<u64>,
    /// Time since which no stream has been open; `None` while one is.
    idle_since_ms: Option<u64>,
    /// Spare memory is freed: no stream has been open for a while.
    pub(crate) is_trimmed: bool,
    /// Time of the last check of content that waits for windows, and the content sent since, in bytes.
    pub(crate) checked_ms: Option<u64>,
    pub(crate) content_sent: u64,
    /// Time until which the first request must have come; `None` after it.
    pub(crate) first_head_due_ms: Option<u64>,
    /// Bytes that had been received on the wire when content was late last.
    pub(crate) wire_bytes: u64,
    /// Time of the client's FIN.
    pub(crate) fin_ms: Option<u64>,
    /// The FIN has come behind input that waits.
    pub(crate) fin_waits: bool,
}

impl Multiplexed {
    /// Creates a connection that has SETTINGS to send.
    pub(crate) fn new(limits: Http2Limits, now_ms: u64) -> Self {
        let mut pending = Output::new();
        Self {
            connection: Connection::new(limits, now_ms, pending.bytes_mut()),
            streams: Vec::new(),
            pending,
            current: StreamId::new(0),
            now_us: 0,
            is_whole: false,
            opens_tunnel: false,
            has_input: false,
            ended: Group::default(),
            is_unflushed: false,
            partial_since_ms: None,
            idle_since_ms: Some(now_ms),
            is_trimmed: false,
            checked_ms: None,
            content_sent: 0,
            first_head_due_ms: None,
            wire_bytes: 0,
            fin_ms: None,
            fin_waits: false,
        }
    }

    /// Returns its memory, in bytes, without that of exchanges.
    pub(crate) fn held_bytes(&self) -> usize {
        let of_tunnel = |tunnel: &StreamTunnel| size_of::<StreamTunnel>() + tunnel.in_flight;
        let of_stream = |stream: &Stream| {
            let tunnel = stream.tunnel.as_deref().map_or(0, of_tunnel);
            stream.outgoing.held_bytes() + stream.early.capacity() + tunnel
        };
        size_of::<Self>()
            + self.connection.held_bytes()
            + self.pending.capacity()
            + self.streams.capacity() * size_of::<Stream>()
            + self.streams.iter().map(of_stream).sum::<usize>()
    }

    /// Returns the memory of its exchanges, in bytes.
    pub(crate) fn exchange_bytes(&self) -> usize {
        self.streams.iter().map(|stream| stream.exchange_bytes).sum()
    }

    /// Returns the time since which no stream has been open.
    pub(crate) fn idle_since_ms(&self) -> Option<u64> {
        self.idle_since_ms
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.idle_since_ms.is_some()
    }

    /// Restarts the time of an idle connection.
    pub(crate) fn restart_idle(&mut self, now_ms: u64) {
        self.idle_since_ms = self.idle_since_ms.map(|_| now_ms);
    }

    /// Notes whether a stream is open.
    pub(crate) fn note_idle(&mut self, now_ms: u64) {
        if self.connection.open_streams() > 0 {
            (self.idle_since_ms, self.is_trimmed) = (None, false);
        } else {
            self.idle_since_ms.get_or_insert(now_ms);
        }
    }

    /// Notes what it waits for while nothing is being sent. `has_input`: input is stored.
    pub(crate) fn observe_waits(&mut self, has_input: bool, now_ms: u64) {
        if has_input && !self.has_input || self.connection.has_partial_head() {
            self.partial_since_ms.get_or_insert(now_ms);
        } else {
            self.partial_since_ms = None;
        }
        if !self.has_content_due() {
            self.checked_ms = None;
        } else if self.checked_ms.is_none() {
            (self.checked_ms, self.content_sent) = (Some(now_ms), 0);
        }
    }

    /// Counts the bytes of records that are about to be sent, and of which more follows.
    pub(crate) fn count_output(&mut self, now_us: u64) {
        for record in self.streams.iter_mut().filter_map(|stream| stream.record.as_mut()) {
            let first = &mut record.records[0];
            first.begin_send(now_us);
            first.sent += mem::take(&mut first.queued);
        }
    }

    /// Frees what an idle connection doesn't need.
    pub(crate) fn trim(&mut self) {
        self.is_trimmed = true;
        self.pending.clear(0);
        if self.ended.records.is_empty() {
            self.ended.clear(0);
        }
        self.streams = Vec::new();
        self.connection.trim();
    }

    /// Returns the streams with an exchange or content.
    pub(crate) fn streams(&self) -> &[Stream] {
        &self.streams
    }

    fn place_of(&self, id: StreamId) -> Result<usize, usize> {
        match self.streams.last() {
            Some(last) if last.id < id => Err(self.streams.len()),
            _ => self.streams.binary_search_by_key(&id, |stream| stream.id),
        }
    }

    /// Returns a stream that has an exchange or content.
    pub(crate) fn find(&mut self, id: StreamId) -> Option<&mut Stream> {
        let place = self.place_of(id).ok()?;
        self.streams.get_mut(place)
    }

    /// Returns a stream, which gets an exchange or content.
    pub(crate) fn stream(&mut self, id: StreamId) -> &mut Stream {
        let place = self.place_of(id).unwrap_or_else(|place| {
            self.streams.insert(place, Stream::new(id, self.now_us));
            place
        });
        &mut self.streams[place]
    }

    /// Removes a stream.
    pub(crate) fn remove(&mut self, id: StreamId) -> Option<Stream> {
        Some(self.streams.remove(self.place_of(id).ok()?))
    }

    /// Removes a stream that has neither an exchange nor content. Returns its record.
    pub(crate) fn remove_spent(&mut self, id: StreamId) -> Option<Box<Group>> {
        let place = self.place_of(id).ok().filter(|place| self.streams[*place].is_spent())?;
        self.streams.remove(place).record
    }

    /// Removes any stream.
    pub(crate) fn pop(&mut self) -> Option<Stream> {
        self.streams.pop()
    }

    /// Moves what the handler of the current stream has queued. `is_end`: no more follows.
    pub(crate) fn take_stream(&mut self, shared: &Shared, has_body: bool, is_end: bool) {
        let id = self.current;
        let outgoing = &mut self.stream(id).outgoing;
        let trailers = shared.take_content(outgoing.queue(), has_body, is_end);
        if is_end && has_body {
            outgoing.end = Some(End::Complete { trailers });
        }
        let available = outgoing.len();
        self.connection.set_available(id, available);
    }

    /// Returns true if content may be sent now.
    pub(crate) fn has_content_to_send(&self) -> bool {
        self.connection.next_data(1).is_some()
    }

    /// Returns true if it has as many tunnels as it may have.
    pub(crate) fn has_all_tunnels(&self) -> bool {
        let tunnels = self.streams.iter().filter(|stream| stream.tunnel.is_some());
        tunnels.count() >= TUNNELS_PER_CONNECTION_MAX
    }

    /// Returns true if the end of a send has nothing follow.
    pub(crate) fn needs_no_send(&self) -> bool {
        !self.continues() && self.fin_ms.is_none()
    }

    /// Returns true if the end of a send has something follow.
    pub(crate) fn continues(&self) -> bool {
        let is_over = self.connection.is_finished() || !self.ended.records.is_empty();
        !self.pending.is_empty() || self.has_content_to_send() || self.has_input || is_over
    }

    /// Returns true if content waits that the client must take in time. That of a tunnel may wait while its program does.
    fn has_content_due(&self) -> bool {
        let may_wait = |stream: &Stream| stream.tunnel.as_ref().is_some_and(|tunnel| !tunnel.is_left);
        self.streams.iter().any(|stream| !stream.outgoing.is_empty() && !may_wait(stream))
    }

    /// Appends content of the most urgent stream that has some, unless the output is full or windows are.
    pub(crate) fn fill(&mut self, out: &mut Output) -> Option<Filled> {
        let room =
            MULTIPLEXED_OUTPUT_BYTES_MAX.saturating_sub(usize::try_from(out.len()).unwrap_or(usize::MAX));
        if out.items().len() >= MULTIPLEXED_ITEMS_MAX {
            return None;
        }
        let (id, len) = self.connection.next_data(room)?;
        let place = self.place_of(id).expect("a stream with content");
        let stream = &mut self.streams[place];
        let is_last = stream.outgoing.end.is_some() && len as u64 == stream.outgoing.len();
        let is_plain = |end: &End| matches!(end, End::Complete { trailers } if trailers.is_empty());
        let ends = is_last && stream.outgoing.end.as_ref().is_some_and(is_plain);
        self.connection.data_header(id, len, ends, out.bytes_mut());
        stream.outgoing.append_to(out, len);
        self.content_sent += len as u64;
        if let Some(record) = &mut stream.record {
            record.records[0].queued += len as u64;
        }
        if !stream.outgoing.is_empty() {
            return Some(Filled::Partly);
        }
        Some(match stream.outgoing.end {
            Some(End::Cut) => Filled::Cut(id),
            // Its end has a frame of its own.
            _ if stream.tunnel.is_some() => Filled::Tunnel(id),
            Some(End::Complete { .. }) => Filled::Ended(self.end(id, out)),
            None => Filled::Drained(stream.exchange),
        })
    }

    /// Ends a response whose content was sent. Returns its record.
    fn end(&mut self, id: StreamId, out: &mut Output) -> Option<Box<Group>> {
        let stream = self.find(id)?;
        let End::Complete { trailers } = stream.outgoing.end.take()? else { return None };
        if let Some(tunnel) = &mut stream.tunnel {
            // The client may still send.
            tunnel.is_response_ended = true;
            return None;
        }
        if trailers.is_empty() {
            self.connection.ended(id, out.bytes_mut());
        } else {
            self.connection.trailers(id, &trailers, out.bytes_mut());
        }
        self.remove_spent(id)
    }

    /// Ends a response all of whose content was sent before. Returns its record; `None` while there is more of it.
    pub(crate) fn end_drained(&mut self, id: StreamId, out: &mut Output) -> Option<Option<Box<Group>>> {
        let outgoing = &self.find(id)?.outgoing;
        let Some(End::Complete { trailers }) = &outgoing.end else { return None };
        if !outgoing.is_empty() {
            return None;
        }
        if trailers.is_empty() {
            self.connection.data_header(id, 0, true, out.bytes_mut());
        }
        Some(self.end(id, out))
    }

    /// Keeps content of the current stream's response until it is sent. Without an `end`, more follows.
    pub(crate) fn keep_content(&mut self, content: Output, sent: u64, end: Option<End>) {
        let id = self.current;
        let stream = self.stream(id);
        stream.outgoing = Outgoing::new(content, sent, end);
        let available = stream.outgoing.len();
        self.connection.set_available(id, available);
    }
}
