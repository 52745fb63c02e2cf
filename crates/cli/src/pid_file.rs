//! `--pid-file`: the process's number in a file, for `kill` and service managers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shearwater::engine::FileIdentity;
use shearwater::engine::written::{check_replaceable, read_own, replace};

use crate::failure::Failure;

/// Permissions of the file, whatever the umask is: others may read the number, and nobody else may change it.
const MODE: u32 = 0o644;

/// Folder of the PID file of the package's unit.
const PACKAGED: &str = "/run/shearwater";

/// Bytes of a PID file: a number and the end of the line.
pub(crate) const LEN_MAX: u64 = 32;

/// The file that this process has written last.
static WRITTEN: Mutex<Option<FileIdentity>> = Mutex::new(None);

/// A place for a file that will have the number of this process. It was writable when the server was about to start.
pub(crate) struct PreparedPidFile(PathBuf);

/// A file with the number of this process, removed when this is dropped.
pub(crate) struct PidFile {
    path: PathBuf,
    /// Another process writes its number there.
    is_left: bool,
}

fn written() -> MutexGuard<'static, Option<FileIdentity>> {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the number of this process there.
fn write(path: &Path) -> io::Result<()> {
    *written() = Some(replace(path, text().as_bytes(), MODE)?);
    Ok(())
}

/// Returns true if the file is still the one that this process has written.
fn is_ours(path: &Path) -> bool {
    let found = read_own(path, LEN_MAX);
    found.is_ok_and(|(content, file)| content == text().as_bytes() && Some(file) == *written())
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
        check_replaceable(path).map_err(|error| failed(path, &error))?;
        Ok(PreparedPidFile(path.to_owned()))
    }
}

impl PreparedPidFile {
    /// Writes the file, in place of one of another process: a killed server, or the one that this one succeeds. A failure
    /// is logged: connections are accepted by now.
    pub(crate) fn write(self) -> Option<PidFile> {
        let Self(path) = self;
        if let Err(error) = write(&path) {
            let path = path.display();
            tracing::error!(target: "shearwater", kind = "pid_file_failed", "can't write the PID file {path}: {error}");
            return None;
        }
        Some(PidFile { path, is_left: false })
    }
}

/// Returns the PID file of a server whose commands name none: the first one that is there of the usual places.
pub(crate) fn usual() -> Result<PathBuf, Failure> {
    let folder_of =
        |name: &str| std::env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folders = [folder_of("RUNTIME_DIRECTORY"), folder_of("XDG_RUNTIME_DIR"), Some(PACKAGED.into())];
    let places: Vec<_> = folders.into_iter().flatten().map(|folder| folder.join("shearwater.pid")).collect();
    places.iter().find(|place| place.exists()).cloned().ok_or_else(|| {
        let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        Failure::system(
            format!("no PID file is at {}", places.join(" or ")),
            Some("name the one that the server was started with (--pid-file)".to_owned()),
        )
    })
}

/// Writes the number of this process again if it is there: `shearwater upgrade` takes that for a refusal.
pub(crate) fn renew(path: &Path) {
    if is_ours(path) {
        // Otherwise the command waits longer.
        drop(write(path));
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
        if !self.is_left && is_ours(&self.path) {
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
        let written = PidFile::prepare(&folder.at("pid")).expect("writable").write().expect("writable");
        fs::rename(folder.at("pid"), folder.at("moved")).expect("renamed");
        fs::copy(folder.at("moved"), folder.at("pid")).expect("a file with the same content");
        drop(written);
        assert!(folder.at("pid").exists(), "another file is left alone");
        assert!(PidFile::prepare(folder.path()).is_err(), "a folder");
        assert!(PidFile::prepare(&folder.at("missing/pid")).is_err(), "no folder");
    }
}
