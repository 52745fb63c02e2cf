//! Responses: heads, content within the windows, trailers and resets (RFC 9113 6 and 8.1).

use super::Connection;
use crate::error::{ConnectionError, ErrorCode};
use crate::frame;
use crate::limits::{DATA_BYTES_MAX, WINDOW_UPDATES_PER_DATA};
use crate::priority::Priority;
use crate::response::{self, ResponseHead};
use crate::streams::{ClosedBy, Slot, StreamId};

impl Connection {
    /// Writes a response's head; `ends`: no content follows. A status below 200 is an interim response, which
    /// must not end.
    ///
    /// Returns false, and writes nothing, if the stream is closed or has had its head.
    pub fn respond(
        &mut self,
        stream: StreamId,
        head: &ResponseHead<'_>,
        ends: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(slot) = self.writable(stream).filter(|slot| !self.streams[*slot].is_head_sent) else {
            return false;
        };
        let is_final = head.status >= 200;
        let (encoder, frame_bytes_max) = (&mut self.encoder, self.peer.frame_bytes_max);
        let ends = ends && is_final;
        let block = |out: &mut Vec<u8>| head.append(out, encoder);
        frame::append_header_block(out, stream.0, ends, frame_bytes_max, block);
        self.streams[slot].is_head_sent = is_final;
        if ends {
            self.end_response(slot, out);
        }
        true
    }

    /// Returns how many bytes of content the windows of a stream and the connection allow; 0 if it is closed.
    #[inline]
    #[must_use]
    pub fn sendable(&self, stream: StreamId) -> usize {
        let Some(slot) = self.slot_of(stream) else { return 0 };
        usize::try_from(self.streams[slot].send_window.min(self.send_window)).unwrap_or(0)
    }

    /// Sets how many bytes of content a stream could send now, after its head: it takes part in
    /// [`next_data`](Self::next_data) while that isn't 0. Sending reduces it.
    pub fn set_available(&mut self, stream: StreamId, bytes: u64) {
        if let Some(slot) = self.slot_of(stream) {
            self.streams[slot].available = bytes;
            self.scheduler.update(&mut self.streams, slot);
        }
    }

    /// Returns the stream to send content of next, and how many bytes: at most `bytes_max`, one frame, and what
    /// windows allow and the stream has [available](Self::set_available). `None` if there is none.
    ///
    /// By urgency (RFC 9218 10), in turns within one. The order changes as content is sent.
    #[must_use]
    pub fn next_data(&self, bytes_max: usize) -> Option<(StreamId, usize)> {
        if self.send_window <= 0 || bytes_max == 0 || self.failure().is_some() {
            return None;
        }
        let stream = &self.streams[self.scheduler.next()?];
        let window = usize::try_from(stream.send_window.min(self.send_window)).unwrap_or(0);
        let available = usize::try_from(stream.available).unwrap_or(usize::MAX);
        let most = bytes_max.min(self.data_bytes_max());
        Some((StreamId(stream.id), window.min(available).min(most)))
    }

