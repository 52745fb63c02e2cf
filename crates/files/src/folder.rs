//! An open folder, and how it is served.

use std::io;
use std::path::Path;
use std::sync::Arc;

use shearwater_io::fs::Root;

use crate::file_cache::FileCache;
use crate::files::Files;
use crate::finder::Finder;
use crate::limits::CacheLimits;
use crate::options::{FolderError, FolderOptions};
use crate::plan::Plan;

/// An open folder, to be shared by the workers.
///
/// Nothing outside of it is ever sent: names are resolved by the kernel beneath it, symbolic links that lead out are
/// refused (unless [`Links::Follow`](crate::Links::Follow) is set), and so are devices, pipes and sockets. What its options name (an index, a fallback, a page for errors) lies in it too.
///
/// Each worker looks the folder's path up again at most twice a second, when a file is requested. If another folder is there (made anew, moved, or the
/// target of a link on the way), it is served within a second. Each response is wholly from one of the two folders, and a worker that has served the
/// new one never serves the old one again. While no folder is there, its files are not found (`404`); while the way to it is forbidden, so are they
/// (`403`). A relative path begins in the working directory in which the folder was opened, also if the process changes that directory later.
#[derive(Debug, Clone)]
pub struct Folder {
    pub(crate) root: Root,
    /// Its absolute path, for reports.
    path: Arc<Path>,
    pub(crate) plan: Arc<Plan>,
}

impl Folder {
    /// Opens the folder, to be served as usual.
    ///
    /// # Errors
    /// Where there is no folder, or it may not be read.
    ///
    /// # Panics
    /// Never: the usual options mean something.
    pub fn open(path: &Path) -> io::Result<Self> {
        match Self::open_with(path, &FolderOptions::default()) {
            Ok(folder) => Ok(folder),
            Err(FolderError::Open(error)) => Err(error),
            Err(FolderError::Option(bad)) => unreachable!("a usual option is refused: {bad}"),
        }
    }

    /// Opens the folder, to be served with these options.
    ///
    /// # Errors
    /// Where an option means nothing, there is no folder, or it may not be read.
    pub fn open_with(path: &Path, options: &FolderOptions) -> Result<Self, FolderError> {
        let plan = Plan::new(options).map_err(FolderError::Option)?;
        let root = Root::open(path).map_err(FolderError::Open)?.with_links(options.symlinks);
        // A folder that may not be searched can be opened, but nothing in it.
        std::fs::metadata(path.join(".")).map_err(FolderError::Open)?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(Self { root, path: path.into(), plan: Arc::new(plan) })
    }

    /// The folder's files, for one worker, small ones kept in memory.
    #[must_use]
    pub fn files(&self) -> Files {
        self.files_with(CacheLimits::default())
    }

    /// The folder's files, for one worker, with so much kept in memory.
    #[must_use]
    pub fn files_with(&self, cache: CacheLimits) -> Files {
        self.files_in(&FileCache::new(cache))
    }

    /// The folder's files, for the worker that this cache is of, which its other folders share.
    #[must_use]
    pub fn files_in(&self, cache: &FileCache) -> Files {
        let (root, path, plan) = (self.root.clone(), Arc::clone(&self.path), Arc::clone(&self.plan));
        Files::new(Finder::new(root, path, plan, cache.next()))
    }
}
