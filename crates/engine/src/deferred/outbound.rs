//! The response of a deferred handler, queued for its worker.

use std::task::Waker;

use crate::deferred::stream::Stream;
use crate::response::coder::StreamCoder;
use crate::response::draft::ResponseDraft;

/// Progress of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing yet.
    Nothing,
    /// The head of a stream is to be sent.
    Begun,
    /// The head is sent, the stream continues.
    Streams,
    /// The whole response is ready.
    Whole,
    /// The stream has ended; its rest is to be sent.
    Ended,
    /// The stream can't be completed as its head has announced.
    Cut,
}

/// Response queued for the worker.
#[derive(Default)]
pub(crate) struct Outbound {
    /// Head of a stream, or a whole response.
    pub(crate) draft: Option<Box<ResponseDraft>>,
    pub(crate) stream: Stream,
    pub(crate) coder: Option<Coder>,
    pub(crate) is_over: bool,
    /// Reason why the handler has aborted the response.
    pub(crate) cut: Option<String>,
    pub(crate) writer: Option<Waker>,
}

/// The coder of a stream.
pub(crate) struct Coder {
    pub(crate) inner: Box<dyn StreamCoder>,
    /// Memory accounted for it, in bytes.
    pub(crate) counted: usize,
    /// All of the content is encoded and taken.
    pub(crate) is_done: bool,
}

impl Coder {
    pub(crate) fn new(inner: Box<dyn StreamCoder>) -> Self {
        Self { inner, counted: 0, is_done: false }
    }
}

impl Outbound {
    pub(crate) fn clear(&mut self) {
        self.stream.reset();
        self.coder = None;
        (self.draft, self.is_over, self.cut, self.writer) = (None, false, None, None);
    }

    /// Returns false while a coder has something to encode.
    pub(crate) fn is_encoded(&self) -> bool {
        self.coder.as_ref().is_none_or(|coder| coder.is_done)
    }

    /// Returns true if there is room for more content.
    pub(crate) fn has_room(&self) -> bool {
        self.stream.has_room() && self.coder.as_ref().is_none_or(|coder| coder.inner.has_room())
    }

    pub(crate) fn progress(&self) -> Progress {
        match (self.stream.is_begun(), self.is_over) {
            (false, false) => Progress::Nothing,
            (false, true) if self.cut.is_some() => Progress::Cut,
            (false, true) => Progress::Whole,
            (true, _) if self.cut.is_some() || self.stream.falls_short(self.is_over) => Progress::Cut,
            (true, true) if self.is_encoded() => Progress::Ended,
            (true, _) if self.draft.is_some() => Progress::Begun,
            (true, _) => Progress::Streams,
        }
    }
}
