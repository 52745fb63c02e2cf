//! An array by slot that grows and never moves: what tables of connections are made of.

use std::ops::{Index, IndexMut};

/// Elements that are allocated together: a few KiB of the tables that are made of it.
const CHUNK: usize = 128;

/// An array indexed by [`Token::slot`](crate::Token::slot), of elements that begin as their default.
///
/// It grows by chunks of 128. A `Vec` would copy itself into one of twice the size each time, and what the copies leave
/// behind in an allocator costs as much again as the table. It never shrinks: a slot remembers its generation.
///
/// ```
/// let mut array = shearwater_io::SlotArray::<u32>::new();
/// assert_eq!(array.get(3), None);
/// array.grow_to(3);
/// array[3] = 7;
/// assert_eq!((array.get(3), array.get(4)), (Some(&7), Some(&0)), "a chunk is there as a whole");
/// ```
#[derive(Debug)]
pub struct SlotArray<T> {
    chunks: Vec<Box<[T; CHUNK]>>,
}

impl<T> Default for SlotArray<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> SlotArray<T> {
    /// An array without elements that has allocated nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    /// The element of a slot; `None` where it has not grown so far.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: usize) -> Option<&T> {
        Some(&self.chunks.get(slot / CHUNK)?[slot % CHUNK])
    }

    /// The element of a slot; `None` where it has not grown so far.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        Some(&mut self.chunks.get_mut(slot / CHUNK)?[slot % CHUNK])
    }

    /// All elements, in the order of their slots, from 0 on.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

impl<T: Default> SlotArray<T> {
    /// Makes sure that there is an element of this slot; the new ones are their type's default.
    pub fn grow_to(&mut self, slot: usize) {
        while self.chunks.len() <= slot / CHUNK {
            self.chunks.push(Box::new(std::array::from_fn(|_| T::default())));
        }
    }
}

impl<T> Index<usize> for SlotArray<T> {
    type Output = T;

    /// # Panics
    /// If it has not grown so far.
    #[inline]
    fn index(&self, slot: usize) -> &T {
        &self.chunks[slot / CHUNK][slot % CHUNK]
    }
}

impl<T> IndexMut<usize> for SlotArray<T> {
    #[inline]
    fn index_mut(&mut self, slot: usize) -> &mut T {
        &mut self.chunks[slot / CHUNK][slot % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, SlotArray};

    #[test]
    fn grows_where_it_must_and_moves_nothing() {
        let mut array = SlotArray::<u64>::default();
        assert!(array.get(0).is_none() && array.get_mut(0).is_none());
        array.grow_to(0);
        array[0] = 1;
        let first = &raw const array[0];
        array.grow_to(5 * CHUNK);
        array[5 * CHUNK] = 2;
        array.grow_to(3);
        assert!(std::ptr::eq(first, &raw const array[0]));
        assert_eq!(array.iter().count(), 6 * CHUNK);
        assert_eq!(array.iter().sum::<u64>(), 3);
        assert!(array.get(6 * CHUNK - 1).is_some() && array.get(6 * CHUNK).is_none());
    }
}
