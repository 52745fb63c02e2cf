//! Which of the server's drivers a command tries, one run each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::common::Common;
use super::report::{self, Report};
use super::trouble::Outcome;

/// Exit code where a command could not be run.
pub(crate) const NOT_RUN: u8 = 2;

/// The drivers to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Drivers {
    /// epoll alone
    Epoll,
    /// io_uring alone
    Uring,
    /// First epoll, then io_uring
    Both,
}

/// The options of commands that run whole for each driver.
#[derive(Debug, clap::Args)]
pub(crate) struct DriverArgs {
    /// Which drivers, one whole run each
    #[arg(long, value_enum, default_value_t = Drivers::Both)]
    driver: Drivers,
    /// Worker threads of a server
    #[arg(long, default_value_t = 2)]
    workers: u32,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The server program [default: target/release/shearwater, built first]
    #[arg(long, value_name = "PATH")]
    server_bin: Option<PathBuf>,
    /// Also write the reports into this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keep the temporary folder (served files, server logs) and print where it is
    #[arg(long)]
    keep: bool,
}

impl DriverArgs {
    /// Runs a command called `what` for each driver. `run` is given the options of one run and the report's name.
    pub(crate) fn run_each(&self, what: &str, run: impl Fn(Common, &str) -> Outcome<Report>) -> ExitCode {
        self.driver.run_each(what, self.json.as_deref(), |driver, name| run(self.common(driver), name))
    }

    fn common(&self, driver: &str) -> Common {
        Common {
            server_bin: self.server_bin.clone(),
            example_bin: None,
            workers: self.workers,
            driver: driver.to_owned(),
            seed: self.seed,
            json: false,
            keep: self.keep,
        }
    }
}

impl Drivers {
    /// Their names, as the server's own settings know them.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Self::Epoll => &["epoll"],
            Self::Uring => &["uring"],
            Self::Both => &["epoll", "uring"],
        }
    }

    /// Runs a command called `what` for each, prints the reports and writes them to `json`. `run` is given the driver and the report's name.
    pub(crate) fn run_each(
        self,
        what: &str,
        json: Option<&Path>,
        run: impl Fn(&'static str, &str) -> Outcome<Report>,
    ) -> ExitCode {
        let mut reports: Vec<(String, Report)> = Vec::new();
        for &driver in self.names() {
            let name = format!("{what} {driver}");
            match run(driver, &name) {
                Ok(report) => {
                    report.print(&name, false);
                    reports.push((name, report));
                }
                Err(trouble) => {
                    eprintln!("{name}: could not be run: {trouble}");
                    return ExitCode::from(NOT_RUN);
                }
            }
        }
        if let Some(path) = json
            && let Err(error) = report::write_json(path, &reports)
        {
            eprintln!("{what}: writing {}: {error}", path.display());
            return ExitCode::from(NOT_RUN);
        }
        ExitCode::from(u8::from(!reports.iter().all(|(_, report)| report.passed())))
    }
}
