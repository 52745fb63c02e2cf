//! The metrics of a server: what its workers count, and where the rest comes from.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};
use shearwater::{Control, FinishedExchange, MessageLevel, Running, Server, StartReport};

use crate::certificates::Certificate;
use crate::counts::WorkerCounts;
use crate::document::{ReloadOutcome, Status};
use crate::history::History;
use crate::limits::{EARLY_MESSAGES_MAX, RELOAD_ERRORS_BYTES_MAX};
use crate::sites::SiteNames;

/// Counts of an access log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Destination, such as a file's path.
    pub destination: String,
    /// Lines written.
    pub written: u64,
    /// Lines dropped because the destination was too slow or failed.
    pub dropped: u64,
    /// The destination can't be written to now: lines wait.
    pub is_failing: bool,
}

/// Counts of a file cache, all workers together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Files in memory.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Look-ups that found a file in memory.
    pub hits: u64,
    /// Look-ups that didn't.
    pub misses: u64,
}

/// Counts of files that are compressed on the fly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompressionCounts {
    /// Bytes of the results that are kept.
    pub bytes: u64,
    /// Compressions that are done.
    pub done: u64,
    /// Bytes of the files that were made shorter.
    pub bytes_in: u64,
    /// Bytes of the results.
    pub bytes_out: u64,
    /// Results that were evicted.
    pub evictions: u64,
    /// Compressions that weren't begun, because too many waited.
    pub rejections: u64,
}

/// Reads counts that another part of the program keeps.
type Source<T> = Box<dyn Fn() -> T + Send + Sync>;

/// The configuration of a program, and its reloads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Configuration {
    pub(crate) file: Option<String>,
    pub(crate) reloads: u64,
    pub(crate) reloads_refused: u64,
    pub(crate) last_reload: Option<u64>,
    pub(crate) last_outcome: Option<ReloadOutcome>,
}

/// A server that has started.
pub(crate) struct Serving {
    pub(crate) control: Arc<Control>,
    pub(crate) start_report: StartReport,
}

/// Metrics of one server. Clones are the same metrics.
///
/// Metrics of a server that never [started](Self::serving) have no connections, bytes, limits and messages.
#[derive(Clone)]
pub struct Metrics(pub(crate) Arc<Shared>);

/// State that clones share.
pub(crate) struct Shared {
    pub(crate) version: String,
    pub(crate) started: Instant,
    pub(crate) started_unix_seconds: u64,
    pub(crate) workers: Mutex<Vec<Arc<WorkerCounts>>>,
    pub(crate) sites: SiteNames,
    pub(crate) serving: OnceLock<Serving>,
    /// Messages from before the start.
    early: Mutex<Vec<(MessageLevel, String)>>,
    pub(crate) log: OnceLock<Source<LogCounts>>,
    pub(crate) cache: OnceLock<Source<CacheCounts>>,
    pub(crate) compression: OnceLock<Source<CompressionCounts>>,
    pub(crate) certificates: OnceLock<Source<Vec<Certificate>>>,
    pub(crate) configuration: Mutex<Configuration>,
    pub(crate) history: Mutex<History>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("is_serving", &self.0.serving.get().is_some()).finish_non_exhaustive()
    }
}

impl Metrics {
    /// Creates metrics of a program with this version, which starts now.
    #[must_use]
    pub fn new(version: &str) -> Self {
        Self(Arc::new(Shared {
            version: version.to_owned(),
            started: Instant::now(),
            started_unix_seconds: unix_seconds(),
            workers: Mutex::default(),
            sites: SiteNames::default(),
            serving: OnceLock::new(),
            early: Mutex::default(),
            log: OnceLock::new(),
            cache: OnceLock::new(),
            compression: OnceLock::new(),
            certificates: OnceLock::new(),
            configuration: Mutex::default(),
            history: Mutex::default(),
        }))
    }

    /// Counts the exchanges of a server, which is to be started once.
    #[must_use]
    pub fn observe(&self, server: Server) -> Server {
        let metrics = self.clone();
        server.on_exchange(&[], move |_worker| {
            let counts = Arc::new(WorkerCounts::new());
            lock(&metrics.0.workers).push(Arc::clone(&counts));
            move |exchange: &FinishedExchange<'_>| counts.record(exchange)
        })
    }

    /// Takes connections, bytes, limits and messages from a server that has started. The first one counts.
    pub fn serving(&self, running: &Running) {
        let serving = Serving { control: running.control(), start_report: running.start_report().clone() };
        let mut early = lock(&self.0.early);
        for (level, text) in early.drain(..) {
            serving.control.keep_message(level, text);
        }
        // A further server has metrics of its own.
        drop(self.0.serving.set(serving));
    }

