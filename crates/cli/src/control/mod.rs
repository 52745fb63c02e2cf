//! The control socket: a Unix-domain socket beside the PID file, by which commands get their outcome.
//!
//! A client sends one line, the server responds with one line, and the connection ends. Both lines are JSON objects:
//!
//! ```text
//! {"command":"reload","arguments":[],"timeout_ms":30000}
//! {"outcome":"refused","text":"not reloaded: …","details":"error: …\n","process":null}
//! ```

pub(crate) mod client;
mod line;
pub(crate) mod server;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use shearwater::OperationResult;

/// Bytes of a request.
const REQUEST_BYTES_MAX: usize = 4096;

/// Bytes of a text in a reply; the rest is cut. Encoded, a byte may take six.
const REPLY_TEXT_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a reply.
const REPLY_BYTES_MAX: usize = 16 * REPLY_TEXT_BYTES_MAX;

/// Longest time that a command may be given.
pub(crate) const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// Returns the path of the control socket of a server with this PID file.
pub(crate) fn path_of(pid_file: &Path) -> PathBuf {
    let mut path = OsString::from(pid_file);
    path.push(".sock");
    path.into()
}

/// A command for a running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) command: String,
    pub(crate) arguments: Vec<String>,
    /// Time in which the client wants the reply.
    pub(crate) timeout: Duration,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) outcome: Outcome,
    /// A line without its end.
    pub(crate) text: String,
    /// Complete lines for standard error: warnings, or errors.
    pub(crate) details: String,
    /// The process that serves after an upgrade.
    pub(crate) process: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// Done, but not by every worker.
    Incomplete,
    /// Nothing has changed.
    Refused,
    /// Another process serves now: ask that one.
    Superseded,
    /// The outcome isn't known in time.
    Unfinished,
}

const OUTCOMES: [(Outcome, &str); 5] = [
    (Outcome::Done, "done"),
    (Outcome::Incomplete, "incomplete"),
    (Outcome::Refused, "refused"),
    (Outcome::Superseded, "superseded"),
    (Outcome::Unfinished, "unfinished"),
];

impl Request {
    fn to_line(&self) -> String {
        let timeout_ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        json!({ "command": self.command, "arguments": self.arguments, "timeout_ms": timeout_ms }).to_string()
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(line).ok()?;
        let arguments = value["arguments"].as_array()?.iter();
        let arguments = arguments.map(|argument| Some(argument.as_str()?.to_owned()));
        Some(Self {
            command: value["command"].as_str()?.to_owned(),
            arguments: arguments.collect::<Option<_>>()?,
            timeout: Duration::from_millis(value["timeout_ms"].as_u64()?).min(TIMEOUT_MAX),
        })
    }
}

impl Reply {
    /// Returns a reply without details.
    pub(crate) fn new(outcome: Outcome, text: impl Into<String>) -> Self {
        Self { outcome, text: text.into(), details: String::new(), process: None }
    }

    /// Returns the reply for the result of a reload or upgrade.
    pub(crate) fn of(result: OperationResult, process: Option<u32>) -> Self {
        let (outcome, text, details) = match result {
            OperationResult::Done { text, details } => (Outcome::Done, text, details),
            OperationResult::Incomplete { text, details } => (Outcome::Incomplete, text, details),
            OperationResult::Refused { text, details } => (Outcome::Refused, text, details),
            OperationResult::Superseded { process } => {
                let text = format!("process {process} serves now");
                return Self { process: Some(process), ..Self::new(Outcome::Superseded, text) };
            }
            // Results that are added in the future, too.
            _ => (Outcome::Unfinished, String::new(), String::new()),
        };
        Self { outcome, text, details, process }
    }

    fn to_line(&self) -> String {
        let name = OUTCOMES.iter().find(|(outcome, _)| *outcome == self.outcome).map(|(_, name)| name);
        let (text, details) = (cut(&self.text), cut(&self.details));
        json!({ "outcome": name, "text": text, "details": details, "process": self.process }).to_string()
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(line).ok()?;
        let name = value["outcome"].as_str()?;
        Some(Self {
            outcome: OUTCOMES.iter().find(|(_, known)| *known == name).map(|(outcome, _)| *outcome)?,
            text: value["text"].as_str()?.to_owned(),
            details: value["details"].as_str()?.to_owned(),
            process: value["process"].as_u64().and_then(|process| u32::try_from(process).ok()),
        })
    }
}

/// Cuts a long text between lines if it has some, otherwise between characters.
fn cut(text: &str) -> &str {
    if text.len() <= REPLY_TEXT_BYTES_MAX {
        return text;
    }
    let end = (0..=REPLY_TEXT_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let kept = &text[..end];
    kept.rfind('\n').map_or(kept, |line_end| &kept[..=line_end])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{OUTCOMES, Outcome, REPLY_BYTES_MAX, REPLY_TEXT_BYTES_MAX, Reply, Request, TIMEOUT_MAX};

    #[test]
    fn requests_and_replies_are_read_as_written() {
        let request = Request {
            command: "certificates".to_owned(),
            arguments: vec!["--renew".to_owned(), "a \"b\"\n".to_owned()],
            timeout: Duration::from_millis(1500),
        };
        assert_eq!(Request::parse(request.to_line().as_bytes()), Some(request.clone()));
        let endless = Request { timeout: Duration::MAX, ..request };
        assert_eq!(Request::parse(endless.to_line().as_bytes()).map(|read| read.timeout), Some(TIMEOUT_MAX));
        for (outcome, _) in OUTCOMES {
            let details = "error: one\nhelp: two\n".to_owned();
            let reply = Reply { details, process: Some(7), ..Reply::new(outcome, "text") };
            assert!(!reply.to_line().contains('\n'));
            assert_eq!(Reply::parse(reply.to_line().as_bytes()), Some(reply));
        }
    }

    #[test]
    fn a_long_text_is_cut_and_the_reply_stays_in_its_bound() {
        let lines = "warning: x\n".repeat(REPLY_TEXT_BYTES_MAX);
        let reply = Reply { details: lines, ..Reply::new(Outcome::Refused, "\u{1}".repeat(1 << 20)) };
        let line = reply.to_line();
        assert!(line.len() < REPLY_BYTES_MAX, "{}", line.len());
        let read = Reply::parse(line.as_bytes()).expect("well-formed");
        assert!(read.details.ends_with("warning: x\n") && read.details.len() > REPLY_TEXT_BYTES_MAX - 20);
    }
}
