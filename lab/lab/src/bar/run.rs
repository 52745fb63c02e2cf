//! What the rows need run: each scenario once, with all servers that its rows name, and each trial once.

use super::{Case, Measure};
use crate::alone::{self, Finding, Subject};
use crate::binaries::Binaries;
use crate::compare::{self, Outcome, Plan};
use crate::site::Site;
use crate::{scenario, server};

/// Rounds in which system calls are counted, where a row asks for them.
const SYSCALL_ROUNDS: u32 = 5;

/// How it is run.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Rounds of blocks.
    pub blocks: u32,
    /// Length of a block's window.
    pub seconds: u32,
    /// For orders and intervals.
    pub seed: u64,
    /// The bound on run-queue wait in per cent; none: the scenario's own.
    pub wait_percent_max: Option<f64>,
}

/// All that is to be run.
#[derive(Debug, Clone)]
pub struct Agenda {
    /// The comparisons.
    pub plans: Vec<Plan>,
    /// The trials.
    pub subjects: Vec<Subject>,
}

impl Agenda {
    /// What the rows need.
    ///
    /// # Errors
    /// A row that names what there is none of.
    pub fn of(cases: &[&Case], settings: Settings) -> Result<Self, String> {
        let mut agenda = Self { plans: Vec::new(), subjects: Vec::new() };
        for case in cases {
            match case.measure {
                Measure::Cpu { over, under } => {
                    let plan = agenda.plan(case.scenario, settings)?;
                    add(plan, &[under, over])?;
                }
                Measure::Syscalls { of, less } => {
                    let plan = agenda.plan(case.scenario, settings)?;
                    plan.syscall_rounds = SYSCALL_ROUNDS;
                    add(plan, &[less, of])?;
                }
                Measure::Alone { subject, .. } => {
                    if !agenda.subjects.contains(&subject) {
                        agenda.subjects.push(subject);
                    }
                }
            }
        }
        Ok(agenda)
    }

    fn plan(&mut self, name: &str, settings: Settings) -> Result<&mut Plan, String> {
        let scenario = scenario::find(name)?;
        let at = self.plans.iter().position(|plan| plan.scenario == scenario);
        let at = at.unwrap_or_else(|| {
            let Settings { blocks, seconds, seed, wait_percent_max } = settings;
            let servers = Vec::new();
            self.plans.push(Plan {
                scenario,
                servers,
                blocks,
                seconds,
                seed,
                wait_percent_max,
                syscall_rounds: 0,
            });
            self.plans.len() - 1
        });
        Ok(&mut self.plans[at])
    }

    /// How long it will take in seconds, about.
    pub fn estimated_s(&self) -> f64 {
        let trial = |subject: &Subject| f64::from(subject.trial.rounds()) * subject.trial.estimated_s();
        let plans: f64 = self.plans.iter().map(Plan::estimated_s).sum();
        plans + self.subjects.iter().map(trial).sum::<f64>()
    }

    /// Runs everything; progress goes to `say`.
    ///
    /// # Errors
    /// Our own server, whose answers give the null servers their length, does not run.
    pub fn run(
        self,
        binaries: &Binaries,
        say: &dyn Fn(&str),
    ) -> Result<(Vec<Outcome>, Vec<Finding>), String> {
        let mut outcomes = Vec::with_capacity(self.plans.len());
        for plan in self.plans {
            say(&format!("{}: about {:.0} s", plan.scenario.name, plan.estimated_s()));
            outcomes.push(compare::run(plan, binaries, say)?);
        }
        // One for all: the large files are written once.
        let site = Site::create().map_err(|error| format!("the site's folder: {error}"))?;
        let findings = self.subjects.iter().map(|subject| alone::run(*subject, &site, binaries, say));
        Ok((outcomes, findings.collect()))
    }
}

fn add(plan: &mut Plan, names: &[&str]) -> Result<(), String> {
    for name in names {
        let server = server::find(name)?;
        if !plan.servers.contains(&server) {
            plan.servers.push(server);
        }
    }
    Ok(())
}
