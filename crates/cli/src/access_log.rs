//! The access log: `[log]` and `--log` as options of a log, and the listener that feeds it.

use std::sync::Arc;

use shearwater::engine::{EXCHANGE_TEXT_BYTES_MAX, Version};
use shearwater::{FinishedExchange, MessageLevel, Server};
use shearwater_config::{self as config, Config, Finding, Findings, StatusClass, nearest};
use shearwater_log::limits::LOG_VALUE_BYTES_MAX;
use shearwater_log::{
    Counts, Destination, Entry, Filter, Format, Log, LogEvent, LogNotice, Options, variables,
};
use shearwater_metrics::Metrics;

use crate::args::Serve;
use crate::diagnostics::REQUESTED;
use crate::failure::Failure;

// A recorded text that is cut is longer than the log takes, so that the log marks it.
const _: () = assert!(EXCHANGE_TEXT_BYTES_MAX > LOG_VALUE_BYTES_MAX);

/// A log that is ready to be opened.
#[derive(Debug, Clone)]
pub(crate) struct PlannedLog {
    options: Options,
    /// Destination and format for reports.
    pub(crate) description: String,
}

impl PlannedLog {
    /// Returns the destination.
    pub(crate) fn destination(&self) -> String {
        self.options.destination.to_string()
    }

    /// Returns true if standard output is the log.
    pub(crate) fn takes_stdout(&self) -> bool {
        self.options.destination == Destination::Stdout
    }
}

/// Merges `[log]` with `--log`. Adds a line to `overridden` if the flag replaces another destination.
pub(crate) fn plan(
    serve: &Serve,
    section: &config::Log,
    overridden: &mut Vec<String>,
) -> Result<Option<PlannedLog>, Failure> {
    if let (Some(flag), Some(of_file)) = (&serve.log, &section.access)
        && flag != of_file
    {
        overridden.push(format!("--log {flag} overrides log.access = {of_file:?}"));
    }
    let Some(given) = serve.log.as_ref().or(section.access.as_ref()) else { return Ok(None) };
    let destination = Destination::parse(given)
        .map_err(|message| Failure::usage_helped(message, "name a file, `-`, or `syslog:/dev/log`"))?;
    destination.check().map_err(|error| Failure::usage_helped(error.to_string(), error.help()))?;
    let format = Format::parse(&section.format).map_err(|error| Failure::usage(error.to_string()))?;
    let name = match &format {
        Format::Custom(_) => "custom format",
        Format::Common | Format::Combined | Format::Json => &section.format,
    };
    let description = format!("{destination} ({name})");
    let class = |class: &StatusClass| match class {
        StatusClass::Success => 2,
        StatusClass::Redirection => 3,
        StatusClass::ClientError => 4,
        StatusClass::ServerError => 5,
    };
    let classes = section.exclude_statuses.iter().map(class).collect();
    let filter = Filter { paths: section.exclude_paths.clone(), classes };
    Ok(Some(PlannedLog { options: Options { destination, format, filter }, description }))
}

/// Returns the warning of a format without a log.
pub(crate) fn unused(config: &Config) -> Option<Finding> {
    let is_unused = config.log.access.is_none() && config.log.format != config::Log::default().format;
    is_unused.then(|| Finding {
        key: "log.format".to_owned(),
        message: "without `access` there is no access log".to_owned(),
        help: Some("add a destination, such as `access = \"access.log\"`".to_owned()),
    })
}

/// Checks the values of `[log]` that only the log can check.
pub(crate) fn check(config: &Config) -> Findings {
    let mut findings = Findings::default();
    let mut error = |key: &str, message: String, help: Option<String>| {
        findings.errors.push(Finding { key: format!("log.{key}"), message, help });
    };
    match config.log.access.as_deref().map(Destination::parse) {
        Some(Err(message)) => {
            let help = "such as \"syslog:/dev/log\" or \"syslog:127.0.0.1:514\"";
            error("access", message, Some(help.to_owned()));
        }
        Some(Ok(destination)) => {
            if let Err(wrong) = destination.check() {
                // Without its path, which may have a secret of the environment.
                let message = format!("can't open the access log: {}", wrong.error);
                error("access", message, Some(wrong.help().to_owned()));
            }
        }
        None => {}
    }
    if let Err(wrong) = Format::parse(&config.log.format) {
        error("format", wrong.to_string(), Some(help_on_format(&config.log.format)));
    }
    findings
}

