//! The start of a suite: its folder, missing programs, and whether a resumed one is under the same circumstances.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use super::SuiteArgs;
use super::plan::Suite;
use crate::process::output;
use crate::programs::root;
use crate::{machine, progress, report};

/// File that says with what a suite was started. It has no ending of a result.
const STARTED_WITH: &str = "started-with";

/// Returns the folder of the results: a new one, or with `--resume` that of an earlier run.
pub(super) fn folder(suite: &Suite, args: &SuiteArgs) -> Result<PathBuf, String> {
    let results = root().join("lab/results");
    let folder = match &args.out {
        Some(out) if args.names.len() > 1 => out.join(&suite.name),
        Some(out) => out.clone(),
        None if args.resume => {
            let prefix = format!("{}-", suite.name);
            let names = fs::read_dir(&results).into_iter().flatten().flatten().map(|entry| entry.file_name());
            let newest = names.filter(|name| name.to_string_lossy().starts_with(&prefix)).max();
            results
                .join(newest.ok_or_else(|| format!("no results of {} in {}", suite.name, results.display()))?)
        }
        None => {
            let mut date = Command::new("date");
            date.args(["-u", "+%Y-%m-%d-%H%M"]);
            results.join(format!("{}-{}", suite.name, output(date)?.trim()))
        }
    };
    let shown = folder.display();
    match (folder.join(STARTED_WITH).exists(), args.resume) {
        (true, false) => {
            Err(format!("{shown} has results\nhelp: continue with `--resume`, or choose another `--out`"))
        }
        (false, true) => {
            Err(format!("{shown} has no suite to resume\nhelp: leave `--resume` out to start one"))
        }
        _ => Ok(folder),
    }
}

/// Reports missing servers and tools. A missing server is left out; two cores and some tools are needed.
pub(super) fn check_dependencies(suite: &Suite) -> Result<(), String> {
    let missing: BTreeSet<_> = suite.steps.iter().flat_map(|step| &step.missing).collect();
    missing.iter().for_each(|(name, why)| progress(&format!("without {name}: {why}")));
    let (tools, is_ready) = machine::tools();
    let missing = tools.iter().filter(|[_, _, state, ..]| state == machine::MISSING);
    missing.for_each(|[name, about, _, _, how]| progress(&format!("{name} ({about}) is missing: {how}")));
    let wanted = "two cores and the tools above are needed\nhelp: `cargo lab setup` lists all";
    if is_ready { Ok(()) } else { Err(wanted.to_owned()) }
}

/// Returns everything that a resumed suite must have in common with its start.
pub(super) fn circumstances(suite: &Suite, args: &SuiteArgs) -> Value {
    let machine = machine::describe();
    let mut all = json!({
        "commit": machine::commit(), "changes": machine::changes(), "profile": args.profile, "seed": args.seed, "wait_percent": args.wait_percent,
    });
    for name in ["cpu", "cores", "memory", "kernel"] {
        all[name] = machine[name].clone();
    }
    for step in &suite.steps {
        let servers: Vec<&str> = step.found.iter().map(|spec| &*spec.name).collect();
        all[format!("step {}", step.name)] = json!([servers, step.sizes(args)]);
    }
    all
}

/// Locks the folder, since two labs at once would disturb each other, until the file is closed.
pub(super) fn lock(folder: &Path) -> Result<File, String> {
    let failed = |why: &str| format!("{}: {why}", folder.display());
    let file = fs::create_dir_all(folder).and_then(|()| File::open(folder));
    let file = file.map_err(|error| failed(&error.to_string()))?;
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
    locked.map(|()| file).map_err(|_| failed("another lab runs a suite in this folder"))
}

/// Compares the circumstances with those of the start, or records them at the start.
pub(super) fn check_same(folder: &Path, now: &Value) -> Result<(), String> {
    let path = folder.join(STARTED_WITH);
    let Ok(text) = fs::read_to_string(&path) else { return report::store(&path, now) };
    let before: Value =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let names = [&before, now].into_iter().filter_map(Value::as_object).flat_map(|map| map.keys());
    match names.into_iter().find(|name| before[*name] != now[*name]) {
        None => Ok(()),
        Some(name) => Err(format!(
            "can't resume: {name} differs: {} at the start, now {}\nhelp: restore that, or start anew in another `--out`",
            before[name], now[name]
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_resumed_under_the_same_circumstances_only() {
        let folder = std::env::temp_dir().join(format!("lab-start-{}", std::process::id()));
        let locked = lock(&folder).expect("nothing else runs in it");
        assert!(lock(&folder).is_err_and(|why| why.contains("another lab")));
        drop(locked);
        let now = |commit: &str| json!({ "commit": commit, "seed": 1 });
        assert_eq!(check_same(&folder, &now("abc")), Ok(()));
        assert_eq!(check_same(&folder, &now("abc")), Ok(()));
        let refused = check_same(&folder, &now("def")).expect_err("another commit");
        assert!(refused.contains("commit differs: \"abc\" at the start, now \"def\"\nhelp: "), "{refused}");
        let fewer = check_same(&folder, &json!({ "commit": "abc" }));
        assert!(fewer.is_err_and(|why| why.contains("seed differs: 1 at the start, now null")));
        fs::remove_dir_all(&folder).expect("it was there");
    }
}
