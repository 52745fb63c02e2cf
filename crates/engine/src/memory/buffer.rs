//! Buffers for client data: on the heap while small, in pages of a pool once large.

use std::ops::Deref;

use shearwater_io::PageBuf;

use crate::limits::{RELEASED_BYTES_PER_TURN_MAX, SPARE_BUFFER_BYTES_MAX, SPARE_PAGES_BYTES_MAX};

/// Received bytes that are still needed: a partial head, pipelined requests, a body.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// Contents while small; else empty.
    small: Vec<u8>,
    /// Contents while large; else empty.
    large: PageBuf,
}

impl Buffer {
    /// Appends bytes. A buffer that gets large moves into pages of `pool`.
    pub(crate) fn extend(&mut self, bytes: &[u8], pool: &mut PagePool) {
        if self.large.is_empty() {
            if self.small.len() + bytes.len() <= SPARE_BUFFER_BYTES_MAX {
                return self.extend_small(bytes);
            }
            if self.large.held_bytes() == 0 {
                self.large = pool.take();
            }
            // Frees the small part: with thousands of large buffers it would add a quarter to their memory.
            let small = std::mem::take(&mut self.small);
            self.large.extend_from_slice(&small);
        }
        self.large.extend_from_slice(bytes);
    }

    /// Grows exactly: a `Vec` that doubles could exceed the limit.
    fn extend_small(&mut self, bytes: &[u8]) {
        let len = self.small.len() + bytes.len();
        if len > self.small.capacity() {
            let capacity = (2 * self.small.capacity()).clamp(len, SPARE_BUFFER_BYTES_MAX);
            self.small.reserve_exact(capacity - self.small.len());
        }
        self.small.extend_from_slice(bytes);
    }

    /// Removes bytes from the front.
    pub(crate) fn consume(&mut self, count: usize) {
        if self.large.is_empty() {
            self.small.drain(..count);
        } else {
            self.large.consume(count);
        }
    }

    /// Empties the buffer. Large memory returns to the pool, small memory is kept.
    pub(crate) fn clear(&mut self, pool: &mut PagePool) {
        self.small.clear();
        pool.recycle(std::mem::take(&mut self.large));
    }

    /// Returns the memory that it holds, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.small.capacity() + self.large.held_bytes()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if self.large.is_empty() { &self.small } else { &self.large }
    }
}

/// Memory of former large buffers.
#[derive(Debug, Default)]
pub(crate) struct PagePool {
    /// Pages for the next buffers, at most `SPARE_PAGES_BYTES_MAX` together.
    spare: Vec<PageBuf>,
    spare_bytes: usize,
    /// Pages to be freed.
    leaving: Vec<PageBuf>,
    leaving_bytes: usize,
}

impl PagePool {
    /// Returns an empty buffer, with memory if a spare one exists.
    pub(crate) fn take(&mut self) -> PageBuf {
        let Some(buffer) = self.spare.pop() else { return PageBuf::default() };
        self.spare_bytes -= buffer.held_bytes();
        buffer
    }

    /// Takes the memory of a buffer that is no longer used.
    pub(crate) fn recycle(&mut self, mut buffer: PageBuf) {
        buffer.clear();
        let bytes = buffer.held_bytes();
        let (list, total) = if self.spare_bytes + bytes <= SPARE_PAGES_BYTES_MAX {
            (&mut self.spare, &mut self.spare_bytes)
        } else {
            (&mut self.leaving, &mut self.leaving_bytes)
        };
        if bytes > 0 {
            list.push(buffer);
            *total += bytes;
        }
    }

    /// Frees the spare pages at once.
    pub(crate) fn free_spare(&mut self) {
        (self.spare, self.spare_bytes) = (Vec::new(), 0);
    }

    /// Returns the memory that is to be freed, in bytes.
    pub(crate) fn leaving_bytes(&self) -> usize {
        self.leaving_bytes
    }

