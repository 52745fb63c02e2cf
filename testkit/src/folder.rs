//! Temporary folders with files of certain times.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

/// A temporary folder, removed when dropped. Its methods panic on errors.
#[derive(Debug)]
pub struct TestFolder(TempDir);

impl Default for TestFolder {
    fn default() -> Self {
        Self::new()
    }
}

impl TestFolder {
    /// Creates an empty folder, whose path has no symbolic links.
    pub fn new() -> Self {
        let temporary = std::env::temp_dir().canonicalize().expect("a folder for temporary files");
        Self(tempfile::tempdir_in(temporary).expect("a temporary folder"))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of a name in it.
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and creates its folders.
    #[track_caller]
    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Self {
        let (path, content) = (self.at(name), content.as_ref());
        // Mostly the folder is there, and some tests write thousands of files.
        if fs::write(&path, content).is_err() {
            fs::create_dir_all(path.parent().expect("it is in the folder")).expect("folders can be created");
            fs::write(path, content).expect("a file can be written");
        }
        self
    }

    /// Creates a symbolic link.
    #[track_caller]
    pub fn link(&self, name: impl AsRef<Path>, target: impl AsRef<Path>) -> &Self {
        symlink(target, self.at(name)).expect("a link can be created");
        self
    }

    /// Sets the modification time of a file.
    #[track_caller]
    pub fn set_modified(&self, name: impl AsRef<Path>, time: SystemTime) -> &Self {
        let file = File::options().write(true).open(self.at(name)).expect("the file is there");
        file.set_modified(time).expect("times can be set");
        self
    }

    /// Returns the modification time of a file.
    #[track_caller]
    pub fn modified(&self, name: impl AsRef<Path>) -> SystemTime {
        fs::metadata(self.at(name)).and_then(|meta| meta.modified()).expect("the file is there")
    }

    /// Waits for the file system's clock: changes within one tick have the same `ctime`.
    pub fn tick(&self) {
        let file = tempfile::tempfile_in(&self.0).expect("a file can be written");
        let changed =
            || file.metadata().map(|meta| (meta.ctime(), meta.ctime_nsec())).expect("a file has times");
        let before = changed();
        while changed() == before {
            file.set_modified(UNIX_EPOCH).expect("times can be set");
        }
    }

    /// Returns the names of all files beneath it, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder can be read") {
                let path = entry.expect("an entry can be read").path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else {
                    names.push(
                        path.strip_prefix(self.path())
                            .expect("it is beneath the folder")
                            .to_string_lossy()
                            .into_owned(),
                    );
                }
            }
        }
        names.sort();
        names
    }
}
