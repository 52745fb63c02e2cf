//! An array by slot that grows and never moves: storage of connection tables.

use std::ops::{Index, IndexMut};

/// Elements per allocation: a few KiB for the usual tables.
pub(crate) const CHUNK: usize = 128;

/// An array indexed by [`Token::slot`](crate::Token::slot), with default elements.
///
/// It grows by chunks of 128. A `Vec` would copy itself into one of twice the size each time, and the freed
/// copies cost as much again in an allocator. [`SlotArray::trim`] frees the last chunks.
///
/// ```
/// let mut array = shearwater_io::SlotArray::<u32>::new();
/// assert_eq!(array.get(3), None);
/// array.grow_to(3);
/// array[3] = 7;
/// assert_eq!((array.get(3), array.get(4)), (Some(&7), Some(&0)), "a chunk is allocated as a whole");
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
    /// Creates an empty array without allocating.
    #[must_use]
    pub const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    /// Returns the element of a slot; `None` beyond the present length.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: usize) -> Option<&T> {
        Some(&self.chunks.get(slot / CHUNK)?[slot % CHUNK])
    }

    /// Returns the element of a slot; `None` beyond the present length.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        Some(&mut self.chunks.get_mut(slot / CHUNK)?[slot % CHUNK])
    }

    /// Returns the number of elements: that of its chunks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// Returns whether it has no chunk.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Frees the last chunks as long as all of their elements are unused.
    pub fn trim(&mut self, is_unused: impl Fn(&T) -> bool) {
        let used = self.chunks.iter().rposition(|chunk| !chunk.iter().all(&is_unused));
        self.truncate(used.map_or(0, |last| (last + 1) * CHUNK));
    }

    /// Frees the chunks that have no element of the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.chunks.truncate(len.div_ceil(CHUNK));
        self.chunks.shrink_to_fit();
    }

    /// Returns all elements in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

impl<T: Default> SlotArray<T> {
    /// Grows the array to contain this slot, with default elements.
    pub fn grow_to(&mut self, slot: usize) {
        while self.chunks.len() <= slot / CHUNK {
            self.chunks.push(Box::new(std::array::from_fn(|_| T::default())));
        }
    }
}

impl<T> Index<usize> for SlotArray<T> {
    type Output = T;

    /// # Panics
    /// Panics beyond the present length.
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
    fn grows_without_moving_elements() {
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

    #[test]
    fn a_trim_frees_unused_chunks_at_the_end() {
        let mut array = SlotArray::<u64>::new();
        array.grow_to(5 * CHUNK);
        array[2 * CHUNK + 7] = 1;
        array.trim(|element| *element == 0);
        assert_eq!((array.len(), array[2 * CHUNK + 7]), (3 * CHUNK, 1));
        array.truncate(CHUNK + 1);
        assert_eq!(array.len(), 2 * CHUNK);
        array.trim(|element| *element == 0);
        assert!(array.is_empty() && array.chunks.capacity() == 0);
    }
}
