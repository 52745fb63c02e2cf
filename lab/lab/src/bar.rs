//! The bar: the figures that the project holds itself to, measured.

use crate::binaries::Binaries;
use crate::compare::{Entry, Outcome, Plan};
use crate::idle;
use crate::report::{align, show};
use crate::scenario;
use crate::server;
use crate::statistics::Estimate;

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
    /// RSS of a fresh server with two workers, in MiB.
    Fresh {
        /// The server.
        of: &'static str,
    },
    /// Growth of RSS per idle connection, in bytes.
    Idle {
        /// The server.
        of: &'static str,
    },
    /// Not measured by this lab, for this reason.
    Missing(&'static str),
}

/// On which side of the figure the measured one must lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// At most.
    AtMost(f64),
    /// At least.
    AtLeast(f64),
}

/// One line of the bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    /// The scenario.
    pub scenario: &'static str,
    /// What is measured.
    pub measure: Measure,
    /// What it must be.
    pub figure: Figure,
}

const fn cpu(scenario: &'static str, over: &'static str, under: &'static str, figure: Figure) -> Case {
    Case { scenario, measure: Measure::Cpu { over, under }, figure }
}

const fn missing(scenario: &'static str, why: &'static str, figure: Figure) -> Case {
    Case { scenario, measure: Measure::Missing(why), figure }
}

const OURS: [&str; 2] = ["shearwater-epoll", "shearwater-uring"];
const NULL: [&str; 2] = ["null-epoll", "null-uring"];

/// All lines.
pub const CASES: &[Case] = &[
    cpu("plaintext", OURS[0], NULL[0], Figure::AtMost(1.06)),
    cpu("plaintext", OURS[1], NULL[1], Figure::AtMost(1.06)),
    Case {
        scenario: "plaintext",
        measure: Measure::Syscalls { of: OURS[0], less: NULL[0] },
        figure: Figure::AtMost(0.05),
    },
    Case {
        scenario: "plaintext",
        measure: Measure::Syscalls { of: OURS[1], less: NULL[1] },
        figure: Figure::AtMost(0.05),
    },
    cpu("plaintext-varied", OURS[0], NULL[0], Figure::AtMost(1.08)),
    cpu("plaintext-varied", OURS[1], NULL[1], Figure::AtMost(1.08)),
    cpu("1k", OURS[0], NULL[0], Figure::AtMost(1.08)),
    cpu("1k", OURS[1], NULL[1], Figure::AtMost(1.08)),
    cpu("1k", "nginx", OURS[0], Figure::AtLeast(1.4)),
    cpu("plaintext-x16", OURS[0], NULL[0], Figure::AtMost(1.30)),
    cpu("plaintext-x16", OURS[1], NULL[1], Figure::AtMost(1.30)),
    cpu("1k-x16", OURS[0], NULL[0], Figure::AtMost(1.35)),
    cpu("1k-x16", OURS[1], NULL[1], Figure::AtMost(1.35)),
    cpu("1k-x16", "nginx", OURS[0], Figure::AtLeast(7.0)),
    cpu("1k-churn", OURS[0], NULL[0], Figure::AtMost(1.08)),
    cpu("1k-churn", OURS[1], NULL[1], Figure::AtMost(1.08)),
    cpu("1k-churn", "nginx", OURS[0], Figure::AtLeast(1.12)),
    cpu("100k", "nginx", OURS[0], Figure::AtLeast(1.3)),
    cpu("1m", "nginx", OURS[0], Figure::AtLeast(1.0)),
    missing("1k", "lighttpd ÷ ours: not among the lab's servers", Figure::AtLeast(1.06)),
    missing("1k", "h2o ÷ ours: not among the lab's servers", Figure::AtLeast(1.06)),
    missing("1k", "static-web-server ÷ ours: not among the lab's servers", Figure::AtLeast(2.0)),
    missing("1k", "tower-http ServeDir ÷ ours: not among the lab's servers", Figure::AtLeast(6.0)),
    Case { scenario: "idle", measure: Measure::Idle { of: OURS[0] }, figure: Figure::AtMost(96.0) },
    Case { scenario: "idle", measure: Measure::Idle { of: OURS[1] }, figure: Figure::AtMost(96.0) },
    Case { scenario: "idle", measure: Measure::Fresh { of: OURS[0] }, figure: Figure::AtMost(8.0) },
    Case { scenario: "idle", measure: Measure::Fresh { of: OURS[1] }, figure: Figure::AtMost(8.0) },
    missing("idle", "wake-ups a second of an idle server: no such load", Figure::AtMost(1.0)),
    missing("1k", "allocations over 10,000 requests: counted by tests, not here", Figure::AtMost(0.0)),
    missing("1k", "p99 in ms beside 20 downloads: no such load", Figure::AtMost(5.0)),
];

/// What came of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Measured and on the right side.
    Held(Estimate),
    /// Measured and on the wrong side.
    Missed(Estimate),
    /// Not measured, for this reason.
    Unknown(String),
}

