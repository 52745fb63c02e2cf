//! Compiled fast routes: the part shared by all workers, and each worker's own.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use shearwater_engine::{FieldLines, Prebuilt, Response};
use shearwater_http1::Head;
use shearwater_io::{Item, Shared};

use crate::by_origin::ByOrigin;

/// Fills in a response.
pub(crate) type Write = Box<dyn Fn(&mut Response<'_>) + Send + Sync>;

/// A compiled fast route.
pub(crate) struct Encoded {
    pub(crate) response: EncodedResponse,
    /// Field lines of responses to `OPTIONS`.
    pub(crate) preflight: Option<ByOrigin<FieldLines>>,
}

/// The response of a fast route.
pub(crate) enum EncodedResponse {
    Static(StaticResponse),
    Dynamic(DynamicResponse),
}

/// A constant response.
pub(crate) struct StaticResponse {
    media_type: String,
    body: Bytes,
    lines: ByOrigin<FieldLines>,
}

enum Bytes {
    Static(&'static [u8]),
    Shared(Arc<[u8]>),
}

impl StaticResponse {
    pub(crate) fn new(
        media_type: String,
        body: Cow<'static, [u8]>,
        lines: ByOrigin<FieldLines>,
    ) -> Result<Self, String> {
        let body = match body {
            Cow::Borrowed(bytes) => Bytes::Static(bytes),
            Cow::Owned(bytes) => Bytes::Shared(bytes.into()),
        };
        let response = Self { media_type, body, lines };
        // Tries here what every worker will do, so that mistakes are reported at startup.
        response.try_encode()?;
        Ok(response)
    }

    /// Encodes the response for a worker.
    pub(crate) fn encode(&self) -> ByOrigin<Rc<Prebuilt>> {
        self.try_encode().expect("the same response was encoded at startup")
    }

    fn try_encode(&self) -> Result<ByOrigin<Rc<Prebuilt>>, String> {
        let body = match &self.body {
            Bytes::Static(bytes) => Shared::Static(bytes),
            Bytes::Shared(block) => Shared::Block(Rc::new(Arc::clone(block))),
        };
        let encode = |lines: &_| Prebuilt::new(&self.media_type, lines, Item::Shared(body.clone()));
        self.lines.map(|lines| encode(lines).map(Rc::new))
    }
}

/// A response that a closure fills in for each request.
pub(crate) struct DynamicResponse {
    write: Write,
    lines: ByOrigin<FieldLines>,
}

impl DynamicResponse {
    pub(crate) fn new(write: Write, lines: ByOrigin<FieldLines>) -> Self {
        Self { write, lines }
    }

    #[inline]
    pub(crate) fn respond(&self, head: &Head<'_>, response: &mut Response<'_>) {
        (self.write)(response.lines(self.lines.get(head)));
    }
}
