//! An open folder and its options.

use std::io;
use std::path::Path;
use std::sync::Arc;

use shearwater_io::fs::Root;

use crate::file_cache::FileCache;
use crate::files::Files;
use crate::finder::Finder;
use crate::limits::CacheLimits;
use crate::options::{FolderError, FolderOptions};
use crate::settings::Settings;

/// An open folder, shared by the workers.
///
/// No file outside of it is ever sent: the kernel resolves names beneath it. Symbolic links that lead out are rejected
/// (unless [`Links::Follow`](crate::Links::Follow) is set), and so are devices, pipes and sockets. Files that the
/// options name (an index, a fallback, an error page) must be in it too.
///
/// Each worker looks the folder's path up again when a file is requested, at most twice a second. If another folder is
/// there (recreated, moved, or the target of a link in the path), it is served within a second. Each response is wholly
/// from one of the two folders, and a worker that has served the new one never serves the old one again. While there is
/// no folder, its files are not found (`404`); while its path isn't accessible, they are forbidden (`403`). A relative
/// path is resolved in the working directory at the time of opening, even if the process changes it later.
#[derive(Debug, Clone)]
pub struct Folder {
    pub(crate) root: Root,
    /// Absolute path, for reports.
    path: Arc<Path>,
    pub(crate) settings: Arc<Settings>,
}

impl Folder {
    /// Opens the folder with default options.
    ///
    /// # Errors
    /// If the folder is missing or not readable.
    ///
    /// # Panics
    /// Never: the default options are valid.
    pub fn open(path: &Path) -> io::Result<Self> {
        match Self::open_with(path, &FolderOptions::default()) {
            Ok(folder) => Ok(folder),
            Err(FolderError::Open(error)) => Err(error),
            Err(FolderError::Option(bad)) => unreachable!("a default option is invalid: {bad}"),
        }
    }

    /// Opens the folder with these options.
    ///
    /// # Errors
    /// If an option is invalid, or the folder is missing or not readable.
    pub fn open_with(path: &Path, options: &FolderOptions) -> Result<Self, FolderError> {
        let settings = Settings::new(options).map_err(FolderError::Option)?;
        let root = Root::open(path).map_err(FolderError::Open)?.with_links(options.symlinks);
        // A folder without search permission can be opened, but nothing in it.
        std::fs::metadata(path.join(".")).map_err(FolderError::Open)?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(Self { root, path: path.into(), settings: Arc::new(settings) })
    }

    /// Returns the folder's files for one worker, with the default cache.
    #[must_use]
    pub fn files(&self) -> Files {
        self.files_with(CacheLimits::default())
    }

    /// Returns the folder's files for one worker, with a cache of this size.
    #[must_use]
    pub fn files_with(&self, cache: CacheLimits) -> Files {
        self.files_in(&FileCache::new(cache))
    }

    /// Returns the folder's files for one worker, with a cache shared by the worker's folders.
    #[must_use]
    pub fn files_in(&self, cache: &FileCache) -> Files {
        let (root, path, settings) = (self.root.clone(), Arc::clone(&self.path), Arc::clone(&self.settings));
        Files::new(Finder::new(root, path, settings, cache.next()))
    }
}
