//! What was opened: the file, its kind and its metadata, of one and the same inode.

use std::fs::{File, Metadata};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use super::OpenError;

/// An open file or directory.
#[derive(Debug)]
pub struct Opened {
    /// The file, open for reading.
    pub file: File,
    /// What it is.
    pub kind: Kind,
    /// Its metadata at the time of opening.
    pub meta: Meta,
}

/// What can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// What tells one version of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Meta {
    /// Length in bytes.
    pub len: u64,
    /// When the content was changed, by the file's owner's word.
    pub mtime: Timestamp,
    /// When content or metadata was changed, by the system's word.
    pub ctime: Timestamp,
    /// Inode number.
    pub ino: u64,
    /// The device that holds the inode.
    pub dev: u64,
    /// Names that the inode has.
    pub links: u64,
}

/// A time of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970; files can be older.
    pub seconds: i64,
    /// Nanoseconds of the second, 0 to 999,999,999.
    pub nanoseconds: u32,
}

impl Opened {
    /// Looks at what was opened, so that kind and metadata can't be another file's.
    pub(super) fn new(descriptor: OwnedFd) -> Result<Self, OpenError> {
        let file = File::from(descriptor);
        let metadata = file.metadata().map_err(OpenError::Other)?;
        let kind = match metadata.file_type() {
            file_type if file_type.is_file() => Kind::File,
            file_type if file_type.is_dir() => Kind::Directory,
            _ => return Err(OpenError::NotPlain),
        };
        Ok(Self { file, kind, meta: Meta::new(&metadata) })
    }
}

impl Opened {
    /// Takes the metadata as it is now.
    ///
    /// # Errors
    /// Where the file system fails to tell; it stays what it was.
    pub fn look_again(&mut self) -> std::io::Result<()> {
        self.meta = Meta::of(&self.file)?;
        Ok(())
    }
}

impl Meta {
    /// An open file's metadata as it is now.
    ///
    /// # Errors
    /// Where the file system fails to tell.
    pub fn of(file: &File) -> std::io::Result<Self> {
        file.metadata().map(|metadata| Self::new(&metadata))
    }

    /// Whether neither content nor metadata was changed since a second of the clock began.
    #[must_use]
    pub fn is_older_than(&self, unix_seconds: u64) -> bool {
        let latest = self.mtime.seconds.max(self.ctime.seconds);
        u64::try_from(latest).map_or(true, |latest| latest < unix_seconds)
    }

    fn new(metadata: &Metadata) -> Self {
        Self {
            len: metadata.len(),
            mtime: Timestamp::new(metadata.mtime(), metadata.mtime_nsec()),
            ctime: Timestamp::new(metadata.ctime(), metadata.ctime_nsec()),
            ino: metadata.ino(),
            dev: metadata.dev(),
            links: metadata.nlink(),
        }
    }
}

impl Timestamp {
    fn new(seconds: i64, nanoseconds: i64) -> Self {
        Self { seconds, nanoseconds: u32::try_from(nanoseconds).unwrap_or(0) }
    }
}
