//! Streams whose content is encoded before it is sent, such as compressed, by a step around their handler.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use shearwater_http1::ResponseFraming;
use shearwater_tasks::TaskId;

use crate::deferred::outbound::Coder;
use crate::deferred::shared::Shared;
use crate::request::Request;
use crate::response::Response;
use crate::response::coder::StreamCoder;
use crate::response::draft::Body;

impl Response<'_> {
    /// Has a coder encode the content of a stream. For a [step around](crate::Around) the handler, which sets the fields that
    /// describe the encoded content.
    ///
    /// The body is sent with an unknown length then. The coder is dropped unused if the body isn't sent, as for `HEAD`. Returns
    /// false, and changes nothing, if the response isn't a stream, or if too many requests are deferred.
    pub fn code_stream(
        &mut self,
        request: &Request<'_>,
        coder: impl FnOnce() -> Box<dyn StreamCoder>,
    ) -> bool {
        let has_room = self.calls.as_ref().is_some_and(|calls| !calls.tasks.is_full());
        if !has_room || !matches!(self.draft.body, Some(Body::Stream(_))) {
            return false;
        }
        let framing = ResponseFraming::of(None, request.head().version());
        self.draft.body = Some(Body::Coded(framing, coder()));
        true
    }
}

/// Moves encoded content to the stream until that was all.
pub(crate) async fn move_encoded(shared: Rc<Shared>) {
    poll_fn(|cx| shared.poll_coder(cx)).await;
}

/// Encoding of a stream.
impl Shared {
    /// Worker: has a coder encode the stream, of which only the head is encoded yet.
    pub(crate) fn code(&self, framing: ResponseFraming, inner: Box<dyn StreamCoder>) {
        let output = &mut *self.output.borrow_mut();
        let queued = output.stream.code(framing);
        self.changed(queued.capacity(), 0);
        let coder = output.coder.insert(Coder::new(inner));
        if !queued.is_empty() {
            coder.inner.push(&queued);
        }
        if output.is_over {
            coder.inner.end();
        }
        self.account(coder);
    }

    /// Worker: sets the task that moves what is encoded.
    pub(crate) fn set_coder_task(&self, task: TaskId) {
        self.coder_task.set(Some(task));
    }

    /// Worker: returns the task that moves what is encoded, if there is one.
    pub(crate) fn coder_task(&self) -> Option<TaskId> {
        self.coder_task.get()
    }

    /// Worker: returns false while a coder has something to encode.
    pub(crate) fn is_encoded(&self) -> bool {
        self.coder_task.get().is_none() || self.output.borrow().is_encoded()
    }

    /// Coder's task: moves what is encoded to the stream. Ready once that was all.
    pub(crate) fn poll_coder(&self, cx: &mut Context<'_>) -> Poll<()> {
        let output = &mut *self.output.borrow_mut();
        let Some(coder) = &mut output.coder else { return Poll::Ready(()) };
        let before = output.stream.capacity();
        let polled = coder.inner.poll_take(cx, output.stream.queue());
        self.changed(before, output.stream.capacity());
        coder.is_done = polled.is_ready();
        self.account(coder);
        polled.map(|taken| {
            if let Err(why) = taken {
                output.cut.get_or_insert(why);
            }
        })
    }
}
