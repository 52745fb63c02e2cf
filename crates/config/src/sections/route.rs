//! `[[site.route]]`: what is different for one path, or all beneath it.

use std::fmt;

use crate::fields::{Fields, Present, Visit};
use crate::reading::Reading;
use crate::rules::{Inline, Optional, PathPattern};
use crate::sections::headers::Headers;
use crate::sections::respond::Respond;
use crate::sections::serving::Serving;

/// What is different for one path, or one with all beneath it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Route {
    /// The paths.
    pub path: Pattern,
    /// An answer that needs no file; `None`: files.
    pub respond: Option<Respond>,
    /// How files are served: the site's, with what the route says instead.
    pub serving: Serving,
    /// The route's own fields, which add to the site's and come before them.
    pub headers: Headers,
}

/// One path, or one with all beneath it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// This path alone.
    Exact(String),
    /// All that is beneath this, which ends with `/`, and this without it.
    Prefix(String),
}

impl Default for Pattern {
    fn default() -> Self {
        Self::Prefix("/".to_owned())
    }
}

impl Pattern {
    /// Whether it is for more than one path.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        matches!(self, Self::Prefix(_))
    }
}

/// As it stands in the file.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(path) => f.write_str(path),
            Self::Prefix(path) => write!(f, "{path}*"),
        }
    }
}

impl Route {
    /// A route that says nothing yet, in a site that serves so.
    pub(crate) fn within(site: &Serving) -> Self {
        Self { serving: site.clone(), ..Self::default() }
    }
}

impl Fields for Route {
    const REQUIRED: &'static [&'static str] = &["path"];

    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field("path", "The path, or one with all beneath it (/assets/*). As in a URL, a percent sign is %25 and a star %2A. It is of paths and not of files: one that has several (/about and /about.html with clean_urls, / and /index.html) needs a route for each.", PathPattern, &mut self.path);
        visit.field(
            "respond",
            "An answer that needs no file. Beside it stand `path` and `headers` alone.",
            Optional(Inline("a table such as { status = 200, type = \"text/plain\", body = \"ok\" }")),
            &mut self.respond,
        );
        visit.field(
            "headers",
            "Fields that are set or removed, beside the site's; they come before those.",
            Inline("a table such as { set = { X-Frame-Options = \"DENY\" }, remove = [\"Server\"] }"),
            &mut self.headers,
        );
        self.serving.fields(visit);
    }

    fn check(&mut self, table: &Present<'_>, reading: &mut Reading<'_>) {
        self.serving.check(table, reading);
        self.replace_fallback(table);
        if !table.has("respond") {
            return;
        }
        let beside =
            table.table.iter().filter(|(key, _)| !MAY_STAND_BESIDE_RESPOND.contains(&key.get_ref().as_ref()));
        for (key, _) in beside.filter(|(key, _)| is_known(key.get_ref())) {
            let what = "a route with `respond` needs no files: keep one of both";
            reading.within(key.get_ref(), |reading| reading.problem(&key.span(), what));
        }
    }

    fn example() -> Self {
        Self {
            path: Pattern::Exact("/health".to_owned()),
            respond: Some(Respond::example()),
            headers: Headers::example(),
            serving: Serving::default(),
        }
    }
}

impl Route {
    /// `spa` and `try_files` say one thing: what the route says replaces both of its site's.
    fn replace_fallback(&mut self, table: &Present<'_>) {
        if table.has("try_files") && !table.has("spa") {
            self.serving.spa = None;
        }
        if self.serving.spa.is_some() && table.has("spa") {
            self.serving.try_files.clear();
        }
    }
}

const MAY_STAND_BESIDE_RESPOND: &[&str] = &["path", "respond", "headers"];

/// Unknown keys have been told already.
fn is_known(name: &str) -> bool {
    crate::sections::names::<Route>().contains(&name)
}
