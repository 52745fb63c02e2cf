//! Received content, and the windows that bound it (RFC 9113 6.1 and 6.9).

use super::Connection;
use super::receive::{Progress, StreamEvent};
use crate::error::ConnectionError;
use crate::frame::{self, FrameHeader, HEADER_BYTES, flag};
use crate::stream_error::StreamError;
use crate::streams::{ClosedBy, Slot, StreamId};

/// A DATA frame whose content hasn't all been received.
#[derive(Clone, Copy, Debug)]
pub(super) struct IncomingContent {
    stream: u32,
    /// Content that is to come, in bytes; never 0.
    left: usize,
    /// Padding after the content, in bytes.
    padding: usize,
    ends: bool,
}

impl Connection {
    /// Receives the header of a DATA frame, with its padding's length; `rest` follows the header.
    pub(super) fn begin_content<'a>(
        &mut self,
        header: FrameHeader,
        rest: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress<'a>, ConnectionError> {
        if header.stream == 0 {
            return Err(ConnectionError::StreamRequired);
        }
        self.check_begun(header.stream)?;
        let padding_bytes = usize::from(header.has(flag::PADDED));
        let padding = match (padding_bytes, header.len, rest.first()) {
            (0, ..) => 0,
            (_, 0, _) => return Err(ConnectionError::FrameSize),
            (_, _, None) => return Ok(None),
            (_, _, Some(&padding)) => usize::from(padding),
        };
        let content_len =
            (header.len - padding_bytes).checked_sub(padding).ok_or(ConnectionError::Padding)?;
        if header.len > usize::try_from(self.receive_window).unwrap_or(0) {
            return Err(ConnectionError::WindowExceeded);
        }
        // A frame has at most `FRAME_BYTES_MAX`.
        self.receive_window -= header.len as i32;
        let consumed = HEADER_BYTES + padding_bytes;
        let ends = header.has(flag::END_STREAM);
        if content_len > 0 {
            self.work.control_frames.earn(1);
        } else if !ends {
            self.charge_control()?;
        }
        let slot = match self.accepts(header, content_len, ends) {
            Ok(slot) => slot,
            Err(error) => {
                self.skipped_bytes = header.len - padding_bytes;
                self.add_credit(header.len as u32, out);
                let event = match error {
                    Some(error) => Some(self.refuse_content(header.stream, error, out)?),
                    None => None,
                };
                return Ok(Some((consumed, event)));
            }
        };
        let stream = &mut self.streams[slot];
        stream.receive_window -= header.len as i32;
        stream.content_left = stream.content_left.map(|left| left - content_len as u64);
        let overhead = header.len - content_len;
        if overhead > 0 {
            self.add_credit(overhead as u32, out);
            self.add_stream_credit(slot, overhead as u32, out);
        }
        if content_len == 0 {
            self.skipped_bytes = padding;
            return Ok(Some((consumed, self.delivered(slot, &[], ends))));
        }
        self.incoming = Some(IncomingContent { stream: header.stream, left: content_len, padding, ends });
        Ok(Some((consumed, None)))
    }

    /// Returns the stream that a frame's content is for; else the reason to reset it, or `None` to drop the
    /// content without a word.
    fn accepts(
        &self,
        header: FrameHeader,
        content_len: usize,
        ends: bool,
    ) -> Result<Slot, Option<StreamError>> {
        let Some(slot) = self.streams.find(header.stream) else {
            let is_ignored =
                self.is_refused(header.stream) || self.streams.closed_by(header.stream) == Some(ClosedBy::Us);
            return Err((!is_ignored).then_some(StreamError::Ended));
        };
        let stream = &self.streams[slot];
        if stream.is_request_ended {
            return Err(Some(StreamError::Ended));
        }
        if header.len > usize::try_from(stream.receive_window).unwrap_or(0) {
            return Err(Some(StreamError::WindowExceeded));
        }
        match stream.content_left.map(|left| left.checked_sub(content_len as u64)) {
            Some(None) => Err(Some(StreamError::Length)),
            Some(Some(1..)) if ends => Err(Some(StreamError::Length)),
            _ => Ok(slot),
        }
    }

    /// Resets the stream of a frame that is no content of it.
    fn refuse_content(
        &mut self,
        stream: u32,
        error: StreamError,
        out: &mut Vec<u8>,
    ) -> Result<StreamEvent<'static>, ConnectionError> {
        match self.streams.find(stream) {
            Some(slot) => self.reset_open(slot, error, out)?,
            None => {
                self.charge_reset()?;
                self.streams.note_closed(stream, ClosedBy::Us);
                self.append_reset(stream, error.code(), out);
            }
        }
        Ok(StreamEvent::Failed { stream: StreamId(stream), error })
    }

    /// Receives content of a frame that has begun; its stream may have been reset since.
    pub(super) fn receive_content<'a>(
        &mut self,
        incoming: IncomingContent,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Progress<'a> {
        let len = incoming.left.min(input.len());
        let (content, is_last) = (&input[..len], len == incoming.left);
        self.incoming = (!is_last).then_some(IncomingContent { left: incoming.left - len, ..incoming });
        if is_last {
            self.skipped_bytes = incoming.padding;
        }
        let Some(slot) = self.streams.find(incoming.stream) else {
            self.add_credit(len as u32, out);
            return Some((len, None));
        };
        if self.streams[slot].is_discarded {
            self.add_credit(len as u32, out);
            self.add_stream_credit(slot, len as u32, out);
        } else {
            self.streams[slot].unconsumed += len as u32;
        }
        Some((len, self.delivered(slot, content, is_last && incoming.ends)))
    }

    /// Returns the event for content, and ends the request if this is the last of it.
    fn delivered<'a>(&mut self, slot: Slot, content: &'a [u8], ends: bool) -> Option<StreamEvent<'a>> {
        let stream = &mut self.streams[slot];
        stream.is_request_ended |= ends;
        let is_event = !stream.is_discarded && (ends || !content.is_empty());
        is_event.then_some(StreamEvent::Data { stream: StreamId(stream.id), content, ends })
    }

    /// Records that content of a request was consumed: the client may send as much again, on the stream and the
    /// connection. The stream may have been closed since.
    pub fn consumed(&mut self, stream: StreamId, bytes: usize, out: &mut Vec<u8>) {
        let Some(slot) = self.slot_of(stream) else { return };
        let unconsumed = self.streams[slot].unconsumed;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(unconsumed);
        self.streams[slot].unconsumed = unconsumed - bytes;
        self.add_credit(bytes, out);
        self.add_stream_credit(slot, bytes, out);
    }

    /// Lets the client send so many bytes again on the connection. They are reported once they are half a window.
    pub(super) fn add_credit(&mut self, bytes: u32, out: &mut Vec<u8>) {
        self.credit += bytes;
        if self.credit >= self.limits.connection_window_bytes / 2 {
            frame::append_window_update(out, 0, self.credit);
            self.receive_window += self.credit as i32;
            self.credit = 0;
        }
    }

    /// Lets the client send so many bytes again on a stream, unless it has ended.
    fn add_stream_credit(&mut self, slot: Slot, bytes: u32, out: &mut Vec<u8>) {
        let stream = &mut self.streams[slot];
        stream.credit += bytes;
        if stream.credit >= self.limits.stream_window_bytes / 2 && !stream.is_request_ended {
            frame::append_window_update(out, stream.id, stream.credit);
            stream.receive_window += stream.credit as i32;
            stream.credit = 0;
        }
    }
}
