//! How a profile is made: programs that trace themselves are built, trained, and their traces merged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Error, Result, ensure};
use pgo::build::{self, TRAINED, Way};
use pgo::place::Place;
use pgo::profile::{self, Profile};
use pgo::stamp::Stamp;
use pgo::toolchain::Toolchain;

use super::training::Training;
use super::{Drivers, say, succeed};

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
    pub(super) fn run(&self) -> Result<Profile> {
        let Self { place, toolchain, .. } = *self;
        let merger = toolchain.merger().map_err(Error::msg)?;
        let now = || Stamp::now(place.root(), toolchain).map_err(Error::msg);
        let stamp = now()?;
        profile::remove(place).map_err(Error::msg)?;
        fs::create_dir_all(place.traces()).context("making a folder for the traces")?;
        say("1 of 3: building programs that trace themselves");
        succeed(build::command(place, toolchain, Way::Tracing, &[TRAINED.as_slice(), &SOAKED].concat()))?;
        say("2 of 3: training them");
        let programs = build::programs(place, toolchain, Way::Tracing);
        let training = Training { programs: &programs, driver: self.driver, seed: self.seed };
        let answers = training.run()?;
        say(&format!("{answers} answers, all of them right"));
        say("3 of 3: merging their traces");
        let merged = self.merge(&merger)?;
        ensure!(now()? == stamp, "the sources changed during the training: start again");
        profile::keep(place, &merged, &stamp).map_err(Error::msg)
    }

    fn merge(&self, merger: &Path) -> Result<PathBuf> {
        let traces = self.traces()?;
        let merged = self.place.folder().join("merged");
        let mut command = Command::new(merger);
        command.args(["merge", "--output"]).arg(&merged).args(traces);
        succeed(command)?;
        Ok(merged)
    }

    /// What the programs left: one that left none has trained nothing.
    fn traces(&self) -> Result<Vec<PathBuf>> {
        let mut traces = Vec::new();
        for entry in fs::read_dir(self.place.traces()).context("looking for traces")? {
            traces.push(entry.context("looking for traces")?.path());
        }
        let count = traces.len();
        ensure!(
            count == TRACES,
            "{count} traces of {TRACES} programs; is LLVM_PROFILE_FILE set to somewhere else?"
        );
        Ok(traces)
    }
}
