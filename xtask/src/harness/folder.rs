//! A temporary folder that is gone when the trial ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::trouble::{During, Outcome};

/// A folder of its own below the system's temporary folder, removed on drop unless it is to be kept.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    keep: bool,
}

static MADE: AtomicU32 = AtomicU32::new(0);

impl Folder {
    /// Makes an empty folder; with `keep` it outlives the trial and its path is printed.
    pub(crate) fn new(keep: bool) -> Outcome<Self> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("shearwater-trial-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).during("making a temporary folder")?;
        Ok(Self { path, keep })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder below it, with its parents.
    pub(crate) fn make(&self, relative: &str) -> Outcome<PathBuf> {
        let path = self.path.join(relative);
        fs::create_dir_all(&path).during("making a folder to serve")?;
        Ok(path)
    }

    /// Writes a file below it, with its parents.
    pub(crate) fn write(&self, relative: &str, bytes: &[u8]) -> Outcome<PathBuf> {
        let path = self.path.join(relative);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).during("making a folder to serve")?;
        }
        fs::write(&path, bytes).during("writing a file to serve")?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.keep {
            eprintln!("kept: {}", self.path.display());
        } else {
            // Nothing can be done about a folder that will not go; the system clears its temporary files.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
