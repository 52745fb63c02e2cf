//! Rule `files`: a source file says what it is for and stays short.

use super::tree::Tree;
use super::{Finding, Rule};

const NAME: &str = "files";

/// A longer file holds more than one noun.
const LINES_MAX: usize = 500;
/// Fewer words are no sentence, `//!` counted.
const WORDS_MIN: usize = 3;

pub(super) const RULE: Rule = Rule {
    reasons: || {
        vec![(
            NAME,
            "a Rust file starts with `//!` and a sentence and has 500 lines at most: readers find the right one",
        )]
    },
    check,
};

fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for file in tree.files().filter(|file| file.is_rust()) {
        let first = file.text.lines().next().unwrap_or("");
        if !first.starts_with("//!") || first.split_whitespace().count() < WORDS_MIN {
            findings.push(Finding::new(
                &file.path,
                1,
                NAME,
                "no module documentation",
                "start with `//!` and a sentence",
            ));
        }
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            findings.push(Finding::new(
                &file.path,
                LINES_MAX,
                NAME,
                format!("{lines} lines"),
                "split it by its nouns",
            ));
        }
    }
}
