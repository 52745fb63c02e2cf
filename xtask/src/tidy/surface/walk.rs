//! A walk over the items of a module: every name on the crate's surface that is another's.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, Fields, ImplItem, Item, ItemImpl, ItemMacro, ItemUse, Path, Token, Type};

use super::names::{Names, OURS, Target, below, is_for_tests, is_public};
use crate::tidy::code::Code;
use crate::tidy::uses;

/// Aliases within aliases that are followed.
const ALIASES_MAX: usize = 16;

/// The standard library's macros that stand among items; none of them makes a public one.
const QUIET_MACROS: &[&str] = &["thread_local", "compile_error"];

/// Crates whose names bind nobody, or have a surface of their own.
const STANDARD: &[&str] = &["std", "core", "alloc"];

/// See the [module](self).
pub(super) struct Walk<'n> {
    names: &'n Names<'n>,
    module: Vec<String>,
    /// How many aliases stand around what is being visited.
    depth: usize,
    /// Where the outermost of them is named.
    named_at: Option<usize>,
    found: BTreeSet<(usize, String)>,
}

impl<'n> Walk<'n> {
    /// A walk that begins in this module.
    pub(super) fn new(names: &'n Names<'n>, module: Vec<String>) -> Self {
        Self { names, module, depth: 0, named_at: None, found: BTreeSet::new() }
    }

    /// Lines and paths.
    pub(super) fn into_found(self) -> BTreeSet<(usize, String)> {
        self.found
    }

    /// Walks over the items of the module, and of those within.
    pub(super) fn items(&mut self, items: &[Item], code: &Code) {
        for item in items.iter().filter(|item| !is_for_tests(item, code)) {
            match item {
                Item::Mod(inline) => {
                    let Some((_, items)) = &inline.content else { continue };
                    let inside = below(&self.module, &inline.ident.to_string());
                    let around = std::mem::replace(&mut self.module, inside);
                    self.items(items, code);
                    self.module = around;
                }
                Item::Use(item) => self.import(item),
                Item::Impl(item) => self.implementation(item),
                Item::Macro(item) => self.item_macro(item),
                _ => self.declaration(item),
            }
        }
    }

    /// What declares a name.
    fn declaration(&mut self, item: &Item) {
        match item {
            Item::Fn(item) if is_public(&item.vis) => self.visit_signature(&item.sig),
            Item::Struct(item) if is_public(&item.vis) => {
                self.derives(&item.attrs);
                self.visit_generics(&item.generics);
                self.fields(&item.fields, false);
            }
            Item::Union(item) if is_public(&item.vis) => {
                self.derives(&item.attrs);
                self.visit_generics(&item.generics);
                self.fields(&Fields::Named(item.fields.clone()), false);
            }
            Item::Enum(item) if is_public(&item.vis) => {
                self.derives(&item.attrs);
                self.visit_generics(&item.generics);
                item.variants.iter().for_each(|variant| self.fields(&variant.fields, true));
            }
            Item::Trait(item) if is_public(&item.vis) => self.visit_item_trait(item),
            Item::Type(item) if is_public(&item.vis) => self.visit_item_type(item),
            Item::Const(item) if is_public(&item.vis) => self.visit_type(&item.ty),
            Item::Static(item) if is_public(&item.vis) => self.visit_type(&item.ty),
            Item::ExternCrate(item) if is_public(&item.vis) => {
                self.path(&[item.ident.to_string()], item.ident.span().start().line);
            }
            _ => {}
        }
    }

    /// Fields: public ones, or all of a variant.
    fn fields(&mut self, fields: &Fields, of_variant: bool) {
        let seen = fields.iter().filter(|field| of_variant || is_public(&field.vis));
        seen.for_each(|field| self.visit_type(&field.ty));
    }

    /// Traits that are implemented by a word.
    fn derives(&mut self, attributes: &[Attribute]) {
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
            let listed = attribute.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated);
            listed.into_iter().flatten().for_each(|path| self.visit_path(&path));
        }
    }

    /// A public import, and any that hides what it brings.
    fn import(&mut self, item: &ItemUse) {
        for import in uses::imports_of(item) {
            let is_glob = import.path.last().is_some_and(|last| last == "*");
            if is_glob && !import.path.first().is_some_and(|first| is_nobodys(first)) {
                self.found.insert((import.line, import.path.join("::")));
            } else if is_public(&item.vis) {
                self.path(&import.path, import.line);
            }
        }
    }

    /// What is implemented: nobody sees it where the type or the trait is the crate's own and not public.
    fn implementation(&mut self, item: &ItemImpl) {
        if !self.is_seen_type(&item.self_ty) {
            return;
        }
        match &item.trait_ {
            Some((path, _)) if self.is_seen(path) => self.visit_item_impl(item),
            Some(_) => {}
            None => {
                self.visit_generics(&item.generics);
                self.visit_type(&item.self_ty);
                item.items.iter().for_each(|item| self.member(item));
            }
        }
    }

    fn member(&mut self, item: &ImplItem) {
        match item {
            ImplItem::Fn(item) if is_public(&item.vis) => self.visit_signature(&item.sig),
            ImplItem::Const(item) if is_public(&item.vis) => self.visit_type(&item.ty),
            _ => {}
        }
    }

    fn is_seen_type(&self, ty: &Type) -> bool {
        match ty {
            Type::Path(ty) if ty.qself.is_none() => self.is_seen(&ty.path),
            _ => true,
        }
    }

    fn is_seen(&self, path: &Path) -> bool {
        !matches!(self.names.resolve(&self.module, &parts(path)), Target::Own { is_public: false })
    }

    /// A macro that makes items, or a call of one.
    fn item_macro(&mut self, item: &ItemMacro) {
        if !QUIET_MACROS.iter().any(|quiet| item.mac.path.is_ident(quiet)) {
            self.tokens(&item.mac.tokens);
        }
    }

    fn tokens(&mut self, tokens: &TokenStream) {
        for tree in tokens.clone() {
            match tree {
                TokenTree::Group(group) => self.tokens(&group.stream()),
                TokenTree::Ident(ident) => self.path(&[ident.to_string()], ident.span().start().line),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn path(&mut self, path: &[String], line: usize) {
        let line = self.named_at.unwrap_or(line);
        match self.names.resolve(&self.module, path) {
            Target::Foreign(path) => drop(self.found.insert((line, path))),
            Target::Alias(ty, module) if self.depth < ALIASES_MAX => {
                let around = std::mem::replace(&mut self.module, module);
                let outer = self.named_at.replace(line);
                self.depth += 1;
                self.visit_type(ty);
                self.depth -= 1;
                self.named_at = outer;
                self.module = around;
            }
            Target::Alias(..) | Target::Own { .. } | Target::Known => {}
        }
    }
}

impl Visit<'_> for Walk<'_> {
    fn visit_path(&mut self, path: &Path) {
        self.path(&parts(path), path.span().start().line);
        visit::visit_path(self, path);
    }

    // What follows is nobody's business outside, or is looked at elsewhere.
    fn visit_block(&mut self, _: &Block) {}

    fn visit_expr(&mut self, _: &Expr) {}

    fn visit_attribute(&mut self, _: &Attribute) {}
}

fn is_nobodys(first: &str) -> bool {
    STANDARD.contains(&first) || first.starts_with(OURS)
}

fn parts(path: &Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}
