//! An open folder: its files for the workers, and checks before it serves requests.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use shearwater::MakeService;
use shearwater_io::fs::{Kind, Root};

use crate::cache::entry::{FileTable, NameKind};
use crate::cache::lookups::Lookups;
use crate::cache::statistics::CacheCounters;
use crate::cache::store::FileStore;
use crate::cache::table::{EvictingTable, Section};
use crate::compressions::Compressions;
use crate::disk::work::WorkFolder;
use crate::disk::{Disk, DiskThreads};
use crate::files::Files;
use crate::finder::{Finder, NameBuffers};
use crate::leaving_links::{self, LeavingLinks};
use crate::limits::{CacheLimits, LINK_SEARCH_ENTRIES_MAX, LISTINGS_KEPT_BYTES_MAX, LISTINGS_KEPT_MAX};
use crate::listing::{ListEntry, Listings};
use crate::options::{FolderError, FolderOptions, Hidden};
use crate::reply::errors::encoded;
use crate::resolve::candidate::{Candidate, Candidates};
use crate::resolve::path::{Shape, resolve};
use crate::resolve::search::{Search, SearchResult};
use crate::settings::FolderSettings;

/// An open folder, shared by the workers.
///
/// No file outside of it is ever sent: the kernel resolves names beneath it. Symbolic links that lead out are rejected
/// (unless [`Links::Follow`](crate::Links::Follow) is set), and so are devices, pipes and sockets. Files that the
/// options name (an index, a fallback, an error page) must be in it too.
///
/// Each worker looks the folder's path up again when a file is requested, at most twice a second. If another folder is
/// there (recreated, moved, or the target of a link in the path), it is served within a second. Each response is wholly
/// from one of the two folders, and a worker that has served the new one never serves the old one again. While there is
/// no folder, its files are not found (`404`); while its path isn't accessible, they are forbidden (`403`). A relative
/// path is resolved in the working directory at the time of opening, even if the process changes it later.
#[derive(Debug, Clone)]
pub struct Folder {
    root: Root,
    /// Absolute path, for reports.
    path: Arc<Path>,
    settings: Arc<FolderSettings>,
    threads: DiskThreads,
}

impl Folder {
    /// Opens the folder with default options.
    ///
    /// # Errors
    /// If the folder is missing or not readable.
    ///
    /// # Panics
    /// Never: the default options are valid.
    pub fn open(path: &Path) -> io::Result<Self> {
        match Self::open_with(path, &FolderOptions::default()) {
            Ok(folder) => Ok(folder),
            Err(FolderError::Open(error)) => Err(error),
            Err(FolderError::Option(bad)) => unreachable!("a default option is invalid: {bad}"),
        }
    }

    /// Opens the folder with these options.
    ///
    /// # Errors
    /// If an option is invalid, or the folder is missing or not readable.
    pub fn open_with(path: &Path, options: &FolderOptions) -> Result<Self, FolderError> {
        let settings = FolderSettings::new(options).map_err(FolderError::Option)?;
        let root = Root::open(path).map_err(FolderError::Open)?.with_links(options.symlinks);
        // A folder without search permission can be opened, but nothing in it.
        std::fs::metadata(path.join(".")).map_err(FolderError::Open)?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(Self { root, path: path.into(), settings: Arc::new(settings), threads: DiskThreads::new() })
    }

    /// Returns the same folder as if nothing of it were cached, and calls `hook` with each name before it is opened, on
    /// the thread that waits for the disk. For tests of slow and hanging disks.
    #[doc(hidden)]
    #[must_use]
    pub fn with_slow_disk(self, hook: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self { threads: DiskThreads::with_hook(hook), ..self }
    }

    /// Returns the folder's files for one worker, with the default cache.
    #[must_use]
    pub fn files(&self) -> Files {
        self.files_with(CacheLimits::default())
    }

    /// Returns the folder's files for one worker, with a cache of this size.
    #[must_use]
    pub fn files_with(&self, cache: CacheLimits) -> Files {
        self.files_in(&FileCache::new(cache))
    }

