//! Rule `foreign-types`: which types of other people's crates may stand on the surface of ours.
//!
//! Whoever uses such a type is bound to the version of its crate that we use: a major version of theirs is one of ours. It is read from
//! the source and not from rustdoc, whose machine-readable form needs a nightly compiler and a build: this runs anywhere, in a second.
//! The standard library's types are free; what the surface is, `surface` says.

use std::collections::BTreeSet;

use super::Rule;
use crate::tidy::finding::Report;
use crate::tidy::manifest::Setting;
use crate::tidy::surface::{self, Room};
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "foreign-types",
    reason: "public items name other people's types only as far as the table allows: each binds our versions to theirs",
    check,
};

/// A type, a trait or a whole module of another's crate that public items of ours may name.
struct Allowed {
    folder: &'static str,
    path: &'static str,
    /// Why it can't be one of ours.
    why: &'static str,
}

const fn in_tower(path: &'static str, why: &'static str) -> Allowed {
    Allowed { folder: "tower", path, why }
}

const ALLOWED: &[Allowed] = &[
    Allowed {
        folder: "allocator",
        path: "mimalloc::MiMalloc",
        why: "what the program's global allocator is of; no other program is meant to use the crate",
    },
    in_tower("tower_service::Service", "the trait that the crate is there for"),
    in_tower("http::Request", "what such a service is called with"),
    in_tower("http::Response", "what such a service answers"),
    in_tower("http_body::Body", "the trait of bodies: a request's implements it, an answer's has to"),
    in_tower("http_body::Frame", "in that trait's method"),
    in_tower("http_body::SizeHint", "in that trait's method"),
    in_tower("bytes::Buf", "the bound that the trait of bodies has on their pieces"),
    in_tower("bytes::Bytes", "a request's pieces, as axum's own body has them"),
    in_tower("tokio::net::TcpListener", "what `axum::serve` takes"),
    in_tower("tokio::net::UnixListener", "what `axum::serve` takes"),
    in_tower("axum::routing::IntoMakeService", "what `axum::serve` takes"),
    in_tower("axum::extract::connect_info::IntoMakeServiceWithConnectInfo", "what `axum::serve` takes"),
    in_tower("axum::extract::Request", "what services are fixed to that `axum::serve` takes"),
];

const TABLE: &str = "xtask/src/tidy/rules/foreign_types.rs";

fn check(tree: &Tree, report: &mut Report<'_>) {
    let mut used = BTreeSet::new();
    for (file, settings) in tree.manifests("Cargo.toml") {
        let Some(folder) = file.room().filter(|folder| is_library(tree, folder)) else { continue };
        let room = Room { folder, uses: dependencies(settings) };
        for mention in surface::mentions(tree, &room) {
            match ALLOWED.iter().position(|allowed| covers(allowed, folder, &mention.path)) {
                Some(index) => drop(used.insert(index)),
                None => report.add(
                    &mention.file,
                    mention.line,
                    format!("`{}` stands on the surface of `{folder}`", mention.path),
                    format!("keep it inside, or argue for an entry in {TABLE}"),
                ),
            }
        }
    }
    for (index, allowed) in ALLOWED.iter().enumerate() {
        if is_library(tree, allowed.folder) && !used.contains(&index) {
            let what = format!("`{}` ({}) stands on no surface", allowed.path, allowed.why);
            report.add(TABLE, 1, what, "remove its entry");
        }
    }
}

fn is_library(tree: &Tree, folder: &str) -> bool {
    tree.file(&format!("crates/{folder}/src/lib.rs")).is_some()
}

fn covers(allowed: &Allowed, folder: &str, path: &str) -> bool {
    let rest = path.strip_prefix(allowed.path);
    allowed.folder == folder && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The crates that a manifest's settings let the code use, under the names that it uses.
fn dependencies(settings: &[Setting]) -> BTreeSet<String> {
    let of_target = |setting: &Setting| if setting.is_under(&["target"]) { 2 } else { 0 };
    let tables = settings.iter().filter_map(|setting| setting.path.get(of_target(setting)..));
    let named = tables.filter_map(|path| match path {
        [table, name, ..] if table == "dependencies" => Some(name.replace('-', "_")),
        _ => None,
    });
    named.collect()
}
