//! An open file, as the sends of one worker share it.

use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;
use std::fs::File;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::ahead::are_in_memory;
use crate::fs::Meta;
use crate::limits::PROMISED_END_BYTES;
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
    /// Counted for the thread that reads ahead, which takes part in it.
    file: Arc<File>,
    /// What was said of the file where it is to stay as it is.
    promised: Option<Meta>,
    is_lent: bool,
    /// Set when a send isn't over at once; `None` if the promised version had changed by then.
    guard: OnceCell<Option<Guard>>,
    /// Once it was asked for, where nothing is promised.
    inode: Cell<Option<Inode>>,
}

/// Tells changes of a promised version apart that have the same metadata.
#[derive(Debug)]
struct Guard {
    watch: Option<Watch>,
    /// The last of the promised bytes; empty if reading them could have waited for a disk.
    end: Vec<u8>,
}

/// What tells one file from another while either is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inode {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
}

impl SharedFile {
    /// Takes the file in. It is sent as it is at each moment, and its pages are lent to the kernel where that takes them.
    #[must_use]
    pub fn new(file: File) -> Self {
        let (guard, inode) = (OnceCell::new(), Cell::default());
        Self { file: Arc::new(file), promised: None, is_lent: true, guard, inode }
    }

    /// Sends the promised bytes of this version alone: the last bytes of each piece are held back until a check has shown that they are unchanged
    /// (clause S10).
    #[must_use]
    pub fn in_version(self, meta: Meta) -> Self {
        Self { promised: Some(meta), ..self }
    }

    /// The same, to be copied into the socket. Pages that are lent (`sendfile`) cost less, but what is written into the file before
    /// the client has read them is read by the client too, and no look can tell.
    #[must_use]
    pub fn copied(self) -> Self {
        Self { is_lent: false, ..self }
    }

    /// Whether the kernel is to send the file's own pages, where it can.
    #[must_use]
    pub fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Returns true if the promised bytes are unchanged, as far as the system tells (clause S10).
    pub(crate) fn is_as_promised(&self) -> bool {
        let Some(promised) = &self.promised else { return true };
        let Ok(now) = Meta::of(&self.file) else { return false };
        let guard = self.guard.get().and_then(Option::as_ref);
        match now.len.cmp(&promised.len) {
            Ordering::Less => false,
            Ordering::Equal => !was_written(promised, &now, guard),
            Ordering::Greater => guard.is_none_or(|guard| guard.has_same_end(&self.file, promised)),
        }
    }

    /// Guards the promised version, once. Called when a send of it isn't over at once.
    pub(crate) fn guard(&self, watches: &mut Watches) {
        if let Some(promised) = &self.promised {
            self.guard.get_or_init(|| Guard::new(&self.file, promised, watches));
        }
    }

    /// The file, for another thread.
    pub(crate) fn part(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Which file it is; `None` where the system doesn't tell.
    pub(crate) fn inode(&self) -> Option<Inode> {
        let meta = || Meta::of(&self.file).ok();
        let inode = self.inode.get().or_else(|| self.promised.or_else(meta).map(|meta| Inode::of(&meta)));
        self.inode.set(inode);
        inode
    }
}

impl Guard {
    /// Returns `None` if the file has changed already.
    fn new(file: &File, promised: &Meta, watches: &mut Watches) -> Option<Self> {
        let guard = Self { watch: watches.watch(file), end: promised_end(file, promised) };
        let now = Meta::of(file).ok()?;
        (now.len == promised.len && now.mtime == promised.mtime).then_some(guard)
    }

    /// Returns false if other bytes are at the promised end. Bytes that aren't in memory were not written a moment ago.
    fn has_same_end(&self, file: &File, promised: &Meta) -> bool {
        let end = promised_end(file, promised);
        self.end.is_empty() || end.is_empty() || self.end == end
    }
}

/// Returns true if a file of the promised length may have been written to.
fn was_written(promised: &Meta, now: &Meta, guard: Option<&Guard>) -> bool {
    let is_dated_anew = now.mtime != promised.mtime;
    if !is_dated_anew && now.ctime == promised.ctime {
        return false;
    }
    match guard.and_then(|guard| guard.watch.as_ref()).map(Watch::events) {
        // A new date without any event is that of a write without one: under way, through a mapping, from another machine.
        Some(events) => events.writes > 0 || is_dated_anew && events.attributes == 0,
        None => is_dated_anew,
    }
}

/// Reads the last of the promised bytes, unless that could wait for a disk.
fn promised_end(file: &File, promised: &Meta) -> Vec<u8> {
    let len = promised.len.min(PROMISED_END_BYTES as u64);
    let offset = promised.len - len;
    if !are_in_memory(file, offset, len) {
        return Vec::new();
    }
    let mut end = vec![0; len as usize];
    file.read_exact_at(&mut end, offset).map_or(Vec::new(), |()| end)
}

impl Inode {
    fn of(meta: &Meta) -> Self {
        Self { dev: meta.dev, ino: meta.ino }
    }
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
    fn one_file_is_told_from_another_whatever_was_promised() {
        let open = |path: &str| File::open(path).expect("it can be opened");
        let promised = |file: File| {
            let meta = Meta::of(&file).expect("its metadata");
            SharedFile::new(file).in_version(meta)
        };
        let (null, zero) = (SharedFile::new(open("/dev/null")), SharedFile::new(open("/dev/zero")));
        assert!(null.inode().is_some() && null.inode() == promised(open("/dev/null")).inode());
        assert_ne!(null.inode(), zero.inode());
    }
}
