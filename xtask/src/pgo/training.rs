//! What the programs are trained with: connections of every kind (`cargo e2e soak`), and visitors as browsers and tools are.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Error, Result, ensure};
use testkit::{Program, free_address};

use super::question::Question;
use super::visits::{Visits, visit};
use super::{Drivers, handlers, pages, say, succeed};

/// Seconds of connections of every kind, of each driver, beside their warm-up.
const SOAK_SECONDS: &str = "5";
/// Answers to visitors of each server, of each driver.
const VISITED: u64 = 120_000;
/// One worker: threads that count at the same place at once lose some.
const WORKERS: &str = "1";
/// Time that a server without work may take to exit.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// One training.
#[derive(Debug)]
pub(super) struct Training<'a> {
    /// Folder of the programs.
    pub(super) programs: &'a Path,
    /// Which drivers.
    pub(super) driver: Drivers,
    /// Seed of everything random.
    pub(super) seed: u64,
}

impl Training<'_> {
    /// Trains all programs. Returns the number of responses to visitors.
    pub(super) fn run(&self) -> Result<u64> {
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

    fn soak(&self, driver: &str) -> Result<()> {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["run", "--quiet", "--release", "--package", "e2e", "--", "soak", "--driver", driver]);
        command.args(["--for", SOAK_SECONDS, "--workers", WORKERS, "--seed", &self.seed.to_string()]);
        command.arg("--server-bin").arg(self.programs.join("shearwater"));
        command.arg("--example-bin").arg(self.programs.join("examples/trial_server"));
        succeed(command)
    }

    fn visit_files(&self, driver: &str) -> Result<u64> {
        let folder = tempfile::tempdir()?;
        let root = folder.path().join("public");
        let pages = pages::write(&root, self.seed)?;
        let address = free_address()?;
        let mut command = Command::new(self.programs.join("shearwater"));
        command.arg(&root).args(["--listen", &address.to_string(), "--workers", WORKERS, "--driver", driver]);
        let server = Program::start(command, address, &folder.path().join("log"))?;
        let questions = pages::questions(&pages, address)?;
        self.visit(server, &questions, &format!("{driver}: visitors of files"))
    }

    fn visit_handlers(&self, driver: &str, example: &str) -> Result<u64> {
        let folder = tempfile::tempdir()?;
        let address = free_address()?;
        let mut command = Command::new(self.programs.join("examples").join(example));
        command.env("SHEARWATER_LISTEN", address.to_string());
        command.env("SHEARWATER_WORKERS", WORKERS).env("SHEARWATER_DRIVER", driver);
        let server = Program::start(command, address, &folder.path().join("log"))?;
        let questions = match example {
            "kinds" => handlers::of_each_kind(self.seed),
            _ => handlers::of_a_router(),
        };
        self.visit(server, &questions, &format!("{driver}: visitors of handlers, {example}"))
    }

    /// Visits a server and stops it. Wrong responses and a failed exit train the wrong ways.
    fn visit(&self, mut server: Program, questions: &[Question], name: &str) -> Result<u64> {
        let visits = Visits { address: server.address(), answers: VISITED, seed: self.seed };
        let answers = visit(&visits, questions).map_err(|wrong| Error::msg(format!("{name}: {wrong}")))?;
        let status = server.stop(STOP_TIMEOUT);
        ensure!(status.is_some_and(|status| status.success()), "{name}: exit {status:?}: {}", server.log());
        Ok(answers)
    }
}
