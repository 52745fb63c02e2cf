//! A temporary folder with files of certain times.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Removed when dropped.
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("shearwater-precompress-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path.canonicalize().expect("it is there"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, with the folders that it is in.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("folders");
        fs::write(path, content).expect("a file");
        self
    }

    /// Gives a file a time, in seconds and nanoseconds since 1970.
    pub(crate) fn time(&self, name: &str, seconds: u64, nanoseconds: u32) -> &Self {
        let time = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        let file = File::options().write(true).open(self.0.join(name)).expect("the file");
        file.set_times(FileTimes::new().set_modified(time)).expect("a time");
        self
    }

    /// Waits until the file system's clock has moved on: changes within one tick of it have the same `ctime`.
    pub(crate) fn tick(&self) {
        let probe = self.0.join("probe");
        let file = File::create(&probe).expect("a file");
        let changed = || file.metadata().map(|meta| (meta.ctime(), meta.ctime_nsec())).expect("its times");
        let before = changed();
        while changed() == before {
            file.set_modified(UNIX_EPOCH).expect("a time");
        }
        fs::remove_file(probe).expect("it was made here");
    }

    pub(crate) fn modified(&self, name: &str) -> SystemTime {
        fs::metadata(self.0.join(name)).and_then(|meta| meta.modified()).expect("the file")
    }

    /// All names beneath it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else {
                    names.push(path.strip_prefix(&self.0).expect("beneath").to_string_lossy().into_owned());
                }
            }
        }
        names.sort();
        names
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.0);
        assert!(removed.is_ok() || std::thread::panicking(), "the folder is left behind: {removed:?}");
    }
}
