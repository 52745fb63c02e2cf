//! The configuration as a whole.

use std::fmt;
use std::path::{Path, PathBuf, absolute};

use toml::de::DeTable;

use crate::conflicts;
use crate::context::{Context, Written};
use crate::diagnostics::{Diagnostics, Found, Severity};
use crate::limits::{CONFIG_BYTES_MAX, RECOVERED_BYTES_MAX};
use crate::locate::locate;
use crate::rules::{Inline, Tables};
use crate::section::{Section, Visitor, read_table};
use crate::sections::limits::{Cache, Limits, Performance, Timeouts};
use crate::sections::listen::Listen;
use crate::sections::server::{Logging, Server};
use crate::sections::site::Site;

/// A checked configuration with defaults filled in.
///
/// Two are equal if their values are, whatever their text.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Worker threads, the port and kernel options.
    pub server: Server,
    /// Number of connections, idle timeouts, buffer sizes.
    pub performance: Performance,
    /// Limits of requests and connections.
    pub limits: Limits,
    /// Timeouts of connections.
    pub timeouts: Timeouts,
    /// Each worker's cache of files.
    pub cache: Cache,
    /// Messages on standard error.
    pub logging: Logging,
    /// Addresses to listen on.
    pub listen: Vec<Listen>,
    /// Sites by host name.
    pub sites: Vec<Site>,
    pub(crate) origin: Origin,
}

/// The file that a configuration was read from.
#[derive(Clone, Default)]
pub(crate) struct Origin {
    file: PathBuf,
    pub(crate) written: Written,
}

/// Leaves out the values of variables.
impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").field("file", &self.file).finish_non_exhaustive()
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        self.server == other.server
            && self.performance == other.performance
            && self.limits == other.limits
            && self.timeouts == other.timeouts
            && self.cache == other.cache
            && self.logging == other.logging
            && self.listen == other.listen
            && self.sites == other.sites
    }
}

impl Eq for Config {}

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
        let mut context = Context::new(&base, &environment);
        let mut config = Self::default();
        read_table(table, 0..0, &mut config, &mut context);
        conflicts::find(&config, table, &mut context);
        let Findings { errors, warnings } = check(&config);
        for finding in errors {
            let is_consequence = context.found.iter().any(|found| is_consequence(&finding.key, &found.key));
            if !is_consequence {
                let found = located(finding, table, &context.written);
                context.report(found.key, &found.span, found.message, found.help);
            }
        }
        if !context.found.is_empty() {
            return Err(Diagnostics::new(file, text, Severity::Error, context.found, context.left_out));
        }
        let warnings = warnings.into_iter().map(|finding| located(finding, table, &context.written));
        let warnings = Diagnostics::new(file, text, Severity::Warning, warnings.collect(), 0);
        config.origin = Origin { file: file.to_owned(), written: context.written };
        Ok((config, warnings))
    }

    /// Returns the path of its file as it was given.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.origin.file
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
    let help = help.filter(|help| !(written.contains_key(&key) && help.contains('"')));
    Found { span: locate(table, &key), key, message, help }
}

impl Section for Config {
    fn keys(&mut self, visitor: &mut impl Visitor) {
        visitor.key(
            "server",
            "Worker threads, the port and kernel options.",
            Inline("a section [server]"),
            &mut self.server,
        );
        visitor.key(
            "performance",
            "Number of connections, their idle timeouts and buffer sizes.",
            Inline("a section [performance]"),
            &mut self.performance,
        );
        visitor.key(
            "limits",
            "Limits of requests and connections, described in docs/limits.md. Integers are bytes.",
            Inline("a section [limits]"),
            &mut self.limits,
        );
        visitor.key(
            "timeouts",
            "Timeouts of connections, described in docs/limits.md. Integers are seconds.",
            Inline("a section [timeouts]"),
            &mut self.timeouts,
        );
        visitor.key(
            "cache",
            "Each worker's cache of files. Integers are bytes.",
            Inline("a section [cache]"),
            &mut self.cache,
        );
        visitor.key(
            "logging",
            "Messages on standard error.",
            Inline("a section [logging]"),
            &mut self.logging,
        );
        visitor.key(
            "listen",
            "An address to listen on, in addition to `server.http_port`. There can be several.",
            Tables(Listen::default()),
            &mut self.listen,
        );
        visitor.key(
            "site",
            "Content for some host names. There can be several sites.",
            Tables(Site::default()),
            &mut self.sites,
        );
    }
}

/// Parses the syntax.
fn parse_toml<'a>(file: &Path, text: &'a str) -> Result<toml::Spanned<DeTable<'a>>, Diagnostics> {
    if text.len() > CONFIG_BYTES_MAX {
        let found = Found::of_file(0..0, format!("configuration is larger than {CONFIG_BYTES_MAX} bytes"));
        return Err(Diagnostics::new(file, "", Severity::Error, vec![found], 0));
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
        Diagnostics::new(file, text, Severity::Error, errors.iter().map(found).collect(), 0)
    })
}
