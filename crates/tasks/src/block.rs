//! Memory for futures: blocks by size class, reused up to a bound.

#![expect(unsafe_code, reason = "allocates memory of a size known at run time")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use crate::limits::{FUTURE_BYTES_KEPT_MAX, SPARE_FUTURES_BYTES_MAX};

/// Step between size classes up to [`FINE_BYTES_MAX`], and alignment of their blocks: a cache line.
const STEP_BYTES: usize = 64;
/// From here on each class is twice the previous one: large futures are rare.
const FINE_BYTES_MAX: usize = 4096;
const FINE_CLASSES: usize = FINE_BYTES_MAX / STEP_BYTES;
const CLASSES: usize = FINE_CLASSES + (FUTURE_BYTES_KEPT_MAX / FINE_BYTES_MAX).ilog2() as usize;

/// An exclusively owned block of memory. Freed when dropped.
pub(crate) struct Block {
    start: NonNull<u8>,
    /// Its layout at allocation; the size is never 0.
    layout: Layout,
}

impl Block {
    fn new(layout: Layout) -> Self {
        debug_assert!(layout.size() > 0);
        // SAFETY: the size is not 0: a class is at least STEP_BYTES, and other blocks are larger or have a
        // wider alignment.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, layout }
    }

    /// Returns its first byte. The block's owner may use the memory.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns whether a value of this layout fits.
    pub(crate) fn has_room_for(&self, layout: Layout) -> bool {
        layout.size() <= self.layout.size() && layout.align() <= self.layout.align()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated in `new` with this layout, and is freed only here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// A worker's spare blocks.
pub(crate) struct Blocks {
    spare: [Vec<Block>; CLASSES],
    spare_bytes: usize,
}

impl Blocks {
    pub(crate) fn new() -> Self {
        Self { spare: [const { Vec::new() }; CLASSES], spare_bytes: 0 }
    }

    /// Returns a block with space for a value of this layout.
    pub(crate) fn take(&mut self, layout: Layout) -> Block {
        let Some(class) = class_of(layout) else { return Block::new(beyond_classes(layout)) };
        if let Some(block) = self.spare[class].pop() {
            self.spare_bytes -= block.layout.size();
            return block;
        }
        Block::new(layout_of(class))
    }

    /// Keeps a block for later futures, or frees it.
    pub(crate) fn release(&mut self, block: Block) {
        let bytes = block.layout.size();
        let Some(class) = class_of(block.layout) else { return };
        if self.spare_bytes + bytes <= SPARE_FUTURES_BYTES_MAX {
            self.spare_bytes += bytes;
            self.spare[class].push(block);
        }
    }

    /// Frees the spare blocks.
    pub(crate) fn free_spare(&mut self) {
        *self = Self::new();
    }

    /// Returns the bytes of spare blocks.
    #[cfg(test)]
    fn spare_bytes(&self) -> usize {
        self.spare_bytes
    }
}

/// Returns the smallest class that fits; `None` if the layout is too large or its alignment too wide.
fn class_of(layout: Layout) -> Option<usize> {
    let bytes = layout.size();
    if layout.align() > STEP_BYTES || bytes > FUTURE_BYTES_KEPT_MAX {
        return None;
    }
    if bytes <= FINE_BYTES_MAX {
        return Some(bytes.div_ceil(STEP_BYTES).max(1) - 1);
    }
    Some(FINE_CLASSES + (bytes.next_power_of_two() / FINE_BYTES_MAX).ilog2() as usize - 1)
}

/// Returns the layout of a class's blocks.
fn layout_of(class: usize) -> Layout {
    let bytes = match class.checked_sub(FINE_CLASSES) {
        None => (class + 1) * STEP_BYTES,
        Some(doublings) => FINE_BYTES_MAX << (doublings + 1),
    };
    Layout::from_size_align(bytes, STEP_BYTES).expect("the largest class doesn't overflow")
}

/// Returns the layout of a block without a class: as requested, but never empty.
fn beyond_classes(layout: Layout) -> Layout {
    if layout.size() > 0 {
        return layout;
    }
    Layout::from_size_align(layout.align(), layout.align()).expect("a type's alignment is a valid size")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(bytes: usize, align: usize) -> Layout {
        Layout::from_size_align(bytes, align).unwrap()
    }

    #[test]
    fn every_size_has_a_class_with_room_and_little_waste() {
        for bytes in (0..=FUTURE_BYTES_KEPT_MAX).step_by(if cfg!(miri) { 61 } else { 1 }) {
            let class = class_of(layout(bytes, 8)).unwrap();
            let block = layout_of(class);
            assert!(block.size() >= bytes && class < CLASSES, "{bytes}");
            assert!(block.size() <= bytes + STEP_BYTES || block.size() < 2 * bytes, "{bytes}");
            assert_eq!(class_of(block), Some(class), "a released block has its class");
        }
    }

    #[test]
    fn what_is_too_large_or_too_wide_has_its_own_and_is_not_kept() {
        let mut blocks = Blocks::new();
        for layout in [layout(FUTURE_BYTES_KEPT_MAX + 1, 8), layout(16, 128), layout(0, 4096)] {
            let block = blocks.take(layout);
            assert!(block.has_room_for(layout));
            assert_eq!(block.start().as_ptr().addr() % layout.align(), 0);
            blocks.release(block);
            assert_eq!(blocks.spare_bytes(), 0);
        }
    }

    #[test]
    fn a_block_is_used_again_and_so_much_is_kept() {
        let mut blocks = Blocks::new();
        let first = blocks.take(layout(1000, 8));
        let start = first.start();
        blocks.release(first);
        let again = blocks.take(layout(990, 16));
        assert_eq!(again.start(), start);
        blocks.release(again);

        let largest = layout(FUTURE_BYTES_KEPT_MAX, 8);
        let many: Vec<Block> =
            (0..2 * SPARE_FUTURES_BYTES_MAX / FUTURE_BYTES_KEPT_MAX).map(|_| blocks.take(largest)).collect();
        for block in many {
            blocks.release(block);
        }
        assert!(blocks.spare_bytes() <= SPARE_FUTURES_BYTES_MAX);
        assert!(blocks.spare_bytes() > SPARE_FUTURES_BYTES_MAX - FUTURE_BYTES_KEPT_MAX);
    }
}
