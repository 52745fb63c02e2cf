//! Bytes that grow without being copied, and go back to the system piece by piece, whatever the program's allocator does.
//!
//! A large body kept in a `Vec` costs its turn a copy of all that there is whenever it doubles, and the memory stays with the
//! allocator for as long as that likes. In pages of its own it grows by moving their addresses, and is given back when it is over.

use std::ops::Deref;

use crate::pages::Pages;

/// Length of the first mapping. An address costs nothing until something is written to it, but a process may have a limit of them.
const FIRST_BYTES: usize = 32 * 1024;
/// What memory is given back in.
const PAGE_BYTES: usize = 4096;

/// A growing buffer, empty at first. Takes no memory before something is put in.
#[derive(Debug, Default)]
pub struct PageBuf {
    memory: Memory,
    /// Bytes that are in use.
    len: usize,
    /// Bytes that have been in use: so many have pages behind them.
    touched: usize,
}

#[derive(Debug, Default)]
enum Memory {
    #[default]
    None,
    Pages(Pages),
    /// The system gives no more mappings, or none that grow. As long as the buffer.
    Heap(Vec<u8>),
}

impl PageBuf {
    /// Puts bytes behind those that are there.
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

    /// Takes bytes away from the front; the rest moves up.
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

    /// Forgets the bytes; keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
        if let Memory::Heap(heap) = &mut self.memory {
            heap.clear();
        }
    }

    /// Memory that it holds, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match &self.memory {
            Memory::None => 0,
            Memory::Pages(_) => self.touched.next_multiple_of(PAGE_BYTES),
            Memory::Heap(heap) => heap.capacity(),
        }
    }

    /// Gives memory back from its end, about `bytes_max` of it, and forgets the bytes. True when nothing is left.
    ///
    /// A mapping's pages take the kernel some microseconds for 64 KiB: who has a large one does it in several turns.
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

    /// A buffer in pages, where the system has them, and one that got none.
    fn both() -> [PageBuf; 2] {
        [PageBuf::default(), PageBuf { memory: Memory::Heap(Vec::new()), ..PageBuf::default() }]
    }

    fn pattern(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|index| ((index * 31) >> 3) as u8).collect()
    }

    #[test]
    fn what_goes_in_is_there_however_much_it_gets() {
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
    fn memory_counts_as_it_is_used_and_not_as_it_is_mapped() {
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
    fn memory_goes_back_piece_by_piece() {
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
        assert!(PageBuf::default().release(1), "nothing to give back");
    }

    #[test]
    fn a_part_that_was_given_back_can_be_used_again() {
        let mut buffer = PageBuf::default();
        buffer.extend_from_slice(&pattern(3 * FIRST_BYTES));
        buffer.release(FIRST_BYTES);
        let whole = pattern(7 * FIRST_BYTES);
        buffer.extend_from_slice(&whole);
        assert!(*buffer == whole[..]);
    }
}
