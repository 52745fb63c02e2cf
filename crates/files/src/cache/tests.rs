//! A folder with a worker's cache, for tests.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::sync::Arc;

use shearwater_io::fs::Root;
use testkit::TestFolder;

use crate::cache::store::FileStore;
use crate::compressions::Compressions;
use crate::disk::load::{Load, Loaded};
use crate::disk::work::WorkFolder;
use crate::disk::{Disk, DiskThreads};
use crate::folder::FileCache;
use crate::limits::CacheLimits;
use crate::now::Now;
use crate::settings::FolderSettings;
use crate::siblings::Representation;

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
        let load = Load {
            disk: Disk::waiting(self.store.disk.root()),
            settings: &self.store.settings,
            limits: self.store.limits,
            name: b"d/f",
            shape: None,
            query: None,
            choose: &|_| None,
            known: Some(&self.store),
            known_names: None,
            now: self.now,
        };
        let Ok(Loaded::File(file)) = load.load(&mut Vec::new()) else { panic!("it is there") };
        let entry = Representation::plain(b"d/f", file.siblings);
        assert!(self.store.keep_cached(&file.plain, entry, self.now).is_some());
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
