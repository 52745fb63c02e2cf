//! The screen of `shearwater top`: lines of text made of a session.

use std::time::Duration;

use serde_json::Value;

use crate::top::document::{
    Document, Quantile, RATE_SECONDS, growth, increase, per_second, rate, reference, seconds,
};
use crate::top::format::{self, NO_VALUE, counted};
use crate::top::session::Session;
use crate::top::style::{Line, Paint, Style};
use crate::top::verdict::{self, Check, Level, Verdict};

/// Columns of a row's label.
const LABEL: usize = 13;

/// Columns of a site's name.
const SITE: usize = 26;

/// Seconds of the chart, a column each.
const CHART_MAX: usize = 60;

/// Columns beside the chart.
const CHART_TEXT: usize = 36;

/// Messages of a snapshot without a height.
const MESSAGES_MAX: usize = 20;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// Content of a screen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen<'a> {
    pub(crate) session: &'a Session,
    /// For how long the server hasn't responded, and the last error.
    pub(crate) lost: Option<(Duration, &'a str)>,
    pub(crate) width: usize,
    pub(crate) style: Style,
}

impl Screen<'_> {
    /// Returns the lines for a terminal of this height, without their ends; all lines without a height.
    pub(crate) fn lines(&self, height: Option<usize>) -> Vec<String> {
        let now = self.session.now();
        let before = reference(self.session.history(), RATE_SECONDS);
        let mut lines = self.head(now);
        lines.extend(self.traffic(before, now));
        lines.extend(self.resources(before, now));
        lines.push(String::new());
        let footer = 1;
        let left = height.map(|height| height.saturating_sub(lines.len() + footer));
        let messages = self.messages(now);
        // Sites get the rows that messages don't need, at least half.
        let sites_max = left.map_or(usize::MAX, |left| left.saturating_sub(messages.len().min(left / 2)));
        let sites = self.sites(before, now, sites_max.saturating_sub(1));
        lines.extend(sites);
        let left = height.map_or(usize::MAX, |height| height.saturating_sub(lines.len() + footer));
        lines.extend(messages.into_iter().take(left));
        if let Some(height) = height {
            lines.resize(height.saturating_sub(footer), String::new());
            lines.push(self.line().add(Paint::Soft, "q quits").end());
            lines.truncate(height);
        }
        lines
    }

    fn line(&self) -> Line {
        Line::new(self.width, self.style)
    }

    fn labelled(&self, label: &str) -> Line {
        let mut line = self.line();
        line.column(Paint::Soft, label, LABEL);
        line
    }

    /// Returns the title, the state and the problems, a line each.
    fn head(&self, now: &Document) -> Vec<String> {
        let server = |name| now.text(&["server", name]).unwrap_or(NO_VALUE);
        let number = |name| now.number(&["server", name]);
        let up = format!("up {}", format::age(number("uptime_seconds").unwrap_or(0.0)));
        let workers = number("workers").map_or(String::new(), |count| counted(count, "worker", "workers"));
        let listen = now.at(&["server", "listen"]).and_then(Value::as_array);
        let listen: Vec<&str> = listen.into_iter().flatten().filter_map(Value::as_str).collect();
        let about = format!("  {}, {workers}  {}", server("driver"), listen.join(", "));
        let mut title = self.line();
        title.add(Paint::Bold, &format!("Shearwater {}", server("version")));
        let room = title.room().saturating_sub(up.chars().count() + 2);
        title.add(Paint::Soft, &about.chars().take(room).collect::<String>());
        title.right(Paint::Soft, &up, title.room());

        let verdict = Verdict::of(self.session.history());
        let (paint, first, second) = match self.lost {
            Some((time, error)) => {
                let first = format!("No response for {}: {error}", format::age(time.as_secs_f64()));
                (Paint::Bad, first, "The figures below are from before.".to_owned())
            }
            None if verdict.second.is_empty() => {
                (paint(verdict.level), verdict.first, checks(&verdict.checks))
            }
            None => (paint(verdict.level), verdict.first, verdict.second),
        };
        let state = self.line().add(paint, "● ").add(Paint::Bold, &first).end();
        let paint = if paint == Paint::Good { Paint::Soft } else { paint };
        let problems = self.line().add(Paint::Plain, "  ").add(paint, &second).end();
        vec![title.end(), state, problems, String::new()]
    }

    /// Returns the rows about requests, connections and bytes.
    fn traffic(&self, before: &Document, now: &Document) -> Vec<String> {
        let per = |path: &[&str]| format::rate(rate(before, now, path));
        let total = |path: &[&str]| format::count(now.number(path));
        let mut requests = self.labelled("Requests");
        requests.column(Paint::Bold, &format!("{}/s", per(&["requests", "total"])), 14);
        for class in CLASSES {
            let path = ["requests", "by_class", class];
            let is_rising = increase(before, now, &path).is_some_and(|count| count > 0.0);
            let paint = match class {
                "5xx" if is_rising => Paint::Bad,
                "4xx" if is_rising => Paint::Warn,
                _ => Paint::Plain,
            };
            requests.add(Paint::Soft, &format!("{class} ")).column(paint, &per(&path), 10);
        }
        let of = |name, part| Quantile::format(Quantile::of(before, now, name, part));
        let quantiles = |label, histogram| {
            let mut line = self.labelled(label);
            for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
                line.add(Paint::Soft, &format!("{name} ")).column(Paint::Plain, &of(histogram, part), 10);
            }
            line.end()
        };
        let duration = quantiles("Duration", "duration_seconds");
        let first_byte = quantiles("First byte", "first_byte_seconds");
        let mut connections = self.labelled("Connections");
        connections.column(Paint::Bold, &format!("{} open", total(&["connections", "open"])), 14);
        connections.add(Paint::Plain, &format!("{}/s accepted", per(&["connections", "accepted"])));
        for kind in ["refused", "reset", "broken"] {
            let path = ["connections", kind];
            let is_rising = increase(before, now, &path).is_some_and(|count| count > 0.0);
            let paint = if is_rising && kind == "refused" { Paint::Warn } else { Paint::Plain };
            connections
                .add(Paint::Plain, "   ")
                .add(paint, &total(&path))
                .add(Paint::Soft, &format!(" {kind}"));
        }
        let mut bytes = self.labelled("Bytes");
        let per = |path: &[&str]| format!("{}/s", format::bytes(rate(before, now, path)));
        let total = |path: &[&str]| format::bytes(now.number(path));
        bytes.add(Paint::Bold, &per(&["bytes", "sent"])).add(Paint::Soft, " sent   ");
        bytes.add(Paint::Plain, &per(&["bytes", "received"])).add(Paint::Soft, " received   in all ");
        bytes.add(Paint::Plain, &total(&["bytes", "sent"])).add(Paint::Soft, ", ");
        bytes.add(Paint::Plain, &total(&["bytes", "received"]));
        let mut lines =
            vec![requests.end(), self.chart(now), duration, first_byte, connections.end(), bytes.end()];
        lines.extend(self.tls(before, now));
        lines
    }

    /// Returns a row about TLS, if the server has it.
    fn tls(&self, before: &Document, now: &Document) -> Option<String> {
        now.at(&["tls"])?;
        let all = |document: &Document| {
            let versions = document.at(&["tls", "handshakes"])?.as_object()?.values();
            Some(versions.filter_map(Value::as_f64).sum())
        };
        let handshakes = growth(all(before), all(now));
        let resumed = match (handshakes, increase(before, now, &["tls", "resumed"])) {
            (Some(all), Some(resumed)) if all > 0.0 => format::part(resumed / all),
            _ => NO_VALUE.to_owned(),
        };
        let failures = now.at(&["tls", "failures"]).and_then(Value::as_object);
        let failures = failures.map(|failures| failures.values().filter_map(Value::as_f64).sum());
        let checked = verdict::tls(now);
        let mut line = self.labelled("TLS");
        line.column(Paint::Bold, &format!("{} open", format::count(now.number(&["tls", "connections"]))), 14);
        let per = format::rate(per_second(handshakes, seconds(before, now)));
        line.add(Paint::Plain, &format!("{per}/s handshakes   {resumed} "))
            .add(Paint::Soft, "resumed   ")
            .add(Paint::Plain, &format::count(failures))
            .add(Paint::Soft, " failed   ");
        let paint = if checked.level > Level::Fine { paint(checked.level) } else { Paint::Plain };
        line.add(paint, &checked.value);
        if checked.value != NO_VALUE && checked.value != verdict::EXPIRED {
            line.add(Paint::Soft, " left");
        }
        Some(line.end())
    }

    /// Returns the rates of the last minute, a column each.
    fn chart(&self, now: &Document) -> String {
        let mut line = self.labelled("");
        let shown = CHART_MAX.min(line.room().saturating_sub(CHART_TEXT));
        let rates: Vec<Option<f64>> = self.session.rates().rev().take(shown).collect();
        let most = rates.iter().flatten().copied().fold(0.0, f64::max);
        let bar = |rate: &Option<f64>| match rate {
            None => ' ',
            Some(_) if most == 0.0 => BARS[0],
            // From 0 to 7: a rate is at most the highest one.
            Some(rate) => BARS[(rate / most * 7.0).round() as usize],
        };
        let bars: String = rates.iter().rev().map(bar).collect();
        line.column(Paint::Accent, &bars, shown).add(Paint::Plain, "  ");
        if !rates.is_empty() {
            line.add(Paint::Soft, &format!("highest {}/s, ", format::rate(Some(most))));
        }
        let total = format::count(now.number(&["requests", "total"]));
        line.add(Paint::Soft, &format!("{total} in all"));
        line.end()
    }

    /// Returns the rows about the process, caches, logs, limits and faults.
    fn resources(&self, before: &Document, now: &Document) -> Vec<String> {
        let number = |name| now.number(&["process", name]);
        let mut process = self.labelled("Process");
        process.column(Paint::Plain, &format::bytes(number("resident_bytes")), 14);
        let cpu = rate(before, now, &["process", "cpu_seconds"]).map_or(NO_VALUE.to_owned(), format::part);
        process.add(Paint::Soft, "CPU ").column(Paint::Plain, &cpu, 10).add(Paint::Soft, "descriptors ");
        let descriptors = match (number("open_descriptors"), number("descriptors_max")) {
            (Some(open), Some(most)) if most > 0.0 => {
                format!(
                    "{} of {} ({})",
                    format::grouped(open),
                    format::grouped(most),
                    format::part(open / most)
                )
            }
            (open, _) => format::count(open),
        };
        process.add(Paint::Plain, &descriptors);
        let mut cache = self.labelled("Cache");
        match now.at(&["cache"]) {
            None => cache.add(Paint::Soft, "off"),
            Some(_) => {
                let count = |name| increase(before, now, &["cache", name]);
                let hits = match (count("hits"), count("misses")) {
                    (Some(hits), Some(misses)) if hits + misses > 0.0 => format::part(hits / (hits + misses)),
                    _ => NO_VALUE.to_owned(),
                };
                let files = now.number(&["cache", "files"]);
                let files = files.map_or(NO_VALUE.to_owned(), |count| counted(count, "file", "files"));
                cache.column(Paint::Plain, &files, 14);
                cache.column(Paint::Plain, &format::bytes(now.number(&["cache", "bytes"])), 14);
                cache.add(Paint::Plain, &hits).add(Paint::Soft, " hits")
            }
        };
        let mut log = self.labelled("Log");
        match now.text(&["log", "destination"]) {
            None => log.add(Paint::Soft, "off"),
            Some(destination) => {
                let dropped = increase(before, now, &["log", "dropped"]).is_some_and(|count| count > 0.0);
                let paint = if dropped { Paint::Bad } else { Paint::Plain };
                let lines = format!("{} lines/s", format::rate(rate(before, now, &["log", "written"])));
                log.column(Paint::Plain, &lines, 17);
                log.add(paint, &format!("{} dropped", format::count(now.number(&["log", "dropped"]))));
                if now.is_true(&["log", "failing"]) {
                    log.add(Paint::Bad, "   failing");
                }
                log.add(Paint::Soft, &format!("   {destination}"))
            }
        };
        let limits = now.limits().filter(|(_, count)| *count > 0.0);
        let faults = now.at(&["faults"]).and_then(Value::as_object).into_iter().flatten();
        let faults = faults.filter_map(|(name, count)| Some((name.as_str(), count.as_f64()?)));
        let faults = faults.filter(|(_, count)| *count > 0.0);
        let limits = self.counts("Limits", limits, before, now);
        vec![process.end(), cache.end(), log.end(), limits, self.counts("Faults", faults, before, now)]
    }

    /// Returns a row of names with their counts since the start; those that rise are marked.
    fn counts<'a>(
        &self,
        label: &str,
        counts: impl Iterator<Item = (&'a str, f64)>,
        before: &Document,
        now: &Document,
    ) -> String {
        let mut line = self.labelled(label);
        let mut is_empty = true;
        for (name, count) in counts {
            let old = before.limits().find(|(known, _)| *known == name).map(|(_, count)| count);
            let old = old.or_else(|| before.number(&["faults", name]));
            let is_rising = seconds(before, now) > 0.0 && growth(old, Some(count)).is_some_and(|by| by > 0.0);
            let paint = if is_rising { Paint::Warn } else { Paint::Plain };
            let mark = if is_rising { "+" } else { "" };
            line.add(Paint::Soft, &format!("{name} "))
                .add(paint, &format!("{}{mark}", format::grouped(count)));
            line.add(Paint::Plain, "   ");
            is_empty = false;
        }
        if is_empty {
            line.add(Paint::Soft, "none since the start");
        }
        line.end()
    }

    /// Returns the table of sites with at most so many rows; nothing without a site.
    fn sites(&self, before: &Document, now: &Document, rows: usize) -> Vec<String> {
        let sites = now.list("sites");
        if sites.is_empty() || rows == 0 {
            return Vec::new();
        }
        let mut title = self.line();
        title.column(Paint::Soft, "Site", SITE).right(Paint::Soft, "requests/s", 11);
        for name in ["requests", "4xx", "5xx"] {
            title.right(Paint::Soft, name, if name == "requests" { 15 } else { 8 });
        }
        title.right(Paint::Soft, "sent/s", 12);
        let mut lines = vec![title.end()];
        let hidden = sites.len().saturating_sub(rows);
        // The last row says how many are hidden.
        let shown = if hidden > 0 { rows - 1 } else { rows };
        for site in sites.iter().take(shown) {
            let name = site.get("name").and_then(Value::as_str).unwrap_or(NO_VALUE);
            let old = before.list("sites").iter().find(|old| old.get("name") == site.get("name"));
            let number = |site: &Value, name: &str| site.get(name).and_then(Value::as_f64);
            let per = |name| {
                let old = old.and_then(|old| number(old, name));
                per_second(growth(old, number(site, name)), seconds(before, now))
            };
            let class = |class| site.get("by_class").and_then(|classes| number(classes, class));
            let mut line = self.line();
            line.column(Paint::Plain, &name.chars().take(SITE - 1).collect::<String>(), SITE);
            line.right(Paint::Bold, &format::rate(per("requests")), 11);
            line.right(Paint::Plain, &format::count(number(site, "requests")), 15);
            line.right(Paint::Plain, &format::count(class("4xx")), 8);
            line.right(Paint::Plain, &format::count(class("5xx")), 8);
            line.right(Paint::Plain, &format::bytes(per("bytes_sent")), 12);
            lines.push(line.end());
        }
        if hidden > 0 {
            let text = format!("and {} more", sites.len() - shown);
            lines.push(self.line().add(Paint::Soft, &text).end());
        }
        lines.push(String::new());
        lines
    }

    /// Returns the messages to the operator, the newest one first.
    fn messages(&self, now: &Document) -> Vec<String> {
        let number = |name| now.number(&["server", name]).unwrap_or(0.0);
        let time = number("started_unix_seconds") + number("uptime_seconds");
        let line = |message: &Value| {
            let text = |name| message.get(name).and_then(Value::as_str).unwrap_or_default();
            let age = message.get("unix_seconds").and_then(Value::as_f64).map(|at| format::age(time - at));
            let paint = match text("level") {
                "error" => Paint::Bad,
                "warning" => Paint::Warn,
                _ => Paint::Plain,
            };
            let mut line = self.line();
            line.column(Paint::Soft, &format!("{} ago", age.as_deref().unwrap_or(NO_VALUE)), 16);
            line.column(paint, text("level"), 9).add(Paint::Plain, text("text")).end()
        };
        now.list("messages").iter().rev().take(MESSAGES_MAX).map(line).collect()
    }
}

/// Lists what was checked.
fn checks(checks: &[Check]) -> String {
    checks.iter().map(|check| format!("{} {}", check.name, check.value)).collect::<Vec<_>>().join("  ")
}

fn paint(level: Level) -> Paint {
    match level {
        Level::Off | Level::Fine => Paint::Good,
        Level::Notice => Paint::Warn,
        Level::Trouble => Paint::Bad,
    }
}
