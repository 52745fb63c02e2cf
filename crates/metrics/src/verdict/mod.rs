//! The state of a server in words: what is wrong now, what was within the last five minutes, and what to do.

use std::cmp::Reverse;

use shearwater::engine::visible::OneLine;
use shearwater::{MessageLevel, NOT_RELOADED, Totals};

use crate::certificates::CertificateState;
use crate::document::{Check, Finding, Level, Verdict};
use crate::format::{self, NO_VALUE, counted, grouped};
use crate::history::Second;
use crate::limits::{FINDING_BYTES_MAX, FINDINGS_MAX};
use crate::metrics::{Readiness, cut};
use crate::snapshot::Snapshot;

/// Seconds for which something that was counted is the state of now.
const CHECK_SECONDS: f64 = 60.0;

/// Seconds for which trouble that has ended is listed.
const ENDED_SECONDS: u64 = 300;

/// Part of the responses from which on `5xx` are trouble.
const ERRORS_PART_MAX: f64 = 0.01;

/// Part of the descriptors in use from which on a server is in trouble.
const DESCRIPTORS_PART_MAX: f64 = 0.8;

/// Minimum number of times that clients reach a limit for a notice. They also have to do so once a second.
const NOTICED_MIN: u64 = 10;

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

/// Names of the checks, in their order.
const CHECKS: [&str; 9] =
    ["5xx", "4xx", "Faults", "Limits", "Log drops", "Descriptors", "TLS", "Messages", "Reload"];

/// A kind of fault: its name, its count, its severity, and the words for one and for several.
type Fault = (&'static str, fn(&Totals) -> u64, Level, [&'static str; 2]);

/// The kinds of faults.
pub(crate) const FAULTS: [Fault; 4] = [
    ("handler_panics", |all| all.handler_panics, Level::Trouble, ["handler panicked", "handlers panicked"]),
    ("handler_errors", |all| all.handler_errors, Level::Trouble, ["invalid response", "invalid responses"]),
    ("files_failed", |all| all.files_failed, Level::Trouble, ["file was cut short", "files were cut short"]),
    (
        "connections_cut_off",
        |all| all.connections_cut_off,
        Level::Notice,
        ["connection cut off", "connections cut off"],
    ),
];

/// Judges a server by its last five minutes, the newest second last, and by its state now.
pub(crate) fn judge(seconds: &[&Second], now: &Snapshot, requests_per_second: Option<f64>) -> Verdict {
    let mut judge = Judge { seconds, now, findings: Vec::new() };
    let mut state = judge.state();
    match requests_per_second {
        None => {}
        Some(0.0) => state.push_str(", no requests"),
        rate => state.push_str(&format!(", {} requests/s", format::rate(rate))),
    }
    let values = [
        judge.errors(),
        judge.part_of_requests(|second| second.client_errors),
        judge.faults(),
        judge.limits(),
        judge.log(),
        judge.descriptors(),
        judge.certificates(),
        judge.messages(),
        judge.reload(),
    ];
    let mut findings = judge.findings;
    findings.sort_by_key(|finding| (finding.ended_unix_seconds.is_some(), Reverse(finding.level)));
    let check = |(name, value): (&str, Option<String>)| {
        let of_check = findings.iter().filter(|finding| finding.check == name);
        let of_check = of_check.filter(|finding| finding.ended_unix_seconds.is_none());
        let level = of_check.map(|finding| finding.level).fold(Level::Ok, Level::max);
        let level = if value.is_some() { level } else { Level::Off };
        Check { name: name.to_owned(), level, value: value.unwrap_or_else(|| NO_VALUE.to_owned()) }
    };
    let checks = CHECKS.into_iter().zip(values).map(check).collect();
    let level = findings.iter().map(|finding| finding.level).fold(Level::Ok, Level::max);
    let headline = match findings.first() {
        Some(worst) => worst.text.clone(),
        None => format!("{state}, nothing unusual."),
    };
    let findings_left_out = findings.len().saturating_sub(FINDINGS_MAX);
    findings.truncate(FINDINGS_MAX);
    Verdict { level, headline, state: format!("{state}."), findings, findings_left_out, checks }
}

/// A verdict in the making. Each check adds its findings, and returns its value; `None` if it is off or unknown.
struct Judge<'a> {
    seconds: &'a [&'a Second],
    now: &'a Snapshot,
    findings: Vec<Finding>,
}

