//! Received bytes: the preface, frames in order, and those without content (RFC 9113 6).

use shearwater_http1::ParseError;

use super::{Connection, DRAIN_PING, Drain, Preface, State};
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{self, FrameHeader, FrameKind, HEADER_BYTES, PREFACE, flag};
use crate::head::HeadBuffer;
use crate::limits::{ACKNOWLEDGEMENTS_MAX, FRAME_BYTES_MAX, WINDOW_BYTES_CEILING};
use crate::priority::Priority;
use crate::stream_error::StreamError;
use crate::streams::{ClosedBy, StreamId};

/// Result of [`Connection::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// Bytes of the input that were consumed, including those in the event.
    pub consumed: usize,
    /// The event that was found.
    pub event: StreamEvent<'a>,
}

/// An event of a connection, for one of its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent<'a> {
    /// A request has begun; its head is [`HeadBuffer::head`].
    Request {
        /// The new stream.
        stream: StreamId,
        /// No content follows.
        ends: bool,
    },
    /// A request, or the trailers of one, exceeds a limit. The response must have the error's status, unless one
    /// has begun. No further events come for this stream but [`StreamEvent::Reset`].
    Rejected {
        /// The stream, a new one unless trailers are rejected.
        stream: StreamId,
        /// The reason.
        error: ParseError,
    },
    /// Content of a request. Its division into events has no meaning. [`Connection::consumed`] must be called
    /// for it, sooner or later.
    Data {
        /// The request's stream.
        stream: StreamId,
        /// The content; empty only at the end.
        content: &'a [u8],
        /// The request has ended.
        ends: bool,
    },
    /// The request has ended with [`HeadBuffer::trailers`].
    Trailers {
        /// The request's stream.
        stream: StreamId,
    },
    /// The client has reset a stream.
    Reset {
        /// The stream, which is closed.
        stream: StreamId,
        /// The client's reason.
        code: ErrorCode,
    },
    /// This side has reset a stream: the request is malformed, or a rule was broken since.
    Failed {
        /// The stream, which is closed; it may have been none that had begun.
        stream: StreamId,
        /// The reason.
        error: StreamError,
    },
    /// All complete frames of the input are consumed.
    More,
}

/// Result of one frame, or of a part of one: consumed bytes, and an event. `None`: more input is needed.
pub(super) type Progress<'a> = Option<(usize, Option<StreamEvent<'a>>)>;

