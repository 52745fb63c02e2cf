//! Rule `lengths`: files and functions stay short, with a ratchet for what is not.
//!
//! A function that fits a screen is read as a whole. Exceptions are listed in `xtask/tidy-ratchet.txt` with their exact
//! figure, so that they can shrink and never grow. Its lines: `file PATH LINES` and `fn PATH::NAME LINES`.

use std::collections::BTreeMap;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, ImplItemFn, ItemFn, Signature, TraitItemFn};

use super::Rule;
use crate::tidy::code::Code;
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "lengths",
    reason: "files up to 500 lines, functions up to 70: what fits a screen is read as a whole; exceptions may only shrink",
    check,
};

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

const RATCHET: &str = "xtask/tidy-ratchet.txt";

/// A file or function with its length.
struct Measured {
    /// As the ratchet names it: `file PATH` or `fn PATH::NAME`.
    key: String,
    path: String,
    line: usize,
    lines: usize,
    lines_max: usize,
}

fn check(tree: &Tree, report: &mut Report<'_>) {
    let mut allowed = ratchet(tree, report);
    let too_long = measure(tree).into_iter().filter(|measured| measured.lines > measured.lines_max);
    for measured in too_long {
        let Measured { key, path, line, lines, lines_max } = &measured;
        match allowed.remove(key).map(|(_, figure)| figure) {
            None => report.add(
                path,
                *line,
                format!("`{key}` has {lines} lines"),
                format!("cut it to {lines_max} at most"),
            ),
            Some(figure) if figure < *lines => {
                report.add(
                    path,
                    *line,
                    format!("`{key}` grew from {figure} to {lines} lines"),
                    "cut it back",
                );
            }
            Some(figure) if figure > *lines => {
                let instead = format!("lower its entry in {RATCHET} to {lines}");
                report.add(path, *line, format!("`{key}` shrank from {figure} to {lines} lines"), instead);
            }
            Some(_) => {}
        }
    }
    for (key, (line, _)) in allowed {
        report.add(RATCHET, line, format!("`{key}` is not too long any more, or gone"), "remove the entry");
    }
}

/// Entries of the ratchet: key -> its line and figure.
fn ratchet(tree: &Tree, report: &mut Report<'_>) -> BTreeMap<String, (usize, usize)> {
    let text = tree.file(RATCHET).map_or("", |file| file.text.as_str());
    let mut entries = BTreeMap::new();
    for (index, line) in
        text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        let entry = line.rsplit_once(' ').and_then(|(key, figure)| Some((key, figure.parse().ok()?)));
        match entry {
            Some((key, figure)) => drop(entries.insert(key.to_owned(), (index + 1, figure))),
            None => report.add(
                RATCHET,
                index + 1,
                "no entry of the ratchet",
                "write `file PATH LINES` or `fn PATH::NAME LINES`",
            ),
        }
    }
    entries
}

fn measure(tree: &Tree) -> Vec<Measured> {
    let mut found = Vec::new();
    for file in tree.files().filter(|file| file.extension() == "rs") {
        let (key, path) = (format!("file {}", file.path), file.path.clone());
        found.push(Measured {
            key,
            path,
            line: 1,
            lines: file.text.lines().count(),
            lines_max: FILE_LINES_MAX,
        });
    }
    for (file, code) in tree.rust() {
        found.extend(Functions::of(code).into_iter().map(|(name, line, lines)| Measured {
            key: format!("fn {}::{name}", file.path),
            path: file.path.clone(),
            line,
            lines,
            lines_max: FUNCTION_LINES_MAX,
        }));
    }
    found
}

/// Name, first line and length of every function, from `fn` to the closing brace.
#[derive(Default)]
struct Functions(Vec<(String, usize, usize)>);

impl Functions {
    fn of(code: &Code) -> Vec<(String, usize, usize)> {
        let mut functions = Self::default();
        functions.visit_file(&code.syntax);
        functions.0
    }

    fn add(&mut self, signature: &Signature, block: &Block) {
        let first = signature.fn_token.span().start().line;
        let last = block.span().end().line;
        self.0.push((signature.ident.to_string(), first, last + 1 - first));
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
