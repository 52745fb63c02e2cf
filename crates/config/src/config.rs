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
    text: String,
    pub(crate) written: Written,
}

/// Leaves out the text and the values of variables.
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
    /// The problem in one line.
    pub message: String,
    /// A way to fix it.
    pub help: Option<String>,
}

impl Config {
    /// Parses a configuration. `file` is not opened: it names the file in messages, and relative paths are resolved against its
    /// folder. `environment` returns the variables that strings refer to (`${NAME}`).
    ///
    /// ```
    /// use shearwater_config::Config;
    /// let config = Config::parse("site.toml".as_ref(), "[server]\nworkers = 2", |_| None)?;
    /// assert_eq!(config.server.workers, 2);
    /// let errors = Config::parse("site.toml".as_ref(), "[server]\nwokers = 2", |_| None).unwrap_err();
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
    ) -> Result<Self, Diagnostics> {
        let table = parse_toml(file, text)?;
        let base = absolute(file).ok().and_then(|file| Some(file.parent()?.to_owned())).unwrap_or_default();
        let mut context = Context::new(&base, &environment);
        let mut config = Self::default();
        read_table(table.get_ref(), 0..0, &mut config, &mut context);
        conflicts::find(&config, table.get_ref(), &mut context);
        if !context.found.is_empty() {
            return Err(Diagnostics::new(file, text, Severity::Error, context.found, context.left_out));
        }
        config.origin = Origin { file: file.to_owned(), text: text.to_owned(), written: context.written };
        Ok(config)
    }

    /// Returns the path of its file as it was given.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.origin.file
    }

    /// Locates findings in the file. A key that isn't in the file is located at the table it belongs to.
    #[must_use]
    pub fn diagnostics(&self, severity: Severity, findings: Vec<Finding>) -> Diagnostics {
        if findings.is_empty() {
            // Avoids parsing the text of a thousand sites again.
            return Diagnostics::new(&self.origin.file, "", severity, Vec::new(), 0);
        }
        let (table, _) = DeTable::parse_recoverable(&self.origin.text);
        let found = |Finding { key, message, help }| Found {
            span: locate(table.get_ref(), &key),
            key,
            message,
            help,
        };
        let found = findings.into_iter().map(found).collect();
        Diagnostics::new(&self.origin.file, &self.origin.text, severity, found, 0)
    }
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
