//! The directory beneath which files are opened: [`Root`].

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

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
#[derive(Debug, Clone)]
pub struct Root {
    directory: Arc<OwnedFd>,
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
        let root = Self::open_with(path, Resolver::Walk)?;
        let resolver =
            if kernel::resolves(root.directory.as_fd()) { Resolver::Kernel } else { Resolver::Walk };
        Ok(Self { resolver, ..root })
    }

    /// Opens the directory `path` with a given resolver.
    ///
    /// # Errors
    /// Where it can't be opened or is no directory, or with [`io::ErrorKind::Unsupported`] where the kernel can't
    /// resolve.
    pub fn open_with(path: &Path, resolver: Resolver) -> io::Result<Self> {
        let flags = walk::PASSAGE | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        if resolver == Resolver::Kernel && !kernel::resolves(directory.as_fd()) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel or sandbox has no openat2"));
        }
        Ok(Self { directory: Arc::new(directory), resolver, links: Links::default() })
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
        let root = self.directory.as_fd();
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
