//! `--pid-file`: the process's number in a file, for `kill` and service managers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use crate::failure::Failure;

/// A place for a file that will have the number of this process. It was writable when the server was about to start.
pub(crate) struct PreparedPidFile(PathBuf);

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
    Failure::usage_helped(
        format!("can't write the PID file {}: {error}", path.display()),
        "name a file in a folder that this user may write to",
    )
}

impl PidFile {
    /// Checks that the file can be written. Nothing stays there: the process may be killed before it serves.
    pub(crate) fn prepare(path: &Path) -> Result<PreparedPidFile, Failure> {
        let new = under_first_name(path);
        let is_folder = path.is_dir().then(|| io::Error::from(io::ErrorKind::IsADirectory));
        let written = is_folder.map_or_else(|| fs::write(&new, text()), Err);
        written.and_then(|()| fs::remove_file(&new)).map_err(|error| failed(path, &error))?;
        Ok(PreparedPidFile(path.to_owned()))
    }
}

impl PreparedPidFile {
    /// Writes the file, in place of one of another process: a killed server, or the one that this one succeeds. A failure
    /// is logged: connections are accepted by now.
    pub(crate) fn write(self) -> Option<PidFile> {
        let (Self(path), text) = (self, text());
        if let Err(error) = replace(&path, &text) {
            let path = path.display();
            tracing::error!(target: "shearwater", kind = "pid_file_failed", "can't write the PID file {path}: {error}");
            return None;
        }
        Some(PidFile { path, text, is_left: false })
    }
}

/// Puts a file in place by renaming it, so that nobody reads a part of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = under_first_name(path);
    // A full disk may have left an empty one.
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Writes the number of this process again if it is there: `shearwater upgrade` takes that for a refusal.
pub(crate) fn renew(path: &Path) {
    if fs::read_to_string(path).is_ok_and(|found| found == text()) {
        // Otherwise the command waits longer.
        drop(replace(path, &text()));
    }
}

/// Returns the name of a file until it is complete.
fn under_first_name(path: &Path) -> PathBuf {
    let mut new = path.to_owned().into_os_string();
    new.push(".new");
    new.into()
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

#[cfg(test)]
mod tests {
    use std::fs;

    use testkit::TestFolder;

    use super::PidFile;

    #[test]
    fn a_process_that_is_killed_before_it_serves_leaves_no_file() {
        let folder = TestFolder::new();
        let names = || {
            fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry").file_name())
        };
        let prepared = PidFile::prepare(&folder.at("pid")).expect("the folder is writable");
        assert_eq!(names().count(), 0);
        let written = prepared.write().expect("the folder is writable");
        assert_eq!(names().collect::<Vec<_>>(), ["pid"]);
        assert_eq!(fs::read_to_string(folder.at("pid")).expect("a file"), super::text());
        drop(written);
        assert_eq!(names().count(), 0);
        assert!(PidFile::prepare(folder.path()).is_err(), "a folder");
        assert!(PidFile::prepare(&folder.at("missing/pid")).is_err(), "no folder");
    }
}
