//! What is left of an attack a minute later. Servers rest side by side meanwhile, and further attacks go on against others.

use std::time::{Duration, Instant};

use super::attack::Attack;
use super::course::Observed;
use super::meter::{self, Figures};
use super::site::Site;
use crate::harness::process::{core_percent, cpu_ns};
use crate::harness::report::Report;
use crate::harness::trouble::Outcome;

/// How long a server rests before it is looked at.
const REST: Duration = Duration::from_secs(60);

/// A server after its attack.
#[derive(Debug)]
pub(super) struct Resting {
    site: Site,
    /// The driver it was started with.
    pub(super) driver: &'static str,
    /// The attack it has gone through.
    pub(super) attack: &'static Attack,
    /// What was seen of it.
    pub(super) observed: Observed,
    since: Instant,
    cpu_ns: Option<u64>,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Left {
    /// The server's figures.
    pub(super) figures: Figures,
    /// Its CPU while it rested, per cent of a core.
    pub(super) cpu_percent: Option<f64>,
    /// Whether it still answers rightly; why not, otherwise.
    pub(super) answers: Result<(), String>,
    /// Whether it was alive, and ended by `SIGTERM` as it should.
    pub(super) ended: bool,
}

impl Resting {
    /// Begins its rest.
    pub(super) fn new(site: Site, driver: &'static str, attack: &'static Attack, observed: Observed) -> Self {
        let cpu_ns = cpu_ns(site.server.pid());
        Self { site, driver, attack, observed, since: Instant::now(), cpu_ns }
    }

    /// How long it has to rest still.
    pub(super) fn remaining(&self) -> Duration {
        REST.saturating_sub(self.since.elapsed())
    }

    /// Looks at it and ends it.
    pub(super) fn look(self) -> Outcome<(Observed, Left)> {
        let Self { site, observed, since, cpu_ns: spent, .. } = self;
        let pid = site.server.pid();
        let cpu_percent = core_percent(spent, cpu_ns(pid), since.elapsed());
        let figures = meter::figures(pid, site.server.address().port());
        let answers = site.template().map(|_| ()).map_err(|trouble| trouble.to_string());
        let mut report = Report::new();
        site.server.stop(&mut report)?;
        Ok((observed, Left { figures, cpu_percent, answers, ended: report.passed() }))
    }
}
