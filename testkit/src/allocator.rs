//! Counting allocator for test binaries.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait; every call is passed on to the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The system's allocator, counting calls. It replaces the allocator of a whole test binary:
///
/// ```
/// use testkit::CountingAllocator;
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator::new();
///
/// # fn main() {
/// let before = ALLOCATOR.on_this_thread();
/// let list = vec![1_u8, 2, 3];
/// assert_eq!((ALLOCATOR.on_this_thread() - before).allocations, 1);
/// # drop(list);
/// # }
/// ```
#[derive(Debug, Default)]
pub struct CountingAllocator {
    allocations: AtomicU64,
    reallocations: AtomicU64,
    frees: AtomicU64,
    bytes_allocated: AtomicU64,
    bytes_freed: AtomicU64,
}

/// Counts up to one moment. Subtract two for the calls between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Calls of `alloc` and `alloc_zeroed`.
    pub allocations: u64,
    /// Calls of `realloc`.
    pub reallocations: u64,
    /// Calls of `dealloc`.
    pub frees: u64,
    /// Bytes allocated, grown parts included.
    pub bytes_allocated: u64,
    /// Bytes freed, shrunk parts included.
    pub bytes_freed: u64,
}

impl Allocations {
    const NONE: Self =
        Self { allocations: 0, reallocations: 0, frees: 0, bytes_allocated: 0, bytes_freed: 0 };

    /// All calls.
    #[must_use]
    pub fn calls(self) -> u64 {
        self.allocations + self.reallocations + self.frees
    }

    /// Bytes allocated and not freed.
    #[must_use]
    pub fn live_bytes(self) -> u64 {
        self.bytes_allocated.wrapping_sub(self.bytes_freed)
    }
}

impl Sub for Allocations {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            allocations: self.allocations - before.allocations,
            reallocations: self.reallocations - before.reallocations,
            frees: self.frees - before.frees,
            bytes_allocated: self.bytes_allocated - before.bytes_allocated,
            bytes_freed: self.bytes_freed - before.bytes_freed,
        }
    }
}

thread_local! {
    static THREAD: Cell<Allocations> = const { Cell::new(Allocations::NONE) };
}

impl CountingAllocator {
    /// An allocator that has counted nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            allocations: AtomicU64::new(0),
            reallocations: AtomicU64::new(0),
            frees: AtomicU64::new(0),
            bytes_allocated: AtomicU64::new(0),
            bytes_freed: AtomicU64::new(0),
        }
    }

    /// Counts of the whole process.
    pub fn in_process(&self) -> Allocations {
        Allocations {
            allocations: self.allocations.load(Relaxed),
            reallocations: self.reallocations.load(Relaxed),
            frees: self.frees.load(Relaxed),
            bytes_allocated: self.bytes_allocated.load(Relaxed),
            bytes_freed: self.bytes_freed.load(Relaxed),
        }
    }

    /// Counts of the calling thread.
    pub fn on_this_thread(&self) -> Allocations {
        THREAD.get()
    }

    fn count(&self, calls: Allocations) {
        self.allocations.fetch_add(calls.allocations, Relaxed);
        self.reallocations.fetch_add(calls.reallocations, Relaxed);
        self.frees.fetch_add(calls.frees, Relaxed);
        self.bytes_allocated.fetch_add(calls.bytes_allocated, Relaxed);
        self.bytes_freed.fetch_add(calls.bytes_freed, Relaxed);
        let thread = THREAD.get();
        THREAD.set(Allocations {
            allocations: thread.allocations + calls.allocations,
            reallocations: thread.reallocations + calls.reallocations,
            frees: thread.frees + calls.frees,
            bytes_allocated: thread.bytes_allocated + calls.bytes_allocated,
            bytes_freed: thread.bytes_freed + calls.bytes_freed,
        });
    }

    fn count_allocation(&self, layout: Layout) {
        let bytes_allocated = layout.size() as u64;
        self.count(Allocations { allocations: 1, bytes_allocated, ..Allocations::NONE });
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged. Counting uses atomics and a constant-initialised
// thread-local without a destructor, so it never allocates.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count_allocation(layout);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count_allocation(layout);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.count(Allocations { frees: 1, bytes_freed: layout.size() as u64, ..Allocations::NONE });
        // SAFETY: the caller keeps the contract, which is the same; `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let bytes_allocated = size.saturating_sub(layout.size()) as u64;
        let bytes_freed = layout.size().saturating_sub(size) as u64;
        self.count(Allocations { reallocations: 1, bytes_allocated, bytes_freed, ..Allocations::NONE });
        // SAFETY: the caller keeps the contract, which is the same; `pointer` came from `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
