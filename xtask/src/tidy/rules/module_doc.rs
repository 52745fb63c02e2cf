//! Rule `module-doc`: every Rust file says in its first line what it is.
//!
//! Who has never seen the code finds a line's file by names, and knows from the first sentence whether it is the right
//! one.

use super::Rule;
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "module-doc",
    reason: "every .rs file starts with `//!` and a sentence: a reader knows at once whether this is the right file",
    check,
};

/// Fewer words are no sentence.
const WORDS_MIN: usize = 3;

fn check(tree: &Tree, report: &mut Report<'_>) {
    for file in tree.files().filter(|file| file.extension() == "rs") {
        let first = file.text.lines().next().unwrap_or("");
        let words = first.strip_prefix("//!").map(|sentence| sentence.split_whitespace().count());
        if words.is_none_or(|words| words < WORDS_MIN) {
            report.add(
                &file.path,
                1,
                "no module documentation at the top",
                "start with `//!` and what this file is",
            );
        }
    }
}