    /// Returns the folder's files for one worker, with a cache shared by the worker's folders.
    ///
    /// # Panics
    /// At the 4,294,967,296th folder of the cache.
    #[must_use]
    pub fn files_in(&self, cache: &FileCache) -> Files {
        let owned = FolderNumber::of(cache);
        let number = owned.number;
        let (settings, limits) = (Arc::clone(&self.settings), cache.limits);
        let (root, threads) = (self.root.clone(), self.threads.clone());
        let compressions = Compressions::of_process();
        let folder = WorkFolder { threads, root, settings: Arc::clone(&settings), limits, compressions };
        Files::new(Finder {
            path: Arc::clone(&self.path),
            settings,
            names: NameBuffers::default(),
            lookups: Lookups::new(&cache.files, number),
            store: FileStore::new(folder, &cache.files, number),
            listings: Listings::new(Section::new(&cache.lists, number)),
            _number: owned,
        })
    }

    /// Returns whether both are the same directory at the same path, with the same options: the [`Files`] of one, and what
    /// they have cached, can serve the other.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.root.is_same_place(&other.root) && self.settings == other.settings
    }

    /// Returns the absolute path at the time of opening.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path that a file at this path is redirected to if it exists.
    ///
    /// `None` if there is no redirect, or if it depends on other files. Opens no file.
    #[must_use]
    pub fn leads_to(&self, path: &str) -> Option<String> {
        let (name, _) = self.served_name(path)?;
        self.settings.candidates.redirect_target(&name).map(encoded)
    }

    /// Returns the path that this one is redirected to by the folder's present files.
    #[must_use]
    pub fn leads_to_now(&self, path: &str) -> Option<String> {
        let (name, shape) = self.served_name(path)?;
        let search = self.search();
        let (mut file, mut other) = (Vec::new(), Vec::new());
        let target = match search.find(&name, shape, &mut file).ok()? {
            SearchResult::Folder => return Some(format!("{}/", encoded(&name))),
            SearchResult::File { depends_on_path: true, .. } if search.candidates.clean_urls => {
                search.canonical(&name, &file, &mut other)
            }
            SearchResult::Nothing => search.page_without_slash(&name, &mut file),
            _ => return None,
        };
        target.ok()?.map(encoded)
    }

    /// Returns the name and shape of a path, unless it is hidden.
    fn served_name(&self, path: &str) -> Option<(Vec<u8>, Shape)> {
        let mut name = Vec::new();
        let resolved = resolve(path, &mut name).ok()?;
        let is_denied = resolved.is_hidden && self.settings.hidden == Hidden::Deny;
        (!is_denied).then_some((name, resolved.shape))
    }

    fn search(&self) -> Search<'_> {
        Search { disk: Disk::waiting(&self.root), candidates: &self.settings.candidates }
    }

    /// Returns a warning if `/` is not found now: the folder has no index, no list and no fallback.
    #[must_use]
    pub fn no_index(&self) -> Option<String> {
        let Candidates { each, index, .. } = &self.settings.candidates;
        if self.settings.spa.is_some() || !each.contains(&Candidate::Folder) {
            return None;
        }
        let found = self.search().find(b"", Shape::Directory, &mut Vec::new());
        matches!(found, Ok(SearchResult::Nothing)).then(|| {
            let index = index.first().map_or(Cow::Borrowed("index"), |name| String::from_utf8_lossy(name));
            format!("there is no {index} now, so / is not found: add one, or list the folder with `listing = true`")
        })
    }

    /// Searches the folder for symbolic links that lead out, up to
    /// [`LINK_SEARCH_ENTRIES_MAX`](crate::limits::LINK_SEARCH_ENTRIES_MAX) entries. Waits for the disk.
    #[must_use]
    pub fn leaving_links(&self) -> LeavingLinks {
        let is_hidden = |name: &[u8]| name.starts_with(b".") && name != b".well-known";
        let is_served = |name: &[u8]| self.settings.hidden == Hidden::Serve || !is_hidden(name);
        leaving_links::search(&self.root, &self.path, LINK_SEARCH_ENTRIES_MAX, is_served)
    }

    /// Returns whether there is such a file now. The path is decoded; its leading slash is optional.
    #[must_use]
    pub fn has_file(&self, path: &str) -> bool {
        self.has_name(path.strip_prefix('/').unwrap_or(path).as_bytes())
    }

    fn has_name(&self, name: &[u8]) -> bool {
        self.root.open_beneath(name).is_ok_and(|opened| opened.kind == Kind::File)
    }

    /// Returns the options whose fallback file is missing now.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let last = self.settings.candidates.each.last().and_then(|candidate| candidate.fixed_file());
        let named = [("spa", self.settings.spa.as_deref()), ("try_files", last)];
        let is_missing = |(option, file): (_, Option<&[u8]>)| (!self.has_name(file?)).then_some(option);
        named.into_iter().filter_map(is_missing).collect()
    }
}

