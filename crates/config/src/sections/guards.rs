//! Keys of `[[site]]` and `[[site.route]]` about guards, and about rules for browsers.

use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use crate::context::{Context, KeyPath, Value};
use crate::rules::collections::{List, Optional, Table, read_table};
use crate::rules::numbers::{Number, age, duration, integer};
use crate::rules::strings::{Flag, Text, text};
use crate::section::{Description, Kind::Inline, Rule, Section, Source, section};
use crate::sections::tls::file;

const NETWORKS: List<Text<String>> =
    List(text("an address, a network such as \"10.0.0.0/8\", or \"unix\" for Unix sockets"));

section! {
    /// Guards of a site or route, and headers for browsers. A route inherits the keys of its site.
    Guarding {
        allow: Vec<String> = Vec::new(), NETWORKS,
            "Networks whose clients are served; others get a 403. Empty: everyone.";
        deny: Vec<String> = Vec::new(), NETWORKS,
            "Networks whose clients get a 403, even if they are in `allow`.";
        rate_limit: Option<RateLimit> = None, RATE_LIMIT,
            "Requests of each client: an IPv4 address, or a /64 network of IPv6. More get a 429 with Retry-After. Routes that inherit it share it \
             with their site.";
        basic_auth: Option<BasicAuth> = None, BASIC_AUTH,
            "An htpasswd file with users and hashes (bcrypt, or argon2id) of their passwords: `htpasswd -B`. Others get a 401. Passwords are sent in \
             clear without TLS. A reload reads the file again.";
        cors: Option<Cors> = None, CORS,
            "Lets pages of other origins read the responses (CORS). `true`: pages of any origin.";
        security_headers: bool = false, Flag,
            "Sets X-Content-Type-Options: nosniff, Referrer-Policy: strict-origin-when-cross-origin, and X-Frame-Options: SAMEORIGIN, unless `headers` \
             sets or removes them.";
    }

    fn check(&mut self, source: &Source<'_>, context: &mut Context<'_>) {
        let is_default = |cors: &Cors| cors.credentials && cors.origins.is_empty();
        if source.has("cors") && self.cors.as_ref().is_some_and(is_default) {
            let help = "list the origins whose pages may send cookies and passwords";
            source.error(context, "cors", "credentials can't be allowed for any origin", help);
        }
    }

    fn example() -> Self {
        Self {
            allow: vec!["10.0.0.0/8".to_owned(), "2001:db8::/32".to_owned()],
            deny: vec!["10.9.0.0/16".to_owned()],
            rate_limit: Some(RateLimit::example()),
            basic_auth: Some(BasicAuth { file: PathBuf::from("/etc/shearwater/users.htpasswd"), ..BasicAuth::default() }),
            cors: Some(any_origin()),
            security_headers: false,
        }
    }
}

section! {
    /// A limit of requests.
    RateLimit {
        requests: u32 = 0, integer(1..=1_000_000),
            "Requests within `per`.";
        per: Duration = Duration::from_secs(1), duration(1..=86_400_000),
            "Time for so many requests.";
        burst: Option<u32> = None, Optional(integer(1..=1_000_000)),
            "Requests that may arrive at once after a pause. Default: as many as `requests`.";
    }

    const MEANS: &'static str = "A limit of the requests of each client.";
    const REQUIRED: &'static [&'static str] = &["requests"];

    fn example() -> Self {
        Self { requests: 100, per: Duration::from_secs(1), burst: Some(200) }
    }
}

section! {
    /// HTTP basic authentication (RFC 7617).
    BasicAuth {
        file: PathBuf = PathBuf::new(), file("a file of `htpasswd -B`"),
            "The htpasswd file.";
        realm: String = "Restricted".to_owned(), REALM,
            "Text that browsers may show beside the question for a password.";
    }

    const MEANS: &'static str = "HTTP basic authentication, with more than a file.";
    const REQUIRED: &'static [&'static str] = &["file"];

    fn example() -> Self {
        Self { file: PathBuf::from("/etc/shearwater/users.htpasswd"), realm: "Staff".to_owned() }
    }
}

const REALM: Text<String> = Text {
    parse: |text, _| match text
        .chars()
        .all(|letter| (' '..='~').contains(&letter) && !matches!(letter, '"' | '\\'))
    {
        true => Ok(text.to_owned()),
        false => Err("invalid realm".to_owned()),
    },
    ..text("printable ASCII without quotes and backslashes, such as \"Staff\"")
};

