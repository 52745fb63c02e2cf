//! Files of a folder by name: in memory, open, or loaded now; each in the client's preferred coding.

use std::rc::Rc;
use std::sync::Arc;

use shearwater::engine::{KnownField, Request};
use shearwater_compress::negotiation::choose_coding;
use shearwater_io::fs::{Coding, Meta};

use crate::cache::cached_file::{CachedFile, FileContent};
use crate::cache::directories::Directories;
use crate::cache::entry::{CacheEntry, FileTable, NameKind};
use crate::cache::statistics::CacheCounters;
use crate::cache::table::Section;
use crate::conditional::validators::ContentHash;
use crate::disk::load::{LoadedContent, LoadedFile};
use crate::disk::work::{Found, WorkFolder};
use crate::disk::worker::WorkerDisk;
use crate::limits::CacheLimits;
use crate::now::Now;
use crate::settings::FolderSettings;
use crate::siblings::{Representation, Siblings};

/// A folder and one worker's caches of it. Methods restore the names that they are given.
pub(crate) struct FileStore {
    pub(crate) disk: WorkerDisk,
    /// Time of the last look-up of the root's path.
    root_checked_ms: Option<u64>,
    pub(super) settings: Arc<FolderSettings>,
    pub(crate) limits: CacheLimits,
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
        let is_checked = self.root_checked_ms.is_some_and(|checked_ms| now.is_fresh(checked_ms));
        // One on a file server is looked up with each piece of disk work.
        if is_checked || self.disk.root().is_remote() {
            return false;
        }
        let is_another = self.disk.folder.root.look_up();
        self.root_looked_up(is_another, now)
    }

    /// Takes over the root of a result. Returns whether it has changed, and clears all caches then; `None` if the result
    /// is of a former root, and worthless.
    pub(crate) fn take_root(&mut self, found: &Found) -> Option<bool> {
        let is_late = self.root_checked_ms.is_some_and(|checked_ms| found.now.ms < checked_ms);
        let is_another = !found.root.is_same(self.disk.root());
        // One on a file server is looked up with each piece of disk work, any other on the worker.
        let was_looked_up = self.disk.root().is_remote() && !is_late;
        if was_looked_up {
            self.disk.folder.root = found.root.clone();
            self.root_looked_up(is_another, found.now);
        }
        (was_looked_up || !is_another).then_some(is_another)
    }

    fn root_looked_up(&mut self, is_another: bool, now: Now) -> bool {
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

    /// Returns the siblings of a file that isn't in memory, if they were looked for in the present period.
    pub(crate) fn known_siblings(&self, name: &[u8], meta: &Meta, now: Now) -> Option<Siblings> {
        let open = self.fresh_open(name, now).filter(|open| open.meta == *meta)?;
        Some(open.siblings)
    }

    /// Returns whether a version is in memory.
    pub(crate) fn has_version(&self, entry: Representation<'_>, meta: &Meta) -> bool {
        self.cached(entry.key).is_some_and(|cached| cached.is_version(meta, entry.siblings))
    }

    /// Returns a file, or a sibling of it, without opening it: cached and unchanged, or open. `None` if it must be loaded.
    pub(crate) fn known_file(
        &mut self,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> Option<FileContent> {
        let open = match self.files.get(name, |entry| Some(entry.clone()))? {
            CacheEntry::Cached(cached) if self.is_present(&cached, name, now) => {
                return self.preferred(cached, name, request, now).inspect(|_| self.count_hit());
            }
            CacheEntry::Open(open) if now.is_fresh(open.checked_ms) => open,
            _ => return None,
        };
        match self.select(open.siblings, name, request, now) {
            Selected::Plain => self.open_content(name, &open, now),
            Selected::Compressed(content) => Some(content),
            Selected::Sibling(coding) => self.known_sibling(coding, open.siblings, name, now),
        }
    }

    /// Returns a cached file, or the client's preferred sibling of it. `None` if that must be loaded.
    pub(crate) fn preferred(
        &mut self,
        cached: Rc<CachedFile>,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> Option<FileContent> {
        match self.select(cached.siblings, name, request, now) {
            Selected::Plain => Some(FileContent::Cached(cached)),
            Selected::Compressed(content) => Some(content),
            Selected::Sibling(coding) => self.known_sibling(coding, cached.siblings, name, now),
        }
    }

    /// Returns a cached file, or a sibling of it, that was checked recently: for requests without a free descriptor.
    pub(crate) fn recent_file(
        &self,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> Option<FileContent> {
        let recent = |key: &[u8]| self.cached(key).filter(|cached| now.is_recent(cached.checked_ms.get()));
        let cached = recent(name)?;
        let siblings = cached.siblings;
        Some(match self.select(siblings, name, request, now) {
            Selected::Compressed(content) => content,
            Selected::Plain => FileContent::Cached(cached),
            Selected::Sibling(coding) => {
                let sibling = siblings.with_sibling(coding, name, |entry| recent(entry.key));
                let current = sibling.filter(|sibling| siblings.are_current(&sibling.meta));
                FileContent::Cached(current.unwrap_or(cached))
            }
        })
    }

    /// Selects the representation that the client prefers.
    fn select(&self, siblings: Siblings, name: &mut Vec<u8>, request: &Request<'_>, now: Now) -> Selected {
        if siblings.is_empty() {
            return Selected::Plain;
        }
        let choose = |available| {
            let accepted = request.head().all(KnownField::AcceptEncoding);
            choose_coding(accepted, available, &self.settings.preferred)
        };
        let mut coding = choose(siblings.available());
        if let Some(compressed) = coding.filter(|&coding| !siblings.codings.has(coding)) {
            if let Some(content) = self.compressed_file(compressed, siblings, name, now) {
                return Selected::Compressed(content);
            }
            coding = choose(siblings.codings);
        }
        coding.map_or(Selected::Plain, Selected::Sibling)
    }

    /// Returns a sibling without opening it: cached and unchanged, or open. `None` if it must be loaded.
    fn known_sibling(
        &mut self,
        coding: Coding,
        siblings: Siblings,
        name: &mut Vec<u8>,
        now: Now,
    ) -> Option<FileContent> {
        siblings.with_sibling(coding, name, |entry| {
            let cached = self.cached(entry.key).filter(|cached| siblings.are_current(&cached.meta));
            if let Some(cached) = cached {
                if !now.is_fresh(cached.checked_ms.get()) {
                    if cached.siblings != entry.siblings {
                        return None;
                    }
                    self.leads_to(&cached, entry.path(), now)?;
                    cached.checked_ms.set(self.root_checked(now).ms);
                }
                return Some(FileContent::Cached(cached));
            }
            let open = self.fresh_open(entry.key, now).filter(|open| open.siblings == entry.siblings)?;
            self.open_content(entry.key, &open, now)
        })
    }

    /// Caches a file that was loaded at `now`. Returns the representation that the client prefers.
    pub(crate) fn keep(
        &self,
        loaded: &LoadedFile,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> FileContent {
        let siblings = loaded.siblings;
        let preferred = match (self.select(siblings, name, request, now), &loaded.sibling) {
            (Selected::Compressed(content), _) => Some(content),
            (Selected::Sibling(coding), Some((loaded, content))) if *loaded == coding => {
                Some(siblings.with_sibling(coding, name, |entry| {
                    let cached = self.keep_cached(content, entry, now).map(FileContent::Cached);
                    cached.unwrap_or_else(|| self.open(content, entry, now))
                }))
            }
            (Selected::Plain | Selected::Sibling(_), _) => None,
        };
        let entry = Representation::plain(name, siblings);
        match (preferred, self.keep_cached(&loaded.plain, entry, now)) {
            (None, Some(cached)) => FileContent::Cached(cached),
            (None, None) => self.open(&loaded.plain, entry, now),
            (Some(preferred), Some(_)) => preferred,
            (Some(preferred), None) => {
                self.keep_siblings(name, loaded.plain.meta, siblings, now);
                preferred
            }
        }
    }

    /// Caches a version that was loaded at `now`. `None` if it must be sent from its descriptor.
    pub(super) fn keep_cached(
        &self,
        loaded: &LoadedContent,
        entry: Representation<'_>,
        now: Now,
    ) -> Option<Rc<CachedFile>> {
        let (meta, now) = (loaded.meta, self.root_checked(now));
        if let Some(cached) = self.cached(entry.key).filter(|cached| cached.is_version(&meta, entry.siblings))
        {
            cached.checked_ms.set(now.ms.max(cached.checked_ms.get()));
            return Some(cached);
        }
        let bytes = loaded.bytes.as_ref().filter(|_| self.limits.takes(meta.len))?;
        let hash = ContentHash::of(bytes);
        let cached = Rc::new(CachedFile::hashed(meta, Arc::clone(bytes), hash, entry, &self.settings, now));
        self.counters.count_miss();
        self.files.insert(entry.key, CacheEntry::Cached(Rc::clone(&cached)));
        Some(cached)
    }
}

/// The representation of a file that a client prefers.
enum Selected {
    /// The file itself. A compressed one may not be there yet.
    Plain,
    Compressed(FileContent),
    Sibling(Coding),
}
