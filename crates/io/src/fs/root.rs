//! The directory beneath which files are opened, and the path that leads to it.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, stat, statat};
use rustix::io::{Errno, retry_on_intr};

use super::opened::{Meta, Opened};
use super::path::{self, Links, OpenError};
use super::walk::{self, PASSAGE};
#[cfg(not(target_os = "linux"))]
use crate::not_linux::kernel;

/// Mechanism that keeps paths inside the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resolver {
    /// The kernel: `openat2` (Linux 5.6 and later).
    Kernel,
    /// A walk from directory to directory that follows no unread link: on every system.
    Walk,
}

/// A directory beneath which files are opened. Clones share the descriptor.
///
/// It stays the same directory, even if that is moved, until [`look_up`](Self::look_up) finds another one at
/// the path.
#[derive(Debug, Clone)]
pub struct Root {
    path: Arc<RootPath>,
    /// The directory that the path last led to, or the error.
    directory: Result<Arc<Directory>, Errno>,
    resolver: Resolver,
    /// The kernel can open what is in its caches, and nothing else.
    has_cached_opens: bool,
    /// The directory is, or was last, on a file system whose every call may wait for a server.
    is_remote: bool,
    links: Links,
}

impl Root {
    /// Opens the directory `path`, following links in it. Uses [`Resolver::Walk`] if the kernel has no
    /// `openat2` or a sandbox forbids it.
    ///
    /// # Errors
    /// Fails if it can't be opened or is no directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (path, directory) = RootPath::open(path)?;
        let by_kernel = kernel::resolves(directory.descriptor.as_fd());
        let resolver = if by_kernel { Resolver::Kernel } else { Resolver::Walk };
        let has_cached_opens = by_kernel && kernel::opens_cached(directory.descriptor.as_fd());
        let is_remote = directory.is_remote;
        let (path, directory, links) = (Arc::new(path), Ok(directory), Links::default());
        Ok(Self { path, directory, resolver, has_cached_opens, is_remote, links })
    }

    /// Opens the directory `path` with a given resolver.
    ///
    /// # Errors
    /// Fails if it can't be opened or is no directory, or with [`io::ErrorKind::Unsupported`] if the kernel
    /// can't resolve.
    pub fn open_with(path: &Path, resolver: Resolver) -> io::Result<Self> {
        let root = Self::open(path)?;
        if resolver == Resolver::Kernel && root.resolver != resolver {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel or sandbox has no openat2"));
        }
        let has_cached_opens = root.has_cached_opens && resolver == Resolver::Kernel;
        Ok(Self { resolver, has_cached_opens, ..root })
    }

    /// Looks the path up again. Returns true if it leads to another directory than before.
    ///
    /// From then on files are opened beneath the new directory. If there is none, or its path is forbidden,
    /// [`open_beneath`](Self::open_beneath) fails with that error for every file. An error unrelated to the
    /// path (no descriptor is left, a disk fails) changes nothing. While nothing changes, this is one `stat`.
    pub fn look_up(&mut self) -> bool {
        let before = self.directory.as_deref().map_err(|errno| *errno);
        let Some(now) = self.path.follow(before) else { return false };
        if let Ok(directory) = &now {
            self.is_remote = directory.is_remote;
        }
        self.directory = now;
        true
    }

    /// Returns the same root with another policy for symbolic links.
    #[must_use]
    pub fn with_links(self, links: Links) -> Self {
        Self { links, ..self }
    }

    /// Returns the mechanism that keeps paths inside this root.
    #[must_use]
    pub const fn resolver(&self) -> Resolver {
        self.resolver
    }

    /// Returns whether [`open_cached`](Self::open_cached) never waits: Linux 5.12 and later, unless a sandbox forbids
    /// `openat2`.
    #[must_use]
    pub const fn has_cached_opens(&self) -> bool {
        self.has_cached_opens
    }

    /// Returns whether the directory is on a file system whose every call may wait for a server: NFS, SMB, FUSE and the
    /// like.
    #[must_use]
    pub const fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Returns whether two roots are the same open directory.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.directory, &other.directory) {
            (Ok(directory), Ok(other)) => Arc::ptr_eq(directory, other),
            (directory, other) => directory.as_ref().err() == other.as_ref().err(),
        }
    }

    /// Returns whether two roots have the same path and policy for links, and were the same directory when they looked the
    /// path up last.
    #[must_use]
    pub fn is_same_place(&self, other: &Self) -> bool {
        let is_same_directory = match (&self.directory, &other.directory) {
            (Ok(directory), Ok(other)) => directory.inode == other.inode,
            _ => false,
        };
        is_same_directory && self.path.path == other.path.path && self.links == other.links
    }

    /// Opens as [`open_beneath`](Self::open_beneath), but only if that doesn't wait for a disk or a server.
    ///
    /// Opens as `open_beneath` where the system can't do that ([`has_cached_opens`](Self::has_cached_opens)).
    ///
    /// # Errors
    /// As `open_beneath`, and [`OpenError::WouldBlock`] if the path isn't in the kernel's caches, has a link that leaves
    /// the root, or is renamed at the moment; always if [the directory is remote](Self::is_remote).
    pub fn open_cached(&self, relative: &[u8]) -> Result<Opened, OpenError> {
        if !self.has_cached_opens && !self.is_remote {
            return self.open_beneath(relative);
        }
        path::check(relative)?;
        let directory = self.directory.as_deref().map_err(|errno| OpenError::of(*errno))?;
        if self.is_remote {
            return Err(OpenError::WouldBlock);
        }
        Opened::new(kernel::open_cached(directory.descriptor.as_fd(), relative, self.links)?)
    }

    /// Opens a file or directory for reading. `relative` is a decoded path below the root without a leading
    /// slash; empty means the root itself. Never blocks on a FIFO.
    ///
    /// # Errors
    /// See [`OpenError`]. A path with a `..` component fails with [`OpenError::Escapes`], whatever its
    /// target.
    pub fn open_beneath(&self, relative: &[u8]) -> Result<Opened, OpenError> {
        path::check(relative)?;
        let directory = self.directory.as_deref().map_err(|errno| OpenError::of(*errno))?;
        let root = directory.descriptor.as_fd();
        if self.links == Links::Follow {
            return Opened::new(walk::follow(root, relative)?);
        }
        let by_kernel = match self.resolver {
            Resolver::Kernel => kernel::open(root, relative, self.links)?,
            Resolver::Walk => None,
        };
        // The walk takes over on repeated concurrent renames, and if a link leaves the root.
        Opened::new(by_kernel.map_or_else(|| walk::open(root, relative, self.links), Ok)?)
    }

    /// Reads the metadata of the regular file of this name without opening it: one `stat`.
    ///
    /// **Nothing confines this to the root**: a link in place of a directory is followed, wherever it leads. So the
    /// result may only be compared with that of a file that was opened beneath the root. If they are equal, the name
    /// leads to the same version; that it still leads there beneath the root is known once its directory has been
    /// opened by [`open_beneath`](Self::open_beneath).
    ///
    /// # Errors
    /// [`OpenError::NotFound`] if there is no such name, not even a link to a missing file; [`OpenError::NotPlain`] for
    /// a directory, a link or anything else that isn't a regular file; see [`OpenError`].
    pub fn compare_at(&self, relative: &[u8]) -> Result<Meta, OpenError> {
        path::check(relative)?;
        let directory = self.directory.as_deref().map_err(|errno| OpenError::of(*errno))?;
        let found = retry_on_intr(|| statat(&directory.descriptor, relative, AtFlags::SYMLINK_NOFOLLOW));
        Meta::of_file(&found.map_err(OpenError::of)?).ok_or(OpenError::NotPlain)
    }
}

