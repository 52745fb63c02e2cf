//! Received header blocks: requests and trailers (RFC 9113 4.3, 6.2, 6.10 and 8.1).

use shearwater_http1::{Framing, KnownField, ParseError};

use super::Connection;
use super::receive::StreamEvent;
use crate::error::ConnectionError;
use crate::frame::{FrameHeader, HeadersPayload, flag};
use crate::head::{HeadBuffer, HeadError};
use crate::hpack::HpackError;
use crate::limits::{BLOCK_BYTES_MAX, CONTINUATIONS_MAX};
use crate::priority::Priority;
use crate::stream_error::StreamError;
use crate::streams::{ClosedBy, Slot, Stream, StreamId};

/// A header block whose CONTINUATION frames haven't all been received.
#[derive(Debug)]
pub(super) struct PartialBlock {
    pub(super) stream: u32,
    /// The stream ends with it.
    ends: bool,
    bytes: Vec<u8>,
    continuations: u8,
}

impl PartialBlock {
    /// Returns its allocated memory in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

/// The use of a header block.
enum BlockUse {
    /// Begins a stream.
    Request,
    /// Ends the request of an open stream.
    Trailers(Slot),
    /// None; decoded for the sake of later ones.
    Dropped,
}

type Received = Result<Option<StreamEvent<'static>>, ConnectionError>;

impl Connection {
    pub(super) fn receive_headers(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        head: &mut HeadBuffer,
        out: &mut Vec<u8>,
    ) -> Received {
        let HeadersPayload { fragment, dependency } = HeadersPayload::parse(header, payload)?;
        if dependency == Some(header.stream) {
            return Err(ConnectionError::SelfDependency);
        }
        let (stream, ends) = (header.stream, header.has(flag::END_STREAM));
        if header.has(flag::END_HEADERS) {
            return self.receive_block(stream, ends, fragment, head, out);
        }
        let block = PartialBlock { stream, ends, bytes: fragment.to_vec(), continuations: 0 };
        self.block = Some(Box::new(block));
        Ok(None)
    }

    pub(super) fn receive_continuation(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        head: &mut HeadBuffer,
        out: &mut Vec<u8>,
    ) -> Received {
        let Some(mut block) = self.block.take() else { return Err(ConnectionError::Continuation) };
        block.continuations += 1;
        if block.continuations > CONTINUATIONS_MAX {
            return Err(ConnectionError::TooManyContinuations);
        }
        if block.bytes.len() + payload.len() > BLOCK_BYTES_MAX {
            return Err(ConnectionError::BlockTooLarge);
        }
        block.bytes.extend_from_slice(payload);
        if header.has(flag::END_HEADERS) {
            return self.receive_block(block.stream, block.ends, &block.bytes, head, out);
        }
        self.block = Some(block);
        Ok(None)
    }

    /// Receives a complete header block.
    fn receive_block(
        &mut self,
        id: u32,
        ends: bool,
        block: &[u8],
        head: &mut HeadBuffer,
        out: &mut Vec<u8>,
    ) -> Received {
        match self.use_of_block(id)? {
            BlockUse::Request => self.receive_request(id, ends, block, head, out),
            BlockUse::Trailers(slot) => self.receive_trailers(slot, ends, block, head, out),
            BlockUse::Dropped => {
                self.charge_control()?;
                self.drop_block(block, head)?;
                match self.streams.find(id) {
                    Some(slot) if self.streams[slot].is_request_ended => {
                        self.fail_stream(slot, StreamError::Ended, out)
                    }
                    Some(slot) => {
                        self.streams[slot].is_request_ended |= ends;
                        Ok(None)
                    }
                    None => Ok(None),
                }
            }
        }
    }

    /// Decides by the state of the stream (RFC 9113 5.1 and 5.1.1).
    fn use_of_block(&mut self, id: u32) -> Result<BlockUse, ConnectionError> {
        if id.is_multiple_of(2) {
            return Err(ConnectionError::StreamIdentifier);
        }
        if let Some(slot) = self.streams.find(id) {
            let stream = &self.streams[slot];
            return Ok(match stream.is_request_ended || stream.is_discarded {
                true => BlockUse::Dropped,
                false => BlockUse::Trailers(slot),
            });
        }
        let is_new = id > self.streams.last();
        match self.streams.closed_by(id) {
            _ if is_new && self.is_refused(id) => {
                self.streams.begin(id);
                self.streams.note_closed(id, ClosedBy::Us);
                Ok(BlockUse::Dropped)
            }
            _ if is_new => Ok(BlockUse::Request),
            Some(ClosedBy::Us) => Ok(BlockUse::Dropped),
            Some(ClosedBy::Client) => Err(ConnectionError::ClosedStream),
            None => Err(ConnectionError::StreamIdentifier),
        }
    }

