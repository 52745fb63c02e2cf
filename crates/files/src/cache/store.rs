//! Files of a folder by name: in memory, open, or opened now; each in the client's preferred coding.

use std::rc::Rc;
use std::sync::Arc;

use shearwater::engine::KnownField;

use shearwater::Request;
use shearwater_io::fs::{Kind, OpenError, Opened, Root};

use crate::cache::cached_file::{CachedFile, FileContent};
use crate::cache::clock_cache::FolderCache;
use crate::cache::open_files::OpenFiles;
use crate::limits::{CacheLimits, READ_TRIES_MAX};
use crate::negotiation::choose_coding;
use crate::now::Now;
use crate::settings::FolderSettings;
use crate::siblings::{Representation, SiblingCache, Siblings};

/// A folder and one worker's caches of it.
pub(crate) struct FileStore {
    pub(crate) root: Root,
    /// Time of the last look-up of the root's path.
    root_checked_ms: Option<u64>,
    settings: Arc<FolderSettings>,
    limits: CacheLimits,
    /// Files in memory, checked at most 500 ms before they are sent, or `UNCHECKED_MS_MAX` if no descriptor is free.
    cached: FolderCache<Rc<CachedFile>>,
    open_files: OpenFiles,
    sibling_cache: SiblingCache,
}

/// A file that was found.
pub(crate) struct FoundFile {
    /// The content to send.
    pub(crate) content: FileContent,
    /// The plain file if it is in memory, even if a sibling is sent.
    pub(crate) cached: Option<Rc<CachedFile>>,
}

impl FileStore {
    pub(crate) fn new(
        root: Root,
        settings: Arc<FolderSettings>,
        limits: CacheLimits,
        cached: FolderCache<Rc<CachedFile>>,
    ) -> Self {
        let (open_files, sibling_cache) = (OpenFiles::default(), SiblingCache::new(limits));
        Self { root, root_checked_ms: None, settings, limits, cached, open_files, sibling_cache }
    }

    /// Looks up the root's path again, at most every 500 ms. Returns true if it has changed, and clears all caches
    /// then.
    pub(crate) fn look_up_root(&mut self, now: Now) -> bool {
        if self.root_checked_ms.is_some_and(|checked_ms| now.is_fresh(checked_ms)) {
            return false;
        }
        self.root_checked_ms = Some(now.ms);
        let is_another = self.root.look_up();
        if is_another {
            self.cached.clear();
            self.open_files = OpenFiles::default();
            self.sibling_cache.clear();
        }
        is_another
    }

    /// Returns the time of the root's last look-up, since which names that are found now are valid.
    pub(crate) fn root_checked(&self, now: Now) -> Now {
        Now { ms: self.root_checked_ms.unwrap_or(now.ms), ..now }
    }

    /// Removes a missing file from the cache.
    pub(crate) fn evict(&self, name: &[u8]) {
        self.cached.remove(name);
    }

