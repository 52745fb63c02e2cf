//! The gate of a change: two revisions built and measured in one run by the rows of `gate.toml`. Counts hardly depend on
//! the machine, so an increase is a reason to fail; timings are shown with their intervals and fail nothing.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::bar::BarRow;
use crate::bench::RunSettings;
use crate::change_points::change_points;
use crate::experiment::Experiment;
use crate::machine;
use crate::process::output;
use crate::programs::{OurPrograms, build_in, root, target};
use crate::report::{align, show, unix_seconds};
use crate::series::{Series, SeriesPlan};

const PROGRAMS: &str = "--package shearwater-cli --bins --package shearwater --example plaintext";
const RECORDS: &str = "lab/records/gate.jsonl";
/// Finds the comment of an earlier run in a pull request.
const MARK: &str = "<!-- cargo lab gate -->";
const BASE: &str = "base";
const HEAD: &str = "head";
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
    #[arg(long, value_name = "REV", required_unless_present_any = ["self_test", "history"])]
    base: Option<String>,
    /// Revision to judge [default: the files of the checkout]
    #[arg(long, value_name = "REV")]
    head: Option<String>,
    /// Also write the table in Markdown, for a comment
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Compare a server with one that does more work; exits with 1 if the gate does not notice
    #[arg(long, conflicts_with_all = ["base", "head", "history"])]
    self_test: bool,
    /// Print at which commits the kept results change, and measure nothing
    #[arg(long, conflicts_with_all = ["base", "head"])]
    history: bool,
}

/// Runs the gate. Returns false on a regression and where a count is missing.
pub(crate) fn run(args: &GateArgs) -> Result<bool, String> {
    if args.history {
        let kept = fs::read_to_string(root().join(RECORDS));
        let kept = kept.map_err(|error| {
            format!("{RECORDS}: {error}\nhelp: `cargo lab gate --base REV` keeps results")
        })?;
        print!("{}", history(&kept)?);
        return Ok(true);
    }
    let mut programs = OurPrograms { usual: HEAD.to_owned(), ..OurPrograms::default() };
    for (build, revision) in [(BASE, &args.base), (HEAD, &args.head)] {
        let (sources, target) = sources(build, revision.as_deref())?;
        crate::progress(&format!("building {build}: {}", sources.display()));
        programs.folders.insert(build.to_owned(), build_in(&sources, &target, "release", PROGRAMS)?);
        programs.sources.insert(build.to_owned(), (sources, target));
    }
    let rows = rows(if args.self_test { "self-test" } else { "gate" });
    let rows: Vec<&BarRow> = rows.iter().collect();
    let plans = SeriesPlan::of(rows.iter().flat_map(|row| row.subjects()))?;
    let measured = crate::measure_built("gate", plans, &rows, SETTINGS, &programs, false)?;
    // Timings have no bound, and what is within noise is no regression.
    let is_worse = |row: &&BarRow| {
        let verdict = row.judge(&measured);
        row.wanted() != "-" && !verdict.is_met() && !row.verdict_text(&verdict).ends_with("within noise")
    };
    let has_failed = rows.iter().any(is_worse);
    if args.self_test {
        let is_noticed = rows.iter().any(|row| row.verdict_text(&row.judge(&measured)) == "MISSED");
        println!("self-test: the gate {} more work", if is_noticed { "notices" } else { "DOES NOT NOTICE" });
        return Ok(is_noticed);
    }
    if let Some(path) = &args.markdown {
        let text = markdown(&rows, &measured);
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    keep(&machine::commit_in(&programs.sources[HEAD].0), &measured)?;
    Ok(!has_failed)
}

/// Returns the rows of a group.
fn rows(group: &str) -> Vec<BarRow> {
    let mut groups: BTreeMap<String, Vec<BarRow>> =
        toml::from_str(include_str!("../gate.toml")).expect("a test parses it");
    groups.remove(group).unwrap_or_default()
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
    Ok((sources.into(), folder.join("target")))
}

fn git(arguments: &[&str]) -> Result<String, String> {
    let mut git = Command::new("git");
    git.current_dir(root()).args(arguments);
    output(git)
}

/// Renders the rows as a comment.
fn markdown(rows: &[&BarRow], measured: &[Series]) -> String {
    let line = |row: &&BarRow| {
        let verdict = row.judge(measured);
        let (figure, wanted, text) = (row.text(), row.wanted(), row.verdict_text(&verdict));
        format!("| {}, {figure} | {} | {wanted} | {text} |\n", row.scenario, show(verdict.estimate()))
    };
    let lines: String = rows.iter().map(line).collect();
    format!(
        "{MARK}\n### Head against base, built and measured in one job\n\n| figure | median [95 % interval] | wanted | verdict |\n\
         |---|--:|--:|---|\n{lines}\nCounts that are certainly beyond their margin fail the gate. Timings fail nothing.\n"
    )
}

/// One run, a line of the kept results.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    commit: String,
    unix_seconds: u64,
    cpu: String,
    figures: BTreeMap<String, f64>,
}

