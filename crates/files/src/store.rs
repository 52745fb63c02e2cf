//! Files of a folder by name: in memory, open, or opened now; each in the client's preferred coding.

use std::rc::Rc;
use std::sync::Arc;

use shearwater::{KnownField, Request};
use shearwater_io::fs::{Kind, OpenError, Opened, Root};

use crate::accept_encoding;
use crate::cache::Cache;
use crate::cached_file::CachedFile;
use crate::content::Content;
use crate::folder_cache::FolderCache;
use crate::limits::{CacheLimits, READ_TRIES_MAX};
use crate::now::Now;
use crate::open_files::OpenFiles;
use crate::settings::Settings;
use crate::sibling_cache::SiblingCache;
use crate::siblings::Siblings;
use crate::variant::Entry;

/// A folder and one worker's caches of it.
pub(crate) struct Store {
    root: Root,
    /// Time of the last look-up of the root's path.
    root_seen_ms: Option<u64>,
    settings: Arc<Settings>,
    cache: Cache,
    open_files: OpenFiles,
    sibling_cache: SiblingCache,
}

/// A file that was found.
pub(crate) struct FoundFile {
    /// The content to send.
    pub(crate) content: Content,
    /// The plain file if it is in memory, even if a sibling is sent.
    pub(crate) cached: Option<Rc<CachedFile>>,
}

impl Store {
    pub(crate) fn new(
        root: Root,
        settings: Arc<Settings>,
        limits: CacheLimits,
        files: FolderCache<Rc<CachedFile>>,
    ) -> Self {
        let (cache, sibling_cache) = (Cache::new(limits, files), SiblingCache::new(limits));
        Self { root, root_seen_ms: None, settings, cache, open_files: OpenFiles::default(), sibling_cache }
    }

    /// Returns the folder.
    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// Looks up the root's path again, at most every 500 ms. Returns true if it has changed, and clears all caches
    /// then.
    pub(crate) fn look_up_root(&mut self, now: Now) -> bool {
        if self.root_seen_ms.is_some_and(|seen_ms| now.is_fresh(seen_ms)) {
            return false;
        }
        self.root_seen_ms = Some(now.ms);
        let is_another = self.root.look_up();
        if is_another {
            self.cache.clear();
            self.open_files = OpenFiles::default();
            self.sibling_cache.clear();
        }
        is_another
    }

    /// Returns the time of the root's last look-up, since which names that are found now are valid.
    pub(crate) fn as_of_root(&self, now: Now) -> Now {
        Now { ms: self.root_seen_ms.unwrap_or(now.ms), ..now }
    }

    /// Removes a missing file from the cache.
    pub(crate) fn evict(&mut self, name: &[u8]) {
        self.cache.remove(name);
    }

    /// Returns the file of this name. Restores `name` afterwards, like all methods here.
    ///
    /// # Errors
    /// If the file can't be opened; a folder counts as missing.
    pub(crate) fn file(&mut self, name: &mut Vec<u8>, request: &Request<'_>) -> Result<FoundFile, OpenError> {
        let kept = self.cache.get(name);
        if let Some(cached) = kept.as_ref().filter(|cached| cached.is_fresh(Now::of(request))) {
            let content = self
                .form_of_cached(cached, name, request)
                .unwrap_or_else(|| Content::Cached(Rc::clone(cached)));
            return Ok(FoundFile { content, cached: kept });
        }
        if kept.is_none()
            && let Some(content) = self.known_file(name, request)
        {
            return Ok(FoundFile { content, cached: None });
        }
        match self.root.open_beneath(name) {
            Ok(opened) if opened.kind == Kind::File => Ok(self.opened_file(opened, name, request)),
            Ok(_) => Err(OpenError::NotFound),
            Err(error) => self.stale_file(kept, error, name, request),
        }
    }

    /// Returns the recently checked version of a file that can't be opened because no descriptor is free.
    ///
    /// It isn't returned as `cached`, since it wasn't checked now.
    fn stale_file(
        &mut self,
        kept: Option<Rc<CachedFile>>,
        error: OpenError,
        name: &mut Vec<u8>,
        request: &Request<'_>,
    ) -> Result<FoundFile, OpenError> {
        match kept.filter(|cached| may_send_unchecked(&error, cached, Now::of(request))) {
            Some(cached) => {
                let content = self.form_of_cached(&cached, name, request).unwrap_or(Content::Cached(cached));
                Ok(FoundFile { content, cached: None })
            }
            None => {
                self.evict(name);
                Err(error)
            }
        }
    }

    /// Returns the client's preferred sibling of a cached file, if it isn't the file itself.
    pub(crate) fn form_of_cached(
        &mut self,
        cached: &CachedFile,
        name: &mut Vec<u8>,
        request: &Request<'_>,
    ) -> Option<Content> {
        self.sibling(cached.siblings(), name, request)
    }

    /// Returns an open file, or a sibling of it that was found within 500 ms.
    pub(crate) fn known_file(&mut self, name: &mut Vec<u8>, request: &Request<'_>) -> Option<Content> {
        let now = Now::of(request);
        let open = self.open_files.siblings(name, now);
        let known = open.or_else(|| self.sibling_cache.get(name, now));
        let sibling = known.and_then(|siblings| self.sibling(siblings, name, request));
        sibling.or_else(|| self.open_files.get(name, now))
    }

