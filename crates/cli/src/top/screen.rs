//! The screen of `shearwater top`: lines of text made of a status.

use std::time::Duration;

use shearwater_metrics::document::{Counts, Level, Percentiles, Site, Status};
use shearwater_metrics::format::{self, NO_VALUE, counted};

use crate::top::style::{Line, Paint, Style, wrap};

/// Columns of a row's label, and of the first and further cells of a row.
const LABEL: usize = 13;
const FIRST: usize = 16;
const CELL: usize = 14;

/// Seconds of the chart, a column each.
const CHART_MAX: usize = 60;

/// Columns beside the chart.
const CHART_TEXT: usize = 36;

/// Messages of a snapshot without a height.
const MESSAGES_MAX: usize = 20;

/// Lines of a text that is wrapped.
const LINES_MAX: usize = 3;

/// Lines of the errors of a reload.
const RELOAD_LINES_MAX: usize = 6;

/// Columns of a site's name, between which it takes what the table leaves.
const SITE: std::ops::RangeInclusive<usize> = 12..=26;

/// A column of the table of sites: its title, its width, and its text for a site.
type SiteColumn = (&'static str, usize, fn(&Site) -> String);

/// Columns of the table of sites. The last ones are left out where there is no room.
const SITE_COLUMNS: [SiteColumn; 5] = [
    ("requests/s", 11, |site| format::rate(site.requests_per_second)),
    ("5xx", 9, |site| class(site, "5xx")),
    ("4xx", 9, |site| class(site, "4xx")),
    ("sent/s", 11, |site| format::bytes(site.sent_per_second)),
    ("requests", 14, |site| format::grouped(site.requests)),
];

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Content of a screen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen<'a> {
    pub(crate) status: &'a Status,
    /// For how long the server hasn't responded, and the last error.
    pub(crate) lost: Option<(Duration, &'a str)>,
    pub(crate) width: usize,
    pub(crate) style: Style,
}

impl Screen<'_> {
    /// Returns the lines for a terminal of this height, without their ends; all lines without a height.
    pub(crate) fn lines(&self, height: Option<usize>) -> Vec<String> {
        let mut lines = vec![self.title()];
        lines.extend(self.verdict());
        lines.push(String::new());
        lines.extend(self.traffic());
        lines.extend(self.resources());
        lines.extend(self.reload());
        lines.push(String::new());
        let footer = 1;
        let left = height.map(|height| height.saturating_sub(lines.len() + footer));
        let messages = self.messages();
        // Sites get the rows that messages don't need, at least half.
        let sites_max = left.map_or(usize::MAX, |left| left.saturating_sub(messages.len().min(left / 2)));
        lines.extend(self.sites(sites_max.saturating_sub(1)));
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

    fn title(&self) -> String {
        let server = &self.status.server;
        let up = format!("up {}", format::age(server.uptime_seconds));
        let workers = server.workers.map(|count| counted(count as u64, "worker", "workers"));
        let about: Vec<String> = server.driver.iter().cloned().chain(workers).collect();
        let mut line = self.line();
        line.add(Paint::Bold, &format!("Shearwater {}", server.version));
        let mut room = line.room().saturating_sub(up.chars().count() + 2);
        for text in [about.join(", "), server.listen.join(", ")] {
            let columns = text.chars().count() + 2;
            if columns > 2 && columns <= room {
                line.add(Paint::Soft, &format!("  {text}"));
                room -= columns;
            }
        }
        line.right(Paint::Soft, &up, line.room()).end()
    }

    /// Returns the headline, and below it the state with the next finding, or what was checked.
    fn verdict(&self) -> Vec<String> {
        let verdict = &self.status.verdict;
        let is_known = !verdict.headline.is_empty();
        let also = verdict.findings.get(1).map(|next| format!("Also: {}", next.text));
        let more = verdict.findings_left_out.saturating_add(verdict.findings.len()).saturating_sub(2);
        let more = (more > 0).then(|| format!("And {more} more."));
        let help = verdict.findings.first().and_then(|worst| worst.help.as_deref());
        let (paint, headline, below) = match self.lost {
            Some((time, error)) => {
                let headline = format!("No response for {}: {error}", format::age(time.as_secs_f64()));
                (Paint::Bad, headline, "The figures below are from before.".to_owned())
            }
            None if !is_known => {
                let version = &self.status.server.version;
                let below =
                    format!("Shearwater {version} reports no verdict and no rates: upgrade the server.");
                (Paint::Warn, "The server is older than this program.".to_owned(), below)
            }
            None if verdict.findings.is_empty() => {
                let mut line = self.line();
                line.add(Paint::Plain, "  ");
                for check in &verdict.checks {
                    line.cell(&[(Paint::Soft, &format!("{} {}", check.name, check.value))], 0);
                }
                let first = self.wrapped("● ", Paint::Good, Paint::Bold, &verdict.headline);
                return first.into_iter().chain([line.end()]).collect();
            }
            None => {
                let below = [Some(verdict.state.clone()), also, more].into_iter().flatten();
                (paint(verdict.level), verdict.headline.clone(), below.collect::<Vec<_>>().join(" "))
            }
        };
        let mut lines = self.wrapped("● ", paint, Paint::Bold, &headline);
        if let Some(help) = help.filter(|_| self.lost.is_none()) {
            lines.extend(self.wrapped("  help: ", Paint::Soft, Paint::Plain, help));
        }
        lines.extend(self.wrapped("  ", Paint::Plain, paint, &below));
        lines
    }

    /// Returns a text in as many lines as it needs, up to a limit, after a prefix.
    fn wrapped(&self, prefix: &str, of_prefix: Paint, of_text: Paint, text: &str) -> Vec<String> {
        let indent = prefix.chars().count();
        let lines = wrap(text, self.width.saturating_sub(indent), LINES_MAX);
        let line = |(index, text): (usize, String)| {
            let prefix = if index == 0 { prefix.to_owned() } else { " ".repeat(indent) };
            self.line().add(of_prefix, &prefix).add(of_text, &text).end()
        };
        lines.into_iter().enumerate().map(line).collect()
    }

    /// Returns the rows about requests, connections and bytes.
    fn traffic(&self) -> Vec<String> {
        let rates = self.status.rates.as_ref();
        let mut requests = self.labelled("Requests");
        let all = format::rate(rates.map(|rates| rates.requests));
        requests.cell(&[(Paint::Bold, &format!("{all}/s"))], FIRST);
        for name in ["5xx", "4xx", "2xx", "3xx"] {
            let rate = rates.and_then(|rates| rates.by_class.get(name).copied());
            let paint = self.of_check(name);
            requests.cell(&[(Paint::Soft, &format!("{name} ")), (paint, &format::rate(rate))], CELL);
        }
        let percentiles = |label, of: Option<Percentiles>| {
            let of = of.unwrap_or_default();
            let mut line = self.labelled(label);
            for (name, found) in [("p50 ", of.p50), ("p99 ", of.p99), ("p90 ", of.p90)] {
                let columns = if name == "p50 " { FIRST } else { CELL };
                line.cell(&[(Paint::Soft, name), (Paint::Plain, &format::percentile(found))], columns);
            }
            line.end()
        };
        let mut lines = vec![requests.end(), self.chart()];
        lines.push(percentiles("Duration", rates.map(|rates| rates.duration)));
        lines.push(percentiles("First byte", rates.map(|rates| rates.first_byte)));
        lines.extend(self.connections());
        lines.extend(self.tls());
        lines.extend(self.http2());
        lines
    }

    fn connections(&self) -> Vec<String> {
        let Some(connections) = &self.status.connections else { return Vec::new() };
        let rates = self.status.rates.as_ref();
        let mut line = self.labelled("Connections");
        line.cell(&[(Paint::Bold, &format!("{} open", format::grouped(connections.open)))], FIRST);
        let accepted = format::rate(rates.map(|rates| rates.accepted));
        line.cell(&[(Paint::Plain, &format!("{accepted}/s")), (Paint::Soft, " accepted")], 0);
        let counts = [
            (connections.refused, " refused"),
            (connections.reset, " reset"),
            (connections.broken, " broken"),
        ];
        for (count, name) in counts {
            line.cell(&[(Paint::Plain, &format::grouped(count)), (Paint::Soft, name)], 0);
        }
        let mut bytes = self.labelled("Bytes");
        let rate = |rate: Option<f64>| format!("{}/s", format::bytes(rate));
        bytes.cell(&[(Paint::Bold, &rate(rates.map(|rates| rates.sent))), (Paint::Soft, " sent")], FIRST);
        let received = rate(rates.map(|rates| rates.received));
        bytes.cell(&[(Paint::Plain, &received), (Paint::Soft, " received")], 0);
        let all = self.status.bytes.as_ref().map(|bytes| [bytes.sent, bytes.received]).unwrap_or_default();
        let [sent, received] = all.map(|bytes| format::bytes(Some(bytes as f64)));
        bytes.cell(&[(Paint::Soft, "in all "), (Paint::Plain, &format!("{sent}, {received}"))], 0);
        vec![line.end(), bytes.end()]
    }

    /// Returns a row about TLS, if the server has it.
    fn tls(&self) -> Option<String> {
        let (tls, rates) = (self.status.tls.as_ref()?, self.status.rates.as_ref());
        let mut line = self.labelled("TLS");
        line.cell(&[(Paint::Bold, &format!("{} open", format::grouped(tls.connections)))], FIRST);
        let handshakes = format::rate(rates.map(|rates| rates.handshakes));
        line.cell(&[(Paint::Plain, &format!("{handshakes}/s")), (Paint::Soft, " handshakes")], 0);
        let ends = self.status.verdict.checks.iter().find(|check| check.name == "TLS");
        let ends = ends.map_or(NO_VALUE, |check| &check.value);
        line.cell(&[(Paint::Soft, "certificates "), (self.of_check("TLS"), ends)], 0);
        let resumed = rates.and_then(|rates| rates.resumed_part).map_or(NO_VALUE.to_owned(), format::part);
        line.cell(&[(Paint::Plain, &resumed), (Paint::Soft, " resumed")], 0);
        line.cell(
            &[
                (Paint::Plain, &format::grouped(tls.failures.values().copied().fold(0, u64::saturating_add))),
                (Paint::Soft, " failed"),
            ],
            0,
        );
        Some(line.end())
    }

    /// Returns a row about HTTP/2, if there was a connection.
    fn http2(&self) -> Option<String> {
        let (http2, rates) = (self.status.http2.as_ref()?, self.status.rates.as_ref());
        let mut line = self.labelled("HTTP/2");
        line.cell(&[(Paint::Bold, &format!("{} open", format::grouped(http2.open)))], FIRST);
        let requests = format::rate(rates.map(|rates| rates.http2_requests));
        line.cell(&[(Paint::Plain, &format!("{requests}/s")), (Paint::Soft, " requests")], 0);
        let of_errors = |counts: &Counts| {
            let errors = counts.iter().filter(|(code, _)| *code != "NO_ERROR").map(|(_, count)| *count);
            errors.fold(0, u64::saturating_add)
        };
        let resets = http2.resets_received.saturating_add(of_errors(&http2.resets_sent));
        for (count, name) in [(resets, " reset"), (of_errors(&http2.goaways_sent), " GOAWAY by error")] {
            line.cell(&[(Paint::Plain, &format::grouped(count)), (Paint::Soft, name)], 0);
        }
        Some(line.end())
    }

    /// Returns the rates of the last minute, a column each.
    fn chart(&self) -> String {
        let mut line = self.labelled("");
        let shown = CHART_MAX.min(line.room().saturating_sub(CHART_TEXT));
        let rates = &self.status.history.requests;
        let rates = &rates[rates.len().saturating_sub(shown)..];
        let most = rates.iter().flatten().copied().fold(0.0, f64::max);
        let bar = |rate: &Option<f64>| match rate {
            None => ' ',
            Some(_) if most == 0.0 => BARS[0],
            // From 0 to 7: a rate is at most the highest one, and the conversion saturates.
            Some(rate) => BARS[((rate / most * 7.0).round() as usize).min(7)],
        };
        let bars: String = rates.iter().map(bar).collect();
        let blank = " ".repeat(shown.saturating_sub(rates.len()));
        line.column(Paint::Accent, &format!("{blank}{bars}"), shown);
        line.cell(&[(Paint::Soft, &format!(" highest {}/s", format::rate(Some(most))))], 0);
        line.cell(&[(Paint::Soft, &format!("{} in all", format::grouped(self.status.requests.total)))], 0);
        line.end()
    }

    /// Returns the rows about the process, caches, logs, limits and faults.
    fn resources(&self) -> Vec<String> {
        let (process, rates) = (&self.status.process, self.status.rates.as_ref());
        let mut row = self.labelled("Process");
        row.cell(&[(Paint::Plain, &format::bytes(process.resident_bytes.map(|bytes| bytes as f64)))], FIRST);
        let cpu = rates.map_or(NO_VALUE.to_owned(), |rates| format::part(rates.cpu));
        row.cell(&[(Paint::Soft, "CPU "), (Paint::Plain, &cpu)], CELL);
        let [open, most] = [process.open_descriptors, process.descriptors_max]
            .map(|of| of.map_or(NO_VALUE.to_owned(), format::grouped));
        row.cell(&[(Paint::Soft, "descriptors "), (Paint::Plain, &format!("{open} of {most}"))], 0);
        let mut cache = self.labelled("Cache");
        match &self.status.cache {
            None => cache.cell(&[(Paint::Soft, "off")], 0),
            Some(of) => {
                let hits =
                    rates.and_then(|rates| rates.cache_hit_part).map_or(NO_VALUE.to_owned(), format::part);
                cache.cell(&[(Paint::Plain, &counted(of.files, "file", "files"))], FIRST);
                cache.cell(&[(Paint::Plain, &format::bytes(Some(of.bytes as f64)))], CELL);
                cache.cell(&[(Paint::Plain, &hits), (Paint::Soft, " hits")], 0)
            }
        };
        let mut log = self.labelled("Log");
        match &self.status.log {
            None => log.cell(&[(Paint::Soft, "off")], 0),
            Some(of) => {
                let lines = format::rate(rates.map(|rates| rates.log_lines));
                log.cell(&[(Paint::Plain, &format!("{lines} lines/s"))], FIRST);
                if of.failing {
                    log.cell(&[(Paint::Bad, "failing")], 0);
                }
                let of_dropped = self.of_check("Log drops");
                log.cell(&[(of_dropped, &format!("{} dropped", format::grouped(of.dropped)))], 0);
                log.cell(&[(Paint::Soft, &of.destination)], 0)
            }
        };
        let limits = self.status.limits_hit.iter().map(|limit| (&limit.name, limit.count));
        let limits = self.counts("Limits", limits, &self.status.recent.limits_hit);
        let faults = self.status.faults.iter().map(|(name, count)| (name, *count));
        let faults = self.counts("Faults", faults, &self.status.recent.faults);
        vec![row.end(), cache.end(), log.end(), limits, faults]
    }

    /// Returns a row of names with their counts since the start. Those of the last five minutes come first, marked.
    fn counts<'b>(
        &self,
        label: &str,
        counts: impl Iterator<Item = (&'b String, u64)>,
        recent: &shearwater_metrics::document::Counts,
    ) -> String {
        let mut counts: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        counts.sort_by_key(|(name, _)| !recent.contains_key(*name));
        let mut line = self.labelled(label);
        if counts.is_empty() {
            line.cell(&[(Paint::Soft, "none since the start")], 0);
        }
        for (name, count) in counts {
            let is_recent = recent.contains_key(name);
            let (paint, mark) = if is_recent { (Paint::Warn, "+") } else { (Paint::Plain, "") };
            let count = format!("{}{mark}", format::grouped(count));
            line.cell(&[(Paint::Soft, &format!("{name} ")), (paint, &count)], 0);
        }
        line.end()
    }

    /// Returns the last reload's outcome, with its errors.
    fn reload(&self) -> Vec<String> {
        let Some(outcome) = &self.status.configuration.last_outcome else { return Vec::new() };
        let ago = format::age(self.now() - outcome.unix_seconds as f64);
        let Some(errors) = &outcome.errors else {
            return vec![
                self.labelled("Reload").cell(&[(Paint::Plain, &format!("done {ago} ago"))], 0).end(),
            ];
        };
        let mut lines =
            vec![self.labelled("Reload").cell(&[(Paint::Bad, &format!("refused {ago} ago"))], 0).end()];
        for line in errors.lines().filter(|line| !line.trim().is_empty()).take(RELOAD_LINES_MAX) {
            lines.extend(self.wrapped("  ", Paint::Plain, Paint::Plain, line));
        }
        lines
    }

    /// Returns the table of sites with at most so many rows; nothing without a site.
    fn sites(&self, rows: usize) -> Vec<String> {
        let sites = &self.status.sites;
        if sites.is_empty() || rows == 0 {
            return Vec::new();
        }
        let mut room = self.width.saturating_sub(*SITE.start());
        let fits = |(_, columns, _): &&SiteColumn| {
            let fits = *columns <= room;
            room -= if fits { *columns } else { 0 };
            fits
        };
        let columns: Vec<&SiteColumn> = SITE_COLUMNS.iter().take_while(fits).collect();
        let of_name = (SITE.start() + room).min(*SITE.end());
        let mut title = self.line();
        title.column(Paint::Soft, "Site", of_name);
        for (name, columns, _) in &columns {
            title.right(Paint::Soft, name, *columns);
        }
        let mut lines = vec![title.end()];
        let hidden = sites.len().saturating_sub(rows);
        // The last row says how many are hidden.
        let shown = if hidden > 0 { rows - 1 } else { rows };
        for site in sites.iter().take(shown) {
            let mut line = self.line();
            line.column(Paint::Plain, &wrap(&site.name, of_name - 1, 1).concat(), of_name);
            for (_, columns, text) in &columns {
                line.right(Paint::Plain, &text(site), *columns);
            }
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
    fn messages(&self) -> Vec<String> {
        let newest_first = self.status.messages.iter().rev().take(MESSAGES_MAX);
        let lines = newest_first.flat_map(|message| {
            let paint = match message.level.as_str() {
                "error" => Paint::Bad,
                "warning" => Paint::Warn,
                _ => Paint::Soft,
            };
            let age = format::age(self.now() - message.unix_seconds as f64);
            // The lines of a refused reload are shown above.
            let first = message.text.split("\\n").next().unwrap_or_default();
            self.wrapped(&format!("{age} ago  {}  ", message.level), paint, Paint::Plain, first)
        });
        lines.collect()
    }

    /// Returns the paint of a check's value.
    fn of_check(&self, name: &str) -> Paint {
        let check = self.status.verdict.checks.iter().find(|check| check.name == name);
        check.filter(|check| check.level > Level::Ok).map_or(Paint::Plain, |check| paint(check.level))
    }

    /// Returns the server's time, in seconds since 1970.
    fn now(&self) -> f64 {
        self.status.server.started_unix_seconds as f64 + self.status.server.uptime_seconds
    }
}

fn class(site: &Site, name: &str) -> String {
    site.by_class.get(name).map_or(NO_VALUE.to_owned(), |count| format::grouped(*count))
}

fn paint(level: Level) -> Paint {
    match level {
        Level::Off | Level::Ok => Paint::Good,
        Level::Notice => Paint::Warn,
        Level::Trouble => Paint::Bad,
    }
}
