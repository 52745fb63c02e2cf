//! Requests for parts of files, and for files in a coding, sent to this server and to nginx side by side over the same folder.
//!
//! `cargo xtask ranges` prints every difference, and to each that is listed its argument. Exit code 0: none but the listed ones, and
//! all of those; 1: something else; 2: it could not be run, and why.

mod arguments;
mod case;
mod catalogue;
mod comparison;
mod nginx;
mod outcome;
mod site;

use std::path::PathBuf;
use std::process::ExitCode;

use self::comparison::Comparison;
use crate::harness::common::Common;
use crate::harness::conclusion::conclude;
use crate::harness::folder::Folder;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::Outcome;

/// The arguments of `cargo xtask ranges`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// The nginx program
    #[arg(long, value_name = "PATH", default_value = "nginx")]
    nginx_bin: PathBuf,
}

/// Sends everything to both and prints what came of it.
pub(crate) fn run(args: &Args) -> ExitCode {
    conclude("ranges", args.common.json, compare(args))
}

fn compare(args: &Args) -> Outcome<Report> {
    let version = nginx::version(&args.nginx_bin)?;
    let folder = Folder::new(args.common.keep)?;
    let root = site::lay_out(&folder)?;
    let own = Server::serve_folder(&args.common, &root, &folder)?;
    let nginx = nginx::start(&args.nginx_bin, &root, &folder)?;
    let mut comparison = Comparison::default();
    for case in catalogue::cases() {
        comparison.ask(&case, own.address(), nginx.address())?;
    }
    if !args.common.json {
        comparison.print();
    }
    let mut report = Report::new();
    report.note("nginx", version);
    report.note("requests to each", comparison.requests);
    for (argument, differences) in &comparison.argued {
        report.note(argument.what(), differences.len() as u64);
    }
    report.equal("differences that are not listed", comparison.unlisted.len() as u64, 0);
    report.equal("listed differences that did not show", comparison.stale.len() as u64, 0);
    own.stop(&mut report)?;
    Ok(report)
}
