//! Rule `limits-doc`: every limit has its line in `docs/limits.md`.
//!
//! An operator who runs into a bound must find its name, its default and what happens there without reading code.

use std::collections::BTreeSet;

use super::Rule;
use crate::tidy::code::Kind;
use crate::tidy::finding::Report;
use crate::tidy::markdown::code_spans;
use crate::tidy::tree::{File, Tree};

pub(crate) const RULE: Rule = Rule {
    name: "limits-doc",
    reason: "every public limit in a limits.rs stands in docs/limits.md, and nothing stale does: operators look bounds up by name",
    check,
};

const PAPER: &str = "docs/limits.md";

fn check(tree: &Tree, report: &mut Report<'_>) {
    let Some(paper) = tree.file(PAPER) else {
        report.add(
            PAPER,
            1,
            "the list of limits is missing",
            "write it: name, default, what happens when it is hit",
        );
        return;
    };
    let words: BTreeSet<&str> = paper.text.split(|c: char| !is_word(c)).collect();
    for file in tree.files().filter(|file| file.room().is_some() && file.path.ends_with("/limits.rs")) {
        for (line, name) in limits(file).into_iter().filter(|(_, name)| !words.contains(name.as_str())) {
            report.add(
                &file.path,
                line,
                format!("`{name}` is not in {PAPER}"),
                "add its default and what happens when it is hit",
            );
        }
    }
    let constants = constants(tree);
    for span in code_spans(&paper.text) {
        if is_constant_name(&span.text) && !constants.contains(span.text.as_str()) {
            report.add(
                PAPER,
                span.line,
                format!("`{}` is no constant of any crate", span.text),
                "correct or remove it",
            );
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// `SOME_BOUND_MAX`: capitals, with an underscore, so that a method such as `GET` is none.
fn is_constant_name(text: &str) -> bool {
    let capitals = text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    capitals && text.contains('_')
}

/// Public constants, and public fields of public structs: a limit is the one or the other.
fn limits(file: &File) -> Vec<(usize, String)> {
    let Some(Ok(code)) = &file.code else { return Vec::new() };
    let mut found = Vec::new();
    for item in &code.syntax.items {
        match item {
            syn::Item::Const(constant) if is_public(&constant.vis) => found.push(&constant.ident),
            syn::Item::Struct(item) if is_public(&item.vis) => {
                let public = item.fields.iter().filter(|field| is_public(&field.vis));
                found.extend(public.filter_map(|field| field.ident.as_ref()));
            }
            _ => {}
        }
    }
    found.into_iter().map(|name| (name.span().start().line, name.to_string())).collect()
}

fn is_public(visibility: &syn::Visibility) -> bool {
    !matches!(visibility, syn::Visibility::Inherited)
}

/// The names of all constants in all crates.
fn constants(tree: &Tree) -> BTreeSet<&str> {
    let codes = tree.rust().filter(|(file, _)| file.room().is_some()).map(|(_, code)| code);
    let declared = codes.flat_map(|code| code.tokens.windows(2).filter(|pair| pair[0].is_ident("const")));
    declared.filter(|pair| pair[1].kind == Kind::Ident).map(|pair| pair[1].text.as_str()).collect()
}