impl Judge<'_> {
    /// Returns the state, which is a finding unless the server serves.
    fn state(&mut self) -> String {
        let open = self.now.server.as_ref().map_or(0, |server| server.totals.connections_open());
        let open = counted(open, "connection", "connections");
        match self.now.readiness {
            Readiness::Serving => "Serving".to_owned(),
            Readiness::Starting => {
                self.add("State", Level::Notice, "Starting: no requests are taken yet.".to_owned(), "");
                "Starting".to_owned()
            }
            Readiness::Draining => {
                let text = format!("Draining: the server ends, {open} still open.");
                self.add("State", Level::Notice, text, "");
                format!("Draining, {open} open")
            }
        }
    }

    /// Adds a finding that lasts. An empty help is none.
    fn add(&mut self, check: &str, level: Level, text: String, help: &str) -> &mut Finding {
        let help = Some(help.to_owned()).filter(|help| !help.is_empty());
        self.findings.push(Finding { level, check: check.to_owned(), text, help, ..Finding::default() });
        self.findings.last_mut().expect("one was added")
    }

    /// Adds trouble that has ended so many seconds ago.
    fn add_ended(&mut self, check: &str, ago: u64, text: &str) {
        let text = format!("Ended {} ago: {text}.", format::age(ago as f64));
        let ended = Some(self.now.now.saturating_sub(ago));
        self.add(check, Level::Notice, text, "").ended_unix_seconds = ended;
    }

    /// Returns the seconds since the last, and since the first of those without a minute's pause, that counts.
    fn ages(&self, counts: impl Fn(&Second) -> bool) -> Option<(u64, u64)> {
        let age = |second: &Second| (self.now.uptime_seconds - second.end).max(0.0);
        let mut counting = self.seconds.iter().rev().filter(|second| counts(second));
        let last = counting.next()?;
        let begin = counting.try_fold(age(last) + last.length, |begin, second| {
            let is_near = age(second) - begin <= CHECK_SECONDS;
            if is_near { Ok(age(second) + second.length) } else { Err(begin) }
        });
        let begin = begin.unwrap_or_else(|begin| begin);
        Some((age(last).round() as u64, begin.round() as u64))
    }

    /// Returns the seconds of the last minute.
    fn recent(&self) -> &[&Second] {
        let is_earlier = |second: &&Second| self.now.uptime_seconds - second.end >= CHECK_SECONDS;
        &self.seconds[self.seconds.partition_point(is_earlier)..]
    }

    /// Adds a finding if the last minute's count has a description, or trouble before it.
    fn count(
        &mut self,
        check: &str,
        count: impl Fn(&Second) -> u64,
        describe: impl Fn(u64, &[&Second]) -> Option<(Level, String)>,
        help: &str,
    ) {
        let recent = self.recent();
        let of = |seconds: &[&Second]| {
            let sum = seconds.iter().map(|second| count(second)).sum();
            if sum > 0 { describe(sum, seconds) } else { None }
        };
        let span = match recent.iter().map(|second| second.length).sum::<f64>().round() {
            59.0.. => "minute".to_owned(),
            seconds @ 2.0.. => format!("{seconds} seconds"),
            _ => "second".to_owned(),
        };
        let found = of(recent);
        let is_trouble = |(level, _): &(Level, String)| *level == Level::Trouble;
        let past = if found.as_ref().is_some_and(is_trouble) { None } else { self.past(&count, of) };
        if let (Some((level, text)), Some((_, begin))) = (found, self.ages(|second| count(second) > 0)) {
            let since = Some(self.now.now.saturating_sub(begin));
            let text = format!("{text} in the last {span}.");
            self.add(check, level, text, help).since_unix_seconds = since;
        }
        if let Some((ago, text)) = past {
            self.add_ended(check, ago, &text);
        }
    }

    /// Returns the last past minute that was trouble: the seconds since its end, and its text.
    fn past(
        &self,
        count: impl Fn(&Second) -> u64,
        describe: impl Fn(&[&Second]) -> Option<(Level, String)>,
    ) -> Option<(u64, String)> {
        let seconds = self.seconds;
        let mut ends = (0..seconds.len()).rev().filter(|index| count(seconds[*index]) > 0);
        ends.find_map(|index| {
            let end = seconds[index].end;
            let start = seconds.partition_point(|second| end - second.end >= CHECK_SECONDS);
            let (level, text) = describe(&seconds[start..=index])?;
            let ago = (self.now.uptime_seconds - end).max(0.0).round() as u64;
            (level == Level::Trouble).then_some((ago, text))
        })
    }

    /// Returns a count of the last minute as a part of its requests.
    fn part_of_requests(&self, count: impl Fn(&Second) -> u64) -> Option<String> {
        let recent = self.recent();
        let sum = recent.iter().map(|second| count(second)).sum::<u64>();
        let all = recent.iter().map(|second| second.requests).sum::<u64>();
        Some(if sum == 0 { "0".to_owned() } else { format::part(sum as f64 / all.max(sum) as f64) })
    }

    fn errors(&mut self) -> Option<String> {
        let errors = |second: &Second| second.server_errors;
        let describe = |errors: u64, seconds: &[&Second]| {
            let all = seconds.iter().map(|second| second.requests).sum::<u64>().max(errors);
            let part = errors as f64 / all as f64;
            let level = if part >= ERRORS_PART_MAX { Level::Trouble } else { Level::Notice };
            let (count, all) = (grouped(errors), grouped(all));
            Some((level, format!("{} of the responses ({count} of {all}) were 5xx", format::part(part))))
        };
        self.count("5xx", errors, describe, "the messages and the access log have the reasons");
        self.part_of_requests(errors)
    }

    fn faults(&mut self) -> Option<String> {
        for (index, (_, _, level, [one, many])) in FAULTS.into_iter().enumerate() {
            let describe = |count, _: &[&Second]| Some((level, counted(count, one, many)));
            self.count("Faults", |second| second.faults[index], describe, "");
        }
        let recent = self.recent();
        Some(grouped(recent.iter().flat_map(|second| second.faults).sum()))
    }

    fn limits(&mut self) -> Option<String> {
        let hits = self.seconds.iter().flat_map(|second| &second.limits_hit);
        let mut names: Vec<&str> = hits.map(|(name, _)| *name).collect();
        names.retain(|name| !ROUTINE_LIMITS.contains(name));
        names.sort_unstable();
        names.dedup();
        let of = |second: &Second, name: &str| {
            second.limits_hit.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count)
        };
        for name in &names {
            let describe = |count: u64, seconds: &[&Second]| {
                let over = seconds.iter().map(|second| second.length).sum::<f64>();
                let level = match CAPACITY_LIMITS.contains(name) {
                    true => Level::Trouble,
                    false if count >= NOTICED_MIN && count as f64 >= over => Level::Notice,
                    false => return None,
                };
                Some((level, format!("The limit {name} was reached {}", counted(count, "time", "times"))))
            };
            self.count("Limits", |second| of(second, name), describe, "docs/limits.md says how to change it");
        }
        let recent = self.recent();
        let count = |second: &&Second| names.iter().map(|name| of(second, name)).sum::<u64>();
        Some(grouped(recent.iter().map(count).sum()))
    }

    fn log(&mut self) -> Option<String> {
        let log = self.now.log.as_ref()?;
        let failing = self.ages(|second| second.is_log_failing);
        if log.is_failing {
            let text = match failing {
                Some((_, begin)) => {
                    format!(
                        "The access log can't be written to for {}: lines wait.",
                        format::age(begin as f64)
                    )
                }
                None => "The access log can't be written to: lines wait.".to_owned(),
            };
            self.add(
                "Log drops",
                Level::Trouble,
                text,
                "look at its destination, or at the reader of its pipe",
            );
        } else if let Some((last, _)) = failing {
            self.add_ended("Log drops", last, "the access log couldn't be written to");
        }
        let describe = |count, _: &[&Second]| {
            Some((
                Level::Trouble,
                counted(count, "line of the access log was dropped", "lines of the access log were dropped"),
            ))
        };
        let help = "choose a quicker destination, or fewer lines (`exclude_paths`, `exclude_statuses`)";
        self.count("Log drops", |second| second.log_dropped, describe, help);
        let recent = self.recent();
        let dropped = grouped(recent.iter().map(|second| second.log_dropped).sum());
        Some(if log.is_failing { "failing".to_owned() } else { dropped })
    }

    fn descriptors(&mut self) -> Option<String> {
        let process = &self.now.process;
        let (open, most) = (process.open_descriptors?, process.descriptors_max.filter(|most| *most > 0)?);
        let part = open as f64 / most as f64;
        if part > DESCRIPTORS_PART_MAX {
            let text = format!(
                "{} of the descriptors ({} of {}) are in use.",
                format::part(part),
                grouped(open),
                grouped(most)
            );
            self.add("Descriptors", Level::Trouble, text, "raise `LimitNOFILE=` of the unit, or `ulimit -n`");
        }
        Some(format::part(part))
    }

    fn certificates(&mut self) -> Option<String> {
        self.now.server.as_ref().filter(|server| server.has_tls)?;
        let left = |end: u64| end as f64 - self.now.now as f64;
        for certificate in &self.now.certificates {
            let name = &certificate.name;
            let is_failing = certificate.is_failing;
            let ends_in = certificate.validity.map_or(0.0, |(_, end)| left(end));
            let (level, text) = match certificate.state(self.now.now) {
                CertificateState::Expired => {
                    (Level::Trouble, format!("The certificate of {name} has expired."))
                }
                CertificateState::NotYetValid => {
                    (Level::Trouble, format!("The certificate of {name} isn't valid yet."))
                }
                CertificateState::Missing if is_failing => {
                    (Level::Trouble, format!("{name} has no certificate, and its last order failed."))
                }
                CertificateState::Missing => (Level::Notice, format!("{name} has no certificate yet.")),
                CertificateState::EndsSoon => {
                    (Level::Notice, format!("The certificate of {name} ends in {}.", format::left(ends_in)))
                }
                _ if is_failing => {
                    (Level::Notice, format!("The last order of a certificate for {name} failed."))
                }
                _ => continue,
            };
            let help =
                if certificate.source == "auto" { "`shearwater certificates` has the reason" } else { "" };
            self.add("TLS", level, text, help);
        }
        let ends = self.now.certificates.iter().filter_map(|certificate| certificate.validity);
        Some(match ends.map(|(_, end)| left(end)).reduce(f64::min) {
            None => NO_VALUE.to_owned(),
            Some(least) if least > 0.0 => format::left(least),
            Some(_) => "expired".to_owned(),
        })
    }

    fn messages(&mut self) -> Option<String> {
        let messages = self.now.server.as_ref().map_or(&[][..], |server| &server.messages[..]);
        let now = self.now.now;
        let minute = CHECK_SECONDS as u64;
        let age = |unix_seconds: u64| now.saturating_sub(unix_seconds);
        for (level, kept, one, many) in [
            (Level::Trouble, MessageLevel::Error, "error was reported", "errors were reported"),
            (Level::Notice, MessageLevel::Warning, "warning was reported", "warnings were reported"),
        ] {
            // The check of reloads has those of a reload.
            let of_level = messages.iter().filter(|message| message.level == kept);
            let mut of_level = of_level.filter(|message| !message.text.starts_with(NOT_RELOADED));
            let recent = of_level.clone().filter(|message| age(message.unix_seconds) < minute).count();
            let Some(last) = of_level.next_back().filter(|last| age(last.unix_seconds) < ENDED_SECONDS)
            else {
                continue;
            };
            let (ago, text) =
                (age(last.unix_seconds), cut(&OneLine(&last.text).to_string(), FINDING_BYTES_MAX));
            match recent as u64 {
                0 if level == Level::Trouble => {
                    self.add_ended("Messages", ago, &format!("an error was reported: {text}"));
                }
                0 => {}
                count => {
                    let text = format!("{} in the last minute: {text}", counted(count, one, many));
                    self.add("Messages", level, text, "");
                }
            }
        }
        Some(grouped(messages.iter().filter(|message| age(message.unix_seconds) < minute).count() as u64))
    }

    fn reload(&mut self) -> Option<String> {
        let outcome = self.now.configuration.last_outcome.as_ref()?;
        let ago = format::age(self.now.now.saturating_sub(outcome.unix_seconds) as f64);
        let Some(errors) = &outcome.errors else { return Some(format!("done {ago} ago")) };
        let mut lines = errors.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default().trim_start_matches("error: ");
        let place = lines
            .next()
            .and_then(|line| line.strip_prefix("--> "))
            .map_or(String::new(), |at| format!("{at}: "));
        let first = cut(&OneLine(&format!("{place}{first}")).to_string(), FINDING_BYTES_MAX);
        let text = format!(
            "The last reload was refused {ago} ago, and the configuration before it is served: {first}."
        );
        let help = "correct it, then `shearwater reload`; `shearwater reload --check` only tries";
        let since = Some(outcome.unix_seconds);
        self.add("Reload", Level::Notice, text, help).since_unix_seconds = since;
        Some("refused".to_owned())
    }
}

#[cfg(test)]
mod tests;
