//! `cargo xtask tidy`: the rules that neither the compiler nor clippy can check.
//!
//! A rule reads the [`tree::Checkout`] and reports findings. Its test plants violations, `xtask/planted.toml`, into a small clean tree.

mod documents;
mod names;
#[cfg(test)]
mod tests;
mod tree;
mod walls;
mod words;

use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::Result;
use serde::Deserialize;
use tree::Checkout;

/// Arguments of `cargo xtask tidy`.
#[derive(clap::Args)]
pub(crate) struct TidyArgs {
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

/// Checks the checkout. Returns true if nothing was found.
pub(crate) fn run(args: &TidyArgs, root: &Path) -> Result<bool> {
    if args.list {
        for (name, reason) in RULES.iter().flat_map(|rule| (rule.reasons)()) {
            println!("{name:15} {reason}");
        }
        return Ok(true);
    }
    let tree = Checkout::read(root)?;
    if args.lower {
        return words::lower(&tree, root).map(|()| true);
    }
    let findings = match &args.prose {
        Some(path) => words::prose_hits(&tree, path),
        None => check(&tree),
    };
    findings.iter().for_each(|finding| println!("{finding}"));
    println!("tidy: {} findings", findings.len());
    Ok(findings.is_empty())
}

/// A rule, or a few that share a check.
struct TidyRule {
    /// Names and reasons.
    reasons: fn() -> Vec<(&'static str, &'static str)>,
    check: fn(&Checkout, &mut Vec<TidyFinding>),
}

/// The data of the rules: `xtask/tidy.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TidyConfig {
    ban: Vec<words::Ban>,
    #[serde(deserialize_with = "words::prose")]
    prose: Vec<words::Ban>,
    foreign: Vec<String>,
}

const CONFIG_PATH: &str = "xtask/tidy.toml";
static CONFIG: LazyLock<TidyConfig> = LazyLock::new(|| {
    toml::from_str(include_str!("../../tidy.toml")).unwrap_or_else(|error| panic!("{CONFIG_PATH}: {error}"))
});

const RULES: &[TidyRule] = &[walls::RULE, words::RULE, documents::RULE, names::RULE];

/// Returns the findings of all rules, by path and line.
fn check(tree: &Checkout) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    RULES.iter().for_each(|rule| (rule.check)(tree, &mut findings));
    findings.sort();
    findings
}

/// A breach of a rule. Ordered by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TidyFinding {
    path: String,
    /// Counted from 1; 1 also for the file as a whole.
    line: usize,
    rule: &'static str,
    what: String,
    help: String,
}

impl TidyFinding {
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

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}; help: {}", self.path, self.line, self.rule, self.what, self.help)
    }
}
