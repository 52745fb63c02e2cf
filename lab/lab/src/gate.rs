//! The gate of a change: two revisions built and measured in one run by the rows of `gate.toml`. Counts hardly depend on
//! the machine, so an increase is a reason to fail; timings are shown with their intervals and fail nothing.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::json;

use crate::bar::{self, BarRow, RowResult};
use crate::bench::RunSettings;
use crate::experiment::Experiment;
use crate::format::show;
use crate::machine;
use crate::process::output;
use crate::programs::{OurPrograms, PROGRAMS, build_extra, build_in, root, target};
use crate::report::unix_seconds;
use crate::series::{Series, SeriesPlan};

const ROWS: &str = include_str!("../gate.toml");
const RECORDS: &str = "lab/records/gate.jsonl";
/// Finds the comment of an earlier run in a pull request.
const MARK: &str = "<!-- cargo lab gate -->";
const BASE_BUILD: &str = "base";
const HEAD_BUILD: &str = "head";
/// Servers that are younger than some revisions, which get those of the checkout.
const ADDED: [&str; 2] = ["crates/files/examples/slow_disk.rs", "crates/tower/examples/kinds_axum.rs"];
const SETTINGS: RunSettings = RunSettings {
    blocks: 8,
    seconds: 1,
    syscall_rounds: 5,
    instruction_rounds: 5,
    seed: 1,
    wait_percent: None,
};

#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// Revision to compare with
    #[arg(long, value_name = "REV", required_unless_present = "self_test")]
    base: Option<String>,
    /// Revision to judge [default: the files of the checkout]
    #[arg(long, value_name = "REV")]
    head: Option<String>,
    /// Also write the table in Markdown, for a comment
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Compare a server with one that does more work; exits with 1 if the gate does not notice
    #[arg(long, conflicts_with_all = ["base", "head"])]
    self_test: bool,
}