/// A worker's cache of files, shared by its folders: see [`Folder::files_in`].
///
/// Evicts entries that weren't used lately, of any folder. Clones are the same cache.
#[derive(Clone)]
pub struct FileCache {
    limits: CacheLimits,
    files: FileTable,
    lists: Rc<RefCell<EvictingTable<ListEntry>>>,
    folders: Rc<RefCell<FolderNumbers>>,
}

/// Numbers of the folders of a cache.
#[derive(Default)]
struct FolderNumbers {
    next: u32,
    /// Numbers of folders that are gone, at most as many as there were at once.
    free: Vec<u32>,
}

/// Mounts the folder in an app, with the default cache for each worker.
impl MakeService for Folder {
    type Service = Files;

    fn make(&self, _worker: usize) -> Files {
        self.files()
    }
}

impl fmt::Debug for FileCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileCache").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl FileCache {
    /// Creates a cache with these bounds. [`CacheStatistics`](crate::CacheStatistics) creates one that is counted.
    #[must_use]
    pub fn new(limits: CacheLimits) -> Self {
        Self::counted(limits, Arc::default())
    }

    pub(crate) fn counted(limits: CacheLimits, counters: Arc<CacheCounters>) -> Self {
        // Without cached files there are no cached lists either.
        let listings_max = if limits.cached_files_max > 0 { LISTINGS_KEPT_MAX } else { 0 };
        Self {
            limits,
            files: EvictingTable::counted(limits.cached_files_max, limits.cached_bytes_max, counters),
            lists: EvictingTable::new(listings_max, LISTINGS_KEPT_BYTES_MAX),
            folders: Rc::default(),
        }
    }
}

/// A folder's number in a cache, which has no entries of it once this is dropped.
pub(crate) struct FolderNumber {
    cache: FileCache,
    number: u32,
}

impl FolderNumber {
    fn of(cache: &FileCache) -> Self {
        let mut folders = cache.folders.borrow_mut();
        let number = folders.free.pop().unwrap_or_else(|| {
            let number = folders.next;
            folders.next = number.checked_add(1).expect("fewer than 2^32 folders");
            number
        });
        Self { cache: cache.clone(), number }
    }
}

impl Drop for FolderNumber {
    fn drop(&mut self) {
        let Self { cache, number } = self;
        NameKind::ALL.iter().for_each(|kind| kind.section(&cache.files, *number).clear());
        Section::new(&cache.lists, *number).clear();
        cache.folders.borrow_mut().free.push(*number);
    }
}

#[cfg(test)]
impl FileCache {
    pub(crate) const fn table_for_test(&self) -> &FileTable {
        &self.files
    }
}

#[cfg(test)]
mod tests {
    use super::{CacheLimits, FileCache, Folder, FolderOptions, NameKind};
    use crate::cache::cached_file::cached_for_test;
    use crate::cache::directories::Directories;
    use crate::cache::entry::CacheEntry;
    use crate::cache::lookups::Lookups;
    use crate::limits::{CACHED_FILE_OVERHEAD_BYTES, ENTRY_OVERHEAD_BYTES};
    use crate::now::Now;
    use crate::options::FindOptions;
    use shearwater_io::fs::Links;

    const NOW: Now = Now { ms: 1_000, unix_seconds: 0 };

