//! Rule `leftovers`: no marks of unfinished work.
//!
//! What is left to do belongs in an issue, where it can be seen, argued about and closed.

use super::Rule;
use crate::tidy::code::Code;
use crate::tidy::finding::Report;
use crate::tidy::tree::{File, Tree};

pub(crate) const RULE: Rule = Rule {
    name: "leftovers",
    reason: "no markers, todo!, unimplemented! or dbg! in the tree: what is left to do belongs in an issue",
    check,
};

/// Words in comments.
const MARKERS: &[&str] = &["FIXME", "TODO", "XXX", "HACK"];

const MACROS: &[&str] = &["todo", "unimplemented", "dbg"];

/// Files with comments after `#`.
const HASH_COMMENTED: &[&str] = &["toml", "yml", "yaml", "sh", "py"];

fn check(tree: &Tree, report: &mut Report<'_>) {
    for (file, code) in tree.rust() {
        for (line, what) in in_code(code) {
            report.add(&file.path, line, what, "finish it, or open an issue and remove the mark");
        }
    }
    for file in tree.files().filter(|file| is_hash_commented(file)) {
        for (index, line) in file.text.lines().enumerate() {
            let comment = line.split_once('#').map_or("", |(_, comment)| comment);
            if let Some(marker) = marker_in(comment) {
                report.add(
                    &file.path,
                    index + 1,
                    format!("`{marker}` in a comment"),
                    "finish it, or open an issue",
                );
            }
        }
    }
}

fn is_hash_commented(file: &File) -> bool {
    HASH_COMMENTED.contains(&file.extension()) || file.path.starts_with(".ci/")
}

fn in_code(code: &Code) -> Vec<(usize, String)> {
    let calls = MACROS.iter().flat_map(|name| code.macros(name));
    let calls = calls.map(|token| (token.line, format!("`{}!` left behind", token.text)));
    let marked = code.comments.iter().filter_map(|comment| Some((comment.line, marker_in(&comment.text)?)));
    calls.chain(marked.map(|(line, marker)| (line, format!("`{marker}` in a comment")))).collect()
}

/// The first marker that stands as a word of its own.
fn marker_in(comment: &str) -> Option<&'static str> {
    let mut words = comment.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.find_map(|word| MARKERS.iter().find(|marker| word == **marker).copied())
}
