//! The bar: the figures that the project holds itself to. What is measured, what it must be, and what came of it.

pub mod cases;
pub mod run;
pub mod table;

use crate::alone::{Finding, Subject};
use crate::compare::{Entry, Outcome};
use crate::statistics::{Estimate, VALUES_MIN};

/// What is held against the figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// CPU time per response of one server over that of another.
    Cpu {
        /// Above the line.
        over: &'static str,
        /// Below the line.
        under: &'static str,
    },
    /// System calls per response of one server, less those of another.
    Syscalls {
        /// The server.
        of: &'static str,
        /// What is taken away.
        less: &'static str,
    },
    /// A figure of a trial of one server by itself.
    Alone {
        /// The trial; its scenario is the case's.
        subject: Subject,
        /// The name of the figure among those it finds.
        figure: &'static str,
        /// What it is, in a few words.
        about: &'static str,
    },
}

/// On which side of the figure the measured one must lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// At most.
    AtMost(f64),
    /// At least.
    AtLeast(f64),
    /// Less, with the whole interval: a claim to be less than something at all, which noise must not make.
    Below(f64),
    /// Shown beside the others; nothing is held against it.
    Shown,
}

/// One row of the bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    /// As typed after `--only`.
    pub name: &'static str,
    /// The scenario.
    pub scenario: &'static str,
    /// What is measured.
    pub measure: Measure,
    /// What it must be.
    pub figure: Figure,
}

/// What came of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Measured and on the right side.
    Met(Estimate),
    /// Measured and on the wrong side.
    Missed(Estimate),
    /// Measured, and held against nothing.
    Shown(Estimate),
    /// Not measured, for this reason.
    NotMeasured(String),
}

impl Figure {
    /// Whether a measured figure is on the right side.
    pub fn is_met_by(self, measured: f64) -> bool {
        match self {
            Self::AtMost(figure) => measured <= figure,
            Self::AtLeast(figure) => measured >= figure,
            Self::Below(figure) => measured < figure,
            Self::Shown => true,
        }
    }

    /// Whether what was measured meets it: by its median, or by its whole interval where that is asked for.
    pub fn holds_for(self, estimate: Estimate) -> bool {
        match self {
            Self::Below(_) => estimate.interval.is_some_and(|(_, high)| self.is_met_by(high)),
            _ => self.is_met_by(estimate.median),
        }
    }

    /// Whether an interval lies on one side.
    pub fn is_clear_of(self, interval: Option<(f64, f64)>) -> bool {
        interval.is_none_or(|(low, high)| self.is_met_by(low) == self.is_met_by(high))
    }

    /// As the table shows it.
    pub fn text(self) -> String {
        match self {
            Self::AtMost(figure) => format!("≤ {figure}"),
            Self::AtLeast(figure) => format!("≥ {figure}"),
            Self::Below(figure) => format!("< {figure}, all of it"),
            Self::Shown => "-".to_owned(),
        }
    }
}

impl Measure {
    /// What is measured, in a few words.
    pub fn text(self) -> String {
        match self {
            Self::Cpu { over, under } => format!("{over} ÷ {under}"),
            Self::Syscalls { of, less } => format!("syscalls a response: {of} - {less}"),
            Self::Alone { subject, about, .. } => format!("{about}: {}", subject.of),
        }
    }
}

impl Verdict {
    /// In a word; where the interval reaches over the figure, it says so.
    pub fn text(&self, figure: Figure) -> String {
        let sure = |estimate: &Estimate| figure.is_clear_of(estimate.interval);
        match self {
            Self::Met(estimate) if sure(estimate) => "met".to_owned(),
            Self::Met(_) => "met, within noise".to_owned(),
            Self::Missed(estimate) if sure(estimate) => "MISSED".to_owned(),
            Self::Missed(_) => "MISSED, within noise".to_owned(),
            Self::Shown(_) => "for information".to_owned(),
            Self::NotMeasured(reason) => format!("NOT MEASURED: {reason}"),
        }
    }

    /// The figure, if there is one.
    pub fn estimate(&self) -> Option<Estimate> {
        match self {
            Self::Met(estimate) | Self::Missed(estimate) | Self::Shown(estimate) => Some(*estimate),
            Self::NotMeasured(_) => None,
        }
    }
}

/// Judges a row by what was measured.
pub fn judge(case: &Case, outcomes: &[Outcome], findings: &[Finding], seed: u64) -> Verdict {
    match measured(case, outcomes, findings, seed) {
        Ok(estimate) if case.figure == Figure::Shown => Verdict::Shown(estimate),
        Ok(Estimate { interval: None, values, .. }) if matches!(case.figure, Figure::Below(_)) => {
            Verdict::NotMeasured(format!("{values} of {VALUES_MIN} values that an interval needs"))
        }
        Ok(estimate) if case.figure.holds_for(estimate) => Verdict::Met(estimate),
        Ok(estimate) => Verdict::Missed(estimate),
        Err(reason) => Verdict::NotMeasured(reason),
    }
}

fn measured(case: &Case, outcomes: &[Outcome], findings: &[Finding], seed: u64) -> Result<Estimate, String> {
    let outcome = || {
        let found = outcomes.iter().find(|outcome| outcome.plan.scenario.name == case.scenario);
        found.ok_or_else(|| "not run".to_owned())
    };
    match case.measure {
        Measure::Cpu { over, under } => {
            let outcome = outcome()?;
            let (over, under) = (entry(outcome, over)?, entry(outcome, under)?);
            let ratio = outcome.ratio(over, under);
            enough(ratio.ok_or("no round in which both blocks count")?, outcome.plan.blocks)
        }
        Measure::Syscalls { of, less } => {
            let outcome = outcome()?;
            let more = outcome.syscalls_more(entry(outcome, of)?, entry(outcome, less)?)?;
            enough(more, outcome.plan.syscall_rounds)
        }
        Measure::Alone { subject, figure, .. } => {
            let finding = findings.iter().find(|finding| finding.subject == subject).ok_or("not run")?;
            enough(finding.estimate(figure, seed)?, subject.trial.rounds())
        }
    }
}

/// A figure rests on half of the rounds that were asked for, and on so many that it has an interval where they were asked for:
/// what is left of a disturbed run is chance.
fn enough(estimate: Estimate, rounds: u32) -> Result<Estimate, String> {
    let rounds = rounds as usize;
    let least = rounds.div_ceil(2).max(rounds.min(VALUES_MIN));
    match estimate.values {
        values if values < least => Err(format!("{values} of {rounds} rounds count, {least} have to")),
        _ => Ok(estimate),
    }
}

fn entry<'a>(outcome: &'a Outcome, name: &str) -> Result<&'a Entry, String> {
    outcome.entry(name).ok_or_else(|| format!("{name} was not run"))
}
