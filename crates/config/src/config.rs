//! The configuration as a whole.

use std::ops::Range;
use std::path::{Path, absolute};
use std::sync::LazyLock;

use toml::de::{DeTable, DeValue};

use crate::context::{Context, Value, Written};
use crate::diagnostics::{Diagnostics, Found};
use crate::limits::{CONFIG_BYTES_MAX, RECOVERED_BYTES_MAX};
use crate::rules::collections::{Table, Tables, read_table};
use crate::section::{Description, Kind, Kind::Once, Source, describe, section};
use crate::sections::admin::Admin;
use crate::sections::limits::{Cache, Limits, Performance, Timeouts};
use crate::sections::log::Log;
use crate::sections::server::{Address, Listen, Logging, Server};
use crate::sections::site::Site;
use crate::sections::tls::{Acme, Tls};
use crate::unknown::other_name;

section! {
    /// A checked configuration with defaults filled in.
    ///
    /// Two are equal if their values are, whatever their text.
    Config[written: Written] {
        server: Server = Server::default(), Table(Once, "a section [server]"),
            "Worker threads, the port and kernel options.";
        performance: Performance = Performance::default(), Table(Once, "a section [performance]"),
            "Number of connections, their idle timeouts and buffer sizes.";
        limits: Limits = Limits::default(), Table(Once, "a section [limits]"),
            "Limits of requests and connections, described in docs/limits.md. Integers are bytes.";
        timeouts: Timeouts = Timeouts::default(), Table(Once, "a section [timeouts]"),
            "Timeouts of connections, described in docs/limits.md. Integers are seconds.";
        cache: Cache = Cache::default(), Table(Once, "a section [cache]"),
            "Each worker's cache of files. Integers are bytes.";
        logging: Logging = Logging::default(), Table(Once, "a section [logging]"),
            "Messages on standard error.";
        log: Log = Log::default(), Table(Once, "a section [log]"),
            "The access log: a line for each request, described in docs/tasks/access-log.md.";
        admin: Admin = Admin::default(), Table(Once, "a section [admin]"),
            "The admin listener: metrics and status, described in docs/tasks/metrics.md.";
        tls: Tls = Tls::default(), Table(Once, "a section [tls]"),
            "TLS of all sites, described in docs/tasks/https.md. Each `[[site]]` has its certificate in `tls`.";
        acme: Acme = Acme::default(), Table(Once, "a section [acme]"),
            "The certificate authority of sites with `tls = \"auto\"`.";
        listen: Vec<Listen> = Vec::new(), Tables(Listen::default()),
            "An address to listen on, in addition to `server.http_port`. There can be several.";
        sites as "site": Vec<Site> = Vec::new(), Tables(Site::default()),
            "Content for some host names. There can be several sites.";
    }

    fn check(&mut self, source: &Source<'_>, context: &mut Context<'_>) {
        check_listeners(self, source, context);
    }
}

/// Reports addresses that conflict with an earlier one.
fn check_listeners(config: &Config, source: &Source<'_>, context: &mut Context<'_>) {
    for (index, listen) in config.listen.iter().enumerate() {
        if !context.is_sound(&format!("listen[{index}]")) {
            continue;
        }
        let mut earlier = config.listen[..index].iter();
        let help = match port_key(config, &listen.address) {
            Some(key) => format!("`{key}` listens on this port on all addresses: remove one of them"),
            None => match earlier.position(|earlier| earlier.address.overlaps(&listen.address)) {
                Some(other) => format!("listen[{other}] already listens on it"),
                None => continue,
            },
        };
        let key = format!("listen[{index}].address");
        let span = locate(source.table, &key);
        context.report(key, &span, "duplicate address".to_owned(), Some(help));
    }
    if config.server.https_port.is_some_and(|port| port != 0 && config.server.http_port == Some(port)) {
        let key = "server.https_port".to_owned();
        let span = locate(source.table, &key);
        let help = "a port is either for TLS or for requests in clear: 443 and 80, or 8443 and 8080";
        context.report(key, &span, "same port as `http_port`".to_owned(), Some(help.to_owned()));
    }
    check_admin(config, source, context);
}

