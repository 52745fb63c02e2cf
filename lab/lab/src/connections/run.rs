//! The phases of a run: connect, hold, be idle, be busy beside, time out, close.

use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::ConnectionsArgs;
use super::fleet::Fleet;
use super::reading::{ProgressLine, Reading};
use super::report::Bounds;
use crate::bench::{ServerSetup, StartedServer};
use crate::client::{COUNT, FAILURES_MAX, HeldCounts, Load, LoadCounts, Pacing, START_ASKING, STOP_ASKING};
use crate::format::grouped;
use crate::statistics::estimate;
use crate::trials::{SETTLE, WATCH};

/// Intervals at which client processes are asked for their counts, those that open connections and all.
const MOMENT: Duration = Duration::from_millis(20);
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Windows of the busy connections, whose median counts, and their length.
const BUSY_WINDOWS: usize = 5;
const BUSY_MILLIS: u64 = 2_000;
/// Time beyond the timeout for all connections to expire that should.
const EXPIRY_MAX: Duration = Duration::from_secs(60);
/// Time for the server to release the memory and sockets of connections that are gone.
const RELEASE_MAX: Duration = Duration::from_secs(60);

/// One phase, and the server after it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) seconds: f64,
    /// CPU time of the server in it.
    pub(super) cpu_s: f64,
    pub(super) counts: HeldCounts,
    pub(super) after: Reading,
    pub(super) note: String,
}

/// Figures of the busy connections: medians of windows.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct BusyFigures {
    pub(super) cpu_us: f64,
    pub(super) p99_us: f64,
    pub(super) per_second: f64,
    pub(super) errors: u64,
}

/// Everything that a run has found.
#[derive(Debug, Default, Serialize)]
pub(super) struct Findings {
    pub(super) phases: Vec<Phase>,
    /// The server before the first connection.
    pub(super) base: Reading,
    /// The server with all connections, idle.
    pub(super) plateau: Option<Reading>,
    pub(super) idle_cpu_percent: Option<f64>,
    pub(super) busy_alone: Option<BusyFigures>,
    pub(super) busy_beside: Option<BusyFigures>,
    pub(super) busy_while_expiring: Option<BusyFigures>,
    /// The server after the last connection.
    pub(super) end: Option<Reading>,
    pub(super) counts: HeldCounts,
    pub(super) ended_cleanly: bool,
}

pub(super) struct Run<'a> {
    pub(super) args: &'a ConnectionsArgs,
    pub(super) setup: ServerSetup<'a>,
    pub(super) server: StartedServer,
    pub(super) fleet: Fleet,
    pub(super) keep_alive: Duration,
    pub(super) bounds: Bounds,
    pub(super) openers: usize,
    pub(super) progress: ProgressLine,
    pub(super) findings: Findings,
}

