//! Disk access: on the worker as long as the kernel's caches have what is needed, otherwise on a thread of a pool.
//!
//! [`Load`](load::Load) finds and reads a file from a [`Disk`]. A worker's disk fails with `WouldBlock` instead of waiting.
//! Then [`work`] does the same on another thread, which may wait, and a deferred handler responds with the result. So a
//! slow disk delays only the responses that need it.

pub(crate) mod load;
pub(crate) mod work;
pub(crate) mod worker;

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use shearwater::engine::OffloadPool;
use shearwater_io::fs::{Meta, OpenError, Opened, Root};

use crate::limits::{DISK_THREADS_MAX, DISK_WAITING_MAX, OPEN_RETRY_MS};

/// Access to the files beneath a root.
#[derive(Clone, Copy)]
pub(crate) struct Disk<'a> {
    pub(crate) root: &'a Root,
    access: Access<'a>,
}

#[derive(Clone, Copy)]
enum Access<'a> {
    /// Waits for the disk: at the start of a program, and for a response that can't be deferred.
    Waits,
    /// Waits for the disk on a thread of the pool.
    OnThread(&'a Patience<'a>),
    /// Fails instead of waiting.
    InMemory {
        /// Nothing counts as cached.
        is_cold: bool,
        /// False once the file system was found unable to read without waiting.
        reads_cached: &'a Cell<bool>,
    },
}

/// Limits of the repeated opens on a thread.
pub(crate) struct Patience<'a> {
    pub(crate) hook: Option<DiskHook>,
    /// Returns false once no request waits for the result.
    pub(crate) is_wanted: &'a dyn Fn() -> bool,
    /// Number of times that opens may still be repeated.
    pub(crate) repeats_left: Cell<u64>,
}

impl Patience<'_> {
    /// Repeats an open while another process holds a lease on the file, or no descriptor or memory is free.
    ///
    /// An open that blocks would wait for a lease, but longer than a request does, and on a FIFO forever.
    fn open<T>(&self, mut open: impl FnMut() -> Result<T, OpenError>) -> Result<T, OpenError> {
        loop {
            match open() {
                Err(error) if error.is_passing() && (self.is_wanted)() && self.repeats_left.get() > 0 => {
                    self.repeats_left.set(self.repeats_left.get() - 1);
                    std::thread::sleep(Duration::from_millis(OPEN_RETRY_MS));
                }
                result => return result,
            }
        }
    }
}

impl<'a> Disk<'a> {
    /// Returns a disk that is waited for.
    pub(crate) const fn waiting(root: &'a Root) -> Self {
        Self { root, access: Access::Waits }
    }

    /// Returns a disk that a thread of the pool waits for.
    pub(crate) const fn on_thread(root: &'a Root, patience: &'a Patience<'a>) -> Self {
        Self { root, access: Access::OnThread(patience) }
    }

    /// Returns a disk that isn't waited for, on which nothing counts as cached if it `is_cold`.
    pub(crate) const fn in_memory(root: &'a Root, is_cold: bool, reads_cached: &'a Cell<bool>) -> Self {
        Self { root, access: Access::InMemory { is_cold, reads_cached } }
    }

    /// Opens a file or folder.
    pub(crate) fn open(&self, name: &[u8]) -> Result<Opened, OpenError> {
        match self.access {
            Access::InMemory { is_cold: true, .. } => Err(OpenError::WouldBlock),
            Access::InMemory { .. } => self.root.open_cached(name),
            Access::Waits => self.root.open_beneath(name),
            Access::OnThread(patience) => {
                if let Some(hook) = &patience.hook {
                    hook(name);
                }
                patience.open(|| self.root.open_beneath(name))
            }
        }
    }

    /// Reads bytes of an opened file at an offset.
    pub(crate) fn read_at(&self, opened: &Opened, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        use std::os::unix::fs::FileExt;
        if let Access::InMemory { reads_cached, .. } = self.access {
            if !self.has_cached_meta() {
                return Err(ErrorKind::WouldBlock.into());
            }
            if !self.may_wait() && reads_cached.get() {
                match opened.read_cached_at(bytes, offset) {
                    // The file system can't, or a sandbox refuses the call.
                    Err(error)
                        if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) =>
                    {
                        reads_cached.set(false);
                    }
                    read => return read,
                }
            }
        }
        opened.file.read_at(bytes, offset)
    }

    /// Reads all bytes of an opened file, of the length that its metadata states.
    ///
    /// # Errors
    /// `UnexpectedEof` if it is shorter by now; and those of [`read_at`](Self::read_at).
    pub(crate) fn read_whole(&self, opened: &Opened) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(opened.meta.len).unwrap_or(usize::MAX)];
        let mut done = 0;
        while done < bytes.len() {
            match self.read_at(opened, &mut bytes[done..], done as u64) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => done += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }

    /// Reads the present metadata of an opened file.
    pub(crate) fn meta(&self, opened: &Opened) -> io::Result<Meta> {
        if self.has_cached_meta() { Meta::of(&opened.file) } else { Err(ErrorKind::WouldBlock.into()) }
    }

    /// Returns whether metadata of an opened file can be read.
    pub(crate) fn has_cached_meta(&self) -> bool {
        match self.access {
            Access::InMemory { is_cold, .. } => !self.root.is_remote() && !is_cold,
            Access::Waits | Access::OnThread(_) => true,
        }
    }

    /// Returns whether calls may wait.
    pub(crate) fn may_wait(&self) -> bool {
        match self.access {
            Access::InMemory { .. } => self.has_cached_meta() && !self.root.has_cached_opens(),
            Access::Waits | Access::OnThread(_) => true,
        }
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::ErrorKind::{
        ExecutableFileBusy, Interrupted, Other, OutOfMemory, ResourceBusy, StaleNetworkFileHandle, WouldBlock,
    };

    use shearwater_io::fs::OpenError;

    use super::Patience;

    /// Opens with so many repeats, as long as it `is_wanted`.
    fn open(
        is_wanted: bool,
        repeats: u64,
        open: impl FnMut() -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let is_wanted = || is_wanted;
        let repeats_left = Cell::new(repeats);
        Patience { hook: None, is_wanted: &is_wanted, repeats_left }.open(open)
    }

    #[test]
    fn repeats_an_open_that_a_wait_may_fix() {
        for kind in [None, Some(WouldBlock), Some(Interrupted), Some(OutOfMemory)] {
            let error = || kind.map_or(OpenError::Descriptors, |kind| OpenError::Other(kind.into()));
            let opens = Cell::new(0);
            let succeeds_late = || {
                opens.set(opens.get() + 1);
                if opens.get() < 4 { Err(error()) } else { Ok(()) }
            };
            assert!(open(true, 3, succeeds_late).is_ok() && opens.get() == 4, "{kind:?}");
            for (is_wanted, repeats) in [(false, 60), (true, 0), (true, 2)] {
                let failed = open(is_wanted, repeats, || Err(error()));
                assert!(failed.is_err_and(|error| error.is_passing()), "{kind:?}");
            }
        }
    }

    #[test]
    fn repeats_no_other_open() {
        for kind in [Other, StaleNetworkFileHandle, ResourceBusy, ExecutableFileBusy] {
            let opens = Cell::new(0);
            let fails = || {
                opens.set(opens.get() + 1);
                Err(OpenError::Other(kind.into()))
            };
            assert!(open(true, 3, fails).is_err() && opens.get() == 1, "{kind:?}");
        }
    }
}