/// Returns the key whose port an address has.
fn port_key(config: &Config, address: &Address) -> Option<&'static str> {
    let Address::Tcp(address) = address else { return None };
    let has = |port: Option<u16>| port == Some(address.port()) && address.port() != 0;
    let server = &config.server;
    let https = || has(server.https_port).then_some("server.https_port");
    has(server.http_port).then_some("server.http_port").or_else(https)
}

/// Reports an admin listener at an address of the server.
fn check_admin(config: &Config, source: &Source<'_>, context: &mut Context<'_>) {
    let Some(admin) = config.admin.listen.as_ref().filter(|_| context.is_sound("admin")) else { return };
    let other = match port_key(config, admin) {
        Some(key) => format!("`{key}`"),
        None => match config.listen.iter().position(|listen| listen.address.overlaps(admin)) {
            Some(index) => format!("listen[{index}]"),
            None => return,
        },
    };
    let span = locate(source.table, "admin.listen");
    let help = format!("{other} listens on it: choose another port for the admin listener");
    context.report("admin.listen".to_owned(), &span, "duplicate address".to_owned(), Some(help));
}

/// Returns the documentation of all tables: those that can be in the file once, repeatedly, and within others.
pub(crate) fn tables() -> &'static [Description] {
    static TABLES: LazyLock<Vec<Description>> = LazyLock::new(|| {
        let mut tables = describe::<Config>(Kind::Once, "", "").split_off(1);
        tables.sort_by_key(|table| table.kind);
        let mut known = Vec::new();
        tables.retain(|table| {
            let heading = table.kind.heading(&table.heading);
            let is_new = !known.contains(&heading);
            known.push(heading);
            is_new
        });
        tables
    });
    &TABLES
}

/// Returns the heading of the table that has a key.
fn table_of(name: &str) -> Option<String> {
    let mut tables = tables().iter().filter(|table| table.kind != Kind::Inline);
    let table = tables.find(|table| table.keys.iter().any(|key| key.name == name))?;
    Some(table.kind.heading(&table.heading))
}

/// Returns the key of a name and its table, such as "`spa` of \[\[site\]\]". The name may be that of another program.
///
/// ```
/// let key = shearwater_config::key_named("clean_urls");
/// assert_eq!(key.as_deref(), Some("`clean_urls` of [[site]]"));
/// ```
#[must_use]
pub fn key_named(name: &str) -> Option<String> {
    let other = other_name(name).map(str::to_owned);
    other.or_else(|| Some(format!("`{name}` of {}", table_of(name)?)))
}

/// A problem at a key that the caller of this crate found, such as a folder that doesn't exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The key, as in [`Problem::key`](crate::Problem::key).
    pub key: String,
    /// The problem in one line, without values of variables.
    pub message: String,
    /// A way to fix it. If it quotes text, it is left out for keys with variables.
    pub help: Option<String>,
}

/// Errors and warnings that the caller of this crate found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// The configuration can't be used.
    pub errors: Vec<Finding>,
    /// The configuration can be used, but is probably a mistake.
    pub warnings: Vec<Finding>,
}

impl Config {
    /// Parses a configuration, and returns it with warnings.
    ///
    /// `file` is not opened: it names the file in messages, and relative paths are resolved against its folder. `environment` returns
    /// the variables that strings refer to (`${NAME}`). `check` finds further problems, so that all are reported at once; it is called
    /// even if there are errors already, with defaults for the keys that have them.
    ///
    /// ```
    /// use shearwater_config::{Config, Findings};
    /// let parse = |text| Config::parse("site.toml".as_ref(), text, |_| None, |_| Findings::default());
    /// let (config, _) = parse("[server]\nworkers = 2")?;
    /// assert_eq!(config.server.workers, 2);
    /// let errors = parse("[server]\nwokers = 2").unwrap_err();
    /// assert!(errors.to_string().starts_with("error: unknown key `wokers`\n --> site.toml:2:1\n"));
    /// # Ok::<(), shearwater_config::Diagnostics>(())
    /// ```
    ///
    /// # Errors
    /// Every problem, up to [`PROBLEMS_MAX`](crate::limits::PROBLEMS_MAX). If the text isn't valid TOML, only its syntax errors.
    pub fn parse(
        file: &Path,
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
        check: impl FnOnce(&Self) -> Findings,
    ) -> Result<(Self, Diagnostics), Diagnostics> {
        let table = parse_toml(file, text)?;
        let table = table.get_ref();
        let base = absolute(file).ok().and_then(|file| Some(file.parent()?.to_owned())).unwrap_or_default();
        let mut context = Context::new(&base, &environment, table_of);
        let mut config = Self::default();
        read_table(table, 0..0, &mut config, &mut context);
        let Findings { errors, warnings } = check(&config);
        for finding in errors {
            let is_consequence = context.found.iter().any(|found| is_consequence(&finding.key, &found.key));
            if !is_consequence {
                let found = located(finding, table, &context.written);
                context.report(found.key, &found.span, found.message, found.help);
            }
        }
        if !context.found.is_empty() {
            return Err(Diagnostics::new(file, text, "error", context.found, context.left_out));
        }
        let warnings = warnings.into_iter().map(|finding| located(finding, table, &context.written));
        let warnings = Diagnostics::new(file, text, "warning", warnings.collect(), 0);
        config.written = context.written;
        Ok((config, warnings))
    }
}

