//! Files of a folder by name: in memory, open, or opened now; each in the client's preferred coding.

use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;

use shearwater::engine::KnownField;

use shearwater::engine::Request;
use shearwater_compress::negotiation::choose_coding;
use shearwater_io::fs::{Kind, OpenError, Opened};

use crate::cache::cached_file::{CachedFile, FileContent};
use crate::cache::directories::Directories;
use crate::cache::entry::{CacheEntry, FileTable, NameKind};
use crate::cache::open_file::OpenFile;
use crate::cache::statistics::CacheCounters;
use crate::cache::table::Section;
use crate::disk::work::WorkFolder;
use crate::disk::worker::WorkerDisk;
use crate::disk::{Disk, WouldBlock};
use crate::limits::{CacheLimits, READ_TRIES_MAX};
use crate::now::Now;
use crate::settings::FolderSettings;
use crate::siblings::{Representation, Siblings};

const WOULD_BLOCK: ErrorKind = ErrorKind::WouldBlock;

/// A folder and one worker's caches of it.
pub(crate) struct FileStore {
    pub(crate) disk: WorkerDisk,
    /// Time of the last look-up of the root's path.
    root_checked_ms: Option<u64>,
    pub(super) settings: Arc<FolderSettings>,
    pub(super) limits: CacheLimits,
    /// Files by key: in memory, or sent from their descriptor. They were checked at most 500 ms before they are sent, or
    /// `RECENT_MS_MAX` if no descriptor is free.
    pub(super) files: Section<CacheEntry>,
    pub(super) directories: Directories,
    counters: Arc<CacheCounters>,
}

impl FileStore {
    /// Creates the store of the folder with this number in a table.
    pub(crate) fn new(folder: WorkFolder, table: &FileTable, number: u32) -> Self {
        let (settings, limits) = (Arc::clone(&folder.settings), folder.limits);
        let files = NameKind::File.section(table, number);
        let directories = Directories::new(table, number, &folder.root);
        let (disk, counters) = (WorkerDisk::new(folder), files.counters());
        Self { disk, root_checked_ms: None, settings, limits, files, directories, counters }
    }

    /// Counts a request for a file in memory.
    #[inline]
    pub(crate) fn count_hit(&self) {
        self.counters.count_hit();
    }

    /// Looks up the root's path again, at most every 500 ms. Returns true if it has changed, and clears all caches
    /// then.
    pub(crate) fn look_up_root(&mut self, now: Now) -> bool {
        let is_another = if self.disk.root().is_remote() {
            // It is looked up with each piece of disk work.
            let Some(is_another) = self.disk.take_root() else { return false };
            is_another
        } else if self.root_checked_ms.is_some_and(|checked_ms| now.is_fresh(checked_ms)) {
            return false;
        } else {
            self.disk.folder.root.look_up()
        };
        self.root_checked_ms = Some(now.ms);
        if is_another {
            self.files.clear();
            self.directories.clear();
        }
        is_another
    }

    /// Returns the time of the root's last look-up, which began the present period: what is found or checked now counts
    /// from then, so that nothing from beneath another root outlasts it. What another thread has found counts from its
    /// own time, if that was earlier.
    pub(crate) fn root_checked(&self, now: Now) -> Now {
        Now { ms: self.root_checked_ms.map_or(now.ms, |checked_ms| checked_ms.min(now.ms)), ..now }
    }

    /// Removes a missing file from the cache.
    pub(crate) fn evict(&self, name: &[u8]) {
        self.files.remove(name);
    }

