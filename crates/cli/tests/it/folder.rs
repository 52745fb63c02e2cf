//! A temporary folder to start the program in.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// Removed when dropped.
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("shearwater-cli-{}-{number}", std::process::id()));
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

    /// Gives a file a time, in seconds since 1970.
    pub(crate) fn modified(&self, name: &str, seconds: u64) {
        let file = File::options().write(true).open(self.0.join(name)).expect("a file");
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).expect("a time");
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.0);
        assert!(removed.is_ok() || std::thread::panicking(), "the folder is left behind: {removed:?}");
    }
}
