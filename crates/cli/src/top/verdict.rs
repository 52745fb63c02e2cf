//! The health of a server in two sentences. The status page has the same functions.

use std::cmp::Reverse;

use serde_json::Value;

use crate::top::document::{
    CHECK_SECONDS, Document, RATE_SECONDS, growth, increase, rate, reference, seconds,
};
use crate::top::format::{self, NO_VALUE, counted};

/// Part of the descriptors in use from which on a server is in trouble.
const DESCRIPTORS_PART_MAX: f64 = 0.8;

/// Limits of the whole server. At the others, one client is rejected.
pub(crate) const CAPACITY_LIMITS: [&str; 4] =
    ["connections_max", "INBOX_MAX", "buffered_bytes_max", "calls_max"];

/// Limits that a healthy server reaches all the time: idle connections end, pipelined requests wait for their turn.
pub(crate) const ROUTINE_LIMITS: [&str; 10] = [
    "idle_ms",
    "first_head_ms",
    "linger_ms",
    "drain_idle_ms",
    "requests_per_connection_max",
    "output_bytes_max",
    "OUTPUT_ITEMS_MAX",
    "OUTPUT_FILES_MAX",
    "REQUESTS_PER_TURN_MAX",
    "EXPIRIES_PER_TURN",
];

/// Problems named in a sentence; further ones are counted.
const PROBLEMS_SHOWN_MAX: usize = 2;

/// Value of the check of TLS for a certificate that has ended.
pub(crate) const EXPIRED: &str = "expired";

/// Minimum number of `4xx`, or of times that clients reach a limit, for a notice.
const NOTICED_MIN: f64 = 10.0;

/// How well something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Not configured, or unknown.
    Off,
    Fine,
    Notice,
    Trouble,
}

/// One thing that is checked.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) level: Level,
    pub(crate) value: String,
    /// Parts of a sentence.
    pub(crate) problems: Vec<String>,
}

impl Check {
    fn fine(name: &'static str, value: String) -> Self {
        Self { name, level: Level::Fine, value, problems: Vec::new() }
    }

    fn off(name: &'static str, value: &str) -> Self {
        Self { level: Level::Off, ..Self::fine(name, value.to_owned()) }
    }

    /// Adds a problem if there is one.
    fn or_problem(mut self, is_problem: bool, level: Level, text: impl FnOnce() -> String) -> Self {
        if is_problem {
            self.level = self.level.max(level);
            self.problems.push(text());
        }
        self
    }
}

/// The health of a server.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) level: Level,
    /// The state and the rate.
    pub(crate) first: String,
    /// The problems; empty if there are none.
    pub(crate) second: String,
    pub(crate) checks: Vec<Check>,
}

impl Verdict {
    /// Judges documents of at most the last minute, the newest one last.
    ///
    /// # Panics
    /// Without a document.
    pub(crate) fn of<'a>(history: impl DoubleEndedIterator<Item = &'a Document> + Clone) -> Self {
        let now = history.clone().next_back().expect("a history has at least one document");
        let before = reference(history.clone(), CHECK_SECONDS);
        let checks = checks(before, now);
        let mut worst_first: Vec<&Check> = checks.iter().collect();
        worst_first.sort_by_key(|check| Reverse(check.level));
        let problems = worst_first.iter().flat_map(|check| &check.problems);
        let problems: Vec<&str> = problems.map(String::as_str).collect();
        let state = now.text(&["server", "state"]);
        let is_draining = state == Some("draining");
        let requests = rate(reference(history, RATE_SECONDS), now, &["requests", "total"]);
        let mut first = String::from(match state {
            Some("draining") => "Draining",
            Some("starting") => "Starting",
            _ => "Serving",
        });
        if let Some(open) = now.number(&["connections", "open"]).filter(|_| is_draining) {
            first.push_str(&format!(", {} open", counted(open, "connection", "connections")));
        }
        match requests {
            None => {}
            Some(0.0) => first.push_str(", no requests"),
            Some(_) => first.push_str(&format!(", {} requests/s", format::rate(requests))),
        }
        let is_usual = problems.is_empty() && !is_draining && requests.is_some();
        first.push_str(if is_usual { ", nothing unusual." } else { "." });
        let second =
            if problems.is_empty() { String::new() } else { sentence(&problems, seconds(before, now)) };
        let drain = if is_draining { Level::Notice } else { Level::Fine };
        let level = checks.iter().map(|check| check.level).fold(drain, Level::max);
        Self { level, first, second, checks }
    }
}

