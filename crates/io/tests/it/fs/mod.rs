//! The confined file system: one table for both resolvers, and races with renames.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use shearwater_io::fs::{Resolver, Root};

mod directories;
mod mounts;
mod race;
mod table;

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
pub(crate) struct Tree {
    path: PathBuf,
}

impl Tree {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("shearwater-fs-{}-{number}", std::process::id()));
        let tree = Self { path };
        fs::create_dir_all(tree.root()).expect("temporary directory");
        tree.file("outside/f", SECRET);
        tree
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path.join("root")
    }

    /// Returns a path of the tree, such as `root/a` or `outside/b`.
    pub(crate) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.path.join(path)
    }

    pub(crate) fn file(&self, path: &str, content: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("below the tree")).expect("directory");
        fs::write(path, content).expect("file");
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        symlink(target, self.at(path)).expect("link");
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.path);
        assert!(removed.is_ok() || std::thread::panicking(), "the tree is left behind: {removed:?}");
    }
}
