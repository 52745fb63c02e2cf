//! Rule `ignored-tests`: a test that does not run says why.
//!
//! A silently ignored test looks like a passed one.

use super::Rule;
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "ignored-tests",
    reason: "#[ignore] carries a reason: a test that silently does not run looks like one that passes",
    check,
};

fn check(tree: &Tree, report: &mut Report<'_>) {
    for (file, code) in tree.rust() {
        let ignored = code.tokens.windows(4).filter(|parts| {
            parts[0].is_punct("#")
                && parts[1].text == "["
                && parts[2].is_ident("ignore")
                && !parts[3].is_punct("=")
        });
        for parts in ignored {
            report.add(
                &file.path,
                parts[2].line,
                "`#[ignore]` without a reason",
                "write `#[ignore = \"why and when it runs\"]`",
            );
        }
    }
}