/// A root's path, shared by its clones.
#[derive(Debug)]
struct RootPath {
    path: CString,
    /// The directory that was opened last. Clones that follow the path later share it, so a swap costs one descriptor.
    newest: Mutex<Weak<Directory>>,
}

/// An open directory. While it is open, no other directory can have its inode number.
#[derive(Debug)]
struct Directory {
    descriptor: OwnedFd,
    inode: (u64, u64),
    is_remote: bool,
}

impl RootPath {
    /// Opens the directory that a path leads to.
    ///
    /// Keeps a relative path as an absolute one, so that a later change of the working directory has no effect. Keeps it as given
    /// if the absolute path doesn't lead there, for lack of a permission on the way.
    fn open(given: &Path) -> io::Result<(Self, Arc<Directory>)> {
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
    fn follow(&self, before: Result<&Directory, Errno>) -> Option<Result<Arc<Directory>, Errno>> {
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
        let descriptor = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?;
        // Not the inode of the name, which may be another one by now.
        let inode = inode(&fstat(&descriptor)?);
        let is_remote = kernel::is_remote(descriptor.as_fd());
        Ok(Self { descriptor, inode, is_remote })
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

/// Path resolution by the Linux kernel: `openat2`.
#[cfg(target_os = "linux")]
mod kernel {
    use std::os::fd::{BorrowedFd, OwnedFd};

    use rustix::fs::{Mode, OFlags, ResolveFlags, fstatfs, openat2};
    use rustix::io::Errno;

    use super::super::path::{Links, OpenError, TRIES_MAX};
    use super::super::walk::READ;

    /// File systems of a server: NFS, SMB, CIFS, FUSE, 9P, Ceph, AFS, Coda, OCFS2, GFS2, Lustre (`statfs(2)`).
    const REMOTE: [u32; 12] = [
        0x6969,
        0x517b,
        0xfe53_4d42,
        0xff53_4d42,
        0x6573_5546,
        0x0102_1997,
        0x00c3_6400,
        0x5346_414f,
        0x7375_7245,
        0x7461_636f,
        0x0116_1970,
        0x0bd0_0bd0,
    ];

    /// Returns whether an open directory is on a file system whose every call may wait for a server.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "its type differs; its value has 32 bits"
    )]
    pub(super) fn is_remote(directory: BorrowedFd<'_>) -> bool {
        fstatfs(directory).is_ok_and(|found| REMOTE.contains(&(found.f_type as u32)))
    }

    fn resolve(root: BorrowedFd<'_>, path: &[u8], flags: OFlags, links: Links) -> Result<OwnedFd, Errno> {
        resolve_by(root, path, flags, confined(links))
    }

    fn resolve_by(
        root: BorrowedFd<'_>,
        path: &[u8],
        flags: OFlags,
        how: ResolveFlags,
    ) -> Result<OwnedFd, Errno> {
        let path = if path.is_empty() { b"." } else { path };
        openat2(root, path, flags, Mode::empty(), how)
    }

    fn confined(links: Links) -> ResolveFlags {
        let which = match links {
            Links::Never => ResolveFlags::NO_SYMLINKS,
            Links::Inside | Links::Follow => ResolveFlags::NO_MAGICLINKS,
        };
        ResolveFlags::BENEATH | which
    }

    /// Returns whether the kernel can open what is in its caches only.
    pub(super) fn opens_cached(root: BorrowedFd<'_>) -> bool {
        let how = confined(Links::Inside) | ResolveFlags::CACHED;
        let tried = resolve_by(root, b"", OFlags::PATH | OFlags::CLOEXEC, how);
        !matches!(tried, Err(Errno::INVAL))
    }

    /// Opens `path` beneath `root` if all of it is in the kernel's caches. [`OpenError::WouldBlock`] leaves it to
    /// `open`.
    pub(super) fn open_cached(root: BorrowedFd<'_>, path: &[u8], links: Links) -> Result<OwnedFd, OpenError> {
        let how = if links == Links::Follow { ResolveFlags::empty() } else { confined(links) };
        match resolve_by(root, path, READ, how | ResolveFlags::CACHED) {
            Err(Errno::AGAIN | Errno::INTR | Errno::NOSYS) => Err(OpenError::WouldBlock),
            Err(Errno::XDEV) if links != Links::Follow => Err(OpenError::WouldBlock),
            Err(Errno::LOOP) if links == Links::Never => Err(OpenError::Link),
            opened => opened.map_err(OpenError::of),
        }
    }

    /// Returns whether the kernel has the call and permits it. A folder without search permission doesn't matter
    /// here.
    pub(super) fn resolves(root: BorrowedFd<'_>) -> bool {
        let tried = resolve(root, b"", OFlags::PATH | OFlags::CLOEXEC, Links::Inside);
        !matches!(tried, Err(Errno::NOSYS | Errno::PERM | Errno::INVAL))
    }

    /// Opens `path` beneath `root`. `None` leaves it to the walk: the kernel doesn't follow links that leave the
    /// root, even if they lead back.
    pub(super) fn open(
        root: BorrowedFd<'_>,
        path: &[u8],
        links: Links,
    ) -> Result<Option<OwnedFd>, OpenError> {
        for _ in 0..TRIES_MAX {
            match resolve(root, path, READ, links) {
                Ok(descriptor) => return Ok(Some(descriptor)),
                // AGAIN: a concurrent rename while the kernel resolved `..`.
                Err(Errno::AGAIN | Errno::INTR) => {}
                // A sandbox that was entered after the root was opened.
                Err(Errno::NOSYS | Errno::XDEV) => return Ok(None),
                Err(Errno::LOOP) if links == Links::Never => return Err(OpenError::Link),
                Err(errno) => return Err(OpenError::of(errno)),
            }
        }
        Ok(None)
    }
}
