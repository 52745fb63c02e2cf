//! The surface of a library crate: what its public items name that comes from other people's crates.
//!
//! It is read from the source, module by module. What source alone can't tell doesn't occur: that every bare `pub` is reachable from
//! outside is rustc's `unreachable_pub`, an error in continuous integration; an import by glob from another's crate counts as a mention;
//! and of a macro that makes items each token counts.

mod names;
mod walk;

use std::collections::BTreeSet;

use super::tree::{File, Tree};
use names::Names;
use walk::Walk;

/// A name from another's crate on the surface.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mention {
    /// The file that names it.
    pub(crate) file: String,
    pub(crate) line: usize,
    /// As the source has it, from the crate on: `http::Request`.
    pub(crate) path: String,
}

/// What a crate is and may name: its folder, and the crates that it uses, as code calls them.
pub(crate) struct Room<'a> {
    pub(crate) folder: &'a str,
    pub(crate) uses: BTreeSet<String>,
}

/// All that the surface of a crate names from other people's crates, in the order of files and lines.
pub(crate) fn mentions(tree: &Tree, room: &Room<'_>) -> BTreeSet<Mention> {
    let files: Vec<(&File, Vec<String>)> = tree
        .files()
        .filter(|file| file.room() == Some(room.folder) && file.is_shipped())
        .filter_map(|file| Some((file, module_of(&file.path, room.folder)?)))
        .collect();
    let mut names = Names::new(&room.uses);
    for (file, module) in &files {
        names.add(file, module);
    }
    let mut found = BTreeSet::new();
    for (file, module) in &files {
        let Some(Ok(code)) = &file.code else { continue };
        let mut walk = Walk::new(&names, module.clone());
        walk.items(&code.syntax.items, code);
        let mention = |(line, path)| Mention { file: file.path.clone(), line, path };
        found.extend(walk.into_found().into_iter().map(mention));
    }
    found
}

/// The module that a file of the library is: `crates/x/src/a/b.rs` is `a::b`.
fn module_of(path: &str, folder: &str) -> Option<Vec<String>> {
    let inside = path.strip_prefix(&format!("crates/{folder}/src/"))?.strip_suffix(".rs")?;
    let mut module: Vec<String> = inside.split('/').map(str::to_owned).collect();
    if matches!(module.last().map(String::as_str), Some("lib" | "mod")) {
        module.pop();
    }
    Some(module)
}
