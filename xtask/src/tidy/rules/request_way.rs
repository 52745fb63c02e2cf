//! Rule `request-way`: the map in `ARCHITECTURE.md` names what exists.
//!
//! The way of a request is written down as `path::function`, in order. A map that has gone stale is worse than none. The page
//! of limits names the test of each limit in the same form.

use super::Rule;
use crate::tidy::finding::Report;
use crate::tidy::markdown::{Mark, code_spans};
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "request-way",
    reason: "ARCHITECTURE.md tells the way of a request as `file.rs::function`, and each of them exists: a stale map is worse than none",
    check,
};

const PAPER: &str = "ARCHITECTURE.md";
const LIMITS: &str = "docs/limits.md";
const SECTION: &str = "way of a request";

/// Folders whose paths in backticks are meant literally.
const FOLDERS: &[&str] = &["crates/", "xtask/", "docs/", ".ci/"];

fn check(tree: &Tree, report: &mut Report<'_>) {
    let Some(paper) = tree.file(PAPER) else {
        report.add(PAPER, 1, "the map is missing", "write it");
        return;
    };
    let spans = code_spans(&paper.text);
    for span in &spans {
        check_span(tree, PAPER, span, report);
    }
    for span in tree.file(LIMITS).map(|limits| code_spans(&limits.text)).unwrap_or_default() {
        check_span(tree, LIMITS, &span, report);
    }
    let heading =
        paper.text.lines().position(|line| line.starts_with('#') && line.to_lowercase().contains(SECTION));
    let Some(heading) = heading else {
        report.add(PAPER, 1, format!("no section on the {SECTION}"), format!("head it `The {SECTION}`"));
        return;
    };
    let next = paper.text.lines().skip(heading + 1).position(|line| line.starts_with('#'));
    let end = next.map_or(usize::MAX, |next| heading + 1 + next);
    let told = spans.iter().any(|span| (heading..=end).contains(&span.line) && span.text.contains(".rs::"));
    if !told {
        report.add(
            PAPER,
            heading + 1,
            "the section names no functions",
            "list them as `crates/name/src/file.rs::function`",
        );
    }
}

fn check_span(tree: &Tree, paper: &str, span: &Mark, report: &mut Report<'_>) {
    if !FOLDERS.iter().any(|folder| span.text.starts_with(folder))
        || span.text.contains(['*', '{', '<', '…', ' '])
    {
        return;
    }
    let (path, function) = span.text.split_once("::").unwrap_or((&span.text, ""));
    if !tree.exists(path) {
        report.add(paper, span.line, format!("`{path}` does not exist"), "name the file that took its place");
    } else if !function.is_empty() && !has_function(tree, path, function) {
        report.add(
            paper,
            span.line,
            format!("`{path}` has no function `{function}`"),
            "name the one that took its place",
        );
    }
}

/// `function` may carry its type: `Type::function`.
fn has_function(tree: &Tree, path: &str, function: &str) -> bool {
    let name = function.rsplit("::").next().unwrap_or(function).trim_end_matches("()");
    let Some(Ok(code)) = tree.file(path).and_then(|file| file.code.as_ref()) else { return false };
    code.tokens.windows(2).any(|pair| pair[0].is_ident("fn") && pair[1].is_ident(name))
}
