//! The folder with accounts, certificates, challenges and locks, which instances may share.
//!
//! Files are replaced by renaming a complete one over them, and no link is followed below the given folder.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::limits::{FILE_BYTES_MAX, LEFTOVER_SECONDS};

/// Prefix of files that aren't complete yet. No name of a certificate begins like this.
const TEMPORARY: &str = ".new-";

/// The folders of the storage.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(crate) accounts: Folder,
    pub(crate) certificates: Folder,
    pub(crate) challenges: Folder,
    pub(crate) locks: Folder,
}

impl Storage {
    /// Opens `storage/acme` and its folders, and creates those that are missing.
    pub(crate) fn open(storage: &Path) -> Result<Self, Failure> {
        let root = DirBuilder::new().recursive(true).mode(0o700).create(storage).and_then(|()| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(rustix::fs::open(storage, flags, Mode::empty())?)
        });
        let descriptor = root.map_err(|error| failed(storage, &error))?;
        let acme = Folder { descriptor, path: storage.to_owned() }.folder("acme")?;
        let open = |name: &str| acme.folder(name);
        Ok(Self {
            accounts: open("account")?,
            certificates: open("certificates")?,
            challenges: open("challenges")?,
            locks: open("locks")?,
        })
    }

    /// Removes files that interrupted instances have left.
    pub(crate) fn remove_leftovers(&self, now: u64) {
        for (folder, is_challenges) in
            [(&self.accounts, false), (&self.certificates, false), (&self.challenges, true)]
        {
            for name in folder.names().unwrap_or_default() {
                let is_leftover = is_challenges || name.starts_with(TEMPORARY);
                let age =
                    folder.version(&name).ok().flatten().map(|version| now.saturating_sub(version.seconds));
                if is_leftover && age.is_some_and(|age| age > LEFTOVER_SECONDS) {
                    drop(folder.remove(&name));
                }
            }
        }
    }
}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

/// Identifies a version of a file: it changes when the file is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) seconds: u64,
    nanoseconds: u64,
    inode: u64,
}

impl Folder {
    /// Opens the folder `name` in this one, which must be this user's, and creates it if it is missing.
    fn folder(&self, name: &str) -> Result<Self, Failure> {
        self.try_folder(name).map_err(|error| self.error(name, &error))
    }

    fn try_folder(&self, name: &str) -> io::Result<Self> {
        match rustix::fs::mkdirat(&self.descriptor, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = rustix::fs::openat(&self.descriptor, name, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&descriptor)?;
        let owner = rustix::process::geteuid();
        if status.st_uid != owner.as_raw() && status.st_uid != 0 {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
        }
        if status.st_mode & 0o077 != 0 {
            // Group and others: it contains private keys.
            rustix::fs::fchmod(&descriptor, Mode::RWXU)?;
        }
        Ok(Self { descriptor, path: self.path.join(name) })
    }

    /// Returns the content of a file; `None` if it is missing.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, Failure> {
        self.try_read(name).map_err(|error| self.error(name, &error))
    }

    fn try_read(&self, name: &str) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(self.descriptor.as_fd(), name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it isn't a file"));
        }
        // It may be a key: a buffer that grows would leave copies.
        let room = usize::try_from(metadata.len()).unwrap_or(usize::MAX).min(FILE_BYTES_MAX) + 1;
        let mut content = Zeroizing::new(Vec::with_capacity(room));
        file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut content)?;
        if content.len() > FILE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 256 KiB"));
        }
        Ok(Some(content))
    }

    /// Writes a file, whole or not at all.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), Failure> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("{TEMPORARY}{}-{count}-{:x}", std::process::id(), fastrand::u64(..));
        let written = self.try_create(&temporary, content).and_then(|()| {
            rustix::fs::renameat(&self.descriptor, &*temporary, &self.descriptor, name)?;
            Ok(rustix::fs::fsync(&self.descriptor)?)
        });
        written.map_err(|error| {
            drop(self.remove(&temporary));
            self.error(name, &error)
        })
    }

    /// Locks a name, until the result is dropped or the process ends; `None` if another instance has locked it.
    pub(crate) fn lock(&self, name: &str) -> Result<Option<OwnedFd>, Failure> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR);
        let locked = file.and_then(|file| {
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            Ok(file)
        });
        match locked {
            Ok(file) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(self.error(name, &error.into())),
        }
    }

    fn try_create(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = File::from(file);
        file.write_all(content).and_then(|()| file.sync_all())
    }

    /// Removes a file, if there is one.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Failure> {
        match rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.error(name, &error.into())),
        }
    }

    /// Returns the names of all files.
    pub(crate) fn names(&self) -> Result<Vec<String>, Failure> {
        let list = || -> io::Result<Vec<String>> {
            let entries = Dir::read_from(&self.descriptor)?.collect::<Result<Vec<_>, _>>()?;
            let names = entries.iter().filter_map(|entry| entry.file_name().to_str().ok());
            Ok(names.filter(|name| !matches!(*name, "." | "..")).map(str::to_owned).collect())
        };
        list().map_err(|error| self.error("", &error))
    }

    /// Returns the version of a file; `None` if it is missing.
    pub(crate) fn version(&self, name: &str) -> Result<Option<Version>, Failure> {
        match rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => Ok(Some(version(&status))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.error(name, &error.into())),
        }
    }

    fn error(&self, name: &str, error: &io::Error) -> Failure {
        failed(&self.path.join(name), error)
    }
}

#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the types differ between systems")]
fn version(status: &Stat) -> Version {
    Version {
        seconds: u64::try_from(status.st_mtime).unwrap_or(0),
        nanoseconds: u64::try_from(status.st_mtime_nsec).unwrap_or(0),
        inode: status.st_ino as u64,
    }
}

/// Describes an operation on the storage that failed.
fn failed(path: &Path, error: &io::Error) -> Failure {
    let help = match Errno::from_io_error(error) {
        Some(Errno::ROFS) => "mount it writable, or choose another folder for the storage",
        Some(Errno::NOSPC | Errno::DQUOT) => "free some space on its file system",
        Some(Errno::NOENT) => "its folder was removed: restart the server, which creates it",
        Some(Errno::NOLCK | Errno::OPNOTSUPP) => {
            "choose a folder whose file system has locks (flock): servers that share it take turns by them"
        }
        Some(Errno::LOOP | Errno::NOTDIR) => "remove the link: nothing in the storage may be one",
        _ if error.kind() == io::ErrorKind::PermissionDenied => {
            "choose a folder that the server's user owns: `storage` of [tls], or `StateDirectory=` of its unit"
        }
        _ => "check the folder; certificates in memory are used until it works again",
    };
    let message = format!("cannot access {}: {error}", path.display());
    Failure::new(message, help).of_machine()
}

#[cfg(test)]
mod tests;
