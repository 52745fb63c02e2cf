//! Rules `crate-walls` and `files`: a crate uses only the crates that the table in ARCHITECTURE.md allows; a file has one subject.

use std::collections::BTreeMap;

use super::tree::Checkout;
use super::{TidyFinding, TidyRule};

const NAME: &str = "crate-walls";
const FILES: &str = "files";
/// A longer file holds more than one noun.
const LINES_MAX: usize = 500;
/// Fewer words are no sentence, `//!` counted.
const WORDS_MIN: usize = 3;
const PAGE: &str = "ARCHITECTURE.md";

/// Prefix of the names of our packages.
const OURS: &str = "shearwater-";

pub(super) const RULE: TidyRule = TidyRule {
    reasons: || {
        vec![
            (
                NAME,
                "each crate uses only what its line in ARCHITECTURE.md allows: walls keep cycles out and a dependency a decision",
            ),
            (
                FILES,
                "a Rust file starts with `//!` and a sentence and has 500 lines at most: readers find the right one",
            ),
        ]
    },
    check,
};

fn check(tree: &Checkout, findings: &mut Vec<TidyFinding>) {
    check_walls(tree, findings);
    for file in tree.files().filter(|file| file.is_rust()) {
        let first = file.text.lines().next().unwrap_or("");
        if !first.starts_with("//!") || first.split_whitespace().count() < WORDS_MIN {
            let help = "start with `//!` and a sentence";
            findings.push(TidyFinding::new(&file.path, 1, FILES, "no module documentation", help));
        }
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            let what = format!("{lines} lines");
            findings.push(TidyFinding::new(&file.path, LINES_MAX, FILES, what, "split it by its nouns"));
        }
    }
}

fn check_walls(tree: &Checkout, findings: &mut Vec<TidyFinding>) {
    let table = table(tree.text(PAGE));
    let workspace = manifest(tree.text("Cargo.toml"));
    for file in tree.files().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let Some(room) = file.room() else { continue };
        let mut add =
            |what: String, help: &str| findings.push(TidyFinding::new(&file.path, 1, NAME, what, help));
        let manifest = manifest(&file.text);
        let name =
            manifest.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str);
        let expected = if room == "shearwater" { room.to_owned() } else { format!("{OURS}{room}") };
        if name != Some(&expected) {
            add(format!("package {name:?} in folder `{room}`"), "call it as its folder, after the prefix");
        }
        let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if lints.and_then(toml::Value::as_bool) != Some(true) {
            add("the workspace's lints are off".to_owned(), "add `lints.workspace = true`");
        }
        let Some((_, allowed)) = table.get(room) else {
            add(format!("crate `{room}` has no line in the table of {PAGE}"), "add it, as a decision");
            continue;
        };
        for package in dependencies(&manifest, &workspace) {
            let used = package.strip_prefix(OURS).unwrap_or(&package);
            if !allowed.contains(&used) {
                add(
                    format!("`{room}` must not use `{package}`"),
                    "do without, or argue for an entry in ARCHITECTURE.md",
                );
            }
        }
    }
    let is_gone = |name: &str| !tree.exists(name) && !tree.exists(&format!("crates/{name}"));
    for (name, (line, _)) in table.iter().filter(|(name, _)| is_gone(name)) {
        let what = format!("there is no crate `{name}`");
        findings.push(TidyFinding::new(PAGE, *line, NAME, what, "remove its line"));
    }
}

/// Reads lines of the form `name -> ours, ours (third-party, third-party)  text`: the line's number and what is allowed, by name.
fn table(page: &str) -> BTreeMap<&str, (usize, Vec<&str>)> {
    let mut table = BTreeMap::new();
    for (index, line) in page.lines().enumerate() {
        let Some((name, rest)) = line.split_once("->") else { continue };
        if name.trim().contains([' ', '`', '|']) {
            continue;
        }
        let allowed = rest.trim().split("  ").next().unwrap_or_default();
        let allowed = allowed.split([',', '(', ')', ' ']).filter(|word| !word.is_empty()).collect();
        table.insert(name.trim(), (index + 1, allowed));
    }
    table
}

fn manifest(text: &str) -> toml::Table {
    text.parse().unwrap_or_default()
}

/// Returns the packages that a manifest's crate and build script use, by their real names.
fn dependencies(manifest: &toml::Table, workspace: &toml::Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let tables = targets.into_iter().flat_map(|targets| targets.values().filter_map(toml::Value::as_table));
    let tables = [manifest].into_iter().chain(tables);
    let listed = tables.flat_map(|table| ["dependencies", "build-dependencies"].map(|kind| table.get(kind)));
    let listed = listed.flatten().filter_map(toml::Value::as_table).flatten();
    let shared = workspace.get("workspace").and_then(|table| table.get("dependencies"));
    let package = |entry: &toml::Value| entry.get("package").and_then(toml::Value::as_str).map(str::to_owned);
    listed
        .map(|(name, entry)| {
            let renamed = shared.and_then(|shared| shared.get(name)).and_then(package);
            package(entry).or(renamed).unwrap_or_else(|| name.clone())
        })
        .collect()
}
