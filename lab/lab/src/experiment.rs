//! Experiments: each runs rounds with a fresh server to get figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bench::{RunSettings, Setup};
use crate::{block, downloads, trials};

/// Figures of one round, by name.
pub(crate) type RoundFigures = BTreeMap<&'static str, f64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Experiment {
    /// CPU time of the server under a load.
    Load,
    /// System calls under a load, counted by perf.
    SystemCalls,
    /// User instructions, counted by valgrind.
    Instructions,
    /// Memory after one response.
    FreshMemory,
    /// Memory per idle connection.
    IdleConnections,
    /// CPU time and wake-ups of an idle server.
    Quiet,
    /// Allocations, counted by a test of the program.
    Allocations,
    /// Latency of small requests beside large downloads.
    Downloads,
    /// Time to the first response, and memory then.
    Start,
}

/// A scenario's server in an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subject<'a> {
    pub(crate) experiment: Experiment,
    pub(crate) scenario: &'a str,
    pub(crate) server: &'a str,
}

/// One round of a server.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Round {
    /// Reasons for which it does not count.
    pub(crate) faults: Vec<String>,
    /// Empty if it could not be run.
    pub(crate) figures: RoundFigures,
    /// Readings that the figures rest on.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) details: Value,
}

impl From<Result<RoundFigures, String>> for Round {
    fn from(result: Result<RoundFigures, String>) -> Self {
        match result {
            Ok(figures) => Self { figures, ..Self::default() },
            Err(reason) => Self { faults: vec![reason], ..Self::default() },
        }
    }
}

impl Round {
    /// Returns true if it counts.
    pub(crate) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns a figure, if the round counts.
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied().filter(|_| self.is_valid())
    }
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
                ("handlers ready a turn", "handlers_ready_a_turn"),
                ("RSS MiB", "rss_mib"),
                ("bytes a response", "response_bytes"),
            ],
            Self::SystemCalls => &[("system calls a response", "system_calls")],
            Self::Instructions => &[("instructions a request", "instructions")],
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
            Self::Load => settings.blocks,
            Self::SystemCalls => settings.syscall_rounds,
            Self::Downloads => 8,
            Self::FreshMemory | Self::IdleConnections | Self::Start => 3,
            Self::Instructions | Self::Quiet | Self::Allocations => 1,
        }
    }

    /// Returns the seconds of a round, start and end of the server included.
    pub(crate) fn round_s(self, settings: RunSettings) -> f64 {
        match self {
            Self::Load => f64::from(settings.seconds) + 0.6,
            Self::FreshMemory | Self::Start => 1.0,
            Self::SystemCalls | Self::Downloads => 2.0,
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
    pub(crate) fn run(self, setup: &Setup<'_>) -> Round {
        match self {
            Self::Load => block::run(setup).unwrap_or_else(|reason| Err(reason).into()),
            Self::SystemCalls => block::count_system_calls(setup).into(),
            Self::Instructions => trials::count_instructions(setup).into(),
            Self::FreshMemory => trials::fresh_memory(setup).into(),
            Self::IdleConnections => trials::hold_connections(setup).into(),
            Self::Quiet => trials::watch_idle(setup).into(),
            Self::Allocations => trials::allocations().into(),
            Self::Downloads => downloads::run(setup).into(),
            Self::Start => trials::start(setup).into(),
        }
    }
}
