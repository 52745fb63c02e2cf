//! Opened files and directories: descriptor, kind, metadata, entries.

use std::fs::{File, Metadata};
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Stat, statat};

use super::path::OpenError;
#[cfg(not(target_os = "linux"))]
use crate::not_linux::dates_names;

/// Least descriptor that no file may have.
static FILES_END: AtomicI32 = AtomicI32::new(i32::MAX);

/// Leaves the process's descriptors from `first` on to connections. The kernel always gives the lowest free one, so a
/// higher one means that hardly any are left, and the file isn't opened ([`OpenError::Descriptors`]).
///
/// Otherwise files could take all of them while each waits for a connection's descriptor to be sent.
pub fn leave_descriptors(first: u64) {
    FILES_END.store(i32::try_from(first).unwrap_or(i32::MAX), Ordering::Relaxed);
}

/// An open file or directory.
#[derive(Debug)]
pub struct Opened {
    /// The file, open for reading.
    pub file: File,
    /// Its kind.
    pub kind: Kind,
    /// Its metadata at the time of opening.
    pub meta: Meta,
}

/// Kind of an opened file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// Metadata that distinguishes versions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Meta {
    /// Length in bytes.
    pub len: u64,
    /// Modification time of the content, which its owner can set.
    pub mtime: Timestamp,
    /// Change time of content or metadata, set by the system.
    pub ctime: Timestamp,
    /// Inode number.
    pub ino: u64,
    /// The device that holds the inode.
    pub dev: u64,
    /// Number of hard links.
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
    /// Reads kind and metadata from the descriptor, so that they can't be another file's.
    pub(super) fn new(descriptor: OwnedFd) -> Result<Self, OpenError> {
        if descriptor.as_raw_fd() >= FILES_END.load(Ordering::Relaxed) {
            return Err(OpenError::Descriptors);
        }
        let file = File::from(descriptor);
        let metadata = file.metadata().map_err(OpenError::Other)?;
        let kind = match metadata.file_type() {
            file_type if file_type.is_file() => Kind::File,
            file_type if file_type.is_dir() => Kind::Directory,
            _ => return Err(OpenError::NotPlain),
        };
        Ok(Self { file, kind, meta: Meta::from(&metadata) })
    }
}

impl Opened {
    /// Reads as much from `offset` on as is in the page cache, without waiting for a disk.
    ///
    /// # Errors
    /// [`std::io::ErrorKind::WouldBlock`] if nothing is in the page cache; [`std::io::ErrorKind::Unsupported`] if the
    /// file system or the system (other than Linux) can't tell; and as `read_at`.
    pub fn read_cached_at(&self, bytes: &mut [u8], offset: u64) -> std::io::Result<usize> {
        crate::page_cache::read_cached(&self.file, &mut [IoSliceMut::new(bytes)], offset)
    }
}

impl Opened {
    /// Returns whether the times of an open directory show every change of its names: an entry that was created,
    /// removed or renamed.
    ///
    /// True for the usual local file systems of Linux. On these, nothing waits for the metadata of a name that is in the
    /// kernel's caches. Others may keep a directory's times whatever happens in it, as some that run in user space do, or
    /// ask a server for each.
    #[must_use]
    pub fn dates_names(&self) -> bool {
        self.kind == Kind::Directory && dates_names(&self.file)
    }
}

/// Returns whether an open directory is on a file system that dates changes of names.
#[cfg(target_os = "linux")]
fn dates_names(directory: &File) -> bool {
    /// `statfs(2)`: ext4, XFS, Btrfs, tmpfs, overlayfs, F2FS, ZFS, bcachefs, SquashFS, EROFS.
    const DATING: [u32; 10] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0x794c_7630,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0xca45_1a4e,
        0x7371_7368,
        0xe0f5_e1e2,
    ];
    rustix::fs::fstatfs(directory).is_ok_and(|found| DATING.contains(&(found.f_type as u32)))
}

