//! `--pid-file`: the process's number in a file, for `kill` and service managers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use crate::failure::Failure;

/// A file that will have the number of this process.
///
/// A rename puts it in place, so that nobody reads a part of it. A missing folder or permission is an error before the server starts.
pub(crate) struct PreparedPidFile {
    path: PathBuf,
    /// The file under its first name.
    new: PathBuf,
}

/// A file with the number of this process, removed when this is dropped.
pub(crate) struct PidFile {
    path: PathBuf,
    text: String,
    /// Another process writes its number there.
    is_left: bool,
}

fn text() -> String {
    format!("{}\n", process::id())
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::helped(
        format!("can't write the PID file {}: {error}", path.display()),
        "name a file in a folder that this user may write to",
    )
}

impl PidFile {
    /// Writes the file under another name.
    pub(crate) fn prepare(path: &Path) -> Result<PreparedPidFile, Failure> {
        let mut new = path.to_owned().into_os_string();
        new.push(".new");
        let new = PathBuf::from(new);
        let written =
            if path.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { fs::write(&new, text()) };
        written.map_err(|error| failed(path, &error))?;
        Ok(PreparedPidFile { path: path.to_owned(), new })
    }
}

impl PreparedPidFile {
    /// Gives the file its name, in place of one that a killed server has left, or that is of the process that this one succeeds.
    /// A failure is logged: connections are accepted by now.
    pub(crate) fn write(self) -> Option<PidFile> {
        if let Err(error) = fs::rename(&self.new, &self.path) {
            let path = self.path.display();
            tracing::error!(target: "shearwater", kind = "pid_file_failed", "can't write the PID file {path}: {error}");
            return None;
        }
        Some(PidFile { path: self.path.clone(), text: text(), is_left: false })
    }
}

impl Drop for PreparedPidFile {
    fn drop(&mut self) {
        // It is gone if it was renamed.
        drop(fs::remove_file(&self.new));
    }
}

impl PidFile {
    /// Leaves the file to another process, which writes its own number there at any moment.
    pub(crate) fn leave(&mut self) {
        self.is_left = true;
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Another server may have replaced it.
        if !self.is_left && fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            // Nothing is left to do for a file that can't be removed: its number belongs to no server.
            drop(fs::remove_file(&self.path));
        }
    }
}
