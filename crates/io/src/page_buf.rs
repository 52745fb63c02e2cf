//! A byte buffer that grows without copying and returns memory to the system in steps.
//!
//! A `Vec` of a large body costs a turn a copy of all its bytes whenever it doubles, and the allocator may
//! keep the memory. Its own pages grow by moving their addresses, and return to the system with the body.

use std::ops::Deref;

#[cfg(not(target_os = "linux"))]
use crate::not_linux::pages::Pages;
#[cfg(target_os = "linux")]
use crate::pages::Pages;

/// Length of the first mapping: room for the largest head, so that the mappings of heads never move. Addresses cost
/// nothing until something is written, but a process may have a limit of them.
const FIRST_BYTES: usize = 64 * 1024;
/// Unit of releasing memory.
const PAGE_BYTES: usize = 4096;

/// A growing buffer, empty at first. Allocates nothing before the first byte.
#[derive(Debug, Default)]
pub struct PageBuf {
    memory: Memory,
    /// Bytes in use.
    len: usize,
    /// Highest number of bytes used so far: these have pages.
    touched: usize,
}

#[derive(Debug, Default)]
enum Memory {
    #[default]
    None,
    Pages(Pages),
    /// Fallback if the system has no more mappings, or can't grow them. As long as the buffer.
    Heap(Vec<u8>),
}

impl PageBuf {
    /// Appends bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        self.make_room(end);
        match &mut self.memory {
            Memory::Pages(pages) => pages.as_mut_slice()[self.len..end].copy_from_slice(bytes),
            Memory::Heap(heap) => heap.extend_from_slice(bytes),
            Memory::None => {}
        }
        self.len = end;
        self.touched = self.touched.max(end);
    }

    /// Removes bytes from the front; the rest moves up.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn consume(&mut self, count: usize) {
        match &mut self.memory {
            Memory::Pages(pages) => pages.as_mut_slice().copy_within(count..self.len, 0),
            Memory::Heap(heap) => drop(heap.drain(..count)),
            Memory::None => {}
        }
        self.len -= count;
    }

    /// Discards the bytes; keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
        if let Memory::Heap(heap) = &mut self.memory {
            heap.clear();
        }
    }

    /// Returns the memory that it holds, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match &self.memory {
            Memory::None => 0,
            Memory::Pages(_) => self.touched.next_multiple_of(PAGE_BYTES),
            Memory::Heap(heap) => heap.capacity(),
        }
    }

    /// Discards the bytes and frees about `bytes_max` of memory from its end. Returns true when nothing is
    /// left.
    ///
    /// A mapping's pages take the kernel some microseconds for 64 KiB: free a large one over several turns.
    pub fn release(&mut self, bytes_max: usize) -> bool {
        self.clear();
        let kept = self.held_bytes().saturating_sub(bytes_max.max(PAGE_BYTES));
        let shortened = match &mut self.memory {
            Memory::Pages(pages) if kept > 0 => pages.resize(kept).is_ok(),
            _ => false,
        };
        if shortened {
            self.touched = kept;
        } else {
            *self = Self::default();
        }
        !shortened
    }

    fn make_room(&mut self, end: usize) {
        let has_room = match &mut self.memory {
            Memory::None => self.map(end),
            Memory::Pages(pages) if end <= pages.len() => true,
            Memory::Pages(pages) => pages.resize(end.next_power_of_two()).is_ok(),
            Memory::Heap(_) => true,
        };
        if !has_room {
            let heap = self[..].to_vec();
            (self.memory, self.touched) = (Memory::Heap(heap), 0);
        }
    }

    fn map(&mut self, end: usize) -> bool {
        let Ok(pages) = Pages::new(end.next_power_of_two().max(FIRST_BYTES)) else { return false };
        self.memory = Memory::Pages(pages);
        true
    }
}

impl Deref for PageBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.memory {
            Memory::None => &[],
            Memory::Pages(pages) => &pages.as_slice()[..self.len],
            Memory::Heap(heap) => heap,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST_BYTES, Memory, PageBuf};

    /// Returns a buffer in pages, if the system has them, and one on the heap.
    fn both() -> [PageBuf; 2] {
        [PageBuf::default(), PageBuf { memory: Memory::Heap(Vec::new()), ..PageBuf::default() }]
    }

    fn pattern(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|index| ((index * 31) >> 3) as u8).collect()
    }

    #[test]
    fn keeps_all_bytes_as_it_grows() {
        let whole = pattern(20 * FIRST_BYTES + 7);
        for mut buffer in both() {
            assert!(buffer.is_empty());
            for piece in whole.chunks(9_999) {
                buffer.extend_from_slice(piece);
            }
            assert!(*buffer == whole[..]);
            assert!(buffer.held_bytes() >= whole.len());
            buffer.consume(1_000);
            assert!(*buffer == whole[1_000..]);
            buffer.extend_from_slice(b"end");
            assert!(buffer.ends_with(b"end") && buffer.len() == whole.len() - 997);
            buffer.clear();
            assert!(buffer.is_empty());
            buffer.extend_from_slice(b"again");
            assert_eq!(*buffer, *b"again");
        }
    }

    #[test]
    fn counts_used_and_not_mapped_memory() {
        let mut buffer = PageBuf::default();
        assert_eq!(buffer.held_bytes(), 0);
        buffer.extend_from_slice(&[1; 5_000]);
        if let Memory::Pages(pages) = &buffer.memory {
            assert_eq!((buffer.held_bytes(), pages.len()), (8_192, FIRST_BYTES));
        }
        buffer.clear();
        assert!(buffer.held_bytes() >= 5_000, "still there");
    }

    #[test]
    fn releases_memory_in_steps() {
        for mut buffer in both() {
            buffer.extend_from_slice(&pattern(10 * FIRST_BYTES));
            let is_mapped = matches!(buffer.memory, Memory::Pages(_));
            let mut rounds = 1;
            let mut held = buffer.held_bytes();
            while !buffer.release(FIRST_BYTES) {
                assert!(buffer.is_empty() && buffer.held_bytes() < held);
                held = buffer.held_bytes();
                rounds += 1;
            }
            assert_eq!(rounds, if is_mapped { 10 } else { 1 });
            assert_eq!(buffer.held_bytes(), 0);
            buffer.extend_from_slice(b"again");
            assert_eq!(*buffer, *b"again");
        }
        assert!(PageBuf::default().release(1), "nothing to free");
    }

    #[test]
    fn released_memory_can_be_used_again() {
        let mut buffer = PageBuf::default();
        buffer.extend_from_slice(&pattern(3 * FIRST_BYTES));
        buffer.release(FIRST_BYTES);
        let whole = pattern(7 * FIRST_BYTES);
        buffer.extend_from_slice(&whole);
        assert!(*buffer == whole[..]);
    }
}
