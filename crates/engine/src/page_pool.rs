//! Pages of former large buffers: a few are kept, the others are freed, a bounded part in each turn.

use shearwater_io::PageBuf;

use crate::limits::{RELEASED_BYTES_PER_TURN_MAX, SPARE_PAGES_BYTES_MAX};

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
mod tests {
    use shearwater_io::PageBuf;

    use super::PagePool;
    use crate::limits::{RELEASED_BYTES_PER_TURN_MAX, SPARE_PAGES_BYTES_MAX};

    fn used(bytes: usize) -> PageBuf {
        let mut buffer = PageBuf::default();
        buffer.extend_from_slice(&vec![1; bytes]);
        buffer
    }

    #[test]
    fn keeps_little_for_the_next() {
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
    fn gives_back_so_much_in_a_turn() {
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
    fn keeps_nothing_that_it_is_to_forget() {
        let mut pool = PagePool::default();
        pool.recycle(used(SPARE_PAGES_BYTES_MAX / 2));
        pool.free_spare();
        assert_eq!((pool.spare.len(), pool.spare_bytes, pool.leaving_bytes()), (0, 0, 0));
        assert_eq!(pool.take().held_bytes(), 0);
    }
}
