//! What the programs are trained with: the soak's connections of every kind, and visitors as browsers and tools are.

use std::path::Path;

use super::question::Question;
use super::visits::{Visits, visit};
use super::{handlers, pages, say};
use crate::harness::common::Common;
use crate::harness::drivers::Drivers;
use crate::harness::folder::Folder;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::Outcome;
use crate::soak;

/// Connections and answers of the soak, of each driver, beside its warm-up's.
const SOAKED: (u64, u64) = (50_000, 5_000);
/// Answers to visitors of each server, of each driver.
const VISITED: u64 = 120_000;
/// One worker: threads that count at the same place at once lose some.
const WORKERS: u32 = 1;

/// One training.
#[derive(Debug)]
pub(super) struct Training<'a> {
    /// Where the programs lie.
    pub(super) programs: &'a Path,
    /// Which drivers.
    pub(super) driver: Drivers,
    /// Seed of everything random.
    pub(super) seed: u64,
}

impl Training<'_> {
    /// Trains all programs, and gives how many answers visitors got beside the soak's.
    pub(super) fn run(&self) -> Outcome<u64> {
        let mut answers = 0;
        for driver in self.driver.names() {
            say(&format!("{driver}: the soak"));
            self.soak(driver)?;
            say(&format!("{driver}: visitors of files"));
            answers += self.visit_files(driver)?;
            for example in ["kinds", "plaintext"] {
                say(&format!("{driver}: visitors of handlers, {example}"));
                answers += self.visit_handlers(driver, example)?;
            }
        }
        Ok(answers)
    }

    fn common(&self, driver: &str, example: &str) -> Common {
        Common {
            server_bin: Some(self.programs.join("shearwater")),
            example_bin: Some(self.programs.join("examples").join(example)),
            workers: WORKERS,
            driver: driver.to_owned(),
            seed: self.seed,
            json: false,
            keep: false,
        }
    }

    fn soak(&self, driver: &str) -> Outcome<()> {
        let common = self.common(driver, "trial_server");
        passed(&soak::once(&common, SOAKED, driver)?, &format!("{driver}: the soak"))
    }

    fn visit_files(&self, driver: &str) -> Outcome<u64> {
        let folder = Folder::new(false)?;
        let pages = pages::write(&folder, self.seed)?;
        let server =
            Server::serve_folder(&self.common(driver, "kinds"), &folder.path().join("public"), &folder)?;
        let questions = pages::questions(&pages, server.address())?;
        self.visit(server, &questions, &format!("{driver}: visitors of files"))
    }

    fn visit_handlers(&self, driver: &str, example: &str) -> Outcome<u64> {
        let folder = Folder::new(false)?;
        let server = Server::example(&self.common(driver, example), &[], &folder)?;
        let questions = match example {
            "kinds" => handlers::of_each_kind(self.seed),
            _ => handlers::of_a_router(),
        };
        self.visit(server, &questions, &format!("{driver}: visitors of handlers, {example}"))
    }

    fn visit(&self, server: Server, questions: &[Question], name: &str) -> Outcome<u64> {
        let visits = Visits { address: server.address(), answers: VISITED, seed: self.seed };
        let answers = visit(&visits, questions).map_err(|wrong| format!("{name}: {wrong}"))?;
        let mut report = Report::new();
        server.stop(&mut report)?;
        passed(&report, name)?;
        Ok(answers)
    }
}

/// What did not go well trains the wrong ways.
fn passed(report: &Report, name: &str) -> Outcome<()> {
    if report.passed() {
        return Ok(());
    }
    report.print(name, false);
    Err(format!("{name} failed, see above: there is no profile").into())
}
