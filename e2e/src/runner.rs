//! Chooses the cases of a table, runs each on every driver, and prints the reports.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;

use crate::context::{CaseContext, TestCase, TestedPrograms};
use crate::replaced::FileChange;
use crate::report::CaseReport;
use crate::{
    DriverName, E2eArgs, addresses, balancer, certificates, compare, compression, drain, files, handlers,
    hostile, http2, log, memory, programs, reload, replaced, soak, stress, upgrade,
};

/// Exit status if a case could not run.
pub(crate) const NOT_RUN: u8 = 2;

/// The result of one case on one driver.
#[derive(Debug, Serialize)]
struct Finished {
    case: String,
    driver: &'static str,
    passed: bool,
    seconds: f64,
    error: Option<String>,
    checks: CaseReport,
}

/// Runs the cases that the command line names. Returns the exit status.
pub(crate) fn run(args: &E2eArgs) -> Result<ExitCode> {
    let cases = choose(all(), &args.cases)?;
    if args.list {
        list(&cases);
        return Ok(ExitCode::SUCCESS);
    }
    let programs = build(args)?;
    let _ = testkit::process::raise_descriptor_limit();
    let mut finished = Vec::new();
    for driver in drivers(args, &programs)? {
        for case in &cases {
            finished.push(run_case(args, &programs, driver, case)?);
        }
    }
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&finished)?;
        std::fs::write(path, json).with_context(|| format!("writing {}", path.display()))?;
    }
    let failed = finished.iter().filter(|one| !one.passed).count();
    println!("{} cases passed, {failed} failed", finished.len() - failed);
    let not_run = finished.iter().any(|one| one.error.is_some());
    Ok(if not_run { ExitCode::from(NOT_RUN) } else { ExitCode::from(u8::from(failed > 0)) })
}

/// Keeps the cases that are named, or those of the quick groups.
fn choose(all: Vec<TestCase>, names: &[String]) -> Result<Vec<TestCase>> {
    let matches = |case: &TestCase, name: &str| {
        name == case.group || name.split_once('/') == Some((case.group, case.name.as_str()))
    };
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|case| matches(case, name))) {
        let groups: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
        bail!(
            "no group or case `{unknown}`\nhelp: the groups are {}; --list shows the cases",
            groups.join(", ")
        );
    }
    let quick = |case: &TestCase| GROUPS.iter().any(|group| group.name == case.group && group.quick);
    let chosen = |case: &TestCase| {
        if names.is_empty() { quick(case) } else { names.iter().any(|name| matches(case, name)) }
    };
    Ok(all.into_iter().filter(chosen).collect())
}

fn list(cases: &[TestCase]) {
    for group in GROUPS {
        let mut of_group = cases.iter().filter(|case| case.group == group.name).peekable();
        if of_group.peek().is_some() {
            println!("{}: {}{}", group.name, group.about, if group.quick { "" } else { " (only by name)" });
        }
        of_group.for_each(|case| println!("  {:24} {}", case.name, case.about));
    }
}

fn run_case(
    args: &E2eArgs,
    programs: &TestedPrograms,
    driver: DriverName,
    case: &TestCase,
) -> Result<Finished> {
    let name = format!("{}/{}", case.group, case.name);
    let mut folder = tempfile::Builder::new().prefix("shearwater-e2e-").tempdir()?;
    folder.disable_cleanup(args.keep);
    let context = CaseContext { programs, driver, workers: args.workers, args, folder: folder.path() };
    let (started, mut checks) = (Instant::now(), CaseReport::default());
    let error = (case.run)(&context, &mut checks).err().map(|error| format!("{error:#}"));
    let seconds = started.elapsed().as_secs_f64();
    let passed = error.is_none() && checks.passed();
    println!("{} {} {name} ({seconds:.1} s)", if passed { "PASS" } else { "FAIL" }, driver.name());
    checks.print(args.verbose || !passed);
    if let Some(error) = &error {
        println!("  could not run: {error}");
    }
    if args.keep {
        println!("  kept: {}", folder.path().display());
    }
    Ok(Finished { case: name, driver: driver.name(), passed, seconds, error, checks })
}

/// Returns the driver that the command line names, or all that work here.
fn drivers(args: &E2eArgs, programs: &TestedPrograms) -> Result<Vec<DriverName>> {
    if let Some(driver) = args.driver {
        return Ok(vec![driver]);
    }
    let mut works = Vec::new();
    for driver in DriverName::ALL {
        let folder = tempfile::tempdir()?;
        let context = CaseContext { programs, driver, workers: 1, args, folder: folder.path() };
        match context.example(&[]) {
            Ok(_) => works.push(driver),
            Err(error) => println!("skip {}: {error:#}", driver.name()),
        }
    }
    ensure!(!works.is_empty(), "no driver works here");
    Ok(works)
}

