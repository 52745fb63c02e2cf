//! Rule `sleeping-tests`: tests do not sleep.
//!
//! A sleep is too long on a quick machine and too short on a busy one. Tests drive the simulated clock, or wait for the
//! thing itself with a deadline.

use super::Rule;
use crate::tidy::code::Token;
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;
use crate::tidy::uses::imports;

pub(crate) const RULE: Rule = Rule {
    name: "sleeping-tests",
    reason: "no thread::sleep in tests: they drive the clock or wait for the thing itself, so they are quick and steady",
    check,
};

const INSTEAD: &str = "drive the simulated clock, or block on the event itself with a deadline";

fn check(tree: &Tree, report: &mut Report<'_>) {
    for (file, code) in tree.rust().filter(|(file, _)| file.room().is_some()) {
        let in_test = |token: &&Token| file.is_test() || token.test;
        let mut lines: Vec<usize> =
            code.paths(&["thread", "sleep"]).filter(in_test).map(|token| token.line).collect();
        let imported = imports(code).into_iter().filter(|import| import.ends_with(&["thread", "sleep"]));
        lines.extend(
            imported.map(|import| import.line).filter(|line| file.is_test() || code.is_test_line(*line)),
        );
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            report.add(&file.path, line, "`thread::sleep` in a test", INSTEAD);
        }
    }
}