    /// Returns the tag by which a site's exchanges are counted: see [`Response::exchange_tag`](shearwater::Response::exchange_tag).
    ///
    /// A name has the same tag each time. Sites beyond [`SITES_COUNTED_MAX`](crate::limits::SITES_COUNTED_MAX) share one.
    #[must_use]
    pub fn site_tag(&self, name: &str) -> u16 {
        self.0.sites.tag(name)
    }

    /// Sets the source of the access log's counts. The first one counts.
    pub fn set_log(&self, counts: impl Fn() -> LogCounts + Send + Sync + 'static) {
        drop(self.0.log.set(Box::new(counts)));
    }

    /// Sets the source of the file cache's counts. The first one counts.
    pub fn set_cache(&self, counts: impl Fn() -> CacheCounts + Send + Sync + 'static) {
        drop(self.0.cache.set(Box::new(counts)));
    }

    /// Sets the source of the counts of files that are compressed on the fly. The first one counts.
    pub fn set_compression(&self, counts: impl Fn() -> CompressionCounts + Send + Sync + 'static) {
        drop(self.0.compression.set(Box::new(counts)));
    }

    /// Sets the source of the certificates. The first one counts.
    ///
    /// Those that end first are shown, up to [`CERTIFICATES_SHOWN_MAX`](crate::limits::CERTIFICATES_SHOWN_MAX).
    pub fn set_certificates(&self, certificates: impl Fn() -> Vec<Certificate> + Send + Sync + 'static) {
        drop(self.0.certificates.set(Box::new(certificates)));
    }

    /// Sets the name of the configuration file.
    pub fn set_configuration(&self, file: &str) {
        lock(&self.0.configuration).file = Some(file.to_owned());
    }

    /// Counts a reload of the configuration, and keeps its errors up to [`RELOAD_ERRORS_BYTES_MAX`].
    pub fn count_reload(&self, result: Result<(), &str>) {
        let mut configuration = lock(&self.0.configuration);
        let unix_seconds = unix_seconds();
        match result {
            Ok(()) => {
                configuration.reloads += 1;
                configuration.last_reload = Some(unix_seconds);
            }
            Err(_) => configuration.reloads_refused += 1,
        }
        let errors = result.err().map(|errors| cut(errors, RELOAD_ERRORS_BYTES_MAX));
        configuration.last_outcome = Some(ReloadOutcome { unix_seconds, errors });
    }

    /// Adds the counts of now to the history, which [`status`](Self::status) has. [`Admin`](crate::Admin) does so each
    /// second.
    pub fn record_second(&self) {
        let counts = self.counts();
        lock(&self.0.history).record(counts);
    }

    /// Returns the document of `/status.json`.
    ///
    /// Without [`record_second`](Self::record_second) it has no rates and no history.
    #[must_use]
    pub fn status(&self) -> Status {
        let snapshot = self.snapshot();
        let mut status = Status::from(&snapshot);
        lock(&self.0.history).describe(&snapshot, &mut status);
        status
    }

    /// Adds a message to those of the server.
    ///
    /// Before the start it is kept until then, up to [`EARLY_MESSAGES_MAX`] of them.
    pub fn message(&self, level: MessageLevel, text: impl Into<String>) {
        let mut early = lock(&self.0.early);
        match self.0.serving.get() {
            Some(serving) => serving.control.keep_message(level, text),
            None if early.len() < EARLY_MESSAGES_MAX => early.push((level, text.into())),
            None => {}
        }
    }

    /// Returns whether the server has started and takes requests: not while it drains.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        match self.0.serving.get() {
            None => Readiness::Starting,
            Some(serving) if serving.control.is_ending() => Readiness::Draining,
            Some(_) => Readiness::Serving,
        }
    }
}

/// Readiness of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Readiness {
    /// It hasn't started.
    #[default]
    Starting,
    /// It takes requests.
    Serving,
    /// It ends, after a drain or at once.
    Draining,
}

impl Readiness {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Draining => "draining",
        }
    }
}

/// Returns the seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a text, or its beginning and an ellipsis if it is longer.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    if text.len() <= bytes_max { text.to_owned() } else { format!("{}\u{2026}", &text[..end]) }
}

#[cfg(test)]
mod tests {
    use super::Metrics;
    use crate::limits::RELOAD_ERRORS_BYTES_MAX;

    #[test]
    fn cuts_the_errors_of_a_reload() {
        let metrics = Metrics::new("0");
        let errors = || metrics.status().configuration.last_outcome.and_then(|outcome| outcome.errors);
        metrics.count_reload(Err("error: one\n"));
        assert_eq!(errors().as_deref(), Some("error: one\n"));
        metrics.count_reload(Err(&"é".repeat(RELOAD_ERRORS_BYTES_MAX)));
        assert!(
            errors()
                .is_some_and(|errors| errors.ends_with("é…") && errors.len() <= RELOAD_ERRORS_BYTES_MAX + 3)
        );
        metrics.count_reload(Ok(()));
        assert_eq!(errors(), None);
    }
}
