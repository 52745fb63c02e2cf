//! `[[site]]` with its routes, redirects and headers.

use std::collections::BTreeMap;
use std::time::Duration;

use toml::de::DeValue;

use crate::context::{Context, KeyPath, Value};
use crate::rules::collections::{List, Map, Optional, Table, Tables};
use crate::rules::numbers::{integer, one_of};
use crate::rules::strings::{Choice, Flag, Text, text};
use crate::section::{Kind::Inline, Row, Rule, Section, Source, Visitor, rows, section};
use crate::sections::files::{MEDIA_TYPE, Serving};
use crate::sections::guards::Guarding;
use crate::sections::tls::{Certificate, ClearRequests, Hsts, HstsRule, SiteTls};

const HEADERS: Table =
    Table(Inline, "a table such as { set = { X-Frame-Options = \"DENY\" }, remove = [\"Server\"] }");

/// A path of a site.
const PATH: Text<String> = text("a path such as \"/about\", or a prefix such as \"/assets/*\"");

/// Content for some host names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Site {
    /// Host names: exact, or `*.` and a suffix. Empty: all names of no other site.
    pub hosts: Vec<String>,
    /// The certificate.
    pub tls: SiteTls,
    /// Treatment of requests in clear; `None`: as `tls` suggests.
    pub http: Option<ClearRequests>,
    /// HTTP Strict Transport Security.
    pub hsts: Option<Hsts>,
    /// Guards and rules for browsers.
    pub guarding: Guarding,
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
            List(text("a host name, such as \"example.org\" or \"*.example.org\"")),
            &mut self.hosts,
        );
        visitor.key(
            "tls",
            "The site's certificate. \"auto\" gets and renews one for all of `hosts` (see [acme]), \"self-signed\" makes one for trying, a \
             table names your own. \"off\": none.",
            Certificate,
            &mut self.tls,
        );
        visitor.key(
            "http",
            "Requests that came in clear: \"redirect\" sends them to https, before everything else but challenges of certificate authorities; \
             \"serve\" serves them. Default: \"redirect\" for a site with TLS, else \"serve\". Behind a proxy that ends TLS, `client_header` of \
             [server] tells which requests came in clear.",
            Optional(Choice(&[])),
            &mut self.http,
        );
        visitor.key(
            "hsts",
            "Time for which browsers use https only (Strict-Transport-Security, RFC 6797), such as \"1y\". The header is in every response by \
             TLS and in none in clear. Begin with a short time: there is no way back before it ends.",
            HstsRule,
            &mut self.hsts,
        );
        self.guarding.keys(visitor);
        self.serving.keys(visitor);
        visitor.key("headers", "Response headers that are set or removed.", HEADERS, &mut self.headers);
        visitor.key(
            "redirect",
            "A redirect from a path or prefix of the site above. It takes precedence over a route of the same path.",
            Tables(Redirect::default()),
            &mut self.redirects,
        );
        visitor.key(
            "route",
            "Settings for one path or prefix of the site above. The most specific route wins, whatever the order: an exact path before a \
             prefix, a longer prefix before a shorter. Every key of [[site]] from `allow` to `cache_control` can be used here and overrides \
             that of the site.",
            Tables(Route {
                guarding: self.guarding.clone(),
                serving: self.serving.clone(),
                ..Route::default()
            }),
            &mut self.routes,
        );
    }

    fn check(&mut self, source: &Source<'_>, context: &mut Context<'_>) {
        self.guarding.check(source, context);
        self.serving.check(source, context);
        if !source.has("root") && self.redirects.is_empty() && self.routes.is_empty() {
            let help = "add a `root`, such as `root = \"./public\"`, a route or a redirect";
            context.error_with_help(&source.span, "site without content", help);
        }
    }

    fn example() -> Self {
        Self {
            hosts: vec!["example.org".to_owned(), "*.example.org".to_owned()],
            http: Some(ClearRequests::Redirect),
            hsts: Some(Hsts { max_age: Duration::from_secs(365 * 86_400), ..Hsts::default() }),
            guarding: Guarding::example(),
            serving: Serving::example(),
            headers: Headers::example(),
            ..Self::default()
        }
    }
}

