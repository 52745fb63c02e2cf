//! Rule `limits-page`: every public limit has its entry in docs/limits.md, and the page names no constant that is gone.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::documents::code_spans;
use super::tree::{Tree, line_at};
use super::{Finding, Rule};

const NAME: &str = "limits-page";
const PAGE: &str = "docs/limits.md";

/// Public constants, and public fields of structs, in formatted code.
static LIMIT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^(?:pub const|    pub) ([A-Za-z_]\w*):").expect("the pattern is constant")
});
static CONSTANT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bconst ([A-Z]\w+):").expect("the pattern is constant"));

pub(super) const RULE: Rule = Rule {
    reasons: || {
        vec![(
            NAME,
            "public limits of a limits.rs are in docs/limits.md, and nothing stale is: operators look bounds up by name",
        )]
    },
    check,
};

fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let page = tree.text(PAGE);
    let words: BTreeSet<&str> = page.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let crates = || tree.files().filter(|file| file.room().is_some());
    for file in crates().filter(|file| file.path.ends_with("/limits.rs") && file.is_shipped()) {
        for limit in
            LIMIT.captures_iter(&file.code).map(|found| found.get(1).expect("the pattern has a group"))
        {
            let line = line_at(&file.code, limit.start());
            if !words.contains(limit.as_str()) && !file.is_test(line) {
                let what = format!("`{}` is not in {PAGE}", limit.as_str());
                findings.push(Finding::new(&file.path, line, NAME, what, "add its default and its effect"));
            }
        }
    }
    let constants: BTreeSet<&str> = crates()
        .flat_map(|file| CONSTANT.captures_iter(&file.code))
        .map(|found| found.extract::<1>().1[0])
        .collect();
    let is_name = |span: &str| {
        span.contains('_') && span.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    for (line, span) in code_spans(page).filter(|(_, span)| is_name(span) && !constants.contains(span)) {
        let what = format!("`{span}` is no constant of any crate");
        findings.push(Finding::new(PAGE, line, NAME, what, "correct or remove it"));
    }
}
