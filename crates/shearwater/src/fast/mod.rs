//! Fast routes: responses that are encoded once, before the first request.

mod cors;

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use shearwater_engine::{FieldLines, Prebuilt, Response};
use shearwater_http1::{Head, Method};
use shearwater_io::{Item, Shared};

pub(crate) use cors::ByOrigin;
pub use cors::Cors;

/// A response that is encoded once and sent for each request of a path, for [`App::fast`](crate::App::fast).
///
/// Nothing is formatted or allocated per request. `Date` and `Server` are set by the server, as in every response.
///
/// ```
/// use shearwater::{App, Cors, Fast};
///
/// let mut app = App::new();
/// app.fast("/plaintext", Fast::text("Hello, World!"));
/// app.fast("/version", Fast::json(r#"{"version":1}"#).cache_control("max-age=60").cors(Cors::any()));
/// ```
pub struct Fast {
    content: Content,
    methods: Vec<Method>,
    fields: Vec<(String, String)>,
    cors: Option<Cors>,
}

impl fmt::Debug for Fast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fast")
            .field("methods", &self.methods)
            .field("fields", &self.fields)
            .field("cors", &self.cors)
            .finish_non_exhaustive()
    }
}

enum Content {
    Bytes { media_type: String, body: Cow<'static, [u8]> },
    With(Write),
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
        Self::of(Content::Bytes { media_type: media_type.into(), body: body.into() })
    }

    /// Creates a response that `write` fills in for each request. Header fields of this route are already set.
    ///
    /// [`Response::body_with`] writes a body without allocating.
    ///
    /// ```
    /// use std::io::Write;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use shearwater::{App, Fast};
    ///
    /// let mut app = App::new();
    /// let count = AtomicU64::new(0);
    /// app.fast("/count", Fast::with(move |response| {
    ///     let count = count.fetch_add(1, Ordering::Relaxed);
    ///     response.content_type("application/json").body_with(|out| {
    ///         write!(out, r#"{{"count":{count}}}"#).expect("writing to a vector can't fail");
    ///     });
    /// }));
    /// ```
    #[must_use]
    pub fn with(write: impl Fn(&mut Response<'_>) + Send + Sync + 'static) -> Self {
        Self::of(Content::With(Box::new(write)))
    }

    fn of(content: Content) -> Self {
        Self { content, methods: vec![Method::Get], fields: Vec::new(), cors: None }
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

    /// Allows pages of other origins to read the response, and handles their preflights (`OPTIONS`). Both are encoded
    /// once.
    #[must_use]
    pub fn cors(mut self, cors: Cors) -> Self {
        self.cors = Some(cors);
        self
    }

    /// Sets the methods, instead of `GET`; `GET` includes `HEAD`. Requests with other methods fall through to the
    /// routes.
    #[must_use]
    pub fn methods(mut self, methods: &[Method]) -> Self {
        self.methods = methods.to_vec();
        self
    }

    /// Returns its methods, each once, with `OPTIONS` if it handles preflights.
    pub(crate) fn all_methods(&self) -> impl Iterator<Item = Method> {
        let preflights = self.cors.is_some().then_some(Method::Options);
        let first = |(number, method): (usize, &Method)| {
            (!self.methods[..number].contains(method)).then_some(*method)
        };
        let own = self.methods.iter().enumerate().filter_map(first);
        own.filter(move |method| Some(*method) != preflights).chain(preflights)
    }

    /// Returns true if requests with this method are preflights.
    pub(crate) fn is_preflight(&self, method: Method) -> bool {
        self.cors.is_some() && method == Method::Options
    }

    /// Encodes the response for all workers, and the field lines of responses to preflights. `allow` lists the methods of
    /// its path.
    pub(crate) fn encode(self, allow: &str) -> Result<(Encoded, Option<ByOrigin<FieldLines>>), String> {
        if self.methods.is_empty() {
            return Err("it has no methods".to_owned());
        }
        let mut lines = FieldLines::new();
        for (name, value) in &self.fields {
            if name.eq_ignore_ascii_case("Content-Type") {
                return Err("the Content-Type of a fast route is set by its content".to_owned());
            }
            lines.push(name, value)?;
        }
        let preflight = self.cors.as_ref().map(|cors| cors.preflight_lines(allow, &self.readable()));
        let lines = match &self.cors {
            Some(cors) => cors.response_lines(&lines)?,
            None => ByOrigin::uniform(lines),
        };
        let response = match self.content {
            Content::Bytes { media_type, body } => {
                let body = match body {
                    Cow::Borrowed(bytes) => Bytes::Static(bytes),
                    Cow::Owned(bytes) => Bytes::Shared(bytes.into()),
                };
                let response = StaticResponse { media_type, body, lines };
                // Tries here what every worker will do, so that mistakes are reported at startup.
                response.try_encode()?;
                Encoded::Static(response)
            }
            Content::With(write) => Encoded::Dynamic(DynamicResponse { write, lines }),
        };
        Ok((response, preflight.transpose()?))
    }

    /// Returns the methods that pages may use, as a list.
    fn readable(&self) -> String {
        let head = self.methods.contains(&Method::Get).then_some(Method::Head);
        let methods = self.all_methods().filter(|method| *method != Method::Options).chain(head);
        methods.filter_map(Method::name).collect::<Vec<_>>().join(", ")
    }
}

fn bytes_of(text: Cow<'static, str>) -> Cow<'static, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// Fills in a response.
type Write = Box<dyn Fn(&mut Response<'_>) + Send + Sync>;

/// A fast route's response, as all workers share it.
pub(crate) enum Encoded {
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
    #[inline]
    pub(crate) fn respond(&self, head: &Head<'_>, response: &mut Response<'_>) {
        (self.write)(response.lines(self.lines.get(head)));
    }
}
