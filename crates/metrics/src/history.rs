//! The last five minutes of a server, second by second, and the rates of the last seconds.

use std::collections::VecDeque;

use crate::counts::{CLASS_4XX, CLASSES};
use crate::document::{Column, Columns, Counts, Percentiles, Rates, Recent, Status};
use crate::histogram::HistogramValues;
use crate::limits::HISTORY_SECONDS_MAX;
use crate::snapshot::Snapshot;
use crate::verdict::{self, FAULTS};

/// Seconds that rates are computed over.
const RATE_SECONDS: usize = 5;

/// Minimum time that rates are computed over, in seconds.
const RATE_SECONDS_MIN: f64 = 0.9;

/// A second of a server, or the time since the last record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Second {
    /// Time since the start at its end, in seconds.
    pub(crate) end: f64,
    /// Its length in seconds: more than 1 if its record was late.
    pub(crate) length: f64,
    pub(crate) requests: u64,
    pub(crate) client_errors: u64,
    /// `5xx` without `501` and `505`.
    pub(crate) server_errors: u64,
    pub(crate) duration: HistogramValues,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Open connections at its end.
    pub(crate) open: Option<u64>,
    pub(crate) faults: [u64; FAULTS.len()],
    /// How often each limit was reached, without those that were not.
    pub(crate) limits_hit: Vec<(&'static str, u64)>,
    pub(crate) log_dropped: u64,
    /// The access log couldn't be written to at its end.
    pub(crate) is_log_failing: bool,
}

impl Second {
    /// Returns what was counted between two moments. Counts never fall, so no difference is negative.
    pub(crate) fn between(before: &Snapshot, now: &Snapshot) -> Self {
        let growth = |count: fn(&Snapshot) -> u64| count(now).saturating_sub(count(before));
        let mut second = Self {
            end: now.uptime_seconds,
            length: now.uptime_seconds - before.uptime_seconds,
            requests: growth(Snapshot::requests_total),
            client_errors: growth(|counts| counts.of_class(CLASS_4XX)),
            server_errors: growth(Snapshot::server_errors),
            duration: now.duration.since(&before.duration),
            log_dropped: growth(|counts| counts.log.as_ref().map_or(0, |log| log.dropped)),
            is_log_failing: now.log.as_ref().is_some_and(|log| log.is_failing),
            ..Self::default()
        };
        let Some(server) = &now.server else { return second };
        let old = before.server.as_ref().map(|server| server.totals).unwrap_or_default();
        let new = &server.totals;
        second.sent = new.bytes_sent.saturating_sub(old.bytes_sent);
        second.received = new.bytes_received.saturating_sub(old.bytes_received);
        second.open = Some(new.connections_open());
        second.faults = FAULTS.map(|(_, count, ..)| count(new).saturating_sub(count(&old)));
        // The workers count this one as refused connections.
        let refused = [("connections_per_address_max", new.connections_refused, old.connections_refused)];
        let limits = new.limits().zip(old.limits()).map(|((name, new), (_, old))| (name, new, old));
        let growths = limits.chain(refused).map(|(name, new, old)| (name, new.saturating_sub(old)));
        second.limits_hit = growths.filter(|(_, count)| *count > 0).collect();
        second
    }
}

/// The last seconds of a server.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Counts of the last [`RATE_SECONDS`], the newest last.
    marks: VecDeque<Snapshot>,
    /// Up to [`HISTORY_SECONDS_MAX`], the newest last.
    seconds: VecDeque<Second>,
}

impl History {
    /// Adds the counts of now.
    pub(crate) fn record(&mut self, now: Snapshot) {
        if let Some(before) = self.marks.back() {
            self.seconds.push_back(Second::between(before, &now));
        }
        self.seconds.drain(..self.seconds.len().saturating_sub(HISTORY_SECONDS_MAX));
        self.marks.push_back(now);
        self.marks.drain(..self.marks.len().saturating_sub(RATE_SECONDS + 1));
    }

    /// Sets everything in a status that depends on time: rates, history and verdict.
    pub(crate) fn describe(&self, now: &Snapshot, status: &mut Status) {
        let last = self.marks.back().map(|before| Second::between(before, now));
        let seconds: Vec<&Second> = self.seconds.iter().chain(&last).collect();
        let before = self.marks.iter().find(|mark| now.uptime_seconds - mark.uptime_seconds < 5.5);
        // A few requests in the first moments are no rate.
        let before = before.filter(|before| now.uptime_seconds - before.uptime_seconds >= RATE_SECONDS_MIN);
        status.rates = before.map(|before| {
            set_rates_of_sites(before, now, status);
            rates(before, now)
        });
        status.verdict = verdict::judge(&seconds, now, status.rates.as_ref().map(|rates| rates.requests));
        status.recent = recent(&seconds);
        status.history = columns(&self.seconds);
    }
}

