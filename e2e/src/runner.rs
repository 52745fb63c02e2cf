//! Chooses the cases, runs each on every driver, and prints the reports.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;

use crate::cases::{self, GROUPS, TestCase};
use crate::context::{CaseContext, Programs};
use crate::report::CaseReport;
use crate::{Amount, Args, Driver};

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
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let cases = choose(cases::all(), &args.cases)?;
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

fn run_case(args: &Args, programs: &Programs, driver: Driver, case: &TestCase) -> Result<Finished> {
    let name = format!("{}/{}", case.group, case.name);
    let mut folder = tempfile::Builder::new().prefix("shearwater-e2e-").tempdir()?;
    folder.disable_cleanup(args.keep);
    let amount = Amount { full: args.full, seconds: args.seconds };
    let (seed, workers) = (args.seed, args.workers);
    let context =
        CaseContext { programs, driver, workers, seed, amount, write: args.write, folder: folder.path() };
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
fn drivers(args: &Args, programs: &Programs) -> Result<Vec<Driver>> {
    if let Some(driver) = args.driver {
        return Ok(vec![driver]);
    }
    let mut works = Vec::new();
    for driver in Driver::ALL {
        let folder = tempfile::tempdir()?;
        match programs.start_example(driver, 1, &[], folder.path()) {
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

/// Builds the tested programs in release, unless they are given.
fn build(args: &Args) -> Result<Programs> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let release = workspace().join(target).join("release");
    let find = |given: &Option<PathBuf>, built: &str, what: &[&str]| -> Result<PathBuf> {
        if let Some(path) = given {
            return path.canonicalize().with_context(|| path.display().to_string());
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .current_dir(workspace())
            .args(["build", "--release", "-p"])
            .args(what)
            .status();
        ensure!(status.context("cargo build")?.success(), "cargo build -p {} failed", what.join(" "));
        Ok(release.join(built))
    };
    let examples = ["shearwater", "--example", "trial_server", "--example", "smallest"];
    Ok(Programs {
        server: find(&args.server_bin, "shearwater", &["shearwater-cli", "--bin", "shearwater"])?,
        example: find(&args.example_bin, "examples/trial_server", &examples)?,
        smallest: release.join("examples/smallest"),
    })
}

#[cfg(test)]
mod tests {
    use super::choose;
    use crate::cases::all;

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
}