impl Figure {
    /// Whether a measured figure is on the right side.
    pub fn holds(self, measured: f64) -> bool {
        match self {
            Self::AtMost(figure) => measured <= figure,
            Self::AtLeast(figure) => measured >= figure,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtMost(figure) => format!("≤ {figure}"),
            Self::AtLeast(figure) => format!("≥ {figure}"),
        }
    }
}

impl Measure {
    /// What is measured, in a few words.
    pub fn text(self) -> String {
        match self {
            Self::Cpu { over, under } => format!("{over} ÷ {under}"),
            Self::Syscalls { of, less } => format!("syscalls {of} - {less}"),
            Self::Fresh { of } => format!("RSS MiB, fresh, 2 workers: {of}"),
            Self::Idle { of } => format!("RSS bytes per idle connection: {of}"),
            Self::Missing(why) => why.to_owned(),
        }
    }

    fn names(self) -> [Option<&'static str>; 2] {
        match self {
            Self::Cpu { over, under } => [Some(under), Some(over)],
            Self::Syscalls { of, less } => [Some(less), Some(of)],
            Self::Fresh { .. } | Self::Idle { .. } | Self::Missing(_) => [None, None],
        }
    }
}

/// The scenarios to be run, each once, with all servers that its lines name.
///
/// # Errors
/// A line that names what there is none of.
pub fn plans(blocks: u32, seconds: u32, seed: u64, wait_percent_max: f64) -> Result<Vec<Plan>, String> {
    let mut plans: Vec<Plan> = Vec::new();
    for case in CASES.iter().filter(|case| case.measure.names()[0].is_some()) {
        let at = match plans.iter().position(|plan| plan.scenario.name == case.scenario) {
            Some(at) => at,
            None => {
                let scenario = scenario::find(case.scenario)?;
                plans.push(Plan { scenario, servers: Vec::new(), blocks, seconds, seed, wait_percent_max });
                plans.len() - 1
            }
        };
        for name in case.measure.names().into_iter().flatten() {
            let server = server::find(name)?;
            if !plans[at].servers.contains(&server) {
                plans[at].servers.push(server);
            }
        }
    }
    Ok(plans)
}

/// What a line about memory has measured, or why nothing.
pub type Memory = (Measure, Result<f64, String>);

/// Measures the lines about memory.
pub fn measure_memory(binaries: &Binaries) -> Vec<Memory> {
    let measure = |case: &Case| {
        let measured = match case.measure {
            Measure::Fresh { of } => server::find(of).and_then(|server| idle::fresh_mib(server, binaries)),
            Measure::Idle { of } => {
                server::find(of).and_then(|server| idle::bytes_per_connection(server, binaries))
            }
            Measure::Cpu { .. } | Measure::Syscalls { .. } | Measure::Missing(_) => return None,
        };
        Some((case.measure, measured))
    };
    CASES.iter().filter_map(measure).collect()
}

/// Judges a line by what was measured.
pub fn judge(case: &Case, outcomes: &[Outcome], memory: &[Memory]) -> Verdict {
    match measured(case, outcomes, memory) {
        Ok(estimate) if case.figure.holds(estimate.median) => Verdict::Held(estimate),
        Ok(estimate) => Verdict::Missed(estimate),
        Err(reason) => Verdict::Unknown(reason),
    }
}

fn measured(case: &Case, outcomes: &[Outcome], memory: &[Memory]) -> Result<Estimate, String> {
    let outcome = || {
        let found = outcomes.iter().find(|outcome| outcome.plan.scenario.name == case.scenario);
        found.ok_or_else(|| "not run".to_owned())
    };
    let single = |median| Estimate { median, interval: None, values: 1 };
    match case.measure {
        Measure::Cpu { over, under } => {
            let outcome = outcome()?;
            let (over, under) = (entry(outcome, over)?, entry(outcome, under)?);
            outcome.ratio(over, under).ok_or_else(|| "no round in which both blocks count".to_owned())
        }
        Measure::Syscalls { of, less } => {
            let outcome = outcome()?;
            let count = |name| entry(outcome, name)?.syscalls.clone();
            Ok(single(count(of)? - count(less)?))
        }
        Measure::Fresh { .. } | Measure::Idle { .. } => {
            let found = memory.iter().find(|(measure, _)| *measure == case.measure);
            found.map_or_else(|| Err("not run".to_owned()), |(_, measured)| measured.clone()).map(single)
        }
        Measure::Missing(_) => Err("not measured".to_owned()),
    }
}

fn entry<'a>(outcome: &'a Outcome, name: &str) -> Result<&'a Entry, String> {
    outcome.entry(name).ok_or_else(|| format!("{name} was not run"))
}

/// The table.
pub fn render(outcomes: &[Outcome], memory: &[Memory]) -> String {
    let mut rows = vec![["scenario", "case", "wanted", "measured", "verdict"].map(str::to_owned)];
    for case in CASES {
        let (measured, verdict) = match judge(case, outcomes, memory) {
            Verdict::Held(estimate) => (show(estimate), "held".to_owned()),
            Verdict::Missed(estimate) => (show(estimate), "MISSED".to_owned()),
            Verdict::Unknown(reason) => ("-".to_owned(), reason),
        };
        rows.push([case.scenario.to_owned(), case.measure.text(), case.figure.text(), measured, verdict]);
    }
    align(&rows)
}
