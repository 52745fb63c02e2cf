//! Finds the file of a name and reads it: on the worker from the kernel's caches, on another thread from the disk.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use shearwater_compress::negotiation::Codings;
use shearwater_io::fs::{Coding, Kind, Meta, OpenError, Opened};

use crate::cache::store::FileStore;
use crate::disk::Disk;
use crate::limits::{CacheLimits, READ_TRIES_MAX, SMALL_FILE_BYTES};
use crate::listing::names::{FolderNames, ListedFolder};
use crate::listing::rows::{self, ListOrder, ListPage};
use crate::now::Now;
use crate::resolve::path::Shape;
use crate::resolve::search::{Search, SearchResult};
use crate::settings::FolderSettings;
use crate::siblings::{Representation, Siblings};

/// A name whose file is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Load<'a> {
    pub(crate) disk: Disk<'a>,
    pub(crate) settings: &'a FolderSettings,
    pub(crate) limits: CacheLimits,
    pub(crate) name: &'a [u8],
    /// The shape of a path whose file is searched for; `None` for the file with this name.
    pub(crate) shape: Option<Shape>,
    /// The query, which selects the page of a list.
    pub(crate) query: Option<&'a str>,
    /// Returns the coding that the client prefers of these.
    pub(crate) choose: &'a dyn Fn(Codings) -> Option<Coding>,
    /// Files that needn't be read: they are in memory.
    pub(crate) known: Option<&'a FileStore>,
    /// Names of the folder, if they were read lately.
    pub(crate) known_names: Option<&'a Arc<FolderNames>>,
    pub(crate) now: Now,
}

/// Result of a load.
pub(crate) enum Loaded {
    File(LoadedFile),
    /// The path has another name.
    OtherName(Vec<u8>),
    /// A folder that was requested without a trailing slash.
    Folder,
    /// A list. `None` if it must be waited for, and may be cached.
    List(Option<LoadedList>),
    /// The status at the end of the candidates.
    Status(u16),
    Nothing,
}

/// A file, and the sibling that the client prefers.
pub(crate) struct LoadedFile {
    pub(crate) plain: LoadedContent,
    pub(crate) siblings: Siblings,
    pub(crate) sibling: Option<(Coding, LoadedContent)>,
    /// True for the fallback of missing files.
    pub(crate) is_fallback: bool,
}

/// An opened file.
pub(crate) struct LoadedContent {
    pub(crate) file: Arc<File>,
    pub(crate) meta: Meta,
    /// Its bytes. `None` if it is too large, if it is known, or if it changes all the time.
    pub(crate) bytes: Option<Arc<[u8]>>,
}

/// A page of a list.
pub(crate) struct LoadedList {
    pub(crate) names: Arc<FolderNames>,
    pub(crate) page: ListPage,
}

impl Load<'_> {
    /// Loads the file. Writes its name, or that of the file that an error is about, to `file`.
    ///
    /// # Errors
    /// If it exists but can't be opened or read, or not without waiting.
    pub(crate) fn load(&self, file: &mut Vec<u8>) -> Result<Loaded, OpenError> {
        let Some(shape) = self.shape else {
            self.name.clone_into(file);
            return self.named(file).map(Loaded::File);
        };
        let search = Search { disk: self.disk, candidates: &self.settings.candidates };
        match search.find(self.name, shape, file)? {
            SearchResult::File { opened, depends_on_path } => {
                if self.settings.candidates.clean_urls && depends_on_path {
                    let mut other = Vec::new();
                    match search.canonical(self.name, file, &mut other) {
                        Ok(None) => {}
                        Ok(Some(canonical)) => return Ok(Loaded::OtherName(canonical.to_vec())),
                        Err(error) => {
                            *file = other;
                            return Err(error);
                        }
                    }
                }
                self.opened(opened, file).map(Loaded::File)
            }
            SearchResult::Folder => Ok(Loaded::Folder),
            SearchResult::Listing(opened) if self.disk.may_wait() => {
                self.name.clone_into(file);
                Ok(Loaded::List(Some(self.list(&opened)?)))
            }
            SearchResult::Listing(_) => Ok(Loaded::List(None)),
            SearchResult::Status(status) => Ok(Loaded::Status(status)),
            SearchResult::Nothing => {
                match (search.page_without_slash(self.name, file)?, &self.settings.spa) {
                    (Some(page), _) => Ok(Loaded::OtherName(page.to_vec())),
                    (None, Some(spa)) => {
                        file.clone_from(spa);
                        Ok(Loaded::File(LoadedFile { is_fallback: true, ..self.named(file)? }))
                    }
                    (None, None) => Ok(Loaded::Nothing),
                }
            }
        }
    }

    fn named(&self, name: &mut Vec<u8>) -> Result<LoadedFile, OpenError> {
        let opened = self.disk.open(name)?;
        match opened.kind {
            Kind::File => self.opened(opened, name),
            Kind::Directory => Err(OpenError::NotFound),
        }
    }

    /// Reads an opened file and the sibling that the client prefers. Restores `name` afterwards.
    fn opened(&self, opened: Opened, name: &mut Vec<u8>) -> Result<LoadedFile, OpenError> {
        let known = self.known.and_then(|store| store.known_siblings(name, &opened.meta, self.now));
        let siblings = match known {
            Some(siblings) => siblings,
            None => Siblings::find(self.disk, self.settings, name, &opened.meta)?,
        };
        let plain = self.content(opened, Representation::plain(name, siblings))?;
        let sibling = match (self.choose)(siblings.codings) {
            Some(coding) => self.sibling(coding, siblings, name)?.map(|content| (coding, content)),
            None => None,
        };
        Ok(LoadedFile { plain, siblings, sibling, is_fallback: false })
    }

    /// Opens and reads a sibling. Returns `None` if it isn't one any more.
    fn sibling(
        &self,
        coding: Coding,
        siblings: Siblings,
        name: &mut Vec<u8>,
    ) -> Result<Option<LoadedContent>, OpenError> {
        siblings.with_sibling(coding, name, |entry| match self.disk.open(entry.path()) {
            Ok(opened) if siblings.admit(coding, self.disk, &opened)? => {
                self.content(opened, entry).map(Some)
            }
            Err(OpenError::WouldBlock) => Err(OpenError::WouldBlock),
            _ => Ok(None),
        })
    }

    /// Reads a small file that isn't in memory.
    fn content(&self, mut opened: Opened, entry: Representation<'_>) -> Result<LoadedContent, OpenError> {
        if self.known.is_some_and(|store| store.has_version(entry, &opened.meta)) {
            return Ok(LoadedContent { file: Arc::new(opened.file), meta: opened.meta, bytes: None });
        }
        let read = |opened: &Opened| {
            self.limits.takes(opened.meta.len).then(|| self.disk.read_whole(opened)).transpose()
        };
        let bytes = read_version(&mut opened, read, |opened| self.disk.meta(opened)).map_err(read_error)?;
        if bytes.is_none() && self.known.is_none() && opened.meta.len <= SMALL_FILE_BYTES {
            // Into the page cache. Sending it reports an error.
            let _ = self.disk.read_whole(&opened);
        }
        let bytes = bytes.map(Arc::from);
        Ok(LoadedContent { file: Arc::new(opened.file), meta: opened.meta, bytes })
    }

    fn list(&self, opened: &Opened) -> Result<LoadedList, OpenError> {
        let folder = ListedFolder { opened, name: self.name, hidden: self.settings.hidden };
        let order = ListOrder::of(self.query);
        let names = match self.known_names {
            Some(names) => Arc::clone(names),
            None => Arc::new(FolderNames::read(&folder, order.pages_descend(), self.now)?),
        };
        let start = rows::after(self.query).map_or(0, |after| names.start(&after));
        let page = rows::read(&folder, self.disk, order, &names, start);
        Ok(LoadedList { names, page })
    }
}

