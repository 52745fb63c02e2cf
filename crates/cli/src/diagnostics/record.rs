//! A message as a line of text or as a JSON object.

use std::fmt::{Debug, Write as _};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use shearwater::engine::visible::{Json, OneLine};
use shearwater_log::TimeCache;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use crate::style::Style;

/// Beginning of each line of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Prefix {
    /// Nothing: a terminal, or a pipe whose reader adds the time, as container runtimes do.
    #[default]
    None,
    /// The time: a file, to which nobody else adds it.
    Time,
    /// The severity in the form that systemd's journal reads and removes: `<3>`.
    Priority,
}

impl Prefix {
    /// Chooses by the kind of standard error.
    pub(super) fn of_stderr() -> Self {
        let Ok(stderr) = io::stderr().as_fd().try_clone_to_owned() else { return Self::None };
        let Ok(metadata) = File::from(stderr).metadata() else { return Self::None };
        let id = format!("{}:{}", metadata.dev(), metadata.ino());
        match std::env::var("JOURNAL_STREAM") {
            Ok(journal) if journal == id => Self::Priority,
            _ if metadata.is_file() => Self::Time,
            _ => Self::None,
        }
    }
}

/// A message.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) time: SystemTime,
    level: Level,
    target: &'static str,
    message: String,
    /// Lines that precede the message as text.
    details: String,
    /// Other fields, in their order.
    fields: Vec<(&'static str, Value)>,
}

impl Record {
    pub(super) fn of_event(time: SystemTime, event: &Event<'_>) -> Self {
        let metadata = event.metadata();
        let mut record = Self::new(time, *metadata.level(), metadata.target());
        event.record(&mut record);
        record
    }

    /// Returns the message for warnings about a configuration.
    pub(super) fn of_warnings(time: SystemTime, warnings: &str) -> Self {
        let mut record = Self::new(time, Level::WARN, "shearwater");
        record.fields.push(("kind", "configuration_warnings".into()));
        warnings.clone_into(&mut record.details);
        record
    }

    /// Returns the message for messages that could not be written.
    pub(super) fn of_lost(time: SystemTime, lost: u64) -> Self {
        let mut record = Self::new(time, Level::WARN, "shearwater");
        record.message = format!("{lost} messages are lost: standard error wasn't read");
        record.fields = vec![("kind", "messages_lost".into()), ("suppressed", lost.into())];
        record
    }

    fn new(time: SystemTime, level: Level, target: &'static str) -> Self {
        let (message, details) = (String::new(), String::new());
        Self { time, level, target, message, details, fields: Vec::new() }
    }

    /// Formats the details as they are, and the message in one line.
    pub(super) fn text(&self, prefix: Prefix, style: Style) -> Vec<u8> {
        let start = match prefix {
            Prefix::None => String::new(),
            Prefix::Time => format!("{} ", rfc3339(self.time)),
            Prefix::Priority => priority(self.level).to_owned(),
        };
        let mut text = String::new();
        for line in self.details.lines() {
            let start = if prefix == Prefix::Priority { &start[..] } else { "" };
            // Writing to a string can't fail.
            let line = style.diagnostics(&OneLine(line).to_string());
            let _ = writeln!(text, "{start}{line}");
        }
        if !self.message.is_empty() {
            let name = style.severity("shearwater:", self.level);
            let _ = writeln!(text, "{start}{name} {}", OneLine(&self.message));
        }
        text.into_bytes()
    }

    /// Formats a JSON object in one line.
    pub(super) fn json(&self, prefix: Prefix) -> Vec<u8> {
        let mut text =
            if prefix == Prefix::Priority { priority(self.level).to_owned() } else { String::new() };
        let message =
            if self.message.is_empty() { "warnings about the configuration" } else { &self.message };
        let level = self.level.as_str().to_ascii_lowercase();
        let head = [("time", rfc3339(self.time)), ("level", level), ("target", self.target.to_owned())];
        let head = head.map(|(name, value)| (name, value.into())).into_iter();
        let fields = self.fields.iter().cloned();
        let details = (!self.details.is_empty()).then(|| ("details", self.details.clone().into()));
        let members = head.chain([("message", message.into())]).chain(fields).chain(details);
        for (index, (name, value)) in members.enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(text, "{before}\"{name}\":{}", Json(&value.to_string()));
        }
        text.push_str("}\n");
        text.into_bytes()
    }
}

