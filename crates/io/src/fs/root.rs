//! The directory beneath which files are opened: [`Root`].

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::root_path::{Directory, RootPath};
use super::{Links, OpenError, Opened, kernel, path, walk};

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
        Ok(Self { path: Arc::new(path), directory: Ok(directory), resolver, links: Links::default() })
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
        Ok(Self { resolver, ..root })
    }

    /// Looks the path up again. Returns true if it leads to another directory than before.
    ///
    /// From then on files are opened beneath the new directory. If there is none, or its path is forbidden,
    /// [`open_beneath`](Self::open_beneath) fails with that error for every file. An error unrelated to the
    /// path (no descriptor is left, a disk fails) changes nothing. While nothing changes, this is one `stat`.
    pub fn look_up(&mut self) -> bool {
        let before = self.directory.as_deref().map_err(|errno| *errno);
        let Some(now) = self.path.follow(before) else { return false };
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
}
