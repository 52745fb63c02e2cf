//! What a name means in a module of a crate: the crate's own item, or somebody else's.

use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned;
use syn::{Item, Visibility};

use crate::tidy::code::Code;
use crate::tidy::tree::File;
use crate::tidy::uses;

/// Imports of imports that are followed: more than any of ours, so that a circle ends.
const HOPS_MAX: usize = 32;

/// What our own packages' names begin with; each has its own surface.
pub(super) const OURS: &str = "shearwater";

/// The names of a crate, by module.
pub(super) struct Names<'a> {
    modules: BTreeMap<Vec<String>, BTreeMap<String, Definition<'a>>>,
    uses: &'a BTreeSet<String>,
}

enum Definition<'a> {
    Item { is_public: bool },
    Alias(&'a syn::Type),
    Import(Vec<String>),
}

/// What a path leads to.
pub(super) enum Target<'a> {
    /// Another's, by its path from the crate on.
    Foreign(String),
    /// Another name of this type, to be understood in this module.
    Alias(&'a syn::Type, Vec<String>),
    /// An item of the crate.
    Own { is_public: bool },
    /// The standard library's, one of our other crates', or a parameter.
    Known,
}

impl<'a> Names<'a> {
    /// No names yet, in a crate that uses these others.
    pub(super) fn new(uses: &'a BTreeSet<String>) -> Self {
        Self { modules: BTreeMap::new(), uses }
    }

    /// Adds those of a file. Those for tests alone are left out: they would stand in the way of the others.
    pub(super) fn add(&mut self, file: &'a File, module: &[String]) {
        if let Some(Ok(code)) = &file.code {
            self.add_items(&code.syntax.items, code, module);
        }
    }

    fn add_items(&mut self, items: &'a [Item], code: &Code, module: &[String]) {
        let mut definitions = BTreeMap::new();
        for item in items.iter().filter(|item| !is_for_tests(item, code)) {
            if let Item::Mod(inline) = item
                && let Some((_, items)) = &inline.content
            {
                self.add_items(items, code, &below(module, &inline.ident.to_string()));
            }
            define(item, &mut definitions);
        }
        self.modules.entry(module.to_vec()).or_default().extend(definitions);
    }

    /// What a path leads to from a module.
    pub(super) fn resolve(&self, module: &[String], path: &[String]) -> Target<'a> {
        self.resolve_within(module, path, HOPS_MAX)
    }

    fn resolve_within(&self, module: &[String], path: &[String], hops: usize) -> Target<'a> {
        let Some((first, rest)) = path.split_first() else { return Target::Known };
        match first.as_str() {
            "crate" => self.find(&[], rest, hops),
            "self" => self.find(module, rest, hops),
            "super" => {
                let parent = &module[..module.len().saturating_sub(1)];
                match rest.first().is_some_and(|next| next == "super") {
                    true => self.resolve_within(parent, rest, hops),
                    false => self.find(parent, rest, hops),
                }
            }
            _ if self.has(module, first) => self.find(module, path, hops),
            _ if self.uses.contains(first) && !first.starts_with(OURS) => Target::Foreign(path.join("::")),
            _ => Target::Known,
        }
    }

    fn has(&self, module: &[String], name: &str) -> bool {
        let defined = self.modules.get(module).is_some_and(|names| names.contains_key(name));
        defined || self.modules.contains_key(&below(module, name))
    }

    /// Follows a path whose first name stands in the module.
    fn find(&self, module: &[String], path: &[String], hops: usize) -> Target<'a> {
        let Some((first, rest)) = path.split_first() else { return Target::Known };
        let definition = self.modules.get(module).and_then(|names| names.get(first));
        match definition {
            Some(Definition::Import(target)) if hops > 0 => {
                // What imports the name that it has itself: it means the crate.
                let target: Vec<String> = target.iter().chain(rest).cloned().collect();
                match target.first() == Some(first) && self.uses.contains(first) {
                    true if first.starts_with(OURS) => Target::Known,
                    true => Target::Foreign(target.join("::")),
                    false => self.resolve_within(module, &target, hops - 1),
                }
            }
            Some(Definition::Alias(alias)) => Target::Alias(alias, module.to_vec()),
            Some(Definition::Item { is_public }) => Target::Own { is_public: *is_public },
            _ => self.find(&below(module, first), rest, hops),
        }
    }
}

/// The names that an item of a module gives to types, traits and modules.
fn define<'a>(item: &'a Item, into: &mut BTreeMap<String, Definition<'a>>) {
    let (name, visibility) = match item {
        Item::Struct(item) => (&item.ident, &item.vis),
        Item::Enum(item) => (&item.ident, &item.vis),
        Item::Union(item) => (&item.ident, &item.vis),
        Item::Trait(item) => (&item.ident, &item.vis),
        Item::Type(item) => {
            into.insert(item.ident.to_string(), Definition::Alias(&item.ty));
            return;
        }
        Item::ExternCrate(item) => {
            let name = item.rename.as_ref().map_or(&item.ident, |(_, name)| name);
            into.insert(name.to_string(), Definition::Import(vec![item.ident.to_string()]));
            return;
        }
        Item::Use(item) => {
            for import in uses::imports_of(item) {
                let name = import.renamed.or_else(|| import.path.last().cloned());
                name.into_iter().for_each(|name| {
                    into.insert(name, Definition::Import(import.path.clone()));
                });
            }
            return;
        }
        _ => return,
    };
    into.insert(name.to_string(), Definition::Item { is_public: is_public(visibility) });
}

pub(super) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

pub(super) fn is_for_tests(item: &Item, code: &Code) -> bool {
    code.is_test_line(item.span().start().line)
}

pub(super) fn below(module: &[String], name: &str) -> Vec<String> {
    module.iter().cloned().chain([name.to_owned()]).collect()
}
