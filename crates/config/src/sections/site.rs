//! `[[site]]` with its routes and redirects.

use crate::context::Context;
use crate::rules::{Inline, Integer, List, MediaType, OneOf, Optional, Tables, Text};
use crate::section::{Section, Table, Visitor, names, section};
use crate::sections::files::Serving;
use crate::sections::headers::Headers;

const HEADERS: Inline =
    Inline("a table such as { set = { X-Frame-Options = \"DENY\" }, remove = [\"Server\"] }");

/// A path of a site.
const PATH: Text = Text("a path such as \"/about\", or a prefix such as \"/assets/*\"");

/// Content for some host names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Site {
    /// Host names: exact, or `*.` and a suffix. Empty: all names of no other site.
    pub hosts: Vec<String>,
    /// How files are served.
    pub serving: Serving,
    /// Response headers that are set or removed.
    pub headers: Headers,
    /// Redirects; each takes precedence over a route of the same path.
    pub redirects: Vec<Redirect>,
    /// Routes. The most specific wins: exact before prefix, longer prefix before shorter.
    pub routes: Vec<Route>,
}

impl Section for Site {
    fn keys(&mut self, visitor: &mut impl Visitor) {
        visitor.key(
            "hosts",
            "Host names of the site: exact ones, or `*.example.org` for one or more labels before a name. \
             The site without `hosts` is the default. If every site has `hosts`, the first one is.",
            List(Text("a host name, such as \"example.org\" or \"*.example.org\"")),
            &mut self.hosts,
        );
        self.serving.keys(visitor);
        visitor.key("headers", "Response headers that are set or removed.", HEADERS, &mut self.headers);
        visitor.key("redirect", "See [[site.redirect]].", Tables(Redirect::default()), &mut self.redirects);
        visitor.key("route", "See [[site.route]].", Tables(Route::within(&self.serving)), &mut self.routes);
    }

    fn check(&mut self, table: &Table<'_>, context: &mut Context<'_>) {
        self.serving.check(table, context);
        if !table.has("root") && self.redirects.is_empty() && self.routes.is_empty() {
            let help = "add a `root`, such as `root = \"./public\"`, a route or a redirect";
            context.error_with_help(&table.span, "site without content", help);
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

/// Settings for one path or prefix of a site.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Route {
    /// The path or prefix.
    pub path: String,
    /// A fixed response; `None`: files.
    pub respond: Option<Respond>,
    /// How files are served: the site's keys, overridden by the route's.
    pub serving: Serving,
    /// Headers in addition to the site's; they take precedence over those.
    pub headers: Headers,
}

impl Route {
    /// Returns a route that inherits from its site.
    pub(crate) fn within(site: &Serving) -> Self {
        Self { serving: site.clone(), ..Self::default() }
    }

    /// `spa` and `try_files` exclude each other: either of a route replaces both of its site.
    fn replace_fallback(&mut self, table: &Table<'_>) {
        if table.has("try_files") && !table.has("spa") {
            self.serving.spa = None;
        }
        if self.serving.spa.is_some() && table.has("spa") {
            self.serving.try_files.clear();
        }
    }
}

impl Section for Route {
    const REQUIRED: &'static [&'static str] = &["path"];

    fn keys(&mut self, visitor: &mut impl Visitor) {
        visitor.key(
            "path",
            "An exact path, or a prefix (`/assets/*`). A percent sign is written %25, a star %2A. A file with several paths (/about and \
             /about.html with `clean_urls`, / and /index.html) needs a route for each.",
            PATH,
            &mut self.path,
        );
        visitor.key(
            "respond",
            "A fixed response instead of files. Only `path` and `headers` can be used with it.",
            Optional(Inline("a table such as { status = 200, type = \"text/plain\", body = \"ok\" }")),
            &mut self.respond,
        );
        visitor.key(
            "headers",
            "Response headers that are set or removed, in addition to the site's; they take precedence.",
            HEADERS,
            &mut self.headers,
        );
        self.serving.keys(visitor);
    }

    fn check(&mut self, table: &Table<'_>, context: &mut Context<'_>) {
        self.serving.check(table, context);
        self.replace_fallback(table);
        if !table.has("respond") {
            return;
        }
        let of_files = names::<Self>();
        let of_files = of_files.iter().filter(|name| !["path", "respond", "headers"].contains(name));
        for name in of_files.filter(|name| table.has(name)) {
            let message = format!("`{name}` has no effect with `respond`");
            table.error(
                context,
                name,
                &message,
                "a route with `respond` serves no files: remove one of both",
            );
        }
    }

    fn example() -> Self {
        Self {
            path: "/health".to_owned(),
            respond: Some(Respond::example()),
            headers: Headers::example(),
            serving: Serving::default(),
        }
    }
}

section! {
    /// A redirect from a path or prefix to another location.
    Redirect {
        from: String = String::new(), PATH,
            "An exact path, or a prefix (`/old/*`).";
        to: String = String::new(), Text("a path or URL, such as \"/new\", \"/new/{rest}\" or \"https://example.org/\""),
            "Target: a path of this site or a URL. `{rest}` is the part of the path that the `*` of `from` matches. The request's query is \
             kept unless the target has one.";
        status: u16 = 308, OneOf(&[301, 302, 303, 307, 308]),
            "301 and 308 are permanent. 307 and 308 keep the method, 303 changes it to GET, 301 and 302 may do so.";
    }

    const REQUIRED: &'static [&'static str] = &["from", "to"];

    fn example() -> Self {
        Self { from: "/old/*".to_owned(), to: "/new/{rest}".to_owned(), status: 308 }
    }
}

section! {
    /// A fixed response.
    Respond {
        status: u16 = 200, Integer(200..=599),
            "Status code, except 3xx (see `[[site.redirect]]`), 206, 405 and 426.";
        media_type as "type": String = "text/plain; charset=utf-8".to_owned(),
            MediaType::WithParameters,
            "Media type of the body.";
        body: String = String::new(), Text("a string"),
            "Body of the response.";
    }

    fn example() -> Self {
        Self { body: "ok\n".to_owned(), ..Self::default() }
    }
}
