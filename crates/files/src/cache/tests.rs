//! A folder with a worker's cache, for tests.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::sync::Arc;

use shearwater_io::fs::Root;
use testkit::TestFolder;

use crate::cache::store::FileStore;
use crate::compressions::Compressions;
use crate::disk::DiskThreads;
use crate::disk::work::WorkFolder;
use crate::folder::FileCache;
use crate::limits::CacheLimits;
use crate::now::Now;
use crate::settings::FolderSettings;
use crate::siblings::{Representation, Siblings};

/// The folder `root` with its cache, and a clock ten seconds after the files were written.
pub(crate) struct TestStore {
    pub(crate) folder: TestFolder,
    pub(crate) store: FileStore,
    pub(crate) now: Now,
}

impl TestStore {
    /// Caches `d/f` of a folder with these files.
    pub(crate) fn new(files: &[&str]) -> Self {
        let folder = TestFolder::new();
        for name in ["d/f"].iter().chain(files) {
            folder.file(format!("root/{name}"), name);
        }
        fs::create_dir(folder.at("outside")).expect("a folder");
        let written = fs::metadata(folder.at("root/d/f")).expect("the file").ctime();
        let root = Root::open(&folder.at("root")).expect("the folder");
        let settings = Arc::new(FolderSettings::default_for_test());
        let (threads, limits) =
            (DiskThreads::new(), CacheLimits { hashed_bytes_max: 0, ..CacheLimits::default() });
        let compressions = Compressions::of_process();
        let work_folder = WorkFolder { threads, root, settings, limits, compressions };
        let store = FileStore::new(work_folder, FileCache::new(limits).table_for_test(), 0);
        let now = Now { ms: 1_000, unix_seconds: written.unsigned_abs() + 10 };
        let mut test = Self { folder, store, now };
        test.store.look_up_root(now);
        test.read();
        // Later changes have another time.
        test.folder.tick();
        test
    }

    /// Reads `d/f` into the cache.
    pub(crate) fn read(&mut self) {
        let root = self.store.disk.root();
        let mut opened = root.open_beneath(b"d/f").expect("the file");
        let settings = &self.store.settings;
        let siblings = Siblings::find(root, settings, &mut b"d/f".to_vec(), &opened.meta);
        let entry = Representation::plain(b"d/f", siblings.expect("it waits"));
        let cached = self.store.cached_or_read(&mut opened, entry, self.now);
        assert!(cached.expect("in the kernel's caches").is_some());
    }

    /// Returns whether the cached `d/f` may be sent.
    pub(crate) fn is_present(&mut self) -> bool {
        let (cached, mut name) = (self.store.cached(b"d/f").expect("a cached file"), b"d/f".to_vec());
        let is_present = self.store.is_present(&Rc::clone(&cached), &mut name, self.now);
        assert_eq!(name, b"d/f");
        is_present
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.now.ms += ms;
        self.store.look_up_root(self.now);
    }
}