impl Run<'_> {
    /// Runs all phases that were asked for. An error ends the run: the server or a client process has ended.
    pub(super) fn run(mut self) -> Result<Findings, String> {
        self.findings.base = self.read()?;
        if self.args.busy > 0 {
            self.findings.busy_alone = self.phase("busy alone", Self::busy)?;
        }
        self.phase("connect", Self::connect)?;
        if self.findings.counts.failed() < FAILURES_MAX {
            self.phase("hold", Self::hold)?;
            self.findings.idle_cpu_percent = Some(self.phase("idle", Self::idle)?);
            self.findings.plateau = Some(self.read()?);
            if self.args.busy > 0 {
                self.findings.busy_beside = self.phase("busy beside", Self::busy)?;
            }
            if self.args.expire > 0 {
                if self.findings.counts.expired > 0 {
                    crate::progress("some have timed out already, before they were watched");
                }
                self.findings.busy_while_expiring = self.phase("time out", Self::expire)?;
            }
        }
        self.phase("close", Self::close)?;
        self.findings.end = Some(self.read()?);
        self.findings.ended_cleanly = self.server.process.end_within(RELEASE_MAX);
        Ok(self.findings)
    }

    fn read(&self) -> Result<Reading, String> {
        Reading::take(&self.server.process)
    }

    /// Runs a phase, which returns its figure and a note, and records the server before and after it.
    fn phase<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Self) -> Result<(T, String), String>,
    ) -> Result<T, String> {
        let (before, started) = (self.read()?, Instant::now());
        let worked = work(self);
        self.progress.end();
        let (figure, note) = worked?;
        self.fleet.order(COUNT, usize::MAX)?;
        let (after, seconds) = (self.read()?, started.elapsed().as_secs_f64());
        let counts = self.fleet.counts();
        self.findings.counts.clone_from(&counts);
        let cpu_s = after.cpu_s - before.cpu_s;
        crate::progress(&format!("{name}: {seconds:.1} s, {note}"));
        self.findings.phases.push(Phase { name, seconds, cpu_s, counts, after, note });
        Ok(figure)
    }

    /// Shows the counts after a moment: of processes that are not settled, or else of all.
    fn watch(&mut self, phase: &str, started: Instant) -> Result<HeldCounts, String> {
        if self.fleet.unsettled() > 0 {
            thread::sleep(MOMENT);
            self.fleet.update()?;
        } else {
            thread::sleep(POLL_INTERVAL);
            self.fleet.order(COUNT, usize::MAX)?;
        }
        let counts = self.fleet.counts();
        let server = &self.server.process;
        self.progress.show(|| {
            format!(
                "{phase} {:.0} s: {} held, {} responses, {} failed, {} timed out, server {:.1} MiB",
                started.elapsed().as_secs_f64(),
                grouped(counts.held),
                grouped(counts.responses),
                grouped(counts.failed()),
                grouped(counts.expired),
                server.mib(testkit::process::rss_kib).unwrap_or(0.0),
            )
        });
        Ok(counts)
    }

    /// Lets one process after the other open its connections, as many at once as there are cores for them.
    fn connect(&mut self) -> Result<((), String), String> {
        let started = Instant::now();
        loop {
            let opening = self.fleet.unsettled();
            let is_good = self.fleet.counts().failed() < FAILURES_MAX;
            if !(is_good && opening < self.openers && self.fleet.start_next()?) {
                if opening == 0 {
                    break;
                }
                self.watch("connect", started)?;
            }
        }
        let held = self.fleet.counts().held;
        let rate = held as f64 / started.elapsed().as_secs_f64();
        Ok(((), format!("{} connected and served, {rate:.0} a second", grouped(held))))
    }

    /// Asks again on idle connections for a while, and awaits the responses.
    fn hold(&mut self) -> Result<((), String), String> {
        let (started, before) = (Instant::now(), self.fleet.counts().responses);
        let (length, asking) = (Duration::from_secs(self.args.hold.into()), self.args.trickle as usize);
        self.fleet.order(START_ASKING, asking)?;
        while started.elapsed() < length {
            self.watch("hold", started)?;
        }
        self.fleet.order(STOP_ASKING, usize::MAX)?;
        while self.fleet.unsettled() > 0 {
            self.watch("hold", started)?;
        }
        let asked = self.fleet.counts().responses - before;
        Ok(((), format!("{} asked again, all held", grouped(asked))))
    }

    /// Watches the server while nothing is sent; returns its CPU time in per cent.
    fn idle(&mut self) -> Result<(f64, String), String> {
        thread::sleep(SETTLE);
        let (before, started) = (self.read()?, Instant::now());
        thread::sleep(WATCH);
        // A thread of the pool for files may end meanwhile, and takes a little time with it.
        let percent = (self.read()?.cpu_s - before.cpu_s).max(0.0) / started.elapsed().as_secs_f64() * 100.0;
        Ok((percent, format!("{percent:.2} % of a core")))
    }

    fn busy(&mut self) -> Result<(Option<BusyFigures>, String), String> {
        let windows = (0..BUSY_WINDOWS).map(|_| self.busy_window()).collect::<Result<Vec<_>, _>>()?;
        Ok(summary(&windows))
    }

    /// Loads the server with the busy connections for a moment.
    fn busy_window(&self) -> Result<BusyFigures, String> {
        let load = Load {
            connections: self.args.busy,
            pacing: self.args.busy_rate.map_or(Pacing::Closed, Pacing::Rate),
            latencies: true,
            ..self.setup.scenario.load(self.setup.address, &self.server.expected, BUSY_MILLIS)
        };
        let before = self.read()?;
        let counts = self.setup.run_load(&load)?;
        Ok(figures(&counts, self.read()?.cpu_s - before.cpu_s))
    }

    /// Waits until as many connections have timed out as should, with the busy ones beside from the first of them.
    fn expire(&mut self) -> Result<(Option<BusyFigures>, String), String> {
        let (started, wanted) = (Instant::now(), u64::from(self.args.expire));
        let mut windows = Vec::new();
        loop {
            let counts = self.watch("time out", started)?;
            if counts.expired >= wanted || started.elapsed() > self.keep_alive + EXPIRY_MAX {
                let (figures, text) = summary(&windows);
                let late = counts.latest_expiry_ms;
                let expired = grouped(counts.expired);
                return Ok((figures, format!("{expired} timed out, the latest {late} ms late; {text}")));
            }
            if counts.expired > 0 && self.args.busy > 0 {
                windows.push(self.busy_window()?);
            }
        }
    }

    /// Closes all connections and waits until the server has released them.
    fn close(&mut self) -> Result<((), String), String> {
        let started = Instant::now();
        self.fleet.close();
        let closed = Instant::now();
        loop {
            let now = self.read()?;
            let is_released = self.bounds.is_released(&self.findings.base, &now);
            if is_released || closed.elapsed() > RELEASE_MAX {
                let after_s = closed.elapsed().as_secs_f64();
                let text = if is_released { "released" } else { "NOT released" };
                return Ok(((), format!("{text} after {after_s:.1} s")));
            }
            self.watch("close", started)?;
        }
    }
}