/// Runs the gate. Returns false on a regression and where a count is missing.
pub(crate) fn run(args: &GateArgs) -> Result<bool, String> {
    let mut groups = bar::parse(ROWS);
    let rows = groups.remove(if args.self_test { "self-test" } else { "gate" }).unwrap_or_default();
    let base = args.base.as_deref();
    let (rows, lacking): (Vec<&BarRow>, Vec<_>) =
        rows.iter().partition(|row| is_comparable(row.needs.as_deref(), base));
    lacking.iter().for_each(|row| crate::progress(&format!("{}: left out, the base lacks it", row.name)));
    let plans = SeriesPlan::of(rows.iter().flat_map(|row| row.subjects()))?;
    let servers: Vec<_> = plans.iter().flat_map(|plan| &plan.servers).copied().collect();
    let mut programs = OurPrograms { usual: HEAD_BUILD.to_owned(), ..OurPrograms::default() };
    for (build, revision) in [(BASE_BUILD, &args.base), (HEAD_BUILD, &args.head)] {
        let (sources, target) = sources(build, revision.as_deref())?;
        crate::progress(&format!("building {build}: {}", sources.display()));
        programs.folders.insert(build.to_owned(), build_in(&sources, &target, "release", PROGRAMS)?);
        build_extra(&sources, &target, "release", &servers)?;
        programs.sources.insert(build.to_owned(), (sources, target));
    }
    let measured = crate::measure_built("gate", plans, &rows, SETTINGS, &programs)?;
    let results: Vec<RowResult> = rows.iter().map(|row| row.judge(&measured)).collect();
    if args.self_test {
        let is_noticed = results.iter().any(|row| row.verdict == "MISSED");
        println!("self-test: the gate {} more work", if is_noticed { "notices" } else { "DOES NOT NOTICE" });
        return Ok(is_noticed);
    }
    if let Some(path) = &args.markdown {
        let text = markdown(&results);
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    keep(&machine::commit_in(&programs.sources[HEAD_BUILD].0), &measured)?;
    // Timings have no bound, and what is within noise is no regression.
    Ok(results.iter().all(|row| row.is_met() || row.verdict.ends_with("within noise")))
}

/// Returns true if the base, by default the checkout, has the path that a row needs.
fn is_comparable(needs: Option<&str>, base: Option<&str>) -> bool {
    needs.is_none_or(|path| match base {
        Some(revision) => git(&["cat-file", "-e", &format!("{revision}:{path}")]).is_ok(),
        None => root().join(path).exists(),
    })
}

/// Returns a revision's sources and the folder that they are built in; without a revision those of the checkout.
fn sources(build: &str, revision: Option<&str>) -> Result<(PathBuf, PathBuf), String> {
    let Some(revision) = revision else { return Ok((root(), target())) };
    let folder = target().join("gate").join(build);
    let sources = folder.join("sources").display().to_string();
    // Left by an earlier run.
    let _ = git(&["worktree", "remove", "--force", &sources]);
    git(&["worktree", "add", "--quiet", "--force", "--detach", &sources, revision]).map_err(|why| {
        format!("revision `{revision}`: {why}\nhelp: fetch it first, a shallow clone lacks most")
    })?;
    let sources = PathBuf::from(sources);
    add_servers(&sources)?;
    Ok((sources, folder.join("target")))
}

/// Adds the checkout's servers to a revision that lacks them.
fn add_servers(sources: &Path) -> Result<(), String> {
    for name in ADDED {
        let added = sources.join(name);
        if !added.exists() {
            let folder = added.parent().map_or(Ok(()), fs::create_dir_all);
            let copied = folder.and_then(|()| fs::copy(root().join(name), &added));
            copied.map_err(|error| format!("{}: {error}", added.display()))?;
        }
    }
    Ok(())
}

fn git(arguments: &[&str]) -> Result<String, String> {
    let mut git = Command::new("git");
    git.current_dir(root()).args(arguments);
    output(git)
}

/// Renders the rows as a comment.
fn markdown(rows: &[RowResult]) -> String {
    let line = |row: &RowResult| {
        let RowResult { scenario, case, wanted, verdict, .. } = row;
        format!("| {scenario}, {case} | {} | {wanted} | {verdict} |\n", show(row.measured))
    };
    let lines: String = rows.iter().map(line).collect();
    format!(
        "{MARK}\n### Head against base, built and measured in one job\n\n| figure | median [95 % interval] | wanted | verdict |\n\
         |---|--:|--:|---|\n{lines}\nCounts that are certainly beyond their margin fail the gate. Timings fail nothing.\n"
    )
}

/// Keeps the counts of the head.
fn keep(commit: &str, measured: &[Series]) -> Result<(), String> {
    // Timings are this machine's alone.
    let counted = measured.iter().filter(|series| series.experiment != Experiment::Load);
    let heads = counted.flat_map(|series| series.servers.iter().map(move |server| (series, server)));
    let figures = heads.filter_map(|(series, server)| {
        let (title, figure) = series.experiment.figures()[0];
        let name = server.label.strip_suffix("@head")?;
        Some((format!("{title}, {}, {name}", series.scenario), series.estimate(server, figure)?.median))
    });
    let figures: BTreeMap<String, f64> = figures.collect();
    let cpu = machine::describe()["cpu"].take();
    let line = json!({ "commit": commit, "unix_seconds": unix_seconds(), "cpu": cpu, "figures": figures });
    let line = format!("{line}\n");
    let file = OpenOptions::new().append(true).create(true).open(root().join(RECORDS));
    let kept = file.and_then(|mut file| file.write_all(line.as_bytes()));
    kept.map_err(|error| format!("{RECORDS}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_gets_the_servers_that_it_lacks() {
        let [lacking, own] = ADDED;
        let sources = tempfile::tempdir().expect("a folder");
        let at = |name| sources.path().join(name);
        fs::create_dir_all(at(own).parent().expect("a folder")).expect("a folder");
        fs::write(at(own), "its own").expect("a file");
        assert_eq!(add_servers(sources.path()), Ok(()));
        let read = |path| fs::read_to_string(path).expect("a file");
        assert_eq!([read(at(lacking)), read(at(own))], [read(root().join(lacking)), "its own".to_owned()]);
    }

    #[test]
    fn a_row_is_left_out_where_the_base_lacks_what_it_needs() {
        for base in [None, Some("HEAD")] {
            let paths = [None, Some("Cargo.toml"), Some("no/such/path")];
            assert_eq!(paths.map(|needs| is_comparable(needs, base)), [true, true, false]);
        }
    }

    #[test]
    fn every_count_has_a_margin_and_every_row_two_servers() {
        let groups = bar::parse(ROWS);
        for row in groups.values().flatten() {
            assert!(SeriesPlan::of(row.subjects()).is_ok_and(|plans| plans[0].servers.len() == 2), "{row:?}");
            assert_eq!(row.has_bound(), !row.name.contains("-cpu-"), "{row:?}");
        }
        let rows = &groups["gate"];
        let text = markdown(&rows.iter().map(|row| row.judge(&[])).collect::<Vec<_>>());
        assert!(text.starts_with(MARK) && text.matches("| NOT MEASURED: ").count() == rows.len(), "{text}");
    }
}