fn sentence(problems: &[&str], over: f64) -> String {
    let over = over.round();
    let span = match over {
        _ if over >= CHECK_SECONDS - 1.0 => "minute".to_owned(),
        _ if over > 1.0 => format!("{over} seconds"),
        _ => "second".to_owned(),
    };
    let shown = problems[..problems.len().min(PROBLEMS_SHOWN_MAX)].join("; ");
    match problems.len().saturating_sub(PROBLEMS_SHOWN_MAX) {
        0 => format!("In the last {span}: {shown}."),
        more => format!("In the last {span}: {shown}; and {more} more."),
    }
}

fn checks(before: &Document, now: &Document) -> Vec<Check> {
    let all = increase(before, now, &["requests", "total"]).unwrap_or(0.0);
    let of_class = |class| increase(before, now, &["requests", "by_class", class]).unwrap_or(0.0);
    let value = |count: f64| if count > 0.0 { format::part(count / all.max(count)) } else { "0".to_owned() };
    let (failed, rejected) = (of_class("5xx"), of_class("4xx"));
    let level = if failed >= 0.01 * all { Level::Trouble } else { Level::Notice };
    let many_rejected = rejected >= NOTICED_MIN && rejected >= 0.5 * all;
    vec![
        Check::fine("5xx", value(failed)).or_problem(failed > 0.0, level, || {
            format!("{} 5xx ({})", counted(failed, "response was", "responses were"), value(failed))
        }),
        Check::fine("4xx", value(rejected)).or_problem(many_rejected, Level::Notice, || {
            format!("{} of the responses were 4xx", value(rejected))
        }),
        faults(before, now),
        limits(before, now),
        log(before, now),
        descriptors(now),
        tls(now),
        messages(before, now),
    ]
}

fn faults(before: &Document, now: &Document) -> Check {
    let kinds = [
        ("handler_panics", Level::Trouble, "handler panicked", "handlers panicked"),
        (
            "handler_errors",
            Level::Trouble,
            "response of a handler was invalid",
            "responses of handlers were invalid",
        ),
        ("files_failed", Level::Trouble, "file was cut short", "files were cut short"),
        ("connections_cut_off", Level::Notice, "connection was cut off", "connections were cut off"),
    ];
    let mut sum = 0.0;
    let mut check = Check::fine("Faults", String::new());
    for (name, level, one, many) in kinds {
        let count = increase(before, now, &["faults", name]).unwrap_or(0.0);
        sum += count;
        check = check.or_problem(count > 0.0, level, || counted(count, one, many));
    }
    Check { value: format::grouped(sum), ..check }
}

fn limits(before: &Document, now: &Document) -> Check {
    let old = |wanted: &str| before.limits().find(|(name, _)| *name == wanted).map(|(_, count)| count);
    let hits = now.limits().map(|(name, count)| (name, growth(old(name), Some(count)).unwrap_or(0.0)));
    // The workers count this one as refused connections.
    let refused = increase(before, now, &["connections", "refused"]).unwrap_or(0.0);
    let hits = hits.chain([("connections_per_address_max", refused)]);
    let hits: Vec<(&str, f64)> =
        hits.filter(|(name, count)| *count > 0.0 && !ROUTINE_LIMITS.contains(name)).collect();
    let mut check = Check::fine("Limits", format::grouped(hits.iter().map(|(_, count)| count).sum()));
    let text = |name: &str, count| format!("{name} was reached {}", counted(count, "time", "times"));
    let (capacity, clients): (Vec<_>, Vec<_>) =
        hits.into_iter().partition(|(name, _)| CAPACITY_LIMITS.contains(name));
    for (name, count) in capacity {
        check = check.or_problem(true, Level::Trouble, || text(name, count));
    }
    for (name, count) in clients {
        let is_frequent = count >= NOTICED_MIN && count >= seconds(before, now);
        check = check.or_problem(is_frequent, Level::Notice, || text(name, count));
    }
    check
}