    /// Decodes a block whose fields nobody needs.
    fn drop_block(&mut self, block: &[u8], head: &mut HeadBuffer) -> Result<(), ConnectionError> {
        self.work.decoded_bytes +=
            self.decoder.decode(block, &mut head.strings, |_, _| {}).map_err(compression)?;
        Ok(())
    }

    fn receive_request(
        &mut self,
        id: u32,
        ends: bool,
        block: &[u8],
        head: &mut HeadBuffer,
        out: &mut Vec<u8>,
    ) -> Received {
        self.work.streams_this_turn += 1;
        if self.streams.len() >= self.limits.streams_max as usize
            || self.work.streams_this_turn > self.limits.streams_per_turn_max
        {
            self.drop_block(block, head)?;
            return self.refuse_stream(id, StreamError::TooManyStreams, out);
        }
        let (mut fields, strings) = head.request(&self.limits);
        let decoded = self.decoder.decode(block, strings, |name, value| fields.add(name, value));
        self.work.decoded_bytes += decoded.map_err(compression)?;
        match fields.finish(ends) {
            Ok(()) => {
                let head = head.head();
                let slot = self.open(id, ends);
                let stream = &mut self.streams[slot];
                if let Framing::Length(length) = head.framing() {
                    stream.content_left = Some(length);
                }
                if let Some(value) = head.field(KnownField::Priority) {
                    stream.priority = Priority::of_field(value);
                }
                Ok(Some(StreamEvent::Request { stream: StreamId(id), ends }))
            }
            Err(HeadError::Malformed(error)) => self.refuse_stream(id, error, out),
            Err(HeadError::Rejected(error)) => {
                let slot = self.open(id, ends);
                Ok(Some(self.reject(slot, error)))
            }
        }
    }

    fn open(&mut self, id: u32, ends: bool) -> Slot {
        let window = self.limits.stream_window_bytes as i32;
        self.streams.open(Stream::new(id, ends, window, self.peer.window_bytes))
    }

    fn receive_trailers(
        &mut self,
        slot: Slot,
        ends: bool,
        block: &[u8],
        head: &mut HeadBuffer,
        out: &mut Vec<u8>,
    ) -> Received {
        let (mut fields, strings) = head.trailer_fields();
        let decoded = self.decoder.decode(block, strings, |name, value| fields.add(name, value));
        self.work.decoded_bytes += decoded.map_err(compression)?;
        let result = fields.finish();
        if !ends {
            return self.fail_stream(slot, StreamError::TrailersWithoutEnd, out);
        }
        let stream = &mut self.streams[slot];
        if stream.content_left.is_some_and(|left| left > 0) {
            return self.fail_stream(slot, StreamError::Length, out);
        }
        stream.is_request_ended = true;
        match result {
            Ok(()) => Ok(Some(StreamEvent::Trailers { stream: StreamId(stream.id) })),
            Err(HeadError::Malformed(error)) => self.fail_stream(slot, error, out),
            Err(HeadError::Rejected(error)) => Ok(Some(self.reject(slot, error))),
        }
    }

    /// Drops what is still to come of a request.
    fn reject(&mut self, slot: Slot, error: ParseError) -> StreamEvent<'static> {
        let stream = &mut self.streams[slot];
        stream.is_discarded = true;
        StreamEvent::Rejected { stream: StreamId(stream.id), error }
    }

    /// Resets an open stream.
    pub(super) fn fail_stream(&mut self, slot: Slot, error: StreamError, out: &mut Vec<u8>) -> Received {
        let stream = StreamId(self.streams[slot].id);
        self.reset_open(slot, error, out)?;
        Ok(Some(StreamEvent::Failed { stream, error }))
    }

    /// Resets a stream instead of opening it.
    fn refuse_stream(&mut self, id: u32, error: StreamError, out: &mut Vec<u8>) -> Received {
        self.streams.begin(id);
        self.streams.note_closed(id, ClosedBy::Us);
        self.charge_reset()?;
        self.append_reset(id, error.code(), out);
        Ok(Some(StreamEvent::Failed { stream: StreamId(id), error }))
    }
}

fn compression(error: HpackError) -> ConnectionError {
    match error {
        HpackError::ListTooLarge => ConnectionError::ListTooLarge,
        _ => ConnectionError::Compression,
    }
}
