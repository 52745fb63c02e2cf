//! `--pid-file`: the process's number in a file, for `kill` and service managers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use crate::failure::Failure;

/// A file with the number of this process, removed when this is dropped.
pub(crate) struct PidFile {
    path: PathBuf,
    text: String,
}

impl PidFile {
    /// Writes the file, in place of one that a killed server has left.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let text = format!("{}\n", process::id());
        write_whole(path, &text).map_err(|error| {
            Failure::helped(
                format!("can't write the PID file {}: {error}", path.display()),
                "name a file in a folder that this user may write to",
            )
        })?;
        Ok(Self { path: path.to_owned(), text })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Another server may have replaced it.
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            // Nothing is left to do for a file that can't be removed: its number belongs to no server.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Writes a file by a rename, so that nobody reads a part of it.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut new = path.to_owned().into_os_string();
    new.push(".new");
    fs::write(&new, text)?;
    fs::rename(&new, path).inspect_err(|_| drop(fs::remove_file(&new)))
}