    /// Returns the file of this name. Restores `name` afterwards, like all methods here.
    ///
    /// # Errors
    /// If the file can't be opened; a folder counts as missing.
    pub(crate) fn file(
        &mut self,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> Result<FoundFile, OpenError> {
        let kept = self.cached(name);
        if let Some(cached) = kept.as_ref().filter(|cached| now.is_fresh(cached.checked_ms.get())) {
            let content = self.preferred(Rc::clone(cached), name, request, now);
            return Ok(FoundFile { content, cached: kept });
        }
        if kept.is_none()
            && let Some(content) = self.known_file(name, request, now)
        {
            return Ok(FoundFile { content, cached: None });
        }
        let error = match self.root.open_beneath(name) {
            Ok(opened) if opened.kind == Kind::File => {
                return Ok(self.opened_file(opened, name, request, now));
            }
            Ok(_) => return Err(OpenError::NotFound),
            Err(error) => error,
        };
        // Without a free descriptor, the recently checked version is sent. It isn't returned as `cached`, since it
        // wasn't checked now.
        match kept.filter(|cached| may_send_unchecked(&error, cached, now)) {
            Some(cached) => {
                Ok(FoundFile { content: self.preferred(cached, name, request, now), cached: None })
            }
            None => {
                self.evict(name);
                Err(error)
            }
        }
    }

    /// Returns a cached file of any age.
    fn cached(&self, key: &[u8]) -> Option<Rc<CachedFile>> {
        self.cached.get(key, |cached| Some(Rc::clone(cached)))
    }

    /// Returns a cached file, or the client's preferred sibling of it.
    pub(crate) fn preferred(
        &mut self,
        cached: Rc<CachedFile>,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> FileContent {
        self.sibling(cached.siblings, name, request, now).unwrap_or(FileContent::Cached(cached))
    }

    /// Returns an open file, or a sibling of it that was found within 500 ms.
    pub(crate) fn known_file(
        &mut self,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> Option<FileContent> {
        let open = self.open_files.get(name, now);
        let siblings = match &open {
            Some((siblings, _)) => Some(*siblings),
            None => self.sibling_cache.get(name, now),
        };
        let sibling = siblings.and_then(|siblings| self.sibling(siblings, name, request, now));
        sibling.or_else(|| open.map(|(_, content)| content))
    }

    /// Returns a newly opened file, or a sibling of it.
    pub(crate) fn opened_file(
        &mut self,
        mut opened: Opened,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> FoundFile {
        let siblings = self.siblings(&opened, name, now);
        let cached = self.cached_or_read(&mut opened, Representation::plain(name, siblings), now);
        let content = match (self.sibling(siblings, name, request, now), &cached) {
            (Some(sibling), _) => sibling,
            (None, Some(cached)) => FileContent::Cached(Rc::clone(cached)),
            (None, None) => {
                self.open_files.open(opened, Representation::plain(name, siblings), &self.settings, now)
            }
        };
        FoundFile { content, cached }
    }

    /// Returns the siblings of an opened file. They are cached for files that aren't in memory.
    fn siblings(&mut self, opened: &Opened, name: &mut Vec<u8>, now: Now) -> Siblings {
        let is_cached = self.limits.takes(opened.meta.len);
        if let Some(siblings) = self.sibling_cache.get(name, now).filter(|_| !is_cached) {
            return siblings;
        }
        let siblings = Siblings::find(&self.root, &self.settings.codings, name, &opened.meta);
        if !is_cached {
            self.sibling_cache.insert(name, now, siblings);
        }
        siblings
    }

    /// Returns the sibling that the client prefers, unless it is missing or outdated.
    fn sibling(
        &mut self,
        siblings: Siblings,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        now: Now,
    ) -> Option<FileContent> {
        if siblings.is_empty() {
            return None;
        }
        let accepted = request.head().all(KnownField::AcceptEncoding);
        let coding = choose_coding(accepted, siblings.codings, &self.settings.codings)?;
        let len = name.len();
        name.extend_from_slice(coding.extension().as_bytes());
        name.push(0);
        let entry =
            Representation { key: name, name: &name[..len], coding: Some(coding), siblings: Siblings::NONE };
        let content = self.sibling_content(entry, siblings, now);
        name.truncate(len);
        content
    }

    fn sibling_content(
        &mut self,
        entry: Representation<'_>,
        siblings: Siblings,
        now: Now,
    ) -> Option<FileContent> {
        let kept = self.cached(entry.key);
        let current = kept.as_ref().filter(|cached| siblings.are_current(&cached.meta));
        if let Some(cached) = current.filter(|cached| now.is_fresh(cached.checked_ms.get())) {
            return Some(FileContent::Cached(Rc::clone(cached)));
        }
        if kept.is_none()
            && let Some((_, content)) = self.open_files.get(entry.key, now)
        {
            return Some(content);
        }
        let path = entry.key.strip_suffix(b"\0").unwrap_or(entry.key);
        let mut opened = match self.root.open_beneath(path) {
            Ok(opened) if siblings.admit(&opened) => opened,
            Err(error) if kept.as_ref().is_some_and(|cached| may_send_unchecked(&error, cached, now)) => {
                return current.cloned().map(FileContent::Cached);
            }
            _ => {
                self.cached.remove(entry.key);
                return None;
            }
        };
        Some(match self.cached_or_read(&mut opened, entry, now) {
            Some(cached) => FileContent::Cached(cached),
            None => self.open_files.open(opened, entry, &self.settings, now),
        })
    }

    /// Returns the present version of a file in memory: cached or read now. `None` if it must be sent from its
    /// descriptor; `opened` has its latest metadata then.
    fn cached_or_read(
        &self,
        opened: &mut Opened,
        entry: Representation<'_>,
        now: Now,
    ) -> Option<Rc<CachedFile>> {
        if !self.limits.takes(opened.meta.len) {
            self.cached.remove(entry.key);
            return None;
        }
        if let Some(cached) =
            self.cached(entry.key).filter(|cached| cached.is_of(opened, entry.siblings, now))
        {
            return Some(cached);
        }
        let cached = retry(|| {
            if !self.limits.takes(opened.meta.len) {
                return None;
            }
            let cached = CachedFile::read(opened, entry, &self.settings, now).ok()?;
            if cached.is_none() {
                opened.look_again().ok()?;
            }
            Some(cached)
        });
        match &cached {
            Some(cached) => self.cached.insert(entry.key, Rc::clone(cached)),
            None => self.cached.remove(entry.key),
        }
        cached
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
