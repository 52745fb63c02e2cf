//! Experiments: each runs rounds with a fresh server to get figures.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::bench::{MeasuredRound, RunSettings, ServerSetup};
use crate::scenario::Scenario;
use crate::{block, downloads, h2load, trials};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Experiment {
    /// CPU time of the server under a load
    Load,
    /// CPU time of the server under the same load by h2load
    H2load,
    /// System calls under a load, counted by perf
    SystemCalls,
    /// User instructions per request, counted by valgrind (epoll only); they repeat on every machine
    Instructions,
    /// Memory after one response
    FreshMemory,
    /// Memory per idle connection
    IdleConnections,
    /// CPU time and wake-ups of an idle server
    Quiet,
    /// Allocations, counted by a test of our own program
    Allocations,
    /// Latency of small requests beside large downloads
    Downloads,
    /// Time to the first response, and memory then
    Start,
}

/// A scenario's server in an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subject<'a> {
    pub(crate) experiment: Experiment,
    pub(crate) scenario: &'a str,
    pub(crate) server: &'a str,
}

impl Experiment {
    /// Returns titles and names of the figures for reports, the main one first.
    pub(crate) fn figures(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Load => &[
                ("µs CPU a response", "cpu_us"),
                ("responses a second", "responses_per_s"),
                ("p50 ms", "p50_ms"),
                ("p99 ms", "p99_ms"),
                ("p99.9 ms", "p999_ms"),
                ("slowest ms", "max_ms"),
                ("requests in flight", "in_flight"),
                ("handlers ready a turn", "handlers_ready_a_turn"),
                ("RSS MiB", "rss_mib"),
                ("bytes a response", "response_bytes"),
            ],
            Self::H2load => &[("µs CPU a response, client h2load", "cpu_us")],
            Self::SystemCalls => &[("system calls a response", "system_calls")],
            Self::Instructions => {
                &[("instructions a request", "instructions"), ("calls of malloc a request", "malloc_calls")]
            }
            Self::FreshMemory => &[("RSS of a fresh server, 2 workers, MiB", "rss_mib")],
            Self::IdleConnections => {
                &[("RSS growth per idle connection, 15,000, bytes", "bytes_per_connection")]
            }
            Self::Quiet => &[
                ("CPU of an idle server, 2 workers, %", "cpu_percent"),
                ("wake-ups a second, all threads, idle, 2 workers", "wake_ups_per_s"),
            ],
            Self::Allocations => &[("allocations and frees in 10,000 requests", "allocations")],
            Self::Downloads => &[("p99 of 1 KB beside 20 downloads, ms", "p99_ms")],
            Self::Start => {
                &[("start until the first response, s", "start_s"), ("RSS after the start, MiB", "rss_mib")]
            }
        }
    }

    pub(crate) fn title(self, figure: &str) -> &'static str {
        self.figures().iter().find(|(_, name)| *name == figure).map_or("", |(title, _)| title)
    }

    /// Returns the rounds that should count.
    pub(crate) fn rounds(self, settings: RunSettings) -> u32 {
        match self {
            Self::Load | Self::H2load => settings.blocks,
            Self::SystemCalls => settings.syscall_rounds,
            Self::Downloads => 8,
            Self::FreshMemory | Self::IdleConnections | Self::Start => 3,
            Self::Instructions => settings.instruction_rounds.max(1),
            Self::Quiet | Self::Allocations => 1,
        }
    }

    /// Returns the seconds of a round, start and end of the server included.
    pub(crate) fn round_s(self, scenario: &Scenario, settings: RunSettings) -> f64 {
        let warm_up_s = scenario.warm_up_ms() as f64 / 1e3;
        match self {
            Self::Load | Self::H2load => f64::from(settings.seconds) + warm_up_s + 0.3,
            Self::FreshMemory | Self::Start => 1.0,
            Self::SystemCalls => 1.7 + warm_up_s,
            Self::Downloads => 2.0,
            Self::IdleConnections => 4.0,
            Self::Quiet => 13.0,
            Self::Instructions => 15.0,
            Self::Allocations => 30.0,
        }
    }

    pub(crate) fn workers(self) -> u32 {
        if matches!(self, Self::FreshMemory | Self::Quiet) { 2 } else { 1 }
    }

    /// Runs one round; failures are part of it.
    pub(crate) fn run(self, setup: &ServerSetup<'_>) -> MeasuredRound {
        match self {
            Self::Load => block::run(setup).unwrap_or_else(|reason| Err(reason).into()),
            Self::H2load => h2load::run(setup).into(),
            Self::SystemCalls => block::count_system_calls(setup).into(),
            Self::Instructions => trials::count_instructions(setup).into(),
            Self::FreshMemory => trials::fresh_memory(setup).into(),
            Self::IdleConnections => trials::hold_connections(setup).into(),
            Self::Quiet => trials::watch_idle(setup).into(),
            Self::Allocations => trials::allocations(setup).into(),
            Self::Downloads => downloads::run(setup).into(),
            Self::Start => trials::start(setup).into(),
        }
    }
}
