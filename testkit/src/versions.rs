//! Files that change while they are served: every 8 bytes have the version and their place, so that no mixture goes unnoticed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Length of a word; lengths and offsets are multiples of it.
pub const WORD: usize = 8;
/// Version in the first word of a file that is being rewritten in place.
const HALF_WRITTEN: u32 = 0;
/// Magic number of a Zstandard frame (RFC 8878 section 3.1.1).
const ZSTD_MAGIC: u32 = 0xFD2F_B528;
/// Bytes of one write when a file is rewritten.
const WRITE_BYTES: usize = 64 * 1024;

/// The result of reading a body, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// One version, every byte in its place.
    Version(u32),
    /// The file itself says that it is half written.
    HalfWritten,
    /// Anything else.
    Mixture(String),
}

/// Returns `len` bytes of a version. `form` distinguishes a file, 0, from its sibling `.zst`, which begins as that coding does.
pub fn content(version: u32, form: u32, len: usize) -> Vec<u8> {
    (0..len / WORD).flat_map(|index| word(version, form, index)).collect()
}

/// Returns the first word of a file that is being rewritten.
pub fn half_written(form: u32) -> [u8; WORD] {
    word(HALF_WRITTEN, form, 0)
}

fn word(version: u32, form: u32, index: usize) -> [u8; WORD] {
    let is_magic = form > 0 && index == 0 && version != HALF_WRITTEN;
    let version = if is_magic { ZSTD_MAGIC } else { version };
    // Files have fewer than 2^31 words.
    (u64::from(version) | (u64::from(form) << 63) | ((index as u64) << 32)).to_le_bytes()
}

/// Reads bytes that a file has from `offset` on.
pub fn read(bytes: &[u8], form: u32, offset: usize) -> Body {
    let mut found = None;
    let (words, rest) = bytes.as_chunks::<WORD>();
    if !rest.is_empty() {
        return Body::Mixture(format!("a part of a word after {} words", words.len()));
    }
    for (index, bytes) in words.iter().enumerate() {
        let at = offset + index * WORD;
        // The lower half is the version.
        let version = u64::from_le_bytes(*bytes) as u32;
        if *bytes != word(version, form, at / WORD) {
            return Body::Mixture(format!("{bytes:?} at {at}"));
        }
        if at == 0 && version == HALF_WRITTEN {
            return Body::HalfWritten;
        }
        if at == 0 && form > 0 {
            continue;
        }
        let first = *found.get_or_insert(version);
        if version != first {
            return Body::Mixture(format!("version {version} at {at}, {first} before"));
        }
    }
    found.map_or(Body::Mixture("nothing".to_owned()), Body::Version)
}

/// A file of `len` bytes with versions.
#[derive(Debug)]
pub struct VersionedFile {
    /// Its path.
    pub path: PathBuf,
    /// Its length while it is whole.
    pub len: usize,
    /// See [`content`].
    pub form: u32,
}

impl VersionedFile {
    /// Writes a version to a new file and renames that over this one.
    pub fn replace(&self, version: u32) -> io::Result<()> {
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let content = content(version, self.form, self.len);
        fs::write(&new, &content)?;
        if let Ok(present) = File::open(&self.path) {
            let (before, file) = (changed(&present)?, File::options().write(true).open(&new)?);
            // Of three files within one tick of the clock, the third may have the inode of the first and the same metadata.
            while changed(&file)? <= before {
                file.write_all_at(&content[..WORD], 0)?;
            }
        }
        fs::rename(&new, &self.path)
    }

    /// Sets the length.
    pub fn truncate(&self, len: u64) -> io::Result<()> {
        File::options().write(true).open(&self.path)?.set_len(len)
    }

    /// Writes a version into the file itself, from front to back. The first word says that it is half written until the end.
    pub fn rewrite(&self, version: u32) -> io::Result<()> {
        let file = File::options().write(true).open(&self.path)?;
        let before = changed(&file)?;
        // Two changes within one tick of the file system's clock can't be distinguished by anybody.
        while changed(&file)? == before {
            file.write_all_at(&half_written(self.form), 0)?;
        }
        let content = content(version, self.form, self.len);
        for (number, bytes) in content[WORD..].chunks(WRITE_BYTES).enumerate() {
            file.write_all_at(bytes, (WORD + number * WRITE_BYTES) as u64)?;
        }
        file.write_all_at(&content[..WORD], 0)
    }

    /// Removes the file.
    pub fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Makes changes over and over on another thread while `test` runs.
pub fn while_changing<T>(mut change: impl FnMut() + Send, test: impl FnOnce() -> T) -> T {
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        // Also if the test fails: otherwise the thread would never end.
        let _end = SetOnDrop(is_over);
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                change();
            }
        });
        test()
    })
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Time of the last change by the file system's clock.
fn changed(file: &File) -> io::Result<(i64, i64)> {
    file.metadata().map(|metadata| (metadata.ctime(), metadata.ctime_nsec()))
}
