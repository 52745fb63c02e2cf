//! The course of one attack: quiet and waves in turn, so that the machine's own moods show on both sides; the last wave is watched
//! until all attackers are gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::attack::{Attack, QUIET, SETTLE, SPREAD, WAVE, WAVES};
use super::crowd::{self, Plan};
use super::ending::Tally;
use super::latency::Stretch;
use super::meter::{self, Cpu, Figures};
use super::normal::{Normal, Seen};
use super::script::Script;
use super::site::Site;
use super::source::Sources;
use crate::harness::process::settle_descriptors;
use crate::harness::random::Random;
use crate::harness::trouble::Outcome;

/// The normal clients' first moments are not counted: connections open, files come into memory.
const WARM_UP: Duration = Duration::from_millis(1_500);
/// How long the server has to see the first client's end.
const FIRST_END: Duration = Duration::from_secs(1);

/// Stretches of one kind, with the CPU spent in them.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// When.
    pub(super) stretches: Vec<Stretch>,
    /// At what cost.
    pub(super) cpu: Cpu,
}

/// What was seen of an attack.
#[derive(Debug)]
pub(super) struct Observed {
    /// The normal clients alone.
    pub(super) quiet: Side,
    /// The normal clients beside attackers.
    pub(super) attacked: Side,
    /// What the normal clients saw.
    pub(super) seen: Seen,
    /// The server before the first of them.
    pub(super) before: Figures,
    /// The server after the last wave, with its peak.
    pub(super) after: Figures,
    /// How the attackers of the last wave ended.
    pub(super) ends: Tally,
}

/// One attack on one server.
#[derive(Debug)]
pub(super) struct Course<'a> {
    /// The server.
    pub(super) site: &'a Site,
    /// The attack.
    pub(super) attack: &'static Attack,
    /// Its place in the catalogue.
    pub(super) index: usize,
    /// Seed of everything random.
    pub(super) seed: u64,
    /// How long the last wave is watched at most.
    pub(super) watch: Duration,
}

impl Course<'_> {
    /// Runs it.
    pub(super) fn run(&self) -> Outcome<Observed> {
        let server = &self.site.server;
        let (pid, port) = (server.pid(), server.address().port());
        let cold = server.snapshot().descriptors;
        let template = self.site.template()?;
        settle_descriptors(pid, cold, FIRST_END);
        let before = meter::figures(pid, port);
        let normal = Normal::start(server.address(), self.site.target, template);
        std::thread::sleep(WARM_UP);
        let (mut quiet, mut attacked) = (Side::default(), Side::default());
        let mut ends = Tally::default();
        for wave in 0..WAVES {
            std::thread::sleep(SETTLE);
            let rest = || std::thread::sleep(QUIET);
            meter::measured(pid, &mut quiet.cpu, &mut quiet.stretches, rest);
            let time = if wave + 1 == WAVES { self.watch } else { WAVE };
            let send = || self.wave(wave, time);
            ends = meter::measured(pid, &mut attacked.cpu, &mut attacked.stretches, send)?;
        }
        let seen = normal.finish()?;
        let after = meter::figures(pid, port);
        Ok(Observed { quiet, attacked, seen, before, after, ends })
    }

    /// On a thread of its own: the crowd lowers its priority.
    fn wave(&self, wave: usize, time: Duration) -> Outcome<Tally> {
        let plan = Plan {
            count: self.attack.count,
            spread: SPREAD,
            until: Instant::now() + time,
            sources: Sources::new(self.index, wave),
        };
        let address = self.site.server.address();
        let mut random = Random::stream(self.seed, wave as u64 + 1);
        let script = self.attack.script;
        let mut script_of = move |number: u64| -> Arc<Script> { script(&mut random, number) };
        std::thread::scope(|scope| {
            let crowd = scope.spawn(move || crowd::send(address, plan, &mut script_of));
            crowd.join().unwrap_or_else(|_| Err("the attackers panicked".to_owned().into()))
        })
    }
}