/// Returns the counts of the last five minutes.
fn recent(seconds: &[&Second]) -> Recent {
    let mut recent = Recent::default();
    let add = |counts: &mut Counts, name: &str, count| *counts.entry(name.to_owned()).or_default() += count;
    for second in seconds {
        second.limits_hit.iter().for_each(|(name, count)| add(&mut recent.limits_hit, name, *count));
        let faults = FAULTS.iter().zip(second.faults).filter(|(_, count)| *count > 0);
        faults.for_each(|((name, ..), count)| add(&mut recent.faults, name, count));
    }
    recent
}

/// Returns the columns of the history. Seconds without a record are unknown.
fn columns(seconds: &VecDeque<Second>) -> Columns {
    let column = |value: &dyn Fn(&Second) -> Option<f64>| -> Column {
        let of_second = |second: &Second| {
            let missed = (second.length.round() as usize).saturating_sub(1).min(HISTORY_SECONDS_MAX);
            std::iter::repeat_n(None, missed).chain([value(second)])
        };
        let mut column: Column = seconds.iter().flat_map(of_second).collect();
        column.drain(..column.len().saturating_sub(HISTORY_SECONDS_MAX));
        column
    };
    // As many digits as a chart shows.
    let rate = |count: fn(&Second) -> u64| {
        column(&|second| Some((10.0 * count(second) as f64 / second.length.max(1e-3)).round() / 10.0))
    };
    let percentile =
        |part| column(&|second| Some((second.duration.percentile(part)?.estimate * 1e6).round() / 1e6));
    Columns {
        requests: rate(|second| second.requests),
        client_errors: rate(|second| second.client_errors),
        server_errors: rate(|second| second.server_errors),
        sent: rate(|second| second.sent),
        received: rate(|second| second.received),
        open: column(&|second| Some(second.open? as f64)),
        p50: percentile(0.5),
        p99: percentile(0.99),
    }
}

/// Returns the rates between two moments.
fn rates(before: &Snapshot, now: &Snapshot) -> Rates {
    let seconds = now.uptime_seconds - before.uptime_seconds;
    let growth = |count: &dyn Fn(&Snapshot) -> u64| count(now).saturating_sub(count(before)) as f64;
    let per_second = |count: &dyn Fn(&Snapshot) -> u64| growth(count) / seconds;
    let of_server = |count: fn(&shearwater::Totals) -> u64| {
        move |counts: &Snapshot| counts.server.as_ref().map_or(0, |server| count(&server.totals))
    };
    let part = |part: f64, rest: f64| Some(part / (part + rest)).filter(|part| part.is_finite());
    let handshakes = growth(&of_server(|totals| totals.tls12_handshakes + totals.tls13_handshakes));
    let resumed = growth(&of_server(|totals| totals.tls_resumed));
    let (hits, misses) = (
        growth(&|counts| counts.cache.map_or(0, |cache| cache.hits)),
        growth(&|counts| counts.cache.map_or(0, |cache| cache.misses)),
    );
    let of_class =
        |(index, name): (usize, &str)| (name.to_owned(), per_second(&|counts| counts.of_class(index)));
    let percentiles = |of: fn(&Snapshot) -> &HistogramValues| {
        let values = of(now).since(of(before));
        let percentile = |part| values.percentile(part);
        Percentiles { p50: percentile(0.5), p90: percentile(0.9), p99: percentile(0.99) }
    };
    Rates {
        seconds,
        requests: per_second(&Snapshot::requests_total),
        by_class: CLASSES.into_iter().enumerate().map(of_class).collect(),
        received: per_second(&of_server(|totals| totals.bytes_received)),
        sent: per_second(&of_server(|totals| totals.bytes_sent)),
        accepted: per_second(&of_server(|totals| totals.connections_accepted)),
        closed: per_second(&of_server(|totals| totals.connections_closed)),
        handshakes: handshakes / seconds,
        http2_requests: per_second(&of_server(|totals| totals.http2_streams)),
        resumed_part: part(resumed, handshakes - resumed),
        log_lines: per_second(&|counts| counts.log.as_ref().map_or(0, |log| log.written)),
        cache_hit_part: part(hits, misses),
        cpu: (now.process.cpu_seconds - before.process.cpu_seconds).max(0.0) / seconds,
        duration: percentiles(|counts| &counts.duration),
        first_byte: percentiles(|counts| &counts.first_byte),
    }
}

