//! CORS headers, encoded once, and values by the origin of the requesting page.

use shearwater_engine::{FieldLines, Request};
use shearwater_http1::{Head, KnownField, Method};

/// A CORS policy (Fetch standard), for a [table](crate::MethodTable::cors) or a scope ([`for_methods`](Self::for_methods)).
///
/// ```
/// use shearwater::{App, Cors, get};
///
/// let own = Cors::origins(["https://example.org"]).headers("Authorization").max_age_s(600);
/// let app = App::new().route("/open", get("[]").cors(Cors::any())).route("/own", get("[]").cors(own));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// `None` for any origin.
    origins: Option<Vec<String>>,
    headers: Option<String>,
    exposed: Option<String>,
    credentials: bool,
    max_age_s: Option<u32>,
}

impl Cors {
    /// Allows pages of every origin to read the response.
    #[must_use]
    pub fn any() -> Self {
        Self::of(None)
    }

    /// Allows pages of these origins to read the response.
    ///
    /// Each origin is written as browsers send it: `https://example.org`, `http://localhost:3000`.
    #[must_use]
    pub fn origins<S: Into<String>>(origins: impl IntoIterator<Item = S>) -> Self {
        Self::of(Some(origins.into_iter().map(Into::into).collect()))
    }

    fn of(origins: Option<Vec<String>>) -> Self {
        Self { origins, headers: None, exposed: None, credentials: false, max_age_s: None }
    }

    /// Sets `Access-Control-Allow-Headers`: names of headers that pages may send, separated by commas.
    #[must_use]
    pub fn headers(mut self, names: impl Into<String>) -> Self {
        self.headers = Some(names.into());
        self
    }

    /// Sets `Access-Control-Expose-Headers`: names of headers that pages may read, separated by commas.
    #[must_use]
    pub fn expose(mut self, names: impl Into<String>) -> Self {
        self.exposed = Some(names.into());
        self
    }

    /// Allows pages to send cookies and other credentials. Not for [`any`](Self::any) origin, which browsers reject: an
    /// error at startup.
    #[must_use]
    pub fn credentials(mut self) -> Self {
        self.credentials = true;
        self
    }

    /// Sets `Access-Control-Max-Age`: seconds for which a browser may cache a preflight. Browsers have upper limits of
    /// their own.
    #[must_use]
    pub fn max_age_s(mut self, max_age_s: u32) -> Self {
        self.max_age_s = Some(max_age_s);
        self
    }

    /// Returns true if a request is a preflight: it asks whether a page may send another one.
    #[must_use]
    pub fn is_preflight(request: &Request<'_>) -> bool {
        let head = request.head();
        request.method() == Method::Options
            && head.field(KnownField::Origin).is_some()
            && head.field(KnownField::AccessControlRequestMethod).is_some()
    }

    /// Returns the origins, if only some are allowed.
    #[must_use]
    pub fn listed_origins(&self) -> Option<&[String]> {
        self.origins.as_deref()
    }

    /// Returns the headers of all responses to pages of an origin, one of the listed ones.
    ///
    /// If origins are listed, responses to others need `Vary: Origin`, too (RFC 9110 section 12.5.5).
    #[must_use]
    pub fn response_headers(&self, origin: Option<&str>) -> Vec<(&'static str, String)> {
        let mut headers = self.allowing_headers(origin);
        headers.extend(self.exposed.clone().map(|names| ("Access-Control-Expose-Headers", names)));
        headers
    }

    /// Returns what a preflight response has beside the headers of [`response_headers`](Self::response_headers). `methods`
    /// are those that pages may use, separated by commas.
    #[must_use]
    pub fn preflight_headers(&self, methods: &str) -> Vec<(&'static str, String)> {
        let mut headers = vec![("Access-Control-Allow-Methods", methods.to_owned())];
        headers.extend(self.headers.clone().map(|names| ("Access-Control-Allow-Headers", names)));
        headers.extend(self.max_age_s.map(|seconds| ("Access-Control-Max-Age", seconds.to_string())));
        headers
    }

    /// Checks the policy.
    ///
    /// # Errors
    /// If it allows credentials for any origin, or lists an invalid origin.
    pub fn check(&self) -> Result<(), String> {
        if self.origins.is_none() && self.credentials {
            return Err("credentials can't be allowed for any origin; help: list the origins".to_owned());
        }
        match self.origins.iter().flatten().find(|origin| !is_origin(origin)) {
            Some(origin) => Err(format!(
                "invalid origin {origin:?}; help: write it as browsers send it, such as https://example.org"
            )),
            None => Ok(()),
        }
    }

