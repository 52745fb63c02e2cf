//! Figures of a run with their bounds.

use std::fmt::Write;

use serde::Serialize;

use super::ConnectionsArgs;
use super::reading::Reading;
use super::run::{BusyFigures, Findings};
use crate::format::{align, grouped};

/// Memory of our server without connections, and for each idle one. A million may take 64 MiB.
const RSS_MIB_MAX: f64 = 12.0;
const CONNECTION_MIB_MAX: f64 = 52.0 / 1e6;
const IDLE_CPU_PERCENT_MAX: f64 = 1.0;
/// Busy connections beside idle ones, compared with busy ones alone.
const BUSY_CPU_MAX: f64 = 1.15;
/// The p99 of busy connections while others time out, compared with before.
const BUSY_P99_MAX: f64 = 2.0;
/// Delay of a timeout.
const EXPIRY_MS_MAX: f64 = 5_000.0;
/// Descriptors that a server may keep, such as those of cached files.
const DESCRIPTORS_KEPT_MAX: f64 = 16.0;
/// Sockets of other programs that may come in a namespace that is not the run's own.
const OTHER_SOCKETS_MAX: u64 = 64;

/// Bounds that depend on the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Memory at the plateau and after the run; only our server has a bound.
    rss_mib: Option<[f64; 2]>,
    sockets_kept: u64,
}

/// A figure and its bound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figure {
    name: &'static str,
    value: Option<f64>,
    /// Maximum.
    bound: Option<f64>,
}

impl Bounds {
    pub(super) fn of(connections: u32, is_ours: bool, has_namespace: bool) -> Self {
        let plateau_mib = RSS_MIB_MAX + CONNECTION_MIB_MAX * f64::from(connections);
        Self {
            rss_mib: is_ours.then_some([plateau_mib, RSS_MIB_MAX]),
            sockets_kept: if has_namespace { 0 } else { OTHER_SOCKETS_MAX },
        }
    }

    /// Returns true if the server has what it had before the first connection.
    pub(super) fn is_released(&self, base: &Reading, now: &Reading) -> bool {
        now.sockets <= base.sockets + self.sockets_kept
            && self.rss_mib.is_none_or(|[_, after]| now.rss_mib <= after)
    }
}

impl Figure {
    /// Returns true if it was measured and is within its bound.
    fn is_met(&self) -> bool {
        self.bound.is_none_or(|bound| self.value.is_some_and(|value| value <= bound))
    }

    fn verdict(&self) -> &'static str {
        match (self.bound, self.value) {
            (None, _) => "",
            (Some(_), None) => "not measured",
            (Some(_), Some(_)) if self.is_met() => "met",
            (Some(_), Some(_)) => "MISSED",
        }
    }
}

/// Returns all figures that the run should have.
pub(super) fn figures(args: &ConnectionsArgs, findings: &Findings, bounds: &Bounds) -> Vec<Figure> {
    let figure = |name, value, bound| Figure { name, value, bound };
    let (count, base) = (f64::from(args.count), findings.base);
    let connected = findings.phases.iter().find(|phase| phase.name == "connect");
    let grown = findings.plateau.map(|plateau| (plateau.rss_mib - base.rss_mib) * f64::from(1 << 20) / count);
    let slab = findings.plateau.map(|plateau| (plateau.slab_mib - base.slab_mib) / 1024.0);
    let mut figures = vec![
        figure("connections missing", connected.map(|phase| count - phase.counts.held as f64), Some(0.0)),
        figure("connections failed", Some(findings.counts.failed() as f64), Some(0.0)),
        figure(
            "server RSS with all connections, MiB",
            findings.plateau.map(|it| it.rss_mib),
            bounds.rss_mib.map(|it| it[0]),
        ),
        figure("server RSS per connection, bytes", grown, None),
        figure("kernel slab of both ends, GiB", slab, None),
        figure("server CPU while idle, %", findings.idle_cpu_percent, Some(IDLE_CPU_PERCENT_MAX)),
    ];
    if args.busy > 0 {
        let ratio = ratio(findings.busy_beside, findings.busy_alone, |busy| busy.cpu_us);
        figures.push(figure("CPU per response beside ÷ alone", ratio, Some(BUSY_CPU_MAX)));
        let all = [findings.busy_alone, findings.busy_beside, findings.busy_while_expiring];
        let errors: u64 = all.iter().flatten().map(|busy| busy.errors).sum();
        figures.push(figure("errors of busy connections", Some(errors as f64), Some(0.0)));
    }
    if args.expire > 0 {
        let missing = (u64::from(args.expire)).saturating_sub(findings.counts.expired) as f64;
        figures.push(figure("timeouts missing", Some(missing), Some(0.0)));
        let late_ms = Some(findings.counts.latest_expiry_ms as f64);
        figures.push(figure("latest timeout, ms", late_ms, Some(EXPIRY_MS_MAX)));
        if args.busy > 0 {
            let ratio = ratio(findings.busy_while_expiring, findings.busy_beside, |busy| busy.p99_us);
            figures.push(figure("p99 while others time out ÷ before", ratio, Some(BUSY_P99_MAX)));
        }
    }
    let kept = |now: &Reading, of: fn(&Reading) -> u64| of(now).saturating_sub(of(&base)) as f64;
    let end = findings.end.as_ref();
    figures.extend([
        figure("sockets left", end.map(|it| kept(it, |it| it.sockets)), Some(bounds.sockets_kept as f64)),
        figure("descriptors left", end.map(|it| kept(it, |it| it.descriptors)), Some(DESCRIPTORS_KEPT_MAX)),
        figure("server RSS afterwards, MiB", end.map(|it| it.rss_mib), bounds.rss_mib.map(|it| it[1])),
    ]);
    figures
}

