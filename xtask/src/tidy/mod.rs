//! `cargo xtask tidy`: the rules that neither the compiler nor clippy can check.
//!
//! A rule reads the [`tree::Tree`] and reports findings. Its test plants a violation into a small clean tree.

mod documents;
mod files;
mod limits;
mod prose;
mod surface;
#[cfg(test)]
mod tests;
mod tree;
mod walls;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Deserializer};
use tree::Tree;

/// Exit status when the checkout could not be read.
const UNREADABLE: u8 = 2;

/// Arguments of `cargo xtask tidy`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the rules with their reasons, check nothing
    #[arg(long)]
    list: bool,
    /// Print every hit of the rule `prose` in a file or folder
    #[arg(long, value_name = "PATH", conflicts_with = "list")]
    prose: Option<String>,
    /// Lower the ceilings of the rule `prose` to today's counts
    #[arg(long, conflicts_with_all = ["list", "prose"])]
    lower: bool,
}

/// Checks the checkout. Exit status 0: nothing found, 1: findings, 2: the checkout could not be read.
pub(crate) fn run(args: &Args) -> ExitCode {
    match try_run(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(UNREADABLE)
        }
    }
}

fn try_run(args: &Args) -> Result<ExitCode, String> {
    if args.list {
        for (name, reason) in RULES.iter().flat_map(|rule| (rule.reasons)()) {
            println!("{name:15} {reason}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the manifest lies in a folder of the checkout");
    let tree = Tree::read(root)?;
    if args.lower {
        return prose::lower(&tree, root).map(|()| ExitCode::SUCCESS);
    }
    let findings = match &args.prose {
        Some(path) => prose::hits(&tree, path),
        None => check(&tree),
    };
    findings.iter().for_each(|finding| println!("{finding}"));
    println!("tidy: {} findings", findings.len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A rule, or a few that share a check.
struct Rule {
    /// Names and reasons.
    reasons: fn() -> Vec<(&'static str, &'static str)>,
    check: fn(&Tree, &mut Vec<Finding>),
}

/// The data of the rules: `xtask/tidy.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Config {
    ban: Vec<words::Ban>,
    prose: prose::Words,
    /// By crate.
    foreign_types: BTreeMap<String, Vec<String>>,
}

const CONFIG_PATH: &str = "xtask/tidy.toml";
static CONFIG: LazyLock<Config> = LazyLock::new(|| {
    toml::from_str(include_str!("../../tidy.toml")).unwrap_or_else(|error| panic!("{CONFIG_PATH}: {error}"))
});

/// Reads a regular expression.
fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Regex, D::Error> {
    Regex::new(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

const RULES: &[Rule] =
    &[walls::RULE, words::RULE, surface::RULE, files::RULE, limits::RULE, documents::RULE, prose::RULE];

/// Returns the findings of all rules, by path and line.
fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    RULES.iter().for_each(|rule| (rule.check)(tree, &mut findings));
    findings.sort();
    findings
}

/// A breach of a rule. Ordered by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// Counted from 1; 1 also for the file as a whole.
    line: usize,
    rule: &'static str,
    what: String,
    help: String,
}

impl Finding {
    fn new(
        path: &str,
        line: usize,
        rule: &'static str,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { path: path.to_owned(), line, rule, what: what.into(), help: help.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}; help: {}", self.path, self.line, self.rule, self.what, self.help)
    }
}
