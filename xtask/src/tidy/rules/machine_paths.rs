//! Rule `machine-paths`: no path of somebody's machine.
//!
//! A path that exists on one machine only is a test that fails, or a document that misleads, everywhere else.

use super::Rule;
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "machine-paths",
    reason: "no home folders or scratch folders of a particular machine in any text: they mislead everywhere else",
    check,
};

/// Put together from halves, so that this file does not contain what it bans.
const FOLDERS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/tmp/", "bash"),
    concat!(r"C:\Us", "ers"),
];

fn check(tree: &Tree, report: &mut Report<'_>) {
    for file in tree.files() {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(folder) = FOLDERS.iter().find(|folder| names(line, folder)) {
                let instead = "use a relative path, an environment variable, or a temporary folder";
                report.add(
                    &file.path,
                    index + 1,
                    format!("a path of a particular machine, `{folder}…`"),
                    instead,
                );
            }
        }
    }
}

/// Whether a path begins with this folder: `x/folder` is another one.
fn names(line: &str, folder: &str) -> bool {
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | '~' | '*');
    line.match_indices(folder).any(|(at, _)| !line[..at].ends_with(is_path))
}
