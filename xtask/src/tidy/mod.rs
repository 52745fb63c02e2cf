//! `cargo xtask tidy`: the walls and habits of the house, held by a program.
//!
//! A [`tree::Tree`] is the workspace as text, from disk or from memory. Each rule reads it and reports findings. The
//! self-test plants one violation after another into a small clean tree and expects exactly the rule in question to
//! speak up.

mod code;
mod finding;
mod manifest;
mod markdown;
mod rules;
#[cfg(test)]
mod selftest;
mod surface;
mod tree;
mod uses;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use finding::Finding;
use tree::Tree;

/// Arguments of `cargo xtask tidy`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the rules with their reasons, check nothing
    #[arg(long)]
    list: bool,
    /// Check the workspace in this folder [default: the one around the current folder]
    #[arg(long, value_name = "FOLDER")]
    root: Option<PathBuf>,
}

/// Exit status when the tree could not be read.
const UNREADABLE: u8 = 2;

/// Checks the tree or lists the rules. Exit status 0: nothing found, 1: findings, 2: the tree could not be read.
pub(crate) fn run(args: &Args) -> ExitCode {
    if args.list {
        print!("{}", listing());
        return ExitCode::SUCCESS;
    }
    let tree = match find_root(args.root.as_deref()).and_then(|root| Tree::from_disk(&root)) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: {error}");
            return ExitCode::from(UNREADABLE);
        }
    };
    let findings = check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} rules, {} findings", tree.len(), rules::ALL.len(), findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// All findings of all rules, in the order of paths and lines.
fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in rules::ALL {
        rule.run(tree, &mut findings);
    }
    findings.sort();
    findings
}

fn listing() -> String {
    let width = rules::ALL.iter().map(|rule| rule.name.len()).max().unwrap_or(0);
    let line = |rule: &rules::Rule| format!("{:width$}  {}\n", rule.name, rule.reason);
    rules::ALL.iter().map(line).collect()
}

/// The folder asked for, or the nearest one at or above the current folder that holds this program's manifest.
fn find_root(asked: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(root) = asked {
        return Ok(root.to_path_buf());
    }
    let here = std::env::current_dir().map_err(|error| format!("the current folder is unknown: {error}"))?;
    let root = here.ancestors().find(|folder| folder.join("xtask/Cargo.toml").is_file());
    root.map(Path::to_path_buf).ok_or_else(|| "no workspace here or above; use --root".to_owned())
}