    /// Writes content, in as many frames as necessary. `ends`: it is the last; it may be empty then.
    ///
    /// Returns false, and writes nothing, if the stream is closed.
    ///
    /// # Panics
    /// If there is more content than [`sendable`](Self::sendable).
    pub fn data(&mut self, stream: StreamId, content: &[u8], ends: bool, out: &mut Vec<u8>) -> bool {
        let mut rest = content;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(self.data_bytes_max()));
            rest = after;
            let is_last = rest.is_empty();
            if !self.data_header(stream, piece.len(), ends && is_last, out) {
                return false;
            }
            out.extend_from_slice(piece);
            if is_last {
                break;
            }
        }
        if ends {
            self.ended(stream, out);
        }
        true
    }

    /// Writes the header of a frame with `len` bytes of content, which the caller appends: for content that isn't
    /// copied. Nothing is written for 0 bytes, unless `ends`; after a last frame's content, call
    /// [`ended`](Self::ended).
    ///
    /// Returns false, and writes nothing, if the stream is closed.
    ///
    /// # Panics
    /// If there is more content than [`sendable`](Self::sendable), or than [`DATA_BYTES_MAX`].
    pub fn data_header(&mut self, stream: StreamId, len: usize, ends: bool, out: &mut Vec<u8>) -> bool {
        let Some(slot) = self.writable(stream) else { return false };
        assert!(len <= self.data_bytes_max(), "more content than a frame holds");
        assert!(len == 0 || len <= self.sendable(stream), "more content than the windows allow");
        if len == 0 && !ends {
            return true;
        }
        frame::append_data_header(out, stream.0, len, ends);
        self.count_content(slot, len);
        true
    }

    /// Ends a response whose last frame was written by [`data_header`](Self::data_header), after its content.
    pub fn ended(&mut self, stream: StreamId, out: &mut Vec<u8>) {
        if let Some(slot) = self.writable(stream) {
            self.end_response(slot, out);
        }
    }

    /// Writes trailers, lines as those of [`ResponseHead::lines`], which end the response; all content must have
    /// been written.
    ///
    /// Returns false, and writes nothing, if the stream is closed.
    pub fn trailers(&mut self, stream: StreamId, lines: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(slot) = self.writable(stream) else { return false };
        let (encoder, frame_bytes_max) = (&mut self.encoder, self.peer.frame_bytes_max);
        let block = |out: &mut Vec<u8>| response::append_trailers(out, encoder, lines);
        frame::append_header_block(out, stream.0, true, frame_bytes_max, block);
        self.end_response(slot, out);
        true
    }

    /// Resets a stream, for example if its response can't be completed. Counts towards
    /// [`RESETS_MAX`](crate::limits::RESETS_MAX): one reset too many [fails](Self::failure) the connection.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode, out: &mut Vec<u8>) {
        if let Some(slot) = self.writable(stream) {
            self.close(slot, ClosedBy::Us, out);
            match self.charge_reset() {
                Ok(()) => self.append_reset(stream.0, code, out),
                Err(error) => _ = self.fail(error, out),
            }
        }
    }

    /// Ends the connection with an error of this side, and writes its GOAWAY; open streams are lost.
    pub fn abort(&mut self, out: &mut Vec<u8>) {
        self.fail(ConnectionError::Aborted, out);
    }

    /// Changes the priority of a response, which its request has set (RFC 9218 8).
    pub fn set_priority(&mut self, stream: StreamId, priority: Priority) {
        if let Some(slot) = self.slot_of(stream) {
            self.scheduler.set_priority(&mut self.streams, slot, priority);
        }
    }

    /// Returns an open stream of a connection that hasn't failed.
    fn writable(&self, stream: StreamId) -> Option<Slot> {
        self.slot_of(stream).filter(|_| self.failure().is_none())
    }

    /// Returns the largest content of a frame, in bytes.
    fn data_bytes_max(&self) -> usize {
        DATA_BYTES_MAX.min(self.peer.frame_bytes_max)
    }

    /// Counts the content of a frame against the windows.
    fn count_content(&mut self, slot: Slot, len: usize) {
        // At most `DATA_BYTES_MAX`.
        let bytes = len as i32;
        self.send_window -= bytes;
        let stream = &mut self.streams[slot];
        stream.send_window -= bytes;
        stream.available = stream.available.saturating_sub(len as u64);
        self.scheduler.sent(&mut self.streams, slot, len as u32);
        if len > 0 {
            self.work.control_frames.earn(1);
            self.work.window_updates = self.work.window_updates.saturating_add(WINDOW_UPDATES_PER_DATA);
        }
    }

    /// Closes a stream whose response is complete. If the request isn't, its rest isn't needed (RFC 9113 8.1).
    fn end_response(&mut self, slot: Slot, out: &mut Vec<u8>) {
        let (id, is_request_ended) = (self.streams[slot].id, self.streams[slot].is_request_ended);
        self.work.resets.earn(1);
        if is_request_ended {
            self.close(slot, ClosedBy::Client, out);
        } else {
            self.append_reset(id, ErrorCode::NoError, out);
            self.close(slot, ClosedBy::Us, out);
        }
    }
}
