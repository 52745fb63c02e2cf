//! What lies in a directory: names, kinds, lengths and times.

use std::io;

use rustix::fs::{AtFlags, Dir, FileType, Stat, statat};

use super::Opened;

/// One thing in a directory, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, which is any bytes but a slash and NUL.
    pub name: Vec<u8>,
    /// What it is; a symbolic link is itself here, and not what it leads to.
    pub kind: EntryKind,
    /// Length in bytes; means something for a file.
    pub len: u64,
    /// When the content was changed, in seconds since 1970.
    pub modified_seconds: i64,
}

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, which may lead anywhere or nowhere.
    Link,
    /// A FIFO, a socket, a device.
    Other,
}

/// How much of a directory is read: reading is a wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntriesMax {
    /// Entries that are looked at.
    pub entries: usize,
    /// Names that are read, those that nobody wants among them.
    pub names: usize,
}

/// What was found in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entries {
    /// In the directory's own order, which means nothing; without `.` and `..`.
    pub entries: Vec<Entry>,
    /// Whether there was no more.
    pub is_whole: bool,
}

impl Opened {
    /// Reads the directory that was opened: those of its entries whose names are wanted. One that goes meanwhile is left out.
    ///
    /// # Errors
    /// Where it is no directory, or can't be read.
    pub fn entries(&self, max: EntriesMax, is_wanted: impl Fn(&[u8]) -> bool) -> io::Result<Entries> {
        let mut found = Entries { entries: Vec::new(), is_whole: false };
        let mut directory = Dir::read_from(&self.file)?;
        // `.` and `..` don't count.
        for _ in 0..max.names.saturating_add(2) {
            let Some(read) = directory.read() else {
                return Ok(Entries { is_whole: true, ..found });
            };
            let read = read?;
            let name = read.file_name();
            if matches!(name.to_bytes(), b"." | b"..") || !is_wanted(name.to_bytes()) {
                continue;
            }
            if found.entries.len() == max.entries {
                return Ok(found);
            }
            // One that is gone or can't be looked at is left out; the others can.
            if let Ok(stat) = statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW) {
                found.entries.push(Entry::new(name.to_bytes(), &stat));
            }
        }
        found.is_whole = directory.read().is_none();
        Ok(found)
    }
}

impl Entry {
    fn new(name: &[u8], stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let len = u64::try_from(stat.st_size).unwrap_or(0);
        Self { name: name.to_vec(), kind, len, modified_seconds: stat.st_mtime }
    }
}