impl Visit for Record {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            "details" => value.clone_into(&mut self.details),
            name => self.fields.push((name, value.into())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.push((field.name(), value.into()));
    }
}

/// Returns the severity in syslog's numbers (RFC 5424 section 6.2.1), as the journal reads it.
fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        _ => "<7>",
    }
}

/// Formats a time: `2026-11-23T21:25:00.123Z`.
fn rfc3339(time: SystemTime) -> String {
    let since: Duration = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut cache = TimeCache::default();
    let seconds = String::from_utf8_lossy(cache.iso(since.as_secs())).into_owned();
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::Value;
    use shearwater::engine::visible::Json;
    use tracing::Level;

    use super::{Prefix, Record};
    use crate::style::Style;

    fn record(message: &str, details: &str) -> Record {
        let time = UNIX_EPOCH + Duration::from_millis(784_111_777_042);
        let mut record = Record::new(time, Level::ERROR, "shearwater");
        record.message = message.to_owned();
        record.details = details.to_owned();
        record.fields = vec![("kind", "k".into()), ("worker", 3.into())];
        record
    }

    fn text(record: &Record, prefix: Prefix) -> String {
        String::from_utf8(record.text(prefix, Style::NONE)).expect("UTF-8")
    }

    #[test]
    fn text_begins_as_its_reader_needs_it() {
        let record = record("one", "error: a\n --> b\n");
        assert_eq!(text(&record, Prefix::None), "error: a\n --> b\nshearwater: one\n");
        assert_eq!(
            text(&record, Prefix::Time),
            "error: a\n --> b\n1994-11-06T08:49:37.042Z shearwater: one\n"
        );
        assert_eq!(text(&record, Prefix::Priority), "<3>error: a\n<3> --> b\n<3>shearwater: one\n");
    }

    #[test]
    fn no_text_of_a_client_forges_a_line_or_controls_a_terminal() {
        let hostile = "a\nshearwater: forged\r\x1b[2J\u{202e}\u{2028} \"b\" c\\d \u{e9}";
        let expected = "a\\nshearwater: forged\\r\\u{1b}[2J\\u{202e}\\u{2028} \"b\" c\\d \u{e9}";
        assert_eq!(text(&record(hostile, ""), Prefix::None), format!("shearwater: {expected}\n"));
        let details = text(&record("m", "a\x1b]0;b\x07\r"), Prefix::None);
        assert_eq!(details, "a\\u{1b}]0;b\\u{7}\\r\nshearwater: m\n");
        let line = String::from_utf8(record(hostile, hostile).json(Prefix::None)).expect("UTF-8");
        assert_eq!(line.matches(['\n', '\r', '\x1b', '\u{202e}', '\u{2028}']).count(), 1, "{line}");
        let parsed: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!((parsed["message"].as_str(), parsed["details"].as_str()), (Some(hostile), Some(hostile)));
    }

    #[test]
    fn json_has_the_documented_members() {
        let line = String::from_utf8(record("one", "two\n").json(Prefix::Priority)).expect("UTF-8");
        let expected = "<3>{\"time\":\"1994-11-06T08:49:37.042Z\",\"level\":\"error\",\"target\":\"shearwater\",\
                        \"message\":\"one\",\"kind\":\"k\",\"worker\":3,\"details\":\"two\\n\"}\n";
        assert_eq!(line, expected);
    }

    #[test]
    fn json_stays_the_same_value_and_controls_no_terminal() {
        let hostile =
            "a\u{1b}[2J\u{7f}\u{9b}2J\u{85}\u{2028}\u{2029}\u{202e}\u{2066}\u{e0001} \u{e9}\u{1f600} \"'\\";
        let value = Value::from(vec![hostile]);
        let text = Json(&format!("{value:#}\r\n")).to_string();
        let is_harmless =
            |letter: char| letter == '\n' || letter == '\u{1f600}' || ('\u{20}'..'\u{7f}').contains(&letter);
        assert!(text.chars().all(|letter| is_harmless(letter) || letter == '\u{e9}'), "{text:?}");
        assert!(
            text.contains("\\u009b2J\\u0085\\u2028\\u2029\\u202e\\u2066\\udb40\\udc01 \u{e9}"),
            "{text:?}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }
}