    /// Returns the file of this name. Restores `name` afterwards, like all methods here.
    ///
    /// # Errors
    /// If the file can't be opened, or not without waiting; a folder counts as missing.
    pub(crate) fn file(
        &mut self,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> Result<FileContent, OpenError> {
        // A sibling that must be waited for is found again with its file.
        if let Ok(Some(content)) = self.known_file(name, request, now) {
            return Ok(content);
        }
        let error = match self.disk.open(name) {
            Ok(opened) if opened.kind == Kind::File => {
                return Ok(self.opened_file(opened, name, request, now)?);
            }
            Ok(_) => return Err(OpenError::NotFound),
            Err(OpenError::WouldBlock) => return Err(OpenError::WouldBlock),
            Err(error) => error,
        };
        // Without a free descriptor, the recently checked version is sent.
        match self.cached(name).filter(|cached| may_send_unchecked(&error, cached, now)) {
            Some(cached) => Ok(self.preferred(cached, name, request, now)?),
            None => {
                self.evict(name);
                Err(error)
            }
        }
    }

    /// Returns a cached file of any age.
    pub(super) fn cached(&self, key: &[u8]) -> Option<Rc<CachedFile>> {
        self.files.get(key, |entry| match entry {
            CacheEntry::Cached(cached) => Some(Rc::clone(cached)),
            _ => None,
        })
    }

    /// Returns a cached file that was checked within 500 ms.
    #[inline]
    pub(crate) fn fresh(&self, name: &[u8], now: Now) -> Option<Rc<CachedFile>> {
        self.files.get(name, |entry| match entry {
            CacheEntry::Cached(cached) if now.is_fresh(cached.checked_ms.get()) => Some(Rc::clone(cached)),
            _ => None,
        })
    }

    /// Returns a cached file that was checked recently, for requests without a free descriptor.
    pub(crate) fn recently_cached(&self, name: &[u8], now: Now) -> Option<Rc<CachedFile>> {
        self.cached(name).filter(|cached| now.is_recent(cached.checked_ms.get()))
    }

    /// Returns a cached file, or the client's preferred sibling of it.
    pub(crate) fn preferred(
        &mut self,
        cached: Rc<CachedFile>,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> Result<FileContent, WouldBlock> {
        Ok(self.sibling(cached.siblings, name, request, now)?.unwrap_or(FileContent::Cached(cached)))
    }

    /// Returns a file, or a sibling of it, without opening it: cached and unchanged, or open.
    pub(crate) fn known_file(
        &mut self,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> Result<Option<FileContent>, WouldBlock> {
        match self.cached(name) {
            Some(cached) if self.is_present(&cached, name, now) => {
                self.count_hit();
                self.preferred(cached, name, request, now).map(Some)
            }
            Some(_) => Ok(None),
            None => self.open_file(name, request, now),
        }
    }

    /// Returns an open file, or a sibling of it that was found within 500 ms.
    fn open_file(
        &mut self,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> Result<Option<FileContent>, WouldBlock> {
        let Some(open) = self.fresh_open(name, now) else { return Ok(None) };
        let sibling = self.sibling(open.siblings, name, request, now)?;
        Ok(sibling.or_else(|| self.open_content(name, &open, now)))
    }

    /// Returns a newly opened file, or a sibling of it.
    pub(crate) fn opened_file(
        &mut self,
        mut opened: Opened,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> Result<FileContent, WouldBlock> {
        let (siblings, checked_ms) = self.siblings(&opened, name, now)?;
        let cached = self.cached_or_read(&mut opened, Representation::plain(name, siblings), now)?;
        Ok(match (self.sibling(siblings, name, request, now)?, cached) {
            (Some(sibling), cached) => {
                if cached.is_none() {
                    self.keep_siblings(name, opened.meta, siblings, checked_ms);
                }
                sibling
            }
            (None, Some(cached)) => FileContent::Cached(cached),
            (None, None) => self.open(opened, Representation::plain(name, siblings), checked_ms, now),
        })
    }

    /// Returns the siblings of an opened file, and the start of the period in which they were looked for. Those of an
    /// unchanged file that isn't in memory are cached.
    fn siblings(
        &mut self,
        opened: &Opened,
        name: &mut Vec<u8>,
        now: Now,
    ) -> Result<(Siblings, u64), WouldBlock> {
        let is_same = |open: &Rc<OpenFile>| open.meta == opened.meta && !self.disk.has_found();
        if let Some(open) = self.fresh_open(name, now).filter(is_same) {
            return Ok((open.siblings, open.checked_ms));
        }
        let siblings = Siblings::find(&self.disk, &self.settings, name, &opened.meta)?;
        Ok((siblings, self.root_checked(now).ms))
    }

    /// Returns the sibling or compressed file that the client prefers. `None` for the file itself: a sibling is outdated,
    /// or a compressed one isn't there yet.
    fn sibling(
        &mut self,
        siblings: Siblings,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> Result<Option<FileContent>, WouldBlock> {
        if siblings.is_empty() {
            return Ok(None);
        }
        let choose = |available| {
            let accepted = request.head().all(KnownField::AcceptEncoding);
            choose_coding(accepted, available, &self.settings.preferred)
        };
        let mut coding = choose(siblings.available());
        if let Some(compressed) = coding.filter(|&coding| !siblings.codings.has(coding)) {
            if let Some(content) = self.compressed_file(compressed, siblings, name, now) {
                return Ok(Some(content));
            }
            coding = choose(siblings.codings);
        }
        let Some(coding) = coding else { return Ok(None) };
        let len = name.len();
        name.extend_from_slice(coding.extension().as_bytes());
        name.push(0);
        let of_file = siblings.of_file_only();
        let entry = Representation { key: name, name: &name[..len], coding: Some(coding), siblings: of_file };
        let content = self.sibling_content(entry, siblings, now);
        name.truncate(len);
        content
    }

    fn sibling_content(
        &mut self,
        entry: Representation<'_>,
        siblings: Siblings,
        now: Now,
    ) -> Result<Option<FileContent>, WouldBlock> {
        let Some(coding) = entry.coding else { return Ok(None) };
        let kept = self.cached(entry.key);
        let current = kept.as_ref().filter(|cached| siblings.are_current(&cached.meta));
        if let Some(cached) = current.filter(|cached| now.is_fresh(cached.checked_ms.get())) {
            return Ok(Some(FileContent::Cached(Rc::clone(cached))));
        }
        if let Some(open) = self.fresh_open(entry.key, now).filter(|open| open.siblings == entry.siblings)
            && let Some(content) = self.open_content(entry.key, &open, now)
        {
            return Ok(Some(content));
        }
        let path = entry.key.strip_suffix(b"\0").unwrap_or(entry.key);
        if let Some(cached) = current.filter(|cached| cached.siblings == entry.siblings)
            && self.leads_to(cached, path, now).is_some()
        {
            cached.checked_ms.set(self.root_checked(now).ms);
            return Ok(Some(FileContent::Cached(Rc::clone(cached))));
        }
        let mut opened = match self.disk.open(path) {
            Ok(opened) if siblings.admit(coding, &self.disk, &opened)? => opened,
            Err(OpenError::WouldBlock) => return Err(WouldBlock),
            Err(error) if kept.as_ref().is_some_and(|cached| may_send_unchecked(&error, cached, now)) => {
                return Ok(current.cloned().map(FileContent::Cached));
            }
            _ => {
                self.files.remove(entry.key);
                return Ok(None);
            }
        };
        Ok(Some(match self.cached_or_read(&mut opened, entry, now)? {
            Some(cached) => FileContent::Cached(cached),
            None => self.open(opened, entry, self.root_checked(now).ms, now),
        }))
    }

    /// Returns the present version of a file in memory: cached or read now. `None` if it must be sent from its
    /// descriptor; `opened` has its latest metadata then.
    pub(super) fn cached_or_read(
        &self,
        opened: &mut Opened,
        entry: Representation<'_>,
        now: Now,
    ) -> Result<Option<Rc<CachedFile>>, WouldBlock> {
        let now = self.root_checked(now);
        if !self.limits.takes(opened.meta.len) {
            return Ok(None);
        }
        if let Some(cached) =
            self.cached(entry.key).filter(|cached| cached.is_of(opened, entry.siblings, now))
        {
            return Ok(Some(cached));
        }
        let (mut would_block, mut has_changed) = (false, false);
        let cached = retry(|| {
            if !self.limits.takes(opened.meta.len) {
                return None;
            }
            let read = CachedFile::read(&self.disk, opened, entry, &self.settings, now);
            let cached = read.inspect_err(|error| would_block = error.kind() == WOULD_BLOCK).ok()?;
            if cached.is_none() {
                let meta = self.disk.meta(opened);
                opened.meta = meta.inspect_err(|error| would_block = error.kind() == WOULD_BLOCK).ok()?;
                has_changed = true;
            }
            Some(cached)
        });
        // A file that changed while another thread read it isn't read again: it may change all the time.
        if would_block && !has_changed {
            return Err(WouldBlock);
        }
        match &cached {
            Some(cached) => {
                self.counters.count_miss();
                self.files.insert(entry.key, CacheEntry::Cached(Rc::clone(cached)));
            }
            None => self.files.remove(entry.key),
        }
        Ok(cached)
    }
}

/// Returns whether a cached file is sent unchecked: no descriptor is free, and the last check is recent.
fn may_send_unchecked(error: &OpenError, cached: &CachedFile, now: Now) -> bool {
    matches!(error, OpenError::Descriptors) && now.is_recent(cached.checked_ms.get())
}

/// Calls `read` up to `READ_TRIES_MAX` times until it returns a value; `None` if one call fails.
fn retry<T>(mut read: impl FnMut() -> Option<Option<T>>) -> Option<T> {
    for _ in 0..READ_TRIES_MAX {
        if let Some(read) = read()? {
            return Some(read);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{READ_TRIES_MAX, retry};

    #[test]
    fn reads_a_changing_file_three_times() {
        for (changes, is_read) in [(0, true), (READ_TRIES_MAX - 1, true), (READ_TRIES_MAX, false)] {
            let reads = Cell::new(0);
            let read = retry(|| {
                reads.set(reads.get() + 1);
                Some((reads.get() > changes).then_some("one version"))
            });
            assert_eq!((read.is_some(), reads.get()), (is_read, READ_TRIES_MAX.min(changes + 1)));
        }
        let fails = retry(|| None::<Option<()>>);
        assert!(fails.is_none(), "a read error isn't retried");
    }
}
