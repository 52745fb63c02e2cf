//! Constant responses, which are encoded once, before the first request.

mod cors;

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use shearwater_engine::{FieldLines, Prebuilt};
use shearwater_io::{Item, Shared};

pub(crate) use cors::ByOrigin;
pub use cors::Cors;

/// A constant response: a handler that is encoded once, at startup.
///
/// Nothing is formatted or allocated per request. `Date` and `Server` are set by the server, as in every response.
/// `"text"` alone is short for `Fast::text("text")`.
///
/// ```
/// use shearwater::{App, Cors, Fast, get};
///
/// let version = Fast::json(r#"{"version":1}"#).cache_control("max-age=60");
/// let app = App::new()
///     .route("/plaintext", get("Hello, World!"))
///     .route("/version", get(version).cors(Cors::any()));
/// ```
pub struct Fast {
    media_type: String,
    body: Cow<'static, [u8]>,
    fields: Vec<(String, String)>,
}

impl fmt::Debug for Fast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fast")
            .field("media_type", &self.media_type)
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

impl Fast {
    /// Creates a response of plain text in UTF-8.
    #[must_use]
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::bytes("text/plain; charset=utf-8", bytes_of(text.into()))
    }

    /// Creates a response of JSON text (RFC 8259), which is not validated.
    #[must_use]
    pub fn json(text: impl Into<Cow<'static, str>>) -> Self {
        Self::bytes("application/json", bytes_of(text.into()))
    }

    /// Creates a response of bytes with a media type. Workers share large bodies and copy small ones into the output.
    #[must_use]
    pub fn bytes(media_type: impl Into<String>, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self { media_type: media_type.into(), body: body.into(), fields: Vec::new() }
    }

    /// Adds a header field (RFC 9110 section 5). An invalid one, and one that the server sets itself, is an error at
    /// startup.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Adds `Cache-Control` (RFC 9111 section 5.2).
    #[must_use]
    pub fn cache_control(self, value: impl Into<String>) -> Self {
        self.field("Cache-Control", value)
    }

    /// Encodes the response for all workers.
    pub(crate) fn encode(self, cors: Option<&Cors>) -> Result<StaticResponse, String> {
        let mut lines = FieldLines::new();
        for (name, value) in &self.fields {
            if name.eq_ignore_ascii_case("Content-Type") {
                return Err("the Content-Type of a constant is set by its content".to_owned());
            }
            lines.push(name, value)?;
        }
        let lines = match cors {
            Some(cors) => cors.response_lines(&lines)?,
            None => ByOrigin::uniform(lines),
        };
        let body = match self.body {
            Cow::Borrowed(bytes) => Bytes::Static(bytes),
            Cow::Owned(bytes) => Bytes::Shared(bytes.into()),
        };
        let response = StaticResponse { media_type: self.media_type, body, lines };
        // Tries here what every worker will do, so that mistakes are reported at startup.
        response.try_encode()?;
        Ok(response)
    }
}

fn bytes_of(text: Cow<'static, str>) -> Cow<'static, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
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