/// Returns a way to fix an invalid format.
fn help_on_format(format: &str) -> String {
    let names: Vec<_> = variables().map(|(name, _)| name).collect();
    let words = format.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let is_unknown = |word: &&str| word.len() > 2 && !names.contains(word);
    let near = words.filter(is_unknown).find_map(|word| nearest(word, names.iter().copied()));
    match near {
        Some(name) if format.contains('$') => format!("a variable with a similar name exists: `${name}`"),
        _ => "write \"common\", \"combined\", \"json\", or variables such as \"$remote_addr $status\""
            .to_owned(),
    }
}

/// Opens a log and makes the server write to it.
pub(crate) fn attach(
    server: Server,
    planned: PlannedLog,
    metrics: Option<Metrics>,
) -> Result<(Server, Arc<Log>), Failure> {
    let format = planned.options.format.clone();
    let report = move |notice: &LogNotice| {
        report(notice);
        metrics.iter().for_each(|metrics| metrics.message(level(notice), notice.to_string()));
    };
    let log = Log::start(planned.options, report)
        .map_err(|error| Failure::system(error.to_string(), Some(error.help().to_owned())))?;
    let log = Arc::new(log);
    let (of_workers, of_signals) = (Arc::clone(&log), Arc::clone(&log));
    let server = server
        .on_exchange(&format.fields(), move |_| {
            let mut lines = of_workers.line_writer();
            move |exchange: &FinishedExchange<'_>| lines.log(&entry(exchange, &|name| exchange.field(name)))
        })
        .on_reopen(move || {
            of_signals.reopen();
            report_counts(of_signals.counts());
        });
    Ok((server, log))
}

/// Reports trouble of a log, and its end.
fn report(notice: &LogNotice) {
    let kind = notice.event.kind();
    match &notice.event {
        LogEvent::Failing(error) | LogEvent::NotReopened(error) => {
            tracing::error!(target: "shearwater::log", kind, errno = error.raw_os_error(), "{notice}");
        }
        LogEvent::Recovered => tracing::info!(target: "shearwater::log", kind, "{notice}"),
        LogEvent::Dropped(lines) => tracing::warn!(target: "shearwater::log", kind, lines, "{notice}"),
        _ => tracing::warn!(target: "shearwater::log", kind, "{notice}"),
    }
}

/// Returns the level of a notice. Dropped lines are a warning: those that the end of the log loses have no other.
fn level(notice: &LogNotice) -> MessageLevel {
    match notice.event {
        LogEvent::Failing(_) | LogEvent::NotReopened(_) => MessageLevel::Error,
        LogEvent::Recovered => MessageLevel::Info,
        _ => MessageLevel::Warning,
    }
}

/// Reports the counts of a log at `SIGUSR1`.
fn report_counts(Counts { written, dropped, .. }: Counts) {
    let kind = "access_log_counts";
    tracing::info!(target: REQUESTED, kind, written, dropped, "access log: {written} lines written, {dropped} dropped");
}

/// Returns the facts of an exchange.
fn entry<'a>(exchange: &FinishedExchange<'a>, field: &'a dyn Fn(&str) -> Option<&'a [u8]>) -> Entry<'a> {
    Entry {
        unix_seconds: exchange.unix_seconds(),
        client: exchange.client(),
        peer: exchange.peer(),
        method: exchange.method(),
        target: exchange.target(),
        version: match exchange.version() {
            Some(Version::Http2) => "HTTP/2.0",
            Some(Version::Http11) => "HTTP/1.1",
            Some(Version::Http10) => "HTTP/1.0",
            None => "",
        },
        tls_version: exchange.tls_version().map(|version| version.as_str()),
        status: exchange.status(),
        body_bytes_received: exchange.body_bytes_received(),
        body_bytes_sent: exchange.body_bytes_sent(),
        bytes_sent: exchange.bytes_sent(),
        first_byte: exchange.first_byte(),
        duration: exchange.duration(),
        end: exchange.end().name(),
        field,
    }
}
