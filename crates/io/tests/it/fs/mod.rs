//! The confined file system: one table for both resolvers, and races with renames.

use std::fs;
use std::path::{Path, PathBuf};

use shearwater_io::fs::{Resolver, Root};
use testkit::TestFolder;

mod cached;
mod directories;
mod mounts;
mod race;
mod table;
mod written;

/// Returns the root with each resolver of this system; all have the walk.
fn roots(path: &Path) -> Vec<Root> {
    let roots: Vec<Root> = [Resolver::Kernel, Resolver::Walk]
        .into_iter()
        .filter_map(|resolver| Root::open_with(path, resolver).ok())
        .collect();
    assert!(roots.iter().any(|root| root.resolver() == Resolver::Walk));
    roots
}

/// Content of files outside the root.
pub(crate) const SECRET: &str = "secret";

/// `TREE/root` is the root, `TREE/outside` is not. Removed when dropped.
pub(crate) struct Tree(TestFolder);

impl Tree {
    pub(crate) fn new() -> Self {
        let folder = TestFolder::new();
        fs::create_dir(folder.at("root")).expect("a folder");
        folder.file("outside/f", SECRET);
        Self(folder)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.at("root")
    }

    /// Returns a path of the tree, such as `root/a` or `outside/b`.
    pub(crate) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.at(path)
    }

    pub(crate) fn file(&self, path: &str, content: &str) {
        self.0.file(path, content);
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        self.0.link(path, target);
    }
}
