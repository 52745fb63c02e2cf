//! The same requests to this server, nginx and static-web-server, configured as alike as they can be.
//!
//! `cargo xtask compare` prints what answers differ in, holds each difference against what is said for it, and `docs/compare.md` against both;
//! with `--write` it writes that page. Exit code 0: none but the listed differences, and all of those; 1: something else; 2: it could not be run,
//! and why.

mod case;
mod catalogue;
mod causes;
mod comparison;
mod exchange;
mod nginx;
mod ours;
mod outcome;
mod page;
mod sites;
mod static_web_server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::comparison::{Addresses, Comparison, Peer, outcomes};
use self::sites::Site;
use crate::harness::common::Common;
use crate::harness::conclusion::conclude;
use crate::harness::folder::Folder;
use crate::harness::program;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::{During, Outcome};

/// How to get what is missing.
const GET_PEERS: &str = "nginx: `apt-get install nginx`; static-web-server: `cargo lab setup --build-peers`; or say where they are: --nginx-bin, \
                         --static-web-server-bin; or hold this server alone against the page: --only-ours";

/// The arguments of `cargo xtask compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// The nginx program
    #[arg(long, value_name = "PATH", default_value = "nginx")]
    nginx_bin: PathBuf,
    /// The static-web-server program [default: the one that the lab has built, else the system's]
    #[arg(long, value_name = "PATH")]
    static_web_server_bin: Option<PathBuf>,
    /// Write docs/compare.md
    #[arg(long, conflicts_with = "only_ours")]
    write: bool,
    /// Without the others: hold this server's answers against what docs/compare.md says of them
    #[arg(long)]
    only_ours: bool,
}

/// Sends everything to all, and prints what came of it.
pub(crate) fn run(args: &Args) -> ExitCode {
    conclude("compare", args.common.json, compare(args))
}

fn compare(args: &Args) -> Outcome<Report> {
    let folder = Folder::new(args.common.keep)?;
    let root = sites::lay_out(&folder)?;
    let cases = catalogue::cases();
    let program = program::server(&args.common)?;
    let start = |site| ours::start(&program, &args.common.driver, site, &folder);
    let (servers, addresses) = start_all(start)?;
    let ours = outcomes(&cases, &addresses)?;
    let mut report = Report::new();
    report.note("requests", cases.len() as u64);
    if args.only_ours {
        report.note("nginx, static-web-server", "not asked (--only-ours)");
        let wrong = page::wrong_of_ours(&page::read()?, &cases, &ours);
        for line in &wrong {
            println!("NOT AS docs/compare.md SAYS: {line}");
        }
        report.equal("answers that are not as when the page was written", wrong.len() as u64, 0);
    } else {
        let (versions, theirs) = ask_peers(args, &root, &cases, &folder)?;
        for (peer, version) in &versions {
            report.note(peer.name(), version.clone());
        }
        judge(args, &Comparison::new(cases, ours, theirs), &versions, &mut report)?;
    }
    for server in servers {
        server.stop(&mut report)?;
    }
    Ok(report)
}

/// Holds the differences against what is said for them, and the page against both.
fn judge(
    args: &Args,
    comparison: &Comparison,
    versions: &BTreeMap<Peer, String>,
    report: &mut Report,
) -> Outcome<()> {
    if !args.common.json {
        comparison.print();
    }
    let argued: usize = comparison.argued.values().map(Vec::len).sum();
    report.note("differences that are argued", argued as u64);
    report.equal("differences that are not listed", comparison.unlisted.len() as u64, 0);
    report.equal("listed differences that did not show", comparison.stale.len() as u64, 0);
    let text = page::text(comparison, versions);
    let is_whole = comparison.unlisted.is_empty() && comparison.stale.is_empty();
    if args.write && is_whole {
        std::fs::write(page::path(), text).during("writing docs/compare.md")?;
        report.note("docs/compare.md", "written");
    } else {
        let is_same = page::says_the_same(&page::read()?, &text);
        report.check(
            "docs/compare.md",
            if is_same { "is so" } else { "is not so: --write" },
            "is so",
            is_same,
        );
    }
    Ok(())
}

/// Starts a server for each site.
fn start_all(start: impl Fn(Site) -> Outcome<Server>) -> Outcome<(Vec<Server>, Addresses)> {
    let mut servers = Vec::new();
    let mut addresses = Addresses::new();
    for site in Site::ALL {
        let server = start(site)?;
        addresses.insert(site, server.address());
        servers.push(server);
    }
    Ok((servers, addresses))
}

type Answers = BTreeMap<Peer, Vec<outcome::Outcome>>;

/// What the others answer, and which they are.
fn ask_peers(
    args: &Args,
    root: &Path,
    cases: &[case::Case],
    folder: &Folder,
) -> Outcome<(BTreeMap<Peer, String>, Answers)> {
    let static_web_server = static_web_server::program(args.static_web_server_bin.as_deref());
    let (Some((nginx_version, types)), Some(version)) =
        (nginx::about(&args.nginx_bin), static_web_server::version(&static_web_server))
    else {
        return Err(format!("a server to compare with is missing. {GET_PEERS}").into());
    };
    let mut answers = Answers::new();
    let (_servers, addresses) = start_all(|site| nginx::start(&args.nginx_bin, &types, site, root, folder))?;
    answers.insert(Peer::Nginx, outcomes(cases, &addresses)?);
    let (_servers, addresses) =
        start_all(|site| static_web_server::start(&static_web_server, site, root, folder))?;
    answers.insert(Peer::StaticWebServer, outcomes(cases, &addresses)?);
    let versions = [(Peer::Nginx, nginx_version), (Peer::StaticWebServer, version)];
    Ok((versions.into(), answers))
}