/// Reads a file, up to `READ_TRIES_MAX` times if it changes meanwhile. Returns `None` if it changes all the time, or isn't
/// to be read; `opened` has its latest metadata then.
///
/// Compares the metadata before and after, so no `write` has begun between. A `write` that was already in progress isn't
/// noticed.
fn read_version(
    opened: &mut Opened,
    mut read: impl FnMut(&Opened) -> io::Result<Option<Vec<u8>>>,
    look: impl Fn(&Opened) -> io::Result<Meta>,
) -> io::Result<Option<Vec<u8>>> {
    for _ in 0..READ_TRIES_MAX {
        let read = match read(opened) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => None,
            Ok(None) => break,
            read => read?,
        };
        let after = look(opened)?;
        let before = std::mem::replace(&mut opened.meta, after);
        if let Some(bytes) = read.filter(|_| after == before) {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

fn read_error(error: io::Error) -> OpenError {
    if error.kind() == ErrorKind::WouldBlock { OpenError::WouldBlock } else { OpenError::Other(error) }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::io::{self, ErrorKind};

    use shearwater_io::fs::{Meta, Root};

    use super::{READ_TRIES_MAX, read_version};

    /// Reads a file that changes during the first reads, and fails with this error. Returns the content and the number of
    /// reads.
    fn read(changes: usize, error: Option<ErrorKind>) -> (io::Result<Option<Vec<u8>>>, usize) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        fs::write(&path, "").expect("written");
        let mut opened = Root::open(folder.path())
            .and_then(|root| root.open_beneath(b"f").map_err(|_| ErrorKind::NotFound.into()));
        let opened = opened.as_mut().expect("it is there");
        let reads = Cell::new(0);
        let read = read_version(
            opened,
            |opened| {
                reads.set(reads.get() + 1);
                let content = fs::read(&path)?;
                assert_eq!(opened.meta.len, content.len() as u64, "its present metadata");
                if reads.get() <= changes {
                    fs::write(&path, vec![b'x'; reads.get()])?;
                }
                error.map_or(Ok(Some(content)), |kind| Err(kind.into()))
            },
            |opened| Meta::of(&opened.file),
        );
        (read, reads.get())
    }

    #[test]
    fn reads_a_changing_file_three_times() {
        for (changes, is_read) in [(0, true), (READ_TRIES_MAX - 1, true), (READ_TRIES_MAX, false)] {
            let (read, reads) = read(changes, None);
            let read = read.expect("no error").map(|bytes| bytes.len());
            assert_eq!((read, reads), (is_read.then_some(changes), READ_TRIES_MAX.min(changes + 1)));
        }
        let (shortened, reads) = read(0, Some(ErrorKind::UnexpectedEof));
        assert!(shortened.is_ok_and(|bytes| bytes.is_none()) && reads == READ_TRIES_MAX);
        let (failed, reads) = read(0, Some(ErrorKind::Other));
        assert!(failed.is_err() && reads == 1, "a read error isn't retried");
    }
}
