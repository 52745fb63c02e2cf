//! Rules that ban patterns from places, as `xtask/tidy.toml` lists them.

use regex::Regex;
use serde::Deserialize;

use super::tree::{File, Tree, line_at};
use super::{CONFIG, CONFIG_PATH, Finding, Rule};

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
    #[serde(deserialize_with = "super::pattern")]
    pattern: Regex,
    help: String,
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
}

pub(super) const RULE: Rule = Rule {
    reasons: || CONFIG.ban.iter().map(|ban| (ban.rule.as_str(), ban.reason.as_str())).collect(),
    check,
};

fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    check_one_match(tree, findings);
    for ban in &CONFIG.ban {
        for file in tree.files().filter(|file| ban.covers(&file.path)) {
            let text = ban.scope.text(file);
            for found in ban.pattern.find_iter(text) {
                // A match may span lines: its end is the word.
                let line = line_at(text, found.end());
                if ban.scope.has(file, line) {
                    let word = found.as_str().rsplit('\n').next().unwrap_or_default().trim();
                    findings.push(Finding::new(&file.path, line, &ban.rule, format!("`{word}`"), &ban.help));
                }
            }
        }
        for place in ban.places.iter().chain(&ban.except).filter(|place| !tree.exists(place)) {
            let what = format!("`{place}` of rule `{}` does not exist", ban.rule);
            findings.push(Finding::new(CONFIG_PATH, 1, &ban.rule, what, "name the file that took its place"));
        }
    }
}

/// Returns all places and exceptions of the table.
#[cfg(test)]
pub(super) fn places() -> impl Iterator<Item = &'static str> {
    CONFIG.ban.iter().flat_map(|ban| ban.places.iter().chain(&ban.except)).map(String::as_str)
}

/// Checks that the file with the match on driver events names them in one function.
fn check_one_match(tree: &Tree, findings: &mut Vec<Finding>) {
    let code = tree.file(WORKER).map_or("", |file| &file.code);
    let Some((first, last)) = code.find("Event::").zip(code.rfind("Event::")) else { return };
    if let Some(at) = code[first..last].rfind("fn ") {
        let line = line_at(code, first + at);
        let help = "add an arm to the match that is there";
        findings.push(Finding::new(
            WORKER,
            line,
            "event-match",
            "a second function that matches events",
            help,
        ));
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
    fn text(self, file: &File) -> &str {
        match self {
            Self::Shipped | Self::Tests | Self::Rust => &file.code,
            Self::ShippedText | Self::Code => &file.statements,
            Self::Text => &file.text,
        }
    }

    fn has(self, file: &File, line: usize) -> bool {
        match self {
            Self::Shipped | Self::ShippedText => file.is_shipped() && !file.is_test(line),
            Self::Code => !file.is_test(line),
            Self::Tests => file.is_test(line),
            Self::Rust | Self::Text => true,
        }
    }
}
