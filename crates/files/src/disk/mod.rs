//! Disk work: on the worker as long as the kernel's caches have what is needed, otherwise on a thread of a pool.
//!
//! All files are opened and read through [`Disk`]. A worker's [`WorkerDisk`] fails with `WouldBlock` instead of waiting.
//! Then [`work`] does the same on another thread, which may wait, and records the results; a deferred handler responds
//! by the same code from the records. So a slow disk delays only the responses that need it.

pub(crate) mod records;
pub(crate) mod work;
pub(crate) mod worker;

use std::io;
use std::sync::Arc;

use shearwater::engine::OffloadPool;
use shearwater_io::fs::{Meta, OpenError, Opened, Root};

use crate::limits::{DISK_THREADS_MAX, DISK_WAITING_MAX};
use crate::listing::names::{FolderNames, ListedFolder};
use crate::listing::rows::{self, ListOrder, ListPage};
use crate::now::Now;

/// The names of a folder.
pub(crate) type NamesResult = Result<Arc<FolderNames>, OpenError>;

/// Access to the files beneath a root.
pub(crate) trait Disk {
    /// Opens a file or folder.
    fn open(&self, name: &[u8]) -> Result<Opened, OpenError>;

    /// Reads bytes of an opened file at an offset.
    fn read_at(&self, opened: &Opened, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Reads the present metadata of an opened file.
    fn meta(&self, opened: &Opened) -> io::Result<Meta>;

    /// Reads the names of a folder.
    fn names(&self, folder: &ListedFolder<'_>, is_descending: bool, now: Now) -> NamesResult;

    /// Reads a page of a folder's entries.
    fn rows(
        &self,
        folder: &ListedFolder<'_>,
        order: ListOrder,
        names: &FolderNames,
        start: usize,
    ) -> Result<Arc<ListPage>, OpenError>;
}

/// Reads all bytes of an opened file, of the length that its metadata states.
///
/// # Errors
/// `UnexpectedEof` if it is shorter by now; and those of [`Disk::read_at`].
pub(crate) fn read_whole(disk: &dyn Disk, opened: &Opened) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(opened.meta.len).unwrap_or(usize::MAX)];
    let mut done = 0;
    while done < bytes.len() {
        match disk.read_at(opened, &mut bytes[done..], done as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// The disk isn't waited for on a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WouldBlock;

impl WouldBlock {
    /// Returns whether an error of opening is this.
    pub(crate) fn is(error: &OpenError) -> bool {
        matches!(error, OpenError::WouldBlock)
    }
}

impl From<WouldBlock> for OpenError {
    fn from(WouldBlock: WouldBlock) -> Self {
        Self::WouldBlock
    }
}

/// Waits for the disk: at the start of a program, and on the threads of the pool.
impl Disk for Root {
    fn open(&self, name: &[u8]) -> Result<Opened, OpenError> {
        self.open_beneath(name)
    }

    fn read_at(&self, opened: &Opened, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&*opened.file, bytes, offset)
    }

    fn meta(&self, opened: &Opened) -> io::Result<Meta> {
        Meta::of(&opened.file)
    }

    fn names(&self, folder: &ListedFolder<'_>, is_descending: bool, now: Now) -> NamesResult {
        FolderNames::read(folder, is_descending, now).map(Arc::new)
    }

    fn rows(
        &self,
        folder: &ListedFolder<'_>,
        order: ListOrder,
        names: &FolderNames,
        start: usize,
    ) -> Result<Arc<ListPage>, OpenError> {
        Ok(Arc::new(rows::read(folder, self, order, names, start)))
    }
}

/// Called on a thread of the pool before each open, with the name.
pub(crate) type DiskHook = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// The threads of a folder, shared by all workers, so that one that hangs delays no other folder.
#[derive(Clone)]
pub(crate) struct DiskThreads {
    pub(crate) pool: OffloadPool,
    /// Set by tests: nothing counts as cached.
    pub(crate) hook: Option<DiskHook>,
}

impl DiskThreads {
    pub(crate) fn new() -> Self {
        let pool = OffloadPool::new("shearwater-disk", DISK_THREADS_MAX, DISK_WAITING_MAX);
        Self { pool, hook: None }
    }

    /// Creates threads of a disk on which nothing counts as cached.
    pub(crate) fn with_hook(hook: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self { hook: Some(Arc::new(hook)), ..Self::new() }
    }
}

impl std::fmt::Debug for DiskThreads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskThreads").finish_non_exhaustive()
    }
}