/// Returns whether a finding may follow from an error: at the same key, or at an error page, which depends on the whole site.
fn is_consequence(finding: &str, error: &str) -> bool {
    let is_within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let is_of_site = |site: &str| is_within(error, site);
    is_within(finding, error)
        || is_within(error, finding)
        || finding.contains(".error_pages.") && finding.split('.').next().is_some_and(is_of_site)
}

/// Locates a finding: at the key, or at the innermost table that exists.
fn located(finding: Finding, table: &DeTable<'_>, written: &Written) -> Found {
    let Finding { key, message, help } = finding;
    let help = help.filter(|help| !(written.0.contains_key(&key) && help.contains('"')));
    Found { span: locate(table, &key), key, message, help }
}

/// Returns the span of a key's value; of a missing one, that of the innermost table or of the file's start.
pub(crate) fn locate(table: &DeTable<'_>, key: &str) -> Range<usize> {
    let mut here: Range<usize> = 0..0;
    let mut table = Some(table);
    let mut rest = key;
    while let Some(inside) = table.filter(|_| !rest.is_empty()) {
        // A name may contain dots: the longest one that exists matches.
        let Some((name, after)) = names_of(rest).find(|(name, _)| inside.contains_key(*name)) else { break };
        let Some((found_key, value)) = inside.get_key_value(name) else { break };
        let (value, after) = element(value, after);
        here = match value.get_ref() {
            DeValue::Table(_) | DeValue::Array(_) if value.span().is_empty() => found_key.span(),
            _ => value.span(),
        };
        table = value.get_ref().as_table();
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    here
}

/// Splits a key into its first name and the rest in every possible way, the longest name first.
fn names_of(key: &str) -> impl Iterator<Item = (&str, &str)> {
    let ends = key.match_indices(['.', '[']).map(|(at, _)| at);
    let mut ends: Vec<usize> = ends.chain([key.len()]).collect();
    ends.reverse();
    ends.into_iter().map(|end| key.split_at(end))
}

/// Returns the element of an array if the key continues with an index.
fn element<'a, 'b, 'k>(value: &'a Value<'b>, after: &'k str) -> (&'a Value<'b>, &'k str) {
    let index = after.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let found = index.and_then(|(index, rest)| {
        let element = value.get_ref().as_array()?.get(index.parse::<usize>().ok()?)?;
        Some((element, rest))
    });
    found.unwrap_or((value, after))
}

/// Parses the syntax.
fn parse_toml<'a>(file: &Path, text: &'a str) -> Result<toml::Spanned<DeTable<'a>>, Diagnostics> {
    if text.len() > CONFIG_BYTES_MAX {
        let found = Found::of_file(0..0, format!("configuration is larger than {CONFIG_BYTES_MAX} bytes"));
        return Err(Diagnostics::new(file, "", "error", vec![found], 0));
    }
    DeTable::parse(text).map_err(|first| {
        let mut errors = vec![first];
        if text.len() <= RECOVERED_BYTES_MAX {
            errors = DeTable::parse_recoverable(text).1;
        }
        errors.dedup();
        let found = |error: &toml::de::Error| {
            let span = error.span().unwrap_or(text.len()..text.len());
            Found::of_file(span, format!("invalid TOML: {}", error.message()))
        };
        Diagnostics::new(file, text, "error", errors.iter().map(found).collect(), 0)
    })
}
