//! Versions of the crates that the peers' workspace is built from, as its lock file says.

use std::fs;

use super::workspace;

/// The version of a package in a lock file.
pub fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let mut lines = lock.lines();
    lines.find(|line| line.strip_prefix("name = ").is_some_and(|name| name.trim_matches('"') == package))?;
    lines.next()?.strip_prefix("version = ").map(|version| version.trim_matches('"'))
}

/// Names and versions of these packages, in one line.
pub fn versions(packages: &[&str]) -> String {
    let lock = fs::read_to_string(workspace().join("Cargo.lock")).unwrap_or_default();
    let one = |package: &&str| format!("{package} {}", version(&lock, package).unwrap_or("(not locked)"));
    packages.iter().map(one).collect::<Vec<_>>().join(", ")
}
