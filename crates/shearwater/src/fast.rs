//! Fast routes: answers that are encoded once, before the first request.

use std::borrow::Cow;
use std::fmt;

use shearwater_engine::{FieldLines, Response};
use shearwater_http1::Method;

use crate::by_origin::ByOrigin;
use crate::cors::Cors;
use crate::encoded::{Answer, Block, Encoded, Write, Written};

/// An answer that is encoded once and sent for each request of a path: nothing is formatted or allocated per request. `Date` and
/// `Server` are the server's, as in every answer. For [`App::fast`](crate::App::fast).
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
    /// Plain text in UTF-8.
    #[must_use]
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::bytes("text/plain; charset=utf-8", bytes_of(text.into()))
    }

    /// JSON, as text (RFC 8259): what is given is sent, and not looked at.
    #[must_use]
    pub fn json(text: impl Into<Cow<'static, str>>) -> Self {
        Self::bytes("application/json", bytes_of(text.into()))
    }

    /// Bytes of a media type. Each worker keeps them by reference; they are copied to be sent where they are few.
    #[must_use]
    pub fn bytes(media_type: impl Into<String>, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self::of(Content::Bytes { media_type: media_type.into(), body: body.into() })
    }

    /// What `write` makes of a response, for each request anew. Fields that are set here are in it already;
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
    ///         write!(out, r#"{{"count":{count}}}"#).expect("a vector takes everything");
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

    /// Adds a field (RFC 9110 section 5). One that can't be sent, or is the server's own, is an error at the start.
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

    /// Lets pages of other origins read it, and answers their preflights (`OPTIONS`): both encoded once, too.
    #[must_use]
    pub fn cors(mut self, cors: Cors) -> Self {
        self.cors = Some(cors);
        self
    }

    /// The methods that it answers, in the place of `GET`; `HEAD` comes with `GET`. Requests with others go on to the routes.
    #[must_use]
    pub fn methods(mut self, methods: &[Method]) -> Self {
        self.methods = methods.to_vec();
        self
    }

    /// The methods that it answers, each once: `OPTIONS` too, where it has preflights.
    pub(crate) fn answered(&self) -> impl Iterator<Item = Method> {
        let preflights = self.cors.is_some().then_some(Method::Options);
        let first = |(number, method): (usize, &Method)| {
            (!self.methods[..number].contains(method)).then_some(*method)
        };
        let own = self.methods.iter().enumerate().filter_map(first);
        own.filter(move |method| Some(*method) != preflights).chain(preflights)
    }

    /// Encodes it, for all workers. `allow` lists the methods of its path.
    pub(crate) fn encode(self, allow: &str) -> Result<Encoded, String> {
        if self.methods.is_empty() {
            return Err("it has no methods".to_owned());
        }
        let mut lines = FieldLines::new();
        for (name, value) in &self.fields {
            if name.eq_ignore_ascii_case("Content-Type") {
                return Err("the Content-Type of a fast answer is that of its content".to_owned());
            }
            lines.push(name, value)?;
        }
        let preflight = self.cors.as_ref().map(|cors| cors.of_preflights(allow, &self.readable()));
        let lines = match &self.cors {
            Some(cors) => cors.of_answers(&lines)?,
            None => ByOrigin::everyone(lines),
        };
        let answer = match self.content {
            Content::Bytes { media_type, body } => Answer::Block(Block::new(media_type, body, lines)?),
            Content::With(write) => Answer::Written(Written::new(write, lines)),
        };
        Ok(Encoded { answer, preflight: preflight.transpose()? })
    }

    /// The methods that pages may use, as a list.
    fn readable(&self) -> String {
        let head = self.methods.contains(&Method::Get).then_some(Method::Head);
        let methods = self.answered().filter(|method| *method != Method::Options).chain(head);
        methods.filter_map(Method::name).collect::<Vec<_>>().join(", ")
    }
}

fn bytes_of(text: Cow<'static, str>) -> Cow<'static, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}
