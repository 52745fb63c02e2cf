//! Rule `file-system`: the engine never opens a file itself.
//!
//! Opening by path blocks the worker and bypasses the guarded root that keeps requests inside the served folder.

use super::Rule;
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;
use crate::tidy::uses::lines_using;

pub(crate) const RULE: Rule = Rule {
    name: "file-system",
    reason: "no std::fs in engine: paths are opened beneath a guarded root, by io::fs alone",
    check,
};

const BOUND: &str = "engine";

fn check(tree: &Tree, report: &mut Report<'_>) {
    for (file, code) in tree.rust().filter(|(file, _)| file.is_shipped() && file.room() == Some(BOUND)) {
        for line in lines_using(code, &["std", "fs"]) {
            report.add(&file.path, line, "uses `std::fs`", "take an opened file from `shearwater_io::fs`");
        }
    }
}