    /// Returns the headers that allow an origin.
    fn allowing_headers(&self, origin: Option<&str>) -> Vec<(&'static str, String)> {
        let mut headers = vec![("Access-Control-Allow-Origin", origin.unwrap_or("*").to_owned())];
        headers.extend(self.credentials.then(|| ("Access-Control-Allow-Credentials", "true".to_owned())));
        headers
    }

    /// Returns the field lines of responses, by origin.
    pub(crate) fn response_lines(&self, lines: &FieldLines) -> Result<ByOrigin<FieldLines>, String> {
        self.by_origin(lines, |origin| self.response_headers(origin))
    }

    /// Returns the field lines of preflight responses, by origin. `allow` lists the methods of the path, `methods`
    /// those that pages may use.
    pub(crate) fn preflight_lines(&self, allow: &str, methods: &str) -> Result<ByOrigin<FieldLines>, String> {
        let mut lines = FieldLines::new();
        push(&mut lines, "Allow", allow)?;
        self.by_origin(&lines, |origin| {
            let mut headers = self.allowing_headers(origin);
            headers.extend(self.preflight_headers(methods));
            headers
        })
    }

    /// Adds to `lines` those for each allowed origin.
    fn by_origin(
        &self,
        lines: &FieldLines,
        headers: impl Fn(Option<&str>) -> Vec<(&'static str, String)>,
    ) -> Result<ByOrigin<FieldLines>, String> {
        self.check()?;
        let allowed = |origin| {
            let mut lines = lines.clone();
            headers(origin).iter().try_for_each(|(name, value)| push(&mut lines, name, value))?;
            Ok::<_, String>(lines)
        };
        let Some(origins) = &self.origins else { return Ok(ByOrigin::uniform(allowed(None)?)) };
        // The response depends on the origin, and caches must know (RFC 9110 section 12.5.5).
        let varies = |mut lines: FieldLines| push(&mut lines, "Vary", "Origin").map(|()| lines);
        let origins =
            origins.iter().map(|origin| Ok((origin.as_bytes().into(), varies(allowed(Some(origin))?)?)));
        Ok(ByOrigin::new(origins.collect::<Result<_, String>>()?, varies(lines.clone())?))
    }
}

fn push(lines: &mut FieldLines, name: &str, value: &str) -> Result<(), String> {
    lines.push(name, value).map(drop)
}

/// Returns true for an origin as browsers send it: scheme, host and optional port (RFC 6454 section 6.2), or `null`.
fn is_origin(text: &str) -> bool {
    let authority = text.split_once("://").map(|(_, authority)| authority);
    let is_bare = |authority: &str| !authority.is_empty() && !authority.contains(['/', '?', '#', '@']);
    let is_lower = !text.contains(|letter: char| letter.is_ascii_uppercase());
    text == "null" || is_lower && authority.is_some_and(is_bare)
}

/// A value for each origin, and one for all others.
#[derive(Debug)]
pub(crate) struct ByOrigin<T> {
    origins: Vec<(Box<[u8]>, T)>,
    other: T,
}

impl<T> ByOrigin<T> {
    /// Creates a table with a value for each origin, and one for all others.
    pub(crate) fn new(origins: Vec<(Box<[u8]>, T)>, other: T) -> Self {
        Self { origins, other }
    }

    /// Creates a table with the same value for all origins.
    pub(crate) fn uniform(value: T) -> Self {
        Self { origins: Vec::new(), other: value }
    }

    /// Returns the value for a request's origin.
    #[inline]
    pub(crate) fn get(&self, head: &Head<'_>) -> &T {
        if self.origins.is_empty() {
            return &self.other;
        }
        let sent = head.field(KnownField::Origin);
        let own = sent.and_then(|sent| self.origins.iter().find(|(origin, _)| **origin == *sent));
        own.map_or(&self.other, |(_, value)| value)
    }

    /// Converts each value.
    pub(crate) fn map<U, E>(&self, make: impl Fn(&T) -> Result<U, E>) -> Result<ByOrigin<U>, E> {
        let origins = self.origins.iter().map(|(origin, value)| Ok((origin.clone(), make(value)?)));
        Ok(ByOrigin { origins: origins.collect::<Result<_, E>>()?, other: make(&self.other)? })
    }
}
