//! Return values of handlers: replies, and failures instead of one.

use std::borrow::Cow;
use std::fmt;

use shearwater_engine::Response;
use shearwater_http1::encode::reason;

/// A status code of a final response (RFC 9110 section 15).
///
/// As a reply it has no body; from 400 on it has its reason phrase as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Status(u16);

macro_rules! statuses {
    ($($name:ident = $code:literal)*) => {
        impl Status {
            $(
                #[doc = concat!("`", $code, "`.")]
                pub const $name: Self = Self($code);
            )*
        }
    };
}

statuses! {
    OK = 200
    CREATED = 201
    ACCEPTED = 202
    NO_CONTENT = 204
    MULTI_STATUS = 207
    MOVED_PERMANENTLY = 301
    FOUND = 302
    SEE_OTHER = 303
    NOT_MODIFIED = 304
    TEMPORARY_REDIRECT = 307
    PERMANENT_REDIRECT = 308
    BAD_REQUEST = 400
    UNAUTHORIZED = 401
    FORBIDDEN = 403
    NOT_FOUND = 404
    METHOD_NOT_ALLOWED = 405
    CONFLICT = 409
    GONE = 410
    PRECONDITION_FAILED = 412
    CONTENT_TOO_LARGE = 413
    UNSUPPORTED_MEDIA_TYPE = 415
    UNPROCESSABLE_CONTENT = 422
    TOO_MANY_REQUESTS = 429
    INTERNAL_SERVER_ERROR = 500
    NOT_IMPLEMENTED = 501
    BAD_GATEWAY = 502
    SERVICE_UNAVAILABLE = 503
    GATEWAY_TIMEOUT = 504
}

impl Status {
    /// Creates a status from its code.
    ///
    /// # Panics
    /// If it isn't a final status, 200 to 599.
    #[must_use]
    #[track_caller]
    pub const fn new(code: u16) -> Self {
        assert!(code >= 200 && code <= 599, "a final HTTP status is 200 to 599");
        Self(code)
    }

    /// Returns its code.
    #[must_use]
    pub const fn code(self) -> u16 {
        self.0
    }
}

/// A value that a handler returns as its response.
///
/// | type | response |
/// |---|---|
/// | `&str`, `String`, `Cow<str>` | `200`, `text/plain; charset=utf-8` |
/// | `&[u8]`, `Vec<u8>` | `200`, `application/octet-stream` |
/// | [`Status`] | without a body; from 400 on with its reason phrase |
/// | `(Status, T)` | that of `T`, with this status |
/// | ([`Head`], `T`) | that of `T`, with this status and these fields |
/// | `Option<T>` | that of `T`; `None` is a `404` |
/// | `Result<T, E>` | that of `T`, or of the [`Failure`] that `E` becomes |
/// | `()` | as set by [`Call::response`](crate::Call::response) |
/// | [`Sent`](crate::Sent) | was streamed |
/// | `Json<T>` | JSON (feature `json`) |
pub trait Reply {
    /// Sets the response.
    ///
    /// # Errors
    /// The failure to respond with instead.
    fn reply(self, response: &mut Response<'_>) -> Result<(), Failure>;
}

impl Reply for () {
    #[inline]
    fn reply(self, _: &mut Response<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Reply for &str {
    #[inline]
    fn reply(self, response: &mut Response<'_>) -> Result<(), Failure> {
        response.text(self);
        Ok(())
    }
}

impl Reply for String {
    #[inline]
    fn reply(self, response: &mut Response<'_>) -> Result<(), Failure> {
        self.as_str().reply(response)
    }
}

impl Reply for Cow<'_, str> {
    #[inline]
    fn reply(self, response: &mut Response<'_>) -> Result<(), Failure> {
        (*self).reply(response)
    }
}

impl Reply for &[u8] {
    #[inline]
    fn reply(self, response: &mut Response<'_>) -> Result<(), Failure> {
        response.content_type("application/octet-stream").body(self);
        Ok(())
    }
}

impl Reply for Vec<u8> {
    #[inline]
    fn reply(self, response: &mut Response<'_>) -> Result<(), Failure> {
        self.as_slice().reply(response)
    }
}

impl Reply for Status {
    fn reply(self, response: &mut Response<'_>) -> Result<(), Failure> {
        response.status(self.0);
        match reason(self.0) {
            "" => {}
            reason if self.0 >= 400 => drop(response.text(&format!("{reason}\n"))),
            _ => {}
        }
        Ok(())
    }
}

impl<T: Reply> Reply for (Status, T) {
    #[inline]
    fn reply(self, response: &mut Response<'_>) -> Result<(), Failure> {
        self.1.reply(response)?;
        response.status(self.0.0);
        Ok(())
    }
}

impl<T: Reply> Reply for (Head, T) {
    fn reply(self, response: &mut Response<'_>) -> Result<(), Failure> {
        self.1.reply(response)?;
        self.0.apply(response);
        Ok(())
    }
}

impl<T: Reply> Reply for Option<T> {
    #[inline]
    fn reply(self, response: &mut Response<'_>) -> Result<(), Failure> {
        match self {
            Some(reply) => reply.reply(response),
            // A failure, so that no status or head beside it makes a success of it.
            None => Err(Failure::new(Status::NOT_FOUND, "Not Found")),
        }
    }
}

impl<T: Reply, E: Into<Failure>> Reply for Result<T, E> {
    #[inline]
    fn reply(self, response: &mut Response<'_>) -> Result<(), Failure> {
        self.map_err(Into::into)?.reply(response)
    }
}

/// A failure of a handler: a response for the client, or an error for the operator.
///
/// Every [`Error`](std::error::Error) becomes one by `?`: the client gets a `500` (a stream that has begun is cut off), the
/// operator the error's text. Say with [`new`](Self::new) what a client did wrong.
///
/// ```
/// use shearwater::{Failure, Request, Status};
///
/// fn note(request: &Request) -> Result<String, Failure> {
///     let number: usize = request.param("number")?;                    // 400
///     let notes = std::env::var("NOTES")?;                             // 500
///     let note = notes.lines().nth(number);
///     note.map(str::to_owned).ok_or(Failure::new(Status::GONE, "no longer here")) // 410
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Response(Status, Cow<'static, str>),
    Internal(String),
}

impl Failure {
    /// Creates a response with a line of plain text, which the client sees.
    #[must_use]
    pub fn new(status: Status, text: impl Into<Cow<'static, str>>) -> Self {
        Self(Kind::Response(status, text.into()))
    }

