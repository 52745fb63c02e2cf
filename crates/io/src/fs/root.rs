//! The directory beneath which files are opened: [`Root`].

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::root_path::{Directory, RootPath};
use super::{Links, OpenError, Opened, kernel, path, walk};

/// What keeps the way of a path inside the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resolver {
    /// The kernel: `openat2` (Linux 5.6 and later).
    Kernel,
    /// A walk from directory to directory, following no link unread: everywhere.
    Walk,
}

/// A directory beneath which files are opened. Cloning shares the descriptor.
///
/// It stays the same directory, also if that is moved, until [`look_up`](Self::look_up) finds another one under the path.
#[derive(Debug, Clone)]
pub struct Root {
    path: Arc<RootPath>,
    /// The directory that the path led to when it was last followed, or the error.
    directory: Result<Arc<Directory>, Errno>,
    resolver: Resolver,
    links: Links,
}

impl Root {
    /// Opens the directory `path`, following links on the way to it. The kernel resolves, where it can; a kernel that
    /// has no `openat2`, or a sandbox that forbids it, means [`Resolver::Walk`].
    ///
    /// # Errors
    /// Where it can't be opened or is no directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (path, directory) = RootPath::open(path)?;
        let by_kernel = kernel::resolves(directory.descriptor.as_fd());
        let resolver = if by_kernel { Resolver::Kernel } else { Resolver::Walk };
        Ok(Self { path: Arc::new(path), directory: Ok(directory), resolver, links: Links::default() })
    }

    /// Opens the directory `path` with a given resolver.
    ///
    /// # Errors
    /// Where it can't be opened or is no directory, or with [`io::ErrorKind::Unsupported`] where the kernel can't
    /// resolve.
    pub fn open_with(path: &Path, resolver: Resolver) -> io::Result<Self> {
        let root = Self::open(path)?;
        if resolver == Resolver::Kernel && root.resolver != resolver {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel or sandbox has no openat2"));
        }
        Ok(Self { resolver, ..root })
    }

    /// Looks the path up again. Returns true if it leads to another directory than before.
    ///
    /// From then on files are opened beneath the new directory. If there is none, or the way to it is forbidden,
    /// [`open_beneath`](Self::open_beneath) fails with that error for every file. An error that says nothing about the path (no descriptor
    /// is left, a disk fails) changes nothing. While nothing changes, this is one `stat`.
    pub fn look_up(&mut self) -> bool {
        let before = self.directory.as_deref().map_err(|errno| *errno);
        let Some(now) = self.path.follow(before) else { return false };
        self.directory = now;
        true
    }

    /// The same root with another policy on symbolic links.
    #[must_use]
    pub fn with_links(self, links: Links) -> Self {
        Self { links, ..self }
    }

    /// What keeps paths inside this root.
    #[must_use]
    pub const fn resolver(&self) -> Resolver {
        self.resolver
    }

    /// Opens a file or directory for reading. `relative` is a path below the root as bytes, decoded, without a leading
    /// slash; empty means the root itself. Never blocks on a FIFO.
    ///
    /// # Errors
    /// See [`OpenError`]. A path with a `..` component is refused as [`OpenError::Escapes`], wherever it would lead.
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
        // The walk takes over where things are moved again and again, and where a link leaves the root.
        Opened::new(by_kernel.map_or_else(|| walk::open(root, relative, self.links), Ok)?)
    }
}
