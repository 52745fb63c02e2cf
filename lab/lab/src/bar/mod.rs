//! The bar: the figures that the project must meet. What is run for them, and how each is judged.

mod rows;
mod table;

use std::collections::BTreeMap;

use crate::compare::{self, Entry, Outcome, Plan};
use crate::folder::Folder;
use crate::instructions;
use crate::programs::Programs;
use crate::statistics::{Estimate, VALUES_MIN};
use crate::trials::{self, Finding, Subject};
use crate::{scenario, server};

pub(crate) use rows::select;
pub(crate) use table::{list, render};

/// Rounds in which system calls are counted, where a row needs them.
const SYSCALL_ROUNDS: u32 = 5;

/// A server's name and a scenario's.
type Pair = (&'static str, &'static str);

/// A measured quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Measure {
    /// CPU time per response of one server divided by that of another.
    Cpu { scenario: &'static str, over: &'static str, under: &'static str },
    /// System calls per response of one server minus those of another.
    Syscalls { scenario: &'static str, of: &'static str, less: &'static str },
    /// A figure of a trial of one server by itself.
    Trial { subject: Subject, figure: &'static str, about: &'static str },
    /// User instructions per request, compared with those of another server or scenario.
    Instructions { of: Pair, base: Pair, is_ratio: bool },
}

/// Bound of a measured quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Figure {
    AtMost(f64),
    AtLeast(f64),
    /// Less, with the whole interval: a claim that noise must not make.
    Below(f64),
    /// Shown for information.
    Shown,
}

/// One row of the bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row {
    /// Name for `--only`.
    pub(crate) name: &'static str,
    pub(crate) measure: Measure,
    pub(crate) figure: Figure,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Met(Estimate),
    Missed(Estimate),
    Shown(Estimate),
    /// Not measured, for this reason.
    NotMeasured(String),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) blocks: u32,
    pub(crate) seconds: u32,
    pub(crate) seed: u64,
    pub(crate) wait_percent_max: Option<f64>,
}

/// All that must be run: each scenario once with all servers that its rows name, each trial and each count once.
#[derive(Debug, Clone)]
pub(crate) struct Agenda {
    settings: Settings,
    plans: Vec<Plan>,
    trials: Vec<Subject>,
    instructions: Vec<Pair>,
}

/// All that was measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measured {
    seed: u64,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) trials: Vec<Finding>,
    pub(crate) instructions: BTreeMap<Pair, Result<f64, String>>,
}

impl Figure {
    fn is_met_by(self, measured: f64) -> bool {
        match self {
            Self::AtMost(figure) => measured <= figure,
            Self::AtLeast(figure) => measured >= figure,
            Self::Below(figure) => measured < figure,
            Self::Shown => true,
        }
    }

    /// Returns true if the interval lies on one side of the bound.
    fn is_clear_of(self, estimate: &Estimate) -> bool {
        estimate.low.zip(estimate.high).is_none_or(|(low, high)| self.is_met_by(low) == self.is_met_by(high))
    }

    pub(crate) fn text(self) -> String {
        match self {
            Self::AtMost(figure) => format!("≤ {figure}"),
            Self::AtLeast(figure) => format!("≥ {figure}"),
            Self::Below(figure) => format!("< {figure}, all of it"),
            Self::Shown => "-".to_owned(),
        }
    }
}

impl Measure {
    pub(crate) fn scenario(self) -> &'static str {
        match self {
            Self::Cpu { scenario, .. } | Self::Syscalls { scenario, .. } => scenario,
            Self::Trial { .. } => trials::SCENARIO,
            Self::Instructions { of: (_, scenario), .. } => scenario,
        }
    }

    pub(crate) fn text(self) -> String {
        match self {
            Self::Cpu { over, under, .. } => format!("{over} ÷ {under}"),
            Self::Syscalls { of, less, .. } => format!("syscalls a response: {of} - {less}"),
            Self::Trial { subject, about, .. } => format!("{about}: {}", subject.server),
            Self::Instructions { of, base, is_ratio } => {
                let base = if base.1 == of.1 { base.0.to_owned() } else { format!("{} {}", base.0, base.1) };
                format!("instructions a request: {} {} {base}", of.0, if is_ratio { "÷" } else { "-" })
            }
        }
    }
}

impl Verdict {
    /// Returns the verdict in a word, and says so where the interval crosses the bound.
    pub(crate) fn text(&self, figure: Figure) -> String {
        match self {
            Self::Met(estimate) if figure.is_clear_of(estimate) => "met".to_owned(),
            Self::Met(_) => "met, within noise".to_owned(),
            Self::Missed(estimate) if figure.is_clear_of(estimate) => "MISSED".to_owned(),
            Self::Missed(_) => "MISSED, within noise".to_owned(),
            Self::Shown(_) => "for information".to_owned(),
            Self::NotMeasured(reason) => format!("NOT MEASURED: {reason}"),
        }
    }

    pub(crate) fn estimate(&self) -> Option<Estimate> {
        match self {
            Self::Met(estimate) | Self::Missed(estimate) | Self::Shown(estimate) => Some(*estimate),
            Self::NotMeasured(_) => None,
        }
    }

    /// Returns true unless a bound was missed or not measured.
    pub(crate) fn is_met(&self) -> bool {
        matches!(self, Self::Met(_) | Self::Shown(_))
    }
}