/// Keeps the counts of the head.
fn keep(commit: &str, measured: &[Series]) -> Result<(), String> {
    // Timings are this machine's alone.
    let counted = measured.iter().filter(|series| series.plan.experiment != Experiment::Load);
    let heads = counted.flat_map(|series| series.servers.iter().map(move |server| (series, server)));
    let figures = heads.filter_map(|(series, server)| {
        let (title, figure) = series.plan.experiment.figures()[0];
        let name = server.label.strip_suffix("@head")?;
        Some((
            format!("{title}, {}, {name}", series.plan.scenario.name),
            series.estimate(server, figure)?.median,
        ))
    });
    let record = Record {
        commit: commit.to_owned(),
        unix_seconds: unix_seconds(),
        cpu: machine::describe()["cpu"].as_str().unwrap_or_default().to_owned(),
        figures: figures.collect(),
    };
    let line = serde_json::to_string(&record).map_err(|error| error.to_string())? + "\n";
    let file = OpenOptions::new().append(true).create(true).open(root().join(RECORDS));
    let kept = file.and_then(|mut file| file.write_all(line.as_bytes()));
    kept.map_err(|error| format!("{RECORDS}: {error}"))
}

/// Renders the changes of each figure on each kind of processor.
fn history(text: &str) -> Result<String, String> {
    let mut series: BTreeMap<[String; 2], Vec<(String, f64)>> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let record = serde_json::from_str(line).map_err(|error| format!("{RECORDS}:{}: {error}", number + 1));
        let Record { commit, cpu, figures, .. } = record?;
        for (name, value) in figures {
            series.entry([name, cpu.clone()]).or_default().push((commit.clone(), value));
        }
    }
    let mut table = vec![["figure", "processor", "runs", "changes"].map(str::to_owned)];
    for ([name, cpu], runs) in series {
        let values: Vec<f64> = runs.iter().map(|(_, value)| *value).collect();
        let changes = change_points(&values, 1).into_iter();
        let changes = changes.map(|at| format!("{}: {:.3} to {:.3}", runs[at].0, values[at - 1], values[at]));
        table.push([name, cpu, runs.len().to_string(), changes.collect::<Vec<_>>().join("; ")]);
    }
    Ok(align(&table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_a_margin_and_every_row_two_servers() {
        for row in ["gate", "self-test"].iter().flat_map(|group| rows(group)) {
            assert!(SeriesPlan::of(row.subjects()).is_ok_and(|plans| plans[0].servers.len() == 2), "{row:?}");
            assert_eq!(row.wanted() == "-", row.name.contains("-cpu-"), "{row:?}");
        }
        let rows = rows("gate");
        let text = markdown(&rows.iter().collect::<Vec<_>>(), &[]);
        assert!(text.starts_with(MARK) && text.matches("| NOT MEASURED: ").count() == rows.len(), "{text}");
    }

    #[test]
    fn kept_results_show_the_commit_of_a_change_and_a_broken_line_is_named() {
        let line = |number: u64| {
            let figures = [("instructions".to_owned(), if number < 7 { 3_400.0 } else { 3_450.0 })].into();
            let record =
                Record { commit: format!("c{number}"), unix_seconds: number, cpu: "x".to_owned(), figures };
            serde_json::to_string(&record).expect("plain") + "\n"
        };
        let text: String = (0..16).map(line).collect();
        assert!(history(&text).is_ok_and(|table| table.contains("16    c7: 3400.000 to 3450.000")));
        let broken = history(&format!("{text}oops\n"));
        assert!(broken.is_err_and(|why| why.starts_with("lab/records/gate.jsonl:17: ")));
    }
}
