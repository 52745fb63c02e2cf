//! Memory of a worker's stacks: chunks of address space, each divided into equal stacks above guard pages.
//!
//! A process has a limited number of mappings (Linux: `vm.max_map_count`, 65,530 by default). A guard page
//! that `mprotect` makes is a mapping of its own and splits the chunk around it; one that
//! `MADV_GUARD_INSTALL` makes (Linux 6.13) isn't and doesn't. Whether that works shows only by trying it: it
//! also fails for locked memory.

#![expect(unsafe_code, reason = "protects and frees pages by system calls; implements the trait of stacks")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use corosensei::stack::valgrind::ValgrindStackRegistration;
use corosensei::stack::{DefaultStack, Stack, StackPointer};

use crate::limits::{GUARD_MAPPINGS_MAX, STACK_CHUNK_BYTES};
use crate::overflow::page_bytes;

/// Linux's advice that makes pages fault; unknown to other systems, which refuse it.
const MADV_GUARD_INSTALL: c_int = 102;

/// Guard pages of this process that are mappings of their own.
static GUARD_MAPPINGS: AtomicUsize = AtomicUsize::new(0);

/// A worker's stacks that are not in use and have no memory.
pub(crate) struct Arena {
    /// A stack and its guard page, in bytes; a multiple of the page size.
    stride: usize,
    chunk_stacks: usize,
    /// The advice that makes a guard page.
    guard_advice: c_int,
    free: Vec<ArenaStack>,
}

impl Arena {
    /// Creates an empty arena. A stack has `stack_bytes`, rounded up to whole pages; chunks have room for at
    /// most `stacks_max`.
    pub(crate) fn new(stack_bytes: usize, stacks_max: usize) -> Self {
        let stride = stack_bytes.next_multiple_of(page_bytes()) + page_bytes();
        let chunk_stacks = (STACK_CHUNK_BYTES / stride).clamp(1, stacks_max);
        Self { stride, chunk_stacks, guard_advice: MADV_GUARD_INSTALL, free: Vec::new() }
    }

    /// Takes a stack, from a new chunk if none is free.
    ///
    /// # Errors
    /// Fails if the system has no memory for a chunk, or the process has [`GUARD_MAPPINGS_MAX`] guard pages
    /// that are mappings of their own.
    pub(crate) fn take(&mut self) -> io::Result<ArenaStack> {
        if self.free.is_empty() {
            self.add_chunk()?;
        }
        let stack = self.free.pop().expect("a chunk has at least one stack");
        stack.chunk.taken.update(|taken| taken + 1);
        Ok(stack)
    }

    /// Takes a stack back and returns its memory to the system.
    pub(crate) fn release(&mut self, stack: ArenaStack) {
        stack.chunk.taken.update(|taken| taken - 1);
        stack.discard();
        self.free.push(stack);
    }

    /// Unmaps the chunks none of whose stacks is taken.
    pub(crate) fn trim(&mut self) {
        self.free.retain(|stack| stack.chunk.taken.get() > 0);
        self.free.shrink_to_fit();
    }

    fn add_chunk(&mut self) -> io::Result<()> {
        let chunk = Rc::new(Chunk::new(self.chunk_stacks, self.stride, self.guard_advice)?);
        let limits = (0..self.chunk_stacks).map(|number| chunk.limit() + number * self.stride);
        self.free.extend(limits.rev().map(|limit| ArenaStack::new(&chunk, limit, self.stride)));
        Ok(())
    }
}

/// A mapping that is divided into stacks. Unmapped when none of them is left.
struct Chunk {
    memory: DefaultStack,
    /// Its guard pages that are mappings of their own.
    guard_mappings: usize,
    /// Its stacks that are taken from the arena.
    taken: Cell<usize>,
}

impl Chunk {
    fn new(stacks: usize, stride: usize, guard_advice: c_int) -> io::Result<Self> {
        // Its own guard page is the first stack's.
        let memory = DefaultStack::new(stacks * stride - page_bytes())?;
        let mut chunk = Self { memory, guard_mappings: 0, taken: Cell::new(0) };
        chunk.count_guard_mapping()?;
        for number in 1..stacks {
            chunk.install_guard(number * stride, guard_advice)?;
        }
        Ok(chunk)
    }

    /// Returns the lowest address.
    fn limit(&self) -> usize {
        self.memory.limit().get()
    }

