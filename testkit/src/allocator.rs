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
pub struct CountingAllocator([AtomicU64; 5]);

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
    /// All calls.
    pub fn calls(self) -> u64 {
        self.allocations + self.reallocations + self.frees
    }

    /// Bytes allocated and not freed.
    pub fn live_bytes(self) -> u64 {
        self.bytes_allocated.wrapping_sub(self.bytes_freed)
    }

    fn from_array([allocations, reallocations, frees, bytes_allocated, bytes_freed]: [u64; 5]) -> Self {
        Self { allocations, reallocations, frees, bytes_allocated, bytes_freed }
    }

    fn to_array(self) -> [u64; 5] {
        [self.allocations, self.reallocations, self.frees, self.bytes_allocated, self.bytes_freed]
    }
}

impl Sub for Allocations {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        let (now, before) = (self.to_array(), before.to_array());
        Self::from_array(std::array::from_fn(|at| now[at] - before[at]))
    }
}

thread_local! {
    static THREAD: Cell<[u64; 5]> = const { Cell::new([0; 5]) };
}

impl CountingAllocator {
    /// An allocator that has counted nothing.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 5])
    }

    /// Counts of the whole process.
    pub fn in_process(&self) -> Allocations {
        Allocations::from_array(std::array::from_fn(|at| self.0[at].load(Relaxed)))
    }

    /// Counts of the calling thread.
    pub fn on_this_thread(&self) -> Allocations {
        Allocations::from_array(THREAD.get())
    }

    fn count(&self, counts: [u64; 5]) {
        for (total, count) in self.0.iter().zip(counts) {
            total.fetch_add(count, Relaxed);
        }
        let thread = THREAD.get();
        THREAD.set(std::array::from_fn(|at| thread[at] + counts[at]));
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged. Counting uses atomics and a constant-initialised
// thread-local without a destructor, so it never allocates.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count([1, 0, 0, layout.size() as u64, 0]);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count([1, 0, 0, layout.size() as u64, 0]);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.count([0, 0, 1, 0, layout.size() as u64]);
        // SAFETY: the caller keeps the contract, which is the same; `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (grown, shrunk) = (size.saturating_sub(layout.size()), layout.size().saturating_sub(size));
        self.count([0, 1, 0, grown as u64, shrunk as u64]);
        // SAFETY: the caller keeps the contract, which is the same; `pointer` came from `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
