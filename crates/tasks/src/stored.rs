//! Futures without their type, in memory blocks by size class that are reused up to a bound. A future never moves
//! until it is dropped in its block.

#![expect(unsafe_code, reason = "only these functions know the size and type of the future in a block")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll};
use std::thread;

use crate::limits::{FUTURE_BYTES_KEPT_MAX, SPARE_FUTURES_BYTES_MAX};

/// Step between size classes up to [`FINE_BYTES_MAX`], and alignment of their blocks: a cache line.
const STEP_BYTES: usize = 64;
/// From here on each class is twice the previous one: large futures are rare.
const FINE_BYTES_MAX: usize = 4096;
const FINE_CLASSES: usize = FINE_BYTES_MAX / STEP_BYTES;
const CLASSES: usize = FINE_CLASSES + (FUTURE_BYTES_KEPT_MAX / FINE_BYTES_MAX).ilog2() as usize;

/// An exclusively owned block of memory. Freed when dropped.
pub(crate) struct FutureBlock {
    start: NonNull<u8>,
    /// Its layout at allocation; the size is never 0.
    layout: Layout,
}

impl FutureBlock {
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

impl Drop for FutureBlock {
    fn drop(&mut self) {
        // SAFETY: it was allocated in `new` with this layout, and is freed only here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// A worker's spare blocks.
pub(crate) struct FutureBlocks {
    spare: [Vec<FutureBlock>; CLASSES],
    spare_bytes: usize,
}

impl FutureBlocks {
    pub(crate) fn new() -> Self {
        Self { spare: [const { Vec::new() }; CLASSES], spare_bytes: 0 }
    }

    /// Returns a block with space for a value of this layout.
    pub(crate) fn take(&mut self, layout: Layout) -> FutureBlock {
        let Some(class) = class_of(layout) else { return FutureBlock::new(beyond_classes(layout)) };
        if let Some(block) = self.spare[class].pop() {
            self.spare_bytes -= block.layout.size();
            return block;
        }
        FutureBlock::new(layout_of(class))
    }

    /// Keeps a block for later futures, or frees it.
    pub(crate) fn release(&mut self, block: FutureBlock) {
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

/// Operations of a type-erased future.
struct Operations {
    /// Polls the future at the address, which is pinned there.
    poll: unsafe fn(NonNull<u8>, &mut Context<'_>) -> Poll<()>,
    /// Drops the future at the address.
    drop: unsafe fn(NonNull<u8>),
}

impl Operations {
    /// Returns the operations of one type of future.
    const fn of<F: Future<Output = ()>>() -> &'static Self {
        &Self { poll: poll_at::<F>, drop: drop_at::<F> }
    }
}

/// # Safety
/// A future of this type is at the address, pinned, and nothing else refers to it.
unsafe fn poll_at<F: Future<Output = ()>>(at: NonNull<u8>, context: &mut Context<'_>) -> Poll<()> {
    // SAFETY: by the caller's contract.
    let future = unsafe { at.cast::<F>().as_mut() };
    // SAFETY: by the caller's contract it doesn't move until it is dropped.
    unsafe { Pin::new_unchecked(future) }.poll(context)
}

/// # Safety
/// A future of this type is at the address, nothing else refers to it, and it isn't used afterwards.
unsafe fn drop_at<F>(at: NonNull<u8>) {
    // SAFETY: by the caller's contract.
    unsafe { at.cast::<F>().drop_in_place() }
}

/// A future in its block.
pub(crate) struct Stored {
    /// The future's memory.
    block: FutureBlock,
    operations: &'static Operations,
    /// Futures stay on the thread that made them.
    of_one_thread: PhantomData<*mut ()>,
}

impl Stored {
    /// Puts a future into a block that has room for it.
    pub(crate) fn new<F: Future<Output = ()> + 'static>(block: FutureBlock, future: F) -> Self {
        assert!(block.has_room_for(Layout::new::<F>()), "a block of another class");
        // SAFETY: the block is owned, and has space for the future, as asserted above.
        unsafe { block.start().cast::<F>().write(future) };
        Self { block, operations: Operations::of::<F>(), of_one_thread: PhantomData }
    }

    /// Polls the future.
    ///
    /// # Panics
    /// Panics if the future does. It must be dropped then.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: `new` put the future of these operations there, and it never moves; `&mut self` is
        // exclusive.
        unsafe { (self.operations.poll)(self.block.start(), context) }
    }

    /// Drops the future and returns its block for reuse, and the panic of dropping it, if any.
    pub(crate) fn end(self) -> (FutureBlock, thread::Result<()>) {
        let this = ManuallyDrop::new(self);
        // SAFETY: the future is there since `new`; `this` is not dropped and nothing else uses it.
        let dropped =
            catch_unwind(AssertUnwindSafe(|| unsafe { (this.operations.drop)(this.block.start()) }));
        // SAFETY: read once: `this` is neither used again nor dropped.
        (unsafe { ptr::read(&raw const this.block) }, dropped)
    }
}

impl Drop for Stored {
    /// Drops the future. Its block is freed afterwards, even if that panics.
    fn drop(&mut self) {
        // SAFETY: the future is there since `new` and isn't used afterwards.
        unsafe { (self.operations.drop)(self.block.start()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(bytes: usize, align: usize) -> Layout {
        Layout::from_size_align(bytes, align).unwrap()
    }

    #[test]
    fn each_size_has_a_class_with_room_and_little_waste() {
        for bytes in (0..=FUTURE_BYTES_KEPT_MAX).step_by(if cfg!(miri) { 61 } else { 1 }) {
            let class = class_of(layout(bytes, 8)).unwrap();
            let block = layout_of(class);
            assert!(block.size() >= bytes && class < CLASSES, "{bytes}");
            assert!(block.size() <= bytes + STEP_BYTES || block.size() < 2 * bytes, "{bytes}");
            assert_eq!(class_of(block), Some(class), "a released block has its class");
        }
    }

    #[test]
    fn does_not_keep_blocks_that_are_too_large_or_too_wide() {
        let mut blocks = FutureBlocks::new();
        for layout in [layout(FUTURE_BYTES_KEPT_MAX + 1, 8), layout(16, 128), layout(0, 4096)] {
            let block = blocks.take(layout);
            assert!(block.has_room_for(layout));
            assert_eq!(block.start().as_ptr().addr() % layout.align(), 0);
            blocks.release(block);
            assert_eq!(blocks.spare_bytes, 0);
        }
    }

    #[test]
    fn reuses_blocks_and_keeps_a_bounded_number() {
        let mut blocks = FutureBlocks::new();
        let first = blocks.take(layout(1000, 8));
        let start = first.start();
        blocks.release(first);
        let again = blocks.take(layout(990, 16));
        assert_eq!(again.start(), start);
        blocks.release(again);

        let largest = layout(FUTURE_BYTES_KEPT_MAX, 8);
        let many: Vec<FutureBlock> =
            (0..2 * SPARE_FUTURES_BYTES_MAX / FUTURE_BYTES_KEPT_MAX).map(|_| blocks.take(largest)).collect();
        for block in many {
            blocks.release(block);
        }
        assert!(blocks.spare_bytes <= SPARE_FUTURES_BYTES_MAX);
        assert!(blocks.spare_bytes > SPARE_FUTURES_BYTES_MAX - FUTURE_BYTES_KEPT_MAX);
    }
}
