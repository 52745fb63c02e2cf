//! Rule `event-match`: one `match` on driver events, in the worker.
//!
//! A second place that looks at events is a second event loop in the making, and with it a second copy of HTTP. Every
//! event is told apart once and handed on as a call.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{ExprMatch, Pat, Path};

use super::Rule;
use crate::tidy::code::{Code, Kind};
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;
use crate::tidy::uses::imports;

pub(crate) const RULE: Rule = Rule {
    name: "event-match",
    reason: "driver events are matched once, in crates/engine/src/worker.rs: a second match is a second event loop",
    check,
};

const PLACE: &str = "crates/engine/src/worker.rs";

/// The crate that makes the events, and the one that cannot see them.
const FREE: &[&str] = &["io", "http1"];

const INSTEAD: &str = "give the one match in crates/engine/src/worker.rs an arm that calls a function here";

fn check(tree: &Tree, report: &mut Report<'_>) {
    let bound = |room: Option<&str>| room.is_some_and(|room| !FREE.contains(&room));
    for (file, code) in tree.rust().filter(|(file, _)| file.is_shipped() && bound(file.room())) {
        let seen = Seen::in_code(code);
        if file.path != PLACE {
            for line in seen.patterns {
                report.add(&file.path, line, "a pattern on `Event`", INSTEAD);
            }
        } else if let [_, more @ ..] = seen.matches.as_slice() {
            for line in more {
                report.add(&file.path, *line, "a second `match` on `Event`", "add to the first one");
            }
        }
        for line in hidden(code) {
            let instead = "write `Event::Name` where it is used, so that this rule can see it";
            report.add(&file.path, line, "variants of `Event` imported, or `Event` renamed", instead);
        }
    }
}

/// Imports that would let a pattern on `Event` go unseen.
fn hidden(code: &Code) -> Vec<usize> {
    let hides = |path: &[String], renamed: bool| {
        let (last, before) =
            path.split_last().map_or(("", &path[..0]), |(last, before)| (last.as_str(), before));
        (last == "Event" && renamed) || before.iter().any(|part| part == "Event")
    };
    let found = imports(code).into_iter().filter(|import| hides(&import.path, import.renamed.is_some()));
    found.map(|import| import.line).filter(|line| !code.is_test_line(*line)).collect()
}

/// `matches!` and its kin are a match in disguise, whose content is not parsed as patterns.
fn in_macros(code: &Code) -> Vec<usize> {
    let tokens = &code.tokens;
    let is_match = |at: &usize| {
        let token = &tokens[*at];
        token.kind == Kind::Ident
            && !token.test
            && token.text.contains("matches")
            && code.is_punct(at + 1, "!")
    };
    let names_event = |at: &usize| {
        (at + 2..code.closing(at + 2))
            .any(|inner| tokens[inner].is_ident("Event") && code.is_punct(inner + 1, ":"))
    };
    (0..tokens.len()).filter(is_match).filter(names_event).map(|at| tokens[at].line).collect()
}

/// Lines of patterns on `Event`, and of `match` expressions that have such patterns.
struct Seen<'a> {
    code: &'a Code,
    patterns: Vec<usize>,
    matches: Vec<usize>,
}

impl<'a> Seen<'a> {
    fn in_code(code: &'a Code) -> Self {
        let mut seen = Self { code, patterns: Vec::new(), matches: Vec::new() };
        seen.visit_file(&code.syntax);
        seen.patterns.extend(in_macros(code));
        seen
    }

    fn pattern(&mut self, path: &Path) {
        let line = path.span().start().line;
        let names = path.segments.iter().rev().skip(1).any(|segment| segment.ident == "Event");
        if names && !self.code.is_test_line(line) {
            self.patterns.push(line);
        }
    }
}

impl<'ast> Visit<'ast> for Seen<'_> {
    fn visit_pat(&mut self, pattern: &'ast Pat) {
        match pattern {
            Pat::Path(pattern) => self.pattern(&pattern.path),
            Pat::TupleStruct(pattern) => self.pattern(&pattern.path),
            Pat::Struct(pattern) => self.pattern(&pattern.path),
            _ => {}
        }
        visit::visit_pat(self, pattern);
    }

    fn visit_expr_match(&mut self, expression: &'ast ExprMatch) {
        let before = self.patterns.len();
        expression.arms.iter().for_each(|arm| self.visit_pat(&arm.pat));
        if self.patterns.len() > before {
            self.matches.push(expression.span().start().line);
        }
        self.patterns.truncate(before);
        visit::visit_expr_match(self, expression);
    }
}
