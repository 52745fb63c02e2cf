//! The rows of the bar.

use super::Figure::{self, AtLeast, AtMost, Below, Shown};
use super::{Measure, Row};
use crate::trials::{Subject, Trial};

const EPOLL: &str = "shearwater-epoll";
const URING: &str = "shearwater-uring";
const NULL_EPOLL: &str = "null-epoll";
const NULL_URING: &str = "null-uring";
const OURS_AXUM: &str = "shearwater-axum";

type Names = (&'static str, &'static str);

const fn cpu(name: &'static str, scenario: &'static str, (over, under): Names, figure: Figure) -> Row {
    Row { name, measure: Measure::Cpu { scenario, over, under }, figure }
}

const fn syscalls(name: &'static str, (of, less): Names, figure: Figure) -> Row {
    Row { name, measure: Measure::Syscalls { scenario: "plaintext", of, less }, figure }
}

const fn trial(
    name: &'static str,
    (trial, server): (Trial, &'static str),
    (of_trial, about): Names,
    figure: Figure,
) -> Row {
    let subject = Subject { trial, server };
    Row { name, measure: Measure::Trial { subject, figure: of_trial, about }, figure }
}

/// Instructions of (server, scenario) divided by those of another.
const fn times(name: &'static str, of: Names, base: Names, figure: Figure) -> Row {
    Row { name, measure: Measure::Instructions { of, base, is_ratio: true }, figure }
}

/// Instructions of (server, scenario) minus those of another.
const fn more(name: &'static str, of: Names, base: Names, figure: Figure) -> Row {
    Row { name, measure: Measure::Instructions { of, base, is_ratio: false }, figure }
}

const FRESH: Names = ("rss_mib", "RSS of a fresh server, 2 workers, MiB");
const GROWTH: Names = ("bytes_per_connection", "RSS growth per idle connection, 15,000, bytes");
const CPU: Names = ("cpu_percent", "CPU of an idle server, 2 workers, %");
const WAKES: Names = ("wake_ups_per_s", "wake-ups a second, all threads, idle, 2 workers");
const ALLOCATIONS: Names = ("allocations", "allocations and frees in 10,000 requests");
const P99: Names = ("p99_ms", "p99 of 1 KB beside 20 downloads, ms");
const START: Names = ("start_s", "start until the first response, s");
const START_RSS: Names = ("rss_mib", "RSS after the start, MiB");

/// All rows with a figure to meet, run by default.
const DEFAULT: &[Row] = &[
    cpu("plaintext-epoll", "plaintext", (EPOLL, NULL_EPOLL), AtMost(1.06)),
    cpu("plaintext-uring", "plaintext", (URING, NULL_URING), AtMost(1.06)),
    cpu("varied-epoll", "plaintext-varied", (EPOLL, NULL_EPOLL), AtMost(1.08)),
    cpu("varied-uring", "plaintext-varied", (URING, NULL_URING), AtMost(1.08)),
    cpu("1k-epoll", "1k", (EPOLL, NULL_EPOLL), AtMost(1.08)),
    cpu("1k-uring", "1k", (URING, NULL_URING), AtMost(1.08)),
    cpu("plaintext-x16-epoll", "plaintext-x16", (EPOLL, NULL_EPOLL), AtMost(1.30)),
    cpu("plaintext-x16-uring", "plaintext-x16", (URING, NULL_URING), AtMost(1.30)),
    cpu("1k-x16-epoll", "1k-x16", (EPOLL, NULL_EPOLL), AtMost(1.35)),
    cpu("1k-x16-uring", "1k-x16", (URING, NULL_URING), AtMost(1.35)),
    cpu("churn-epoll", "1k-churn", (EPOLL, NULL_EPOLL), AtMost(1.08)),
    cpu("churn-uring", "1k-churn", (URING, NULL_URING), AtMost(1.08)),
    cpu("nginx-1k-epoll", "1k", ("nginx", EPOLL), AtLeast(1.4)),
    cpu("nginx-1k-uring", "1k", ("nginx", URING), AtLeast(1.4)),
    cpu("nginx-x16-epoll", "1k-x16", ("nginx", EPOLL), AtLeast(7.0)),
    cpu("nginx-x16-uring", "1k-x16", ("nginx", URING), AtLeast(7.0)),
    cpu("nginx-churn-epoll", "1k-churn", ("nginx", EPOLL), AtLeast(1.12)),
    cpu("nginx-churn-uring", "1k-churn", ("nginx", URING), AtLeast(1.12)),
    cpu("lighttpd-1k", "1k", ("lighttpd", EPOLL), AtLeast(1.06)),
    cpu("h2o-1k", "1k", ("h2o", EPOLL), AtLeast(1.06)),
    cpu("sws-1k", "1k", ("static-web-server", EPOLL), AtLeast(2.0)),
    cpu("servedir-1k", "1k", ("servedir", EPOLL), AtLeast(6.0)),
    cpu("servedir-one-thread", "1k", ("servedir-one-thread", EPOLL), Shown),
    cpu("nginx-100k-epoll", "100k", ("nginx", EPOLL), AtLeast(1.3)),
    cpu("nginx-100k-uring", "100k", ("nginx", URING), AtLeast(1.3)),
    cpu("nginx-1m-epoll", "1m", ("nginx", EPOLL), AtLeast(1.0)),
    cpu("nginx-1m-uring", "1m", ("nginx", URING), AtLeast(1.0)),
    cpu("nginx-1m-narrow-epoll", "1m-narrow", ("nginx", EPOLL), AtLeast(1.0)),
    cpu("nginx-1m-narrow-uring", "1m-narrow", ("nginx", URING), AtLeast(1.0)),
    syscalls("syscalls-epoll", (EPOLL, NULL_EPOLL), AtMost(0.05)),
    syscalls("syscalls-uring", (URING, NULL_URING), AtMost(0.05)),
    trial("idle-rss-epoll", (Trial::IdleConnections, EPOLL), GROWTH, AtMost(96.0)),
    trial("idle-rss-uring", (Trial::IdleConnections, URING), GROWTH, AtMost(96.0)),
    trial("fresh-rss-epoll", (Trial::Fresh, EPOLL), FRESH, AtMost(8.0)),
    trial("fresh-rss-uring", (Trial::Fresh, URING), FRESH, AtMost(8.0)),
    // Zero, rounded to a tenth of a per cent.
    trial("idle-cpu-epoll", (Trial::Quiet, EPOLL), CPU, AtMost(0.05)),
    trial("idle-cpu-uring", (Trial::Quiet, URING), CPU, AtMost(0.05)),
    trial("idle-wakes-epoll", (Trial::Quiet, EPOLL), WAKES, AtMost(1.0)),
    trial("idle-wakes-uring", (Trial::Quiet, URING), WAKES, AtMost(1.0)),
    trial("allocations", (Trial::Allocations, EPOLL), ALLOCATIONS, AtMost(0.0)),
    trial("p99-epoll", (Trial::Downloads, EPOLL), P99, AtMost(5.0)),
    trial("p99-uring", (Trial::Downloads, URING), P99, AtMost(5.0)),
];

/// axum's router on our engine, against `axum::serve` and against hyper without a framework.
const AXUM: &[Row] = &[
    cpu("axum-plaintext", "plaintext", (OURS_AXUM, "axum"), Below(1.0)),
    cpu("axum-hyper", "plaintext", (OURS_AXUM, "hyper"), AtMost(1.02)),
    cpu("axum-x16", "plaintext-x16", ("axum", OURS_AXUM), AtLeast(4.0)),
    cpu("axum-x16-hyper", "plaintext-x16", (OURS_AXUM, "hyper"), Shown),
    cpu("axum-churn", "plaintext-churn", (OURS_AXUM, "axum"), Below(1.0)),
    cpu("axum-churn-hyper", "plaintext-churn", (OURS_AXUM, "hyper"), Shown),
    syscalls("axum-syscalls", (OURS_AXUM, "hyper"), Shown),
    cpu("axum-engine", "plaintext", (OURS_AXUM, EPOLL), Shown),
];

const HANDLER: Names = ("kinds", "kind-plain");

/// Instructions of each kind of handler, against a plain one in the same program.
const HANDLERS: &[Row] = &[
    times("handler-fast", ("kinds", "kind-fast"), HANDLER, AtMost(1.03)),
    more("handler-json", ("kinds", "kind-json"), HANDLER, AtMost(600.0)),
    more("handler-async", ("kinds", "kind-async"), HANDLER, Shown),
    more("handler-async-yield", ("kinds", "kind-async-yield"), HANDLER, Shown),
    more("handler-coroutine", ("kinds", "kind-coroutine"), HANDLER, Shown),
    more("handler-coroutine-yield", ("kinds", "kind-coroutine-yield"), HANDLER, Shown),
    more("handler-body", ("kinds", "kind-body"), HANDLER, Shown),
    more("handler-stream", ("kinds", "kind-stream"), HANDLER, Shown),
    times("handler-axum", (OURS_AXUM, "plaintext"), ("axum", "plaintext"), Shown),
    times("handler-hyper", (OURS_AXUM, "plaintext"), ("hyper", "plaintext"), Shown),
];

/// A configured site against a folder, and the start of 1,000 sites with 100 routes each.
const SITES: &[Row] = &[
    more("site", ("shearwater-site", "1k"), (EPOLL, "1k"), AtMost(400.0)),
    trial("start-folder", (Trial::Start, EPOLL), START, AtMost(1.0)),
    trial("start-site", (Trial::Start, "shearwater-site"), START, AtMost(1.0)),
    trial("start-sites", (Trial::Start, "sites-1000x100"), START, AtMost(1.0)),
    trial("start-sites-rss", (Trial::Start, "sites-1000x100"), START_RSS, Shown),
];

/// Peers where no figure is asked of us, run with `--peers`.
const PEERS: &[Row] = &[
    cpu("nginx-return", "plaintext", ("nginx", EPOLL), Shown),
    cpu("hyper", "plaintext", ("hyper", EPOLL), Shown),
    cpu("axum-serve", "plaintext", ("axum", EPOLL), Shown),
    cpu("lighttpd-x16", "1k-x16", ("lighttpd", EPOLL), Shown),
    cpu("h2o-x16", "1k-x16", ("h2o", EPOLL), Shown),
    cpu("lighttpd-churn", "1k-churn", ("lighttpd", EPOLL), Shown),
    cpu("h2o-churn", "1k-churn", ("h2o", EPOLL), Shown),
    cpu("lighttpd-100k", "100k", ("lighttpd", EPOLL), Shown),
    cpu("h2o-100k", "100k", ("h2o", EPOLL), Shown),
    cpu("nginx-1m-auto-epoll", "1m-auto", ("nginx", EPOLL), Shown),
    cpu("nginx-1m-auto-uring", "1m-auto", ("nginx", URING), Shown),
    cpu("lighttpd-1m", "1m", ("lighttpd", EPOLL), Shown),
    cpu("h2o-1m", "1m", ("h2o", EPOLL), Shown),
    trial("nginx-idle-rss", (Trial::IdleConnections, "nginx"), GROWTH, Shown),
    trial("nginx-p99", (Trial::Downloads, "nginx"), P99, Shown),
];

/// Names under which groups of rows are run.
pub(super) const GROUPS: [(&str, &[Row]); 3] = [("axum", AXUM), ("handlers", HANDLERS), ("sites", SITES)];

pub(super) fn all() -> impl Iterator<Item = &'static Row> {
    DEFAULT.iter().chain(GROUPS.iter().flat_map(|(_, rows)| *rows)).chain(PEERS)
}