impl Agenda {
    pub(crate) fn of(rows: &[&Row], settings: Settings) -> Result<Self, String> {
        let mut agenda = Self { settings, plans: Vec::new(), trials: Vec::new(), instructions: Vec::new() };
        for row in rows {
            match row.measure {
                Measure::Cpu { scenario, over, under } => drop(agenda.plan(scenario, [under, over])?),
                Measure::Syscalls { scenario, of, less } => {
                    agenda.plan(scenario, [less, of])?.syscall_rounds = SYSCALL_ROUNDS;
                }
                Measure::Trial { subject, .. } if agenda.trials.contains(&subject) => {}
                Measure::Trial { subject, .. } => agenda.trials.push(subject),
                Measure::Instructions { of, base, .. } => agenda.instructions.extend([base, of]),
            }
        }
        agenda.instructions.sort_unstable();
        agenda.instructions.dedup();
        Ok(agenda)
    }

    /// Adds servers to the plan of a scenario.
    fn plan(&mut self, name: &str, servers: [&str; 2]) -> Result<&mut Plan, String> {
        let scenario = scenario::find(name)?;
        let at = self.plans.iter().position(|plan| plan.scenario == scenario).unwrap_or_else(|| {
            let Settings { blocks, seconds, seed, wait_percent_max } = self.settings;
            let (servers, syscall_rounds) = (Vec::new(), 0);
            self.plans.push(Plan {
                scenario,
                servers,
                blocks,
                seconds,
                seed,
                wait_percent_max,
                syscall_rounds,
            });
            self.plans.len() - 1
        });
        let plan = &mut self.plans[at];
        for name in servers {
            let server = server::find(name)?;
            if !plan.servers.contains(&server) {
                plan.servers.push(server);
            }
        }
        Ok(plan)
    }

    /// Returns the seconds that it takes if all blocks count.
    pub(crate) fn estimated_s(&self) -> f64 {
        let trials = self.trials.iter().map(|subject| subject.trial.estimated_s());
        let plans = self.plans.iter().map(Plan::estimated_s);
        plans.chain(trials).sum::<f64>() + self.instructions.len() as f64 * instructions::ESTIMATED_S
    }

    /// Runs everything. Errors are those of our own server, whose responses give the null servers their length.
    pub(crate) fn run(self, programs: &Programs) -> Result<Measured, String> {
        let mut measured = Measured { seed: self.settings.seed, ..Measured::default() };
        for plan in self.plans {
            crate::progress(&format!("{}: about {:.0} s", plan.scenario.name, plan.estimated_s()));
            measured.outcomes.push(compare::run(plan, programs)?);
        }
        // One folder for all: the large files are written once.
        let folder = Folder::create()?;
        measured.trials =
            self.trials.into_iter().map(|subject| trials::run(subject, &folder, programs)).collect();
        for (server, scenario) in self.instructions {
            crate::progress(&format!("instructions: {server}, {scenario}"));
            let count = instructions::per_request(server, scenario, &folder, programs);
            measured.instructions.insert((server, scenario), count);
        }
        Ok(measured)
    }
}

impl Measured {
    pub(crate) fn judge(&self, row: &Row) -> Verdict {
        let estimate = match self.estimate(row.measure) {
            Ok(estimate) => estimate,
            Err(reason) => return Verdict::NotMeasured(reason),
        };
        match (row.figure, estimate.high) {
            (Figure::Shown, _) => Verdict::Shown(estimate),
            (Figure::Below(_), None) => {
                let values = estimate.values;
                Verdict::NotMeasured(format!("{values} of {VALUES_MIN} values that an interval needs"))
            }
            (Figure::Below(_), Some(high)) if row.figure.is_met_by(high) => Verdict::Met(estimate),
            (Figure::AtMost(_) | Figure::AtLeast(_), _) if row.figure.is_met_by(estimate.median) => {
                Verdict::Met(estimate)
            }
            _ => Verdict::Missed(estimate),
        }
    }

    fn estimate(&self, measure: Measure) -> Result<Estimate, String> {
        let outcome = |scenario: &str| {
            let found = self.outcomes.iter().find(|outcome| outcome.plan.scenario.name == scenario);
            found.ok_or_else(|| "not run".to_owned())
        };
        match measure {
            Measure::Cpu { scenario, over, under } => {
                let outcome = outcome(scenario)?;
                let ratio = outcome.ratio(entry(outcome, over)?, entry(outcome, under)?);
                enough(ratio.ok_or("no round in which both blocks count")?, outcome.plan.blocks)
            }
            Measure::Syscalls { scenario, of, less } => {
                let outcome = outcome(scenario)?;
                let more = outcome.syscalls_more(entry(outcome, of)?, entry(outcome, less)?)?;
                enough(more, outcome.plan.syscall_rounds)
            }
            Measure::Trial { subject, figure, .. } => {
                let finding =
                    self.trials.iter().find(|finding| finding.subject == subject).ok_or("not run")?;
                enough(finding.estimate(figure, self.seed)?, subject.trial.rounds())
            }
            Measure::Instructions { of, base, is_ratio } => {
                let count = |pair| self.instructions.get(&pair).cloned().unwrap_or(Err("not run".to_owned()));
                let (of, base) = (count(of)?, count(base)?);
                let median = if is_ratio { of / base } else { of - base };
                Ok(Estimate { median, low: None, high: None, values: 1 })
            }
        }
    }
}

/// Requires half of the rounds, and as many as an interval needs where they were run: the rest of a disturbed run is chance.
fn enough(estimate: Estimate, rounds: u32) -> Result<Estimate, String> {
    let rounds = rounds as usize;
    let least = rounds.div_ceil(2).max(rounds.min(VALUES_MIN));
    match estimate.values {
        values if values < least => Err(format!("{values} of {rounds} rounds count, {least} are needed")),
        _ => Ok(estimate),
    }
}

fn entry<'a>(outcome: &'a Outcome, name: &str) -> Result<&'a Entry, String> {
    outcome.entry(name).ok_or_else(|| format!("{name} was not run"))
}

#[cfg(test)]
mod tests;
