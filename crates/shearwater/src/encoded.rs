//! What becomes of a fast route at the start: what all workers share of it, and what each makes of that.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use shearwater_engine::{FieldLines, Prebuilt, Response};
use shearwater_http1::Head;
use shearwater_io::{Item, Shared};

use crate::by_origin::ByOrigin;

/// Writes an answer.
pub(crate) type Write = Box<dyn Fn(&mut Response<'_>) + Send + Sync>;

/// A fast route, encoded.
pub(crate) struct Encoded {
    pub(crate) answer: Answer,
    /// Field lines of the answers to `OPTIONS`.
    pub(crate) preflight: Option<ByOrigin<FieldLines>>,
}

/// What answers its methods.
pub(crate) enum Answer {
    Block(Block),
    Written(Written),
}

/// An answer that is the same each time.
pub(crate) struct Block {
    media_type: String,
    body: Bytes,
    lines: ByOrigin<FieldLines>,
}

enum Bytes {
    Static(&'static [u8]),
    Shared(Arc<[u8]>),
}

impl Block {
    pub(crate) fn new(
        media_type: String,
        body: Cow<'static, [u8]>,
        lines: ByOrigin<FieldLines>,
    ) -> Result<Self, String> {
        let body = match body {
            Cow::Borrowed(bytes) => Bytes::Static(bytes),
            Cow::Owned(bytes) => Bytes::Shared(bytes.into()),
        };
        let block = Self { media_type, body, lines };
        // What every worker will do is tried here, where a mistake can be told.
        block.try_held()?;
        Ok(block)
    }

    /// A worker's own.
    pub(crate) fn held(&self) -> ByOrigin<Rc<Prebuilt>> {
        self.try_held().expect("the very same was encoded at the start")
    }

    fn try_held(&self) -> Result<ByOrigin<Rc<Prebuilt>>, String> {
        let body = match &self.body {
            Bytes::Static(bytes) => Shared::Static(bytes),
            Bytes::Shared(block) => Shared::Block(Rc::new(Arc::clone(block))),
        };
        let encode = |lines: &_| Prebuilt::new(&self.media_type, lines, Item::Shared(body.clone()));
        self.lines.map(|lines| encode(lines).map(Rc::new))
    }
}

/// An answer that a closure writes anew each time.
pub(crate) struct Written {
    write: Write,
    lines: ByOrigin<FieldLines>,
}

impl Written {
    pub(crate) fn new(write: Write, lines: ByOrigin<FieldLines>) -> Self {
        Self { write, lines }
    }

    #[inline]
    pub(crate) fn respond(&self, head: &Head<'_>, response: &mut Response<'_>) {
        (self.write)(response.lines(self.lines.get(head)));
    }
}
