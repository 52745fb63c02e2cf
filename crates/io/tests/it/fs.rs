//! The confined file system: one table for both resolvers, and races with renames.

mod entries;
mod looked_up;
mod mounts;
mod race;
mod table;
mod tree;

use std::path::Path;

use shearwater_io::fs::{Resolver, Root};

/// Returns the root with each resolver of this system; all have the walk.
fn roots(path: &Path) -> Vec<Root> {
    let roots: Vec<Root> = [Resolver::Kernel, Resolver::Walk]
        .into_iter()
        .filter_map(|resolver| Root::open_with(path, resolver).ok())
        .collect();
    assert!(roots.iter().any(|root| root.resolver() == Resolver::Walk));
    roots
}
