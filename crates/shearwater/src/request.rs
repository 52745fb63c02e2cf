//! A request as a handler sees it, with the app's state.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::ops::Deref;
use std::str::FromStr;

use shearwater_engine::percent_decoded;
use shearwater_http1::Head;

use crate::reply::{Failure, Status};

/// A request, with the state of its [`App`](crate::App).
///
/// It also has the methods of [`engine::Request`](crate::engine::Request): method, path, client's address, …
pub struct Request<'a, S = ()> {
    request: &'a shearwater_engine::Request<'a>,
    state: &'a S,
}

impl<S> fmt::Debug for Request<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

impl<'a, S> Deref for Request<'a, S> {
    type Target = shearwater_engine::Request<'a>;

    fn deref(&self) -> &Self::Target {
        self.request
    }
}

impl<'a, S> Request<'a, S> {
    #[inline(always)]
    pub(crate) fn new(request: &'a shearwater_engine::Request<'a>, state: &'a S) -> Self {
        Self { request, state }
    }

    /// Returns the worker's state: see [`App::with_state`](crate::App::with_state).
    #[must_use]
    pub fn state(&self) -> &'a S {
        self.state
    }

    /// Parses a route parameter: `id` of `/user/{id}`. Its percent-encoding is decoded once (RFC 3986 section 2.1).
    ///
    /// # Errors
    /// A `400` that names the parameter, if it isn't percent-encoded UTF-8 or can't be parsed. A `500` if the route has no
    /// parameter of this name.
    pub fn param<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, Failure> {
        param(self.request.param(name), name)
    }

    /// Returns a route parameter as it was sent. `None` if the route has no parameter of this name.
    #[must_use]
    pub fn param_raw(&self, name: &str) -> Option<&'a str> {
        self.request.param(name)
    }

    /// Returns the value of a header field, the first of this name in any case. `None` if there is none, or it isn't UTF-8.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        header(self.request.head(), name)
    }

    /// Parses a parameter of the query, the first of this name. It is decoded as forms encode it (a plus is a space).
    ///
    /// # Errors
    /// A `400` that names the parameter, if it isn't percent-encoded UTF-8 or can't be parsed.
    pub fn query<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Failure> {
        query(self.request.query(), name)
    }

    /// Returns the target's query as it was sent, without the question mark.
    #[must_use]
    pub fn query_raw(&self) -> Option<&'a str> {
        self.request.query()
    }
}

pub(crate) fn param<T: FromStr<Err: Display>>(raw: Option<&str>, name: &str) -> Result<T, Failure> {
    match raw {
        Some(raw) => parse(raw, "parameter", name),
        None => Err(Failure::internal(format!(
            "the route has no parameter named {name:?}; help: write {{{name}}} in its path"
        ))),
    }
}

pub(crate) fn query<T: FromStr<Err: Display>>(query: Option<&str>, name: &str) -> Result<Option<T>, Failure> {
    for pair in query.unwrap_or_default().split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if percent_decoded(&spaced(key)).as_deref() == Some(name) {
            return parse(&spaced(value), "query parameter", name).map(Some);
        }
    }
    Ok(None)
}

/// Replaces each plus by a space.
fn spaced(text: &str) -> Cow<'_, str> {
    if text.contains('+') { text.replace('+', " ").into() } else { text.into() }
}

pub(crate) fn header<'a>(head: Head<'a>, name: &str) -> Option<&'a str> {
    str::from_utf8(head.field_named(name)?).ok()
}

fn parse<T: FromStr<Err: Display>>(raw: &str, kind: &str, name: &str) -> Result<T, Failure> {
    let refused =
        |why: &dyn Display| Failure::new(Status::BAD_REQUEST, format!("the {kind} {name:?}: {why}"));
    let decoded = percent_decoded(raw).ok_or_else(|| refused(&"not percent-encoded UTF-8"))?;
    decoded.parse().map_err(|why| refused(&why))
}