/// Returns the rows and groups of these names; without names those of the default run.
pub(crate) fn select(only: Option<&str>, peers: bool) -> Result<Vec<&'static Row>, String> {
    let Some(only) = only else {
        return Ok(DEFAULT.iter().chain(PEERS.iter().filter(|_| peers)).collect());
    };
    let mut found = Vec::new();
    for name in only.split(',') {
        let before = found.len();
        match GROUPS.iter().find(|(group, _)| *group == name) {
            Some((_, rows)) => found.extend(*rows),
            None => found.extend(all().filter(|row| row.name == name)),
        }
        if found.len() == before {
            return Err(format!("the bar has no row `{name}`\nhelp: `cargo lab bar --list` names them"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::bar::{Agenda, Settings};

    #[test]
    fn selects_rows_and_groups_by_name() {
        assert_eq!(select(None, false).expect("rows").len(), DEFAULT.len());
        assert_eq!(select(None, true).expect("rows").len(), DEFAULT.len() + PEERS.len());
        let group = select(Some("fresh-rss-epoll,axum"), false).expect("rows");
        assert_eq!((group[0].name, group.len()), ("fresh-rss-epoll", 1 + AXUM.len()));
        assert!(select(Some("nothing"), false).is_err() && select(Some(""), false).is_err());
        let names: BTreeSet<&str> = all().map(|row| row.name).collect();
        assert_eq!(names.len(), all().count());
        assert!(GROUPS.iter().all(|(group, _)| !names.contains(group)));
    }

    #[test]
    fn every_row_is_run_with_servers_that_serve_it() {
        let settings = Settings { blocks: 16, seconds: 1, seed: 1, wait_percent_max: None };
        let agenda = Agenda::of(&all().collect::<Vec<_>>(), settings).expect("all names exist");
        for plan in &agenda.plans {
            let name = plan.scenario.name;
            assert!(plan.servers.iter().all(|server| server.serves(plan.scenario)), "{name}");
            assert_eq!(plan.syscall_rounds > 0, name == "plaintext", "{name}");
        }
        for (server, scenario) in &agenda.instructions {
            let scenario = crate::scenario::find(scenario).expect("a scenario");
            assert!(crate::server::find(server).expect("a server").serves(scenario), "{server}");
        }
        let only = Agenda::of(&select(Some("churn-uring,fresh-rss-epoll"), false).expect("rows"), settings);
        let only = only.expect("all names exist");
        let servers: Vec<&str> = only.plans[0].servers.iter().map(|server| server.name).collect();
        assert_eq!((only.plans.len(), servers, only.trials.len()), (1, vec!["null-uring", URING], 1));
        let default = Agenda::of(&select(None, false).expect("rows"), settings).expect("all names exist");
        assert!((5.0..=25.0).contains(&(default.estimated_s() / 60.0)));
    }
}
