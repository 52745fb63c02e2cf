//! `use` declarations, spread out into full paths.

use std::collections::BTreeSet;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{ItemUse, UseTree};

use super::code::Code;

/// One imported name: its full path, `*` for a glob, with the line where its last part stands.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// The other name it is given by `as`.
    pub(crate) renamed: Option<String>,
    pub(crate) line: usize,
}

impl Import {
    /// Whether the path begins with these segments.
    pub(crate) fn starts_with(&self, segments: &[&str]) -> bool {
        self.path.len() >= segments.len()
            && self.path.iter().zip(segments).all(|(part, segment)| part == segment)
    }

    /// Whether the path ends with these segments.
    pub(crate) fn ends_with(&self, segments: &[&str]) -> bool {
        let skipped = self.path.len().checked_sub(segments.len());
        skipped.is_some_and(|skipped| {
            self.path[skipped..].iter().zip(segments).all(|(part, segment)| part == segment)
        })
    }
}

/// All imports of a file, those inside functions and modules too.
pub(crate) fn imports(code: &Code) -> Vec<Import> {
    let mut found = Imports::default();
    found.visit_file(&code.syntax);
    found.0
}

/// The imports of one declaration.
pub(crate) fn imports_of(item: &ItemUse) -> Vec<Import> {
    let mut found = Imports::default();
    found.visit_item_use(item);
    found.0
}

/// Lines of code for more than tests that use the module `path`, by an import or by a full path.
pub(crate) fn lines_using(code: &Code, path: &[&str]) -> BTreeSet<usize> {
    let inline = code.paths(path).filter(|token| !token.test).map(|token| token.line);
    let imported =
        imports(code).into_iter().filter(|import| import.starts_with(path)).map(|import| import.line);
    inline.chain(imported.filter(|line| !code.is_test_line(*line))).collect()
}

#[derive(Default)]
struct Imports(Vec<Import>);

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.spread(&item.tree, &mut Vec::new());
        visit::visit_item_use(self, item);
    }
}

impl Imports {
    fn spread(&mut self, tree: &UseTree, prefix: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.spread(&path.tree, prefix);
                prefix.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|item| self.spread(item, prefix)),
            UseTree::Name(name) => self.add(prefix, &name.ident.to_string(), None, tree),
            UseTree::Rename(name) => {
                self.add(prefix, &name.ident.to_string(), Some(name.rename.to_string()), tree);
            }
            UseTree::Glob(_) => self.add(prefix, "*", None, tree),
        }
    }

    fn add(&mut self, prefix: &[String], last: &str, renamed: Option<String>, tree: &UseTree) {
        let mut path = prefix.to_vec();
        // `use a::{self}` imports `a`.
        if last != "self" {
            path.push(last.to_owned());
        }
        self.0.push(Import { path, renamed, line: tree.span().start().line });
    }
}
