//! The start of a suite: its folder, missing programs, and whether a resumed one is under the same circumstances.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use super::plan::Suite;
use super::{PlannedStep, ROUNDS, SuiteArgs};
use crate::process::output;
use crate::programs::root;
use crate::{machine, progress, report};

/// File that says with what a suite was started.
const STARTED_WITH: &str = "started-with";
/// Figures of the machine that must not change in between.
const MACHINE: [&str; 4] = ["cpu", "cores", "memory", "kernel"];

/// Returns the folder of the results: an empty one, or with `--resume` that of an earlier run.
pub(super) fn folder(suite: &Suite, args: &SuiteArgs) -> Result<PathBuf, String> {
    let results = root().join("lab/results");
    let folder = match &args.out {
        Some(out) if args.names.len() > 1 => out.join(&suite.name),
        Some(out) => out.clone(),
        None if args.resume => {
            let prefix = format!("{}-", suite.name);
            let entries = fs::read_dir(&results).into_iter().flatten().flatten().map(|entry| entry.path());
            let is_own = |path: &PathBuf| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
            };
            let newest = entries.filter(is_own).max();
            newest.ok_or_else(|| format!("no results of {} in {}", suite.name, results.display()))?
        }
        None => {
            let mut date = Command::new("date");
            date.args(["-u", "+%Y-%m-%d-%H%M"]);
            results.join(format!("{}-{}", suite.name, output(date)?.trim()))
        }
    };
    let exists = folder.join(ROUNDS).join(STARTED_WITH).exists();
    let shown = folder.display();
    match (exists, args.resume) {
        (true, false) => {
            Err(format!("{shown} has results\nhelp: continue with `--resume`, or choose another `--out`"))
        }
        (false, true) => {
            Err(format!("{shown} has no suite to resume\nhelp: leave `--resume` out to start one"))
        }
        _ => Ok(folder),
    }
}

/// Reports missing tools and servers. Servers are left out; without two cores or `taskset` nothing can be measured.
pub(super) fn check_dependencies(steps: &[PlannedStep]) -> Result<(), String> {
    let (tools, is_ready) = machine::tools();
    for [name, about, state] in tools.iter().filter(|[_, _, state]| state.starts_with("MISSING")) {
        progress(&format!("{name} ({about}) is {state}"));
    }
    let mut missing: Vec<&(String, String)> = steps.iter().flat_map(|planned| &planned.missing).collect();
    missing.sort_unstable();
    missing.dedup();
    missing.iter().for_each(|(name, why)| progress(&format!("without {name}: {why}")));
    if is_ready {
        Ok(())
    } else {
        Err("two cores and the tools above are needed\nhelp: `cargo lab setup` lists all".to_owned())
    }
}

/// Returns everything that a resumed suite must have in common with its start.
pub(super) fn circumstances(steps: &[PlannedStep], args: &SuiteArgs) -> Map<String, Value> {
    let whole = machine::describe();
    let machine: Map<String, Value> =
        MACHINE.iter().map(|name| ((*name).to_owned(), whole[*name].clone())).collect();
    let step = |planned: &PlannedStep| {
        let names: Vec<&str> = planned.servers.iter().map(|spec| &*spec.name).collect();
        json!([planned.step.name, names, planned.step.sizes(args.size)])
    };
    let pairs = [
        ("commit", json!(machine::commit())),
        ("machine", json!(machine)),
        ("profile", json!(args.profile)),
        ("seed", json!(args.seed)),
        ("steps, servers and sizes", steps.iter().map(step).collect()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

/// Compares the circumstances with those of the start, or records them at the start.
pub(super) fn check_same(rounds: &Path, now: &Map<String, Value>) -> Result<(), String> {
    let path = rounds.join(STARTED_WITH);
    let Ok(text) = fs::read_to_string(&path) else { return report::store(&path, &json!(now)) };
    let before: Map<String, Value> =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    match now.iter().find(|(name, value)| before.get(*name) != Some(value)) {
        None => Ok(()),
        Some((name, value)) => Err(format!(
            "can't resume: {name} differs: {} at the start, now {value}\nhelp: restore that, or start anew in another `--out`",
            before.get(name).unwrap_or(&Value::Null)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_resumed_under_the_same_circumstances_only() {
        let folder = std::env::temp_dir().join(format!("lab-start-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let now = |commit: &str| {
            let Value::Object(map) = json!({ "commit": commit, "seed": 1 }) else { unreachable!() };
            map
        };
        assert_eq!(check_same(&folder, &now("abc")), Ok(()));
        assert_eq!(check_same(&folder, &now("abc")), Ok(()));
        let refused = check_same(&folder, &now("def")).expect_err("another commit");
        assert!(refused.contains("commit differs: \"abc\" at the start, now \"def\"\nhelp: "), "{refused}");
        fs::remove_dir_all(&folder).expect("it was there");
    }
}
