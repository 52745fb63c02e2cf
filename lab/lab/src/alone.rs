//! Trials of one server by itself, in which no response's cost is counted: memory, idleness, allocations, and how quickly
//! it answers beside large downloads.

use std::net::SocketAddr;

use crate::binaries::Binaries;
use crate::block::{self, Order};
use crate::process::{Server, free_address};
use crate::scenario::{self, Scenario};
use crate::server::{self, Place};
use crate::site::Site;
use crate::statistics::{Estimate, estimate};
use crate::{allocations, downloads, idle, quiet};

/// What one round of a trial has found, by name.
pub type Figures = Vec<(&'static str, f64)>;

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// Memory of a server that has answered once.
    Fresh,
    /// Memory per idle connection.
    IdleConnections,
    /// CPU time and wake-ups of a server that nobody asks.
    Quiet,
    /// Allocations on the way of a request, counted by a test of the program.
    Allocations,
    /// Answers to small requests while large files are downloaded.
    Downloads,
}

/// A trial of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// What is tried.
    pub trial: Trial,
    /// The server's name.
    pub of: &'static str,
    /// The scenario whose request is sent; for our server it also says which of our programs it is.
    pub scenario: &'static str,
}

/// What its rounds have found.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What was tried.
    pub subject: Subject,
    /// Each round's figures, or why there are none.
    pub rounds: Vec<Result<Figures, String>>,
}

/// A started server that has answered once.
pub struct Stage<'a> {
    /// Its processes.
    pub server: &'a Server,
    /// Where it listens.
    pub address: SocketAddr,
    /// Length of a whole answer.
    pub answer_bytes: u64,
    /// Its request.
    pub scenario: &'static Scenario,
    /// What it serves.
    pub site: &'a Site,
}

impl Trial {
    /// Workers of the server.
    pub fn workers(self) -> u32 {
        match self {
            Self::Fresh | Self::Quiet => 2,
            Self::IdleConnections | Self::Downloads | Self::Allocations => 1,
        }
    }

    /// Rounds, each with a fresh server; what counts exactly or long enough needs no second one.
    pub fn rounds(self) -> u32 {
        match self {
            Self::Fresh | Self::IdleConnections => 3,
            Self::Downloads => 8,
            Self::Quiet | Self::Allocations => 1,
        }
    }

    /// How long a round takes in seconds, about.
    pub fn estimated_s(self) -> f64 {
        match self {
            Self::Fresh => 0.5,
            Self::IdleConnections => 4.0,
            Self::Quiet => 13.0,
            Self::Allocations => 30.0,
            Self::Downloads => 2.0,
        }
    }
}

impl Finding {
    /// The median of a figure over the rounds.
    ///
    /// # Errors
    /// No round has it, and why.
    pub fn estimate(&self, figure: &str, seed: u64) -> Result<Estimate, String> {
        let of = |round: &Figures| round.iter().find(|(name, _)| *name == figure).map(|(_, value)| *value);
        let values: Vec<f64> = self.rounds.iter().flatten().filter_map(of).collect();
        estimate(&values, seed).ok_or_else(|| {
            let reason = self.rounds.iter().find_map(|round| round.as_ref().err());
            reason.cloned().unwrap_or_else(|| format!("no round has the figure {figure}"))
        })
    }
}

/// Runs a trial, all rounds.
pub fn run(subject: Subject, site: &Site, binaries: &Binaries, say: &dyn Fn(&str)) -> Finding {
    let rounds = (1..=subject.trial.rounds()).map(|round| {
        let found = run_once(subject, site, binaries);
        let text = match &found {
            Ok(figures) => {
                let shown = figures.iter().map(|(name, value)| format!("{name} {value:.3}"));
                shown.collect::<Vec<_>>().join(", ")
            }
            Err(reason) => format!("NO FIGURE: {reason}"),
        };
        say(&format!("{:?} {round}/{} {}: {text}", subject.trial, subject.trial.rounds(), subject.of));
        found
    });
    Finding { subject, rounds: rounds.collect() }
}

fn run_once(subject: Subject, site: &Site, binaries: &Binaries) -> Result<Figures, String> {
    match subject.trial {
        Trial::Fresh => staged(subject, site, binaries, &idle::fresh),
        Trial::IdleConnections => staged(subject, site, binaries, &idle::connections),
        Trial::Quiet => staged(subject, site, binaries, &quiet::watch),
        Trial::Downloads => staged(subject, site, binaries, &downloads::beside),
        Trial::Allocations => allocations::count(),
    }
}

fn staged(
    subject: Subject,
    site: &Site,
    binaries: &Binaries,
    measure: &dyn Fn(&Stage<'_>) -> Result<Figures, String>,
) -> Result<Figures, String> {
    let server = server::find(subject.of)?;
    let scenario = scenario::find(subject.scenario)?;
    let address = free_address(&mut 0)?;
    // A null server's answer need not be as long as ours here.
    let null_bytes = 150;
    let place = Place { binaries, site, address, null_bytes, workers: subject.trial.workers() };
    let order = Order { server, scenario, place, seconds: 1, wait_percent_max: 100.0 };
    let (_, running) = block::start(&order)?;
    let answer_bytes = block::checked_probe(&order)?.bytes;
    measure(&Stage { server: &running, address, answer_bytes, scenario, site })
}
