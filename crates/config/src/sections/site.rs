//! `[[site]]`: what is served to some host names.

use crate::checks::host;
use crate::fields::{Fields, Present, Visit};
use crate::reading::Reading;
use crate::rules::{Inline, List, Tables, Text};
use crate::sections::headers::Headers;
use crate::sections::redirect::Redirect;
use crate::sections::route::Route;
use crate::sections::serving::Serving;

/// What is served to some host names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Site {
    /// Names in lower case: exact, or `*.` and what they end with. Empty: every name that no other site has.
    pub hosts: Vec<String>,
    /// How files are served.
    pub serving: Serving,
    /// Fields of answers that are set or removed.
    pub headers: Headers,
    /// Redirects; each comes before a route of the same path.
    pub redirects: Vec<Redirect>,
    /// Routes. The most specific counts: exact before prefix, the longer prefix before the shorter.
    pub routes: Vec<Route>,
}

impl Fields for Site {
    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "hosts",
            "Host names that it is for: exact ones, or one or more labels before a name (*.example.org). \
             The site without them is for all other names; where each has them, the first one is.",
            List(Text("a host name, such as \"example.org\" or \"*.example.org\"", host)),
            &mut self.hosts,
        );
        self.serving.fields(visit);
        visit.field(
            "headers",
            "Fields of answers that are set or removed.",
            Inline("a table such as { set = { X-Frame-Options = \"DENY\" }, remove = [\"Server\"] }"),
            &mut self.headers,
        );
        visit.field("redirect", "See [[site.redirect]].", Tables(Redirect::default()), &mut self.redirects);
        visit.field("route", "See [[site.route]].", Tables(Route::within(&self.serving)), &mut self.routes);
    }

    fn check(&mut self, table: &Present<'_>, reading: &mut Reading<'_>) {
        self.serving.check(table, reading);
        if !table.has("root") && self.redirects.is_empty() && self.routes.is_empty() {
            let what =
                "it answers nothing: give it a `root`, such as root = \"./public\", a route or a redirect";
            reading.problem(&table.span, what);
        }
    }

    fn example() -> Self {
        Self {
            hosts: vec!["example.org".to_owned(), "*.example.org".to_owned()],
            serving: Serving::example(),
            headers: Headers::example(),
            ..Self::default()
        }
    }
}