section! {
    /// Cross-origin resource sharing (Fetch standard).
    Cors {
        origins: Vec<String> = Vec::new(), List(text("an origin, such as \"https://example.org\"")),
            "Origins whose pages may read the responses, as browsers send them. Empty: any.";
        methods: Vec<String> = vec!["GET".to_owned(), "HEAD".to_owned()], List(text("a method, such as \"GET\"")),
            "Methods that pages may use.";
        headers: Vec<String> = Vec::new(), List(text("a header name, such as \"Authorization\", or \"*\"")),
            "Request headers that pages may send beside those that are always allowed.";
        expose: Vec<String> = Vec::new(), List(text("a header name, such as \"ETag\", or \"*\"")),
            "Response headers that pages may read beside those that are always readable.";
        credentials: bool = false, Flag,
            "Lets pages send cookies and passwords. Needs `origins`.";
        max_age: Option<Duration> = None, Optional(MAX_AGE),
            "Time for which a browser need not ask again before a request. Browsers have limits of their own.";
    }

    const MEANS: &'static str = "Cross-origin resource sharing, with more than `true`.";

    fn example() -> Self {
        Self {
            origins: vec!["https://example.org".to_owned()],
            headers: vec!["Authorization".to_owned()],
            expose: vec!["ETag".to_owned()],
            credentials: true,
            max_age: Some(Duration::from_secs(600)),
            ..Self::default()
        }
    }
}

/// Returns the value of `true`.
fn any_origin() -> Cors {
    Cors { headers: vec!["*".to_owned()], ..Cors::default() }
}

const MAX_AGE: Number<Duration> = age(0..=86_400);

/// A table or something shorter, or `false`.
struct TableOr<T> {
    expected: &'static str,
    allowed: &'static str,
    /// Reads the shorter value; returns false for one of another kind.
    read: fn(&Value<'_>, &mut Context<'_>, &mut T) -> bool,
    /// Writes the shorter value, if that says all.
    write: fn(&T, &KeyPath<'_>) -> Option<String>,
}

const RATE_LIMIT: TableOr<RateLimit> = TableOr {
    expected: "a table or false",
    allowed: "a table such as { requests = 100, per = \"1s\", burst = 200 }, or false",
    read: |_, _, _| false,
    write: |_, _| None,
};

const BASIC_AUTH: TableOr<BasicAuth> = TableOr {
    expected: "a string, a table or false",
    allowed: "a file, a table such as { file = \"users.htpasswd\", realm = \"Staff\" }, or false",
    read: |value, context, auth| {
        let is_text = matches!(value.get_ref(), DeValue::String(_));
        if is_text {
            file("a file of `htpasswd -B`").read(value, context, &mut auth.file);
        }
        is_text
    },
    write: |auth, at| {
        let is_short = auth.realm == BasicAuth::default().realm;
        is_short.then(|| at.quoted(&auth.file.display().to_string()))
    },
};

const CORS: TableOr<Cors> = TableOr {
    expected: "a boolean or a table",
    allowed: "true, a table such as { origins = [\"https://example.org\"], credentials = true }, or false",
    read: |value, _, cors| {
        *cors = any_origin();
        matches!(value.get_ref(), DeValue::Boolean(true))
    },
    write: |cors, _| (*cors == any_origin()).then(|| "true".to_owned()),
};

impl<T: Section> Rule<Option<T>> for TableOr<T> {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut Option<T>) {
        let mut read = T::default();
        match value.get_ref() {
            DeValue::Boolean(false) => return *place = None,
            DeValue::Table(table) => read_table(table, value.span(), &mut read, context),
            _ if (self.read)(value, context, &mut read) => {}
            _ => return context.mismatch(value, self.expected, self.allowed),
        }
        *place = Some(read);
    }

    fn write(&self, value: &Option<T>, at: &KeyPath<'_>) -> Option<String> {
        let Some(value) = value else { return Some("false".to_owned()) };
        (self.write)(value, at).or_else(|| Table(Inline, self.allowed).write(value, at))
    }

    fn allowed(&self) -> String {
        self.allowed.to_owned()
    }

    fn tables(&self, heading: &str, means: &'static str) -> Vec<Description> {
        Rule::<T>::tables(&Table(Inline, self.allowed), heading, means)
    }
}