    /// Returns true if memory is to be freed.
    pub(crate) fn is_busy(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Frees a turn's share. Freeing touched pages costs the kernel time in proportion.
    #[inline]
    pub(crate) fn release(&mut self) {
        if self.is_busy() {
            self.release_at_least(RELEASED_BYTES_PER_TURN_MAX);
        }
    }

    /// Frees at least so many bytes of the pending pages, or all of them.
    pub(crate) fn release_at_least(&mut self, mut share: usize) {
        while share > 0 {
            let Some(buffer) = self.leaving.last_mut() else { return };
            let before = buffer.held_bytes();
            let is_gone = buffer.release(share);
            let released = before - buffer.held_bytes();
            self.leaving_bytes -= released;
            share = share.saturating_sub(released);
            if is_gone {
                self.leaving.pop();
            }
        }
    }
}

#[cfg(test)]
mod buffer_tests {
    use super::Buffer;
    use crate::limits::SPARE_BUFFER_BYTES_MAX;
    use crate::memory::buffer::PagePool;

    #[test]
    fn holds_the_same_bytes_on_heap_and_pages() {
        let mut pool = PagePool::default();
        let mut buffer = Buffer::default();
        let mut model = Vec::new();
        // Grows past the bound and shrinks below it, several times.
        for (add, take) in
            [(10_000, 3_000), (9_000, 1), (100_000, 110_000), (5, 5_000), (15_999, 17_004), (7, 7)]
        {
            let piece: Vec<u8> = (0..add).map(|index: usize| (index * 7 + add) as u8).collect();
            buffer.extend(&piece, &mut pool);
            model.extend_from_slice(&piece);
            assert!(*buffer == model[..]);
            let take = take.min(model.len());
            buffer.consume(take);
            model.drain(..take);
            assert!(*buffer == model[..]);
        }
        buffer.extend(&[1; 50_000], &mut pool);
        assert_eq!(buffer.small.capacity(), 0, "memory in one place only");
        buffer.clear(&mut pool);
        assert!(buffer.is_empty());
        assert!(buffer.held_bytes() <= SPARE_BUFFER_BYTES_MAX);
    }
}

#[cfg(test)]
mod page_pool_tests {
    use shearwater_io::PageBuf;

    use super::PagePool;
    use crate::limits::{RELEASED_BYTES_PER_TURN_MAX, SPARE_PAGES_BYTES_MAX};

    fn used(bytes: usize) -> PageBuf {
        let mut buffer = PageBuf::default();
        buffer.extend_from_slice(&vec![1; bytes]);
        buffer
    }

    #[test]
    fn keeps_a_bounded_number_of_spare_pages() {
        let mut pool = PagePool::default();
        let each = SPARE_PAGES_BYTES_MAX / 4;
        (0..10).for_each(|_| pool.recycle(used(each)));
        assert_eq!((pool.spare.len(), pool.leaving.len()), (4, 6));
        assert!(pool.spare_bytes <= SPARE_PAGES_BYTES_MAX);
        while pool.is_busy() {
            pool.release();
        }
        assert_eq!(pool.leaving_bytes(), 0);
        for left in (0..4).rev() {
            assert_eq!(pool.take().held_bytes(), each);
            assert_eq!(pool.spare_bytes, left * each);
        }
        assert_eq!(pool.take().held_bytes(), 0);
    }

    #[test]
    fn releases_a_bounded_part_in_each_turn() {
        let mut pool = PagePool::default();
        pool.recycle(used(SPARE_PAGES_BYTES_MAX));
        (0..5).for_each(|_| pool.recycle(used(3 * RELEASED_BYTES_PER_TURN_MAX / 2)));
        let mut turns = 0;
        let mut leaving = pool.leaving_bytes();
        while pool.is_busy() {
            pool.release();
            assert!(leaving - pool.leaving_bytes() <= RELEASED_BYTES_PER_TURN_MAX);
            leaving = pool.leaving_bytes();
            turns += 1;
        }
        assert_eq!((turns, leaving), (8, 0));
        pool.release();
        assert_eq!(pool.spare_bytes, SPARE_PAGES_BYTES_MAX, "spare pages are kept");
    }

    #[test]
    fn frees_all_spare_memory() {
        let mut pool = PagePool::default();
        pool.recycle(used(SPARE_PAGES_BYTES_MAX / 2));
        pool.free_spare();
        assert_eq!((pool.spare.len(), pool.spare_bytes, pool.leaving_bytes()), (0, 0, 0));
        assert_eq!(pool.take().held_bytes(), 0);
    }
}
