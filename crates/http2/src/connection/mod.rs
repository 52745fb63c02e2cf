//! A connection: its state, what it holds, and how it ends.

mod content;
mod headers;
mod receive;
mod send;

pub use receive::{Step, StreamEvent};

use crate::budget::Budget;
use crate::error::{ConnectionError, ErrorCode, SentCodes};
use crate::frame::{self, PREFACE, PeerSettings};
use crate::hpack::{Decoder, Encoder};
use crate::limits::{CONTROL_FRAMES_MAX, CONTROL_FRAMES_PER_SECOND, Limits, RESETS_MAX, RESETS_PER_SECOND};
use crate::scheduler::Scheduler;
use crate::stream_error::StreamError;
use crate::streams::{ClosedBy, Slot, StreamId, Streams};
use content::IncomingContent;
use headers::PartialBlock;

/// Last stream of the first GOAWAY of a drain: clients may still begin streams (RFC 9113 6.8).
const ANY_STREAM: u32 = (1 << 31) - 1;
/// Payload of the PING whose acknowledgement ends the first part of a drain.
const DRAIN_PING: [u8; 8] = *b"draining";
/// Window of a connection before any update, in bytes (RFC 9113 6.9.2).
const WINDOW_BYTES_INITIAL: i32 = 65_535;

/// Server's side of one HTTP/2 connection: received bytes in, events out, and bytes to send.
///
/// All methods that write append to a buffer, which must be sent in order.
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    state: State,
    drain: Drain,
    peer: PeerSettings,
    decoder: Decoder,
    encoder: Encoder,
    streams: Streams,
    scheduler: Scheduler,
    /// Header block whose CONTINUATION frames haven't all been received.
    block: Option<Box<PartialBlock>>,
    /// DATA frame whose content hasn't all been received.
    incoming: Option<IncomingContent>,
    /// Bytes of a frame that are skipped.
    skipped_bytes: usize,
    /// Bytes that the client may send, over all streams.
    receive_window: i32,
    /// Bytes that were consumed, or dropped, and not yet reported to the client.
    credit: u32,
    /// Bytes that we may send, over all streams.
    send_window: i32,
    work: Work,
    sent_codes: Option<Box<SentCodes>>,
}

/// Counts of what costs work and no content pays for.
#[derive(Debug)]
struct Work {
    now_ms: u64,
    resets: Budget,
    control_frames: Budget,
    /// WINDOW_UPDATE frames that DATA frames of ours have earned.
    window_updates: u32,
    /// Acknowledgements since the last [`Connection::output_sent`].
    acknowledgements: u32,
    streams_this_turn: u32,
    /// Size of the header lists of this turn.
    decoded_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the client's preface.
    Preface,
    /// Before the client's first SETTINGS.
    Settings,
    Open,
    Failed(ConnectionError),
}

/// Progress of a drain (RFC 9113 6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drain {
    No,
    /// The client knows that it should begin no stream, but the next one may have begun before.
    Announced,
    /// Streams above this one are ignored.
    Final(u32),
}

/// Protocol of a connection by its first bytes (RFC 9113 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preface {
    /// HTTP/2, by prior knowledge.
    Complete,
    /// The beginning of a preface; more bytes are needed.
    Partial,
    /// Something else, such as HTTP/1.
    Other,
}

impl Preface {
    /// Compares the first bytes of a connection with the preface of HTTP/2.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        match bytes.len() {
            len if len >= PREFACE.len() && bytes.starts_with(PREFACE) => Self::Complete,
            len if len < PREFACE.len() && PREFACE.starts_with(bytes) => Self::Partial,
            _ => Self::Other,
        }
    }
}

impl Connection {
    /// Creates a connection, and writes its SETTINGS and the connection's window. `limits` are clamped to their
    /// usable ranges.
    #[must_use]
    pub fn new(limits: Limits, now_ms: u64, out: &mut Vec<u8>) -> Self {
        let limits = limits.usable();
        frame::append_settings(out, &limits);
        let window = limits.connection_window_bytes as i32;
        if window > WINDOW_BYTES_INITIAL {
            frame::append_window_update(out, 0, (window - WINDOW_BYTES_INITIAL) as u32);
        }
        Self {
            limits,
            state: State::Preface,
            drain: Drain::No,
            peer: PeerSettings::INITIAL,
            decoder: Decoder::new(),
            encoder: Encoder::new(),
            streams: Streams::new(limits.streams_max),
            scheduler: Scheduler::default(),
            block: None,
            incoming: None,
            skipped_bytes: 0,
            receive_window: window,
            credit: 0,
            send_window: WINDOW_BYTES_INITIAL,
            work: Work {
                now_ms,
                resets: Budget::new(RESETS_MAX, RESETS_PER_SECOND, now_ms),
                control_frames: Budget::new(CONTROL_FRAMES_MAX, CONTROL_FRAMES_PER_SECOND, now_ms),
                window_updates: 0,
                acknowledgements: 0,
                streams_this_turn: 0,
                decoded_bytes: 0,
            },
            sent_codes: None,
        }
    }

    /// Begins a turn of the caller's loop: refills budgets, and allows new streams.
    pub fn begin_turn(&mut self, now_ms: u64) {
        self.work.now_ms = now_ms;
        self.work.resets.refill(now_ms);
        self.work.control_frames.refill(now_ms);
        self.work.streams_this_turn = 0;
        self.work.decoded_bytes = 0;
    }

