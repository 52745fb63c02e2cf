//! Trial `handlers`: handlers that misbehave, each fault in each kind of handler against a server of its own, as `docs/guide/handlers.md` says.

mod case;
mod catalogue;
mod client;

use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::Outcome;

/// Settings of the trial.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Options {
    /// Only faults whose name contains this
    #[arg(long)]
    only: Option<String>,
}

/// Runs the trial.
pub(super) fn run(common: &Common, options: &Options) -> Outcome<Report> {
    let folder = Folder::new(common.keep)?;
    let mut report = Report::new();
    for driver in drivers_here(common, &folder, &mut report) {
        let common = Common { workers: 1, driver: driver.to_owned(), ..common.clone() };
        for case in catalogue::ALL {
            if options.only.as_ref().is_some_and(|only| !case.fault.contains(only.as_str())) {
                continue;
            }
            for kind in case.kinds {
                let name = format!("{driver}: {} {}", kind.word(), case.fault);
                let seen = case.hold(&common, &folder, *kind)?;
                let is_kept = seen.is_ok();
                report.check(&name, seen.err().unwrap_or("as promised".to_owned()), case.promise, is_kept);
            }
        }
    }
    Ok(report)
}

/// The driver that was asked for; by default each that works here.
pub(super) fn drivers_here(common: &Common, folder: &Folder, report: &mut Report) -> Vec<String> {
    if common.driver != "auto" {
        return vec![common.driver.clone()];
    }
    let uring = Common { driver: "uring".to_owned(), ..common.clone() };
    match Server::example(&uring, &[], folder) {
        Ok(_) => vec!["epoll".to_owned(), "uring".to_owned()],
        Err(trouble) => {
            report.note("uring is not tried", trouble.to_string());
            vec!["epoll".to_owned()]
        }
    }
}
