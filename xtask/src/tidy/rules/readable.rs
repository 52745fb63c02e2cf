//! Rule `readable`: a file that cannot be parsed is a finding, for it would pass every other rule unread.

use super::Rule;
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "readable",
    reason: "every Rust file and manifest can be parsed: what cannot be read would pass all other rules",
    check,
};

fn check(tree: &Tree, report: &mut Report<'_>) {
    for file in tree.files() {
        if let Some(Err((line, why))) = &file.code {
            report.add(
                &file.path,
                *line,
                format!("is no Rust that can be parsed: {why}"),
                "mend or remove it",
            );
        }
        if let Some(Err((line, what))) = &file.settings {
            let instead = "write it in the plain TOML that xtask/src/tidy/manifest.rs reads";
            report.add(&file.path, *line, format!("cannot read {what}"), instead);
        }
    }
}