    /// Makes the page at an offset fault.
    fn install_guard(&mut self, offset: usize, advice: c_int) -> io::Result<()> {
        assert!(offset + page_bytes() <= self.memory.base().get() - self.limit(), "a page of the chunk");
        let page = ptr::with_exposed_provenance_mut::<c_void>(self.limit() + offset);
        // SAFETY: the page is in the chunk, which is new and owned: nothing uses its contents.
        if unsafe { libc::madvise(page, page_bytes(), advice) } == 0 && is_guarded(page) {
            return Ok(());
        }
        self.count_guard_mapping()?;
        // SAFETY: as above.
        if unsafe { libc::mprotect(page, page_bytes(), libc::PROT_NONE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Counts a guard page that is a mapping of its own.
    fn count_guard_mapping(&mut self) -> io::Result<()> {
        if GUARD_MAPPINGS.fetch_add(1, Ordering::Relaxed) >= GUARD_MAPPINGS_MAX {
            GUARD_MAPPINGS.fetch_sub(1, Ordering::Relaxed);
            return Err(io::Error::other(format!(
                "the guard pages of {GUARD_MAPPINGS_MAX} stacks are mappings of their own, of which the system allows few (Linux before 6.13)"
            )));
        }
        self.guard_mappings += 1;
        Ok(())
    }
}

/// Returns whether the system can't read a page of zeros. An emulator may report success for advice that it
/// doesn't know.
fn is_guarded(page: *const c_void) -> bool {
    // SAFETY: the system checks the address, at which it expects the name of a file.
    let accessed = unsafe { libc::access(page.cast(), libc::F_OK) };
    accessed != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

impl Drop for Chunk {
    fn drop(&mut self) {
        GUARD_MAPPINGS.fetch_sub(self.guard_mappings, Ordering::Relaxed);
    }
}

/// A stack of an arena, with its guard page. Its chunk stays mapped as long as it exists.
pub(crate) struct ArenaStack {
    /// Its lowest address: that of its guard page.
    limit: StackPointer,
    /// The address above its highest byte.
    base: StackPointer,
    /// Dropped before its chunk.
    _valgrind: ValgrindStackRegistration,
    chunk: Rc<Chunk>,
}

impl ArenaStack {
    fn new(chunk: &Rc<Chunk>, limit: usize, stride: usize) -> Self {
        let address = |bytes: usize| StackPointer::new(bytes).expect("nothing is mapped at address 0");
        Self {
            limit: address(limit),
            base: address(limit + stride),
            _valgrind: ValgrindStackRegistration::new(ptr::with_exposed_provenance_mut(limit), stride),
            chunk: Rc::clone(chunk),
        }
    }

    /// Returns its memory to the system. Locked memory stays.
    fn discard(&self) {
        let lowest = self.limit.get() + page_bytes();
        let start = ptr::with_exposed_provenance_mut(lowest);
        // SAFETY: the range is this stack without its guard page. Nothing is on it: a coroutine owns its stack
        // until it has ended and dropped its values.
        let _unless_locked = unsafe { libc::madvise(start, self.base.get() - lowest, libc::MADV_DONTNEED) };
    }
}

// SAFETY: the addresses are those of a mapped range that belongs to this value alone: `Arena::add_chunk` divides a chunk
// among its stacks once, and the chunk is mapped as long as one of them exists. The lowest page is a guard page since the
// chunk was made. The rest is readable and writable, and at least `STACK_BYTES_MIN` long. Both ends are page-aligned.
unsafe impl Stack for ArenaStack {
    #[inline]
    fn base(&self) -> StackPointer {
        self.base
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        self.limit
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::fs;
    use std::rc::Weak;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;
    use crate::limits::STACK_BYTES_MIN;

    /// Keeps other tests of this module from counting mappings at the same time.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An arena of small stacks, which asks for guard pages by this advice.
    fn arena(guard_advice: c_int) -> Arena {
        Arena { guard_advice, ..Arena::new(STACK_BYTES_MIN, usize::MAX) }
    }

    /// Advice of a system that knows no guard pages except by `mprotect`: unknown to it, or without effect.
    const NO_GUARD: [c_int; 2] = [-1, libc::MADV_NORMAL];

    /// Arenas of each kind of system.
    fn arenas() -> [Arena; 3] {
        [arena(MADV_GUARD_INSTALL), arena(NO_GUARD[0]), arena(NO_GUARD[1])]
    }

    /// Returns whether the system can read the byte at this address.
    fn is_readable(address: usize) -> bool {
        let mut ends = [0; 2];
        // SAFETY: it has room for two descriptors.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: the system checks the address.
        let written = unsafe { libc::write(ends[1], ptr::with_exposed_provenance(address), 1) };
        for end in ends {
            // SAFETY: it was opened above and is used by nothing else.
            unsafe { libc::close(end) };
        }
        written == 1
    }

    /// Returns the byte at this address of a stack.
    fn byte_of(stack: &ArenaStack, address: usize) -> &Cell<u8> {
        assert!((stack.limit.get() + page_bytes()..stack.base.get()).contains(&address));
        // SAFETY: it is readable and writable, and belongs to the stack.
        unsafe { &*ptr::with_exposed_provenance(address) }
    }

    #[test]
    fn each_stack_has_a_guard_page_and_all_of_its_bytes() {
        let _alone = alone();
        for mut arena in arenas() {
            let stacks: Vec<_> = (0..3 * arena.chunk_stacks / 2).map(|_| arena.take().unwrap()).collect();
            for stack in &stacks {
                let (limit, lowest) = (stack.limit.get(), stack.limit.get() + page_bytes());
                assert_eq!(stack.base.get() - lowest, STACK_BYTES_MIN);
                assert!(!is_readable(limit) && !is_readable(lowest - 1));
                assert!(is_readable(lowest) && is_readable(stack.base.get() - 1));
                byte_of(stack, lowest).set(1);
                byte_of(stack, stack.base.get() - 1).set(1);
            }
            let mut limits: Vec<_> = stacks.iter().map(|stack| stack.limit.get()).collect();
            limits.sort_unstable();
            assert!(limits.windows(2).all(|two| two[1] - two[0] >= arena.stride), "they don't overlap");
        }
    }

    #[test]
    fn a_released_stack_keeps_its_guard_page_and_is_used_again() {
        let _alone = alone();
        for mut arena in arenas() {
            let stack = arena.take().unwrap();
            let (limit, highest) = (stack.limit.get(), stack.base.get() - 1);
            byte_of(&stack, highest).set(1);
            arena.release(stack);
            assert!(!is_readable(limit));
            let again = arena.take().unwrap();
            assert_eq!(again.limit.get(), limit);
            byte_of(&again, highest).set(2);
        }
    }

    #[test]
    fn trimming_unmaps_only_chunks_without_a_taken_stack() {
        let _alone = alone();
        let mut arena = arena(MADV_GUARD_INSTALL);
        let mut stacks: Vec<_> = (0..3 * arena.chunk_stacks).map(|_| arena.take().unwrap()).collect();
        let chunks: Vec<_> = stacks.iter().map(|stack| Rc::downgrade(&stack.chunk)).collect();
        let mapped = || chunks.iter().filter_map(Weak::upgrade).count();
        let kept = stacks.swap_remove(arena.chunk_stacks);
        stacks.into_iter().for_each(|stack| arena.release(stack));
        assert_eq!(mapped(), 3 * arena.chunk_stacks);
        arena.trim();
        assert_eq!((mapped(), arena.free.len()), (arena.chunk_stacks, arena.chunk_stacks - 1));
        byte_of(&kept, kept.base.get() - 1).set(1);
        arena.release(kept);
        arena.trim();
        assert_eq!((mapped(), arena.free.capacity()), (0, 0));
    }

    #[test]
    fn large_stacks_are_reserved_one_by_one() {
        let _alone = alone();
        for (bytes, expected) in [(STACK_CHUNK_BYTES / 2 - page_bytes(), 2), (STACK_CHUNK_BYTES, 1)] {
            let mut arena = Arena::new(bytes, usize::MAX);
            let stack = arena.take().unwrap();
            assert_eq!(arena.free.len() + 1, expected);
            assert_eq!(stack.base.get() - stack.limit.get(), bytes + page_bytes());
        }
        assert_eq!(Arena::new(STACK_BYTES_MIN, 3).chunk_stacks, 3, "no more than may be in use");
    }

    /// With guard pages that are mappings of their own, half as many stacks reach the limit of Linux.
    #[test]
    fn seventy_thousand_stacks_take_few_mappings() {
        const STACKS: usize = 70_000;
        let _alone = alone();
        let Ok(before) = fs::read_to_string("/proc/self/maps") else { return };
        let mut arena = arena(MADV_GUARD_INSTALL);
        let first = arena.take().unwrap();
        if first.chunk.guard_mappings > 1 {
            return; // this kernel has no other guard pages
        }
        let stacks: Vec<_> = (1..STACKS).map(|_| arena.take().unwrap()).collect();
        let during = fs::read_to_string("/proc/self/maps").unwrap();
        let more = during.lines().count().saturating_sub(before.lines().count());
        assert!(more < STACKS / 50, "{more} mappings for {} stacks", stacks.len() + 1);
    }

    #[test]
    fn without_markers_the_number_of_guard_pages_is_bounded() {
        let _alone = alone();
        let mut arena = arena(NO_GUARD[0]);
        let mut stacks = Vec::new();
        let error = loop {
            match arena.take() {
                Ok(stack) => stacks.push(stack),
                Err(error) => break error,
            }
            assert!(stacks.len() <= GUARD_MAPPINGS_MAX);
        };
        assert_eq!(stacks.len(), GUARD_MAPPINGS_MAX - GUARD_MAPPINGS_MAX % arena.chunk_stacks);
        assert!(error.to_string().contains("mappings of their own"), "{error}");
        drop(stacks);
        assert!(arena.take().is_ok(), "there is room again");
    }
}
