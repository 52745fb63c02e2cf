//! A folder's entries in a cache that all folders of a worker share, with one bound.

use std::cell::RefCell;
use std::rc::Rc;

use crate::clock_cache::{Clock, Kept};

/// A folder's part of a shared cache.
pub(crate) struct Shelf<V> {
    all: Rc<RefCell<Clock<V>>>,
    folder: u32,
}

impl<V: Kept> Shelf<V> {
    /// Returns the part of the folder with this number.
    pub(crate) fn new(all: &Rc<RefCell<Clock<V>>>, folder: u32) -> Self {
        Self { all: Rc::clone(all), folder }
    }

    /// Passes an entry to `look` and marks it as used.
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

    use super::Shelf;
    use crate::clock_cache::{Clock, Kept};

    struct Piece(u64, Cell<bool>);

    impl Kept for Piece {
        fn bytes(&self) -> u64 {
            self.0
        }

        fn was_used(&self) -> &Cell<bool> {
            &self.1
        }
    }

    fn put(shelf: &Shelf<Piece>, name: &str, bytes: u64) {
        shelf.insert(name.as_bytes(), Piece(bytes, Cell::new(false)));
    }

    fn bytes(shelf: &Shelf<Piece>, name: &str) -> Option<u64> {
        shelf.get(name.as_bytes(), |piece| Some(piece.0))
    }

    #[test]
    fn a_name_is_another_in_each_folder() {
        let all = Rc::new(RefCell::new(Clock::new(10, 100)));
        let shelves: Vec<Shelf<Piece>> = (0..3).map(|folder| Shelf::new(&all, folder)).collect();
        for (folder, shelf) in (1..).zip(&shelves) {
            put(shelf, "a", folder);
        }
        shelves[1].remove(b"a");
        let seen: Vec<Option<u64>> = shelves.iter().map(|shelf| bytes(shelf, "a")).collect();
        assert_eq!(seen, [Some(1), None, Some(3)]);
    }

    #[test]
    fn a_folder_forgets_its_own_alone() {
        for cleared in 0..3 {
            let all = Rc::new(RefCell::new(Clock::new(10, 100)));
            let shelves: Vec<Shelf<Piece>> = (0..3).map(|folder| Shelf::new(&all, folder)).collect();
            for name in ["a", "b", "a"] {
                shelves.iter().for_each(|shelf| put(shelf, name, 1));
            }
            shelves[cleared].clear();
            for (folder, shelf) in shelves.iter().enumerate() {
                for name in ["a", "b"] {
                    assert_eq!(bytes(shelf, name).is_none(), folder == cleared);
                }
            }
        }
    }

    #[test]
    fn folders_have_one_bound() {
        let all = Rc::new(RefCell::new(Clock::new(10, 100)));
        let (one, other): (Shelf<Piece>, Shelf<Piece>) = (Shelf::new(&all, 0), Shelf::new(&all, 1));
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