impl Meta {
    /// Converts the metadata of a name. `None` unless it is a regular file.
    pub(super) fn of_file(stat: &Stat) -> Option<Self> {
        #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "types differ between systems")]
        let meta = Self {
            len: stat.st_size as u64,
            mtime: Timestamp::new(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime: Timestamp::new(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            ino: stat.st_ino as u64,
            dev: stat.st_dev as u64,
            links: stat.st_nlink as u64,
        };
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(meta)
    }

    /// Reads an open file's metadata.
    ///
    /// # Errors
    /// Fails if the file system does.
    pub fn of(file: &File) -> std::io::Result<Self> {
        file.metadata().map(|metadata| Self::from(&metadata))
    }

    /// Returns whether content and metadata are unchanged since the start of a second of the clock.
    #[must_use]
    pub fn is_older_than(&self, unix_seconds: u64) -> bool {
        let latest = self.mtime.seconds.max(self.ctime.seconds);
        u64::try_from(latest).map_or(true, |latest| latest < unix_seconds)
    }

    /// Returns whether this file, made from `source`, can be of its present content by its times.
    ///
    /// Neither of its times may precede that of `source`. `mtime` alone isn't enough if a new version keeps
    /// the old `mtime`: reproducible builds set it to a fixed time, and `cp -p` and `tar` keep it. `ctime` is
    /// set by the kernel: that of `source` is later if `source` was replaced or changed after this file was
    /// made. Both together prove nothing after a change of metadata: `chmod`, `chown`, a new link or a copy
    /// updates the `ctime` of an outdated file, too. [`is_current_sibling`](super::is_current_sibling)
    /// compares lengths as well.
    ///
    /// Some compressors keep the `mtime` of their input without the fraction of its second, which counts as
    /// equal.
    #[must_use]
    pub fn is_current_for(&self, source: &Self) -> bool {
        let without_fraction = Timestamp { nanoseconds: 0, ..source.mtime };
        (self.mtime >= source.mtime || self.mtime == without_fraction) && self.ctime >= source.ctime
    }
}

impl From<&Metadata> for Meta {
    fn from(metadata: &Metadata) -> Self {
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
    pub(crate) fn new(seconds: i64, nanoseconds: i64) -> Self {
        Self { seconds, nanoseconds: u32::try_from(nanoseconds).unwrap_or(0) }
    }
}

/// A directory entry, as of the time of reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
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
    pub fn entry(&self, name: &[u8]) -> Option<DirectoryEntry> {
        let stat = statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(DirectoryEntry::new(name, &stat))
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

impl DirectoryEntry {
    fn new(name: &[u8], stat: &Stat) -> Self {
        let kind = EntryKind::of(FileType::from_raw_mode(stat.st_mode));
        let len = u64::try_from(stat.st_size).unwrap_or(0);
        Self { name: name.to_vec(), kind, len, modified_seconds: stat.st_mtime }
    }
}

#[cfg(test)]
mod tests {
    use super::{Meta, Timestamp};

    #[test]
    fn a_file_is_current_if_neither_of_its_times_is_before_its_source() {
        let time = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
        let meta = |mtime, ctime| Meta { len: 1, mtime, ctime, ino: 1, dev: 1, links: 1 };
        let source = meta(time(10, 500), time(20, 300));
        for (mtime, ctime, is_current) in [
            (time(10, 500), time(20, 300), true),
            (time(10, 501), time(20, 301), true),
            (time(11, 0), time(21, 0), true),
            // The compressor has dropped the fraction.
            (time(10, 0), time(21, 0), true),
            // The source has a newer `mtime`.
            (time(10, 499), time(21, 0), false),
            (time(9, 999_999_999), time(21, 0), false),
            (time(9, 0), time(21, 0), false),
            // The source was replaced or changed since.
            (time(10, 500), time(20, 299), false),
            (time(10, 0), time(19, 0), false),
            (time(11, 0), time(19, 999_999_999), false),
        ] {
            assert_eq!(meta(mtime, ctime).is_current_for(&source), is_current, "{mtime:?} {ctime:?}");
        }
    }
}
