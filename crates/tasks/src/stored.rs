//! A future of any type in a block: it stays where it was put until it is dropped there.

#![expect(unsafe_code, reason = "the type of what lies in a block is known to the functions beside it alone")]

use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};
use std::thread;

use crate::block::Block;

/// What can be done with a future whose type is forgotten.
struct Verbs {
    /// Polls the future at the address, which is pinned there.
    poll: unsafe fn(NonNull<u8>, &mut Context<'_>) -> Poll<()>,
    /// Drops the future at the address.
    drop: unsafe fn(NonNull<u8>),
}

/// The verbs of one type of future.
trait HasVerbs {
    const VERBS: &'static Verbs;
}

impl<F: Future<Output = ()>> HasVerbs for F {
    const VERBS: &'static Verbs = &Verbs { poll: poll_at::<F>, drop: drop_at::<F> };
}

/// # Safety
/// A future of this type lies at the address, pinned, and nothing else refers to it.
unsafe fn poll_at<F: Future<Output = ()>>(at: NonNull<u8>, context: &mut Context<'_>) -> Poll<()> {
    // SAFETY: the caller says so.
    let future = unsafe { at.cast::<F>().as_mut() };
    // SAFETY: it doesn't move until it is dropped: the caller says so.
    unsafe { Pin::new_unchecked(future) }.poll(context)
}

/// # Safety
/// A future of this type lies at the address, nothing else refers to it, and it isn't used afterwards.
unsafe fn drop_at<F>(at: NonNull<u8>) {
    // SAFETY: the caller says so.
    unsafe { at.cast::<F>().drop_in_place() }
}

/// A future in its block.
pub(crate) struct Stored {
    /// Where the future lies. A field on its own: the block is given back without it.
    block: ManuallyDrop<Block>,
    verbs: &'static Verbs,
    /// Futures stay on the thread that made them.
    of_one_thread: PhantomData<*mut ()>,
}

impl Stored {
    /// Puts a future into a block that has room for it.
    pub(crate) fn new<F: Future<Output = ()> + 'static>(block: Block, future: F) -> Self {
        assert!(block.has_room_for(Layout::new::<F>()), "a block of another class");
        // SAFETY: the block is owned, and has room for the future: see above.
        unsafe { block.start().cast::<F>().write(future) };
        Self { block: ManuallyDrop::new(block), verbs: F::VERBS, of_one_thread: PhantomData }
    }

    /// Polls the future.
    ///
    /// # Panics
    /// When the future panics. It is to be dropped then.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the future of these verbs was put there by `new` and never moves; `&mut self` makes it ours alone.
        unsafe { (self.verbs.poll)(self.block.start(), context) }
    }

    /// Drops the future and gives its block for the next one, and what the future panicked with while it was dropped.
    pub(crate) fn end(self) -> (Block, thread::Result<()>) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the future lies there since `new`; `this` is not dropped and has nothing else that uses it.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { (this.verbs.drop)(this.block.start()) }));
        // SAFETY: taken once: `this` is neither used any more nor dropped.
        (unsafe { ManuallyDrop::take(&mut this.block) }, dropped)
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        /// Frees the block, also where the future panics.
        struct Free<'a>(&'a mut ManuallyDrop<Block>);
        impl Drop for Free<'_> {
            fn drop(&mut self) {
                // SAFETY: dropped once: `Stored` is being dropped, and its `drop` does it here alone.
                unsafe { ManuallyDrop::drop(self.0) }
            }
        }
        let start = self.block.start();
        let _free = Free(&mut self.block);
        // SAFETY: the future lies there since `new` and isn't used afterwards.
        unsafe { (self.verbs.drop)(start) }
    }
}
