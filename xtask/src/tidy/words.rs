//! Rules that ban patterns from places, as `xtask/tidy.toml` lists them. The rule `prose` bans words from comments and documents.
//!
//! Older text has many hits of `prose`. `xtask/prose.toml` holds a ceiling for each folder: a change may lower it, never raise it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use regex::Regex;
use serde::{Deserialize, Deserializer};

use super::tree::{Checkout, SourceFile, line_at};
use super::{CONFIG, CONFIG_PATH, TidyFinding, TidyRule};

const PROSE: &str = "prose";
/// The table of ceilings: hits by folder, 0 for folders without an entry.
const CEILINGS: &str = "xtask/prose.toml";
const HEADER: &str = "# Hits of the rule `prose` that each folder may have. Figures only fall: `cargo xtask tidy --lower` lowers them.\n";

/// The file with the only match on driver events.
const WORKER: &str = "crates/engine/src/worker.rs";

/// A pattern that must not occur in a place.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ban {
    rule: String,
    reason: String,
    #[serde(default, rename = "in")]
    places: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    scope: Scope,
    #[serde(deserialize_with = "pattern")]
    pattern: Regex,
    help: String,
}

fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Regex, D::Error> {
    Regex::new(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// Reads the table of words with what to write instead.
pub(super) fn prose<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Ban>, D::Error> {
    let words = BTreeMap::<String, String>::deserialize(deserializer)?.into_iter();
    let ban = |(word, help): (String, String)| {
        let pattern = Regex::new(&format!(r"(?i)\b(?:{word})\b")).map_err(serde::de::Error::custom)?;
        let (rule, reason, help) = (PROSE.to_owned(), String::new(), format!("write {help}"));
        Ok(Ban { rule, reason, places: Vec::new(), except: Vec::new(), scope: Scope::Prose, pattern, help })
    };
    words.map(ban).collect()
}

/// A part of the files.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scope {
    Shipped,
    ShippedText,
    Code,
    Tests,
    Rust,
    Text,
    Prose,
}

pub(super) const RULE: TidyRule = TidyRule {
    reasons: || CONFIG.ban.iter().map(|ban| (ban.rule.as_str(), ban.reason.as_str())).collect(),
    check,
};

fn check(tree: &Checkout, findings: &mut Vec<TidyFinding>) {
    check_one_match(tree, findings);
    let mut prose: BTreeMap<&str, Vec<TidyFinding>> = BTreeMap::new();
    for file in tree.files() {
        let (hits, others) = hits_in(file).partition(|hit| hit.rule == PROSE);
        findings.extend::<Vec<TidyFinding>>(others);
        prose.entry(folder(&file.path)).or_default().extend::<Vec<TidyFinding>>(hits);
    }
    let ceilings = ceilings(tree);
    for (folder, hits) in &prose {
        match ceilings.get(*folder).copied().unwrap_or(0) {
            0 => findings.extend(hits.iter().cloned()),
            ceiling if hits.len() > ceiling => {
                let what = format!("{} hits in {folder}, the ceiling is {ceiling}", hits.len());
                let help =
                    format!("`cargo xtask tidy --prose {folder}` lists them with what to write instead");
                findings.push(TidyFinding::new(CEILINGS, 1, PROSE, what, help));
            }
            _ => {}
        }
    }
    for folder in ceilings.keys().filter(|folder| !prose.contains_key(folder.as_str())) {
        let what = format!("`{folder}` does not exist");
        findings.push(TidyFinding::new(CEILINGS, 1, PROSE, what, "remove its entry"));
    }
    for ban in &CONFIG.ban {
        for place in ban.places.iter().chain(&ban.except).filter(|place| !tree.exists(place)) {
            let what = format!("`{place}` of rule `{}` does not exist", ban.rule);
            findings.push(TidyFinding::new(
                CONFIG_PATH,
                1,
                &ban.rule,
                what,
                "name the file that took its place",
            ));
        }
    }
}

/// Returns the banned patterns in a file.
fn hits_in(file: &SourceFile) -> impl Iterator<Item = TidyFinding> {
    let bans = CONFIG.ban.iter().chain(&CONFIG.prose).filter(|ban| ban.covers(&file.path));
    bans.flat_map(move |ban| {
        let text = ban.scope.text(file);
        ban.pattern.find_iter(text).filter_map(move |found| {
            // A match may span lines: its end is the word.
            let line = line_at(text, found.end());
            let word = found.as_str().rsplit('\n').next().unwrap_or_default().trim();
            let finding = || TidyFinding::new(&file.path, line, &ban.rule, format!("`{word}`"), &ban.help);
            ban.scope.has(file, line).then(finding)
        })
    })
}

/// Returns every hit of the rule `prose` in a file or folder.
pub(super) fn prose_hits(tree: &Checkout, path: &str) -> Vec<TidyFinding> {
    let path = path.trim_end_matches('/');
    let is_inside = |file: &&SourceFile| {
        file.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    tree.files().filter(is_inside).flat_map(hits_in).filter(|hit| hit.rule == PROSE).collect()
}

/// Lowers each ceiling to the count of its folder.
pub(super) fn lower(tree: &Checkout, root: &Path) -> Result<()> {
    let mut text = HEADER.to_owned();
    for (name, ceiling) in ceilings(tree) {
        let hits = tree.files().filter(|file| folder(&file.path) == name).flat_map(hits_in);
        let count = hits.filter(|hit| hit.rule == PROSE).count().min(ceiling);
        if count > 0 {
            text.push_str(&format!("\"{name}\" = {count}\n"));
        }
    }
    fs::write(root.join(CEILINGS), text).context(CEILINGS)
}

fn ceilings(tree: &Checkout) -> BTreeMap<String, usize> {
    toml::from_str(tree.text(CEILINGS)).unwrap_or_default()
}

/// Returns the folder whose ceiling holds for a file: of `crates` and `lab` each member, else the topmost one.
pub(super) fn folder(path: &str) -> &str {
    let depth = if path.starts_with("crates/") || path.starts_with("lab/") { 2 } else { 1 };
    let end = path.match_indices('/').nth(depth - 1).map_or(path.len(), |(at, _)| at);
    &path[..end]
}

/// Returns all places and exceptions of the table.
#[cfg(test)]
pub(super) fn places() -> impl Iterator<Item = &'static str> {
    CONFIG.ban.iter().flat_map(|ban| ban.places.iter().chain(&ban.except)).map(String::as_str)
}

/// Checks that the file with the match on driver events names them in one function.
fn check_one_match(tree: &Checkout, findings: &mut Vec<TidyFinding>) {
    let code = tree.file(WORKER).map_or("", |file| &file.code);
    let Some((first, last)) = code.find("Event::").zip(code.rfind("Event::")) else { return };
    if let Some(at) = code[first..last].rfind("fn ") {
        let line = line_at(code, first + at);
        let what = "a second function that matches events";
        let help = "add an arm to the match that is there";
        findings.push(TidyFinding::new(WORKER, line, "event-match", what, help));
    }
}

impl Ban {
    fn covers(&self, path: &str) -> bool {
        let within = |places: &[String]| {
            places.iter().any(|place| path == place || (place.ends_with('/') && path.starts_with(place)))
        };
        (self.places.is_empty() || within(&self.places)) && !within(&self.except)
    }
}

impl Scope {
    fn text(self, file: &SourceFile) -> &str {
        match self {
            Self::Shipped | Self::Tests | Self::Rust => &file.code,
            Self::ShippedText | Self::Code => &file.statements,
            Self::Text => &file.text,
            Self::Prose => &file.prose,
        }
    }

    fn has(self, file: &SourceFile, line: usize) -> bool {
        match self {
            Self::Shipped | Self::ShippedText => file.is_shipped() && !file.is_test(line),
            Self::Code => !file.is_test(line),
            Self::Tests => file.is_test(line),
            Self::Rust | Self::Text | Self::Prose => true,
        }
    }
}
