//! Messages to the operator: the events of `tracing` as lines of text or JSON on standard error.
//!
//! A subscriber of its own instead of `tracing-subscriber`: spans, per-layer filters and pools for them aren't needed here
//! (docs/decisions/0019-diagnostics.md).

mod output;
mod record;

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use shearwater_config::{Level, MessageFormat};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record as SpanRecord};
use tracing::subscriber::{Interest, Subscriber};
use tracing::{Event, Metadata};

use output::Output;
use record::{Prefix, Record};

use crate::style::Style;

/// Target of figures that a signal has requested: written at every level but `off`.
pub(crate) const REQUESTED: &str = "shearwater::totals";

/// `[logging]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageOptions {
    pub(crate) level: Level,
    pub(crate) format: MessageFormat,
}

/// State of the subscriber. A reload changes level and format.
struct Messages {
    level: AtomicU8,
    is_json: AtomicBool,
    prefix: OnceLock<Prefix>,
    output: Mutex<Output>,
}

static MESSAGES: Messages = Messages {
    level: AtomicU8::new(Level::Info as u8),
    is_json: AtomicBool::new(false),
    prefix: OnceLock::new(),
    output: Mutex::new(Output::new()),
};

/// Writes events to standard error from now on.
pub(crate) fn install(options: MessageOptions) {
    apply(options);
    MESSAGES.prefix.get_or_init(Prefix::of_stderr);
    // Another subscriber can only be this one.
    drop(tracing::subscriber::set_global_default(MessageSubscriber));
}

/// Changes level and format.
pub(crate) fn apply(options: MessageOptions) {
    MESSAGES.level.store(options.level as u8, Relaxed);
    MESSAGES.is_json.store(options.format == MessageFormat::Json, Relaxed);
}

/// Writes warnings about the configuration, whatever the level: as they are, or as one JSON line.
pub(crate) fn warn_of_configuration(warnings: &str) {
    if !warnings.is_empty() {
        MESSAGES.write(&Record::of_warnings(SystemTime::now(), warnings));
    }
}

impl Messages {
    /// Returns the most verbose level that is written.
    fn filter(&self) -> LevelFilter {
        match self.level.load(Relaxed) {
            level if level == Level::Off as u8 => LevelFilter::OFF,
            level if level == Level::Error as u8 => LevelFilter::ERROR,
            level if level == Level::Warn as u8 => LevelFilter::WARN,
            level if level == Level::Info as u8 => LevelFilter::INFO,
            _ => LevelFilter::DEBUG,
        }
    }

    fn takes(&self, metadata: &Metadata<'_>) -> bool {
        let filter = self.filter();
        let is_requested = metadata.target() == REQUESTED && filter != LevelFilter::OFF;
        is_requested || *metadata.level() <= filter
    }

    fn write(&self, record: &Record) {
        let mut output = self.output();
        if let Some(lost) = output.take_lost() {
            output.write(&self.format(&Record::of_lost(record.time, lost)));
        }
        output.write(&self.format(record));
    }

    fn format(&self, record: &Record) -> Vec<u8> {
        let prefix = self.prefix.get().copied().unwrap_or_default();
        if self.is_json.load(Relaxed) { record.json(prefix) } else { record.text(prefix, Style::of_stderr()) }
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        // No code panics while it holds the lock.
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes events; has no spans.
struct MessageSubscriber;

impl Subscriber for MessageSubscriber {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // A reload may change the level.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && MESSAGES.takes(metadata)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &SpanRecord<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        MESSAGES.write(&Record::of_event(SystemTime::now(), event));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
