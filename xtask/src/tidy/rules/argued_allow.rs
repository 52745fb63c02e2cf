//! Rule `argued-allow`: a lint is switched off with an argument.
//!
//! Who switches a lint off knows why at that moment, and nobody does a year later.

use super::Rule;
use crate::tidy::code::{Code, Kind};
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "argued-allow",
    reason: "#[allow] and #[expect] carry a reason or a comment: a year later nobody knows why the lint is off",
    check,
};

fn check(tree: &Tree, report: &mut Report<'_>) {
    for (file, code) in tree.rust() {
        let lines: Vec<&str> = file.text.lines().collect();
        for (line, word) in unargued(code) {
            if !has_comment(&lines, code, line) {
                let instead = format!("write `#[expect(…, reason = \"…\")]`, or a comment above `{word}`");
                report.add(&file.path, line, format!("`{word}` without a reason"), instead);
            }
        }
    }
}

/// Attributes that switch a lint off, also inside `cfg_attr`, without `reason =`.
fn unargued(code: &Code) -> Vec<(usize, &'static str)> {
    let tokens = &code.tokens;
    let mut found = Vec::new();
    for word in ["allow", "expect"] {
        for at in (1..tokens.len()).filter(|at| tokens[*at].is_ident(word)) {
            let opens = tokens.get(at + 1).is_some_and(|token| token.kind == Kind::Open);
            // `#[allow(` stands behind a bracket, `cfg_attr(x, allow(` behind a comma; a call stands behind neither.
            let in_attribute = tokens[at - 1].text == "["
                && (code.is_punct(at.wrapping_sub(2), "#") || code.is_punct(at.wrapping_sub(2), "!"));
            let conditional = tokens[at - 1].is_punct(",") && inside_cfg_attr(code, at);
            if opens && (in_attribute || conditional) {
                let list = &tokens[at..code.closing(at + 1)];
                if !list.iter().any(|token| token.is_ident("reason")) {
                    found.push((tokens[at].line, word));
                }
            }
        }
    }
    found
}

fn inside_cfg_attr(code: &Code, at: usize) -> bool {
    let starts = (0..at).rev().filter(|start| code.tokens[*start].is_ident("cfg_attr"));
    starts.take(1).any(|start| code.closing(start + 1) > at)
}

/// Whether a plain comment stands on the line, or on the one above it or above its sibling attributes.
fn has_comment(lines: &[&str], code: &Code, line: usize) -> bool {
    let comment_on = |line: usize| {
        code.comments.iter().find(|comment| comment.line == line).map(|comment| comment.text.as_str())
    };
    let is_plain = |text: &str| !text.starts_with("///") && !text.starts_with("//!");
    if comment_on(line).is_some_and(is_plain) {
        return true;
    }
    let text_of = |line: usize| lines.get(line - 1).map_or("", |text| text.trim_start());
    let mut above = line - 1;
    while above > 0 && text_of(above).starts_with("#[") {
        above -= 1;
    }
    above > 0 && text_of(above).starts_with("//") && is_plain(text_of(above))
}