    /// Returns a newly opened file, or a sibling of it.
    pub(crate) fn opened_file(
        &mut self,
        mut opened: Opened,
        name: &mut Vec<u8>,
        request: &Request<'_>,
    ) -> FoundFile {
        let now = Now::of(request);
        let kept = self.cache.get(name);
        let siblings = self.siblings(&opened, name, now);
        let cached = self.cached_or_read(kept, &mut opened, Entry::plain(name, siblings), now);
        let content = match (self.sibling(siblings, name, request), &cached) {
            (Some(sibling), _) => sibling,
            (None, Some(cached)) => Content::Cached(Rc::clone(cached)),
            (None, None) => {
                let entry = Entry::plain(name, siblings);
                self.open_files.open(opened, entry, &self.settings, now)
            }
        };
        FoundFile { content, cached }
    }

    /// Returns the siblings of an opened file. They are cached for files that aren't in memory.
    fn siblings(&mut self, opened: &Opened, name: &mut Vec<u8>, now: Now) -> Siblings {
        let is_cached = self.cache.takes(opened.meta.len);
        if let Some(siblings) = self.sibling_cache.get(name, now).filter(|_| !is_cached) {
            return siblings;
        }
        let siblings = Siblings::find(&self.root, &self.settings.codings, name, &opened.meta);
        if !is_cached {
            self.sibling_cache.insert(name, now, siblings);
        }
        siblings
    }

    /// Returns the sibling that the client prefers.
    fn sibling(&mut self, siblings: Siblings, name: &mut Vec<u8>, request: &Request<'_>) -> Option<Content> {
        if siblings.is_empty() {
            return None;
        }
        let accepted = request.head().all(KnownField::AcceptEncoding);
        let coding = accept_encoding::choose(accepted, siblings.codings(), &self.settings.codings)?;
        let len = name.len();
        name.extend_from_slice(coding.extension().as_bytes());
        name.push(0);
        let content = self.sibling_content(Entry::coded(name, len, coding), siblings, Now::of(request));
        name.truncate(len);
        content
    }

    /// Returns a sibling, unless it is missing or outdated.
    fn sibling_content(&mut self, entry: Entry<'_>, siblings: Siblings, now: Now) -> Option<Content> {
        let kept = self.cache.get(entry.key);
        let is_present =
            |cached: &&Rc<CachedFile>| cached.is_fresh(now) && siblings.are_current(cached.meta());
        if let Some(cached) = kept.as_ref().filter(is_present) {
            return Some(Content::Cached(Rc::clone(cached)));
        }
        if kept.is_none()
            && let Some(content) = self.open_files.get(entry.key, now)
        {
            return Some(content);
        }
        let mut opened = match self.root.open_beneath(entry.path()) {
            Ok(opened) if siblings.admit(&opened) => opened,
            Err(error) if kept.as_ref().is_some_and(|cached| may_send_unchecked(&error, cached, now)) => {
                let of_this_content = |cached: &Rc<CachedFile>| siblings.are_current(cached.meta());
                return kept.filter(of_this_content).map(Content::Cached);
            }
            _ => {
                self.cache.remove(entry.key);
                return None;
            }
        };
        Some(match self.cached_or_read(kept, &mut opened, entry, now) {
            Some(cached) => Content::Cached(cached),
            None => self.open_files.open(opened, entry, &self.settings, now),
        })
    }

    /// Returns the present version of a file in memory: cached or read now. `None` if it must be sent from its
    /// descriptor.
    fn cached_or_read(
        &mut self,
        kept: Option<Rc<CachedFile>>,
        opened: &mut Opened,
        entry: Entry<'_>,
        now: Now,
    ) -> Option<Rc<CachedFile>> {
        if let Some(cached) = kept.filter(|cached| cached.is_of(opened, entry.variant, now)) {
            return Some(cached);
        }
        let cached = self.read(opened, entry, now);
        match &cached {
            Some(cached) => self.cache.insert(entry.key, Rc::clone(cached)),
            None => self.cache.remove(entry.key),
        }
        cached
    }

    /// Reads a file into memory, again if it changes meanwhile. On failure, `opened` has the latest metadata for
    /// sending it from its descriptor.
    fn read(&self, opened: &mut Opened, entry: Entry<'_>, now: Now) -> Option<Rc<CachedFile>> {
        let (cache, settings) = (&self.cache, &self.settings);
        retry(|| {
            if !cache.takes(opened.meta.len) {
                return None;
            }
            let cached = CachedFile::read(opened, entry, settings, now).ok()?;
            if cached.is_none() {
                opened.look_again().ok()?;
            }
            Some(cached)
        })
    }
}

/// Returns whether a cached file is sent unchecked: no descriptor is free, and the last check is recent.
fn may_send_unchecked(error: &OpenError, cached: &CachedFile, now: Now) -> bool {
    matches!(error, OpenError::Descriptors) && cached.is_recent(now)
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
    fn a_file_that_changes_each_time_is_read_so_often() {
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
