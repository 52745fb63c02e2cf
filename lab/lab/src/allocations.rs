//! Allocations on the way of a request: counted by a test of the program, for only the process itself can count them.
//!
//! The test prints a line with [`MARK`] and a number for each driver; the worst one is the figure.

use std::process::Command;

use crate::alone::Figures;
use crate::binaries::root;

/// The test's command, as one would type it after `cargo`.
pub const COMMAND: &str = "test -p shearwater-files --test allocations -- --nocapture";
/// What the test prints before the number of allocations and frees.
pub const MARK: &str = "lab-figure allocations=";

/// Runs the test.
///
/// # Errors
/// There is no such test, it fails, or it prints no figure.
pub fn count() -> Result<Figures, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(COMMAND.split(' '));
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo {COMMAND}` failed: {}", output.status));
    }
    let worst = parse(&String::from_utf8_lossy(&output.stdout))?;
    Ok(vec![("allocations", worst)])
}

/// The worst figure in what the test runner has printed.
///
/// # Errors
/// No test was run, or none printed a figure.
pub fn parse(printed: &str) -> Result<f64, String> {
    let passed = printed.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    let passed: u32 = passed.filter_map(|rest| rest.split_once(' ')?.0.parse::<u32>().ok()).sum();
    if passed == 0 {
        return Err(format!("`cargo {COMMAND}` runs no test"));
    }
    // The runner may have begun the line with the test's name.
    let figures = printed.lines().filter_map(|line| line.split_once(MARK)?.1.trim().parse::<f64>().ok());
    let worst = figures.filter(|figure| figure.is_finite()).reduce(f64::max);
    worst.ok_or_else(|| format!("`cargo {COMMAND}` passes, but prints no line with `{MARK}`"))
}