/// Returns the figures of a window.
fn figures(counts: &LoadCounts, cpu_s: f64) -> BusyFigures {
    let responses = counts.responses.max(1) as f64;
    BusyFigures {
        cpu_us: cpu_s * 1e6 / responses,
        p99_us: counts.latency.map_or(0.0, |latency| latency.p99_ns as f64 / 1e3),
        per_second: responses * 1e6 / counts.duration_us.max(1) as f64,
        errors: counts.socket_errors() + counts.wrong_responses(),
    }
}

/// Returns the medians of windows and the sum of their errors, and a text.
fn summary(windows: &[BusyFigures]) -> (Option<BusyFigures>, String) {
    let median = |figure: fn(&BusyFigures) -> f64| {
        let values: Vec<f64> = windows.iter().map(figure).collect();
        estimate(&values, 1).map_or(0.0, |estimate| estimate.median)
    };
    let figures = BusyFigures {
        cpu_us: median(|window| window.cpu_us),
        p99_us: median(|window| window.p99_us),
        per_second: median(|window| window.per_second),
        errors: windows.iter().map(|window| window.errors).sum(),
    };
    match windows.len() {
        0 => (None, "nothing beside".to_owned()),
        count => {
            let BusyFigures { cpu_us, p99_us, per_second, .. } = figures;
            let text = format!(
                "{cpu_us:.2} µs CPU a response, p99 {p99_us:.0} µs, {per_second:.0}/s, {count} windows"
            );
            (Some(figures), text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_windows_count_and_all_errors() {
        let window = |cpu_us, errors| BusyFigures { cpu_us, p99_us: 2.0 * cpu_us, per_second: 1.0, errors };
        let (figures, text) = summary(&[window(9.0, 1), window(5.0, 0), window(6.0, 2)]);
        let figures = figures.expect("there are windows");
        assert_eq!((figures.cpu_us, figures.p99_us, figures.errors), (6.0, 12.0, 3));
        assert!(text.contains("3 windows"), "{text}");
        assert!(summary(&[]).0.is_none());
    }
}
