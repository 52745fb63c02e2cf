//! How a profile is made: programs that trace themselves are built, trained, and their traces merged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pgo::build::{self, TRAINED, Way};
use pgo::place::Place;
use pgo::profile::{self, Profile};
use pgo::stamp::Stamp;
use pgo::toolchain::Toolchain;

use super::training::Training;
use super::{say, succeed};
use crate::harness::drivers::Drivers;
use crate::harness::trouble::{During, Outcome};

/// What is trained beside what may be guided: the example that takes bodies, since the soak needs it.
const SOAKED: [&str; 2] = ["--example", "trial_server"];
/// How many programs these are together: each leaves a trace.
const TRACES: usize = 4;

/// What is to be made.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    /// Where everything lies.
    pub(super) place: &'a Place,
    /// What builds and merges.
    pub(super) toolchain: &'a Toolchain,
    /// Which drivers are trained.
    pub(super) driver: Drivers,
    /// Seed of everything random.
    pub(super) seed: u64,
}

impl Plan<'_> {
    /// Makes it. There is none afterwards if anything fails.
    pub(super) fn run(&self) -> Outcome<Profile> {
        let Self { place, toolchain, .. } = *self;
        let merger = toolchain.merger()?;
        let stamp = Stamp::now(place.root(), toolchain)?;
        profile::remove(place)?;
        fs::create_dir_all(place.traces()).during("making a folder for the traces")?;
        say("1 of 3: building programs that trace themselves");
        succeed(build::command(place, toolchain, Way::Tracing, &[TRAINED.as_slice(), &SOAKED].concat()))?;
        say("2 of 3: training them");
        let programs = build::programs(place, toolchain, Way::Tracing);
        let training = Training { programs: &programs, driver: self.driver, seed: self.seed };
        let answers = training.run()?;
        say(&format!("{answers} answers, all of them right"));
        say("3 of 3: merging their traces");
        let merged = self.merge(&merger)?;
        if Stamp::now(place.root(), toolchain)? != stamp {
            return Err("the sources were changed meanwhile: this profile is of no use, make another".into());
        }
        Ok(profile::keep(place, &merged, &stamp)?)
    }

    fn merge(&self, merger: &Path) -> Outcome<PathBuf> {
        let traces = self.traces()?;
        let merged = self.place.folder().join("merged");
        let mut command = Command::new(merger);
        command.args(["merge", "--output"]).arg(&merged).args(traces);
        succeed(command)?;
        Ok(merged)
    }

    /// What the programs left: one that left none has trained nothing.
    fn traces(&self) -> Outcome<Vec<PathBuf>> {
        let mut traces = Vec::new();
        for entry in fs::read_dir(self.place.traces()).during("looking for traces")? {
            traces.push(entry.during("looking for traces")?.path());
        }
        if traces.len() == TRACES {
            return Ok(traces);
        }
        Err(format!(
            "{} traces of {TRACES} programs; is LLVM_PROFILE_FILE set to somewhere else?",
            traces.len()
        )
        .into())
    }
}