impl Connection {
    /// Receives bytes up to the next event. Call again with the unconsumed input until the event is
    /// [`StreamEvent::More`], then with that input and what follows it.
    ///
    /// Unconsumed input has at most 9 bytes and [`FRAME_BYTES_MAX`].
    ///
    /// # Errors
    /// The reason why the connection fails. Its GOAWAY is written; each further call returns the same reason.
    pub fn receive<'a>(
        &mut self,
        input: &'a [u8],
        head: &mut HeadBuffer,
        out: &mut Vec<u8>,
    ) -> Result<Step<'a>, ConnectionError> {
        let mut consumed = 0;
        loop {
            if let State::Failed(error) = self.state {
                return Err(error);
            }
            match self.step(&input[consumed..], head, out) {
                Ok(None) => return Ok(Step { consumed, event: StreamEvent::More }),
                Ok(Some((len, event))) => {
                    consumed += len;
                    if let Some(event) = event {
                        return Ok(Step { consumed, event });
                    }
                }
                Err(error) => return Err(self.fail(error, out)),
            }
        }
    }

    /// Receives the next frame, or the part of one that is here.
    fn step<'a>(
        &mut self,
        input: &'a [u8],
        head: &mut HeadBuffer,
        out: &mut Vec<u8>,
    ) -> Result<Progress<'a>, ConnectionError> {
        if input.is_empty() {
            return Ok(None);
        }
        if self.skipped_bytes > 0 {
            let skipped = self.skipped_bytes.min(input.len());
            self.skipped_bytes -= skipped;
            return Ok(Some((skipped, None)));
        }
        if let Some(incoming) = self.incoming {
            return Ok(self.receive_content(incoming, input, out));
        }
        if self.state == State::Preface {
            return match Preface::of(input) {
                Preface::Complete => {
                    self.state = State::Settings;
                    Ok(Some((PREFACE.len(), None)))
                }
                Preface::Partial => Ok(None),
                Preface::Other => Err(ConnectionError::BadPreface),
            };
        }
        let Some(header) = input.first_chunk().map(FrameHeader::parse) else { return Ok(None) };
        self.check_order(header)?;
        match header.kind {
            FrameKind::Data => return self.begin_content(header, &input[HEADER_BYTES..], out),
            FrameKind::Unknown => {
                self.charge_control()?;
                self.skipped_bytes = header.len;
                return Ok(Some((HEADER_BYTES, None)));
            }
            _ => {}
        }
        let Some(payload) = input[HEADER_BYTES..].get(..header.len) else { return Ok(None) };
        let event = self.receive_frame(header, payload, head, out)?;
        Ok(Some((HEADER_BYTES + header.len, event)))
    }

    /// Checks a frame's size, and whether it may come now.
    fn check_order(&mut self, header: FrameHeader) -> Result<(), ConnectionError> {
        if self.state == State::Settings && (header.kind != FrameKind::Settings || header.has(flag::ACK)) {
            return Err(ConnectionError::BadPreface);
        }
        if header.len > FRAME_BYTES_MAX {
            return Err(ConnectionError::FrameTooLarge);
        }
        match &self.block {
            Some(block) if header.kind != FrameKind::Continuation || header.stream != block.stream => {
                Err(ConnectionError::Interleaved)
            }
            None if header.kind == FrameKind::Continuation => Err(ConnectionError::Continuation),
            _ => Ok(()),
        }
    }

    /// Receives a whole frame that isn't DATA.
    fn receive_frame(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        head: &mut HeadBuffer,
        out: &mut Vec<u8>,
    ) -> Result<Option<StreamEvent<'static>>, ConnectionError> {
        let is_of_connection = matches!(
            header.kind,
            FrameKind::Settings | FrameKind::Ping | FrameKind::GoAway | FrameKind::PriorityUpdate
        );
        match header.kind {
            FrameKind::WindowUpdate => {}
            _ if is_of_connection && header.stream != 0 => return Err(ConnectionError::StreamForbidden),
            _ if !is_of_connection && header.stream == 0 => return Err(ConnectionError::StreamRequired),
            _ => {}
        }
        match header.kind {
            FrameKind::Headers => return self.receive_headers(header, payload, head, out),
            FrameKind::Continuation => return self.receive_continuation(header, payload, head, out),
            FrameKind::Reset => return self.receive_reset(header, payload, out),
            FrameKind::WindowUpdate => return self.receive_window_update(header, payload, out),
            FrameKind::Priority => self.receive_priority(header, payload)?,
            FrameKind::Settings => self.receive_settings(header, payload, out)?,
            FrameKind::Ping => self.receive_ping(header, payload, out)?,
            FrameKind::PriorityUpdate => self.receive_priority_update(payload)?,
            FrameKind::PushPromise => return Err(ConnectionError::PushPromise),
            FrameKind::GoAway if payload.len() < 8 => return Err(ConnectionError::FrameSize),
            // A client has no streams of ours to refuse.
            FrameKind::GoAway | FrameKind::Data | FrameKind::Unknown => self.charge_control()?,
        }
        Ok(None)
    }

    fn receive_settings(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        self.charge_control()?;
        if header.has(flag::ACK) {
            return if payload.is_empty() { Ok(()) } else { Err(ConnectionError::FrameSize) };
        }
        let before = self.peer.window_bytes;
        self.peer.apply(payload, |bytes| self.encoder.set_peer_bytes_max(bytes))?;
        self.state = State::Open;
        self.change_windows(i64::from(self.peer.window_bytes) - i64::from(before))?;
        self.acknowledge()?;
        frame::append_settings_ack(out);
        Ok(())
    }

    /// Changes the windows of all streams by the change of their initial value (RFC 9113 6.9.2).
    fn change_windows(&mut self, change: i64) -> Result<(), ConnectionError> {
        if change == 0 {
            return Ok(());
        }
        for place in 0..self.streams.len() {
            let slot = self.streams.nth(place);
            let window = i64::from(self.streams[slot].send_window) + change;
            if window > i64::from(WINDOW_BYTES_CEILING) {
                return Err(ConnectionError::WindowOverflow);
            }
            // A window is never below -(2^31 - 1): it was at least 0 under its largest initial value.
            self.streams[slot].send_window = window as i32;
            self.scheduler.update(&mut self.streams, slot);
        }
        Ok(())
    }

    fn receive_ping(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        self.charge_control()?;
        let payload: [u8; 8] = payload.try_into().map_err(|_| ConnectionError::FrameSize)?;
        if !header.has(flag::ACK) {
            self.acknowledge()?;
            frame::append_ping(out, payload, true);
        } else if payload == DRAIN_PING && self.drain == Drain::Announced {
            self.refuse_streams(out);
        }
        Ok(())
    }

    /// Counts an acknowledgement that is about to be written.
    fn acknowledge(&mut self) -> Result<(), ConnectionError> {
        self.work.acknowledgements += 1;
        match self.work.acknowledgements > ACKNOWLEDGEMENTS_MAX {
            true => Err(ConnectionError::TooManyAcknowledgements),
            false => Ok(()),
        }
    }

    /// Checks a deprecated priority, and ignores it (RFC 9113 5.3.2).
    fn receive_priority(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), ConnectionError> {
        self.charge_control()?;
        match frame::dependency(payload) {
            None => Err(ConnectionError::FrameSize),
            Some(dependency) if dependency == header.stream => Err(ConnectionError::SelfDependency),
            Some(_) => Ok(()),
        }
    }

    /// Changes a priority (RFC 9218 7.1). One that comes before its request is ignored: that may have a field.
    fn receive_priority_update(&mut self, payload: &[u8]) -> Result<(), ConnectionError> {
        self.charge_control()?;
        let (stream, value) = frame::priority_update(payload)?;
        if stream % 2 == 0 {
            return Err(ConnectionError::PriorityUpdate);
        }
        if let Some(slot) = self.streams.find(stream) {
            self.scheduler.set_priority(&mut self.streams, slot, Priority::of_field(value));
        }
        Ok(())
    }

    fn receive_reset(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<StreamEvent<'static>>, ConnectionError> {
        let code = ErrorCode::from_number(frame::reset_code(payload)?);
        self.check_begun(header.stream)?;
        let Some(slot) = self.streams.find(header.stream) else {
            self.charge_control()?;
            return Ok(None);
        };
        self.close(slot, ClosedBy::Client, out);
        self.charge_reset()?;
        Ok(Some(StreamEvent::Reset { stream: StreamId(header.stream), code }))
    }

    fn receive_window_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<StreamEvent<'static>>, ConnectionError> {
        match self.work.window_updates.checked_sub(1) {
            Some(left) => self.work.window_updates = left,
            None => self.charge_control()?,
        }
        let increment = frame::window_increment(payload)?;
        if header.stream == 0 {
            self.send_window =
                increased(self.send_window, increment).ok_or(ConnectionError::WindowOverflow)?;
            return if increment > 0 { Ok(None) } else { Err(ConnectionError::WindowIncrement) };
        }
        self.check_begun(header.stream)?;
        let Some(slot) = self.streams.find(header.stream) else { return Ok(None) };
        let error = match increased(self.streams[slot].send_window, increment) {
            _ if increment == 0 => StreamError::WindowIncrement,
            None => StreamError::WindowOverflow,
            Some(window) => {
                self.streams[slot].send_window = window;
                self.scheduler.update(&mut self.streams, slot);
                return Ok(None);
            }
        };
        self.reset_open(slot, error, out)?;
        Ok(Some(StreamEvent::Failed { stream: StreamId(header.stream), error }))
    }

    /// Checks that a stream has begun, or was skipped: others are idle (RFC 9113 5.1).
    pub(super) fn check_begun(&self, stream: u32) -> Result<(), ConnectionError> {
        match stream % 2 == 1 && stream <= self.streams.last() {
            true => Ok(()),
            false => Err(ConnectionError::IdleStream),
        }
    }
}

/// Returns a window after its increase; `None` if it is larger than 2^31 - 1.
fn increased(window: i32, increment: u32) -> Option<i32> {
    i32::try_from(i64::from(window) + i64::from(increment)).ok()
}
