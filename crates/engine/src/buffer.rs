//! A buffer for client data: on the heap while it is small, in its own pages once it is large.

use std::ops::Deref;

use shearwater_io::PageBuf;

use crate::limits::SPARE_BUFFER_BYTES_MAX;
use crate::page_pool::PagePool;

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

#[cfg(test)]
mod tests {
    use super::Buffer;
    use crate::limits::SPARE_BUFFER_BYTES_MAX;
    use crate::page_pool::PagePool;

    #[test]
    fn the_bytes_are_the_same_wherever_they_lie() {
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
