//! Open files shared by the sends of one worker.

use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;
use std::fs::File;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::fs::Meta;
use crate::limits::PROMISED_END_BYTES;
#[cfg(not(target_os = "linux"))]
use crate::not_linux::watches::{Watch, Watches};
use crate::page_cache::{Inode, are_in_memory, known_meta};
#[cfg(target_os = "linux")]
use crate::watches::{Watch, Watches};

/// An open file that several sends of one worker share.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// use std::rc::Rc;
///
/// use shearwater_io::{FileSlice, SharedFile};
///
/// let file = Rc::new(SharedFile::new(std::fs::File::open("/dev/null")?));
/// let slice = FileSlice { file: Rc::clone(&file), offset: 0, len: 100 };
/// assert!(!slice.file.metadata()?.is_file());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SharedFile {
    /// Shared with the read-ahead thread.
    file: Arc<File>,
    /// Metadata of the promised version, if any.
    promised: Option<Meta>,
    is_lent: bool,
    /// Every read may wait for a server.
    is_remote: bool,
    /// Further sends continue what one has begun.
    is_continued: Cell<bool>,
    /// Set when a send outlasts its first push; `None` if the promised version had changed by then.
    guard: OnceCell<Option<VersionGuard>>,
    /// Cached inode, if no version is promised.
    inode: Cell<Option<Inode>>,
}

/// Detects changes of a promised version that metadata doesn't show.
#[derive(Debug)]
struct VersionGuard {
    watch: Option<Watch>,
    /// The last of the promised bytes; empty if reading them might block on a disk.
    end: Vec<u8>,
}

impl SharedFile {
    /// Wraps a file that is sent in its present state at each moment, by `sendfile` where possible.
    #[must_use]
    pub fn new(file: impl Into<Arc<File>>) -> Self {
        let (guard, inode) = (OnceCell::new(), Cell::default());
        let file = file.into();
        Self {
            file,
            promised: None,
            is_lent: true,
            is_remote: false,
            is_continued: Cell::default(),
            guard,
            inode,
        }
    }

    /// Promises this version: the last bytes of each range are held back until a check shows that it is
    /// unchanged (clause S10).
    #[must_use]
    pub fn in_version(self, meta: Meta) -> Self {
        Self { promised: Some(meta), ..self }
    }

    /// Makes sends copy the file into the socket. `sendfile` costs less, but a client that reads late
    /// receives bytes written to the file meanwhile, which no check can detect.
    #[must_use]
    pub fn copied(self) -> Self {
        Self { is_lent: false, ..self }
    }

    /// Sends what another thread has read just before, and checks the version by what this system knows of it: the
    /// file is on a file system whose every call may wait for a server ([`Root::is_remote`](crate::fs::Root::is_remote)).
    #[must_use]
    pub fn remote(self) -> Self {
        Self { is_remote: true, ..self }
    }

    /// Notes that further sends continue what one has begun: together they are a send that takes longer (clause S10).
    pub fn continues(&self) {
        self.is_continued.set(true);
    }

    pub(crate) fn is_continued(&self) -> bool {
        self.is_continued.get()
    }

    /// Returns whether every read may wait for a server.
    pub(crate) fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Returns the present metadata; of a remote file what the system knows of it.
    fn meta(&self) -> std::io::Result<Meta> {
        if self.is_remote { known_meta(&self.file) } else { Meta::of(&self.file) }
    }

    /// Returns whether the kernel may send the file's own pages.
    #[must_use]
    pub fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Returns whether the promised bytes are unchanged, as far as the system reports (clause S10).
    pub(crate) fn is_as_promised(&self) -> bool {
        let Some(promised) = &self.promised else { return true };
        let Ok(now) = self.meta() else { return false };
        let guard = self.guard.get().and_then(Option::as_ref);
        match now.len.cmp(&promised.len) {
            Ordering::Less => false,
            Ordering::Equal => !was_written(promised, &now, guard),
            Ordering::Greater => guard.is_none_or(|guard| guard.has_same_end(self, promised)),
        }
    }

    /// Watches the promised version, once. Called when a send outlasts its first push.
    pub(crate) fn guard(&self, watches: &mut Watches) {
        if let Some(promised) = &self.promised {
            self.guard.get_or_init(|| VersionGuard::new(self, promised, watches));
        }
    }

    /// Returns the file, for another thread.
    pub(crate) fn part(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Returns the file's identity; `None` if the system doesn't report it.
    pub(crate) fn inode(&self) -> Option<Inode> {
        let meta = || self.meta().ok();
        let inode = self.inode.get().or_else(|| self.promised.or_else(meta).map(|meta| Inode::of(&meta)));
        self.inode.set(inode);
        inode
    }
}

impl VersionGuard {
    /// Returns `None` if the file has changed already.
    fn new(file: &SharedFile, promised: &Meta, watches: &mut Watches) -> Option<Self> {
        let guard = Self { watch: watches.watch(file), end: promised_end(file, promised) };
        let now = file.meta().ok()?;
        (now.len == promised.len && now.mtime == promised.mtime).then_some(guard)
    }

    /// Returns false if other bytes are at the promised end. Uncached bytes were not written recently.
    fn has_same_end(&self, file: &SharedFile, promised: &Meta) -> bool {
        let end = promised_end(file, promised);
        self.end.is_empty() || end.is_empty() || self.end == end
    }
}

/// Returns whether a file of the promised length may have been written to.
fn was_written(promised: &Meta, now: &Meta, guard: Option<&VersionGuard>) -> bool {
    let is_dated_anew = now.mtime != promised.mtime;
    if !is_dated_anew && now.ctime == promised.ctime {
        return false;
    }
    match guard.and_then(|guard| guard.watch.as_ref()).map(Watch::events) {
        // A new date without any event is that of an unreported write: in progress, through a mapping, from
        // another machine.
        Some(events) => events.writes > 0 || is_dated_anew && events.attributes == 0,
        None => is_dated_anew,
    }
}

/// Reads the last of the promised bytes, unless that might block on a disk.
fn promised_end(file: &SharedFile, promised: &Meta) -> Vec<u8> {
    let len = promised.len.min(PROMISED_END_BYTES as u64);
    let offset = promised.len - len;
    if file.is_remote || !are_in_memory(file, offset, len) {
        return Vec::new();
    }
    let mut end = vec![0; len as usize];
    file.read_exact_at(&mut end, offset).map_or(Vec::new(), |()| end)
}

impl Deref for SharedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl AsFd for SharedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::{Meta, SharedFile};

    #[test]
    fn distinguishes_files_with_and_without_a_promise() {
        let open = |path: &str| File::open(path).expect("the file opens");
        let promised = |file: File| {
            let meta = Meta::of(&file).expect("its metadata");
            SharedFile::new(file).in_version(meta)
        };
        let (null, zero) = (SharedFile::new(open("/dev/null")), SharedFile::new(open("/dev/zero")));
        assert!(null.inode().is_some() && null.inode() == promised(open("/dev/null")).inode());
        assert_ne!(null.inode(), zero.inode());
    }
}