    /// Returns the number of entries that are kept of ten files of 30 bytes, ten lookups or ten directories.
    fn kept(limits: CacheLimits) -> [usize; 3] {
        let tables = [0, 1, 2].map(|_| FileCache::new(limits).files);
        let site = tempfile::tempdir().expect("a folder");
        let root = shearwater_io::fs::Root::open(site.path()).expect("it is there");
        let files = NameKind::File.section(&tables[0], 0);
        let lookups = Lookups::new(&tables[1], 0);
        let mut directories = Directories::new(&tables[2], 0, &root);
        for number in 0..10 {
            files.insert(&[number], CacheEntry::Cached(cached_for_test(30)));
            lookups.note(&[number], &[number], NOW);
            directories.names_around(
                crate::disk::Disk::waiting(&root),
                format!("{number}/f").as_bytes(),
                NOW,
            );
        }
        tables.map(|table| table.borrow().entries())
    }

    #[test]
    fn entries_of_each_kind_are_bounded() {
        let default = CacheLimits::default();
        let (file, lookup) = (30 + CACHED_FILE_OVERHEAD_BYTES, 2 + ENTRY_OVERHEAD_BYTES);
        for (limits, entries) in [
            (default, [10, 10, 10]),
            (CacheLimits { cached_files_max: 3, ..default }, [3, 3, 3]),
            (CacheLimits { cached_bytes_max: 4 * file - 1, ..default }, [3, 10, 10]),
            (CacheLimits { cached_bytes_max: 5 * lookup, ..default }, [1, 5, 5]),
            (CacheLimits::none(), [0, 0, 0]),
        ] {
            assert_eq!(kept(limits), entries, "{limits:?}");
        }
        let limits = CacheLimits { cached_file_bytes_max: 60, ..default };
        assert!(limits.takes(60) && !limits.takes(61) && !CacheLimits::none().takes(0));
        let limits = CacheLimits { cached_bytes_max: 60 + CACHED_FILE_OVERHEAD_BYTES, ..default };
        assert!(limits.takes(60) && !limits.takes(61));
    }

    /// Reloads open folders again and again.
    #[test]
    fn a_dropped_folder_leaves_neither_entries_nor_a_number() {
        let site = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(site.path()).expect("it is there");
        let cache = FileCache::new(CacheLimits::default());
        let kept = folder.files_in(&cache);
        for _ in 0..3 {
            let files = [folder.files_in(&cache), folder.files_in(&cache)];
            for number in 0..3 {
                let entry = CacheEntry::Cached(cached_for_test(30));
                NameKind::File.section(&cache.files, number).insert(b"f", entry);
            }
            assert_eq!(cache.files.borrow().entries(), 3);
            let other = files[0].clone();
            drop(files);
            assert_eq!(cache.files.borrow().entries(), 2, "a clone keeps its entries");
            drop(other);
            assert_eq!(cache.files.borrow().entries(), 1);
            assert_eq!((cache.folders.borrow().next, cache.folders.borrow().free.len()), (3, 2));
        }
        drop(kept);
        assert_eq!(cache.files.borrow().entries(), 0);
    }

    #[test]
    fn folders_are_the_same_by_path_directory_and_options() {
        let site = tempfile::tempdir().expect("a folder");
        let at = |name: &str| site.path().join(name);
        std::fs::create_dir(at("a")).expect("it is new");
        let open = |options: &FolderOptions| Folder::open_with(&at("a"), options).expect("it is there");
        let default = FolderOptions::default();
        let first = open(&default);
        assert!(first.is_same(&open(&default)));
        for other in [
            FolderOptions { listing: true, ..default.clone() },
            FolderOptions { symlinks: Links::Follow, ..default.clone() },
            FolderOptions {
                find: FindOptions { clean_urls: true, ..default.find.clone() },
                ..default.clone()
            },
            FolderOptions { precompressed: Vec::new(), ..default.clone() },
        ] {
            assert!(!first.is_same(&open(&other)), "{other:?}");
        }
        std::os::unix::fs::symlink("a", at("b")).expect("it is new");
        assert!(
            !first.is_same(&Folder::open(&at("b")).expect("it is there")),
            "its path may lead elsewhere later"
        );
        std::fs::rename(at("a"), at("c")).expect("it is there");
        std::fs::create_dir(at("a")).expect("it is gone");
        assert!(!first.is_same(&open(&default)), "another directory");
    }
}
