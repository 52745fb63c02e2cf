//! Measures the rungs by the lab's suite `ladder`, and renders the result by the lab's report.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::report;

/// The committed results, in the checkout.
const RESULTS: &str = "lab/results/ladder";
/// File that a suite writes first: where it is, the suite continues.
const STARTED_WITH: &str = "started-with";

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Folder of the results; a measurement that was killed there continues [default: lab/results/ladder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Discard the results of an earlier measurement
    #[arg(long)]
    anew: bool,
    /// Further options of `cargo lab suite`, such as --quick or --only kept,close
    #[arg(last = true)]
    options: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Folder of the results; of another one than the default, ladder/README.md gets no figures [default: lab/results/ladder]
    #[arg(value_name = "DIR")]
    results: Option<PathBuf>,
}

/// Measures what is not measured yet. Returns false if a server could not be measured.
pub(crate) fn measure(args: &MeasureArgs) -> Result<bool, String> {
    let folder = folder(args.out.as_deref())?;
    if args.anew && folder.exists() {
        if !folder.join(STARTED_WITH).exists() {
            return Err(format!("{} has no measurement to discard", folder.display()));
        }
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let mut words = vec!["suite".into(), "ladder".into(), "--out".into(), folder.clone().into_os_string()];
    if folder.join(STARTED_WITH).exists() {
        eprintln!("continuing the measurement in {}; --anew discards it", folder.display());
        words.push("--resume".into());
    }
    words.extend(args.options.iter().map(Into::into));
    lab(&words)
}

/// Renders the results, and writes their figures into the README.
pub(crate) fn report(args: &ReportArgs) -> Result<bool, String> {
    let folder = folder(args.results.as_deref())?;
    if !lab(&["report".into(), folder.clone().into_os_string()])? {
        return Ok(false);
    }
    if args.results.is_none() {
        let read =
            |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
        let path = root().join("ladder/README.md");
        let filled = report::fill(&read(&path)?, &read(&folder.join("summary.md"))?)?;
        fs::write(&path, filled).map_err(|error| format!("{}: {error}", path.display()))?;
        eprintln!("figures written into {}", path.display());
    }
    Ok(true)
}

/// Runs `cargo lab` and returns true if it succeeded.
fn lab(words: &[std::ffi::OsString]) -> Result<bool, String> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(["run", "--quiet", "--release", "--package", "lab", "--"]).args(words);
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    Ok(status.success())
}

/// Returns a folder's whole path: the lab runs in the checkout.
fn folder(given: Option<&Path>) -> Result<PathBuf, String> {
    let Some(given) = given else { return Ok(root().join(RESULTS)) };
    let current = env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
    Ok(current.join(given))
}

fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}
