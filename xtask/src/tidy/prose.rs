//! Rule `prose`: comments and documents use the field's terms, and doc comments begin with a verb or a noun.
//!
//! Older text has many hits. `xtask/prose.toml` holds a ceiling for each folder: a change may lower it, never raise it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use regex::Regex;
use serde::{Deserialize, Deserializer};

use super::tree::{File, Tree};
use super::{CONFIG, Finding, Rule};

const NAME: &str = "prose";
/// The table of ceilings: hits by folder, 0 for folders without an entry.
const CEILINGS: &str = "xtask/prose.toml";
const HEADER: &str = "# Hits of the rule `prose` that each folder may have. Figures only fall: `cargo xtask tidy --lower` lowers them.\n";

/// The patterns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    #[serde(deserialize_with = "super::pattern")]
    openers: Regex,
    /// With what to write instead.
    #[serde(deserialize_with = "patterns")]
    words: Vec<(Regex, String)>,
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(Regex, String)>, D::Error> {
    let table = BTreeMap::<String, String>::deserialize(deserializer)?.into_iter();
    let compile = |(word, help): (String, String)| Ok((Regex::new(&format!(r"(?i)\b(?:{word})\b"))?, help));
    table.map(compile).collect::<Result<_, regex::Error>>().map_err(serde::de::Error::custom)
}

pub(super) const RULE: Rule = Rule {
    reasons: || {
        vec![(NAME, "comments and documents use the field's terms: readers have never met the authors")]
    },
    check,
};

fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let ceilings = ceilings(tree);
    let mut by_folder: BTreeMap<&str, Vec<Finding>> = BTreeMap::new();
    for file in tree.files() {
        by_folder.entry(folder(&file.path)).or_default().extend(hits_in(file));
    }
    for (folder, hits) in &by_folder {
        match ceilings.get(*folder).copied().unwrap_or(0) {
            0 => findings.extend(hits.iter().cloned()),
            ceiling if hits.len() > ceiling => {
                let what = format!("{} hits in {folder}, the ceiling is {ceiling}", hits.len());
                let help =
                    format!("`cargo xtask tidy --prose {folder}` lists them with the words to write instead");
                findings.push(Finding::new(CEILINGS, 1, NAME, what, help));
            }
            _ => {}
        }
    }
    for folder in ceilings.keys().filter(|folder| !by_folder.contains_key(folder.as_str())) {
        findings.push(Finding::new(
            CEILINGS,
            1,
            NAME,
            format!("`{folder}` does not exist"),
            "remove its entry",
        ));
    }
}

/// Returns every hit in a file or folder.
pub(super) fn hits(tree: &Tree, path: &str) -> Vec<Finding> {
    let path = path.trim_end_matches('/');
    let is_inside = |file: &&File| {
        file.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    tree.files().filter(is_inside).flat_map(hits_in).collect()
}

/// Lowers each ceiling to the count of its folder.
pub(super) fn lower(tree: &Tree, root: &Path) -> Result<(), String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for file in tree.files() {
        *counts.entry(folder(&file.path)).or_default() += hits_in(file).len();
    }
    let mut text = HEADER.to_owned();
    for (folder, ceiling) in ceilings(tree) {
        let count = counts.get(folder.as_str()).copied().unwrap_or(0).min(ceiling);
        if count > 0 {
            text.push_str(&format!("\"{folder}\" = {count}\n"));
        }
    }
    fs::write(root.join(CEILINGS), text).map_err(|error| format!("{CEILINGS}: {error}"))
}

fn ceilings(tree: &Tree) -> BTreeMap<String, usize> {
    let table: toml::Table = tree.text(CEILINGS).parse().unwrap_or_default();
    let ceiling = |value: &toml::Value| usize::try_from(value.as_integer()?).ok();
    table.iter().filter_map(|(folder, value)| Some((folder.clone(), ceiling(value)?))).collect()
}

/// Returns the folder whose ceiling holds for a file: of `crates` and `lab` each member, else the topmost one.
fn folder(path: &str) -> &str {
    let depth = if path.starts_with("crates/") || path.starts_with("lab/") { 2 } else { 1 };
    let end = path.match_indices('/').nth(depth - 1).map_or(path.len(), |(at, _)| at);
    &path[..end]
}

/// Returns the hits in a Rust file's comments, or in a document.
fn hits_in(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add =
        |line, what: String, help: String| found.push(Finding::new(&file.path, line, NAME, what, help));
    let mut paragraph = "";
    for (text, line) in file.text.lines().zip(1..) {
        let text = match text.trim_start() {
            text if file.is_markdown() => text,
            text if file.is_rust() && text.starts_with("//") => {
                let comment = text.trim_start_matches("//").trim_start_matches(['/', '!']).trim_start();
                let is_doc = text.starts_with("///") || text.starts_with("//!");
                if let Some(opener) =
                    CONFIG.prose.openers.find(comment).filter(|_| is_doc && paragraph.is_empty())
                {
                    let help = "begin with a verb (`Returns …`) or a noun (`A worker's …`)";
                    add(
                        line,
                        format!("a doc comment that opens with `{}`", opener.as_str()),
                        help.to_owned(),
                    );
                }
                paragraph = comment;
                comment
            }
            _ => {
                paragraph = "";
                continue;
            }
        };
        // Names of code are not prose.
        for part in text.split('`').step_by(2) {
            for (word, help) in &CONFIG.prose.words {
                for found in word.find_iter(part) {
                    add(line, format!("`{}`", found.as_str()), format!("write {help}"));
                }
            }
        }
    }
    found
}