/// The workspace's root folder.
pub(crate) fn workspace() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// The program `cargo`.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Builds a program in release, and returns its path.
pub(crate) fn build_release(built: &str, what: &[&str]) -> Result<PathBuf> {
    let mut command = Command::new(cargo());
    let status = command.current_dir(workspace()).args(["build", "--release", "-p"]).args(what).status();
    ensure!(status.context("cargo build")?.success(), "cargo build -p {} failed", what.join(" "));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    Ok(workspace().join(target).join("release").join(built))
}

/// Builds the tested programs, unless they are given.
fn build(args: &E2eArgs) -> Result<TestedPrograms> {
    let find = |given: &Option<PathBuf>, built: &str, what: &[&str]| match given {
        Some(path) => path.canonicalize().with_context(|| path.display().to_string()),
        None => build_release(built, what),
    };
    Ok(TestedPrograms {
        server: find(&args.server_bin, "shearwater", &["shearwater-cli", "--bin", "shearwater"])?,
        example: find(
            &args.example_bin,
            "examples/trial_server",
            &["shearwater", "--example", "trial_server"],
        )?,
    })
}

/// A group and its line in `--list`.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Runs when no group is named.
    pub(crate) quick: bool,
}

const fn group(name: &'static str, quick: bool, about: &'static str) -> Group {
    Group { name, about, quick }
}

/// All groups, in the order in which they run.
pub(crate) const GROUPS: &[Group] = &[
    group("protocol", true, "responses that clients can read, whatever they send"),
    group("drain", true, "SIGTERM costs no request that was sent before it"),
    group("reload", true, "reloads and upgrades cost no request, descriptor or memory"),
    group(
        "balancer",
        false,
        "HAProxy in front of three servers: restarted one by one without a failed request, and they know each client",
    ),
    group(
        "certificates",
        false,
        "orders and renewals at Pebble, a CA for tests: both challenges, shared folders, kills",
    ),
    group("handlers", true, "panics, errors and stack overflows in every kind of handler"),
    group("files", true, "every byte of a served folder, and nothing outside of it"),
    group("memory", true, "idle connections, waiting requests and panics cost little"),
    group("compression", false, "pages are compressed on the fly beside normal clients"),
    group("compare", true, "our responses are those of e2e/data/compare/results.md"),
    group(
        "peers",
        false,
        "the same requests to nginx and static-web-server; --write writes e2e/data/compare/results.md",
    ),
    group(
        "programs",
        false,
        "package managers, mirrors, downloaders and file systems read a served folder; apt-get installs them",
    ),
    group("replaced", true, "files that change while they are served"),
    group("hostile", false, "attackers in waves beside normal clients"),
    group("http2", false, "clients of other people, a drain with open streams, idle connections"),
    group("hostile-http2", false, "attackers over HTTP/2 beside clients of HTTP/1.1 and HTTP/2"),
    group(
        "log",
        false,
        "an access log drops no line at 200,000 a second, and counts those beyond what it takes; on a quiet machine",
    ),
    group("stress", false, "four phases of load by cargo lab load against the smallest program"),
    group("soak", false, "connections of every kind, and nothing of them is left"),
];