/// Sets the rates of each site. One that a reload has added counts from 0.
fn set_rates_of_sites(before: &Snapshot, now: &Snapshot, status: &mut Status) {
    let seconds = now.uptime_seconds - before.uptime_seconds;
    for site in &mut status.sites {
        let old = before.sites.iter().find(|old| old.name == site.name);
        let (requests, sent) = old.map_or((0, 0), |old| (old.classes.iter().sum(), old.bytes_sent));
        site.requests_per_second = Some(site.requests.saturating_sub(requests) as f64 / seconds);
        site.sent_per_second = Some(site.bytes_sent.saturating_sub(sent) as f64 / seconds);
    }
}

#[cfg(test)]
mod tests {
    use shearwater::Totals;

    use super::History;
    use crate::document::Status;
    use crate::limits::HISTORY_SECONDS_MAX;
    use crate::snapshot::{ServerFigures, SiteFigures, Snapshot};

    /// Returns counts of a server at so many seconds, after so many successful requests.
    fn at(seconds: f64, requests: u64) -> Snapshot {
        let mut totals = Totals::default();
        (totals.bytes_sent, totals.hit_head_ms) = (1000 * requests, requests);
        let mut counts = Snapshot {
            uptime_seconds: seconds,
            server: Some(ServerFigures { totals, ..ServerFigures::default() }),
            sites: vec![SiteFigures {
                name: "a".to_owned(),
                classes: [0, 0, requests, 0, 0, 0],
                bytes_sent: 10 * requests,
            }],
            ..Snapshot::default()
        };
        counts.requests[0][2] = requests;
        counts.duration.buckets[0] = requests;
        counts
    }

    fn status(history: &History, now: &Snapshot) -> Status {
        let mut status = Status::from(now);
        history.describe(now, &mut status);
        status
    }

    #[test]
    fn keeps_a_bounded_number_of_seconds() {
        let mut history = History::default();
        (0..=400).for_each(|second| history.record(at(f64::from(second), 10)));
        assert_eq!((history.seconds.len(), history.marks.len()), (HISTORY_SECONDS_MAX, 6));
        assert_eq!(status(&history, &at(400.5, 10)).history.requests.len(), HISTORY_SECONDS_MAX);
    }

    #[test]
    fn rates_are_of_the_last_five_seconds() {
        let mut history = History::default();
        history.record(at(0.0, 0));
        assert_eq!(status(&history, &at(0.1, 5)).rates, None, "too short");
        let mut history = History::default();
        for second in 0..=20_u32 {
            history.record(at(f64::from(second), 100 * u64::from(second)));
        }
        let status = status(&history, &at(20.25, 2025));
        let rates = status.rates.expect("known");
        assert_eq!((rates.seconds, rates.requests, rates.by_class["2xx"]), (5.25, 100.0, 100.0));
        assert_eq!((rates.sent, rates.cache_hit_part, rates.resumed_part), (100_000.0, None, None));
        assert_eq!(rates.duration.p50.map(|found| (found.low, found.high)), Some((0.0, Some(0.000_01))));
        assert_eq!(
            (status.sites[0].requests_per_second, status.sites[0].sent_per_second),
            (Some(100.0), Some(1000.0))
        );
        assert_eq!((status.recent.limits_hit["head_ms"], status.recent.faults.len()), (2025, 0));
        let history = status.history;
        assert_eq!(
            (history.requests.len(), history.requests[19], history.sent[0]),
            (20, Some(100.0), Some(1e5))
        );
        assert_eq!((history.open[0], history.p50[0], history.p99[0]), (Some(0.0), Some(5e-6), Some(1e-5)));
    }

    #[test]
    fn seconds_without_a_record_are_unknown() {
        let mut history = History::default();
        [at(0.0, 0), at(1.0, 10), at(4.0, 40), at(5.0, 40)]
            .into_iter()
            .for_each(|counts| history.record(counts));
        let status = status(&history, &at(5.0, 40));
        assert_eq!(status.history.requests, [Some(10.0), None, None, Some(10.0), Some(0.0)]);
        assert_eq!(status.history.p50[4], None, "no requests");
        // A machine that slept for days.
        history.record(at(1e6, 40));
        assert_eq!(self::status(&history, &at(1e6, 40)).history.requests.len(), HISTORY_SECONDS_MAX);
    }
}
