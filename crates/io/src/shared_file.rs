//! An open file, as the sends of one worker share it.

use std::cell::Cell;
use std::fs::File;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::fs::Meta;

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
    /// Once it was asked for, where nothing is promised.
    inode: Cell<Option<Inode>>,
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
        Self { file: Arc::new(file), promised: None, is_lent: true, inode: Cell::default() }
    }

    /// The same, to be sent in this version alone: the last bytes of each piece are held back until a look has shown that the
    /// content is the same still (clause S10).
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

    /// Whether the content is still the promised one, as far as the system tells. A call of the system, where anything was promised.
    pub(crate) fn is_as_promised(&self) -> bool {
        let Some(promised) = &self.promised else { return true };
        Meta::of(&self.file).is_ok_and(|now| promised.has_same_content(&now))
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
