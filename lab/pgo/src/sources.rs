//! What our programs are built of, as one digest: the crates' files, their manifests and the locked dependencies.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digest;

/// What counts, beneath the checkout.
const ROOTS: [&str; 3] = ["Cargo.lock", "Cargo.toml", "crates"];
/// Folders that no program is built of.
const LEFT_OUT: &str = "tests";
/// So many files are read.
const FILES_MAX: usize = 20_000;
/// So deep a folder may lie.
const DEPTH_MAX: usize = 32;

/// The digest of the checkout's sources.
///
/// # Errors
/// A file can't be read, or there are more than this reads.
pub(crate) fn digest(root: &Path) -> Result<String, String> {
    let mut files = Vec::new();
    for name in ROOTS {
        collect(&root.join(name), 0, &mut files)?;
    }
    let mut named: Vec<_> = files.iter().map(|path| (relative(root, path), path)).collect();
    named.sort();
    let mut digest = Digest::new();
    for (name, path) in named {
        digest.add(name.as_bytes());
        digest.add(&fs::read(path).map_err(|error| told(path, &error))?);
    }
    Ok(digest.text())
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn collect(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), String> {
    if files.len() >= FILES_MAX || depth > DEPTH_MAX {
        return Err(format!("{}: more than {FILES_MAX} files, or folders {DEPTH_MAX} deep", path.display()));
    }
    // Links are not followed: what they lead to is not ours.
    let kind = fs::symlink_metadata(path).map_err(|error| told(path, &error))?.file_type();
    if kind.is_file() {
        files.push(path.to_owned());
    }
    if kind.is_dir() && !path.ends_with(LEFT_OUT) {
        for entry in fs::read_dir(path).map_err(|error| told(path, &error))? {
            collect(&entry.map_err(|error| told(path, &error))?.path(), depth + 1, files)?;
        }
    }
    Ok(())
}

fn told(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
