//! Streams whose content is encoded before it is sent, such as compressed, by a step around their handler.

use std::future::poll_fn;
use std::rc::Rc;

use shearwater_http1::ResponseFraming;

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
