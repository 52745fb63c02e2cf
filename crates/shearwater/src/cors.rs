//! Which pages of other origins may read an answer (CORS), encoded once.

use shearwater_engine::FieldLines;

use crate::by_origin::ByOrigin;

/// What a fast route tells browsers about pages of other origins (the Fetch standard's CORS protocol). For [`Fast::cors`](crate::Fast::cors).
///
/// ```
/// use shearwater::{Cors, Fast};
///
/// let open = Fast::json("[]").cors(Cors::any());
/// let own = Fast::json("[]").cors(Cors::origins(["https://example.org"]).headers("Authorization").max_age_s(600));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// `None`: any.
    origins: Option<Vec<String>>,
    headers: Option<String>,
    exposed: Option<String>,
    credentials: bool,
    max_age_s: Option<u32>,
}

impl Cors {
    /// Pages of every origin may read it.
    #[must_use]
    pub fn any() -> Self {
        Self::of(None)
    }

    /// Pages of these origins may read it, each as browsers send it: `https://example.org`, `http://localhost:3000`.
    #[must_use]
    pub fn origins<S: Into<String>>(origins: impl IntoIterator<Item = S>) -> Self {
        Self::of(Some(origins.into_iter().map(Into::into).collect()))
    }

    fn of(origins: Option<Vec<String>>) -> Self {
        Self { origins, headers: None, exposed: None, credentials: false, max_age_s: None }
    }

    /// Names of fields that pages may send, with commas between them: `Access-Control-Allow-Headers`.
    #[must_use]
    pub fn headers(mut self, names: impl Into<String>) -> Self {
        self.headers = Some(names.into());
        self
    }

    /// Names of fields that pages may read, with commas between them: `Access-Control-Expose-Headers`.
    #[must_use]
    pub fn expose(mut self, names: impl Into<String>) -> Self {
        self.exposed = Some(names.into());
        self
    }

    /// Pages may send cookies and the like. Not for [`any`](Self::any) origin: browsers refuse that.
    #[must_use]
    pub fn credentials(mut self) -> Self {
        self.credentials = true;
        self
    }

    /// How many seconds a browser may keep what it was told, and not ask again. Browsers have bounds of their own.
    #[must_use]
    pub fn max_age_s(mut self, max_age_s: u32) -> Self {
        self.max_age_s = Some(max_age_s);
        self
    }

    /// Lines for answers, by origin.
    pub(crate) fn of_answers(&self, lines: &FieldLines) -> Result<ByOrigin<FieldLines>, String> {
        self.by_origin(lines, |lines| {
            self.exposed.iter().try_for_each(|names| push(lines, "Access-Control-Expose-Headers", names))
        })
    }

    /// Lines for the answers to preflights, by origin: the methods of the path, and those that pages may use.
    pub(crate) fn of_preflights(&self, allow: &str, methods: &str) -> Result<ByOrigin<FieldLines>, String> {
        let mut lines = FieldLines::new();
        push(&mut lines, "Allow", allow)?;
        self.by_origin(&lines, |lines| {
            push(lines, "Access-Control-Allow-Methods", methods)?;
            self.headers.iter().try_for_each(|names| push(lines, "Access-Control-Allow-Headers", names))?;
            let max_age = self.max_age_s.map(|seconds| seconds.to_string());
            max_age.iter().try_for_each(|seconds| push(lines, "Access-Control-Max-Age", seconds))
        })
    }

    /// The lines with those of each origin, and of none that is allowed.
    fn by_origin(
        &self,
        lines: &FieldLines,
        more: impl Fn(&mut FieldLines) -> Result<(), String>,
    ) -> Result<ByOrigin<FieldLines>, String> {
        if self.origins.is_none() && self.credentials {
            return Err("credentials can't be sent to any origin: name the origins".to_owned());
        }
        let unsent = |origin: &&String| !is_origin(origin);
        if let Some(origin) = self.origins.iter().flatten().find(unsent) {
            return Err(format!("{origin:?} is no origin as browsers send it: https://example.org is one"));
        }
        let allowed = |origin: &str| {
            let mut lines = lines.clone();
            push(&mut lines, "Access-Control-Allow-Origin", origin)?;
            if self.credentials {
                push(&mut lines, "Access-Control-Allow-Credentials", "true")?;
            }
            more(&mut lines)?;
            Ok::<_, String>(lines)
        };
        let Some(origins) = &self.origins else { return Ok(ByOrigin::everyone(allowed("*")?)) };
        // Who gets which answer depends on the origin, and caches have to know (RFC 9110 section 12.5.5).
        let varies = |mut lines: FieldLines| push(&mut lines, "Vary", "Origin").map(|()| lines);
        let origins = origins.iter().map(|origin| Ok((origin.as_bytes().into(), varies(allowed(origin)?)?)));
        Ok(ByOrigin::new(origins.collect::<Result<_, String>>()?, varies(lines.clone())?))
    }
}

fn push(lines: &mut FieldLines, name: &str, value: &str) -> Result<(), String> {
    lines.push(name, value).map(drop)
}

/// Whether browsers send it so: a scheme, a host and perhaps a port (RFC 6454 section 6.2), or `null`.
fn is_origin(text: &str) -> bool {
    let authority = text.split_once("://").map(|(_, authority)| authority);
    let is_bare = |authority: &str| !authority.is_empty() && !authority.contains(['/', '?', '#', '@']);
    let is_lower = !text.contains(|letter: char| letter.is_ascii_uppercase());
    text == "null" || is_lower && authority.is_some_and(is_bare)
}