fn log(before: &Document, now: &Document) -> Check {
    if now.at(&["log"]).is_none() {
        return Check::off("Log", "off");
    }
    let dropped = increase(before, now, &["log", "dropped"]).unwrap_or(0.0);
    let is_failing = now.is_true(&["log", "failing"]);
    let check = match is_failing {
        true => Check::fine("Log", "failing".to_owned()),
        false => Check::fine("Log drops", format::grouped(dropped)),
    };
    let check = check.or_problem(is_failing, Level::Trouble, || "the access log can't be written".to_owned());
    check.or_problem(dropped > 0.0, Level::Trouble, || {
        let verb = if dropped == 1.0 { "was" } else { "were" };
        format!("{} of the access log {verb} dropped", counted(dropped, "line", "lines"))
    })
}

fn descriptors(now: &Document) -> Check {
    let number = |name| now.number(&["process", name]);
    let (Some(open), Some(most @ 1.0..)) = (number("open_descriptors"), number("descriptors_max")) else {
        return Check::off("Descriptors", NO_VALUE);
    };
    let part = format::part(open / most);
    let text = format!("{part} of the descriptors are in use");
    Check::fine("Descriptors", part).or_problem(open / most > DESCRIPTORS_PART_MAX, Level::Trouble, || text)
}

pub(crate) fn tls(now: &Document) -> Check {
    if now.at(&["tls"]).is_none() {
        return Check::off("TLS", "off");
    }
    let certificates = now.at(&["tls", "certificates"]).and_then(Value::as_array);
    let mut check = Check::fine("TLS", NO_VALUE.to_owned());
    let mut least: Option<f64> = None;
    for certificate in certificates.into_iter().flatten() {
        let text = |name| certificate.get(name).and_then(Value::as_str).unwrap_or_default();
        let left = certificate.get("ends_in_seconds").and_then(Value::as_f64);
        let is_failing = certificate.get("failing").and_then(Value::as_bool) == Some(true);
        least = match (least, left) {
            (Some(least), Some(left)) => Some(least.min(left)),
            (least, left) => left.or(least),
        };
        let name = text("name");
        let (level, problem) = match text("state") {
            "expired" => (Level::Trouble, format!("the certificate of {name} has expired")),
            "not_yet_valid" => (Level::Trouble, format!("the certificate of {name} isn't valid yet")),
            "missing" => {
                let level = if is_failing { Level::Trouble } else { Level::Notice };
                (level, format!("{name} has no certificate yet"))
            }
            "ends_soon" => {
                let left = format::left(left.unwrap_or(0.0));
                (Level::Notice, format!("the certificate of {name} ends in {left}"))
            }
            _ if is_failing => (Level::Notice, format!("the last order of a certificate for {name} failed")),
            _ => continue,
        };
        check = check.or_problem(true, level, || problem);
    }
    let value = match least {
        None => NO_VALUE.to_owned(),
        Some(left) if left > 0.0 => format::left(left),
        Some(_) => EXPIRED.to_owned(),
    };
    Check { value, ..check }
}

fn messages(before: &Document, now: &Document) -> Check {
    let number = |name| before.number(&["server", name]).unwrap_or(0.0);
    let since = number("started_unix_seconds") + number("uptime_seconds");
    let is_recent = |message: &&Value| {
        message.get("unix_seconds").and_then(Value::as_f64).is_some_and(|time| time >= since)
    };
    let recent: Vec<&Value> = now.list("messages").iter().filter(is_recent).collect();
    let of = |level: &str| {
        let is_level = |message: &&&Value| message.get("level").and_then(Value::as_str) == Some(level);
        recent.iter().filter(is_level).count() as f64
    };
    let (errors, warnings) = (of("error"), of("warning"));
    Check::fine("Messages", format::grouped(recent.len() as f64))
        .or_problem(errors > 0.0, Level::Trouble, || {
            counted(errors, "error was reported", "errors were reported")
        })
        .or_problem(warnings > 0.0, Level::Notice, || {
            counted(warnings, "warning was reported", "warnings were reported")
        })
}
