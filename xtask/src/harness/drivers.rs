//! Which of the server's drivers a command tries, one run each.

use std::path::Path;
use std::process::ExitCode;

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