type Function = fn(&CaseContext<'_>, &mut CaseReport) -> Result<()>;

/// Cases that are one function each.
#[rustfmt::skip]
const FUNCTIONS: &[(&str, &str, &str, Function)] = &[
    ("protocol", "early-errors", "refused clients that send on read the response", hostile::early_errors),
    ("drain", "under-load", "requests in flight, queued and slow are answered", drain::under_load),
    ("balancer", "rolling-restart", "each server twice, under load", balancer::rolling_restart),
    ("balancer", "clients", "by X-Forwarded-For and both PROXY headers, also of forgers", balancer::clients),
    ("certificates", "challenges", "by both challenges, while nine of ten nonces are rejected", certificates::challenges),
    ("certificates", "shared", "two servers with one folder order once, and either serves the challenge", certificates::shared),
    ("certificates", "killed", "a server that is killed at each step of an order continues it", certificates::killed),
    ("certificates", "customer", "an external account", certificates::customer),
    ("certificates", "renewed", "by a restart not, by the operator and the CA's suggestion at once", certificates::renewed),
    ("certificates", "storage", "read-only, then full: the certificate is used, one error names the remedy", certificates::storage),
    ("certificates", "unreachable", "an error names the closed port; the next attempt takes the other challenge", certificates::unreachable),
    ("certificates", "program-orders", "the program starts without a certificate, gets one, lists it and renews it", certificates::program::ordered),
    ("certificates", "program-by-http", "the program gets one by HTTP-01 beside its redirects", certificates::program::by_http),
    ("certificates", "program-reloads", "reloads add the first site with `tls = \"auto\"`, another one, and remove both", certificates::program::reloaded),
    ("certificates", "program-interrupted", "kill -9 and an upgrade while the CA verifies", certificates::program::interrupted),
    ("certificates", "program-together", "two programs with one folder order once", certificates::program::together),
    ("programs", "read-a-folder", "each program gets what is there", programs::read_a_folder),
    ("http2", "clients", "curl, nghttp, h2load, Node, Go, Python and Chromium get the right bodies", http2::clients::run),
    ("http2", "drain", "SIGTERM while streams are open", http2::successor::drain),
    ("http2", "idle-connections", "thousands of idle connections over TLS", http2::idle::run),
    ("reload", "under-load", "a hundred reloads beside clients at a fixed rate and downloads", reload::under_load),
    ("reload", "addresses", "a hundred addresses come and go beside clients of one that stays", addresses::under_load),
    ("reload", "upgrades", "ten new processes beside clients at a fixed rate and downloads", upgrade::under_load),
    ("files", "many-files", "files of random sizes and odd names", files::many_files),
    ("files", "large-file", "a sparse file beyond 2 GiB, whole", files::large_file),
    ("files", "traversal", "hostile targets and links", files::traversal),
    ("replaced", "renamed", "files are renamed over", |context, report| FileChange::Renamed.run(context, report)),
    ("replaced", "truncated", "files are renamed over, then cut to half their length", |context, report| FileChange::Truncated.run(context, report)),
    ("replaced", "rewritten", "files are rewritten in place", |context, report| FileChange::Rewritten.run(context, report)),
    ("replaced", "deleted", "files are deleted and made anew", |context, report| FileChange::Deleted.run(context, report)),
    ("replaced", "folder-swapped", "the served folder is a link that changes", replaced::swap_folders),
    ("soak", "soak", "10 million responses with --full, or for a time with --for", soak::soak),
    ("compare", "ours", "requests of every kind for sites of every kind", compare::ours),
    ("peers", "peers", "every difference has a cause, and is in e2e/data/compare/results.md", compare::peers),
    ("log", "rate", "240,000 pipelined requests a second, each with a line in a file", log::rate),
    ("log", "unpaced", "as many as there are responses: dropped lines are counted and reported", log::unpaced),
    ("stress", "stress", "10,000 connections, large headers, heavy payloads", stress::stress),
    ("memory", "idle-connections", "thousands of idle keep-alive connections", memory::idle_connections),
    ("memory", "panics", "thousands of panicking handlers beside good requests", memory::panics),
    ("memory", "waiting-requests", "thousands of requests whose handlers wait", memory::waiting_requests),
    ("compression", "beside-others", "1,000 distinct pages (--full), five rounds; p99 of others beside it", compression::beside_others),
];

/// Returns every case, in the order in which they run.
pub(crate) fn all() -> Vec<TestCase> {
    let functions = FUNCTIONS.iter().map(|&(group, name, about, run)| TestCase {
        group,
        name: name.to_owned(),
        about: about.to_owned(),
        run: Box::new(run),
    });
    let mut cases: Vec<TestCase> =
        functions.chain(handlers::cases()).chain(hostile::cases()).chain(http2::hostile::cases()).collect();
    cases.sort_by_key(|case| GROUPS.iter().position(|group| group.name == case.group));
    cases
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{GROUPS, all, choose};

    #[test]
    fn names_choose_groups_and_single_cases() {
        let chosen = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            choose(all(), &names).map(|cases| cases.into_iter().map(|case| case.name).collect::<Vec<_>>())
        };
        assert_eq!(
            chosen(&["memory/panics", "drain"]).ok(),
            Some(vec!["under-load".to_owned(), "panics".to_owned()])
        );
        assert!(chosen(&[]).is_ok_and(|cases| cases.len() > 5));
        assert!(chosen(&["no-such"]).is_err());
    }

    #[test]
    fn every_case_has_a_group_and_a_name_of_its_own() {
        let cases = all();
        let names: BTreeSet<_> = cases.iter().map(|case| (case.group, &case.name)).collect();
        assert_eq!(names.len(), cases.len());
        let groups: BTreeSet<_> = cases.iter().map(|case| case.group).collect();
        assert_eq!(groups, GROUPS.iter().map(|group| group.name).collect());
    }
}