    /// Returns the size of the header lists that were decoded in this turn, in bytes, whether stored or not.
    #[must_use]
    pub fn decoded_this_turn(&self) -> usize {
        self.work.decoded_bytes
    }

    /// Records that everything written until now was sent.
    pub fn output_sent(&mut self) {
        self.work.acknowledgements = 0;
    }

    /// Takes the counts of RST_STREAM and GOAWAY frames written since the last call. To be called after each batch of
    /// received bytes.
    pub fn take_sent_codes(&mut self) -> Option<Box<SentCodes>> {
        self.sent_codes.take()
    }

    /// Returns the number of open streams: their requests or responses haven't ended.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns true if the client sends nothing more on a stream: it has ended it, or the stream is closed.
    #[must_use]
    pub fn is_request_ended(&self, stream: StreamId) -> bool {
        self.streams.find(stream.0).is_none_or(|slot| self.streams[slot].is_request_ended)
    }

    /// Returns true if a header block has begun and isn't complete: a head's deadline applies.
    #[must_use]
    pub fn has_partial_head(&self) -> bool {
        self.block.is_some()
    }

    /// Returns true if the connection may be closed: it has failed, or it is drained and no stream is open.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match self.state {
            State::Failed(_) => true,
            _ => matches!(self.drain, Drain::Final(_)) && self.streams.len() == 0,
        }
    }

    /// Returns the reason why the connection has failed.
    #[must_use]
    pub fn failure(&self) -> Option<ConnectionError> {
        match self.state {
            State::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the memory that it has allocated, in bytes, without its own size.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let block = self.block.as_ref().map_or(0, |block| size_of::<PartialBlock>() + block.held_bytes());
        self.decoder.held_bytes() + self.encoder.held_bytes() + self.streams.held_bytes() + block
    }

    /// Frees memory that an idle connection doesn't need. The client's HPACK table remains.
    pub fn trim(&mut self) {
        self.streams.trim();
        self.decoder.trim();
        self.encoder.trim();
    }

    /// Begins a drain: asks the client to begin no further stream. Those that it has begun meanwhile are
    /// served; [`is_finished`](Self::is_finished) says when none is left (RFC 9113 6.8).
    pub fn drain(&mut self, out: &mut Vec<u8>) {
        if self.drain == Drain::No && self.failure().is_none() {
            self.drain = Drain::Announced;
            self.append_go_away(ANY_STREAM, ErrorCode::NoError, "", out);
            frame::append_ping(out, DRAIN_PING, false);
        }
    }

    /// Ends the first part of a drain, or the whole of it if none has begun: ignores streams that begin from now
    /// on. Happens by itself once the client has seen that the drain has begun.
    pub fn refuse_streams(&mut self, out: &mut Vec<u8>) {
        if !matches!(self.drain, Drain::Final(_)) && self.failure().is_none() {
            self.drain = Drain::Final(self.streams.last());
            self.append_go_away(self.streams.last(), ErrorCode::NoError, "", out);
        }
    }

    /// Ends the connection with an error, and writes its GOAWAY.
    fn fail(&mut self, error: ConnectionError, out: &mut Vec<u8>) -> ConnectionError {
        if let State::Failed(earlier) = self.state {
            return earlier;
        }
        let last = match self.drain {
            Drain::Final(last) => last,
            Drain::No | Drain::Announced => self.streams.last(),
        };
        self.append_go_away(last, error.code(), error.name(), out);
        self.state = State::Failed(error);
        error
    }

    /// Resets an open stream, with our reason; what it has received is dropped.
    ///
    /// # Errors
    /// If that is one reset too many.
    fn reset_open(
        &mut self,
        slot: Slot,
        error: StreamError,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        let id = self.streams[slot].id;
        self.close(slot, ClosedBy::Us, out);
        self.charge_reset()?;
        self.append_reset(id, error.code(), out);
        Ok(())
    }

    fn append_reset(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
        self.sent_codes.get_or_insert_default().resets[code as usize] += 1;
        frame::append_reset(out, stream, code);
    }

    fn append_go_away(&mut self, last: u32, code: ErrorCode, text: &str, out: &mut Vec<u8>) {
        self.sent_codes.get_or_insert_default().go_aways[code as usize] += 1;
        frame::append_go_away(out, last, code, text);
    }

    /// Removes a stream; content that wasn't consumed no longer counts.
    fn close(&mut self, slot: Slot, by: ClosedBy, out: &mut Vec<u8>) {
        self.scheduler.remove(&mut self.streams, slot);
        let stream = self.streams.close(slot, by);
        self.add_credit(stream.unconsumed, out);
    }

    /// Takes a reset from the budget.
    fn charge_reset(&mut self) -> Result<(), ConnectionError> {
        match self.work.resets.take() {
            true => Ok(()),
            false => Err(ConnectionError::TooManyResets),
        }
    }

    /// Takes a frame without content from the budget.
    fn charge_control(&mut self) -> Result<(), ConnectionError> {
        match self.work.control_frames.take() {
            true => Ok(()),
            false => Err(ConnectionError::TooManyControlFrames),
        }
    }

    /// Returns true for a stream that began after the end of all streams was announced.
    fn is_refused(&self, stream: u32) -> bool {
        matches!(self.drain, Drain::Final(last) if stream > last)
    }

    /// Returns the slot of an open stream.
    fn slot_of(&self, stream: StreamId) -> Option<Slot> {
        self.streams.find(stream.0)
    }
}