    /// Creates a `500` with an error for the operator, which the client doesn't see.
    #[must_use]
    pub fn internal(error: impl fmt::Display) -> Self {
        Self(Kind::Internal(error.to_string()))
    }

    /// Returns the status of the response.
    #[must_use]
    pub fn status(&self) -> Status {
        match self.0 {
            Kind::Response(status, _) => status,
            Kind::Internal(_) => Status::INTERNAL_SERVER_ERROR,
        }
    }

    /// Responds with it.
    #[cold]
    pub(crate) fn respond(self, response: &mut Response<'_>) {
        match self.0 {
            Kind::Response(status, text) => {
                response.drop_deferral();
                response.status(status.0).text(&format!("{text}\n"));
            }
            Kind::Internal(_) => drop(response.fail(self.report())),
        }
    }

    /// Returns the text for the operator.
    pub(crate) fn report(&self) -> String {
        format!("a handler has failed: {self}")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Response(status, text) => write!(f, "{} {text}", status.0),
            Kind::Internal(error) => f.write_str(error),
        }
    }
}

// Not an `Error` itself, so that each of these converts by `?`.
impl<E: std::error::Error> From<E> for Failure {
    #[cold]
    fn from(error: E) -> Self {
        Self::internal(error)
    }
}

/// Status and header fields of a response: for [`Call::begin`](crate::Call::begin), and as part of a reply.
///
/// ```
/// use shearwater::{Head, Request, Status};
///
/// fn style(_: &Request) -> (Head, &'static str) {
///     (Head::ok("text/css").field("Cache-Control", "max-age=60"), "body { color: black }")
/// }
///
/// fn moved(_: &Request) -> (Head, Status) {
///     (Head::new(Status::SEE_OTHER).field("Location", "/style.css"), Status::SEE_OTHER)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    status: Status,
    fields: Vec<(Cow<'static, str>, Cow<'static, [u8]>)>,
    length: Option<u64>,
}

impl Head {
    /// Creates a head without fields of its own.
    #[must_use]
    pub fn new(status: Status) -> Self {
        Self { status, fields: Vec::new(), length: None }
    }

    /// Creates the head of a `200` with a media type (RFC 9110 section 8.3).
    #[must_use]
    pub fn ok(media_type: impl Into<String>) -> Self {
        Self::new(Status::OK).field("Content-Type", media_type.into())
    }

    /// Appends a field. An invalid one makes the response a `500`: see [`Response::field`].
    #[must_use]
    pub fn field(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Vec<u8>>) -> Self {
        self.fields.push((name.into(), Cow::Owned(value.into())));
        self
    }

    /// Declares the length of a stream's body in bytes, instead of sending it in chunks.
    ///
    /// A body that ends before is cut off; bytes beyond it are left out. Both are reported to the operator.
    #[must_use]
    pub fn length(mut self, bytes: u64) -> Self {
        self.length = Some(bytes);
        self
    }

    /// Sets the response's status and fields. Returns the declared length.
    pub(crate) fn apply(self, response: &mut Response<'_>) -> Option<u64> {
        response.status(self.status.0);
        for (name, value) in &self.fields {
            response.field(name, value);
        }
        self.length
    }
}

/// A reply in JSON (RFC 8259), by the feature `json`.
#[cfg(feature = "json")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

#[cfg(feature = "json")]
impl<T: serde::Serialize> Reply for Json<T> {
    fn reply(self, response: &mut Response<'_>) -> Result<(), Failure> {
        let mut written = Ok(());
        response
            .content_type("application/json")
            .body_with(|out| written = serde_json::to_writer(out, &self.0));
        written.map_err(Failure::internal)
    }
}
