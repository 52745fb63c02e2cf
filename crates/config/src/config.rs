//! The whole configuration, and the way from its text.

use std::fmt;
use std::path::{Path, PathBuf, absolute};

use toml::de::DeTable;

use crate::conflicts;
use crate::errors::{Errors, Found};
use crate::fields::{Fields, Visit};
use crate::limits::{CONFIG_BYTES_MAX, PROBLEMS_MAX, RECOVERED_BYTES_MAX};
use crate::locate::locate;
use crate::reader::read_table;
use crate::reading::{Reading, Written};
use crate::rules::{Inline, Tables};
use crate::sections::cache::Cache;
use crate::sections::engine_limits::Limits;
use crate::sections::listen::Listen;
use crate::sections::logging::Logging;
use crate::sections::performance::Performance;
use crate::sections::server::Server;
use crate::sections::site::Site;
use crate::sections::timeouts::Timeouts;

/// What a configuration file says, checked as far as the text goes: plain data, with the defaults where it says nothing.
///
/// Two are equal where they say the same, wherever it stands.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Threads, the port, the kernel.
    pub server: Server,
    /// Connections, how long they may wait, how much is read and written at once.
    pub performance: Performance,
    /// What is held back from clients.
    pub limits: Limits,
    /// How long clients are waited for.
    pub timeouts: Timeouts,
    /// What is kept of files in memory.
    pub cache: Cache,
    /// What is said on standard error.
    pub logging: Logging,
    /// Addresses to listen on.
    pub listen: Vec<Listen>,
    /// What is served, by host name.
    pub sites: Vec<Site>,
    pub(crate) origin: Origin,
}

/// Where a configuration comes from.
#[derive(Clone, Default)]
pub(crate) struct Origin {
    file: PathBuf,
    text: String,
    pub(crate) written: Written,
}

/// Without the text, which may be long, and without the values of variables.
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

impl Config {
    /// Reads a configuration. `file` names it in messages, and relative paths in it begin in its folder; it is not opened. The
    /// environment is asked for the variables that its texts hold (`${NAME}`).
    ///
    /// ```
    /// use shearwater_config::Config;
    /// let config = Config::parse("site.toml".as_ref(), "[server]\nworkers = 2", |_| None)?;
    /// assert_eq!(config.server.workers, 2);
    /// let errors = Config::parse("site.toml".as_ref(), "[server]\nwokers = 2", |_| None).unwrap_err();
    /// assert!(errors.to_string().starts_with("site.toml:2:1: server.wokers: unknown key; the nearest is `workers`"));
    /// # Ok::<(), shearwater_config::Errors>(())
    /// ```
    ///
    /// # Errors
    /// All that is wrong with it, up to [`PROBLEMS_MAX`]. Where it is no TOML, that alone is told.
    pub fn parse(
        file: &Path,
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Errors> {
        let table = tables(file, text)?;
        let base = absolute(file).ok().and_then(|file| Some(file.parent()?.to_owned())).unwrap_or_default();
        let mut reading = Reading::new(&base, &environment);
        let mut config = Self::default();
        read_table(table.get_ref(), 0..0, &mut config, &mut reading);
        conflicts::find(&config, table.get_ref(), &mut reading);
        if !reading.found.is_empty() {
            return Err(Errors::new(file, text, reading.found, reading.left_out));
        }
        config.origin = Origin { file: file.to_owned(), text: text.to_owned(), written: reading.written };
        Ok(config)
    }

    /// The file that it was read from, as it was named.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.origin.file
    }

    /// Something is wrong with a key that only its user could find out, such as a folder that isn't there. `key` is written as in
    /// [`Problem::key`](crate::Problem::key); where it doesn't stand in the file, what it is part of is shown.
    #[must_use]
    pub fn refuse(&self, key: &str, what: impl Into<String>) -> Errors {
        self.refuse_all([(key.to_owned(), what.into())])
    }

    /// [`refuse`](Self::refuse) for several keys.
    #[must_use]
    pub fn refuse_all(&self, problems: impl IntoIterator<Item = (String, String)>) -> Errors {
        let mut problems = problems.into_iter().peekable();
        if problems.peek().is_none() {
            // The text of a thousand sites is not read again for nothing.
            return Errors::new(&self.origin.file, "", Vec::new(), 0);
        }
        let (table, _) = DeTable::parse_recoverable(&self.origin.text);
        let placed = |(key, what): (String, String)| {
            let span = locate(table.get_ref(), &key);
            Found { span, key, what, help: None }
        };
        let mut found: Vec<Found> = problems.map(placed).collect();
        let left_out = found.len().saturating_sub(PROBLEMS_MAX);
        found.truncate(PROBLEMS_MAX);
        Errors::new(&self.origin.file, &self.origin.text, found, left_out)
    }
}

impl Fields for Config {
    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field("server", "Threads, the port, the kernel.", Inline("[server]"), &mut self.server);
        visit.field(
            "performance",
            "Connections, how long they may wait, and how much is read and written at once.",
            Inline("[performance]"),
            &mut self.performance,
        );
        visit.field(
            "limits",
            "What is held back from clients. The names are those of docs/limits.md.",
            Inline("[limits]"),
            &mut self.limits,
        );
        visit.field(
            "timeouts",
            "How long clients are waited for, in milliseconds. The names are those of docs/limits.md.",
            Inline("[timeouts]"),
            &mut self.timeouts,
        );
        visit.field(
            "cache",
            "What each worker keeps of files in memory.",
            Inline("[cache]"),
            &mut self.cache,
        );
        visit.field(
            "logging",
            "What the program says while it serves.",
            Inline("[logging]"),
            &mut self.logging,
        );
        visit.field(
            "listen",
            "An address to listen on, beside server.http_port or in its place. There may be several.",
            Tables(Listen::default()),
            &mut self.listen,
        );
        visit.field(
            "site",
            "What is served to some host names. There may be several.",
            Tables(Site::default()),
            &mut self.sites,
        );
    }
}

/// The text as tables of TOML.
fn tables<'a>(file: &Path, text: &'a str) -> Result<toml::Spanned<DeTable<'a>>, Errors> {
    if text.len() > CONFIG_BYTES_MAX {
        let what = format!("a configuration may have {CONFIG_BYTES_MAX} bytes");
        return Err(Errors::new(
            file,
            "",
            vec![Found { span: 0..0, key: String::new(), what, help: None }],
            0,
        ));
    }
    match DeTable::parse(text) {
        Ok(table) => Ok(table),
        Err(first) => Err(faults(file, text, first)),
    }
}

/// What is wrong with a text that is no TOML.
fn faults(file: &Path, text: &str, first: toml::de::Error) -> Errors {
    let mut errors = vec![first];
    if text.len() <= RECOVERED_BYTES_MAX {
        errors = DeTable::parse_recoverable(text).1;
    }
    errors.dedup();
    let left_out = errors.len().saturating_sub(PROBLEMS_MAX);
    let placed = |error: &toml::de::Error| Found {
        span: error.span().unwrap_or(text.len()..text.len()),
        key: String::new(),
        what: format!("not valid TOML: {}", error.message()),
        help: None,
    };
    Errors::new(file, text, errors.iter().take(PROBLEMS_MAX).map(placed).collect(), left_out)
}
