//! Directory entries: names, kinds, lengths and times.

use rustix::fs::{AtFlags, Dir, FileType, Stat, statat};

use super::{OpenError, Opened};

/// A directory entry, as of the time of reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name: any bytes except slash and NUL.
    pub name: Vec<u8>,
    /// Its kind. Symbolic links are not followed.
    pub kind: EntryKind,
    /// Length in bytes; meaningful for a file.
    pub len: u64,
    /// Modification time, in seconds since 1970.
    pub modified_seconds: i64,
}

/// Kind of a directory entry.
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

impl Opened {
    /// Reads the names of an open directory, without `.` and `..`, in no particular order.
    ///
    /// Calls `each` with every name, and its kind if the file system reports it with the name. Returns
    /// whether there were no more than `max` names.
    ///
    /// # Errors
    /// Fails if it is no directory or can't be read. Reading takes a descriptor of its own.
    pub fn names(
        &self,
        max: usize,
        mut each: impl FnMut(&[u8], Option<EntryKind>),
    ) -> Result<bool, OpenError> {
        let mut directory = Dir::read_from(&self.file).map_err(OpenError::of)?;
        let mut left = max;
        while let Some(read) = directory.read() {
            let read = read.map_err(OpenError::of)?;
            let name = read.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if left == 0 {
                return Ok(false);
            }
            left -= 1;
            each(name, EntryKind::reported(read.file_type()));
        }
        Ok(true)
    }

    /// Reads the metadata of an entry of an open directory. `None` if it is gone or can't be read.
    #[must_use]
    pub fn entry(&self, name: &[u8]) -> Option<Entry> {
        let stat = statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Entry::new(name, &stat))
    }
}

impl EntryKind {
    fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }

    /// Converts the kind that is reported with a name. Some file systems don't report it.
    fn reported(file_type: FileType) -> Option<Self> {
        (file_type != FileType::Unknown).then(|| Self::of(file_type))
    }
}

impl Entry {
    fn new(name: &[u8], stat: &Stat) -> Self {
        let kind = EntryKind::of(FileType::from_raw_mode(stat.st_mode));
        let len = u64::try_from(stat.st_size).unwrap_or(0);
        Self { name: name.to_vec(), kind, len, modified_seconds: stat.st_mtime }
    }
}