/// Returns a figure of the busy connections compared with another time's.
fn ratio(now: Option<BusyFigures>, before: Option<BusyFigures>, of: fn(&BusyFigures) -> f64) -> Option<f64> {
    Some(of(&now?) / of(&before?)).filter(|ratio| ratio.is_finite())
}

/// Returns true if no connection failed and every bound is met.
pub(super) fn is_met(findings: &Findings, figures: &[Figure]) -> bool {
    findings.ended_cleanly && figures.iter().all(Figure::is_met)
}

/// Renders the figures, and why connections failed.
pub(super) fn text(findings: &Findings, figures: &[Figure]) -> String {
    let mut table = vec![["figure", "measured", "at most", "verdict"].map(str::to_owned)];
    for figure in figures {
        let [value, bound] =
            [figure.value, figure.bound].map(|value| value.map_or_else(|| "-".to_owned(), show));
        table.push([figure.name.to_owned(), value, bound, figure.verdict().to_owned()]);
    }
    let mut out = align(&table);
    for (reason, count) in &findings.counts.failures {
        // A String takes all that is written to it.
        let _ = writeln!(out, "failed: {} × {reason}", grouped(*count));
    }
    if !findings.ended_cleanly {
        out.push_str("the server did not end by itself, or not successfully\n");
    }
    out
}

/// Formats a figure: whole numbers without decimals.
fn show(value: f64) -> String {
    if value.fract() == 0.0 && value >= 0.0 { grouped(value as u64) } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::run::Phase;
    use super::*;
    use crate::client::HeldCounts;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ConnectionsArgs,
    }

    fn args(words: &str) -> ConnectionsArgs {
        let words = ["lab"].into_iter().chain(words.split(' '));
        Line::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).args
    }

    /// A run of 1,000 connections in which nothing went wrong.
    fn sound() -> Findings {
        let base = Reading { rss_mib: 4.0, sockets: 1, descriptors: 30, ..Reading::default() };
        let counts = HeldCounts { held: 1_000, responses: 1_000, ..HeldCounts::default() };
        let plateau = Reading { rss_mib: 5.0, sockets: 2_001, slab_mib: 1_024.0, ..base };
        let (name, note) = ("connect", String::new());
        let phase = Phase { name, seconds: 1.0, cpu_s: 0.5, counts: counts.clone(), after: plateau, note };
        Findings {
            phases: vec![phase],
            base,
            plateau: Some(plateau),
            idle_cpu_percent: Some(0.1),
            end: Some(base),
            counts,
            ended_cleanly: true,
            ..Findings::default()
        }
    }

    /// Returns the names of the figures that miss their bounds.
    fn missed(words: &str, findings: &Findings) -> Vec<&'static str> {
        let figures = figures(&args(words), findings, &Bounds::of(1_000, true, true));
        figures.iter().filter(|figure| !figure.is_met()).map(|figure| figure.name).collect()
    }

    #[test]
    fn a_run_is_met_unless_something_went_wrong() {
        assert_eq!(missed("--count 1000", &sound()), Vec::<&str>::new());
        let text = text(&sound(), &figures(&args("--count 1000"), &sound(), &Bounds::of(1_000, true, true)));
        assert!(text.contains("1048.58") && !text.contains("MISSED"), "{text}");
        assert!(is_met(&sound(), &[]) && !is_met(&Findings { ended_cleanly: false, ..sound() }, &[]));
    }

    #[test]
    fn each_failure_misses_its_bound() {
        let base = sound().base;
        let failures = [("timeouts".to_owned(), 1)].into();
        let counts = HeldCounts { held: 999, failures, ..sound().counts };
        let failed = Findings { counts, ..sound() };
        assert_eq!(missed("--count 1000", &failed), ["connections failed"]);
        assert!(text(&failed, &[]).contains("failed: 1 × timeouts"));
        assert_eq!(missed("--count 1001", &sound()), ["connections missing"]);
        let large = Findings { plateau: Some(Reading { rss_mib: 12.1, ..base }), ..sound() };
        assert_eq!(missed("--count 1000", &large), ["server RSS with all connections, MiB"]);
        let end = Reading { sockets: 2, descriptors: 47, rss_mib: 12.1, ..base };
        let left = ["sockets left", "descriptors left", "server RSS afterwards, MiB"];
        assert_eq!(missed("--count 1000", &Findings { end: Some(end), ..sound() }), left);
        let nothing = Findings { idle_cpu_percent: None, plateau: None, end: None, ..sound() };
        assert_eq!(missed("--count 1000", &nothing).len(), 5, "asked for and not measured");
        let beside =
            ["CPU per response beside ÷ alone", "timeouts missing", "p99 while others time out ÷ before"];
        assert_eq!(missed("--count 1000 --busy 64 --expire 10", &sound()), beside);
    }

    #[test]
    fn memory_of_other_servers_has_no_bound() {
        let bounds = Bounds::of(1_000, false, false);
        let large = Findings { plateau: Some(Reading { rss_mib: 900.0, ..sound().base }), ..sound() };
        assert!(figures(&args("--count 1000"), &large, &bounds).iter().all(Figure::is_met));
        let now = Reading { sockets: 65, rss_mib: 900.0, ..Reading::default() };
        assert!(!bounds.is_released(&Reading::default(), &now));
        assert!(bounds.is_released(&Reading::default(), &Reading { sockets: 64, ..now }));
    }
}
