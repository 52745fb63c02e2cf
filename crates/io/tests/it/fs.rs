//! The guarded file system: one table for both resolvers, and races against someone who moves things about.

mod entries;
mod looked_up;
mod mounts;
mod race;
mod table;
mod tree;

use std::path::Path;

use shearwater_io::fs::{Resolver, Root};

/// The root with each resolver that this system has; the walk is everywhere.
fn roots(path: &Path) -> Vec<Root> {
    let roots: Vec<Root> = [Resolver::Kernel, Resolver::Walk]
        .into_iter()
        .filter_map(|resolver| Root::open_with(path, resolver).ok())
        .collect();
    assert!(roots.iter().any(|root| root.resolver() == Resolver::Walk));
    roots
}