impl Site {
    /// Returns whether requests in clear are redirected to https.
    #[must_use]
    pub fn redirects_clear(&self) -> bool {
        match self.http {
            Some(requests) => requests == ClearRequests::Redirect,
            None => self.tls != SiteTls::Off,
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
    /// Looks files up by the path after the prefix.
    pub strip_prefix: bool,
    /// Sends files for saving.
    pub download: Option<Download>,
    /// Guards and rules for browsers: the site's keys, overridden by the route's.
    pub guarding: Guarding,
    /// How files are served: the site's keys, overridden by the route's.
    pub serving: Serving,
    /// Headers in addition to the site's; they take precedence over those.
    pub headers: Headers,
}

impl Route {
    /// `spa` and `try_files` exclude each other: either of a route replaces both of its site.
    fn replace_fallback(&mut self, source: &Source<'_>) {
        if source.has("try_files") && !source.has("spa") {
            self.serving.spa = None;
        }
        if self.serving.spa.is_some() && source.has("spa") {
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
            "A fixed response instead of files. The keys about files, from `root` to `cache_control`, can't be used with it.",
            Optional(Table(Inline, "a table such as { status = 200, type = \"text/plain\", body = \"ok\" }")),
            &mut self.respond,
        );
        visitor.key(
            "strip_prefix",
            "Looks files up by the path after the prefix. With `path = \"/uploads/*\"` and `root = \"/data/uploads\"`, /uploads/a.txt is \
             /data/uploads/a.txt; without it, /data/uploads/uploads/a.txt.",
            Flag,
            &mut self.strip_prefix,
        );
        visitor.key(
            "headers",
            "Response headers that are set or removed, in addition to the site's; they take precedence.",
            HEADERS,
            &mut self.headers,
        );
        visitor.key(
            "download",
            "Has browsers save the files instead of showing them (Content-Disposition: attachment, RFC 6266). A string is the name for saving; \
             `true`: the last segment of the URL.",
            DownloadRule,
            &mut self.download,
        );
        self.guarding.keys(visitor);
        self.serving.keys(visitor);
    }

    fn check(&mut self, source: &Source<'_>, context: &mut Context<'_>) {
        self.guarding.check(source, context);
        self.serving.check(source, context);
        self.replace_fallback(source);
        if source.has("respond") {
            let serving = rows(&Serving::example(), &KeyPath::default());
            let own = self.strip_prefix.then_some("strip_prefix");
            for name in serving.iter().map(|Row { name, .. }| *name).chain(own) {
                if source.has(name) {
                    let message = format!("`{name}` has no effect with `respond`");
                    let help = "a route with `respond` serves no files: remove one of them";
                    source.error(context, name, &message, help);
                }
            }
        } else if self.serving.root.is_none() && context.is_sound_here() {
            let help = "add a `root` to it or to its site, or `respond` to it";
            context.error_with_help(&source.span, "route without content", help);
        }
    }

    fn example() -> Self {
        Self {
            path: "/health".to_owned(),
            respond: Some(Respond::example()),
            strip_prefix: false,
            headers: Headers::example(),
            download: Some(Download { name: Some("report.pdf".to_owned()) }),
            guarding: Guarding::default(),
            serving: Serving::default(),
        }
    }

    /// Leaves out inherited keys.
    fn own_rows(rows: Vec<Row>, inherited: Vec<Row>) -> Vec<Row> {
        let own = rows.iter().filter(|row| !inherited.contains(row)).map(|row| row.name);
        let own: Vec<&str> = own.collect();
        // These exclude each other: one of them alone would change the other.
        let has_own_fallback = own.contains(&"spa") || own.contains(&"try_files");
        let is_own = |name| match name {
            "path" => true,
            "spa" | "try_files" => has_own_fallback,
            name => own.contains(&name),
        };
        rows.into_iter().filter(|row| is_own(row.name)).collect()
    }
}

/// Files are sent for saving.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Download {
    /// The name for saving; `None`: that of the URL.
    pub name: Option<String>,
}

/// A file name, `true` or `false`.
struct DownloadRule;

const FILE_NAME: Text<String> = Text {
    parse: |text, _| match text.is_empty()
        || text.chars().any(|letter| letter.is_control() || matches!(letter, '/' | '\\'))
    {
        true => Err("invalid file name".to_owned()),
        false => Ok(text.to_owned()),
    },
    ..text("a file name, such as \"report.pdf\"")
};

impl Rule<Option<Download>> for DownloadRule {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut Option<Download>) {
        match value.get_ref() {
            DeValue::Boolean(flag) => *place = flag.then(Download::default),
            DeValue::String(_) => {
                let mut name = String::new();
                FILE_NAME.read(value, context, &mut name);
                *place = Some(Download { name: Some(name) });
            }
            _ => context.mismatch(value, "a string or a boolean", &self.allowed()),
        }
    }

    fn write(&self, value: &Option<Download>, at: &KeyPath<'_>) -> Option<String> {
        match value {
            None => Some("false".to_owned()),
            Some(Download { name: None }) => Some("true".to_owned()),
            Some(Download { name: Some(name) }) => FILE_NAME.write(name, at),
        }
    }

    fn allowed(&self) -> String {
        format!("true, false, or {}", FILE_NAME.allowed)
    }
}

section! {
    /// A redirect from a path or prefix to another location.
    Redirect {
        from: String = String::new(), PATH,
            "An exact path, or a prefix (`/old/*`).";
        to: String = String::new(), text("a path or URL, such as \"/new\", \"/new/{rest}\" or \"https://example.org/\""),
            "Target: a path of this site or a URL. `{rest}` is the part of the path that the `*` of `from` matches. The request's query is \
             kept unless the target has one.";
        status: u16 = 308, one_of(&[301, 302, 303, 307, 308]),
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
        status: u16 = 200, integer(200..=599),
            "Status code, except 3xx (see `[[site.redirect]]`), 206, 405 and 426.";
        media_type as "type": String = "text/plain; charset=utf-8".to_owned(),
            MEDIA_TYPE,
            "Media type of the body.";
        body: String = String::new(), text("a string"),
            "Body of the response.";
    }

    const MEANS: &'static str = "A fixed response without files.";

    fn example() -> Self {
        Self { body: "ok\n".to_owned(), ..Self::default() }
    }
}

section! {
    /// Response headers that are set or removed.
    Headers {
        set: BTreeMap<String, String> = BTreeMap::new(),
            Map("a table of headers, such as { X-Frame-Options = \"DENY\" }", |name| Some(name.to_owned()), text("a header value")),
            "Headers to set, replacing those of the same name. Headers on caching, such as Cache-Control, are left out of errors. Content-… \
             headers are set with 2xx and 304 only. Content-Security-Policy applies to the site's own content; folder listings and built-in \
             error pages have their own policy.";
        remove: Vec<String> = Vec::new(), List(text("a header name")),
            "Headers to remove from every response, such as Server.";
    }

    const MEANS: &'static str = "Response headers that are set or removed. Headers that frame the message are set by the server. The \
        response to a malformed request belongs to no site: it has the server's own headers.";

    fn example() -> Self {
        let set = [("X-Frame-Options".to_owned(), "DENY".to_owned())];
        Self { set: BTreeMap::from(set), remove: vec!["Server".to_owned()] }
    }
}
