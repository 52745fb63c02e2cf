//! The rows of the bar.

use super::Figure::{AtLeast, AtMost, Below, Shown};
use super::{Case, Figure, Measure};
use crate::alone::{Subject, Trial};

const EPOLL: &str = "shearwater-epoll";
const URING: &str = "shearwater-uring";
const NULL_EPOLL: &str = "null-epoll";
const NULL_URING: &str = "null-uring";
const OURS_AXUM: &str = "shearwater-axum";

type Names = (&'static str, &'static str);

const fn cpu(name: &'static str, scenario: &'static str, (over, under): Names, figure: Figure) -> Case {
    Case { name, scenario, measure: Measure::Cpu { over, under }, figure }
}

const fn syscalls(name: &'static str, (of, less): Names, figure: Figure) -> Case {
    Case { name, scenario: "plaintext", measure: Measure::Syscalls { of, less }, figure }
}

const fn alone(
    name: &'static str,
    (trial, of): (Trial, &'static str),
    (figure, about): Names,
    wanted: Figure,
) -> Case {
    let scenario = "1k";
    let subject = Subject { trial, of, scenario };
    Case { name, scenario, measure: Measure::Alone { subject, figure, about }, figure: wanted }
}

const FRESH: Names = ("rss_mib", "RSS of a fresh server, 2 workers, MiB");
const GROWTH: Names = ("bytes_per_connection", "RSS growth per idle connection, 15,000, bytes");
const CPU: Names = ("cpu_percent", "CPU of an idle server, 2 workers, %");
const WAKES: Names = ("wake_ups_per_s", "wake-ups a second, all threads, idle, 2 workers");
const ALLOCATIONS: Names = ("allocations", "allocations and frees in 10,000 requests");
const P99: Names = ("p99_ms", "p99 of 1 KB beside 20 downloads, ms");

/// All rows that have a figure to meet.
pub const CASES: &[Case] = &[
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
    alone("idle-rss-epoll", (Trial::IdleConnections, EPOLL), GROWTH, AtMost(96.0)),
    alone("idle-rss-uring", (Trial::IdleConnections, URING), GROWTH, AtMost(96.0)),
    alone("fresh-rss-epoll", (Trial::Fresh, EPOLL), FRESH, AtMost(8.0)),
    alone("fresh-rss-uring", (Trial::Fresh, URING), FRESH, AtMost(8.0)),
    // Zero, rounded to a tenth of a per cent.
    alone("idle-cpu-epoll", (Trial::Quiet, EPOLL), CPU, AtMost(0.05)),
    alone("idle-cpu-uring", (Trial::Quiet, URING), CPU, AtMost(0.05)),
    alone("idle-wakes-epoll", (Trial::Quiet, EPOLL), WAKES, AtMost(1.0)),
    alone("idle-wakes-uring", (Trial::Quiet, URING), WAKES, AtMost(1.0)),
    alone("allocations", (Trial::Allocations, EPOLL), ALLOCATIONS, AtMost(0.0)),
    alone("p99-epoll", (Trial::Downloads, EPOLL), P99, AtMost(5.0)),
    alone("p99-uring", (Trial::Downloads, URING), P99, AtMost(5.0)),
];

/// Rows of a router of axum's on our engine, run by the group's name `axum`: against `axum::serve` and against hyper with nothing above it.
pub const AXUM: &[Case] = &[
    cpu("axum-plaintext", "plaintext", (OURS_AXUM, "axum"), Below(1.0)),
    cpu("axum-hyper", "plaintext", (OURS_AXUM, "hyper"), AtMost(1.02)),
    cpu("axum-x16", "plaintext-x16", ("axum", OURS_AXUM), AtLeast(4.0)),
    cpu("axum-x16-hyper", "plaintext-x16", (OURS_AXUM, "hyper"), Shown),
    cpu("axum-churn", "plaintext-churn", (OURS_AXUM, "axum"), Below(1.0)),
    cpu("axum-churn-hyper", "plaintext-churn", (OURS_AXUM, "hyper"), Shown),
    syscalls("axum-syscalls", (OURS_AXUM, "hyper"), Shown),
    cpu("axum-engine", "plaintext", (OURS_AXUM, EPOLL), Shown),
];
/// What all rows of [`AXUM`] together are named.
const AXUM_GROUP: &str = "axum";

/// All rows there are, whoever they are for.
pub fn all() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain(AXUM).chain(PEERS)
}

/// Rows for information, run with `--peers`: the others where no figure is asked of us.
pub const PEERS: &[Case] = &[
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
    alone("nginx-idle-rss", (Trial::IdleConnections, "nginx"), GROWTH, Shown),
    alone("nginx-p99", (Trial::Downloads, "nginx"), P99, Shown),
];

/// The rows of these names, with commas between; `axum` names all of [`AXUM`]. Without names those of the default run.
///
/// # Errors
/// A name that there is none of.
pub fn select(only: Option<&str>, peers: bool) -> Result<Vec<&'static Case>, String> {
    let Some(only) = only else {
        return Ok(CASES.iter().chain(PEERS.iter().filter(|_| peers)).collect());
    };
    let mut found = Vec::new();
    for name in only.split(',') {
        let before = found.len();
        found.extend(all().filter(|case| case.name == name || name == AXUM_GROUP && AXUM.contains(case)));
        if found.len() == before {
            return Err(format!("the bar has no row {name:?}; `--list` names them"));
        }
    }
    Ok(found)
}
