//! A file that changes: replaced, cut, rewritten in place, removed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use super::content::{WORD, content, half_written};

/// Bytes that a rewriting hands over in one call.
const WRITE_BYTES: usize = 64 * 1024;

/// A file, whole of `len` bytes.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    pub(crate) len: usize,
    /// See [`content`].
    pub(crate) form: u32,
}

impl Target {
    /// Writes a generation beside it and renames that over it.
    pub(crate) fn replace(&self, generation: u32) -> io::Result<()> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let content = content(generation, self.form, self.len);
        fs::write(&beside, &content)?;
        if let Ok(present) = File::open(&self.path) {
            let (before, file) = (changed(&present)?, File::options().write(true).open(&beside)?);
            // Of files that follow each other within one tick the third may have the inode of the first, and all else the same.
            while changed(&file)? <= before {
                file.write_all_at(&content[..WORD], 0)?;
            }
        }
        fs::rename(&beside, &self.path)
    }

    /// Cuts it.
    pub(crate) fn truncate(&self, len: u64) -> io::Result<()> {
        File::options().write(true).open(&self.path)?.set_len(len)
    }

    /// Writes a generation into the file itself, from front to back. As long as it is half written its first word says so.
    pub(crate) fn rewrite(&self, generation: u32) -> io::Result<()> {
        let file = File::options().write(true).open(&self.path)?;
        let before = changed(&file)?;
        // Until the clock of the file system has moved on: two changes within one tick of it can't be told apart by anybody.
        while changed(&file)? == before {
            file.write_all_at(&half_written(self.form), 0)?;
        }
        let content = content(generation, self.form, self.len);
        for (number, bytes) in content[WORD..].chunks(WRITE_BYTES).enumerate() {
            file.write_all_at(bytes, (WORD + number * WRITE_BYTES) as u64)?;
        }
        file.write_all_at(&content[..WORD], 0)
    }

    /// Removes it.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// When it was changed, by the clock of the file system.
fn changed(file: &File) -> io::Result<(i64, i64)> {
    file.metadata().map(|metadata| (metadata.ctime(), metadata.ctime_nsec()))
}
