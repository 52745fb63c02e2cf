//! The path of a root, and the directory that it leads to.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{Mode, OFlags, Stat, fstat, open, stat};
use rustix::io::{Errno, retry_on_intr};

use super::OpenError;
use super::walk::PASSAGE;

/// A root's path, shared by its clones.
#[derive(Debug)]
pub(super) struct RootPath {
    path: CString,
    /// The directory that was opened last. Clones that follow the path later share it, so a swap costs one descriptor.
    newest: Mutex<Weak<Directory>>,
}

/// An open directory. While it is open, no other directory can have its inode number.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) descriptor: OwnedFd,
    inode: (u64, u64),
}

impl RootPath {
    /// Opens the directory that a path leads to.
    ///
    /// Keeps a relative path as an absolute one, so that a later change of the working directory has no effect. Keeps it as given
    /// if the absolute path doesn't lead there, for lack of a permission on the way.
    pub(super) fn open(given: &Path) -> io::Result<(Self, Arc<Directory>)> {
        let path = c_string(given)?;
        let directory = Arc::new(Directory::open(&path)?);
        let absolute = std::path::absolute(given).and_then(|path| c_string(&path)).ok();
        let leads_there = |path: &CString| stat(path.as_c_str()).is_ok_and(|found| directory.is(&found));
        let path = absolute.filter(leads_there).unwrap_or(path);
        let newest = Mutex::new(Arc::downgrade(&directory));
        Ok((Self { path, newest }, directory))
    }

    /// Follows the path again. Returns `None` if it leads to the same directory as before.
    ///
    /// Returns `None` too for an error unrelated to the path: no descriptor or memory is left, or a disk
    /// fails.
    pub(super) fn follow(&self, before: Result<&Directory, Errno>) -> Option<Result<Arc<Directory>, Errno>> {
        let found = retry_on_intr(|| stat(self.path.as_c_str()));
        if let (Ok(before), Ok(found)) = (before, &found)
            && before.is(found)
        {
            return None;
        }
        match found.and_then(|found| self.directory(&found)) {
            Err(errno) if matches!(OpenError::of(errno), OpenError::Descriptors | OpenError::Other(_)) => {
                None
            }
            Err(errno) if before.err() == Some(errno) => None,
            now => Some(now),
        }
    }

    /// Returns the directory that was found, opened by another clone or now.
    fn directory(&self, found: &Stat) -> Result<Arc<Directory>, Errno> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = newest.upgrade().filter(|directory| directory.is(found)) {
            return Ok(directory);
        }
        let directory = Arc::new(Directory::open(&self.path)?);
        *newest = Arc::downgrade(&directory);
        Ok(directory)
    }
}

impl Directory {
    fn open(path: &CStr) -> Result<Self, Errno> {
        let flags = PASSAGE | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = retry_on_intr(|| open(path, flags, Mode::empty()))?;
        // Not the inode of the name, which may be another one by now.
        let inode = inode(&fstat(&descriptor)?);
        Ok(Self { descriptor, inode })
    }

    fn is(&self, found: &Stat) -> bool {
        self.inode == inode(found)
    }
}

/// Returns device and inode number.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "their types differ between the systems")]
fn inode(found: &Stat) -> (u64, u64) {
    (found.st_dev as u64, found.st_ino as u64)
}

fn c_string(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}
