//! A folder's entries in a cache that all folders of a worker share, with one bound.

use std::cell::RefCell;
use std::rc::Rc;

use crate::clock_cache::{ClockCache, Evictable};

/// A folder's part of a shared cache.
pub(crate) struct FolderCache<V> {
    all: Rc<RefCell<ClockCache<V>>>,
    folder: u32,
}

impl<V: Evictable> FolderCache<V> {
    /// Returns the part of the folder with this number.
    pub(crate) fn new(all: &Rc<RefCell<ClockCache<V>>>, folder: u32) -> Self {
        Self { all: Rc::clone(all), folder }
    }

    /// Passes an entry to `poll_now` and marks it as used.
    #[inline]
    pub(crate) fn get<R>(&self, name: &[u8], look: impl FnOnce(&V) -> Option<R>) -> Option<R> {
        self.all.borrow().get(self.folder, name).and_then(look)
    }

    /// Inserts or replaces an entry, unless it exceeds the bound by itself.
    pub(crate) fn insert(&self, name: &[u8], value: V) {
        self.all.borrow_mut().insert(self.folder, name, value);
    }

    /// Removes a name.
    pub(crate) fn remove(&self, name: &[u8]) {
        self.all.borrow_mut().remove(self.folder, name);
    }

    /// Removes all entries of this folder.
    pub(crate) fn clear(&self) {
        self.all.borrow_mut().remove_folder(self.folder);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    use super::FolderCache;
    use crate::clock_cache::{ClockCache, Evictable};

    struct Piece(u64, Cell<bool>);

    impl Evictable for Piece {
        fn bytes(&self) -> u64 {
            self.0
        }

        fn was_used(&self) -> &Cell<bool> {
            &self.1
        }
    }

    fn put(cache: &FolderCache<Piece>, name: &str, bytes: u64) {
        cache.insert(name.as_bytes(), Piece(bytes, Cell::new(false)));
    }

    fn bytes(cache: &FolderCache<Piece>, name: &str) -> Option<u64> {
        cache.get(name.as_bytes(), |piece| Some(piece.0))
    }

    #[test]
    fn a_name_is_another_in_each_folder() {
        let all = Rc::new(RefCell::new(ClockCache::new(10, 100)));
        let caches: Vec<FolderCache<Piece>> = (0..3).map(|folder| FolderCache::new(&all, folder)).collect();
        for (folder, cache) in (1..).zip(&caches) {
            put(cache, "a", folder);
        }
        caches[1].remove(b"a");
        let seen: Vec<Option<u64>> = caches.iter().map(|cache| bytes(cache, "a")).collect();
        assert_eq!(seen, [Some(1), None, Some(3)]);
    }

    #[test]
    fn a_folder_forgets_its_own_alone() {
        for cleared in 0..3 {
            let all = Rc::new(RefCell::new(ClockCache::new(10, 100)));
            let caches: Vec<FolderCache<Piece>> =
                (0..3).map(|folder| FolderCache::new(&all, folder)).collect();
            for name in ["a", "b", "a"] {
                caches.iter().for_each(|cache| put(cache, name, 1));
            }
            caches[cleared].clear();
            for (folder, cache) in caches.iter().enumerate() {
                for name in ["a", "b"] {
                    assert_eq!(bytes(cache, name).is_none(), folder == cleared);
                }
            }
        }
    }

    #[test]
    fn folders_have_one_bound() {
        let all = Rc::new(RefCell::new(ClockCache::new(10, 100)));
        let (one, other): (FolderCache<Piece>, FolderCache<Piece>) =
            (FolderCache::new(&all, 0), FolderCache::new(&all, 1));
        put(&one, "a", 60);
        put(&other, "a", 60);
        assert_eq!((bytes(&one, "a"), bytes(&other, "a")), (None, Some(60)));
        (0..20).for_each(|number| put(&other, &number.to_string(), 1));
        put(&one, "b", 1);
        let kept = (0..20).filter(|number| bytes(&other, &number.to_string()).is_some()).count();
        assert!((8..10).contains(&kept), "{kept}");
        assert_eq!(bytes(&one, "b"), Some(1));
    }
}
