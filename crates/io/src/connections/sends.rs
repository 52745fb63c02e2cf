//! A slab of sends in flight.

use std::sync::Arc;

use crate::limits::SPARE_SENDS_MAX;
use crate::read_ahead::Fetched;
use crate::{Output, SendError};

/// One send in flight: from `send` until its `Sent` is taken.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) output: Output,
    /// Bytes that the kernel has accepted.
    pub(crate) done: u64,
    /// Result; `None` while it is in flight.
    pub(crate) result: Option<Result<(), SendError>>,
    /// Kept while this send wants its fetch, or what that has read: nothing is fetched for a closed connection.
    pub(crate) wants: Option<Arc<Fetched>>,
    /// True if the socket holds back partial segments until this send has ended.
    pub(crate) corked: bool,
}

impl Sending {
    /// Creates a send of which `done` bytes are accepted.
    pub(crate) fn new(output: Output, done: u64) -> Self {
        Self { output, done, result: None, wants: None, corked: false }
    }

    /// Returns the bytes that the kernel hasn't accepted.
    pub(crate) fn left(&self) -> u64 {
        self.output.len() - self.done
    }
}

/// Values of sends in flight, by index. Its length is the maximum in flight since it was last empty, at most
/// one per connection.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds a value and returns its index.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.values[index as usize] = value;
            return index;
        }
        self.values.push(value);
        // One per connection at most, and connections are numbered by `u32`.
        (self.values.len() - 1) as u32
    }

    /// Returns the value with this index; `None` for `NONE`.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.values.get(index as usize)
    }

    /// Returns the value with this index; `None` for `NONE`.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.values.get_mut(index as usize)
    }

    /// Removes a value after `take` has taken what it owns. Each index once.
    #[inline]
    pub(crate) fn remove<R>(&mut self, index: u32, take: impl FnOnce(&mut T) -> R) -> R {
        self.free.push(index);
        let taken = take(&mut self.values[index as usize]);
        if self.free.len() == self.values.len() && self.values.len() > SPARE_SENDS_MAX {
            (self.values, self.free) = (Vec::new(), Vec::new());
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::{SPARE_SENDS_MAX, Slab};

    #[test]
    fn frees_the_memory_of_a_busier_moment() {
        let mut slab = Slab::default();
        for count in [SPARE_SENDS_MAX, 3 * SPARE_SENDS_MAX] {
            let indices: Vec<_> = (0..count).map(|number| slab.insert(number)).collect();
            assert_eq!(slab.values.len(), count);
            for (number, index) in indices.into_iter().enumerate() {
                assert_eq!(slab.get(index), Some(&number));
                assert_eq!(slab.remove(index, |number| *number), number);
            }
            assert_eq!(slab.values.len(), if count > SPARE_SENDS_MAX { 0 } else { count });
        }
        assert_eq!((slab.values.capacity(), slab.free.capacity()), (0, 0));
    }
}
