//! A type-erased future in a block. It never moves until it is dropped there.

#![expect(unsafe_code, reason = "only these functions know the type of the future in a block")]

use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};
use std::thread;

use crate::block::Block;

/// Operations of a type-erased future.
struct Operations {
    /// Polls the future at the address, which is pinned there.
    poll: unsafe fn(NonNull<u8>, &mut Context<'_>) -> Poll<()>,
    /// Drops the future at the address.
    drop: unsafe fn(NonNull<u8>),
}

/// The operations of one type of future.
trait HasOperations {
    const OPERATIONS: &'static Operations;
}

impl<F: Future<Output = ()>> HasOperations for F {
    const OPERATIONS: &'static Operations = &Operations { poll: poll_at::<F>, drop: drop_at::<F> };
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
    /// The future's memory. A separate field, so that the block can be reused without the future.
    block: ManuallyDrop<Block>,
    operations: &'static Operations,
    /// Futures stay on the thread that made them.
    of_one_thread: PhantomData<*mut ()>,
}

impl Stored {
    /// Puts a future into a block that has room for it.
    pub(crate) fn new<F: Future<Output = ()> + 'static>(block: Block, future: F) -> Self {
        assert!(block.has_room_for(Layout::new::<F>()), "a block of another class");
        // SAFETY: the block is owned, and has space for the future, as asserted above.
        unsafe { block.start().cast::<F>().write(future) };
        Self { block: ManuallyDrop::new(block), operations: F::OPERATIONS, of_one_thread: PhantomData }
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
    pub(crate) fn end(self) -> (Block, thread::Result<()>) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the future is there since `new`; `this` is not dropped and nothing else uses it.
        let dropped =
            catch_unwind(AssertUnwindSafe(|| unsafe { (this.operations.drop)(this.block.start()) }));
        // SAFETY: taken once: `this` is neither used again nor dropped.
        (unsafe { ManuallyDrop::take(&mut this.block) }, dropped)
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        /// Frees the block, even if the future panics.
        struct Free<'a>(&'a mut ManuallyDrop<Block>);
        impl Drop for Free<'_> {
            fn drop(&mut self) {
                // SAFETY: dropped once: `Stored` is being dropped, and only its `drop` does so.
                unsafe { ManuallyDrop::drop(self.0) }
            }
        }
        let start = self.block.start();
        let _free = Free(&mut self.block);
        // SAFETY: the future is there since `new` and isn't used afterwards.
        unsafe { (self.operations.drop)(start) }
    }
}
